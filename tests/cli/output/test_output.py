# SPDX-License-Identifier: MIT
"""Common to all commands: usage, exit statuses, output files, terminals, untrusted names"""

import os
import re
import resource
import signal
import stat
import subprocess
import time

import support
from snapshot_support import SnapshotScript
from support import Script, TestCase, run

COMMANDS = ("info", "events", "leaks", "moves", "verify", "recover")
NASTY = "%1b]0;title%07%0a%e2%80%aeevil%ff%ed%a0%80%e0%80%af%22,%c3%a9%5c"


class Usage(TestCase):
    def test_help(self):
        result = self.run_ok("--help")
        for command in COMMANDS:
            self.assertIn(f"\n  {command} ", result.text)
            help_text = self.run_ok(command, "--help").text
            self.assertTrue(help_text.startswith(f"Usage: ttdanalyze {command} "))
            self.assertEqual(self.run_ok("help", command).text, help_text)
            self.assertEqual(self.run_ok(command, "-h").text, help_text)
            for line in help_text.splitlines():
                self.assertLessEqual(len(line), 90, line)
        self.assertEqual(self.run_ok("help").text, result.text)

    def test_version(self):
        self.assertRegex(self.run_ok("--version").text, r"^ttdanalyze \d+\.\d+\.\d+\n$")
        self.assertRegex(self.run_ok("leaks", "--version").text, r"^ttdanalyze \d+\.\d+\.\d+\n$")

    def test_a_full_disk(self):
        for arguments in (["--help"], ["--version"], ["leaks", "--help"], ["leaks", "-V"]):
            with open("/dev/full", "wb") as full:
                result = subprocess.run([support.ANALYZER, *arguments], stdout=full,
                                        stderr=subprocess.PIPE, text=True, timeout=60, check=False)
            self.assertEqual(result.returncode, support.INTERNAL)
            self.assertIn("standard output: No space left on device", result.stderr)

    def test_wrong_usage(self):
        path = self.write(Script().basics().close())
        for arguments in (["steal", path], ["help", "steal"], ["leaks"], ["leaks", path, path],
                          ["leaks", "--nonsense", path], ["leaks", "-x", path], ["leaks", "--at"],
                          ["leaks", "-f", "xml", path], ["leaks", "--limit", "x", path]):
            result = run(*arguments)
            self.assertEqual(result.status, support.USAGE, arguments)
            self.assertIn("try 'ttdanalyze ", result.errors)
            self.assertEqual(result.raw, b"")

    def test_options_that_are_not_understood(self):
        for arguments, said in (
                (["-xf", "json"], "unknown option '-x'"), (["-x"], "unknown option '-x'"),
                (["--no-pager", "-xf", "json"], "unknown option '-x'"),
                (["--no-pager=3"], "option '--no-pager' takes no argument"),
                (["--help=3"], "option '--help' takes no argument"),
                (["--such"], "unknown or ambiguous option '--such'"),
                (["--no"], "unknown or ambiguous option '--no'"),
                (["-f"], "option '-f' needs an argument"),
                (["--limit"], "option '--limit' needs an argument")):
            result = run("leaks", *arguments)
            self.assertEqual((result.status, result.text), (support.USAGE, ""), arguments)
            self.assertIn(f"ttdanalyze: leaks: {said}\n", result.errors, arguments)

    def test_options_after_trace(self):
        path = self.write(Script().basics().close())
        self.assertIn("events", self.run_ok("info", path, "--format=json").json)
        self.assertIn("events", self.run_ok("info", "--form", "json", "--", path).json)


