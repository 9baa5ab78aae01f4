# SPDX-License-Identifier: MIT
"""Suppressions and baselines of ttdanalyze leaks and errors"""

import random
import re

import support
from support import Script, TestCase, run

NAMES = {"_Z1gi": "g(int)", "_ZN1f3runEv": "f::run()", "main": "main", "g_malloc": "g_malloc",
         "worker": "worker", "a*b": "a*b", "lib$x": "lib$x"}
FUNCTIONS = {1: "malloc", 2: "calloc", 16: "_Znwm", 20: "_Znam"}


def api_of(stack):
    """One function for each stack, so that it is known of groups."""
    return list(FUNCTIONS)[stack % len(FUNCTIONS)]


def random_script(chance):
    script = Script().add("thread", os=1, name="main", position="0:0").add("heap", name="malloc")
    for number, path in enumerate(("/opt/app/demo", "/usr/lib/libwork.so.1")):
        begin = (number + 1) << 24
        script.add("module", path=path, bias=begin, begin=begin, end=begin + 0x10000,
                   position="0:0")
    for stack in range(30):
        script.add("stack", parent=chance.randrange(stack + 1), module=chance.randrange(3),
                   offset=0x100 * chance.randrange(1, 9))
    for module in (1, 2):
        for offset in range(1, 8):
            frames = [chance.choice(list(NAMES))
                      + chance.choice(["", f"@src/{chance.choice('ab')}.c@{chance.randrange(1, 4)}"])
                      for _ in range(chance.choice([1, 1, 2]))]
            script.add("symbol", module=module, offset=0x100 * offset, frames=",".join(frames))
    for number in range(40):
        stack = chance.randrange(31)
        script.event("Alloc", address=0x1000 * (number + 1), size=chance.randrange(1, 100),
                     stack=stack, api=api_of(stack))
    return script.close()


def glob(pattern, marks=True):
    parts = (".*" if c == "*" else "." if c == "?" and marks else re.escape(c) for c in pattern)
    return re.compile("".join(parts) + r"\Z", re.DOTALL)


def sanitizer_matches(pattern, frames):
    body = pattern[1:] if pattern[0] == "^" else "*" + pattern
    body = body[:-1] if body[-1] == "$" else body + "*"
    return any(glob(body, False).match(text) for frame in frames for text in
               (frame["function"], frame["raw"], frame["file"], frame["module"]) if text)


def line_matches(line, frame):
    kind, _, pattern = line.partition(":")
    if kind == "obj":
        return bool(glob(pattern).match(frame["module"] or "???"))
    if kind == "fun":
        return any(glob(pattern).match(frame[name] or "???") for name in ("raw", "function"))
    number = re.search(r":(\d+)$", pattern)
    if number:
        pattern = pattern[:number.start()]
        if frame["line"] != int(number[1]):
            return False
    return bool(frame["file"]) and any(glob(pattern).match(text) for text in
                                       (frame["file"], frame["file"].rpartition("/")[2]))


def valgrind_matches(lines, frames):
    """By all ways there are."""
    if not lines:
        return True
    if lines[0] == "...":
        return any(valgrind_matches(lines[1:], frames[i:]) for i in range(len(frames) + 1))
    return bool(frames) and line_matches(lines[0], frames[0]) and \
        valgrind_matches(lines[1:], frames[1:])


def frames_of(group):
    raw = {display: name for name, display in NAMES.items()}
    return [dict(frame, raw=raw.get(frame["function"])) for frame in group["stack"]]


def rule_matches(rule, group):
    if rule[0] == "leak":
        return sanitizer_matches(rule[1], frames_of(group))
    name = FUNCTIONS[api_of(group["stack_id"])]
    spelled = {"_Znwm": "operator new", "_Znam": "operator new[]"}.get(name, name)
    called = {"function": spelled, "raw": name, "module": "vgpreload_memcheck", "file": None,
              "line": None}
    return valgrind_matches(rule[2], [called] + frames_of(group))


def random_rule(chance, number):
    words = list(NAMES) + list(NAMES.values()) + ["work", "lib", "demo", "src", ".c", "m*n", "un",
                                                  "/opt/*/demo", "a.c", "main*", "*", "g?", "f::*"]
    if chance.random() < 0.4:
        return ("leak", chance.choice(["", "", "^"]) + chance.choice(words)
                + chance.choice(["", "", "$"]))
    lines = [chance.choice(["fun:malloc", "fun:*alloc", "fun:_Zn?m", "...", "fun:*"])]
    for _ in range(chance.randrange(4)):
        lines.append(chance.choice(
            ["...", "fun:" + chance.choice(words), "obj:*" + chance.choice(["work*", "demo", "???"]),
             "src:" + chance.choice(["a.c", "*b.c", "src/?.c", "a.c:2"]), "obj:*", "fun:*"]))
    return ("valgrind", f"rule {number}", lines)


