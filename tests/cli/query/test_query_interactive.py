# SPDX-License-Identifier: MIT
"""Queries that are typed one after the other, on a terminal and from a pipe"""

import os
import pty
import select
import subprocess
import time

import support
from support import ANALYZER, Script, TestCase, run

PROMPT, MORE = "query> ", "   ...> "


class Terminal:
    """A session on a pseudo-terminal."""

    def __init__(self, test, *arguments, **environment):
        self.test = test
        try:
            self.master, slave = pty.openpty()
        except OSError as error:
            test.skipTest(f"no pseudo-terminals here: {error}")
        settings = {"PATH": os.environ["PATH"], "TERM": "xterm", **environment}
        # A terminal of its own, whose keys reach the program and not the test.
        self.process = subprocess.Popen(
            ["setsid", "-c", "-w", ANALYZER, "query", "--interactive", *arguments], stdin=slave,
            stdout=slave, stderr=slave, env=settings)
        os.close(slave)
        test.addCleanup(self.end)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)

    def read(self, expected, key=None):
        """The output until `expected` is at its end; a key is pressed until then."""
        seen = ""
        deadline = time.monotonic() + 60
        while not seen.endswith(expected):
            self.test.assertLess(time.monotonic(), deadline, seen)
            if select.select([self.master], [], [], 0.3)[0]:
                seen += os.read(self.master, 65536).decode()
            elif key:
                os.write(self.master, key)
        return seen

    def type(self, text, expected=PROMPT):
        os.write(self.master, text.encode() + b"\n")
        return self.read(expected)


class Interactive(TestCase):
    def trace(self, name="trace.ttd", count=5):
        script = Script().basics()
        for i in range(count):
            script.alloc(0x1000 * (i + 1), 8)
        return self.write(script.close(), name)

    def test_terminal(self):
        home = self.path("home")
        os.mkdir(home)
        terminal = Terminal(self, self.trace(), HOME=home)
        terminal.read(PROMPT)
        # Several lines.
        self.assertNotIn("5", terminal.type("SELECT count(*) AS n", MORE))
        self.assertIn("5", terminal.type("FROM events;"))
        # Errors do not end it.
        self.assertIn("no such table: absent", terminal.type("SELECT * FROM absent;"))
        self.assertIn("not authorized", terminal.type("CREATE TABLE t(x);"))
        self.assertIn("one SELECT", terminal.type("SELECT 1; SELECT 2;"))
        self.assertIn("invalid argument", terminal.type("SELECT * FROM live('500%');"))
        self.assertIn("5", terminal.type("SELECT count(*) AS n FROM live;"))
        # A key drops the typed text, and ends a query; not the program.
        os.write(terminal.master, b"SELECT x")
        terminal.read("SELECT x")
        terminal.read(PROMPT, key=b"\x03")
        endless = "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c) "
        os.write(terminal.master, endless.encode() + b"\n")
        terminal.read(MORE)
        os.write(terminal.master, b"SELECT count(*) FROM c;\n")
        self.assertIn("interrupted", terminal.read(PROMPT, key=b"\x03"))
        # Texts of others.
        seen = terminal.type("SELECT char(27) || '[31m' || char(8238) AS x;")
        self.assertIn("\\x1b[31m", seen)
        self.assertNotIn("\x1b[31m", seen)
        self.assertIn(".schema", terminal.type(".help"))
        self.assertIn("CREATE TABLE events", terminal.type(".schema"))
        self.assertIn("no such command: .other", terminal.type(".other"))
        os.write(terminal.master, b".quit\n")
        self.assertEqual(terminal.process.wait(60), 0)
        # Nothing that was typed is kept.
        self.assertEqual(os.listdir(home), [])
        self.assertEqual(set(os.listdir(self.folder)), {"home", "trace.ttd"})

    def test_pipe(self):
        """Answers only: neither prompts nor the typed text."""
        path = self.trace()
        result = run("query", "--interactive", path,
                     input=b"SELECT 1 AS a;\n.none\n;\n\nSELECT count(*)\nAS b FROM events;\nSELECT 3 AS c")
        self.assertEqual(result.status, 0)
        self.assertEqual(result.text.split(), ["a", "1", "b", "5", "c", "3"])
        self.assertIn("no such command: .none", result.errors)
        lines = run("query", "--interactive", "-f", "json", path, input=b"SELECT 1 AS a;").json
        self.assertEqual(lines["rows"], [{"a": 1}])
        long = b"SELECT '" + b"x" * 120000 + b"';\nSELECT 7 AS d;\n"
        result = run("query", "--interactive", path, input=long)
        self.assertIn("too long", result.errors)
        self.assertEqual(result.text.split(), ["d", "7"])

    def test_certainty(self):
        """Each answer has its own reasons: none of the query before, and all of its own."""
        script = Script().basics()
        script.alloc(0x1000, 8)
        path = self.write(script.abandon())
        reason = "the trace was not closed cleanly"
        for sql in ("SELECT count(*) FROM live;\n", "SELECT site(stack_id) FROM stacks;\n",
                    "SELECT pos('50%');\n"):
            once = run("query", sql, path).text
            text = run("query", "--interactive", path, input=(2 * (sql + "SELECT 1;\n")).encode()).text
            self.assertEqual(text.count("Uncertain"), 2 * once.count("Uncertain"), text)
            self.assertEqual(once.count("Uncertain"), 2 if "%" in sql else 1, once)
        self.assertIn(reason, run("query", "--interactive", path,
                                  input=b"SELECT count(*) FROM live;").text)

    def test_several_traces(self):
        paths = [self.trace("a.bin", 2), self.trace("b.bin", 3)]
        result = run("query", "--interactive", *paths,
                     input=b"SELECT trace, count(*) AS n FROM events GROUP BY trace;")
        self.assertEqual(result.text.split(), ["trace", "n", "a", "2", "b", "3"])

    def test_command_line(self):
        path = self.trace()
        for arguments in (("-f", "csv", path), ("-o", self.path("out"), path), [path] * 11):
            self.assertEqual(run("query", "--interactive", *arguments).status, support.USAGE)
        self.assertEqual(os.listdir(self.folder), ["trace.ttd"])


if __name__ == "__main__":
    support.main()
