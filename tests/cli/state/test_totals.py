# SPDX-License-Identifier: MIT
"""Totals come first, and numbers are written as people write them"""

import re
import unittest

from support import Script, TestCase


class Totals(TestCase):
    def setUp(self):
        super().setUp()
        script = Script().basics()
        script.alloc(0x1000, 5000, stack=2, wall=0)
        script.alloc(0x2000, 7, stack=3, wall=1_000_000_000)
        script.realloc(0x2000, 0x3000, 9, stack=3, wall=2_000_000_000)
        script.free(0x9000, stack=4, wall=4_000_000_000)
        self.trace = self.write(script.close())

    def test_large_totals_are_rounded_first(self):
        script = Script().basics()
        script.alloc(0x100000, 15_612_345, stack=2)
        script.alloc(0x2000000, 99_999, stack=3)
        self.trace = self.write(script.close(), "large")
        size = "15.7 MB (15,712,344 bytes)"
        for arguments, line in (
                (("leaks",), f"Never released: 2 blocks, {size}, from 2 stacks"),
                (("leaks", "--tree", "top-down"), f"All: {size} in 2 blocks"),
                (("state",), f"Live at 1:0: 2 blocks, {size}, from 2 stacks"),
                (("peak",), f"Peak at 1:0: {size} in 2 blocks, from 2 stacks"),
                (("diff", self.trace), f"Old: {size} in 2 blocks at 1:0"),
                (("hot",), f"All: {size} by 2 calls, "),
                (("fragmentation",), f"2 regions at 1:0: {size} in 2 blocks; ")):
            self.assertTrue(self.first_line(*arguments).startswith(line),
                            (arguments, self.first_line(*arguments)))
        text = self.run_ok("state", "--blocks", self.trace).text
        self.assertRegex(text, r"\n  64 to 128 KiB +1 block +99,999 bytes [(]1 %[)]\n")
        self.assertIn("\n  0x2000000         99,999 bytes by libwork.so+0x300, allocated at 1:0 in "
                      "thread 1, stack #3\n", text)
        self.assertIn("\n  0x100000          15,612,345 bytes by g(int) (g.h:5) in demo (inlined), "
                      "allocated at 0:2 in thread 1, stack #2\n", text)

    def test_ranges_of_sizes(self):
        """Each fits its column."""
        script = Script().basics()
        for power in (0, 1, 9, 10, 19, 29, 39, 49, 59):
            script.alloc(1 << 60 | power << 20, 1 << power, stack=2)
        text = self.run_ok("state", self.write(script.close(), "ranges")).text
        found = re.findall(r"^  (\S.*?) +1 block  ", text, re.MULTILINE)
        self.assertEqual(sorted(found), sorted((
            "1 byte", "2 to 3 bytes", "512 to 1,023 bytes", "1 to 2 KiB", "512 KiB to 1 MiB",
            "512 MiB to 1 GiB", "512 GiB to 1 TiB", "512 TiB to 1 PiB", "512 PiB to 1 EiB")))
        ends = {line.index("1 block") for line in text.splitlines() if "  1 block " in line}
        self.assertEqual(ends, {30})

    def first_line(self, *arguments):
        return self.run_ok(*arguments, self.trace).text.split("\n", 1)[0]

    def test_every_command_begins_with_its_totals(self):
        for arguments, line in (
                (("leaks",), "Never released: 2 blocks, 5,009 bytes, from 2 stacks"),
                (("leaks", "--by", "module"), "Never released: 2 blocks, 5,009 bytes, from 2 modules"),
                (("leaks", "--tree", "bottom-up"), "All: 5,009 bytes in 2 blocks"),
                (("state",), "Live at 1:3: 2 blocks, 5,009 bytes, from 2 stacks"),
                (("peak",), "Peak at 1:2: 5,009 bytes in 2 blocks, from 2 stacks"),
                (("diff",), "Change: +5,009 bytes, +2 blocks"),
                (("diff", self.trace), "Old: 5,009 bytes in 2 blocks at 1:3"),
                (("moves",), "All: 1 reallocation: 1 moved, 0 in place"),
                (("temporary",), "All: 0 of 3 allocations were temporary, 0 bytes"),
                (("lifetimes",), "3 blocks; 2 never released, 0 released with their heap"),
                (("fragmentation",), "1 region at 1:3: 5,009 bytes in 2 blocks; 3,192 bytes in 1 gap, "
                                      "the largest of 3,192"),
                (("history", "--address", "0x1000"), "1 block covered 0x1000"),
                (("errors",), "1 finding in 1 call")):
            self.assertEqual(self.first_line(*arguments), line, arguments)

    def test_what_is_uncertain_stands_beside_the_totals(self):
        script = Script().basics()
        script.alloc(0x1000, 5000)
        path = self.write(script.abandon(), "open")
        for command in ("leaks", "state", "peak", "hot", "moves", "errors"):
            lines = self.run_ok(command, path).text.split("\n\n", 1)[0].rstrip().split("\n")
            self.assertIn("Uncertain: the trace was not closed cleanly", lines[-1], command)

    def test_byte_seconds_are_whole_numbers(self):
        # 5,000 bytes for four seconds, 7 for one and 9 for two.
        self.assertEqual(self.first_line("hot"),
                         "All: 5,016 bytes by 3 calls, 20,025 byte-seconds, 2 never released")


if __name__ == "__main__":
    unittest.main()
