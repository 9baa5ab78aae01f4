# SPDX-License-Identifier: MIT
"""ttdanalyze hot, temporary and lifetimes"""

import random

import oracle
import support
from support import Script, TestCase, run


def small():
    script = Script().basics()
    script.alloc(0x1000, 100, wall=0)
    script.free(0x1000, wall=10)                        # at once
    script.alloc(0x1000, 100, wall=1000)
    script.alloc(0x2000, 7, stack=3, wall=1000)
    script.free(0x1000, wall=2_000_001_000)             # one call between, two seconds
    script.alloc(0x3000, 1, stack=1, wall=2_000_001_000)
    script.free(0x3000, thread=2, wall=2_000_001_000)   # by another thread
    script.alloc(0x4000, 50, stack=4, wall=2_000_001_000)
    script.realloc(0x4000, 0x5000, 60, stack=4, wall=2_000_001_000)
    script.free(0x5000, wall=2_000_001_000)             # has been reallocated
    script.alloc(0x6000, 9, stack=4, heap=2, wall=2_000_001_000)
    script.event("Destroy", heap=2, wall=2_000_001_000)
    return script.close()


class Usage(TestCase):
    def setUp(self):
        super().setUp()
        self.trace = self.write(small())

    def test_hot(self):
        found = self.json_of("hot", self.trace)
        self.assertEqual((found["allocations"], found["bytes"], found["never_released"],
                          found["destroyed"], found["certain"]), (7, 327, 1, 1, True))
        self.assertEqual([(g["stack_id"], g["allocations"], g["bytes"])
                          for g in found["groups"]],
                         [(2, 2, 200), (4, 3, 119), (3, 1, 7), (1, 1, 1)])
        self.assertAlmostEqual(found["groups"][0]["byte_seconds"], 200, 3)
        self.assertAlmostEqual(found["groups"][2]["byte_seconds"], 14, 3)
        text = self.run_ok("hot", self.trace).text
        self.assertIn("119 bytes by 3 calls, 0 byte-seconds, 1 released with their heap\n", text)
        self.assertIn("All: 327 bytes by 7 calls, ", text)

    def test_order(self):
        for order, first in (("calls", 4), ("bytes", 2), ("lifetime", 2)):
            rows = self.run_ok("hot", "-f", "csv", "--sort", order, self.trace).csv
            self.assertEqual(rows[0]["stack_id"], str(first))
        self.assertEqual(run("hot", "--sort", "size", self.trace).status, support.USAGE)

    def test_temporary(self):
        found = self.json_of("temporary", self.trace, "--limit", "1")
        self.assertEqual((found["temporary"], found["temporary_bytes"]), (1, 100))
        self.assertEqual([(g["stack_id"], g["temporary"], g["allocations"])
                          for g in found["groups"]], [(2, 1, 2)])
        self.assertEqual(self.json_of("temporary", self.trace, "--steps", "1")["temporary"], 2)
        text = self.run_ok("temporary", self.trace).text
        self.assertIn("1 of 2 allocations (50 %) was temporary, 100 bytes\n    #0  g(int)", text)
        self.assertIn("All: 1 of 7 allocations (14 %) was temporary, 100 bytes\n", text)
        soon = self.json_of("temporary", self.trace, "--steps", "3")["temporary"]
        self.assertIn(f"\n{soon - 1} more ({100 * (soon - 1) / 7:.0f} %) with at most 3 calls of "
                      "their thread between (--steps 3)\n", text)
        self.assertNotIn("between", self.run_ok("temporary", "--steps", "3", self.trace).text)
        self.assertNotIn("libwork", text)

    def test_lifetimes(self):
        found = self.json_of("lifetimes", self.trace)
        self.assertEqual((found["total_blocks"], found["never_released"], found["destroyed"]),
                         (7, 1, 1))
        self.assertEqual([(h["shortest"], h["longest"], h["blocks"], h["bytes"])
                          for h in found["by_time"]],
                         [(0, 0, 3, 111), (8, 15, 1, 100), (1 << 30, (1 << 31) - 1, 1, 100)])
        self.assertEqual([(h["shortest"], h["blocks"]) for h in found["by_calls"]],
                         [(1, 4), (2, 1)])
        text = self.run_ok("lifetimes", self.trace, env={"LC_ALL": "C"}).text
        self.assertIn("  too short to measure   " + "#" * 20 + "  4 blocks (80 %), 211 bytes\n"
                      "  up to 2.15 s           " + "#" * 5 + " " * 17 + "1 block (20 %), 100 bytes\n",
                      text)
        self.assertIn("7 blocks; 1 never released, 1 released with their heap\n", text)
        rows = self.run_ok("lifetimes", "-f", "csv", self.trace).csv
        self.assertEqual([r["unit"] for r in rows], ["ns"] * 3 + ["calls"] * 2)

    def test_lifetimes_of_some(self):
        """The included and the excluded records are together all."""
        whole = self.json_of("lifetimes", self.trace)
        some = self.json_of("lifetimes", self.trace, "--include", "g(int)")
        others = self.json_of("lifetimes", self.trace, "--exclude", "g(int)")
        self.assertEqual((some["total_blocks"], some["never_released"]), (2, 0))
        self.assertEqual([(h["shortest"], h["blocks"], h["bytes"]) for h in some["by_time"]],
                         [(8, 1, 100), (1 << 30, 1, 100)])
        for name in ("total_blocks", "never_released", "destroyed"):
            self.assertEqual(some[name] + others[name], whole[name], name)
        for name in ("by_time", "by_calls"):
            sums = {}
            for part in (some, others):
                for entry in part[name]:
                    blocks, size = sums.get(entry["longest"], (0, 0))
                    sums[entry["longest"]] = (blocks + entry["blocks"], size + entry["bytes"])
            self.assertEqual(sums, {h["longest"]: (h["blocks"], h["bytes"])
                                    for h in whole[name]}, name)
        nothing = self.json_of("lifetimes", self.trace, "--include", "no such function")
        self.assertEqual((nothing["total_blocks"], nothing["by_time"]), (0, []))
        for arguments in (("--by", "thread"), ("--tree", "top-down"), ("-f", "folded")):
            self.assertEqual(run("lifetimes", *arguments, self.trace).status, support.USAGE)

    def test_time_does_not_go_back(self):
        script = Script().basics()
        script.alloc(0x1000, 100, wall=50)
        script.free(0x1000, wall=40)
        path = self.write(script.close(), "back")
        found = self.json_of("lifetimes", path)["by_time"]
        self.assertEqual([(h["longest"], h["blocks"]) for h in found], [(0, 1)])
        self.assertIn("by time\n  too short to measure   " + "#" * 20 + "  1 block (100 %), 100 bytes",
                      self.run_ok("lifetimes", path, env={"LC_ALL": "C"}).text)

    def test_times_that_no_clock_tells_apart(self):
        script = Script().basics()
        for number, end in enumerate((0, 900_000, 1_900_000, 2_500_000)):
            script.alloc(0x1000 * (number + 1), 100, wall=0)
        for number, end in enumerate((0, 900_000, 1_900_000, 2_500_000)):
            script.free(0x1000 * (number + 1), wall=end)
        text = self.run_ok("lifetimes", self.write(script.close(), "ticks"),
                           env={"LC_ALL": "C"}).text
        self.assertIn("by time\n  too short to measure   " + "#" * 20 + "  3 blocks (75 %), 300 bytes\n"
                      "  up to 4.19 ms          #######               1 block (25 %)", text)

    def test_uncertain(self):
        for command in ("hot", "temporary", "lifetimes"):
            path = self.write(Script().basics().abandon(), command)
            self.assertIs(self.json_of(command, path)["certain"], False)


