# SPDX-License-Identifier: MIT
"""ttdanalyze events, and positions on the command line"""

import support
from support import Script, TestCase, run


class Events(TestCase):
    def script(self):
        script = Script().basics()
        script.alloc(0xb0cfd0, 100, start="FAB:17B1", end="FAB:17B2", wall=10, flags=8)
        script.realloc(0xb0cfd0, 0xb0d000, 200, start="FAC:0", end="FAC:9", thread=2, wall=20,
                       stack=3)
        script.free(0xb0d000, start="FAD:0", end="FAD:1", wall=30)
        script.event("Create", heap=2, reserve=0x1000, commit=0x200, start="FAD:2", end="FAD:3",
                     wall=40, api=51)
        script.event("Protect", heap=2, read_only=1, start="FAE:0", end="FAE:1", wall=50, api=52)
        script.event("Lock", heap=2, start="FAE:2", end="never", wall=60, api=53)
        return script

    def rows(self, *arguments, **options):
        path = self.write(self.script().close(), options.pop("name", "trace.ttd"))
        return self.run_ok("events", "-f", "json", *arguments, path).json_lines

    def test_properties(self):
        rows = self.rows()
        common = {"heap": "0x0", "heap_id": 1, "result": 1, "certain": True}
        self.assertEqual(rows[0], {
            "number": 0, "action": "Alloc", "api": "malloc", "address": "0xb0cfd0", "size": 100,
            "flags": "0x8", "time_start": "FAB:17B1", "time_end": "FAB:17B2", "wall_time_ns": 10,
            "thread": 1, "stack": 2, **common})
        self.assertEqual(rows[1], {
            "number": 1, "action": "ReAlloc", "api": "realloc", "address": "0xb0d000",
            "previous_address": "0xb0cfd0", "base_address": "0xb0cfd0", "size": 200,
            "flags": "0x0", "time_start": "FAC:0", "time_end": "FAC:9", "wall_time_ns": 20,
            "thread": 2, "stack": 3, **common})
        self.assertEqual(rows[2], {
            "number": 2, "action": "Free", "api": "free", "base_address": "0xb0d000",
            "flags": "0x0", "time_start": "FAD:0", "time_end": "FAD:1", "wall_time_ns": 30,
            "thread": 1, "stack": 1, **common})
        self.assertEqual({k: rows[3][k] for k in ("heap", "reserve_size", "commit_size")},
                         {"heap": "0xb00000", "reserve_size": 0x1000, "commit_size": 0x200})
        self.assertEqual(rows[4]["make_read_only"], 1)
        self.assertEqual((rows[5]["action"], rows[5]["time_end"], rows[5]["result"]),
                         ("Lock", None, 0))
        for row in rows[3:]:
            self.assertNotIn("size", row)
            self.assertNotIn("address", row)

    def test_sized_free(self):
        script = Script().basics()
        script.free(0x1000, size=24)
        path = self.write(script.close())
        row = self.run_ok("events", "-f", "json", path).json_lines[0]
        self.assertEqual((row["base_address"], row["size"]), ("0x1000", 24))
        self.assertEqual(self.run_ok("events", "-f", "csv", path).csv[0]["size"], "24")
        self.assertIn(" 0x18 ", self.run_ok("events", path).text)

    def test_text(self):
        lines = self.run_ok("events", self.write(self.script().close())).text.splitlines()
        self.assertEqual(lines[0].split(),
                         ["Action", "Api", "Heap", "Address", "PreviousAddress", "Size",
                          "BaseAddress", "Flags", "Result", "ReserveSize", "CommitSize",
                          "MakeReadOnly", "TimeStart", "TimeEnd", "Thread", "Stack"])
        self.assertEqual(lines[1].split(),
                         ["[0x0]", "Alloc", "malloc", "0x0", "0xb0cfd0", "0x64", "0x8", "0x1",
                          "FAB:17B1", "FAB:17B2", "0x1", "#2"])
        self.assertEqual(lines[6].split()[-4:], ["FAE:2", "never", "0x1", "#0"])
        for name in ("Size", "TimeStart"):
            column = lines[0].index(" " + name)
            self.assertEqual(lines[1][column], " ")
            self.assertNotEqual(lines[1][column + 1], " ")

    def test_csv(self):
        rows = self.run_ok("events", "-f", "csv", self.write(self.script().close())).csv
        self.assertEqual((rows[0]["address"], rows[0]["size"], rows[0]["base_address"]),
                         ("0xb0cfd0", "100", ""))
        self.assertEqual((rows[5]["time_end"], rows[5]["make_read_only"]), ("", ""))

    def test_parameters(self):
        script = Script().basics()
        script.alloc(0x1000, 16)
        script.alloc(0x2000, 16, parameters="0x11,0x22,3")
        path = self.write(script.close())
        rows = self.run_ok("events", "-f", "json", "--parameters", path).json_lines
        self.assertEqual(rows[0]["parameters"], ["0x10"])
        self.assertEqual(rows[1]["parameters"], ["0x11", "0x22", "0x3"])
        self.assertIn("{0x11, 0x22, 0x3}", self.run_ok("events", "--parameters", path).text)
        rows = self.run_ok("events", "-f", "csv", "--parameters", path).csv
        self.assertEqual(rows[1]["parameters"], "0x11;0x22;0x3")

    def test_stacks(self):
        rows = self.rows("--stacks", "--limit", "2")
        self.assertEqual([f["function"] for f in rows[0]["frames"]], ["g(int)", "f::run()", "main"])
        self.assertEqual([f["address"] for f in rows[1]["frames"]], ["0x7000300", "0x400100"])
        path = self.path("trace.ttd")
        self.assertIn("    #1  f::run() (f.cc:20) in demo\n",
                      self.run_ok("events", "--stacks", path).text)
        rows = self.run_ok("events", "--stacks", "-f", "csv", path).csv
        self.assertEqual(rows[0]["frames"], "g(int);f::run();main")

    def numbers(self, *arguments):
        path = self.path("trace.ttd")
        return [r["number"] for r in self.run_ok("events", "-f", "json", *arguments,
                                                 path).json_lines]

    def test_filters(self):
        self.write(self.script().close())
        for arguments, expected in (
                (["--action", "alloc"], [0]),
                (["--action", "Free,ReAlloc"], [1, 2]),
                (["--action", "Free", "--action", "Create"], [2, 3]),
                (["--thread", "2"], [1]),
                (["--thread", "os:1000"], [0, 2, 3, 4, 5]),
                (["--heap", "0xb00000"], [3, 4, 5]),
                (["--heap", "0"], [0, 1, 2]),
                (["--heap", "malloc"], [0, 1, 2]),
                (["--heap", "private"], [3, 4, 5]),
                (["--heap", "#2"], [3, 4, 5]),
                (["--stack", "2"], [0]),
                (["--include", "f::run"], [0]),
                (["--exclude", "f::run", "--include", "libwork"], [1]),
                (["--exclude", "main", "--action", "Create"], [3]),
                (["--address", "0xb0cfd0"], [0, 1]),
                (["--address", "0xb0cfd0+1"], [0, 1]),
                (["--address", "0xb0cfd0+0x30"], [0, 1]),
                (["--address", "0xb0cfd0+0x31"], [0, 1, 2]),
                (["--address", "0xb0cfd1-0xb0d000"], [1, 2]),
                (["--address", "0xb0d001-"], []),
                (["--address", "0xb0cfd0", "--address", "0xb0d000"], [0, 1, 2]),
                (["--size", "100"], [0]),
                (["--size", "100-200"], [0, 1]),
                (["--size", "101-"], [1]),
                (["--size", "0-99"], []),
                (["--size", "0-1K"], [0, 1]),
                (["--stack", "#3"], [1]),
                (["--stack", "f::run"], [0]),
                (["--stack", "f::*"], [0]),
                (["--stack", "ma?n"], [0, 1, 2]),
                (["--stack", "libwork"], [1]),
                (["--stack", "nothing"], []),
                (["--limit", "2"], [0, 1]),
                (["--action", "Alloc,ReAlloc", "--thread", "2"], [1])):
            self.assertEqual(self.numbers(*arguments), expected, arguments)

    def test_bounds(self):
        self.write(self.script().close())
        for arguments, expected in (
                (["--from", "start", "--to", "end"], [0, 1, 2, 3, 4, 5]),
                (["--from", "FAC:0"], [1, 2, 3, 4, 5]),
                (["--from", "FAC:1"], [2, 3, 4, 5]),
                (["--to", "fac:0"], [0]),
                (["--from", "#2", "--to", "#4"], [2, 3]),
                (["--from", "#0x5"], [5]),
                (["--from", "#600"], []),
                (["--from", "50%"], [3, 4, 5]),
                (["--to", "50%"], [0, 1, 2]),
                (["--from", "100%"], []),
                (["--from", "end"], []),
                (["--to", "start"], [])):
            self.assertEqual(self.numbers(*arguments), expected, arguments)

    def test_address_that_is_null(self):
        script = Script().basics()
        script.alloc(0x5000, 8)
        script.free(0x5000)
        script.realloc(0, 0x6000, 8)
        script.free(0)
        self.write(script.close())
        self.assertEqual(self.numbers("--address", "0"), [2, 3])
        self.assertEqual(self.numbers("--address", "0-0xfff"), [2, 3])
        self.assertEqual(self.numbers("--address", "0x5000"), [0, 1])

    def test_ranges_that_are_empty(self):
        path = self.write(self.script().close())
        for command in "events", "marks":
            for arguments in (["--from", "50%", "--to", "40%"], ["--from", "FAC:1", "--to", "FAC:0"]):
                result = run(command, *arguments, path)
                self.assertEqual((result.status, result.text), (support.USAGE, ""))
                self.assertIn("the range is empty", result.errors)
        self.assertEqual(run("events", "--from", "#4", "--to", "#4", path).status, support.USAGE)

    def test_many_chunks(self):
        script = Script(events_per_chunk=3).basics()
        for i in range(100):
            script.alloc(0x1000 + 16 * i, i, wall=i * 10 ** 9)
        path = self.write(script.close())
        for arguments, expected in ((["--from", "#40", "--to", "#50"], range(40, 50)),
                                    (["--from", "30%", "--to", "33%"], range(30, 33)),
                                    (["--from", "A:2", "--to", "C:0"], range(20, 23))):
            rows = self.run_ok("events", "-f", "json", *arguments, path).json_lines
            self.assertEqual([r["number"] for r in rows], list(expected), arguments)

    def test_invalid_arguments(self):
        path = self.write(self.script().close())
        for arguments in (["--from", "nonsense"], ["--from", "#"], ["--from", "101%"],
                          ["--from", "+5parsec"], ["--from", "1:2:3"], ["--from", "-1%"],
                          ["--from", "+"], ["--from", ""], ["--from", "0x32%"],
                          ["--from", "+0x3s"], ["--from", "+nan"], ["--action", "Steal"],
                          ["--action", ""], ["--thread", "one"], ["--size", "5-4"],
                          ["--size", "big"], ["--address", "0x"], ["--address", "1+0"],
                          ["--stack", ""], ["--stack", "#x"], ["--limit", "-1"]):
            result = run("events", *arguments, path)
            self.assertEqual(result.status, support.USAGE, arguments)
            self.assertIn("invalid argument", result.errors)
            self.assertIn("try 'ttdanalyze events --help'", result.errors)

    def test_what_is_valid(self):
        for arguments, valid in (
                (["leaks", "--by", "colour"],
                 "      --by KEY            group by stack (the default), function, file, module,\n"
                 "                          thread, heap or class"),
                (["leaks", "--limit", "x"], "      --limit N           show at most N groups"),
                (["hot", "--sort", "size"],
                 "      --sort ORDER        the order: most calls, bytes (the default) or "
                 "lifetime\nttdanalyze: try"),
                (["state", "--at", "now"], "  +1.5s       1.5 seconds after the start"),
                (["fragmentation", "--at", "peak"],
                 "The position of the peak is in the first line of 'ttdanalyze peak'.\n")):
            result = run(*arguments, "trace")
            self.assertEqual((result.status, result.text), (support.USAGE, ""), arguments)
            self.assertIn(valid, result.errors, arguments)

    def test_no_limit(self):
        path = self.write(self.script().close())
        everything = self.run_ok("events", path).text
        self.assertEqual(self.run_ok("events", "--limit", "0", path).text, everything)
        self.assertNotEqual(self.run_ok("events", "--limit", "1", path).text, everything)

    def test_unclosed(self):
        path = self.write(self.script().abandon())
        result = self.run_ok("events", "-f", "json", path)
        self.assertEqual(len(result.json_lines), 6)
        self.assertIn("not closed cleanly", result.errors)


