# SPDX-License-Identifier: MIT
"""Queries of several traces: each is a schema, and tables without one have all records"""

import os
import random
import re

import oracle
import support
from support import Script, TestCase, run


class Traces(TestCase):
    def setUp(self):
        super().setUp()
        self.paths = {name: self.write(oracle.random_script(random.Random(seed), 60), name + ".ttd")
                      for seed, name in enumerate(("a", "b", "c"))}

    def rows(self, sql, *paths):
        return self.run_ok("query", "-f", "json", sql, *paths or self.paths.values()).json["rows"]

    def test_tables(self):
        """Each schema and each view have the records that the trace alone has."""
        tables = re.findall(r"CREATE TABLE (\w+)\(",
                            self.run_ok("query", ".schema", self.paths["a"]).text)
        self.assertGreater(len(tables), 18)
        count = 0
        # One needs an address, the others a snapshot.
        for table in set(tables) - {"history", "retained", "refs"}:
            alone = {name: self.rows(f"SELECT * FROM {table}", path)
                     for name, path in self.paths.items()}
            self.assertEqual(self.rows(f"SELECT * FROM b.{table}"), alone["b"], table)
            self.assertEqual(self.rows(f"SELECT * FROM {table}"),
                             [{"trace": name, **row} for name in self.paths for row in alone[name]])
            count += sum(map(len, alone.values()))
        self.assertGreater(count, 500)

    def test_functions(self):
        for function, more in (("site", ""), ("folded", ""), ("stack_has", ", 'g*'")):
            alone = {name: self.rows(f"SELECT {function}(stack_id{more}) AS x FROM stacks", path)
                     for name, path in self.paths.items()}
            self.assertEqual(self.rows(f"SELECT {function}('b', stack_id{more}) AS x "
                                       "FROM b.stacks"), alone["b"])
            self.assertEqual(self.rows(f"SELECT {function}(trace, stack_id{more}) AS x FROM stacks"),
                             [row for name in self.paths for row in alone[name]])
        self.assertEqual(self.rows("SELECT pos('c', '50%') AS p, pos('1:2') AS q"),
                         [{"p": self.rows("SELECT pos('50%') AS p", self.paths["c"])[0]["p"],
                           "q": "1:2"}])
        self.assertEqual(self.rows("SELECT count(*) AS n FROM b.live('50%')"),
                         self.rows("SELECT count(*) AS n FROM live('50%')", self.paths["b"]))

    def test_names_that_are_not_said(self):
        """A function of one trace is not answered from another one."""
        for sql, reason in (("SELECT site(stack_id) FROM sites", "wrong number of arguments"),
                            ("SELECT site('d', 1)", "names no trace"),
                            ("SELECT site(NULL, 1)", "names no trace"),
                            ("SELECT pos('50%')", "of several traces"),
                            ("SELECT pos('d', '50%')", "names no trace"),
                            ("SELECT * FROM d.events", "no such table"),
                            ("SELECT * FROM live('50%')", "not a function"),
                            ("CREATE VIRTUAL TABLE x USING \"a.events\"", "not authorized"),
                            ("DROP VIEW events", "not authorized"),
                            ("ATTACH 'x.db' AS x", "not authorized"), ("DETACH a", "not authorized")):
            result = run("query", sql, *self.paths.values())
            self.assertEqual(result.status, support.USAGE, (sql, result.errors))
            self.assertIn(reason, result.errors)

    def test_ranges(self):
        result = self.run_ok("query", "--explain", "-f", "json", "SELECT trace, number FROM events "
                             "WHERE number = 7 AND thread > 0", *self.paths.values())
        self.assertEqual(result.json["rows"], [{"trace": t, "number": 7} for t in self.paths])
        self.assertIn("3 readings", result.errors)
        self.assertIn("3 passed to SQLite", result.errors)

    def test_file_names(self):
        folder = self.path("x")
        os.mkdir(folder)
        names = {}
        for number, name in enumerate(("main.bin", "temp", "a.ttd", "trace.12", "x\"y;z.bin", ".d",
                                       "A", "é.bin", "trace.bin", "trace.13.bin")):
            script = Script().basics()
            for i in range(number + 1):
                script.alloc(0x1000 * (i + 1), 8)
            made = self.write(script.close(), "made")
            names[name] = os.path.join(folder, name)
            os.rename(made, names[name])
        rows = self.rows("SELECT trace, count(*) AS n FROM events GROUP BY 1 ORDER BY 2",
                         *names.values())
        self.assertEqual([row["trace"] for row in rows],
                         ["main_2", "temp_2", "a", "trace.12", 'x"y;z', ".d", "A_2", "é", "trace",
                          "trace.13"])
        self.assertEqual([row["n"] for row in rows], list(range(1, 11)))
        self.assertEqual(self.rows('SELECT count(*) AS n FROM "x""y;z".events', *names.values()),
                         [{"n": 5}])

    def test_uncertain(self):
        script = Script().basics()
        script.alloc(0x1000, 8)
        open_one = self.write(script.abandon(), "open.ttd")
        script = Script().basics()
        script.alloc(0x1000, 8)
        closed = self.write(script.close(), "closed.ttd")
        sql = "SELECT count(*) AS n FROM "
        for table, count in (("events", 1), ("open.live", 1), ("closed.events", 0), ("stacks", 1)):
            data = self.run_ok("query", "-f", "json", sql + table, closed, open_one).json
            self.assertIs(data["certain"], not count)
            self.assertEqual(len(data["reasons"]), count, table)
            self.assertTrue(all(r.startswith("open: the trace was not closed")
                                for r in data["reasons"]))
        self.assertEqual(run("query", "-o", open_one, "SELECT 1", closed, open_one).status,
                         support.USAGE)
        missing = run("query", "SELECT 1", closed, self.path("nothing"))
        self.assertNotEqual(missing.status, 0)
        self.assertIn("nothing", missing.errors)

    def test_group(self):
        paths = []
        for number in (1, 2, 3):
            script = Script(id=number, parent=number > 1, pid=100 + number,
                            start_time=number * 10 ** 9).basics()
            for i in range(number):
                script.alloc(0x1000 * (i + 1), 10 * number)
            paths.append(self.write(script.close(), f"trace.{number}"))
        for path in self.paths.values():
            os.remove(path)
        sql = "SELECT trace, sum(size) AS bytes FROM live GROUP BY trace ORDER BY 2"
        data = self.run_ok("query", "--group", "-f", "json", sql, paths[1]).json
        self.assertEqual(data["rows"], [{"trace": f"trace.{n}", "bytes": 10 * n * n}
                                        for n in (1, 2, 3)])
        self.assertIs(data["certain"], True)
        with open(paths[2], "r+b") as file:
            file.truncate(100)
        data = run("query", "--group", "-f", "json", sql, paths[1]).json
        self.assertEqual(len(data["rows"]), 2)
        self.assertIs(data["certain"], False)
        self.assertIn("1 traces of the group cannot be read", "\n".join(data["reasons"]))


if __name__ == "__main__":
    support.main()
