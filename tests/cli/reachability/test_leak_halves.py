# SPDX-License-Identifier: MIT
"""ttdanalyze leaks of so many blocks that two threads do half of the work each."""

import os
import unittest

import support
from snapshot_support import IN_BSS, SnapshotCase, SnapshotScript
from support import on_one_processor

# Twice so many blocks; of as many words but a seventh it is asked whether they are relics.
PAIRS = 80000
STEP = 48


def holder(pair):
    return 0x20000 + 2 * pair * STEP


def target(pair):
    return holder(pair) + STEP


def is_relic(pair):
    return pair % 3 == 0


def is_lost(pair):
    return pair % 7 == 0


class Halves(SnapshotCase):
    def script(self):
        """Each holder points at the next one, and at its target, which is older than it. If the
        word is a relic, another block had the holder's memory when the target was there."""
        script = SnapshotScript().basics()
        for pair in range(PAIRS):
            script.alloc(target(pair), 16, stack=2 + pair % 2)
        for pair in filter(is_relic, range(PAIRS)):
            script.alloc(holder(pair), 32)
            script.free(holder(pair))
        for pair in range(PAIRS):
            script.alloc(holder(pair), 32)
        words = [(IN_BSS, 0, holder(0))]
        for pair in range(PAIRS):
            if pair + 1 < PAIRS:
                words.append((holder(pair), holder(pair + 1)))
            if not is_lost(pair):
                words.append((holder(pair) + 8, target(pair)))
        script.snapshot(*words)
        return script.close()

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "needs two processors")
    def test_classes(self):
        trace = self.write(self.script())
        lost = sum(map(is_lost, range(PAIRS)))
        stale = sum(is_relic(pair) and not is_lost(pair) for pair in range(PAIRS))
        self.assertGreater(PAIRS - lost, 65536)
        found = self.json_of("leaks", trace, "--show", "all")
        self.assertTrue(found["certain"])
        sums = {name: (of["blocks"], of["bytes"]) for name, of in found["classes"].items()
                if of["blocks"]}
        self.assertEqual(sums, {
            "definitely_lost": (lost, 16 * lost), "held_by_stale": (stale, 16 * stale),
            "still_reachable": (2 * PAIRS - lost, 32 * PAIRS + 16 * (PAIRS - lost))})
        for command in ("leaks --show all", "retained"):
            arguments = (*command.split(), "--format", "json", trace)
            with self.subTest(command=command):
                self.assertEqual(self.run_ok(*arguments).text,
                                 support.run(*arguments, preexec_fn=on_one_processor).text)


if __name__ == "__main__":
    support.main()
