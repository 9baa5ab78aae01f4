# SPDX-License-Identifier: MIT
"""`export` writes events as CSV, as lines of JSON and as a database: with the text of the query that
has the same rows, and as other programs read them"""

import csv
import io
import json
import os
import random
import sqlite3
import subprocess
import unittest

import oracle
import support
from support import Script, TestCase, USAGE, npm_package, run

ALL = "SELECT * FROM events"
HUGE = 2**63 + 12345
# Sums and types of each form of the same rows, by DuckDB.
DUCKDB = r"""
const {DuckDBInstance} = require(process.argv[1]);
(async () => {
    const connection = await (await DuckDBInstance.create(':memory:')).connect();
    const answers = [];
    for (const file of [`read_csv('${process.argv[2]}')`, `read_json('${process.argv[3]}')`]) {
        const columns = await connection.runAndReadAll(`DESCRIBE FROM ${file}`);
        const sums = await connection.runAndReadAll(`SELECT count(*), sum(size), sum(result),
            sum(wall_time_ns), sum(stack_id), count(address), count(DISTINCT position),
            count(*) FILTER (action = 'Free') FROM ${file}`);
        answers.push([columns.getRowsJson().map(row => row.slice(0, 2)), sums.getRowsJson()[0]]);
    }
    console.log(JSON.stringify(answers));
})();
"""


