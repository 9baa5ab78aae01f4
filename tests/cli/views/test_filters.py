# SPDX-License-Identifier: MIT
"""A filter that names nothing in the trace does not pass for a clean result"""

import support
from support import Script, TestCase, run

COMMANDS = ("leaks", "state", "peak", "diff", "diff --changes", "hot", "temporary", "lifetimes",
            "timeline", "moves", "errors")


class Filters(TestCase):
    def setUp(self):
        super().setUp()
        script = Script().basics()
        script.alloc(0x1000, 100)
        self.trace = self.write(script.close())

    def test_patterns(self):
        for command in COMMANDS:
            for option in ("--include", "--exclude"):
                for form in ("text", "json", "csv"):
                    for pattern, is_known in (("TYPO", False), ("main", True), ("g.h", True),
                                              ("libwork", True), ("*demo", True), ("M*n", False),
                                              ("g(int)", True), ("_Z1gi", False)):
                        result = self.run_ok(*command.split(), option, pattern, "-f", form,
                                             self.trace)
                        said = (f"{self.trace}: no function, file or module has the name of "
                                f"{option} '{pattern}'")
                        self.assertEqual("warning: " + said in result.errors, not is_known,
                                         (command, option, pattern, result.errors))

    def test_exit_status(self):
        """Also where nothing is live, or wrong: what was asked for cannot be said."""
        empty = self.write(Script().basics().close(), "empty")
        for path in (self.trace, empty):
            for command in ("leaks", "errors"):
                for option in ("--include", "--exclude"):
                    result = run(command, option, "TYPO", "--error-exitcode", "7", path)
                    self.assertEqual((result.status, result.text), (support.USAGE, ""))
                    self.assertIn(f"{option} 'TYPO'", result.errors)
                    self.assertNotIn("warning", result.errors)
                result = run(command, "--include", "main", "--include", "TYPO",
                             "--error-exitcode", "7", path)
                self.assertEqual(result.status, support.USAGE)
        result = run("leaks", "--include", "main", "--error-exitcode", "7", self.trace)
        self.assertEqual((result.status, result.errors), (7, ""))
        result = run("leaks", "--exclude", "g(int)", "--error-exitcode", "7", self.trace)
        self.assertEqual((result.status, result.errors), (0, ""))

    def test_two_traces(self):
        """What only one of them has is told of the other."""
        script = Script()
        script.add("module", path="/opt/other", bias=0, begin=0, end=4096, position="0:0")
        script.add("thread", os=1, position="0:0").add("heap", name="h")
        script.alloc(0x1000, 1, stack=0)
        other = self.write(script.close(), "other")
        result = self.run_ok("diff", "--include", "other", self.trace, other)
        self.assertIn(f"{self.trace}: no function", result.errors)
        self.assertNotIn(f"{other}: no function", result.errors)

    def test_events(self):
        for option, argument, is_known in (
                ("--thread", "1", True), ("--thread", "2", True), ("--thread", "9", False),
                ("--thread", "os:1001", True), ("--thread", "os:1", False),
                ("--heap", "private", True), ("--heap", "0xb00000", True), ("--heap", "0", True),
                ("--heap", "publik", False), ("--heap", "0xb00001", False),
                ("--stack", "main", True), ("--stack", "libwork", True), ("--stack", "#4", True),
                ("--stack", "#0", True), ("--stack", "#5", False),
                ("--stack", "4", True), ("--stack", "5", False), ("--heap", "#1", True),
                ("--heap", "#9", False),
                ("--stack", "#99999999999", False), ("--stack", "TYPO", False)):
            for more in ((), ("--size", "9999"), ("--stacks",)):
                result = self.run_ok("events", option, argument, *more, self.trace)
                warning = f"warning: {self.trace}: nothing in the trace matches {option}\n"
                self.assertEqual(warning in result.errors, not is_known, (option, argument, more))


support.main()
