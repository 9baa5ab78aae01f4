# SPDX-License-Identifier: MIT
"""ttdanalyze errors: headers of blocks that do not fit the blocks"""

import unittest

from snapshot_support import STOPPED, SnapshotScript
from support import TestCase

BROKEN, BUSY, DERIVED = 1, 2, 4
SIGNALED, SIGABRT, BY_RAISE = 2, 6, "-6"
AT_SIGNAL, AT_EXIT = 5, 4
# The first header; a block lies 8 bytes behind its header.
BEGIN = 0x10008
A, B, C = 0x10010, 0x10030, 0x10050


class Damage(TestCase):
    written = 0

    def script(self, *sizes):
        script = SnapshotScript().basics()
        for address, size in zip((A, B, C), sizes):
            if size is not None:
                script.alloc(address, size)
        return script

    def found(self, script, values, flags=0, state=STOPPED):
        """Each finding: address, who it is about, whether that ends there, and certainty."""
        script.snapshot(headers=(BEGIN, flags, values), reason=AT_EXIT, flags=state)
        self.written += 1
        self.trace = self.write(script.close(), f"{self.written}.ttd")
        findings = self.json_of("errors", self.trace)["findings"]
        return [(f["address"], f["block"] and int(f["block"]["address"], 16),
                 f["damage"]["adjacent"], f["certain"]) for f in findings]

    def test_nothing_is_wrong(self):
        """Sizes may be larger than they need be; flags, and blocks between, are anything."""
        for values in ((0x21, 0x21, 0x21), (0x25, 0x20, 0x21), (0x21, 0x31), (0x21, 0x41)):
            with self.subTest(values):
                script = self.script(24, 24 if values[1] < 0x30 else 40, 24 if len(values) == 3 else None)
                self.assertEqual(self.found(script, values), [])

    def test_too_small(self):
        self.assertEqual(self.found(self.script(24, 24), (0x21, 0x0), BROKEN),
                         [(hex(B - 8), A, True, True)])
        self.assertEqual(self.found(self.script(24, 24), (0x21, 0x0), BROKEN | BUSY), [])

    def test_a_release_that_the_trace_lacks(self):
        """A smaller block lies there, and all is in order behind it."""
        self.assertEqual(self.found(self.script(40, None, 24), (0x21, 0x21, 0x21)), [])

    def test_claims_the_memory_of_another(self):
        self.assertEqual(self.found(self.script(24, 24, 24), (0x21, 0x41)),
                         [(hex(B - 8), A, True, True)])
        self.assertEqual(self.found(self.script(None, 24, 24), (0x21, 0x41)),
                         [(hex(B - 8), None, False, True)])

    def test_a_block_of_another_allocator_within(self):
        """It has its memory from a block of this one."""
        script = self.script(100)
        script.alloc(B, 24)
        self.assertEqual(self.found(script, (0x71,)), [])

    def test_free_memory(self):
        for flags, adjacent in ((BROKEN, True), (BROKEN | DERIVED, False)):
            with self.subTest(flags):
                self.assertEqual(self.found(self.script(24), (0x21, 0x4141414141414141), flags),
                                 [(hex(B - 8), A, adjacent, adjacent)])
        self.assertEqual(self.found(self.script(24), (0x21, 0x21, 0x0), BROKEN),
                         [(hex(C - 8), A, False, False)])
        text = self.run_ok("errors", self.trace).text
        self.assertIn("  uncertain: memory between the two may be damaged, or ", text)

    def test_a_thread_in_a_call(self):
        """Nothing is said of headers that it may be changing, unless the process died in a call."""
        for headers, dies_in_call in (((0x21, 0x0), True), ((0x21, 0x41), False),
                                      ((0x21, 0x41), True)):
            script = self.script(24, 24, 24)
            self.assertEqual(self.found(script, headers, BROKEN | BUSY), [])
            script = self.script(24, 24, 24)
            if dies_in_call:
                script.alloc(0, 64, end="never", result=0)
            script.snapshot(headers=(BEGIN, BROKEN | BUSY, headers), reason=AT_SIGNAL, flags=STOPPED)
            script.add("fatal", signal=SIGABRT, code=BY_RAISE, position="9:0", snapshot=1)
            path = self.write(script.close(reason=SIGNALED, code=SIGABRT),
                              f"died{headers[1]}{dies_in_call}.ttd")
            self.assertEqual([(finding["kind"], finding["certain"])
                              for finding in self.json_of("errors", path)["findings"]],
                             dies_in_call * [("heap-damage", False), ("died-in-call", True)])
        text = self.run_ok("errors", path).text
        self.assertIn("  uncertain: another thread may have been changing it, or ", text)

    def test_threads_that_ran(self):
        self.assertEqual(self.found(self.script(24, 24), (0x21, 0x0), BROKEN, state=0),
                         [(hex(B - 8), A, True, False)])

    def test_without_a_block_that_is_right(self):
        """Headers that lead nowhere, in memory that may be another's."""
        self.assertEqual(self.found(self.script(), (0x21, 0x0), BROKEN), [])

    def test_a_snapshot_that_was_cut_short(self):
        script = self.script(24, 24)
        script.add("block_headers", snapshot=1, begin=BEGIN, flags=BROKEN, headers="33,0")
        path = self.write(script.close(), "cut.ttd")
        self.assertEqual(self.json_of("errors", path)["findings"], [])

    def test_the_newest_snapshot(self):
        script = self.script(24, 24)
        script.snapshot(headers=(BEGIN, BROKEN, (0x21, 0x0)), flags=STOPPED)
        self.assertEqual(self.found(script, (0x21, 0x21)), [])

    def test_many_headers(self):
        """More than a record has room for, and free memory of a terabyte among them."""
        script = self.script(24)
        values = [0x21] * 3000 + [1 << 40 | 1] + [0x21] * 1000 + [0x0]
        self.assertEqual([certain for *_, certain in self.found(script, values, BROKEN)], [False])


if __name__ == "__main__":
    unittest.main()
