# SPDX-License-Identifier: MIT
"""Conditions on events are met while the trace is read, and only its part that they need"""

import operator
import os
import random
import re
import struct

import loss_support
import oracle
import support
from support import Script, TestCase, run

EVENTS, HEADER = 8, 112
NUMBERS = ("address", "previous_address", "base_address", "size", "heap_id", "thread", "stack_id",
           "wall_time_ns", "result")
SIGNS = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def number(value):
    return int(value, 16) if isinstance(value, str) else value


class Events(TestCase):
    def ask(self, path, condition):
        """The numbers of the events, how many were decoded, and how many SQLite got."""
        result = self.run_ok("query", "--explain", "-f", "json",
                             f"SELECT number FROM events WHERE {condition}", path)
        work = re.search(r"(\d+) readings, (\d+) events decoded, (\d+) passed", result.errors)
        self.assertTrue(work, result.errors)
        self.assertIs(result.json["certain"], True)
        return [row["number"] for row in result.json["rows"]], *map(int, work.groups())

    def random_trace(self, seed):
        script = oracle.random_script(random.Random(seed), 200)
        return self.write(script, f"{seed}.ttd")

    def rows(self, path):
        return self.run_ok("query", "-f", "json", "SELECT * FROM events", path).json["rows"]

    def check(self, path, rows, condition, holds):
        """Only rows that meet the condition are passed to SQLite."""
        expected = [row["number"] for row in rows if holds(row)]
        got, readings, _, passed = self.ask(path, condition)
        self.assertEqual(got, expected, condition)
        self.assertEqual((readings, passed), (1, len(expected)), condition)

    def test_values(self):
        path = self.random_trace(1)
        rows = self.rows(path)
        chance = random.Random(2)
        for column in NUMBERS * 2:
            known = [number(row[column]) for row in rows if row[column] is not None]
            for sign, holds in SIGNS.items():
                value = chance.choice(known)
                self.check(path, rows, f"{column} {sign} {value}",
                           lambda row, c=column, h=holds, v=value:
                               row[c] is not None and h(number(row[c]), v))
            some = chance.sample(known, 3) + [-1]
            self.check(path, rows, f"{column} IN ({', '.join(map(str, some))})",
                       lambda row, c=column, s=some: number(row[c]) in s)

    def test_names(self):
        path = self.random_trace(3)
        rows = self.rows(path)
        for action in ("Alloc", "ReAlloc", "Free", "Destroy", "alloc", ""):
            self.check(path, rows, f"action = '{action}'", lambda row, a=action: row["action"] == a)
        self.check(path, rows, "action IN ('Alloc', 'Free') AND action IN ('Free', 'Lock')",
                   lambda row: row["action"] == "Free")
        self.check(path, rows, "api = 'malloc' AND thread = 1 AND size BETWEEN 100 AND 4000",
                   lambda row: row["api"] == "malloc" and row["thread"] == 1 and
                   row["size"] is not None and 100 <= row["size"] <= 4000)

    def test_left_to_sqlite(self):
        """Values of other types, and comparisons that are no order of numbers."""
        path = self.random_trace(4)
        count = len(self.rows(path))
        for condition, plain in (("thread = 1.0", "+thread = 1"), ("thread = '1'", "thread = 1"),
                                 ("size < 100.5", "+size < 101"), ("size = NULL", "0"),
                                 ("thread IN (1, 2.0)", "1"), ("thread IN (1, NULL)", "thread = 1"),
                                 ("action = 'alloc' COLLATE NOCASE", "action = 'Alloc'"),
                                 ("size IN (NULL)", "0"), ("action IN (NULL)", "0"),
                                 ("thread <> 1", "thread = 2"), ("size IS NULL", "+size IS NULL"),
                                 ("position = 'x'", "0"), ("time_start > 5", "1"),
                                 ("thread = 1 OR action = 'Free'", "+thread = 1 OR +action = 'Free'"),
                                 ("time_start < pos('5:0')", "+time_start < pos('5:0')"),
                                 ("time_end > pos('5:0')", "+time_end > pos('5:0')"),
                                 ("time_start IN (pos('5:0'), pos('5:1'))",
                                  "+time_start = pos('5:0') OR +time_start = pos('5:1')")):
            self.assertEqual(self.ask(path, condition)[0], self.ask(path, plain)[0], condition)
        self.assertEqual(self.ask(path, "1")[3], count)

    def test_large_numbers(self):
        script = Script().basics()
        for size in (5, 2**63 - 1, 2**63, 2**64 - 1):
            script.alloc(2**64 - size - 1, size)
        path = self.write(script.close())
        self.assertEqual(self.ask(path, "size > 5")[0], [1, 2, 3])
        self.assertEqual(self.ask(path, "size > 9e18")[0], [1, 2, 3])
        self.assertEqual(self.ask(path, "size = 9223372036854775807")[0], [1])
        self.assertEqual(self.ask(path, "address = -6")[0], [0])

    def test_ranges(self):
        """A range reads its chunks only: of two hundred thousand events a few thousand."""
        script = Script(events_per_chunk=1000).basics()
        script.add("churn", count=200000, slots=100, position="2:0")
        path = self.write(script.close())
        _, _, everything, _ = self.ask(path, "+number = 5")
        self.assertGreaterEqual(everything, 200000)
        place = self.run_ok("query", "-f", "json", "SELECT position, time_start, time_end "
                            "FROM events WHERE number = 100000", path).json["rows"][0]
        for condition in ("number = 100000", "number BETWEEN 99990 AND 100010",
                          f"position = pos('{place['position']}')",
                          f"time_start >= pos('{place['time_start']}') AND "
                          f"time_end <= pos('{place['time_end']}')",
                          "position >= pos('50%') AND number < 100010",
                          "position = pos('#100000')",
                          "number = 100000 OR number = 5 AND thread > 0"):
            with self.subTest(condition):
                rows, _, decoded, _ = self.ask(path, condition)
                self.assertIn(100000, rows)
                self.assertLess(decoded, 20000)

    def late_payload(self, path):
        """The offset and size of a payload near the end of the events, as it is read."""
        with open(path, "rb") as file:
            data = file.read()
        offset, found = 0, []
        while offset + HEADER <= len(data):
            kind, = struct.unpack_from("<H", data, offset + 10)
            size = struct.unpack_from("<I", data, offset + 16)[0] + 7 & ~7
            if kind == EVENTS:
                found.append((offset + HEADER, size))
            offset += HEADER + size
        return found[-4]

    def reads(self, path, sql, *options):
        """How often a late payload of events is read for a query, and the answer."""
        offset, size = self.late_payload(path)
        count = self.path("count")
        result = self.run_ok("query", "-f", "json", *options, sql, path, env={
            "LD_PRELOAD": os.environ["COUNT_READS"], "COUNT_AT": str(offset),
            "COUNT_SIZE": str(size), "COUNT_TO": count})
        with open(count, encoding="ascii") as file:
            return int(file.read()), result.json

    def test_checked_once(self):
        """However many tables there are, one of them checks the whole trace."""
        script = Script(events_per_chunk=1000).basics()
        script.add("churn", count=20000, slots=100, position="2:0")
        path = self.write(script.close())
        part = "(SELECT sum(size) FROM events WHERE number < {})"
        once, _ = self.reads(path, "SELECT " + part.format(5))
        reads, answer = self.reads(path, "SELECT " + " + ".join(part.format(i) for i in (5, 6, 7)))
        self.assertGreater(once, 0)
        self.assertEqual(reads, once)
        self.assertIs(answer["certain"], True)

    def test_part_of_a_long_trace(self):
        """A range of a long trace leaves the rest unread, and says so; not with --no-index."""
        script = Script().basics()
        script.add("churn", count=int(os.environ["INDEX_PAYS"]) + 1, slots=100, position="2:0")
        path = self.write(script.close())
        sql = "SELECT number FROM events WHERE position < pos('#3')"
        reads, answer = self.reads(path, sql)
        self.assertEqual(reads, 0)
        self.assertIs(answer["certain"], False)
        self.assertIn("only a part of the trace was read", answer["reasons"][0])
        reads, whole = self.reads(path, sql, "--no-index")
        self.assertGreater(reads, 0)
        self.assertIs(whole["certain"], True)
        self.assertEqual(answer["rows"], whole["rows"])
        reads, all_events = self.reads(path, "SELECT count(*) AS n FROM events")
        self.assertGreater(reads, 0)
        self.assertIs(all_events["certain"], True)

    def test_counts(self):
        """Events are counted as they are read, in whole and damaged traces."""
        paths = [path for path in sorted(loss_support.VECTORS.glob("*.trace"))
                 if re.search("good|-events|-chunk|-cut|-end", path.name)]
        script = Script().basics()
        for i in range(10):
            script.alloc(0x1000 * (i + 1), 8)
        script.add("loss", reason=1, count=4, last_good="6:0", first_good="7:0")
        paths.append(self.write(script.close(), "loss.ttd"))
        self.assertGreater(len(paths), 50)
        for path in paths:
            for counts, reads, end in (("count(*)", "count(number)", ""), ("rowid", "number", ""),
                                       *(("1", "number + 1 - number", f"LIMIT {limit}")
                                         for limit in range(1, 4))):
                one, other = (run("query", "-f", "json", f"SELECT {what} AS n FROM events {end}",
                                  path) for what in (counts, reads))
                self.assertEqual((one.status, one.text, one.errors),
                                 (other.status, other.text, other.errors), (path, counts, end))

    def test_order(self):
        """Events come sorted: the first ones need no others."""
        script = Script(events_per_chunk=1000).basics()
        script.add("churn", count=100000, slots=100, position="2:0")
        path = self.write(script.close())
        for order in ("number", "position", "rowid"):
            rows, _, decoded, _ = self.ask(path, f"thread > 0 ORDER BY {order} LIMIT 3")
            self.assertEqual(rows, [0, 1, 2])
            self.assertLess(decoded, 20000)
        rows, *_ = self.ask(path, "number IN (9, 3, 7) ORDER BY position")
        self.assertEqual(rows, [3, 7, 9])

    def test_positions(self):
        script = Script().basics()
        for i in range(10):
            script.alloc(0x1000 * (i + 1), 8)
        script.add("user", position=script.tick(), client="ttdtrace.live", data="here")
        path = self.write(script.close())
        for text, count in (("start", 0), ("50%", 5), ("#3", 3), ("end", 10), ("mark:here", 10)):
            self.assertEqual(len(self.ask(path, f"position < pos('{text}')")[0]), count, text)
        for text in ("0:0", "10:1", "12345678:9ABCDEF0", "FEDCBA9876543210:123456789"):
            row = self.run_ok("query", "-f", "csv", f"SELECT pos('{text}')", path).text
            self.assertEqual(row.splitlines()[1], text)
        result = run("query", "SELECT pos('mark:nowhere')", path)
        self.assertEqual(result.status, support.USAGE)
        self.assertIn("no mark has the text 'nowhere'", result.errors)

    def test_part_of_an_unclosed_trace(self):
        script = Script().basics()
        for i in range(10):
            script.alloc(0x1000 * (i + 1), 8)
        path = self.write(script.abandon())
        data = self.run_ok("query", "-f", "json", "SELECT pos('50%') AS p", path).json
        self.assertIs(data["certain"], False)
        self.assertRegex(" ".join(data["reasons"]), "a position in % is a part of")


if __name__ == "__main__":
    support.main()
