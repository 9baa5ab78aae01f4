# SPDX-License-Identifier: MIT
"""A query obeys --timeout and --max-memory inside of one long step as well"""

import collections
import csv
import io
import os
import subprocess
import unittest

import support
from support import ANALYZER, Script, TestCase

LONG = "printf('%.*c', 20000000, 'a')"
HALF = "printf('%.*c', 10000000, 'a') || 'b'"
ENDLESS = "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c) "


class Limits(TestCase):
    def start(self, *arguments, env=None):
        """A process of its own, which a limit is for. One that does not end fails the test."""
        return subprocess.run([ANALYZER, "query", *arguments], capture_output=True, text=True,
                              timeout=60, check=False, env=env)

    def churn(self):
        script = Script().basics()
        script.add("churn", count=1000000, slots=100, position="2:0")
        return self.write(script.close())

    def test_deadline(self):
        """Without the check inside of a step, none of these ends for minutes."""
        path = self.churn()
        for sql in (
                # One call of a function of SQLite, of quadratic time.
                f"SELECT instr({LONG}, {HALF})", f"SELECT length(replace({LONG}, {HALF}, 'x'))",
                # Each row that SQLite asks for takes a reading of the whole trace.
                "SELECT count(*) FROM events a JOIN events b ON b.thread = a.number + 5",
                # So does each of these tables.
                "SELECT count(*) FROM events e JOIN live('#' || (1000000 - e.number)) l",
                # A check of the whole trace at the end, for certainty.
                "SELECT count(*) FROM events a JOIN events b ON b.number = a.number",
                "SELECT count(*) FROM events a, events b, events c",
                ENDLESS + "SELECT count(*) FROM c"):
            with self.subTest(sql):
                output = self.path("out.csv")
                result = self.start("--timeout", "1", "-f", "csv", "-o", output, "--no-index", sql,
                                    path)
                self.assertEqual(result.returncode, support.INTERNAL, result.stderr)
                self.assertIn("the time of --timeout is over", result.stderr)
                # Neither a part of the result is left nor a temporary file.
                self.assertEqual([name for name in os.listdir(self.folder)
                                  if name.startswith("out")], [])

    @unittest.skipUnless(os.environ["SANITIZE"] == "none", "a sanitizer takes memory of its own")
    def test_memory(self):
        path = self.churn()
        events = "events a, events b"
        for sql in ("SELECT length(randomblob(90000000))",
                    "SELECT length(zeroblob(90000000) || 'x')",
                    "SELECT length(printf('%90000000d', 1))",
                    "SELECT length(replace(hex(zeroblob(1000000)), '0', hex(zeroblob(40))))",
                    "SELECT length(group_concat(hex(zeroblob(9000)))) FROM events "
                    "WHERE number < 20000",
                    f"SELECT max(hex(zeroblob(40000000))) OVER () FROM {events}"):
            with self.subTest(sql):
                result = self.start("--max-memory", "64M", "--no-index", sql, path)
                self.assertEqual(result.returncode, support.INTERNAL, result.stderr)
                self.assertIn("needs more memory than 64 MB", result.stderr)
                self.assertEqual(result.stdout, "")

    def test_files(self):
        """What is sorted is in files, which have a limit too."""
        path = self.churn()
        folder = self.path("temporary")
        os.mkdir(folder)
        for sql in (ENDLESS + "SELECT hex(randomblob(400)) FROM c ORDER BY 1",
                    "SELECT count(DISTINCT hex(randomblob(400))) FROM events",
                    "SELECT hex(randomblob(400)) AS k, count(*) FROM events GROUP BY k"):
            with self.subTest(sql):
                result = self.start("--max-memory", "24M", "--no-index", sql, path,
                                    env={**os.environ, "SQLITE_TMPDIR": folder})
                self.assertEqual(result.returncode, support.INTERNAL, result.stderr)
                self.assertIn("needs more room in temporary files than goes with memory of 24 MB",
                              result.stderr)
                self.assertEqual((result.stdout, os.listdir(folder)), ("", []))

    @unittest.skipUnless(os.environ["SANITIZE"] == "none", "a sanitizer takes memory of its own")
    def test_groups(self):
        """A million events are grouped in less memory than they take: 24 MB, 16 of which are the
        program's own."""
        path = self.churn()
        expected = collections.Counter(
            int(row["size"]) for row in csv.DictReader(io.StringIO(
                self.run_ok("export", "csv", path).text)) if row["action"] == "Alloc")
        self.assertGreater(sum(expected.values()), 400000)
        result = self.start("--max-memory", "24M", "-f", "csv", "SELECT size, count(*) FROM events "
                            "WHERE action = 'Alloc' GROUP BY size", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual({int(size): int(count) for size, count in
                          (line.split(",") for line in result.stdout.splitlines()[1:])}, expected)

    def test_larger_than_a_value(self):
        result = self.start("SELECT zeroblob(200000000)", self.churn())
        self.assertEqual(result.returncode, support.INTERNAL)
        self.assertIn("too big", result.stderr)


if __name__ == "__main__":
    support.main()