class Oracle(TestCase):
    """Random traces against a model that goes through calls and effects in their order."""

    @staticmethod
    def model(rows, steps):
        order = oracle.effects(rows)
        for row in rows:
            ends = row["action"] in ("Alloc", "Create") and row["time_end"] is not None
            at = oracle.position(row["time_end" if ends else "time_start"])
            order.append((at, (1, row["number"], -1), row, "call"))
        now, calls, live, sites, lives, temporary = 0, {}, {}, {}, {}, 0

        def end(block, row, frees):
            nonlocal temporary
            start, number, began, size = block
            between = calls[row["thread"]] - number - 1
            moved = start["action"] == "ReAlloc" and start["previous_address"] != "0x0"
            if frees and start["thread"] == row["thread"] and between <= steps and not moved:
                temporary += 1
            bits = (now - began).bit_length()
            lives[bits] = lives.get(bits, 0) + 1
            sites[start["stack"]][2] += size * (now - began) / 1e9

        for _, _, row, what in sorted(order, key=lambda effect: effect[:2]):
            if what == "call":
                now = max(now, row["wall_time_ns"])
                calls[row["thread"]] = calls.get(row["thread"], 0) + 1
            elif what == "destroy":
                live = {k: b for k, b in live.items() if k[0] != row["heap_id"]}
            else:
                key = row["heap_id"], row["address" if what == "acquire" else "base_address"]
                if key in live:
                    end(live.pop(key), row, what == "release" and row["action"] == "Free")
                if what == "acquire":
                    site = sites.setdefault(row["stack"], [0, 0, 0.0])
                    site[0] += 1
                    site[1] += row["size"]
                    live[key] = (row, calls[row["thread"]], now, row["size"])
        for start, _, began, size in live.values():
            sites[start["stack"]][2] += size * (now - began) / 1e9
        return sites, temporary, lives, len(live)

    def test_random(self):
        for seed in range(200, 215):
            path = self.write(oracle.random_script(random.Random(seed), 40), f"trace{seed}")
            rows = self.run_ok("events", "-f", "json", path).json_lines
            sites, temporary, lives, live = self.model(rows, 2)
            found = self.json_of("temporary", path, "--limit", "0", "--steps", "2")
            self.assertEqual((found["temporary"], found["never_released"]), (temporary, live), seed)
            self.assertEqual({g["stack_id"]: (g["allocations"], g["bytes"])
                              for g in found["groups"]},
                             {stack: tuple(site[:2]) for stack, site in sites.items()}, seed)
            for group in found["groups"]:
                self.assertAlmostEqual(group["byte_seconds"], sites[group["stack_id"]][2], 5)
            found = self.json_of("lifetimes", path)["by_time"]
            self.assertEqual({h["longest"].bit_length(): h["blocks"] for h in found}, lives, seed)


if __name__ == "__main__":
    support.main()
