# SPDX-License-Identifier: MIT
"""ttdanalyze fragmentation"""

import collections
import os
import random

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
        self.assertIn("\nOf the gaps 0 bytes are overhead, under 32 bytes each; 223 bytes mostly "
                      "kept free\n", text)
        rows = self.run_ok("fragmentation", "-f", "csv", "--gap", "191", self.trace).csv
        self.assertEqual([r["begin"] for r in rows], ["0x1000", "0x1100", "0x900000"])
        rows = self.run_ok("fragmentation", "-f", "csv", "--gap", "192", self.trace).csv
        self.assertEqual(len(rows), 2)

    def test_overhead(self):
        script = Script().basics()
        for address in (0x1000, 0x1018, 0x1047, 0x1077):  # gaps of 8, 31 and 32 bytes
            script.alloc(address, 16)
        found = self.json_of("fragmentation", self.write(script.close(), "overhead"))
        self.assertEqual((found["gap_bytes"], found["overhead_bytes"]), (71, 39))
        self.assertEqual([region["overhead_bytes"] for region in found["regions"]], [39])

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

    def keepers(self, blocks, *options):
        script = Script().basics()
        for address, size, stack in blocks:
            script.alloc(address, size, stack=stack)
        path = self.write(script.close(), f"sparse{len(os.listdir(self.folder))}")
        return self.json_of("fragmentation", path, *options), path

    def test_sparse_pages(self):
        """Two blocks share a page, one lies in two pages, a page is a quarter full, one is full."""
        found, path = self.keepers([(0x1000, 16, 2), (0x1100, 32, 3), (0x2ff0, 32, 2),
                                    (0x5000, 1024, 3), (0x6000, 4096, 3), (0x8000, 1023, 1)])
        self.assertEqual((found["pages"], found["sparse_pages"], found["kept_bytes"]),
                         (6, 4, (4096 - 48) + 2 * (4096 - 16) + (4096 - 1023)))
        self.assertEqual([(k["stack_id"], k["blocks"], k["bytes"], k["kept_bytes"])
                          for k in found["keepers"]],
                         [(2, 3, 48, 2024 + 2 * 4080), (1, 1, 1023, 3073), (3, 1, 32, 2024)])
        text = self.run_ok("fragmentation", path).text
        self.assertIn("4 sparse pages of 6, with less than a quarter in blocks: 15.3 kB kept by "
                      "1.10 kB\n", text)
        self.assertIn("10,184 bytes kept by 3 blocks with 48 bytes in all\n    #0  g(int) (g.h:5)", text)

    def test_sparse_model(self):
        """Each byte by itself, with blocks that overlap and that span pages."""
        draw = random.Random(3)
        for _ in range(30):
            blocks = sorted({draw.randrange(0x1000, 0x20000) & ~7:
                             (draw.choice((0, 8, 100, 1000, 5000, 13000)), draw.randrange(1, 5))
                             for _ in range(draw.randrange(1, 40))}.items())
            blocks = [(address, size, stack) for address, (size, stack) in blocks]
            covered = {byte for address, size, _ in blocks for byte in range(address, address + size)}
            touched = {page for address, size, _ in blocks
                       for page in range(address >> 12, ((address + max(size, 1) - 1) >> 12) + 1)}
            used = collections.Counter(byte >> 12 for byte in covered)
            found, _ = self.keepers(blocks)
            sparse = [page for page in touched if used[page] < 1024]
            self.assertEqual((found["pages"], found["sparse_pages"], found["kept_bytes"]),
                             (len(touched), len(sparse), sum(4096 - used[p] for p in sparse)))
            self.assertEqual(found["kept_bytes"], sum(k["kept_bytes"] for k in found["keepers"]))

    def test_limit(self):
        found = self.json_of("fragmentation", self.trace, "--limit", "1")
        self.assertEqual((len(found["regions"]), found["total_regions"]), (1, 2))


if __name__ == "__main__":
    support.main()
