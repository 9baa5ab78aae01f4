# SPDX-License-Identifier: MIT
"""ttdanalyze timeline and fragmentation"""

import random

import oracle
import support
from support import Script, TestCase, run

UTF8 = {"LC_ALL": "C.UTF-8"}


class Timeline(TestCase):
    def setUp(self):
        super().setUp()
        script = Script().basics()
        script.alloc(0x1000, 100, wall=0, start="10:0", end="10:1")
        script.alloc(0x2000, 50, wall=30, start="11:0", end="11:1")
        script.free(0x1000, wall=30, start="11:2", end="11:3")
        script.free(0x2000, wall=90, start="18:0", end="18:1")
        self.trace = self.write(script.close())

    def points(self, *arguments):
        found = self.json_of("timeline", self.trace, *arguments)
        return found, [(p["first"], p["peak_bytes"], p["live_bytes"], p["live_blocks"],
                        p["allocations"], p["allocated_bytes"], p["releases"])
                       for p in found["points"]]

    def test_time(self):
        found, points = self.points("--points", "4")
        self.assertEqual((found["over"], found["width"], found["certain"]), ("time", 32, True))
        self.assertEqual(points, [(0, 150, 50, 1, 2, 150, 1), (32, 50, 50, 1, 0, 0, 0),
                                  (64, 50, 0, 0, 0, 0, 1)])

    def test_memory_of_the_process(self):
        self.assertNotIn("resident", self.run_ok("timeline", self.trace).text)
        script = Script().basics()
        script.alloc(0x1000, 5592, wall=0)
        script.memory(100_000_000, 300_000_000, 0, wall=10)
        script.memory(90_000_000, 310_000_000, 0, wall=11)
        script.alloc(0x2000, 8, wall=60)
        script.free(0x1000, wall=90)
        script.memory(206_000_000, 250_000_000, 0, wall=95)
        path = self.write(script.close(), "memory")
        for axis in "time", "position":
            found = self.json_of("timeline", path, "--points", "4", "--over", axis)["points"]
            memory = [(p["resident_bytes"], p["mapped_bytes"]) for p in found]
            self.assertEqual(memory, [(100_000_000, 310_000_000), (None, None),
                                      (206_000_000, 250_000_000)], axis)
            rows = self.run_ok("timeline", path, "--points", "4", "--over", axis, "-f", "csv").csv
            self.assertEqual([row["resident_bytes"] for row in rows],
                             ["100000000", "", "206000000"])
        text = self.run_ok("timeline", path, "--points", "4", env={"COLUMNS": "120"}).text
        self.assertIn("\n  206 MB resident at most, 310 MB mapped, by samples\n"
                      "  the heap had 5.60 kB at most: most is ", text)
        self.assertIn("  5,592 bytes, 100 MB resident, 310 MB mapped, 1 allocation, 0 releases\n", text)
        text = self.run_ok("timeline", path, "--points", "4", env={"COLUMNS": "60"}).text
        self.assertIn("  5,600 bytes, 206 MB resident\n", text)
        text = self.run_ok("timeline", path, "--points", "4", "--plot", "resident").text
        self.assertIn("  -, 5,600 bytes of heap\n", text)
        self.assertIn("  206 MB resident, 250 MB mapped, 5,600 bytes of heap\n", text)
        # Of a part of the heap it is not known how much of the memory it is not.
        text = self.run_ok("timeline", path, "--include", "main").text
        self.assertIn("206 MB resident at most", text)
        self.assertNotIn("the heap had", text)

    def test_position(self):
        found, points = self.points("--over", "position", "--points", "10")
        self.assertEqual((found["over"], found["width"]), ("position", 1))
        self.assertEqual(points, [(0, 100, 100, 1, 1, 100, 0), (1, 150, 150, 2, 1, 50, 0),
                                  (2, 150, 50, 1, 0, 0, 1), (3, 50, 0, 0, 0, 0, 1)])
        self.assertEqual([p["position"] for p in found["points"]], ["10:1", "11:1", "11:2", "18:0"])

    def test_a_single_thread_has_many_positions(self):
        script = Script().basics()
        for i in range(1000):
            script.alloc(0x1000 * (i + 1), 8, start=f"2:{2 * i:X}", end=f"2:{2 * i + 1:X}")
        found = self.json_of("timeline", self.write(script.close(), "single"), "--over", "position")
        self.assertEqual((found["width"], len(found["points"])), (50, 20))
        self.assertEqual([(p["first"], p["position"], p["allocations"]) for p in found["points"]],
                         [(50 * i, f"2:{100 * i + 1:X}", 50) for i in range(20)])

    def test_points_are_of_round_widths(self):
        for length, points, width in ((999, 10, 100), (1000, 10, 200), (4_999_999, 50, 100_000),
                                      (7_000_000_000, 50, 200_000_000)):
            script = Script().basics()
            script.alloc(0x1000, 8, wall=length // 3)
            script.alloc(0x2000, 8, wall=length)
            path = self.write(script.close(wall=length), f"round{length}")
            found = self.json_of("timeline", path, "--points", points)
            self.assertEqual(found["width"], width)
            self.assertLessEqual(len(found["points"]), points)
            self.assertEqual([p["first"] % width for p in found["points"]],
                             [0] * len(found["points"]))
        self.assertRegex(self.run_ok("timeline", path).text, r"\n  \+2\.2s  ")

    def test_plot(self):
        text = self.run_ok("timeline", "--points", "4", self.trace, env=UTF8).text
        self.assertIn("  +0.000000000s   " + "█" * 40 + "  150 bytes, 2 allocations, 1 release\n",
                      text)
        self.assertIn("\n  with the C/C++ runtime's own blocks, unlike peak\n", text)
        self.assertIn("  +0.000000032s   " + "█" * 13 + "▍" + " " * 28 +
                      "50 bytes, 0 allocations, 0 releases\n", text)
        text = self.run_ok("timeline", "--over", "position", self.trace, env=UTF8).text
        self.assertIn("  18:0            █", text)
        rows = self.run_ok("timeline", "-f", "csv", self.trace).csv
        self.assertEqual(rows[0]["peak_bytes"], "100")

    def test_rates(self):
        def rates(*arguments):
            return [(p["duration_ns"], p["allocations_per_second"], p["bytes_per_second"])
                    for p in self.json_of("timeline", self.trace, *arguments)["points"]]

        self.assertEqual(rates("--points", "4"),
                         [(32, 6.25e7, 4.6875e9), (32, 0, 0), (26, 0, 0)])
        found = rates("--over", "position", "--points", "10")
        self.assertEqual(found, [(30, 3.33333e7, 3.33333e9), (0, None, None), (60, 0, 0),
                                 (0, None, None)])
        rows = self.run_ok("timeline", "-f", "csv", "--over", "position", self.trace).csv
        self.assertEqual([(r["duration_ns"], r["bytes_per_second"]) for r in rows[1:3]],
                         [("0", ""), ("60", "0")])
        text = self.run_ok("timeline", "--points", "4", "--plot", "allocations", self.trace,
                           env=UTF8).text
        self.assertIn("Allocations per second, from each moment on\n", text)
        self.assertIn("█" * 40 + "  62,500,000 allocations/s, 2 allocations\n", text)
        self.assertIn("  +0.000000032s   " + " " * 42 + "0 allocations/s, 0 allocations\n", text)
        text = self.run_ok("timeline", "--over", "position", "--plot", "allocated", self.trace,
                           env=UTF8).text
        self.assertIn("  10:1            " + "█" * 40 +
                      "  3,333,333,333 bytes/s, 100 bytes in 1 allocation\n", text)
        self.assertIn("  11:1            " + " " * 42 + "? bytes/s, 50 bytes in 1 allocation\n", text)
        self.assertIn("  11:2            " + " " * 42 + "0 bytes/s, 0 bytes in 0 allocations\n", text)

    def test_the_last_call(self):
        """The last point lasts until it, although it has no effect."""
        script = Script().basics()
        script.alloc(0x1000, 8, wall=1000)
        script.alloc(0, 8, result=0, wall=5000)
        path = self.write(script.close(), "last.ttd")
        points = self.json_of("timeline", path, "--points", "2")["points"]
        self.assertEqual([p["duration_ns"] for p in points], [4000])

    def test_nothing(self):
        path = self.write(Script().basics().close(), "empty")
        self.assertEqual(self.json_of("timeline", path)["points"], [])
        self.assertIn("nothing was allocated", self.run_ok("timeline", path).text)

    def test_usage(self):
        for arguments in (("--points", "1"), ("--plot", "all"), ("--over", "calls")):
            self.assertEqual(run("timeline", *arguments, self.trace).status, support.USAGE)


class Plot(TestCase):
    """Where it is shown."""

    def setUp(self):
        super().setUp()
        script = Script().basics()
        for i in range(60):
            script.alloc(0x1000 * (i + 1), 123456 * i, wall=1000 * i)
        self.trace = self.write(script.close())

    def lines(self, columns, *arguments, **environment):
        status, seen = self.on_terminal("timeline", "--no-pager", *arguments, self.trace,
                                        columns=columns, **environment)
        self.assertEqual(status, 0)
        return seen.splitlines()

    def test_widths(self):
        for plot in ("live", "allocations", "allocated"):
            needed = 200 - max(line.count("█") for line in
                               self.lines(200, "--plot", plot, NO_COLOR="1", **UTF8)) + 8
            for columns in (20, 40, 60, 70, 100, needed - 1, needed, needed + 1, 150, 300):
                with self.subTest(columns=columns, plot=plot):
                    lines = self.lines(columns, "--plot", plot, NO_COLOR="1", **UTF8)[1:]
                    bars = {line.count("█") for line in lines}
                    self.assertGreaterEqual(max(bars), 8)
                    if columns >= 60:
                        self.assertLessEqual(max(map(len, lines)), columns)
                    if columns >= needed:
                        self.assertEqual(max(map(len, lines)), columns)
                    self.assertEqual(any(", " in line for line in lines if "█" in line),
                                     columns >= needed)

    def test_width_of_the_environment(self):
        lines = self.run_ok("timeline", self.trace, env={"COLUMNS": "60", **UTF8}).text
        self.assertLessEqual(max(map(len, lines.splitlines()[1:])), 60)
        for columns in ("", "wide", "-5", "0", "99999999999999999999"):
            text = self.run_ok("timeline", self.trace, env={"COLUMNS": columns, **UTF8}).text
            self.assertIn("█" * 40, text)

    def test_not_a_terminal(self):
        text = self.run_ok("timeline", self.trace, env=UTF8).text
        self.assertNotIn("\033", text)
        self.assertIn("█" * 40 + "  ", text)
        self.assertIn(" release", text)

    def test_no_color(self):
        self.assertIn("\033[1m", "".join(self.lines(100, **UTF8)))
        for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertNotIn("\033", "".join(self.lines(100, **environment, **UTF8)))

    def test_without_utf8(self):
        # Python itself sets LC_CTYPE where there is no locale.
        for environment in ({"LC_ALL": "C"}, {"LC_ALL": "no_SUCH"},
                            {"LANG": "C", "LC_ALL": "", "LC_CTYPE": ""},
                            {"LC_ALL": "", "LC_CTYPE": "POSIX", "LANG": "C.UTF-8"}):
            result = self.run_ok("timeline", self.trace, env=environment)
            self.assertTrue(result.raw.isascii(), environment)
            lines = result.text.splitlines()[2:]
            self.assertEqual(max(line.count("#") for line in lines), 40)
            counts = [line.count("#") for line in lines]
            self.assertEqual(counts, sorted(counts))
            self.assertEqual({len(line[:60].rstrip(" #")) for line in lines}, {len("  +0.000000000s")})
        utf8 = {"LC_ALL": "", "LC_CTYPE": "C.UTF-8", "LANG": "C"}
        self.assertIn("█", self.run_ok("timeline", self.trace, env=utf8).text)


class Oracle(TestCase):
    """Random traces against a model."""

    def check_timeline(self, path, rows, blocks, count, *filters):
        found = self.json_of("timeline", path, "--over", "position", "--points", count, *filters)
        points, width = found["points"], found["width"]
        self.assertLessEqual(len(points), count)
        places = oracle.positions(rows)

        def size(at):
            return sum(b.size for b in blocks if b.live(at))

        def before(at):
            return (at[0], at[1] - 1) if at[1] else (at[0] - 1, 1 << 70)

        begins = [oracle.position(p["position"]) for p in points] + [oracle.NEVER]
        self.assertEqual([p["first"] % width for p in points], [0] * len(points))
        for point, begin, end in zip(points, begins, begins[1:]):
            inside = [b for b in blocks if begin <= b.allocated < end]
            freed = [b for b in blocks if begin <= b.released < end]
            last = before(end)
            self.assertEqual((point["allocations"], point["allocated_bytes"], point["releases"],
                              point["live_bytes"], point["live_blocks"], point["peak_bytes"]),
                             (len(inside), sum(b.size for b in inside),
                              len(freed),
                              size(last), len([b for b in blocks if b.live(last)]),
                              max([size(before(begin))] + [size(p) for p in places if begin <= p < end])))
        self.assertEqual(sum(p["allocations"] for p in points), len(blocks))
        times = sorted(row["wall_time_ns"] for row in rows)
        self.assertLessEqual(sum(p["duration_ns"] for p in points), times[-1] - times[0])
        self.check_rates(points)

    def check_rates(self, points):
        for p in points:
            seconds = p["duration_ns"] / 1e9
            for rate, amount in (("allocations_per_second", "allocations"),
                                 ("bytes_per_second", "allocated_bytes")):
                if seconds:
                    self.assertAlmostEqual(p[rate] * seconds, p[amount], delta=p[amount] * 1e-5)
                else:
                    self.assertIsNone(p[rate])

    def check_time(self, path, rows, count):
        found = self.json_of("timeline", path, "--points", count)
        points, width = found["points"], found["width"]
        self.check_rates(points)
        if points:
            last = max(row["wall_time_ns"] for row in rows)
            self.assertEqual([p["duration_ns"] for p in points],
                             [width] * (len(points) - 1) + [last - points[-1]["first"]])

    def test_timeline(self):
        for seed in range(300, 312):
            path = self.write(oracle.random_script(random.Random(seed), 40), f"trace{seed}")
            rows = self.run_ok("events", "-f", "json", path).json_lines
            for count in (2, 5, 100):
                with self.subTest(seed=seed, count=count):
                    self.check_timeline(path, rows, oracle.owners(rows), count)
                    self.check_time(path, rows, count)

    def test_filters(self):
        """The allocations of some stacks, on the axis of all."""
        seen = set()
        for seed in range(300, 306):
            path = self.write(oracle.random_script(random.Random(seed), 40), f"trace{seed}")
            rows = self.run_ok("events", "-f", "json", "--stacks", path).json_lines
            blocks = oracle.owners(rows)
            whole = self.json_of("timeline", path, "--over", "position", "--points", 20)
            for name in ("g(int)", "libwork.so"):
                some, others = [], []
                for block in blocks:
                    frames = block.row["frames"] or []
                    wanted = any(name in (f["function"] or "") or name in (f["module"] or "")
                                 for f in frames)
                    (some if wanted else others).append(block)
                seen.update((bool(some), bool(others)))
                with self.subTest(seed=seed, name=name):
                    for option, part in (("--include", some), ("--exclude", others)):
                        self.check_timeline(path, rows, part, 20, option, name)
                        found = self.json_of("timeline", path, "--over", "position", "--points",
                                             20, option, name)
                        self.assertEqual([p["first"] for p in found["points"]],
                                         [p["first"] for p in whole["points"]])
        self.assertEqual(seen, {True})
        text = self.run_ok("timeline", "--include", "no such name", path).text
        self.assertIn("0 bytes", text)

    def test_fragmentation(self):
        for seed in range(300, 306):
            chance = random.Random(seed)
            path = self.write(oracle.random_script(chance, 40), f"trace{seed}")
            rows = self.run_ok("events", "-f", "json", path).json_lines
            blocks = oracle.owners(rows)
            at = chance.choice(oracle.positions(rows))
            used = set()
            for block in (b for b in blocks if b.live(at)):
                used.update(range(block.address, block.address + max(block.size, 1)))
            gaps = [b - a - 1 for a, b in zip(sorted(used), sorted(used)[1:]) if b > a + 1]
            found = self.json_of("fragmentation", path, "--at", oracle.spell(at))
            self.assertEqual((found["used_bytes"], found["gaps"], found["gap_bytes"],
                              found["largest_gap"]),
                             (len(used), len(gaps), sum(gaps), max(gaps, default=0)), seed)


if __name__ == "__main__":
    support.main()
