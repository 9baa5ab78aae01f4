# SPDX-License-Identifier: MIT
"""Suppressions of ttdanalyze leaks"""

import random

import support
from known_support import Files, random_rule, random_script, rule_matches, rule_text
from support import Script, run


class Suppressions(Files):
    def setUp(self):
        super().setUp()
        script = Script().basics()
        script.alloc(0x1000, 100)                 # g(int), f::run(), main
        script.alloc(0x2000, 50, stack=3)         # libwork.so, main
        script.alloc(0x3000, 10, stack=4)         # nowhere, libwork.so, main
        script.event("Alloc", address=0x4000, size=7, stack=2, api=1)
        self.trace = self.write(script.close())

    def left(self, rules, *arguments):
        found = self.json_of("leaks", self.trace, "--suppressions", self.file(rules), *arguments)
        return [g["bytes"] for g in found["groups"]]

    def test_sanitizer(self):
        for rules, left in (("leak:g(int)\n", [50, 10]), ("leak:^main$\n", []), ("", [107, 50, 10]),
                            ("# comment\n\n  leak:libwork.so$  \r\n", [107]),
                            ("leak:^libwork", [107, 50, 10]), ("leak:f.cc", [50, 10]),
                            ("leak:^f::*)$", [50, 10]), ("leak:_ZN1f3run", [50, 10]),
                            ("leak:run(\n", [50, 10]), ("leak:run$\n", [107, 50, 10]),
                            ("leak:no?such", [107, 50, 10]), ("leak:/usr/*/lib", [107])):
            self.assertEqual(self.left(rules), left, rules)

    def test_valgrind(self):
        def block(*lines, kind="Memcheck:Leak"):
            return "{\n" + "\n".join(["name", kind, *lines]) + "\n}\n"

        for lines, left in ((("fun:malloc", "fun:_Z1gi"), [50, 10]),
                            (("fun:_Z1gi",), [107, 50, 10]),
                            (("...", "fun:_Z1gi"), [50, 10]), (("fun:malloc",), []),
                            (("fun:malloc", "fun:g(int)", "fun:f*", "fun:main"), [50, 10]),
                            (("fun:malloc", "fun:g(int)", "fun:main"), [107, 50, 10]),
                            (("fun:malloc", "...", "fun:main"), []),
                            (("fun:malloc", "...", "fun:main", "fun:*"), [107, 50, 10]),
                            (("fun:malloc", "obj:/usr/lib/libwork.so"), [107, 10]),
                            (("fun:malloc", "obj:*", "obj:*/libwork.so"), [107, 50]),
                            (("fun:malloc", "fun:???"), [107]),
                            (("fun:malloc", "fun:strdup"), [107, 50, 10]),
                            (("fun:?alloc", "src:g.h:5"), [50, 10]),
                            (("fun:?alloc", "src:g.h:6"), [107, 50, 10]),
                            (("fun:malloc", "obj:*/demo", "src:*.cc"), [50, 10]),
                            (("match-leak-kinds: reachable,possible", "...", "fun:main"), []),
                            (("match-leak-kinds:none", "...", "fun:main"), [107, 50, 10])):
            self.assertEqual(self.left("# x\n" + block(*lines)), left, lines)
        for kind, left in (("Memcheck:Cond", [107, 50, 10]), ("Helgrind:Race", [107, 50, 10]),
                           ("Memcheck:Free", [107, 50, 10]), ("drd,Memcheck:Leak", []),
                           ("ttdanalyze:leak", [])):
            self.assertEqual(self.left(block("...", "fun:main", kind=kind)), left, kind)
        # Other tools' rules have lines of their own.
        self.assertEqual(self.left(block("ioctl(x)", "fun:main", kind="Memcheck:Param")),
                         [107, 50, 10])

    def test_libc_names(self):
        """The C library's __GI___strdup is strdup to others; and functions below main."""
        script = Script().basics()
        script.add("stack", parent=0, module=1, offset=0x700)
        script.add("stack", parent=5, module=1, offset=0x800)
        script.add("stack", parent=6, module=1, offset=0x900)
        script.add("symbol", module=1, offset=0x700, frames="__libc_start_main_impl@x@1")
        script.add("symbol", module=1, offset=0x800, frames="main@x@1")
        script.add("symbol", module=1, offset=0x900, frames="__GI___strdup@x@1")
        script.alloc(0x1000, 5, stack=7)
        self.trace = self.write(script.close(), "libc")
        for lines, left in (("fun:strdup\nfun:main", []), ("fun:strdup\nfun:main\nfun:(below main)", []),
                            ("fun:__GI___strdup", []), ("fun:dup", [5]),
                            ("fun:strdup\nfun:(below main)", [5])):
            self.assertEqual(self.left("{\nx\nMemcheck:Leak\nfun:malloc\n" + lines + "\n}\n"),
                             left, lines)

    def test_libc_names_are_public(self):
        """A function is called as programs call it; its symbol is what it was."""
        script = Script().basics()
        names = (("__GI___strdup", "strdup"), ("__GI___libc_malloc", "__libc_malloc"),
                 ("__GI__IO_file_doallocate", "_IO_file_doallocate"), ("__GI_", "__GI_"),
                 ("__GI_getline", "getline"), ("__strdup", "__strdup"))
        for i, (symbol, _) in enumerate(names):
            script.add("stack", parent=1, module=1, offset=0x900 + i)
            script.add("symbol", module=1, offset=0x900 + i, frames=f"{symbol}@x@1")
            script.alloc(0x1000 + 16 * i, 16 - i, stack=5 + i)
        path = self.write(script.close(), "public")
        self.assertEqual([group["stack"][0]["function"]
                          for group in self.json_of("leaks", path)["groups"]],
                         [name for _, name in names])
        self.assertIn("#0  strdup (x:1) in demo", self.run_ok("leaks", path).text)

    def test_totals(self):
        rules = self.file("leak:nothing\nleak:libwork\n{\n second \x1b one\nMemcheck:Leak\nfun:malloc\n"
                          "fun:_Z1gi\n}\n")
        result = self.run_ok("leaks", "--suppressions", rules, "--error-exitcode", "9", self.trace)
        self.assertEqual(
            result.text, "No leaks\nSuppressed: 4 blocks, 167 bytes\n"
            f"  2 blocks, 60 bytes by leak:libwork ({rules}:2)\n"
            f"  2 blocks, 107 bytes by second \\x1b one ({rules}:3)\n")
        found = self.json_of("leaks", self.trace, "--suppressions", rules)
        self.assertEqual((found["total_blocks"], found["total_bytes"], found["suppressed_blocks"],
                          found["suppressed_bytes"]), (0, 0, 4, 167))
        self.assertEqual(found["suppressions"],
                         [{"blocks": 2, "bytes": 60, "rule": "leak:libwork", "file": rules,
                           "line": 2},
                          {"blocks": 2, "bytes": 107, "rule": "second \x1b one", "file": rules,
                           "line": 3}])
        self.assertNotIn("suppressed_blocks", self.json_of("leaks", self.trace))
        self.assertIn("Suppressed: 4 blocks", self.run_ok(
            "leaks", "--tree", "top-down", "--suppressions", rules, self.trace).text)

    def test_several_files(self):
        first, second = self.file("leak:libwork\n", "1"), self.file("leak:main\n", "2")
        found = self.json_of("leaks", self.trace, "--suppressions", first, "--suppressions", second,
                             "--by", "thread")
        self.assertEqual([(r["rule"], r["bytes"]) for r in found["suppressions"]],
                         [("leak:libwork", 60), ("leak:main", 107)])
        self.assertEqual(found["groups"], [])

    def test_bad_files(self):
        start = "leak:a\n"
        for text, line, reason in (
                ("race:x\n", 2, "neither 'leak:PATTERN' nor"), ("leak:\n", 2, "has no pattern"),
                ("leak:^$\n", 2, "has no pattern"), ("}\n", 2, "neither"),
                ("{\n", 2, "without a name"), ("{\n}\n", 2, "without a name"),
                ("{\na\n", 2, "does not end"), ("{\na\nMemcheck:Leak\n", 2, "does not end"),
                ("{\na\nMemcheck:Leak\nfun:x\n", 2, "does not end"),
                ("{\na\nMemcheck\nfun:x\n}\n", 4, "no TOOL:KIND"),
                ("{\na\nMemcheck:Leak\n}\n", 5, "without frames"),
                ("{\na\nMemcheck:Leak\nfun:\n}\n", 5, "pattern is missing"),
                ("{\na\nMemcheck:Leak\nx:y\n}\n", 5, "not fun:"),
                ("{\na\nMemcheck:Leak\nfun:x\nmatch-leak-kinds:all\n}\n", 6, "not fun:"),
                ("{\na\nMemcheck:Leak\nmatch-leak-kinds: some\nfun:x\n}\n", 5, "kind of leak"),
                ("{\na\nttdanalyze:oops\nfun:x\n}\n", 4, "no finding"),
                ("{\na\nMemcheck:Leak\n" + "fun:x\n" * 257 + "}\n", 261, "256 frames"),
                ("{\na\nMemcheck:Leak\nx\x1b[0m\n}\n", 5, "\\x1b[0m")):
            path = self.file(start + text)
            result = run("leaks", "--suppressions", path, self.trace)
            self.assertEqual((result.status, result.raw), (support.USAGE, b""), text)
            self.assertIn(f"rules:{line}: ", result.errors, text)
            self.assertIn(reason, result.errors, text)
        self.assertIn("not a text", run("leaks", "--suppressions", self.file(b"leak:a\0b"),
                                        self.trace).errors)
        for path in (self.path("missing"), self.folder):
            result = run("leaks", "--suppressions", path, self.trace)
            self.assertEqual(result.status, support.USAGE)
            self.assertIn(path, result.errors)
        result = run("leaks", "--suppressions", self.file(b"#" * ((16 << 20) + 1)), self.trace)
        self.assertIn("more than 16777216 bytes", result.errors)
        self.assertEqual(run("hot", "--suppressions", path, self.trace).status, support.USAGE)

    def test_garbage(self):
        chance = random.Random(3)
        words = ["{", "}", "leak:", "a", "*", "^", "$", "\n", "\n", "Memcheck:Leak\n", "fun:", "obj:",
                 "src:", "...", ":1", "match-leak-kinds:", ",", "all", " ", "#", "\xff"]
        for _ in range(150):
            text = "".join(chance.choice(words) for _ in range(chance.randrange(40)))
            result = run("leaks", "--suppressions", self.file(text.encode("latin-1")), self.trace)
            self.assertIn(result.status, (0, support.USAGE), text)

    def test_slow_patterns(self):
        """Patterns and names that backtracking would take forever for."""
        script = Script().basics()
        script.add("stack", parent=1, module=1, offset=0x900)
        script.add("symbol", module=1, offset=0x900, frames="a" * 4000 + "@x@1")
        script.alloc(0x1000, 5, stack=5)
        path = self.write(script.close(), "slow")
        rules = self.file("leak:" + "a*" * 200 + "b$\n{\nx\nMemcheck:Leak\n"
                          + "...\nfun:*a*\n" * 100 + "fun:zzz\n}\n")
        found = self.json_of("leaks", path, "--suppressions", rules, "--include", "a*" * 200 + "a")
        self.assertEqual(found["total_bytes"], 5)

    def test_random(self):
        """Against a matcher that tries everything; the first rule that matches counts."""
        for seed in range(8):
            chance = random.Random(seed)
            path = self.write(random_script(chance), f"trace{seed}")
            groups = self.json_of("leaks", path, "--limit", "0")["groups"]
            for round_number in range(6):
                rules = [random_rule(chance, i) for i in range(chance.randrange(1, 7))]
                text = "".join(map(rule_text, rules))
                left, matched = [], {}
                for group in groups:
                    rule = next((r for r in rules if rule_matches(r, group)), None)
                    if rule is None:
                        left.append(group)
                        continue
                    name = f"leak:{rule[1]}" if rule[0] == "leak" else rule[1]
                    key = (name, 1 + text[:text.index(rule_text(rule))].count("\n"))
                    blocks, size = matched.get(key, (0, 0))
                    matched[key] = (blocks + group["blocks"], size + group["bytes"])
                found = self.json_of("leaks", path, "--limit", "0", "--suppressions",
                                     self.file(text))
                left = [{**group, "group": i + 1} for i, group in enumerate(left)]
                self.assertEqual(found["groups"], left, (seed, round_number, text))
                self.assertEqual({(r["rule"], r["line"]): (r["blocks"], r["bytes"])
                                  for r in found["suppressions"]}, matched, text)


if __name__ == "__main__":
    support.main()
