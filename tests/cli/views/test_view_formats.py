# SPDX-License-Identifier: MIT
"""Groups and trees as text, CSV and folded stacks."""

import os

import support
from support import Script, TestCase, run
from views_model import KEYS, COMMANDS


class Formats(TestCase):
    def setUp(self):
        super().setUp()
        script = Script().basics()
        script.add("stack", parent=2, module=1, offset=0x400)      # 5: main > f (g) > new
        script.add("symbol", module=1, offset=0x400, frames="_Znwm@new.cc@1")
        script.alloc(0x1000, 100)
        script.alloc(0x2000, 50, stack=3, thread=2, heap=2)
        script.alloc(0x3000, 10, stack=4)
        script.alloc(0x4000, 7, stack=5)
        script.alloc(0x5000, 3, stack=0)
        self.trace = self.write(script.close())

    def test_text(self):
        text = self.run_ok("leaks", "--by", "function", self.trace).text
        self.assertIn("107 bytes in 2 blocks, allocated from 0:2 to 2:0\n    g(int) in demo\n",
                      text)
        self.assertIn("50 bytes in 1 block, allocated at 1:0\n    libwork.so+0x300\n", text)
        self.assertIn("    (no stack was recorded)\n", text)
        self.assertIn("Never released: 5 blocks, 170 bytes, from 4 functions\n", text)
        text = self.run_ok("leaks", "--by", "file", "--limit", "1", self.trace).text
        self.assertIn("    g.h\n", text)
        self.assertIn("… and 2 files more (--limit 0 for all)\n", text)
        self.assertIn("    thread 2 worker\n", self.run_ok("hot", "--by", "thread", self.trace).text)
        self.assertIn("    heap 2 private\n", self.run_ok("peak", "--by", "heap", self.trace).text)

    def test_tree(self):
        text = self.run_ok("leaks", "--tree", "top-down", self.trace).text
        self.assertEqual(
            text,
            "All: 170 bytes in 5 blocks\n\n"
            "           bytes        %      blocks\n"
            "             167    98.2%           4  - main in demo\n"
            "             107    62.9%           2    - f::run() in demo\n"
            "             107    62.9%           2      g(int) in demo\n"
            "              60    35.3%           2    - libwork.so+0x300\n"
            "              10     5.9%           1      - 0xdead\n"
            "               3     1.8%           1  - (no stack was recorded)\n")
        text = self.run_ok("leaks", "--tree", "top-down", "--depth", "2", "--limit", "1",
                           self.trace).text
        self.assertEqual(
            text,
            "All: 170 bytes in 5 blocks\n\n"
            "           bytes        %      blocks\n"
            "             167    98.2%           4  - main in demo (1 of 2 shown)\n"
            "             107    62.9%           2    - f::run() in demo\n"
            "… and 1 more (--limit 0 for all)\n")

    def test_csv(self):
        rows = self.run_ok("leaks", "-f", "csv", "--by", "function", self.trace).csv
        self.assertEqual([(r["bytes"], r["function"], r["module"], r["offset"]) for r in rows],
                         [("107", "g(int)", "/opt/app/bin/demo", ""),
                          ("50", "", "/usr/lib/libwork.so", "0x300"), ("10", "", "", "0xdead"),
                          ("3", "", "", "")])
        rows = self.run_ok("state", "-f", "csv", "--by", "heap", self.trace).csv
        self.assertEqual([(r["heap_id"], r["name"], r["bytes"]) for r in rows],
                         [("1", "malloc", "120"), ("2", "private", "50")])
        for command in COMMANDS:
            for by in KEYS:
                found = self.json_of(*command[:1], self.trace, *command[1:], "--by", by)
                rows = self.run_ok(*command, "-f", "csv", "--by", by, self.trace).csv
                members = [name for name in found["groups"][0] if name in rows[0]] \
                    if found["groups"] else []
                for row, group in zip(rows, found["groups"], strict=True):
                    for name in members:
                        if name != "stack":
                            self.assertEqual(row[name],
                                             "" if group[name] is None else str(group[name]))
        nodes = self.json_of("hot", self.trace, "--by", "thread", "--tree", "bottom-up")["nodes"]
        rows = self.run_ok("hot", "-f", "csv", "--by", "thread", "--tree", "bottom-up",
                           self.trace).csv
        self.assertEqual([(int(r["depth"]), int(r["bytes"]), int(r["self_count"])) for r in rows],
                         [(n["depth"], n["bytes"], n["self_count"]) for n in nodes])
        self.assertEqual((rows[0]["kind"], rows[0]["name"], rows[0]["number"]),
                         ("thread", "main", "1"))

    def test_folded(self):
        lines = self.run_ok("leaks", "-f", "folded", self.trace).text.splitlines()
        self.assertEqual(lines, ["main;f::run();g(int) 107", "main;libwork.so+0x300 50",
                                 "main;libwork.so+0x300;0xdead 10", "[no stack] 3"])
        lines = self.run_ok("leaks", "-f", "folded", "--by", "thread", "--tree", "bottom-up",
                            self.trace).text.splitlines()
        self.assertIn("thread 1 main;g(int);f::run();main 107", lines)
        self.assertIn("thread 2 worker;libwork.so+0x300;main 50", lines)

    def test_hostile(self):
        script = Script().basics()
        script.add("stack", parent=1, module=1, offset=0x900)
        script.add("symbol", module=1, offset=0x900, frames="%1b]0;t%07%0a1%20999%e2%80%ae%ff@x@1")
        script.alloc(0x1000, 5, stack=5)
        path = self.write(script.close(), "hostile")
        raw = self.run_ok("leaks", "-f", "folded", path).raw
        self.assertEqual(raw, b"main;\\x1b]0\\x3bt\\x07\\x0a1 999\\xe2\\x80\\xae\\xff 5\n")
        for by in KEYS:
            for shape in ((), ("--tree", "top-down")):
                raw = self.run_ok("leaks", "--by", by, *shape, path).raw
                self.assertNotRegex(raw.decode(), "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")

    def test_deep(self):
        """A stack as deep as they come, in trees of one branch."""
        script = Script()
        script.add("module", path="/m", bias=0, begin=0, end=0x100000, position="0:0")
        script.add("thread", os=1, position="0:0").add("heap", name="h")
        for stack in range(3000):
            script.add("stack", parent=stack, module=1, offset=16 * stack + 16)
        for stack in range(1000, 3001, 500):
            script.alloc(0x1000 * stack, 1, stack=stack)
        path = self.write(script.close(), "deep")
        for shape in ("top-down", "bottom-up"):
            tree = self.json_of("leaks", path, "--tree", shape, "--limit", "0")
            self.assertEqual(max(n["depth"] for n in tree["nodes"]), 2999)
            self.assertEqual(tree["total_bytes"], 5)
        lines = self.run_ok("leaks", "-f", "folded", path).text.splitlines()
        self.assertEqual(sorted(line.count(";") + 1 for line in lines),
                         [1000, 1500, 2000, 2500, 3000])

    def test_usage(self):
        for arguments in (("leaks", "--by", "color"), ("leaks", "--tree", "sideways"),
                          ("leaks", "--depth", "3"), ("hot", "--tree", "top-down", "--depth", "0"),
                          ("leaks", "--include", ""), ("info", "-f", "folded"),
                          ("events", "-f", "folded"), ("info", "--by", "file"),
                          ("leaks", *["--include=a"] * 65)):
            result = run(*arguments, self.trace)
            self.assertEqual(result.status, support.USAGE, arguments)
            self.assertEqual(result.raw, b"")

    def test_files(self):
        target = self.path("folded")
        self.run_ok("leaks", "-f", "folded", "-o", target, self.trace)
        with open(target, encoding="utf-8") as file:
            self.assertEqual(file.read(), self.run_ok("leaks", "-f", "folded", self.trace).text)
        self.assertEqual(run("leaks", "--tree", "top-down", "--error-exitcode", "9",
                             self.trace).status, 9)
        self.assertEqual(run("leaks", "--include", "main", "--exclude", "main",
                             "--error-exitcode", "9", self.trace).status, 0)
        self.assertTrue(os.path.exists(target))


if __name__ == "__main__":
    support.main()
