# SPDX-License-Identifier: MIT
"""ttdanalyze diff and peak"""

import random

import oracle
import support
from support import Script, TestCase, run


class Peak(TestCase):
    def test_peak(self):
        script = Script().basics()
        script.alloc(0x1000, 100)
        script.alloc(0x2000, 50, stack=3)                   # 0:3 to 1:0
        script.free(0x1000)
        script.alloc(0x3000, 100)                           # the same again: the first counts
        path = self.write(script.close())
        found = self.json_of("peak", path)
        self.assertEqual((found["position"], found["live_bytes"], found["live_blocks"],
                          found["total_groups"], found["certain"]), ("1:0", 150, 2, 2, True))
        self.assertEqual([(g["stack_id"], g["bytes"]) for g in found["groups"]],
                         [(2, 100), (3, 50)])
        text = self.run_ok("peak", path).text
        self.assertIn("Peak at 1:0: 150 bytes in 2 blocks, from 2 stacks\n", text)
        self.assertIn("100 bytes in 1 block\n    #0  g(int)", text)
        self.assertEqual(len(self.run_ok("peak", "-f", "csv", "--limit", "1", path).csv), 1)

    def test_states_count_not_steps_between(self):
        """Of one position, what is released and acquired at it belong together."""
        script = Script().basics()
        script.alloc(0x1000, 100, start="0:0", end="1:0")
        script.alloc(0x2000, 100, start="0:0", end="2:0")
        script.free(0x1000, start="2:0", end="2:1")
        script.alloc(0x3000, 101, start="2:0", end="2:0", thread=2)
        found = self.json_of("peak", self.write(script.close()))
        self.assertEqual((found["position"], found["live_bytes"]), ("2:0", 201))

    def test_nothing(self):
        path = self.write(Script().basics().close())
        found = self.json_of("peak", path)
        self.assertEqual((found["position"], found["live_bytes"], found["groups"]), ("0:0", 0, []))
        self.assertIn("Peak at 0:0: 0 bytes in 0 blocks", self.run_ok("peak", path).text)

    def test_nonsense_sizes(self):
        script = Script().basics()
        for address in (0x1000, 0x2000, 0x3000):
            script.alloc(address, (1 << 64) - 1)
        script.free(0x2000)
        script.free(0x1000)
        found = self.json_of("peak", self.write(script.close()))
        self.assertEqual((found["position"], found["live_blocks"]), ("1:2", 3))


def quadrants(blocks, begin, end):
    found = {"aifi": [], "aifo": [], "aofi": [], "aofo": []}
    for block in blocks:
        if block.allocated >= end or block.released < begin:
            continue
        inside = begin <= block.allocated
        freed = block.released < end
        found[("ai" if inside else "ao") + ("fi" if freed else "fo")].append(block)
    return found


