# SPDX-License-Identifier: MIT
"""A query writes its rows as a database of SQLite or as lines of JSON, by the rules of all outputs"""

import json
import os
import random
import sqlite3
import stat
import subprocess

import oracle
import support
from support import Script, TestCase, USAGE, run


class Database(TestCase):
    def trace(self):
        return self.write(oracle.random_script(random.Random(1), 60))

    def open(self, path):
        database = sqlite3.connect(path)
        self.addCleanup(database.close)
        return database

    def test_rows(self):
        path = self.trace()
        for end in (".db", ".sqlite", ".sqlite3"):
            output = self.path("out" + end)
            sql = "SELECT number, address, size, action, position, time_end, size / 3.0 AS third, " \
                  "x'00ff' AS bytes FROM events"
            self.assertEqual(self.run_ok("query", "-o", output, sql, path).text, "")
            self.assertEqual(stat.S_IMODE(os.stat(output).st_mode), 0o600)
            database = self.open(output)
            self.assertEqual(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
            self.assertEqual([row[1:3] for row in database.execute("PRAGMA table_info(result)")][:5],
                             [("number", "INTEGER"), ("address", "ADDRESS"), ("size", "INTEGER"),
                              ("action", "TEXT"), ("position", "POSITION")])
            rows = database.execute("SELECT * FROM result").fetchall()
            there = self.run_ok("query", "-f", "json", sql, path).json["rows"]
            self.assertEqual(len(rows), 60)
            for row, record in zip(rows, there):
                self.assertEqual(row[0], record["number"])
                self.assertEqual(row[1], record["address"] and int(record["address"], 16))
                self.assertEqual(row[2:4], (record["size"], record["action"]))
                self.assertEqual(oracle.position(row[4]), oracle.position(record["position"]))
                self.assertEqual(oracle.position(row[5]), oracle.position(record["time_end"]))
                self.assertEqual(row[7], b"\0\xff")
            self.assertEqual(database.execute("SELECT * FROM uncertain").fetchall(), [])

    def test_memory(self):
        """Rows go to the file as they come: twenty times as many need no more memory."""
        resident = []
        for count in (20000, 400000):
            path = self.write(Script().basics().add("churn", count=count, slots=50, position="2:0")
                              .close(), f"{count}.ttd")
            command = [support.ANALYZER, "query", "-o", self.path(f"{count}.db"),
                       "SELECT number, position, address, size FROM events", path]
            # Not a served child, which would have the memory of its server.
            with subprocess.Popen(command) as process:
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            rows = self.open(self.path(f"{count}.db")).execute("SELECT count(*) FROM result").fetchone()
            self.assertEqual(rows, (count,))
            resident.append(usage.ru_maxrss)
        self.assertGreater(os.path.getsize(self.path("400000.db")), 16 << 20)
        if os.environ.get("SANITIZE", "none") == "none":
            self.assertLess(resident[1], resident[0] + (8 << 10), resident)

    def test_pipe(self):
        """An output that has no temporary file gets a database too."""
        fifo = self.path("pipe.db")
        os.mkfifo(fifo)
        with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE) as reader:
            self.run_ok("query", "-o", fifo, "SELECT number FROM events", self.trace())
            data = reader.communicate()[0]
        copy = self.path("copy.db")
        with open(copy, "wb") as file:
            file.write(data)
        self.assertEqual(self.open(copy).execute("SELECT count(*) FROM result").fetchone(), (60,))

    def test_names(self):
        """Columns of the same name, which a table does not have, and names of any characters."""
        output = self.path("out.db")
        self.run_ok("query", "-o", output, "SELECT 1 AS a, 2 AS A, 3 AS a_2, 4 AS a, "
                    "5 AS \"x\"\"); DROP TABLE result; --\", 6 AS ''", self.trace())
        row = self.open(output).execute("SELECT * FROM result")
        names = [column[0] for column in row.description]
        self.assertEqual(len({name.lower() for name in names}), 6)
        self.assertEqual(names[0], "a")
        self.assertEqual(names[4], 'x"); DROP TABLE result; --')
        self.assertEqual(row.fetchall(), [(1, 2, 3, 4, 5, 6)])

    def test_uncertain(self):
        script = Script().basics()
        script.alloc(0x1000, 8)
        path = self.write(script.abandon())
        output = self.path("out.db")
        result = self.run_ok("query", "-o", output, "SELECT * FROM events", path)
        reasons = [row[0] for row in self.open(output).execute("SELECT reason FROM uncertain")]
        self.assertEqual(len(reasons), 1)
        self.assertIn("was not closed cleanly", reasons[0])
        self.assertIn(f"uncertain: {reasons[0]}", result.errors)

    def test_only_whole(self):
        """A failure leaves the file that was there, and no other."""
        path = self.trace()
        output = self.path("out.db")
        with open(output, "w", encoding="ascii") as file:
            file.write("before")
        for sql in ("SELECT * FROM nothing", "SELECT pos('#1'), pos('mark:none')", ".schema",
                    "SELECT abs(-9223372036854775808)"):
            for form in ("text", "json", "csv"):
                result = run("query", "-o", output, "-f", form, sql, path)
                self.assertNotEqual(result.status, 0, (sql, form))
        with open(output, encoding="ascii") as file:
            self.assertEqual(file.read(), "before")
        self.assertEqual(sorted(os.listdir(self.folder)), ["out.db", "trace.ttd"])
        self.run_ok("query", "-f", "json", "-o", output, "SELECT 1 AS n", path)
        with open(output, encoding="ascii") as file:
            self.assertTrue(file.read().startswith("{"))


