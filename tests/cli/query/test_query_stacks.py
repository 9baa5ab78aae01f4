# SPDX-License-Identifier: MIT
"""The tables of stacks and frames, and the functions of stacks, beside the commands that print them"""

import random
from collections import Counter

import oracle
import support
from support import Script, TestCase


class Stacks(TestCase):
    def rows(self, path, sql):
        return self.run_ok("query", "-f", "json", sql, path).json["rows"]

    def traces(self):
        for seed in range(10):
            yield self.write(oracle.random_script(random.Random(seed), 60), f"{seed}.ttd")

    def test_frames(self):
        path = self.write(oracle.random_script(random.Random(1), 60))
        groups = self.json_of("hot", path, "--limit", "0")["groups"]
        self.assertGreater(len(groups), 2)
        for group in groups:
            frames = self.rows(path, "SELECT * FROM frames "
                                     f"WHERE stack_id = {group['stack_id']}")
            self.assertEqual([row.pop("depth") for row in frames], list(range(len(frames))))
            for row in frames:
                self.assertEqual(row.pop("stack_id"), group["stack_id"])
                row["inlined"] = bool(row["inlined"])
            self.assertEqual(frames, [{k: v for k, v in frame.items() if k != "callers_unknown"}
                                      for frame in group["stack"]])
        everything = self.rows(path, "SELECT * FROM frames")
        self.assertEqual(everything, self.rows(path, "SELECT f.* FROM stacks s, frames f "
                                                     "WHERE f.stack_id = s.stack_id"))
        for some in ("-1", "99", "4294967296", "'x'", "NULL"):
            self.assertEqual(self.rows(path, f"SELECT * FROM frames WHERE stack_id = {some}"), [])
        self.assertEqual(self.rows(path, "SELECT * FROM frames WHERE stack_id = '2'"),
                         [row for row in everything if row["stack_id"] == 2])

    def test_stacks(self):
        for path in self.traces():
            sites = self.rows(path, "SELECT a.stack AS a, b.stack AS b "
                                    "FROM sites a JOIN stacks b USING (stack_id)")
            self.assertGreater(len(sites), 0)
            for row in sites:
                self.assertEqual(row["a"], row["b"])
        stacks = self.rows(path, "SELECT * FROM stacks")
        self.assertEqual({row["stack_id"]: row["caller_stack_id"] for row in stacks},
                         {1: None, 2: 1, 3: 1, 4: 3})

    def test_folded(self):
        for path in self.traces():
            lines = self.run_ok("state", "--tree", "top-down", "-f", "folded", path).text
            there = {}
            for line in lines.splitlines():
                stack, _, weight = line.removeprefix("[uncertain];").rpartition(" ")
                there[stack] = int(weight)
            here = self.rows(path, "SELECT folded(stack_id) AS stack, sum(size) AS n FROM live "
                                   "GROUP BY 1 HAVING n > 0")
            self.assertEqual({row["stack"]: row["n"] for row in here}, there)

    def test_site(self):
        count = 0
        for path in self.traces():
            there = {group["function"]: group["bytes"] for group in
                     self.json_of("state", path, "--by", "function", "--limit", "0")["groups"]
                     if group["function"]}
            count += len(there)
            here = self.rows(path, "SELECT site(stack_id) AS f, sum(size) AS n FROM live GROUP BY 1")
            self.assertEqual({row["f"]: row["n"] for row in here if row["f"] in there}, there)
            self.assertEqual(self.rows(path, "SELECT stack_id FROM stacks "
                                             "WHERE site IS NOT site(stack_id)"), [])
        self.assertGreater(count, 0)

    def test_stack_has(self):
        for path in self.traces():
            for pattern in ("main", "g(*", "libwork", "f::*", "nothing.here"):
                there = self.json_of("state", path, "--include", pattern)
                self.assertEqual(self.rows(path, "SELECT count(*) AS n, coalesce(sum(size), 0) AS b "
                                                 f"FROM live WHERE stack_has(stack_id, '{pattern}')"),
                                 [{"n": there["live_blocks"], "b": there["live_bytes"]}])
        found = Counter(row["p"] for row in self.rows(path, "WITH RECURSIVE p(n) AS (VALUES(0) "
                        "UNION ALL SELECT n + 1 FROM p WHERE n < 40) SELECT n AS p FROM p, stacks "
                        "WHERE stack_has(stack_id, CASE n % 2 WHEN 0 THEN 'main' ELSE 'x' || n END)"))
        self.assertEqual(found, {n: 4 for n in range(0, 41, 2)})

    def test_no_stack(self):
        path = self.write(oracle.random_script(random.Random(1), 10))
        self.assertEqual(self.rows(path, "SELECT folded(0) AS a, site(0) AS b, folded(NULL) AS c, "
                                         "site('x') AS d, stack_has(0, 'x') AS e, folded(-1) AS f, "
                                         "stack_has(1, NULL) AS g, folded(99) AS h"),
                         [{"a": "[no stack]", "b": None, "c": None, "d": None, "e": 0, "f": None,
                           "g": None, "h": "[no stack]"}])

    def test_uncertain(self):
        script = Script().basics()
        script.alloc(0x1000, 8)
        path = self.write(script.abandon())
        data = self.run_ok("query", "-f", "json", "SELECT count(*) AS n, (SELECT count(*) FROM "
                           "events) AS m FROM stacks", path).json
        self.assertIs(data["certain"], False)
        self.assertEqual(len(data["reasons"]), 1, data["reasons"])


if __name__ == "__main__":
    support.main()