class Diff(TestCase):
    def trace(self):
        script = Script().basics()
        script.alloc(0x1000, 1, start="1:0", end="1:1")     # before, kept
        script.alloc(0x2000, 2, start="1:0", end="1:2")     # before, freed inside
        script.alloc(0x3000, 4, start="1:0", end="1:3")     # before, freed before
        script.free(0x3000, start="2:0", end="2:1")
        script.alloc(0x4000, 8, start="2:2", end="3:0")     # inside, freed inside
        script.free(0x4000, start="3:1", end="3:1", stack=3)
        script.free(0x2000, start="3:2", end="3:2")
        script.alloc(0x5000, 16, start="3:3", end="3:3")    # inside, freed at the end: outside
        script.free(0x5000, start="4:0", end="4:0")
        script.alloc(0x6000, 32, start="4:0", end="4:0")    # after
        return self.write(script.close())

    def test_quadrants(self):
        path = self.trace()
        found = self.json_of("diff", path, "--from", "3:0", "--to", "4:0")
        self.assertEqual({q: (found[q]["blocks"], found[q]["bytes"])
                          for q in ("aifi", "aifo", "aofi", "aofo")},
                         {"aifi": (1, 8), "aifo": (1, 16), "aofi": (1, 2), "aofo": (1, 1)})
        self.assertEqual(found["aifi"]["groups"][0]["stack_id"], 2)
        text = self.run_ok("diff", "--from", "3:0", "--to", "4:0", path).text
        self.assertIn("AIFO, allocated inside the range, not freed in it: 1 block, 16 bytes\n",
                      text)
        self.assertEqual(text.splitlines()[:2], ["Change: +14 bytes, +0 blocks", "From 3:0 to 4:0"])
        self.assertEqual(self.run_ok("diff", path).text.splitlines()[1], "From the start to the end")
        rows = self.run_ok("diff", "-f", "csv", "--from", "3:0", "--to", "4:0", path).csv
        self.assertEqual([(r["quadrant"], r["bytes"]) for r in rows],
                         [("aifi", "8"), ("aifo", "16"), ("aofi", "2"), ("aofo", "1")])

    def test_whole_trace(self):
        found = self.json_of("diff", self.trace())
        self.assertEqual([found[q]["bytes"] for q in ("aifi", "aifo", "aofi", "aofo")],
                         [30, 33, 0, 0])

    def test_heaps_destroyed(self):
        script = Script().basics()
        for begin in (1, 3):
            for i in range(4):
                script.alloc(0x1000 * (begin + i), 1 << i, heap=2, start=f"{begin}:0",
                             end=f"{begin}:0")
            script.event("Destroy", heap=2, start=f"{begin + 1}:0", end=f"{begin + 1}:0")
        path = self.write(script.close())
        for begin, expected in (("1:1", [15, 0, 15, 0]), ("2:1", [15, 0, 0, 0]),
                                ("3:1", [0, 0, 15, 0]), ("4:1", [0, 0, 0, 0])):
            found = self.json_of("diff", path, "--from", begin)
            self.assertEqual([found[q]["bytes"] for q in ("aifi", "aifo", "aofi", "aofo")],
                             expected, begin)

    def test_large_heap_destroyed(self):
        """So large that its blocks are swept up while it is destroyed."""
        script = Script().basics()
        for i in range(5000):
            script.alloc(0x1000 + 16 * i, 1, heap=2, start="1:0", end="1:0")
        script.event("Destroy", heap=2, start="2:0", end="2:0")
        path = self.write(script.close())
        for begin, expected in (("1:1", 5000), ("2:1", 0)):
            self.assertEqual(self.json_of("diff", path, "--from", begin)["aofi"]["blocks"],
                             expected)

    def test_usage(self):
        path = self.trace()
        self.assertEqual(run("diff", "--from", "3:0", "--to", "3:0", path).status, support.USAGE)

    def test_uncertain(self):
        script = Script().basics()
        script.alloc(0x1000, 100, start="1:0", end="1:1")
        script.add("loss", reason=1, count=3, last_good="5:0", first_good="6:0")
        path = self.write(script.close())
        self.assertIs(self.json_of("diff", path, "--to", "3:0")["certain"], True)
        self.assertIs(self.json_of("diff", path)["certain"], False)
        self.assertIs(self.json_of("peak", path)["certain"], False)


class Oracle(TestCase):
    """Random traces against a model."""

    def check_peak(self, path, rows, blocks):
        best = (0, (0, 0), 0)
        for at in oracle.positions(rows):
            live = [b for b in blocks if b.live(at)]
            size = sum(b.size for b in live)
            if size > best[0]:
                best = (size, at, len(live))
        found = self.json_of("peak", path, "--limit", "0")
        self.assertEqual((found["live_bytes"], found["position"], found["live_blocks"]),
                         (best[0], oracle.spell(best[1]), best[2]))
        self.assertEqual({g["stack_id"]: (g["blocks"], g["bytes"]) for g in found["groups"]},
                         oracle.sums([b for b in blocks if b.live(best[1])],
                                     lambda b: b.row["stack"]))

    def check_diff(self, path, blocks, begin, end):
        found = self.json_of("diff", path, "--limit", "0", "--from", oracle.spell(begin), "--to",
                             oracle.spell(end))
        for name, mine in quadrants(blocks, begin, end).items():
            self.assertEqual((found[name]["blocks"], found[name]["bytes"]),
                             (len(mine), sum(b.size for b in mine)), name)
            self.assertEqual({g["stack_id"]: (g["blocks"], g["bytes"])
                              for g in found[name]["groups"]},
                             oracle.sums(mine, lambda b: b.row["stack"]), name)

    def test_random(self):
        for seed in range(100, 115):
            chance = random.Random(seed)
            path = self.write(oracle.random_script(chance, 40), f"trace{seed}")
            rows = self.run_ok("events", "-f", "json", path).json_lines
            blocks = oracle.owners(rows)
            with self.subTest(seed=seed):
                self.check_peak(path, rows, blocks)
                for _ in range(4):
                    begin, end = sorted(chance.sample(oracle.positions(rows), 2))
                    self.check_diff(path, blocks, begin, end)


if __name__ == "__main__":
    support.main()