class Files(TestCase):
    def setUp(self):
        super().setUp()
        script = Script().basics()
        script.alloc(0x1000, 1)
        self.trace = self.write(script.close())

    def test_written(self):
        target = self.path("report")
        with open(target, "w", encoding="utf-8") as file:
            file.write("old")
        os.chmod(target, 0o644)
        self.assertEqual(self.run_ok("leaks", "-o", target, self.trace).raw, b"")
        self.assertEqual(stat.S_IMODE(os.stat(target).st_mode), 0o600)
        for command in ("leaks", "info", "events", "moves", "verify"):
            self.run_ok(command, "-o", target, self.trace)
            with open(target, encoding="utf-8") as file:
                self.assertEqual(file.read(), self.run_ok(command, self.trace).text)
        self.assertEqual(sorted(os.listdir(self.folder)), ["report", "trace.ttd"])

    def test_not_written_on_failure(self):
        target = self.path("report")
        bad = self.path("bad")
        with open(bad, "wb") as file:
            file.write(b"nonsense" * 100)
        self.assertEqual(run("leaks", "-o", target, bad).status, support.OPEN)
        self.assertEqual(run("verify", "-o", target, bad).status, support.OPEN)
        self.assertEqual(sorted(os.listdir(self.folder)), ["bad", "trace.ttd"])
        result = run("leaks", "-o", self.path("no/report"), self.trace)
        self.assertEqual(result.status, support.INTERNAL)
        self.assertIn("No such file", result.errors)

    def test_trace_is_not_overwritten(self):
        with open(self.trace, "rb") as file:
            before = file.read()
        link = self.path("link")
        os.link(self.trace, link)
        for target in (self.trace, link):
            result = run("leaks", "-o", target, self.trace)
            self.assertEqual(result.status, support.USAGE)
            self.assertIn("the trace itself", result.errors)
        with open(self.trace, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_special_files(self):
        self.run_ok("leaks", "-o", "/dev/null", self.trace)
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        self.assertNotEqual(self.run_ok("leaks", "-o", "-", self.trace).raw, b"")

    def test_failing_output(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

        target = self.path("report")
        for command in ("leaks", "info", "events", "moves", "verify"):
            result = run(command, "-o", target, self.trace, preexec_fn=limit)
            self.assertEqual(result.status, support.INTERNAL, command)
            self.assertIn(f"{target}: File too large", result.errors)
            self.assertEqual(os.listdir(self.folder), ["trace.ttd"])
        result = run("recover", "-o", target, self.trace, preexec_fn=limit)
        self.assertEqual((result.status, os.listdir(self.folder)),
                         (support.INTERNAL, ["trace.ttd"]))
        self.assertIn(f"{target}: File too large", result.errors)

    def test_broken_pipe_is_quiet(self):
        script = Script().basics()
        for i in range(5000):
            script.alloc(0x1000 + i, 1)
        path = self.write(script.close(), "long")
        with subprocess.Popen([support.ANALYZER, "events", path], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            process.stdout.readline()
            process.stdout.close()
            self.assertEqual(process.stderr.read(), b"")
            process.wait()


class Limits(TestCase):
    """A list in CSV has no place to say that it leaves records out: a warning does."""

    def test_what_csv_leaves_out_is_said(self):
        script = SnapshotScript().basics()
        for stack in (1, 2, 3):
            for address in (0x20000 + 0x1000 * stack, 0x8000000 * stack):
                script.alloc(address, 16, stack=stack)
            script.realloc(0x8000000 * stack, 0x8000000 * stack + 0x100, 32, stack=stack)
            script.free(0x100 + stack, stack=stack)
            script.alloc(0x9000000, 8)
            script.free(0x9000000)
        script.snapshot(*((1, 8 * stack, 0x20000 + 0x1000 * stack) for stack in (1, 2, 3)),
                        (1, 0x100, 0x21000), (1, 0x108, 0x21000))
        trace = self.write(script.close())
        for command in ("hot", "temporary", "moves", "leaks", "state", "errors", "fragmentation",
                        "diff", "retained", "hot --tree top-down", "diff --tree bottom-up",
                        "history --address 0x9000000", "find --pointer-to 0x21000"):
            name, *options = command.split()
            rows = {}
            every = "9" if name == "history" else "0"
            for limit in (every, "1"):
                result = self.run_ok(name, *options, "-f", "csv", "--limit", limit, trace)
                rows[limit] = len(result.text.splitlines())
                with self.subTest(command=command, limit=limit):
                    said = re.search(r"(\d+) more records are not listed", result.errors)
                    if limit == every:
                        self.assertIsNone(said)
                        continue
                    self.assertGreater(rows[every], rows["1"])
                    self.assertEqual(int(said[1]), rows[every] - rows["1"])
                self.assertNotIn("more records",
                                 self.run_ok(name, *options, "--limit", limit, trace).errors)


class Terminal(TestCase):
    def setUp(self):
        super().setUp()
        script = Script().basics()
        script.alloc(0x1000, 1)
        self.trace = self.write(script.close())

    def test_colors(self):
        status, seen = self.on_terminal("leaks", "--no-pager", self.trace)
        self.assertEqual(status, 0)
        self.assertIn("\033[1m", seen)
        for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            _, seen = self.on_terminal("leaks", "--no-pager", self.trace, **environment)
            self.assertNotIn("\033", seen)
        self.assertNotIn("\033", self.run_ok("leaks", self.trace).text)

    def test_pager(self):
        status, seen = self.on_terminal("leaks", self.trace, PAGER="sed 's/^/paged: /'")
        self.assertEqual(status, 0)
        self.assertIn("paged: ", seen)
        for environment in ({"PAGER": "cat"}, {"PAGER": ""}):
            _, seen = self.on_terminal("leaks", self.trace, **environment)
            self.assertIn("Never released", seen)
        _, seen = self.on_terminal("leaks", "--no-pager", self.trace, PAGER="sed 's/^/paged: /'")
        self.assertNotIn("paged: ", seen)

    def test_pager_that_is_left(self):
        status, seen = self.on_terminal("leaks", "--error-exitcode", "9", self.trace, PAGER="true")
        self.assertEqual((status, seen), (9, ""))

    def test_pager_is_for_terminals(self):
        text = self.run_ok("leaks", self.trace, env={"PAGER": "sed 's/^/paged: /'"}).text
        self.assertNotIn("paged", text)


class Untrusted(TestCase):
    def script(self):
        script = Script()
        script.add("module", path=NASTY, bias=0, begin=0, end=4096, position="0:0")
        script.add("thread", os=1, name=NASTY, position="0:0")
        script.add("heap", name=NASTY)
        script.add("stack", module=1, offset=0x10)
        script.add("symbol", module=1, offset=0x10, frames=f"{NASTY.replace(',', '%2c')}@{NASTY.replace(',', '%2c')}@1")
        script.add("metadata", key=NASTY, value="%00%1f%20%7e%7f")
        script.alloc(0x1000, 1, stack=1)
        script.realloc(0x1000, 0x2000, 2, stack=1)
        return script.close()

    def test_names(self):
        path = self.write(self.script())
        for command in ("info", "leaks", "moves", ("events", "--stacks")):
            command = (command,) if isinstance(command, str) else command
            for form in ("text", "csv", "json"):
                raw = self.run_ok(*command, "-f", form, path).raw
                text = raw.decode()  # valid UTF-8
                for c in text:
                    self.assertTrue(c == "\n" or (ord(c) >= 32 and not 0x7f <= ord(c) < 0xa0
                                                  and c != "\u202e"), (command, form, repr(c)))
        function = self.json_of("leaks", path)["groups"][0]["stack"][0]["function"]
        self.assertEqual(function, '\x1b]0;title\x07\n\u202eevil' + 7 * '\ufffd' + '",\u00e9\\')
        text = self.run_ok("leaks", path).text
        self.assertIn('\\x1b]0;title\\x07\\x0a\\xe2\\x80\\xaeevil\\xff\\xed\\xa0\\x80\\xe0\\x80\\xaf",\u00e9\\\\', text)
        self.assertIn("\\x00\\x1f ~\\x7f\n", self.run_ok("info", path).text)
        self.assertEqual(self.json_of("info", path)["metadata"][0]["value"], "\0\x1f ~\x7f")
        rows = self.run_ok("leaks", "-f", "csv", path).csv
        self.assertEqual(rows[0]["stack"],
                         '\\x1b]0\\x3btitle\\x07\\x0a\\xe2\\x80\\xaeevil\\xff\\xed\\xa0\\x80\\xe0\\x80\\xaf",\u00e9\\\\')

    def test_file_name_in_messages(self):
        result = run("leaks", self.path("a\033[31mb"))
        self.assertEqual(result.status, support.OPEN)
        self.assertNotIn("\033", result.errors)
        self.assertIn("a\\x1b[31mb", result.errors)

    def test_demangling(self):
        names = {"_Z1fv": "f()", "_ZN3std2io5Write9write_fmt17h0123456789abcdefE":
                 "std::io::Write::write_fmt", "_RNvC6_123foo3bar": "123foo::bar",
                 "plain": "plain", "_Znonsense": "_Znonsense", "_ZN": "_ZN", "f": "f",
                 "_Z" + "9" * 50: "_Z" + "9" * 50}
        script = Script()
        script.add("module", path="/m", bias=0, begin=0, end=4096, position="0:0")
        script.add("thread", os=1, position="0:0")
        script.add("heap", name="malloc")
        for i, name in enumerate(names):
            script.add("stack", module=1, offset=i + 1)
            script.add("symbol", module=1, offset=i + 1, frames=name)
            script.alloc(0x1000 + i, 100 - i, stack=i + 1)
        groups = self.json_of("leaks", self.write(script.close()))["groups"]
        self.assertEqual([g["stack"][0]["function"] for g in groups], list(names.values()))

    def test_name_that_explodes(self):
        """Each substitution doubles the text: it is shortened from within, and takes no time."""
        digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        name = "_Z1fSt4pairIiiE" + "".join(f"St4pairIS{d}_S{d}_E" for d in digits)
        script = Script()
        script.add("module", path="/m", bias=0, begin=0, end=4096, position="0:0")
        script.add("thread", os=1, position="0:0")
        script.add("heap", name="malloc")
        script.add("stack", module=1, offset=1)
        script.add("symbol", module=1, offset=1, frames=name)
        script.alloc(0x1000, 1, stack=1)
        begin = time.monotonic()
        groups = self.json_of("leaks", self.write(script.close()))["groups"]
        self.assertLess(time.monotonic() - begin, 5)
        function = groups[0]["stack"][0]["function"]
        self.assertTrue(function.startswith("f(std::pair<"), function[:100])
        self.assertLess(len(function), 300000)


if __name__ == "__main__":
    support.main()
