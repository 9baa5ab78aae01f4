# SPDX-License-Identifier: MIT
"""ttdanalyze fragmentation"""

import support
from support import Script, TestCase


class Fragmentation(TestCase):
    def setUp(self):
        super().setUp()
        script = Script().basics()
        for address, size in ((0x1000, 16), (0x1010, 16), (0x1040, 0), (0x1100, 0x100),
                              (0x900000, 8)):
            script.alloc(address, size)
        self.trace = self.write(script.close())

    def test_regions(self):
        found = self.json_of("fragmentation", self.trace)
        self.assertEqual((found["blocks"], found["used_bytes"], found["gaps"], found["gap_bytes"],
                          found["largest_gap"], found["total_regions"]),
                         (5, 32 + 1 + 0x100 + 8, 2, 0x20 + 0xbf, 0xbf, 2))
        self.assertEqual([(r["begin"], r["last"], r["blocks"], r["largest_gap"])
                          for r in found["regions"]],
                         [("0x1000", "0x11ff", 4, 0xbf), ("0x900000", "0x900007", 1, 0)])
        text = self.run_ok("fragmentation", self.trace).text
        self.assertIn("  0x1000 to 0x11ff: 289 bytes in 4 blocks; 223 bytes in 2 gaps, the "
                      "largest of 191\n", text)
        rows = self.run_ok("fragmentation", "-f", "csv", "--gap", "191", self.trace).csv
        self.assertEqual([r["begin"] for r in rows], ["0x1000", "0x1100", "0x900000"])
        rows = self.run_ok("fragmentation", "-f", "csv", "--gap", "192", self.trace).csv
        self.assertEqual(len(rows), 2)

    def test_at(self):
        found = self.json_of("fragmentation", self.trace, "--at", "#1")
        self.assertEqual((found["blocks"], found["gaps"], found["position"]), (2, 0, "1:0"))
        self.assertEqual(self.json_of("fragmentation", self.trace, "--at", "start")["regions"], [])

    def test_overlapping_blocks(self):
        script = Script().basics()
        for address, size in ((0x1000, 0x100), (0x1080, 0x100), (0x1090, 1), (0x1200, 0x10)):
            script.alloc(address, size)
        found = self.json_of("fragmentation", self.write(script.close(), "overlapping"))
        self.assertEqual((found["used_bytes"], found["gaps"], found["gap_bytes"]),
                         (0x190, 1, 0x80))

    def test_limit(self):
        found = self.json_of("fragmentation", self.trace, "--limit", "1")
        self.assertEqual((len(found["regions"]), found["total_regions"]), (1, 2))


if __name__ == "__main__":
    support.main()