class Rows(TestCase):
    def export(self, form, path, *options):
        file = self.path("exported." + form)
        result = run("export", "-o", file, *options, form, path)
        self.assertEqual(result.status, 0, result.errors)
        with open(file, "rb") as opened:
            return opened.read(), result.errors

    def query(self, form, path):
        file = self.path({"csv": "query.csv", "jsonl": "query.jsonl", "sqlite": "query.db"}[form])
        options = ["-f", "csv"] if form == "csv" else []
        result = run("query", *options, "-o", file, ALL, path)
        self.assertEqual(result.status, 0, result.errors)
        with open(file, "rb") as opened:
            return opened.read(), result.errors

    def dump(self, name):
        database = sqlite3.connect(self.path(name))
        self.addCleanup(database.close)
        self.assertEqual(database.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        return list(database.iterdump()) + database.execute("PRAGMA user_version").fetchall()

    def large(self):
        """Numbers of every size, above all of those that other readers round or refuse."""
        script = Script().basics()
        for number, size in enumerate((0, 9, 10, 99, 100, 2**32, 2**53 + 1, 2**63 - 1, 2**63, HUGE,
                                       2**64 - 2)):
            script.alloc(0x7fff12340000 + 0x1000 * number, size, stack=number % 5)
        script.alloc(0xfffffffffffff000, 1, heap=2)
        script.event("Alloc", heap=1, size=5, result=0)
        script.event("Free", heap=1, base=0x7fff12340000, size=0, result=2**64 - 1)
        script.event("Create", heap=2, flags=0xdeadbeefcafe, result=1, reserve=100, commit=10)
        script.event("Lock", heap=2, result=1, end="never")
        return self.write(script.close(), "large.ttd")

    def paths(self):
        yield self.large()
        for seed in range(6):
            yield self.write(oracle.random_script(random.Random(seed), 300), f"{seed}.ttd")
        script = Script(time_unit=0xffffffffffffffff).basics()
        script.alloc(0x1000, 10)
        yield self.write(script.close(), "without times.ttd")
        yield self.write(Script().basics().close(), "empty.ttd")
        script = Script().basics()
        script.alloc(0x1000, 10)
        script.add("loss", reason=1, count=3, last_good="8:0", first_good="8:1")
        yield self.write(script.close(), "lossy.ttd")
        yield self.write(Script().basics().add("churn", count=20000, slots=50, position="2:0")
                         .close(), "long.ttd")

    def damaged(self):
        """Traces with a byte changed, and cut ones."""
        with open(self.write(oracle.random_script(random.Random(9), 300)), "rb") as file:
            data = file.read()
        chance = random.Random(4)
        for number in range(12):
            copy = bytearray(data)
            if number % 3:
                copy[chance.randrange(200, len(copy))] ^= 1 << chance.randrange(8)
            else:
                del copy[chance.randrange(500, len(copy)):]
            yield self.path(f"{number}.damaged"), bytes(copy)

    def test_same_text(self):
        for path in self.paths():
            for form in ("csv", "jsonl"):
                with self.subTest(path, form=form):
                    self.assertEqual(self.export(form, path)[0], self.query(form, path)[0])

    def test_same_database(self):
        for path in self.paths():
            with self.subTest(path):
                self.export("sqlite", path)
                self.query("sqlite", path)
                self.assertEqual(self.dump("exported.sqlite"), self.dump("query.db"))

    def test_damage(self):
        """No event of a chunk whose rest is damaged is written, and none is certain."""
        for path, data in self.damaged():
            with open(path, "wb") as file:
                file.write(data)
            for form in ("csv", "jsonl"):
                with self.subTest(path, form=form):
                    (rows, errors), (expected, warnings) = self.export(form, path), \
                        self.query(form, path)
                    self.assertEqual(rows, expected)
                    self.assertEqual("uncertain" in errors, "uncertain" in warnings, errors)
            self.export("sqlite", path)
            self.query("sqlite", path)
            self.assertEqual(self.dump("exported.sqlite"), self.dump("query.db"))

    def test_uncertain(self):
        script = Script().basics()
        script.alloc(0x1000, 10)
        script.add("loss", reason=1, count=3, last_good="8:0", first_good="8:1")
        path = self.write(script.close())
        reasons = self.json_of("state", path)["reasons"]
        self.assertTrue(reasons)
        for form in ("csv", "jsonl", "sqlite"):
            _, errors = self.export(form, path)
            for reason in reasons:
                self.assertIn(f"uncertain: {reason}", errors)
        database = sqlite3.connect(self.path("exported.sqlite"))
        self.addCleanup(database.close)
        self.assertEqual([reason for reason, in database.execute("SELECT * FROM uncertain")],
                         reasons)

    def test_filter(self):
        path = self.write(oracle.random_script(random.Random(1), 300))
        options = ["--include", "f::run()"]
        expected = [record["number"] for record in csv.DictReader(io.StringIO(
            self.run_ok("events", "-f", "csv", *options, path).text))]
        self.assertTrue(expected)
        for form in ("csv", "jsonl", "sqlite"):
            text = self.export(form, path, *options)[0]
            if form == "csv":
                found = [row["number"] for row in csv.DictReader(io.StringIO(text.decode()))]
            elif form == "jsonl":
                found = [str(json.loads(line)["number"]) for line in text.splitlines()]
            else:
                database = sqlite3.connect(self.path("exported.sqlite"))
                self.addCleanup(database.close)
                found = [str(number) for number, in
                         database.execute("SELECT number FROM result ORDER BY number")]
            self.assertEqual(found, expected)

    def test_output(self):
        """An output that cannot be written is removed; one that is no file gets all rows."""
        path = self.write(oracle.random_script(random.Random(1), 300))
        for form in ("csv", "jsonl", "sqlite"):
            result = run("export", form, "-o", "/dev/full", path)
            self.assertEqual(result.status, support.INTERNAL, result.errors)
            fifo = self.path("pipe." + form)
            os.mkfifo(fifo)
            with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE) as reader:
                self.run_ok("export", "-o", fifo, form, path)
                data = reader.communicate()[0]
            if form == "sqlite":
                self.assertEqual(data[:16], b"SQLite format 3\0")
            else:
                self.assertEqual(data, self.export(form, path)[0])
            self.assertEqual(run("export", form, "--at", "50%", path).status, USAGE)

    @unittest.skipUnless(npm_package("@duckdb/node-api"), "the npm package @duckdb/node-api is not "
                         "installed")
    def test_duckdb(self):
        """DuckDB reads both texts with one type for each column, and has the same sums as SQLite."""
        path = self.write(oracle.random_script(random.Random(3), 3000))
        for form in ("csv", "jsonl", "sqlite"):
            self.export(form, path)
        result = subprocess.run(["node", "-e", DUCKDB, str(npm_package("@duckdb/node-api")),
                                 self.path("exported.csv"), self.path("exported.jsonl")],
                                capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        text, lines = json.loads(result.stdout)
        names = {"INTEGER": "BIGINT"}
        database = sqlite3.connect(self.path("exported.sqlite"))
        self.addCleanup(database.close)
        expected = [[row[1], names.get(row[2], "VARCHAR")]
                    for row in database.execute("PRAGMA table_info(result)")]
        self.assertEqual(lines[0], expected)
        # In CSV hexadecimal digits may be numbers.
        addresses = {row[1] for row in database.execute("PRAGMA table_info(result)")
                     if row[2] == "ADDRESS"}
        self.assertEqual([column for column in text[0] if column[0] not in addresses],
                         [column for column in expected if column[0] not in addresses])
        sums = database.execute(
            "SELECT count(*), sum(size), sum(result), sum(wall_time_ns), sum(stack_id), "
            "count(address), count(DISTINCT position), sum(action = 'Free') FROM result").fetchone()
        self.assertEqual([int(value) for value in text[1]], list(sums))
        self.assertEqual([int(value) for value in lines[1]], list(sums))

    def test_sqlite_import(self):
        """The program sqlite3 reads the CSV, and has the rows of the database."""
        path = self.write(oracle.random_script(random.Random(5), 500))
        self.export("csv", path)
        self.export("sqlite", path)
        question = "SELECT count(*), sum(CAST(size AS INTEGER)), sum(result), sum(wall_time_ns), " \
                   "sum(stack_id), sum(address {}), group_concat(DISTINCT api) FROM {};"
        imported = subprocess.run(
            ["sqlite3", ":memory:"], capture_output=True, text=True, check=True,
            input=f".import --csv {self.path('exported.csv')} rows\n"
                  + question.format("!= ''", "rows")).stdout
        there = subprocess.run(["sqlite3", self.path("exported.sqlite"),
                                question.format("IS NOT NULL", "result")],
                               capture_output=True, text=True, check=True).stdout
        self.assertEqual(imported, there)


if __name__ == "__main__":
    support.main()
