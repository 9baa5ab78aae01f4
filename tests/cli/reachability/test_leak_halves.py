# SPDX-License-Identifier: MIT
"""ttdanalyze leaks of so many blocks that two threads do half of the work each."""

import os
import unittest

import support
from snapshot_support import IN_BSS, SnapshotCase, SnapshotScript
from support import on_one_processor

# Twice so many blocks, and as many others; of as many words but a seventh it is asked whether they
# are relics.
PAIRS = 80000
OTHERS = 40000
STEP = 48


def holder(pair):
    return 0x20000 + 2 * pair * STEP


def target(pair):
    return holder(pair) + STEP


def other(number):
    return holder(PAIRS) + number * STEP


def is_shared(pair):
    return pair % 5 == 0 and pair < OTHERS


def is_relic(pair):
    return pair % 3 == 0


def is_lost(pair):
    return pair % 7 == 0


class Halves(SnapshotCase):
    def script(self):
        """Each holder points at the next one, and at its target, which is older than it. If the
        word is a relic, another block had the holder's memory when the target was there. The
        others are a chain of their own, and point at some of the targets as well."""
        script = SnapshotScript().basics()
        for pair in range(PAIRS):
            script.alloc(target(pair), 16, stack=2 + pair % 2)
        for pair in filter(is_relic, range(PAIRS)):
            script.alloc(holder(pair), 32)
            script.free(holder(pair))
        for pair in range(PAIRS):
            script.alloc(holder(pair), 32)
        for number in range(OTHERS):
            script.alloc(other(number), 16)
        words = [(IN_BSS, 0, holder(0)), (IN_BSS, 8, other(0))]
        for pair in range(PAIRS):
            if pair + 1 < PAIRS:
                words.append((holder(pair), holder(pair + 1)))
            if not is_lost(pair):
                words.append((holder(pair) + 8, target(pair)))
        for number in range(OTHERS):
            if number + 1 < OTHERS:
                words.append((other(number), other(number + 1)))
            if is_shared(number):
                words.append((other(number) + 8, target(number)))
        script.snapshot(*words)
        return script.close()

    def expect_same_on_one_processor(self, *arguments):
        self.assertEqual(self.run_ok(*arguments).text,
                         support.run(*arguments, preexec_fn=on_one_processor).text)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "needs two processors")
    def test_classes(self):
        trace = self.write(self.script())
        lost = sum(is_lost(pair) and not is_shared(pair) for pair in range(PAIRS))
        stale = sum(is_relic(pair) and not is_lost(pair) and not is_shared(pair)
                    for pair in range(PAIRS))
        self.assertGreater(PAIRS - lost, 65536)
        found = self.json_of("leaks", trace, "--show", "all")
        self.assertTrue(found["certain"])
        sums = {name: (of["blocks"], of["bytes"]) for name, of in found["classes"].items()
                if of["blocks"]}
        self.assertEqual(sums, {
            "definitely_lost": (lost, 16 * lost), "held_by_stale": (stale, 16 * stale),
            "still_reachable": (2 * PAIRS + OTHERS - lost,
                                32 * PAIRS + 16 * (PAIRS + OTHERS - lost))})
        self.expect_same_on_one_processor("leaks", "--show", "all", "--format", "json", trace)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "needs two processors")
    def test_retained(self):
        """A block of a chain retains all that follows it, but not the targets that the
        other chain points at as well: whichever is searched later, its edges say so."""
        trace = self.write(self.script())
        own = [0 if is_lost(pair) or is_shared(pair) else 1 for pair in range(PAIRS)]
        others = [1 if is_lost(pair) and is_shared(pair) else 0 for pair in range(OTHERS)]
        expected = {}
        for number in range(20):
            expected[hex(holder(number))] = PAIRS - number + sum(own[number:])
            expected[hex(other(number))] = OTHERS - number + sum(others[number:])
        found = {of["block"]["address"]: of["retained_blocks"] for of in
                 self.json_of("retained", trace, "--limit", "90000")["retainers"]}
        self.assertEqual({address: found.get(address) for address in expected}, expected)
        self.expect_same_on_one_processor("retained", "--format", "json", "--limit", "1000", trace)


if __name__ == "__main__":
    support.main()