class Moments(TestCase):
    """Positions of all forms, by what is live there."""

    def setUp(self):
        super().setUp()
        script = Script(events_per_chunk=2).basics()
        for i in range(10):  # event i ends at i + 1:5 and takes one byte
            script.alloc(0x1000 + i, 1, start=f"{i + 1:X}:0", end=f"{i + 1:X}:5",
                         wall=i * 100000000)
        self.trace = self.write(script.close())

    def blocks(self, position, path=None):
        return self.json_of("leaks", path or self.trace, "--at", position)["total_blocks"]

    def test_forms(self):
        for position, expected in (
                ("start", 0), ("end", 10), ("0:0", 0), ("1:4", 0), ("1:5", 1), ("A:5", 10),
                ("a:5", 10), ("FFFFFFFFFFFFFFFE:FFFFFFFFFFFFFFFF", 10), ("5:FFFF", 5),
                ("#0", 1), ("#4", 5), ("#9", 10), ("#10", 10), ("#0x4", 5),
                ("0%", 0), ("50%", 5), ("54%", 5), ("55%", 6), ("100%", 10), ("12.5%", 1),
                ("+0s", 1), ("+0.4", 5), ("+0.4s", 5), ("+450ms", 5), ("+400000us", 5),
                ("+400000000ns", 5), ("+0.01min", 7), ("+1h", 10)):
            self.assertEqual(self.blocks(position), expected, position)

    def test_position_is_adjusted(self):
        self.assertEqual(self.json_of("leaks", self.trace, "--at", "5:FFFF")["position"], "5:5")
        self.assertEqual(self.json_of("leaks", self.trace, "--at", "0:1")["position"], "0:0")

    def test_realloc_is_complete_at_its_number(self):
        script = Script().basics()
        script.alloc(0x1000, 1, start="1:0", end="1:1")
        script.realloc(0x1000, 0x2000, 2, start="2:0", end="2:5")
        path = self.write(script.close(), "realloc")
        self.assertEqual(self.json_of("leaks", path, "--at", "#1")["total_bytes"], 2)
        self.assertEqual(self.json_of("leaks", path, "--at", "100%")["total_bytes"], 2)

    def test_times_are_between_events(self):
        script = Script().basics()
        script.alloc(0x1000, 100, start="1:0", end="1:1", wall=100)
        script.alloc(0x2000, 50, start="2:0", end="2:1", wall=200)
        script.realloc(0x1000, 0x3000, 300, start="3:0", end="3:5", wall=3000)
        script.alloc(0x4000, 400, start="4:0", end="4:1", wall=5000)
        path = self.write(script.close(), "times")
        for time, live in (("+99ns", 0), ("+200ns", 150), ("+2999ns", 150), ("+3000ns", 350),
                           ("+4us", 350), ("+5us", 750)):
            found = self.json_of("state", path, "--at", time)
            self.assertEqual((found["live_bytes"], found["reallocs_in_flight"]), (live, 0), time)
        for time, before in (("+99ns", 0), ("+100ns", 1), ("+1us", 2), ("+3us", 3), ("+1s", 4)):
            for option, expected in (("--to", range(before)), ("--from", range(before, 4))):
                rows = self.run_ok("events", "-f", "json", option, time, path).json_lines
                self.assertEqual([r["number"] for r in rows], list(expected), (option, time))
        found = self.json_of("diff", path, "--from", "+1us", "--to", "+4us")
        self.assertEqual([found[q]["bytes"] for q in ("aifi", "aifo", "aofi", "aofo")],
                         [0, 300, 100, 50])

    def test_without_end(self):
        script = Script(events_per_chunk=2).basics()
        for i in range(9):
            script.alloc(0x1000 + i, 1, wall=i * 10)
        path = self.write(script.abandon(), "unclosed")
        self.assertEqual(self.blocks("33.4%", path), 3)
        self.assertEqual(self.blocks("+50ns", path), 6)


if __name__ == "__main__":
    support.main()
