# SPDX-License-Identifier: MIT
"""Shared by tests of queries: tables, and the comparison with the command that prints the same"""

import csv
import io

from support import TestCase

# Each table, the command that has its records as CSV, or the list of a command's JSON.
TABLES = {
    "events": (("events",), None),
    "live": (("state", "--blocks"), "blocks"),
    "live_sites": (("state", "--limit", "0"), None),
    "heaps": (("state",), "heaps"),
    "sites": (("hot", "--limit", "0"), None),
    "leaks": (("leaks", "--show", "all", "--limit", "0"), None),
    "errors": (("errors", "--limit", "0"), None),
    "moves": (("moves", "--limit", "0"), None),
    "timeline": (("timeline",), None),
    "diff": (("diff", "--limit", "0"), None),
    "blocks": (("history", "--address", "0", "--size", "0xffffffffffffffff", "--limit", "1000000"),
               None),
    "fragmentation": (("fragmentation", "--limit", "0"), None),
    "threads": (("info",), "thread_list"),
    "modules": (("info",), "module_list"),
    "losses": (("info",), "loss_list"),
    "marks": (("marks",), None),
    "snapshots": (("snapshots",), None),
}
# Columns that only traces of a sample have, and members that the tables do not have.
ONLY_HERE = ("estimated_blocks", "estimated_bytes")
ONLY_THERE = ("certain", "reserve_size", "commit_size", "make_read_only")


def same(value, text):
    """Whether a value of a query is the text, or the JSON, that a command has."""
    if isinstance(text, bool):
        text = str(text).lower()
    if value is None or text is None:
        return (value if value is not None else "") == (text if text is not None else "")
    if text in ("true", "false"):
        return bool(value) == (text == "true")
    if isinstance(value, float) or "e" in str(text) and not isinstance(value, str):
        return abs(float(text) - float(value)) <= 1e-5 * abs(float(value))
    return str(value) == str(text)


class QueryTestCase(TestCase):
    def query(self, path, sql, *options):
        return self.run_ok("query", "-f", "json", *options, sql, path).json

    def rows(self, path, sql):
        return self.query(path, sql)["rows"]

    def records(self, path, command, name):
        if name:
            return self.json_of(command[0], path, *command[1:])[name]
        text = self.run_ok(*command, "-f", "csv", path).text
        return list(csv.DictReader(io.StringIO(text)))

    def compare(self, path, table, command, name):
        there = self.records(path, command, name)
        here = self.rows(path, f"SELECT * FROM {table}")
        self.assertEqual(len(here), len(there), table)
        for row, record in zip(here, there):
            for key, value in row.items():
                if key == "stack_id" and table == "events":
                    key = "stack"
                if (key in ONLY_HERE and key not in record) or \
                        (table, key) == ("events", "position"):
                    continue
                self.assertTrue(same(value, record.pop(key)), (table, key, value))
            self.assertLessEqual({k for k in record if not isinstance(record[k], (dict, list))},
                                 set(ONLY_THERE), table)
