# SPDX-License-Identifier: MIT
"""ttdanalyze moves"""

import support
from support import Script, TestCase


class Moves(TestCase):
    def test_kinds_of_calls(self):
        script = Script().basics()
        script.realloc(0, 0x1000, 100)                    # from NULL
        script.realloc(0x1000, 0x2000, 300)               # moved, copies 100
        script.realloc(0x2000, 0x2000, 400)               # in place
        script.realloc(0x2000, 0x3000, 50)                # moved, copies 50
        script.realloc(0x3000, 0, 10 ** 9, result=0)      # failed
        script.realloc(0x3000, 0, 0)                      # to zero
        script.alloc(0x4000, 8)
        script.realloc(0x4000, 0x5000, 16, stack=3)       # moved, copies 8
        script.realloc(0x9000, 0xa000, 70, stack=3)       # moved, of a block that is not known
        script.realloc(0xa000, 0, 5, stack=3, end="never")
        path = self.write(script.close())
        found = self.json_of("moves", path)
        expected = {"reallocs": 9, "moved": 4, "in_place": 1, "from_null": 1, "to_zero": 1,
                    "failed": 1, "unfinished": 1, "unknown_old": 1, "remapped": 0,
                    "unknown_moves": 4, "bytes_copied": 0, "bytes_copied_at_most": 158,
                    "total_groups": 2, "certain": True, "reasons": []}
        self.assertEqual({k: found[k] for k in expected}, expected)
        self.assertEqual([(g["stack_id"], g["reallocs"], g["moved"], g["in_place"],
                           g["bytes_copied_at_most"], g["smallest_size"], g["largest_size"])
                          for g in found["groups"]],
                         [(2, 6, 2, 1, 150, 50, 400), (3, 3, 2, 0, 8, 8, 16)])
        text = self.run_ok("moves", path).text
        self.assertIn("All: 9 reallocations: 4 moved, 1 in place, 1 from NULL, 1 to zero, 1 failed, "
                      "1 never returned, 1 of unknown blocks\n     at most 158 bytes copied\n", text)
        self.assertIn("at most 150 bytes copied\n    by 6 reallocations: 2 moved, 1 in place", text)
        self.assertIn("sizes from 50 to 400", text)
        rows = self.run_ok("moves", "-f", "csv", path).csv
        self.assertEqual([(r["reallocs"], r["bytes_copied_at_most"], r["stack"]) for r in rows],
                         [("6", "150", "g(int);f::run();main"), ("3", "8", "libwork.so+0x300;main")])

    def grow(self, script, base, sizes, stack, moving=True):
        """A block that takes each of the sizes in turn."""
        address = base
        script.alloc(address, sizes[0], stack=1)
        for size in sizes[1:]:
            target = address + 0x100000 if moving else address
            script.realloc(address, target, size, stack=stack)
            address = target
        return address

    def test_growth(self):
        script = Script().basics()
        self.grow(script, 0x10000000, [100 * i for i in range(1, 12)], 1)
        self.grow(script, 0x20000000, [16 * 2 ** i for i in range(10)], 2)
        self.grow(script, 0x30000000, [1000, 500, 400, 10], 3)
        self.grow(script, 0x40000000, [10, 15, 900, 901, 5000], 4)
        path = self.write(script.close())
        found = self.json_of("moves", path)
        groups = {g["stack_id"]: g for g in found["groups"]}
        self.assertEqual({k: g["growth"] for k, g in groups.items()},
                         {1: "linear", 2: "geometric", 3: "shrinking", 4: "irregular"})
        self.assertEqual((groups[1]["growth_bytes"], groups[1]["growth_factor"]), (100, None))
        self.assertEqual((groups[2]["growth_bytes"], groups[2]["growth_factor"]), (None, 2))
        self.assertEqual((groups[3]["grown"], groups[3]["shrunk"]), (0, 3))
        text = self.run_ok("moves", path).text
        self.assertIn("growth: linear, by 100 bytes each time", text)
        self.assertIn("growth: geometric, by a factor of 2.00 each time", text)

    def test_what_was_copied(self):
        """Pages keep the offset in them, so that addresses tell of most blocks; of the others the
        flags do, which other functions than the C library's may have for anything."""
        cases = [(0x30, 0, (0, 0, 100, 100)), (0x1000, 0, (0, 1, 0, 100)),
                 (0x1000, 1, (0, 0, 100, 100)), (0x1000, 2, (1, 0, 0, 0)),
                 (0x1000, 3, (0, 1, 0, 100)), (0x30, 2, (0, 0, 100, 100))]
        members = ("remapped", "unknown_moves", "bytes_copied", "bytes_copied_at_most")
        for distance, flags, expected in cases:
            with self.subTest(distance=distance, flags=flags):
                script = Script().basics()
                script.alloc(0x10010, 100)
                script.realloc(0x10010, 0x10010 + distance, 200, flags=flags)
                path = self.write(script.close(), f"{distance}-{flags}")
                found = self.json_of("moves", path)
                for of in (found, found["groups"][0], found["chains"][0]):
                    self.assertEqual(tuple(of[member] for member in members), expected)
                row = self.run_ok("moves", "-f", "csv", path).csv[0]
                self.assertEqual(tuple(int(row[member]) for member in members), expected)
        script = Script().basics()
        script.alloc(0x10010, 100, heap=2)
        script.event("ReAlloc", base=0x10010, address=0x20010, size=200, stack=2, api=58, flags=2)
        found = self.json_of("moves", self.write(script.close(), "other"))
        self.assertEqual((found["remapped"], found["unknown_moves"]), (0, 1))

    def test_remapped_text(self):
        script = Script().basics()
        script.alloc(0x10010, 200000)
        script.realloc(0x10010, 0x80010, 300000, flags=2)
        script.realloc(0x80010, 0x90020, 300001)
        text = self.run_ok("moves", self.write(script.close())).text
        self.assertIn("All: 2 reallocations: 2 moved (1 by mapping, nothing copied), 0 in place\n"
                      "     300 kB (300,000 bytes) copied, 199,999 of them avoidable by doubling\n", text)

    def test_order(self):
        """A buffer that grows by a few bytes each time comes before one that copies more, but
        doubles; what grows in place copies nothing that it could spare."""
        script = Script().basics()
        self.grow(script, 0x10000000, [2 ** i for i in range(4, 21)], 2)
        self.grow(script, 0x30000010, range(100, 3000, 30), 3)
        self.grow(script, 0x50000000, [100, 120, 140, 160], 4, moving=False)
        path = self.write(script.close())
        found = self.json_of("moves", path)
        copied = sum(range(100, 2970, 30))
        self.assertEqual([(g["stack_id"], g["bytes_copied_at_most"], g["bytes_avoidable"])
                          for g in found["groups"]],
                         [(3, copied, copied - 2880), (2, 2 ** 20 - 16, 0), (4, 0, 0)])
        self.assertEqual([c["stack_id"] for c in found["chains"]], [3, 2, 4])
        self.assertEqual(found["bytes_avoidable"], copied - 2880)
        self.assertIn("\nBy stack, those first where doubling would avoid most\n\n",
                      self.run_ok("moves", path).text)

    def test_chains(self):
        script = Script().basics()
        end = self.grow(script, 0x10000000, [100, 200, 300], 2)
        script.free(end)
        self.grow(script, 0x20000000, [1000, 2000], 3)
        self.grow(script, 0x30000000, [5, 6, 7, 8], 2, moving=False)
        # An address that is used again begins another chain.
        self.grow(script, 0x10000000, [1, 2], 2)
        path = self.write(script.close())
        chains = self.json_of("moves", path)["chains"]
        self.assertEqual([(c["start_size"], c["final_size"], c["reallocs"], c["moved"],
                           c["bytes_copied_at_most"], c["bytes_avoidable"], c["stack_id"]) for c in chains],
                         [(100, 300, 2, 2, 300, 100, 2), (1000, 2000, 1, 1, 1000, 0, 3),
                          (1, 2, 1, 1, 1, 0, 2), (5, 8, 3, 0, 0, 0, 2)])
        self.assertEqual((chains[0]["first_position"], chains[0]["last_position"],
                          chains[0]["address"]), ("0:2", "1:2", "0x10200000"))
        chains = self.json_of("moves", path, "--chains", "2")["chains"]
        self.assertEqual([c["start_size"] for c in chains], [100, 1000])
        self.assertEqual(self.json_of("moves", path, "--chains", "0")["chains"], [])
        self.assertIn("1,000 to 2,000 bytes: 1 reallocation, 1 move,\n      at most 1,000 bytes copied\n",
                      self.run_ok("moves", path).text)

    def test_chain_ends_with_its_heap(self):
        script = Script().basics()
        script.alloc(0x1000, 10, heap=2)
        script.realloc(0x1000, 0x2000, 20, heap=2)
        script.event("Destroy", heap=2)
        script.alloc(0x2000, 1)
        script.realloc(0x2000, 0x3000, 2)
        chains = self.json_of("moves", self.write(script.close()))["chains"]
        self.assertEqual([(c["start_size"], c["final_size"]) for c in chains], [(10, 20), (1, 2)])

    def test_limit(self):
        script = Script().basics()
        self.grow(script, 0x10000000, [10, 20], 2)
        self.grow(script, 0x20000000, [100, 200], 3)
        path = self.write(script.close())
        found = self.json_of("moves", path, "--limit", "1")
        self.assertEqual([g["stack_id"] for g in found["groups"]], [3])
        self.assertEqual((found["total_groups"], found["bytes_copied_at_most"]), (2, 110))

    def test_uncertain(self):
        script = Script().basics()
        script.add("loss", reason=2, count=1, last_good="0:0", first_good="1:0")
        found = self.json_of("moves", self.write(script.abandon()))
        self.assertEqual((found["certain"], len(found["reasons"])), (False, 2))


if __name__ == "__main__":
    support.main()
