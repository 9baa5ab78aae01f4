# SPDX-License-Identifier: MIT
"""leaks, errors and peak with --group: the sums of the processes of one recording."""

import os

import support
from json_doc import documented
from known_support import Files
from support import Script, run
from snapshot_support import IN_BSS, SnapshotCase, SnapshotScript

A, B, C = 0x20000, 0x21000, 0x22000


class Families(SnapshotCase, Files):
    def process(self, number, blocks, parent=1, bias=0, lost=(), name=None, unrecorded=()):
        """A process that loses blocks of (size, stack); all at other addresses, and all stacks with
        other numbers in every second process."""
        script = SnapshotScript(id=number, parent=parent if parent != number else 0,
                                pid=100 + number, start_time=number * 10 ** 9)
        script.add("metadata", key="command", value=f"demo%20{number}")
        for text in unrecorded:
            script.add("metadata", key="unrecorded", value=text.replace(" ", "%20"))
        script.basics()
        if number % 2 == 0:  # stack 5 is stack 2 of the others, by name
            script.add("stack", parent=1, module=1, offset=0x280)
            script.add("symbol", module=1, offset=0x280,
                       frames="_Z1gi@g.h@5,_ZN1f3runEv@f.cc@20")
        for i, (size, stack) in enumerate(blocks):
            stack = 5 if stack == 2 and number % 2 == 0 else stack
            script.alloc(A + number * 0x10000 + 0x1000 * i, size, stack=stack)
        script.alloc(C, 7, stack=1)
        script.free(C)
        script.free(C)  # twice
        script.snapshot()
        for _ in lost:
            script.add("loss", reason=1, count=3, last_good="0:0", first_good="0:1")
        return self.write(script.close(), name or f"trace.{number}")

    def family(self):
        self.first = self.process(1, [(100, 2), (10, 3)])
        self.process(2, [(50, 2), (50, 2)])
        self.process(3, [(7, 3)])

    def test_leaks(self):
        self.family()
        found = self.json_of("leaks", self.first, "--group")
        self.assertEqual([(g["kind"], g["blocks"], g["bytes"],
                           [(s["process_id"], s["blocks"], s["bytes"]) for s in g["shares"]],
                           g["stack"][-1]["function"]) for g in found["groups"]],
                         [("definitely_lost", 3, 200, [(102, 2, 100), (101, 1, 100)], "main"),
                          ("definitely_lost", 2, 17, [(101, 1, 10), (103, 1, 7)], "main")])
        self.assertEqual([f["function"] for f in found["groups"][0]["stack"]],
                         ["g(int)", "f::run()", "main"])
        self.assertEqual((found["certain"], found["blocks"], found["bytes"]), (True, 5, 217))
        self.assertEqual([(p["process_id"], p["command"], p["bytes"]) for p in found["processes"]],
                         [(101, "demo 1", 110), (102, "demo 2", 100), (103, "demo 3", 7)])
        # Whichever of them is named.
        for name in os.listdir(self.folder):
            again = self.json_of("leaks", self.path(name), "--group")
            self.assertEqual(again["groups"], found["groups"])
        tables = documented()
        self.assertEqual(list(found), tables["family"])
        self.assertEqual(list(found["processes"][0]), tables["family.processes"])
        self.assertEqual(list(found["groups"][0]), tables["family.groups"])

    def test_text(self):
        self.family()
        text = self.run_ok("leaks", "--group", self.first).text
        self.assertIn("3 processes, lost: 217 bytes in 5 blocks, from 2 call sites\n"
                      f"  process 101: 110 bytes in 2 blocks, {self.first}\n", text)
        self.assertIn("\n200 bytes in 3 blocks definitely lost, in 2 processes: 102, 101\n"
                      "    #0  g(int) (g.h:5) in demo (inlined)\n", text)
        self.assertNotIn("Uncertain", text)

    def test_csv(self):
        self.family()
        rows = self.run_ok("leaks", "--group", "-f", "csv", self.first).csv
        self.assertEqual([(r["kind"], r["bytes"], r["processes"], r["shares"], r["certain"])
                          for r in rows],
                         [("definitely_lost", "200", "2", "102:100;101:100", "true"),
                          ("definitely_lost", "17", "2", "101:10;103:7", "true")])
        result = self.run_ok("leaks", "--group", "-f", "csv", "--limit", "1", self.first)
        self.assertEqual(len(result.csv), 1)
        self.assertIn("1 more call sites are not listed", result.errors)

    def test_errors(self):
        self.family()
        found = self.json_of("errors", self.first, "--group")
        self.assertEqual([(g["kind"], g["calls"], [s["process_id"] for s in g["shares"]])
                          for g in found["groups"]], [("double-free", 3, [101, 102, 103])])
        self.assertIn("3 calls double-free, in 3 processes: 101, 102, 103\n",
                      self.run_ok("errors", "--group", self.first).text)

    def test_peak(self):
        self.family()
        found = self.json_of("peak", self.first, "--group")
        self.assertEqual((found["bytes"], found["groups"][0]["bytes"]), (217 + 3 * 7, 200))
        self.assertIn("3 processes, each at its own peak, at most: ",
                      self.run_ok("peak", "--group", self.first).text)

    def test_uncertain(self):
        """The sum is as certain as the least certain of its parts."""
        self.family()
        self.process(4, [(1, 3)], lost=[1])
        found = self.json_of("leaks", self.first, "--group")
        self.assertIs(found["certain"], False)
        self.assertEqual([p["certain"] for p in found["processes"]], [True, True, True, False])
        text = self.run_ok("leaks", "--group", self.first).text
        self.assertRegex(text, r"(?m)^Uncertain: process 104: ")
        rows = self.run_ok("leaks", "--group", "-f", "csv", self.first).csv
        self.assertEqual({r["certain"] for r in rows}, {"false"})

    def test_unrecorded_children(self):
        """Those that the traces count are no part of the sums."""
        self.family()
        self.process(4, [(1, 3)], unrecorded=["1 child process of the recording"])
        self.process(5, [(1, 3)], unrecorded=["2 child processes of the recording",
                                              "7 calls of a function", "a program"])
        for command in "leaks", "errors", "peak":
            found = self.json_of(command, self.first, "--group")
            self.assertEqual((found["certain"], found["unrecorded_processes"]), (False, 3))
            self.assertIn("\nUncertain: 3 child processes of the recording ran unrecorded\n",
                          self.run_ok(command, "--group", self.first).text)
            rows = self.run_ok(command, "--group", "-f", "csv", self.first).csv
            self.assertEqual({row["certain"] for row in rows}, {"false"})

    def test_missing(self):
        """A parent without a trace, and a trace that cannot be read."""
        self.family()
        os.remove(self.first)
        path = self.path("trace.2")
        found = self.json_of("leaks", path, "--group")
        self.assertEqual((found["certain"], found["missing_parents"]), (False, 2))
        self.assertIn("Uncertain: the trace of the parent is not here, for 2 processes\n",
                      self.run_ok("leaks", "--group", path).text)
        os.remove(path)
        os.remove(self.path("trace.3"))
        self.family()
        with open(self.path("trace.3"), "r+b") as file:
            file.seek(5)
            file.write(b"\xff\xff\xff")
        result = self.run_ok("leaks", "--group", "-f", "json", self.first)
        self.assertEqual((result.json["certain"], len(result.json["processes"]),
                          result.json["unreadable_traces"]), (False, 2, 1))
        self.assertIn("may be of the same recording", result.errors)

    def test_copies(self):
        """A copy of a trace is no other process."""
        self.family()
        with open(self.path("trace.3"), "rb") as file, open(self.path("copy"), "wb") as copy:
            copy.write(file.read())
        result = self.run_ok("leaks", "--group", "-f", "json", self.first)
        self.assertEqual(result.json["bytes"], 217)
        self.assertIn("a copy of another trace", result.errors)

    def test_options(self):
        self.family()
        found = self.json_of("leaks", self.first, "--group", "--include", "libwork")
        self.assertEqual(found["bytes"], 17)
        rules = self.file("leak:f::run\n")
        found = self.json_of("leaks", self.first, "--group", "--suppressions", rules)
        self.assertEqual((found["bytes"], found["suppressed"]), (17, 3))
        for command in ("leaks", "errors"):
            result = run(command, "--group", "--error-exitcode", "9", self.first)
            self.assertEqual(result.status, 9)
            self.assertNotEqual(result.text, "")
        for options in (("leaks", "--by", "function"), ("leaks", "--tree", "top-down"),
                        ("leaks", "--at", "1:0"), ("leaks", "--show-runtime"),
                        ("peak", "--show-runtime"), ("peak", "--by", "heap"),
                        ("errors", "--write-baseline", "x"), ("leaks", "-f", "folded")):
            result = run(*options, "--group", self.first)
            self.assertEqual((result.status, result.text), (support.USAGE, ""), options)

    def test_thousand(self):
        """Sessions are open one at a time: a thousand traces need no thousand files."""
        import resource
        for number in range(1, 130):
            self.process(number, [(number, 2)])
        found = run("leaks", "--group", "-f", "json", self.path("trace.1"),
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))).json
        self.assertEqual((found["bytes"], len(found["groups"]), found["certain"]),
                         (129 * 130 // 2, 1, True))
        self.assertEqual(len(found["groups"][0]["shares"]), 129)


support.main()
