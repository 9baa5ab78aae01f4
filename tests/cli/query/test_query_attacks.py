# SPDX-License-Identifier: MIT
"""Answers about damaged traces: none is certain and wrong, and all forms agree on certainty"""

import json
import random
import sqlite3

import oracle
import support
from snapshot_support import SnapshotScript
from support import TestCase, run

TRACES, DAMAGED = 2, 60
QUERIES = [
    "SELECT * FROM events", "SELECT count(*) AS n FROM events",
    "SELECT * FROM events WHERE number < 9", "SELECT * FROM events WHERE number BETWEEN 30 AND 40",
    "SELECT * FROM events WHERE position < pos('5:0')", "SELECT * FROM events LIMIT 3",
    "SELECT * FROM events WHERE number > 100000", "SELECT count(*) AS n FROM events WHERE number > 20",
    "SELECT * FROM blocks", "SELECT * FROM live", "SELECT * FROM live('3:0')",
    "SELECT * FROM live('20%')", "SELECT * FROM live_sites", "SELECT * FROM heaps",
    "SELECT * FROM sites", "SELECT * FROM leaks", "SELECT * FROM errors", "SELECT * FROM moves",
    "SELECT * FROM timeline", "SELECT * FROM peak", "SELECT * FROM diff", "SELECT * FROM refs",
    "SELECT * FROM retained", "SELECT * FROM fragmentation", "SELECT * FROM threads",
    "SELECT * FROM modules", "SELECT * FROM losses", "SELECT * FROM marks",
    "SELECT * FROM snapshots", "SELECT * FROM stacks", "SELECT * FROM frames",
    "SELECT folded(stack_id) AS f FROM events LIMIT 2", "SELECT * FROM stacks WHERE stack_id = 2",
    "SELECT pos('50%') AS p", "SELECT pos('#7') AS p", "SELECT pos('+0.1us') AS p",
    "SELECT site(2) AS s", "SELECT * FROM history('0x1000')",
    "SELECT count(*) AS n FROM events WHERE action = 'Free'", "SELECT 1 FROM events WHERE 0"]


def chunks(data):
    """Where chunks begin, and their sizes."""
    offset = 0
    while offset < len(data):
        size = (112 + int.from_bytes(data[offset + 16:offset + 20], "little") + 7) // 8 * 8
        yield offset, size
        offset += size


def damage(data, chance, kind):
    """A trace that was cut, has wrong bits or lacks bytes, or a chunk that is missing or there twice."""
    data = bytearray(data)
    begin, size = chance.choice(list(chunks(data))[1:])
    at = chance.randrange(len(data))
    if kind == 0:
        del data[at:]
    elif kind == 1:
        data[at] ^= 1 << chance.randrange(8)
    elif kind == 2:
        del data[at:at + 8 * chance.randrange(1, 40)]
    elif kind == 3:
        del data[begin:begin + size]
    else:
        data[begin:begin] = data[begin:begin + size]
    return bytes(data)


class Attacks(TestCase):
    def files(self):
        yield self.write(oracle.random_script(random.Random(7), 60), "events.ttd")
        script = SnapshotScript().basics()
        for i in range(40):
            script.alloc(0x11000 + i * 0x100, 64, stack=2 + i % 2)
        script.snapshot((0x11000, 0x11100), (0x11100, 0x11200), (2, 0, 0x11000))
        yield self.write(script.close(), "snapshot.ttd")

    def forms(self, path, sql):
        """Whether each form has the answer as certain."""
        database, lines = self.path("out.db"), self.path("out.jsonl")
        in_csv = self.run_ok("query", "-f", "csv", sql, path).errors
        in_text = self.run_ok("query", sql, path).text
        in_database = self.run_ok("query", "-o", database, sql, path).errors
        in_lines = self.run_ok("query", "-o", lines, sql, path).errors
        with sqlite3.connect(database) as opened:
            reasons = [row[0] for row in opened.execute("SELECT reason FROM uncertain")]
        opened.close()
        certain = [": uncertain: " not in errors for errors in (in_csv, in_database, in_lines)]
        return [*certain, "Uncertain: " not in in_text, not reasons], reasons

    def test_damage(self):
        chance = random.Random(1)
        certain = 0
        for path in self.files():
            with open(path, "rb") as file:
                data = file.read()
            whole = {sql: self.run_ok("query", "-f", "json", sql, path).json for sql in QUERIES}
            for number in range(DAMAGED // TRACES):
                bad = self.path("bad.ttd")
                with open(bad, "wb") as file:
                    file.write(damage(data, chance, number % 5))
                for sql in chance.sample(QUERIES, 8):
                    with self.subTest(path=path, number=number, sql=sql):
                        certain += self.check(bad, sql, whole[sql], chance.random() < 0.2)
        self.assertGreater(certain, 0)

    def check(self, path, sql, whole, has_forms):
        found = run("query", "-f", "json", sql, path)
        self.assertIn(found.status, (0, support.USAGE, support.OPEN, support.DAMAGED))
        if found.status != 0:
            self.assertEqual(found.text, "")
            return False
        answer = json.loads(found.text)
        if answer["certain"]:
            self.assertEqual(answer["rows"], whole["rows"])
        if has_forms:
            certain, reasons = self.forms(path, sql)
            self.assertEqual(set(certain), {answer["certain"]})
            self.assertEqual(reasons, answer["reasons"])
        return answer["certain"]


if __name__ == "__main__":
    support.main()