class Lines(TestCase):
    def lines(self, path, sql, *options, name="out.jsonl"):
        output = self.path(name)
        result = self.run_ok("query", "-o", output, *options, sql, path)
        with open(output, encoding="utf-8") as file:
            return [json.loads(line) for line in file], result.errors

    def test_rows(self):
        path = self.write(oracle.random_script(random.Random(5), 40))
        for table in ("events", "blocks", "stacks", "marks"):
            rows = self.run_ok("query", "-f", "json", f"SELECT * FROM {table}", path).json["rows"]
            for options in ([], ["-f", "json"]):
                for name in ("out.jsonl", "out.ndjson"):
                    found, _ = self.lines(path, f"SELECT * FROM {table}", *options, name=name)
                    self.assertEqual(found, rows)

    def test_types(self):
        """A column has one type in all rows, whatever the sizes are."""
        script = Script().basics()
        for number, size in enumerate((0, 1 << 31, (1 << 53) + 1, 1 << 63, (1 << 64) - 1)):
            script.alloc(0xfffffffffffff000 - number * 0x100, size, flags=size)
        script.free(0xfffffffffffff000)
        script.add("symbol", module=2, offset=0x300, frames="123@%22%0a,@5")
        path = self.write(script.close())
        for table in ("events", "blocks", "stacks", "live", "frames"):
            rows, _ = self.lines(path, f"SELECT * FROM {table}")
            self.assertTrue(rows)
            for column in rows[0]:
                kinds = {"number" if isinstance(row[column], (int, float)) else type(row[column])
                         for row in rows if row[column] is not None}
                self.assertLessEqual(len(kinds), 1, (table, column))
            text = self.run_ok("query", "-f", "csv", f"SELECT * FROM {table}", path).csv
            for row, line in zip(rows, text, strict=True):
                for column, value in row.items():
                    if isinstance(value, (int, float)):
                        self.assertEqual(float(line[column]), float(value))
                    else:
                        self.assertIsInstance(line[column], str)

    def test_uncertain(self):
        script = Script().basics()
        script.alloc(0x1000, 8)
        path = self.write(script.abandon())
        rows, errors = self.lines(path, "SELECT * FROM events")
        self.assertEqual(len(rows), 1)
        self.assertIn("uncertain: ", errors)

    def test_wrong_use(self):
        path = self.write(Script().basics().close())
        result = run("query", "-o", self.path("out.jsonl"), ".schema", path)
        self.assertEqual(result.status, USAGE)
        rows, _ = self.lines(path, "SELECT 1 AS n WHERE 0")
        self.assertEqual(rows, [])


if __name__ == "__main__":
    support.main()