def rule_text(rule):
    if rule[0] == "leak":
        return f"leak:{rule[1]}\n"
    return "{\n   " + "\n   ".join([rule[1], "Memcheck:Leak", *rule[2]]) + "\n}\n"


class Files(TestCase):
    def file(self, text, name="rules"):
        path = self.path(name)
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return path


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
        """What the C library calls __GI___strdup is strdup to others; and what is below main."""
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
                self.assertEqual(found["groups"], left, (seed, round_number, text))
                self.assertEqual({(r["rule"], r["line"]): (r["blocks"], r["bytes"])
                                  for r in found["suppressions"]}, matched, text)


class Errors(Files):
    def setUp(self):
        super().setUp()
        script = Script().basics()
        script.alloc(0x1000, 10)
        script.free(0x1000, stack=3)
        for _ in range(3):
            script.free(0x1000, stack=3)                       # double
        script.free(0x9000, stack=2)                           # never allocated
        script.alloc(0, 1 << 40, stack=4, result=0)            # failed
        self.script = script
        self.trace = self.write(script.close())

    def left(self, *arguments):
        found = self.json_of("errors", self.trace, *arguments)
        return [f["kind"] for f in found["findings"]], found

    def test_suppressions(self):
        every = ["double-free", "invalid-free", "failed-call"]
        for kind, lines, left in (
                ("Memcheck:Free", "fun:free\nobj:*/libwork.so", every[1:]),
                ("Memcheck:Free", "...\nfun:main", every[2:]),
                ("Memcheck:Leak", "...\nfun:main", every),
                ("Memcheck:FishyValue", "fun:malloc\n...\nfun:main", every[:2]),
                ("ttdanalyze:invalid-free", "...\nfun:main", ["double-free", "failed-call"])):
            rules = self.file("leak:*\n{\nname\n" + kind + "\n" + lines + "\n}\n")
            self.assertEqual(self.left("--suppressions", rules)[0], left, (kind, lines))
        rules = self.file("{\nname\nMemcheck:Free\n...\nobj:*work*\n}\n")
        found = self.left("--suppressions", rules)[1]
        self.assertEqual((found["total_findings"], found["total_calls"],
                          found["suppressed_findings"], found["suppressed_calls"]), (2, 2, 1, 3))
        self.assertEqual(found["suppressions"],
                         [{"findings": 1, "calls": 3, "rule": "name", "file": rules, "line": 1}])
        text = self.run_ok("errors", "--suppressions", rules, self.trace).text
        self.assertIn(f"Suppressed: 1 finding, 3 calls\n  1 finding, 3 calls by name ({rules}:1)\n",
                      text)
        rules = self.file("{\nall\nMemcheck:Free\n...\n}\n{\nfail\nMemcheck:FishyValue\n...\n}\n")
        self.assertEqual(run("errors", "--suppressions", rules, "--error-exitcode", "7",
                             self.trace).status, 0)

    def test_baseline(self):
        path = self.path("baseline")
        self.run_ok("errors", "--write-baseline", path, self.trace)
        found = self.left("--baseline", path)[1]
        self.assertEqual((found["findings"], found["known_findings"], found["known_calls"]),
                         ([], 3, 5))
        self.assertEqual(run("errors", "--baseline", path, "--error-exitcode", "7",
                             self.trace).status, 0)
        # The same call about a block that somebody else allocated is another finding.
        self.script.lines.pop()
        self.script.alloc(0x5000, 10, stack=4)
        self.script.free(0x5000, stack=3)
        self.script.free(0x5000, stack=3)
        self.trace = self.write(self.script.close(), "more")
        found = self.left("--baseline", path)[1]
        self.assertEqual([(f["kind"], f["block"]["address"]) for f in found["findings"]],
                         [("double-free", "0x5000")])
        self.assertEqual(run("errors", "--baseline", path, "--error-exitcode", "7",
                             self.trace).status, 7)


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
        # What is one frame with an inlined one here is two calls there.
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
        # What is written with a baseline is all of it again.
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
        """What is known where the C library has debug files is known where it has none."""
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
            self.assertEqual(found["groups"], new)


if __name__ == "__main__":
    support.main()
