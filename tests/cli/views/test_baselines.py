# SPDX-License-Identifier: MIT
"""Baselines of ttdanalyze leaks"""

import random

import support
from known_support import Files, random_script
from support import Script, run


class Baseline(Files):
    def build(self, shift, name, more=False):
        """The same program, with everything elsewhere."""
        script = Script()
        if shift:
            script.add("module", path="/another.so", bias=0x100, begin=0x100, end=0x200,
                       position="0:0")
            script.add("stack", parent=0, module=1, offset=1)
        own, base = (2, 1) if shift else (1, 0)
        script.add("module", path=f"/build{shift}/demo", bias=0x400000 * (shift + 1),
                   begin=0x400000 * (shift + 1), end=0x400000 * (shift + 1) + 0x10000,
                   position="0:0")
        script.add("thread", os=1, position="0:0").add("heap", name="malloc")
        script.add("stack", parent=0, module=own, offset=0x100 + shift)
        script.add("stack", parent=base + 1, module=own, offset=0x200 + shift)
        script.add("stack", parent=base + 1, module=own, offset=0x300 + shift)
        script.add("symbol", module=own, offset=0x100 + shift, frames=f"main@m.c@{10 + shift}")
        # One frame with an inlined one here is two calls there.
        script.add("symbol", module=own, offset=0x200 + shift,
                   frames=f"work{'.constprop.0' * shift}@w.c@{20 + shift}")
        script.add("symbol", module=own, offset=0x300 + shift, frames=f"other@o.c@{30 + shift}")
        script.alloc(0x1000, 100 + shift, stack=base + 2)
        if more:
            script.alloc(0x2000, 7, stack=base + 3)
        return self.write(script.close(), name)

    def test_rebuild(self):
        path = self.path("baseline")
        old, new = self.build(0, "old"), self.build(3, "new")
        self.assertEqual(self.json_of("leaks", old, "--write-baseline", path)["total_blocks"], 1)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertRegex(text, r"\Attdanalyze baseline 2\nleak [0-9a-f]{32} 1 work < main\n\Z")
        for trace in (old, new):
            result = self.run_ok("leaks", "--baseline", path, "--error-exitcode", "5", trace)
            self.assertIn("No leaks\nIn the baseline: 1 block, 10", result.text)
        more = self.build(3, "more", more=True)
        found = run("leaks", "-f", "json", "--baseline", path, "--error-exitcode", "5", more)
        self.assertEqual(found.status, 5)
        self.assertEqual((found.json["total_bytes"], found.json["known_blocks"],
                          found.json["known_bytes"]), (7, 1, 103))
        # A baseline written with a baseline has all of it again.
        self.run_ok("leaks", "--baseline", path, "--write-baseline", path, more)
        self.assertIn("No leaks", self.run_ok("leaks", "--baseline", path, more).text)
        self.assertIn("No leaks", self.run_ok("leaks", "--baseline", path, old).text)

    def machine(self, name, *, debug, extra=0, program="demo"):
        """A program that calls strdup() and fopen(), where the C library has debug files or not."""
        script = Script()
        for number, path in enumerate((f"/opt/{program}", "/usr/lib/libc.so.6")):
            script.add("module", path=path, bias=(number + 1) << 24, begin=(number + 1) << 24,
                       end=((number + 1) << 24) + 0x10000, position="0:0")
        script.add("thread", os=1, position="0:0").add("heap", name="malloc")
        # 1 _start, 2 and 3 libc, 4 main, 5 work, 6 strdup, 7 fopen, 8 its own function
        for parent, module, offset in ((0, 1, 0x100), (1, 2, 0x10), (2, 2, 0x20), (3, 1, 0x200),
                                       (4, 1, 0x300), (5, 2, 0x30), (4, 2, 0x40), (7, 2, 0x50)):
            script.add("stack", parent=parent, module=module, offset=offset)
        for offset, function in ((0x100, "_start"), (0x200, "main"), (0x300, "work")):
            script.add("symbol", module=1, offset=offset, frames=f"{function}@@0")
        if debug:
            for offset, function in ((0x10, "__libc_start_main_impl"),
                                     (0x20, "__libc_start_call_main"), (0x30, "__GI___strdup"),
                                     (0x40, "_IO_new_fopen"), (0x50, "__fopen_internal")):
                script.add("symbol", module=2, offset=offset, frames=f"{function}@libc.c@1")
        else:
            script.add("symbol", module=2, offset=0x30, frames="strdup@@0")
        for number in range(2 + extra):
            script.alloc(0x1000 + 16 * number, 10, stack=6)
        script.alloc(0x8000, 472, stack=8)
        return self.write(script.close(), name)

    def test_other_machine(self):
        """A finding known where the C library has debug files is known where it has none."""
        path = self.path("baseline")
        traces = [self.machine("with", debug=True), self.machine("without", debug=False),
                  self.machine("renamed", debug=True, program="other")]
        for known in traces:
            self.run_ok("leaks", "--write-baseline", path, known)
            for trace in traces:
                found = self.json_of("leaks", trace, "--baseline", path)
                self.assertEqual((found["groups"], found["known_blocks"], found["grown"]),
                                 ([], 3, 0), (known, trace))

    def test_growth(self):
        path, growth = self.path("baseline"), "Grown since the baseline: 1 stack\n  from 2 to 3 blocks\n"
        self.run_ok("leaks", "--write-baseline", path, self.machine("old", debug=True))
        trace = self.machine("new", debug=False, extra=1)
        text = self.run_ok("leaks", "--baseline", path, trace).text
        self.assertIn("In the baseline: 4 blocks, 502 bytes\n" + growth, text)
        found = self.json_of("leaks", trace, "--baseline", path)
        self.assertEqual((found["groups"], found["grown"]), ([], 1))
        self.assertEqual([(g["kind"], g["before"], g["now"], g["stack"][0]["function"])
                          for g in found["growths"]], [("leak", 2, 3, "strdup")])
        rows = self.run_ok("leaks", "-f", "csv", "--baseline", path, trace).csv
        self.assertEqual([(row["kind"], row["blocks"]) for row in rows], [("grown", "3")])
        for options, status in (((), 0), (("--fail-on-growth",), 1),
                                (("--fail-on-growth", "--error-exitcode", "9"), 9)):
            self.assertEqual(run("leaks", "--baseline", path, *options, trace).status, status)
        self.assertEqual(run("leaks", "--baseline", path, "--fail-on-growth",
                             self.machine("same", debug=True)).status, 0)

    def test_growth_of_errors(self):
        path = self.path("baseline")

        def frees(name, count):
            script = Script().basics()
            script.alloc(0x1000, 10)
            for _ in range(count):
                script.free(0x1000, stack=3)
            return self.write(script.close(), name)

        self.run_ok("errors", "--write-baseline", path, frees("old", 3))
        trace = frees("new", 5)
        result = run("errors", "--baseline", path, "--fail-on-growth", trace)
        self.assertEqual(result.status, 1)
        self.assertIn("Grown since the baseline: 1 finding\n  double-free: from 2 to 4 calls\n",
                      result.text)
        self.assertEqual(run("errors", "--baseline", path, "--fail-on-growth",
                             frees("same", 3)).status, 0)

    def test_suppressed_is_not_written(self):
        path, rules = self.path("baseline"), self.file("leak:work")
        trace = self.build(0, "old", more=True)
        self.run_ok("leaks", "--write-baseline", path, "--suppressions", rules, trace)
        self.assertEqual(self.json_of("leaks", trace, "--baseline", path)["total_bytes"], 100)
        script = Script().basics()
        script.alloc(0x1000, 1)
        script.alloc(0x2000, 1, thread=2)
        script.alloc(0x3000, 1, thread=2, stack=3)
        trace = self.write(script.close(), "threads")
        self.run_ok("leaks", "--write-baseline", path, "--by", "thread", trace)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()), 3)

    def test_bad_files(self):
        trace = self.build(0, "old")
        good = "leak " + "0" * 32 + " 1"
        for text, line in (("", 1), ("nonsense\n", 1), ("ttdanalyze baseline 3\n", 1),
                           ("leak 0 1\n", 2), ("oops " + "0" * 32 + " 1", 2), (good + "x", 2),
                           (good + "\n" + good.replace(" 1", "0 1\n"), 3), (good[:-2], 2),
                           ("leak", 2), ("leak " + "g" * 32 + " 1\n", 2), (good[:-1], 2),
                           (good[:-1] + "18446744073709551616", 2)):
            if line > 1:
                text = "ttdanalyze baseline 2\n" + text
            result = run("leaks", "--baseline", self.file(text), trace)
            self.assertEqual(result.status, support.USAGE, text)
            self.assertIn(f"rules:{line}: ", result.errors)
        self.run_ok("leaks", "--baseline",
                    self.file(f"ttdanalyze baseline 2\r\n\r\n# x\r\n{good} and more\r\n{good}\r\n"),
                    trace)
        old = run("leaks", "--baseline", self.file("ttdanalyze baseline 1\n" + good[:-2]), trace)
        self.assertEqual((old.status, old.raw), (support.USAGE, b""))
        self.assertIn("rules:1: a baseline of an earlier version", old.errors)
        self.assertIn("--write-baseline", old.errors)
        self.assertEqual(run("leaks", "--fail-on-growth", trace).status, support.USAGE)
        self.assertEqual(run("leaks", "--write-baseline", "-", trace).status, support.USAGE)
        self.assertEqual(run("leaks", "--write-baseline", trace, trace).status, support.USAGE)
        self.assertEqual(run("leaks", "--write-baseline", self.path("no/where"), trace).status,
                         support.INTERNAL)

    def test_random(self):
        """Nothing of a trace is new to its own baseline; of another, what its stacks tell."""
        def key(group):
            names = []
            for frame in reversed(group["stack"]):
                name = (frame["function"] or "").split("(")[0] or (frame["module"] and frame["offset"])
                if name == "main":
                    names = []
                if not name or not names or names[-1] != name:
                    names.append(name)
            return names

        for seed in range(50, 56):
            first = self.write(random_script(random.Random(seed)), f"first{seed}")
            second = self.write(random_script(random.Random(seed + 100)), f"second{seed}")
            path = self.path("baseline")
            groups = self.json_of("leaks", first, "--limit", "0", "--write-baseline",
                                  path)["groups"]
            found = self.json_of("leaks", first, "--baseline", path)
            self.assertEqual((found["groups"], found["known_bytes"]),
                             ([], sum(g["bytes"] for g in groups)))
            known = [key(g) for g in groups]
            new = [g for g in self.json_of("leaks", second, "--limit", "0")["groups"]
                   if key(g) not in known]
            found = self.json_of("leaks", second, "--limit", "0", "--baseline", path)
            # Groups are counted among those that are reported.
            for number, group in enumerate(new, 1):
                group["group"] = number
            self.assertEqual(found["groups"], new)


if __name__ == "__main__":
    support.main()
