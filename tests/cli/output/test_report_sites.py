# SPDX-License-Identifier: MIT
"""ttdanalyze report of more call sites than a page has by themselves"""

import os
import random
import unittest

import page_support
import support
from snapshot_support import SnapshotScript
from support import TestCase

# As in report/page/page_model.h.
SITES_MAX = 11000
OTHERS = (1 << 32) - 1
SITES = 20600
FIRST_STACK = 5
# A site that allocates a byte, but twice, and frees it; and blocks that are freed behind the peak.
TWICE = SITES - 1
FREED_LATE = 500


def check_ticks(test, heap):
    """At each tick the sums over all stacks are those of the tick."""
    blocks = size = 0
    changes = heap.changes("stack")
    test.assertEqual(len(changes), len(heap.position))
    for i, changed in enumerate(changes):
        blocks += sum(change[1] for change in changed)
        size += sum(change[2] for change in changed)
        test.assertEqual((heap.blocks[i], heap.bytes[i]), (blocks, size))


class ReportOfManySites(TestCase):
    def write_many(self):
        """A trace with a block for each call site, of which some are freed; and of each block the
        size and whether it stays."""
        chance = random.Random(19)
        script = SnapshotScript(events_per_chunk=2000).basics()
        for i in range(SITES):
            script.add("stack", parent=1 + i % 3, module=1, offset=0x1000 + i)
        blocks = []
        for i in range(SITES):
            blocks.append((1, False) if i == TWICE
                          else (chance.randrange(1, 1 << 20), chance.random() < 0.5))
            for _ in range(1 + (i == TWICE)):
                script.alloc(0x100000 + 0x100000 * i, blocks[i][0], stack=FIRST_STACK + i)
                if not blocks[i][1]:
                    script.free(0x100000 + 0x100000 * i)
        for i in [i for i in range(SITES) if blocks[i][1]][-FREED_LATE:]:
            blocks[i] = (blocks[i][0], False)
            script.free(0x100000 + 0x100000 * i)
        script.snapshot(regions=[(1, 0x10000, 1 << 40)])
        return self.write(script.close(), "many.ttd"), blocks

    def parts(self, trace, *arguments):
        page = self.path("report.html")
        self.run_ok("report", "-o", page, *arguments, trace)
        return page_support.parts_of(page)

    def check_sums(self, part, blocks):
        """Folded records are in all sums."""
        heap = page_support.Heap(part)
        check_ticks(self, heap)
        peak = part["peak"]
        self.assertEqual((int(peak["blocks"]), int(peak["bytes"])),
                         tuple(map(sum, zip(*heap.at_peak().values()))))
        self.assertEqual(sum(map(int, part["usage"]["allocations"])), SITES + 1)
        self.assertEqual(sum(map(int, part["usage"]["bytes"])),
                         sum(size for size, _ in blocks) + blocks[TWICE][0])
        lost = [int(size) for kind in part["lost"].values() for size in kind["bytes"]]
        stays = sum(size for size, stays in blocks if stays)
        self.assertEqual((sum(lost), heap.bytes[-1]), (stays, stays))

    def test_small_sites_are_one(self):
        trace, blocks = self.write_many()
        part = self.parts(trace)["heap"]
        stacks = page_support.sums(part["sites"]["stack"])
        self.assertEqual(len(stacks), len(set(stacks)))
        self.assertLessEqual(len(stacks), SITES_MAX + 1)
        self.assertEqual(part["others"]["count"], SITES - (len(stacks) - 1))
        self.assertEqual(stacks[part["others"]["site"]], OTHERS)
        self.assertEqual(part["others"]["site"] + 1, len(part["usage"]["bytes"]))
        self.check_sums(part, blocks)
        # Those by themselves are what they are.
        ranked = sorted(range(SITES), key=lambda i: -blocks[i][0])[:SITES_MAX // 4]
        self.assertFalse({FIRST_STACK + i for i in ranked} - set(stacks))
        self.assertTrue(FIRST_STACK + TWICE in stacks)
        state = page_support.Heap(part).state("stack", -1)
        for stack in set(stacks) - {OTHERS}:
            size, stays = blocks[stack - FIRST_STACK]
            if stays:
                self.assertEqual(state[stack], (1, size))
            else:
                self.assertNotIn(stack, state)
        for i, stack in enumerate(stacks[:part["others"]["site"]]):
            times = 1 + (stack == FIRST_STACK + TWICE)
            self.assertEqual((int(part["usage"]["allocations"][i]), int(part["usage"]["bytes"][i])),
                             (times, times * blocks[stack - FIRST_STACK][0]))

    @unittest.skipUnless(os.environ["HAS_ENGINE"] == "1", "built without the engine")
    def test_an_exact_page_has_them_all(self):
        trace, blocks = self.write_many()
        part = self.parts(trace, "--exact")["heap"]
        self.assertIsNone(part["others"])
        self.assertEqual(sorted(page_support.sums(part["sites"]["stack"])),
                         list(range(FIRST_STACK, FIRST_STACK + SITES)))
        self.check_sums(part, blocks)


class ReportOfBusySites(TestCase):
    """Of sites that all change all the time."""

    SITES, BLOCKS, EVENTS = 300, 2000, 80000

    def write_busy(self):
        chance = random.Random(5)
        script = support.Script(events_per_chunk=20000).basics()
        for i in range(self.SITES):
            script.add("stack", parent=1 + i % 3, module=1, offset=0x1000 + i)
        live = [False] * self.BLOCKS
        for _ in range(self.EVENTS):
            block = chance.randrange(self.BLOCKS)
            address = 0x100000 + 0x1000 * block
            if live[block]:
                script.free(address)
            else:
                script.alloc(address, chance.randrange(1, 4000),
                             stack=FIRST_STACK + chance.randrange(self.SITES))
            live[block] = not live[block]
        return self.write(script.close(), "busy.ttd")

    def test_a_page_is_small_beside_its_trace(self):
        trace, page = self.write_busy(), self.path("report.html")
        self.run_ok("report", "-o", page, trace)
        self.assertLess(os.path.getsize(page), 0.03 * os.path.getsize(trace) + 300e3)
        heap = page_support.Heap(page_support.parts_of(page)["heap"])
        self.assertGreater(len(heap.position), 80)
        check_ticks(self, heap)


if __name__ == "__main__":
    support.main()
