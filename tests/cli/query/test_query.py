# SPDX-License-Identifier: MIT
"""Queries in SQL: each table says what its command says, and no query can do more than read"""

import hashlib
import os
import random
import re
import sqlite3

import oracle
import support
from query_support import QueryTestCase, TABLES
from snapshot_support import SnapshotScript
from support import Script, run


class Query(QueryTestCase):
    def random_trace(self, seed, **options):
        script = oracle.random_script(random.Random(seed), 60)
        return self.write(script, f"{seed}.ttd")

    def test_tables(self):
        for seed in (1, 2, 3):
            path = self.random_trace(seed)
            for table, (command, name) in TABLES.items():
                with self.subTest(seed=seed, table=table):
                    self.compare(path, table, command, name)

    def kinds_of_traces(self):
        """Six more, each of another kind."""
        script = Script().basics()
        yield "empty", script.close()
        script = Script().basics()
        for i in range(6):
            script.alloc(0x1000 * (i + 1), 100 + i, stack=1 + i % 4, heap=1 + i % 2, thread=1 + i % 2)
        script.event("Destroy", heap=2, api=30, stack=1)
        yield "heaps", script.close()
        script = Script().basics()
        for i in range(8):
            script.alloc(0x1000 * (i + 1), 64, stack=2 + i % 2)
            script.add("loss", reason=1 + i % 3, count=i + 1, last_good=f"0:{2 * i:X}",
                       first_good=f"0:{2 * i + 1:X}")
        yield "losses", script.close()
        script = Script().basics()
        for i in range(5):
            script.alloc(0x1000 * (i + 1), 32, wall=1000 * i)
            script.add("user", position=script.tick(), client="ttdtrace.live", data=f"step%20{i}")
            script.memory(1000 * i, 2000 * i, 3000)
        yield "marks", script.close()
        script = oracle.random_script(random.Random(21), 40)
        script.lines = [line for line in script.lines if not line.startswith("close")]
        yield "unclosed", script.abandon()
        script = Script(events_per_chunk=50).basics()
        script.add("churn", count=2000, slots=30, position="2:0")
        for i in range(4):
            script.realloc(0, 0x900000 + 0x1000 * i, 16 + i, start=f"{9000 + i:X}:0",
                           end=f"{9000 + i:X}:1")
        yield "long", script.close()

    def test_tables_of_kinds(self):
        for kind, script in self.kinds_of_traces():
            path = self.write(script, f"{kind}.ttd")
            for table, (command, name) in TABLES.items():
                with self.subTest(kind=kind, table=table):
                    self.compare(path, table, command, name)
            # The kind is one.
            table, count = {"empty": ("events", 0), "heaps": ("heaps", 1), "losses": ("losses", 8),
                            "marks": ("marks", 5), "unclosed": ("events", 40),
                            "long": ("moves", 1)}[kind]
            self.assertGreaterEqual(len(self.rows(path, f"SELECT * FROM {table}")), count, kind)

    def test_tables_of_snapshots(self):
        script = SnapshotScript().basics()
        for i in range(8):
            script.alloc(0x11000 + i * 0x100, 64, stack=2 + i % 2)
        script.snapshot((0x11000, 0x11100), (0x11100, 0x11200), (2, 0, 0x11000))
        path = self.write(script.close())
        for table, (command, name) in (*TABLES.items(),
                                       ("retained", (("retained", "--limit", "0"), None))):
            with self.subTest(table=table):
                self.compare(path, table, command, name)
        self.assertEqual({(r["class"], r["n"]) for r in self.rows(
            path, "SELECT class, sum(blocks) AS n FROM leaks GROUP BY class")},
            {("definitely_lost", 5), ("still_reachable", 3)})

    def test_estimates(self):
        script = Script().basics()
        script.add("metadata", key="chosen", value="a%20sample:%20one%20block%20for%20every%20524288%20bytes")
        for i in range(5):
            script.alloc(0x1000 * (i + 1), 1000)
        path = self.write(script.close())
        groups = self.json_of("state", path)["groups"]
        self.assertGreater(groups[0]["estimated_bytes"], 5000)
        self.assertEqual(self.rows(path, "SELECT estimated_bytes AS b FROM live_sites"),
                         [{"b": g["estimated_bytes"]} for g in groups])
        self.assertIs(self.query(path, "SELECT * FROM leaks")["certain"], False)

    def test_rows_are_there(self):
        """The comparison above compares something."""
        path = self.random_trace(1)
        for table in ("events", "live", "heaps", "sites", "leaks", "errors", "moves", "diff",
                      "blocks", "threads"):
            self.assertGreater(self.rows(path, f"SELECT count(*) AS n FROM {table}")[0]["n"], 0,
                               table)

    def test_parameters(self):
        path = self.random_trace(4)
        for at in ("25%", "50%", "#20"):
            state = self.json_of("state", path, "--blocks", "--at", at)
            self.assertEqual(self.rows(path, f"SELECT count(*) AS n FROM live('{at}')"),
                             [{"n": state["live_blocks"]}])
        both = self.rows(path, "SELECT (SELECT count(*) FROM live('25%')) AS a, "
                               "(SELECT count(*) FROM live('50%')) AS b")
        self.assertEqual([both[0]["a"], both[0]["b"]],
                         [self.json_of("state", path, "--at", at)["live_blocks"]
                          for at in ("25%", "50%")])
        owners = self.json_of("history", path, "--address", "0x1000")["blocks"]
        self.assertEqual(len(self.rows(path, "SELECT * FROM history('0x1000')")), len(owners))

    def test_ranges(self):
        """Conditions that are answered by going there give what a filter gives."""
        path = self.random_trace(5)
        rows = self.rows(path, "SELECT number, position FROM events")
        self.assertEqual([r["number"] for r in rows], list(range(60)))
        chance = random.Random(5)
        for _ in range(40):
            low, high = sorted(chance.choices(range(-3, 64), k=2))
            lower, upper = chance.choice((">", ">=")), chance.choice(("<", "<="))
            got = self.rows(path, "SELECT number FROM events WHERE "
                                  f"number {lower} {low} AND number {upper} {high}")
            self.assertEqual([r["number"] for r in got],
                             [n for n in range(60) if (n >= low if lower == ">=" else n > low)
                              and (n <= high if upper == "<=" else n < high)])
        for _ in range(40):
            at = chance.choice(rows)["position"]
            sign = chance.choice((">", ">=", "<", "<=", "="))
            got = self.rows(path, f"SELECT number FROM events WHERE position {sign} pos('{at}')")
            value = oracle.position(at)
            holds = {">": lambda p: p > value, ">=": lambda p: p >= value,
                     "<": lambda p: p < value, "<=": lambda p: p <= value,
                     "=": lambda p: p == value}[sign]
            self.assertEqual([r["number"] for r in got],
                             [r["number"] for r in rows if holds(oracle.position(r["position"]))],
                             (sign, at))

    def test_joins(self):
        """Two cursors over the events do not move each other."""
        path = self.random_trace(6)
        pairs = self.rows(path, "SELECT a.number AS a, b.number AS b FROM events a JOIN events b "
                                "ON b.number = a.number + 1 ORDER BY 1")
        self.assertEqual([(p["a"], p["b"]) for p in pairs], [(n, n + 1) for n in range(59)])

    def test_positions_sort(self):
        script = Script().basics()
        for place in ("2:0", "2:10", "10:0", "FFFF:0"):
            script.alloc(0x1000 + int(place.replace(":", ""), 16) * 16, 8, start=place,
                         end=place.replace(":", ":") + "1")
        path = self.write(script.close())
        got = self.rows(path, "SELECT position FROM events ORDER BY position DESC")
        self.assertEqual([r["position"] for r in got], ["FFFF:1", "10:1", "2:101", "2:1"])
        self.assertEqual(self.rows(path, "SELECT max(position) AS p FROM events"),
                         [{"p": "FFFF:1"}])

    def test_only_reads(self):
        path = self.random_trace(7)
        for sql in ("DROP TABLE events", "CREATE TABLE t(x)", "ATTACH 'x.db' AS y",
                    "PRAGMA table_info(events)", "SELECT load_extension('x')",
                    "INSERT INTO events(number) VALUES(1)", "SELECT 1; SELECT 2", "", ";",
                    "VACUUM INTO 'x.db'", "SELECT * FROM nothing", "SELECT pos('here')",
                    "BEGIN", "EXPLAIN SELECT * FROM events", "EXPLAIN QUERY PLAN SELECT 1 FROM sqlite_temp_master; DELETE FROM x"):
            with self.subTest(sql):
                result = run("query", sql, path, cwd=self.folder)
                self.assertEqual(result.status, support.USAGE, result.errors)
                self.assertEqual(result.text, "")
                self.assertTrue(result.errors)
        self.assertEqual([f for f in os.listdir(self.folder) if f.endswith(".db")], [])

    def test_no_parameter_given(self):
        path = self.random_trace(7)
        result = run("query", "SELECT * FROM live('500%')", path)
        self.assertEqual(result.status, support.USAGE)
        self.assertIn("invalid argument '500%'", result.errors)

    def documented(self):
        with open(os.path.join(os.environ["TTD_SOURCE"], "spec", "queries.md"),
                  encoding="utf-8") as file:
            return file.read()

    def requests_trace(self):
        """Three requests, each with a block more than the one before; half a second to a call. The
        last one's first block is released behind the mark `end`."""
        script = Script().basics()

        def mark(text):
            script.add("user", position=script.tick(), client="ttdtrace.live", data=text)

        count = 0
        mark("begin")
        for request in range(3):
            mark(f"request%20{request}")
            for i in range(request + 1):
                count += 1
                script.alloc(0x1000 * count, 100 * count, stack=2 + i % 2, wall=500000000 * count)
        mark("end")
        script.free(0x4000, wall=500000000 * 7)
        return self.write(script.close(), "requests.ttd")

    def test_documented_answers(self):
        """The answers of some queries of spec/queries.md, which were found by hand."""
        path = self.requests_trace()
        f, g = "g(int)", "libwork.so+0x300"
        expected = {
            "'request%'": [["request 0", 1, 100], ["request 1", 2, 500], ["request 2", 3, 1500]],
            "ends(percent)": [[f, 10, 100], [f, 20, 0], [f, 30, 200]],
            "SELECT site(stack_id) AS function, count(*) AS calls, sum(size)":
                [[f, 4, 1300], [g, 2, 800]],
            "FROM peak p": [["0x%x" % (0x1000 * n), 100 * n, at] for n, at in (
                (1, "1:0"), (2, "1:3"), (3, "2:1"), (4, "3:0"))],
            "f.module, s.stack_id": [["/opt/app/bin/demo", 6, 2100],
                                     ["/usr/lib/libwork.so", 2, 800]],
        }
        queries = re.findall(r"```sql\n(.*?)```", self.documented(), re.S)
        for part, rows in expected.items():
            found = [sql for sql in queries if part in sql]
            self.assertEqual(len(found), 1, part)
            answer = self.query(path, found[0])
            self.assertIs(answer["certain"], True)
            got = [list(row.values()) for row in answer["rows"]]
            if "percent" in part:
                # The last slice has the release; positions in percent are of seven events.
                live = {}
                for name, _, grown in got:
                    live[name] = live.get(name, 0) + grown
                self.assertEqual(live, {f: 900, g: 800})
                self.assertEqual(min(grown for *_, grown in got), -400)
                got = got[:3]
            self.assertEqual(got, rows, part)

    def test_peak(self):
        for seed in (1, 2, 3):
            path = self.random_trace(seed)
            peak = self.json_of("peak", path)
            self.assertEqual(self.rows(path, "SELECT * FROM peak"),
                             [{name: peak[name] for name in
                               ("position", "live_bytes", "live_blocks")}])
            self.assertEqual(self.rows(path, "SELECT sum(size) AS n FROM peak p, live(p.position)"),
                             [{"n": peak["live_bytes"]}])

    def test_documented(self):
        """Every query of spec/queries.md; some beside the answer of a command."""
        text = self.documented()
        queries = re.findall(r"```sql\n(.*?)```", text, re.S)
        self.assertGreaterEqual(len(queries), 29)
        pair = [self.random_trace(seed) for seed in (11, 12)]
        for path, name in zip(pair, "ab"):
            os.rename(path, self.path(name + ".bin"))
        for sql in re.findall(r"```sql several\n(.*?)```", text, re.S):
            with self.subTest(sql):
                self.run_ok("query", sql, self.path("a.bin"), self.path("b.bin"))
        script = oracle.random_script(random.Random(10), 60)
        script.lines = [line for line in script.lines if not line.startswith("close")]
        script.add("user", position="1:0", client="ttdtrace.live", data="begin")
        path = self.write(script.close())
        answers = {}
        for sql in queries:
            with self.subTest(sql):
                answers[sql] = self.rows(path, sql)
        events = self.run_ok("events", "-f", "json", path).json_lines
        self.assertEqual(len(answers[queries[0]]), len(events))
        grouped = next(rows for sql, rows in answers.items() if "GROUP BY action" in sql)
        self.assertEqual({r["action"]: r["calls"] for r in grouped},
                         {action: sum(e["action"] == action for e in events)
                          for action in {e["action"] for e in events}})
        growth = next(rows for sql, rows in answers.items() if "AS grown" in sql)
        self.assertEqual(len(growth), len(self.json_of("state", path, "--limit", "0")["groups"]))
        kinds = next(rows for sql, rows in answers.items() if "FROM errors" in sql)
        found = self.json_of("errors", path, "--limit", "0")["findings"]
        self.assertEqual({r["kind"]: r["calls"] for r in kinds},
                         {kind: sum(f["count"] for f in found if f["kind"] == kind)
                          for kind in {f["kind"] for f in found}})

    def test_command_line(self):
        path = self.random_trace(7)
        for arguments, reason in (((), "no query is given"),
                                  (("SELECT 1", "-"), "needs the name of a file"),
                                  (("SELECT 1", *[path] * 11), "11 traces at a time"),
                                  (("SELECT 1", path, "-"), "needs the name of a file"),
                                  (("--group", "SELECT 1", path, path), "--group finds"),
                                  (("-f", "json", ".schema", path), ".schema is text")):
            result = run("query", *arguments)
            self.assertEqual(result.status, support.USAGE)
            self.assertIn(reason, result.errors)
        os.rename(path, self.path("trace.bin"))
        self.assertEqual(run("query", "-f", "csv", "SELECT 1 AS n", cwd=self.folder).text,
                         'n\n1\n')

    def test_timeout(self):
        path = self.random_trace(7)
        endless = "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c) " \
                  "SELECT count(*) FROM c"
        result = run("query", "--timeout", "1", endless, path)
        self.assertEqual(result.status, support.INTERNAL)
        self.assertIn("--timeout", result.errors)

    def test_long_timeout(self):
        path = self.random_trace(7)
        sql = "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c WHERE x < 20000) " \
              "SELECT count(*) AS n FROM c"
        for seconds in (2**32, 2**63 - 1, 2**63, 2**64 - 1):
            data = self.query(path, sql, "--timeout", str(seconds))
            self.assertEqual(data["rows"], [{"n": 20000}])

    def test_all_losses(self):
        """JSON lists 256 of them."""
        script = Script().basics()
        for i in range(400):
            script.alloc(0x1000 * (i + 1), 8)
            script.add("loss", reason=1, count=i + 1, last_good=f"0:{2 * i:X}",
                       first_good=f"0:{2 * i + 1:X}")
        path = self.write(script.close())
        rows = self.rows(path, "SELECT * FROM losses")
        self.assertEqual([row["events"] for row in rows], list(range(1, 401)))
        self.assertEqual([row["last_good"] for row in rows], [f"0:{2 * i:X}" for i in range(400)])
        self.assertEqual(len(self.json_of("info", path)["loss_list"]), 256)
        self.assertFalse(any("has only" in reason for reason in
                             self.query(path, "SELECT * FROM threads, losses")["reasons"]))

    def test_uncertain(self):
        """Of several tables, each reason once; in every form."""
        script = oracle.random_script(random.Random(8), 30)
        script.lines = [line for line in script.lines if not line.startswith("close")]
        path = self.write(script.abandon())
        sql = "SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM live) AS n"
        reason = "the trace was not closed cleanly"
        data = self.query(path, sql)
        self.assertIs(data["certain"], False)
        self.assertEqual(len([r for r in data["reasons"] if reason in r]), 1)
        self.assertEqual(self.run_ok("query", sql, path).text.count(reason), 1)
        self.assertEqual(self.run_ok("query", "-f", "csv", sql, path).errors.count(reason), 1)
        script = Script().basics()
        script.alloc(0x1000, 8)
        whole = self.write(script.close(), "whole.ttd")
        self.assertEqual(self.query(whole, sql)["reasons"], [])
        self.assertNotIn("Uncertain", self.run_ok("query", sql, whole).text)

    def test_default_limits(self):
        """The limits that commands have for people do not cut tables."""
        script = SnapshotScript().basics()
        for i in range(60):
            script.alloc(0x20000 + i * 0x200000, 64)
        for i in range(60):
            script.free(0x7000010 + i * 0x1000, stack=1 + i % 4)
            script.add("user", position=script.tick(), client="ttdtrace.live", data="m")
        script.snapshot(*((2, i * 8, 0x20000 + i * 0x200000) for i in range(60)))
        path = self.write(script.close())
        for table, command in (("errors", ("errors", "--limit", "0")),
                               ("fragmentation", ("fragmentation", "--limit", "0")),
                               ("retained", ("retained", "--limit", "0")),
                               ("marks", ("marks", "--limit", "0"))):
            with self.subTest(table=table):
                self.compare(path, table, command, None)
        self.assertEqual(self.rows(path, "SELECT count(*) AS n FROM fragmentation"), [{"n": 60}])
        self.assertEqual(self.rows(path, "SELECT count(*) AS n FROM retained"), [{"n": 60}])

    def test_more_blocks_than_are_kept(self):
        """The table of blocks has a million of them, and does not count these as all."""
        script = Script().basics()
        script.add("churn", count=2100000, slots=100, position="2:0")
        path = self.write(script.close())
        data = self.query(path, "SELECT count(*) AS n FROM blocks")
        self.assertEqual(data["rows"], [{"n": 1000000}])
        self.assertIs(data["certain"], False)
        self.assertRegex("\n".join(data["reasons"]),
                         r"(?m)^the table blocks has only 1000000 of 1\d{6} records$")

    def test_part_of_a_damaged_trace(self):
        """A range before the damage is not certain either."""
        path = self.random_trace(9)
        with open(path, "r+b") as file:
            file.seek(-400, 2)
            byte = file.read(1)
            file.seek(-400, 2)
            file.write(bytes([byte[0] ^ 255]))
        data = run("query", "-f", "json", "SELECT number FROM events WHERE number < 5", path).json
        self.assertIs(data["certain"], False)

    def test_escaped(self):
        path = self.random_trace(7)
        name = "a\x1b[31m\"b"
        result = self.run_ok("query", f"SELECT char(27) || '[0m' AS \"{name.replace(chr(34), '')}\"",
                             path)
        self.assertNotIn("\x1b", result.text)
        data = self.query(path, "SELECT 'x' || char(10) AS \"a\"\"b\"")
        self.assertEqual(data["rows"], [{'a"b': "x\n"}])
        text = self.run_ok("query", "-f", "csv", "SELECT '=1+1' AS \"=x\"", path).text
        self.assertNotIn("=", text)
        # Neither form has infinities.
        self.assertEqual(self.rows(path, "SELECT 1e999 AS a, -1e999 AS b"), [{"a": None, "b": None}])
        self.assertEqual(self.run_ok("query", "-f", "csv", "SELECT 1e999 AS a, -1e999 AS b",
                                     path).text, 'a,b\n,\n')

    def test_wide_numbers(self):
        script = Script().basics()
        script.alloc(0xfffffffffffffff0, 2**64 - 1)
        path = self.write(script.close())
        row = self.rows(path, "SELECT address, size FROM events")[0]
        self.assertEqual(row["address"], "0xfffffffffffffff0")
        self.assertAlmostEqual(row["size"] / 2**64, 1)

    def test_schema_version(self):
        """The schema cannot change without another version, which spec/queries.md lists."""
        first, *lines = self.run_ok("query", ".schema").text.splitlines(keepends=True)
        statements = "".join(line for line in lines if not line.startswith("--"))
        self.assertEqual(statements.count("CREATE TABLE"), statements.count("\n"))
        found = hashlib.sha256(statements.encode()).hexdigest()[:16]
        versions = re.findall(r"^\| (\d+) \| `(\w+)` \|$", self.documented(), re.M)
        self.assertEqual([int(number) for number, _ in versions],
                         list(range(1, len(versions) + 1)))
        self.assertEqual(len({fingerprint for _, fingerprint in versions}), len(versions))
        self.assertEqual((first, found), (f"-- schema {versions[-1][0]}\n", versions[-1][1]))
        output = self.path("out.db")
        self.run_ok("query", "-o", output, "SELECT 1", self.random_trace(7))
        database = sqlite3.connect(output)
        self.addCleanup(database.close)
        self.assertEqual(database.execute("PRAGMA user_version").fetchone(), (int(versions[-1][0]),))

    def test_csv_is_as_of_commands(self):
        """CSV is quoted as commands quote it, so that a script can pass on numbers and addresses."""
        path = self.random_trace(7)
        for table, command in (("live", ("state", "--blocks")), ("sites", ("hot", "--limit", "0"))):
            names = "address, size" if table == "live" else "allocations, stack_id, stack"
            own = self.run_ok("query", "-f", "csv", f"SELECT {names} FROM {table}", path).text
            if table == "sites":
                there = self.run_ok(*command, "-f", "csv", path).csv
                expected = ["allocations,stack_id,stack"] + [
                    ",".join((row["allocations"], row["stack_id"],
                              f'"{row["stack"]}"' if set(row["stack"]) & set(';, "') else row["stack"]))
                    for row in there]
                self.assertEqual(own.splitlines(), expected)
                self.assertIn(";", own)
                continue
            address = own.splitlines()[1].split(",")[0]
            self.assertRegex(address, "^0x[0-9a-f]+$")
            self.run_ok("history", "--address", address, path)
        text = self.run_ok("query", "-f", "csv", "SELECT 'a;=b', 'c\"d', NULL, -1, ''", path).text
        self.assertEqual(text.splitlines()[1][0], '"')
        self.assertNotIn(";=", text)
        self.assertEqual(self.run_ok("query", "-f", "csv", "SELECT NULL AS n", path).text, 'n\n""\n')

    def test_schema(self):
        """SQLite itself reads the schema, and finds the tables with the columns that they have."""
        path = self.random_trace(7)
        database = sqlite3.connect(":memory:")
        database.executescript(self.run_ok("query", ".schema", path).text.replace(" HIDDEN", ""))
        for table in TABLES:
            row = self.run_ok("query", "-f", "csv", f"SELECT * FROM {table} LIMIT 0", path).text
            columns = [column[1] for column in database.execute(f"PRAGMA table_info({table})")]
            expected = row.replace('"', "").strip().split(",")
            self.assertEqual(columns[:len(expected)], expected)
            self.assertLessEqual(len(columns) - len(expected), 2, columns)


if __name__ == "__main__":
    support.main()
