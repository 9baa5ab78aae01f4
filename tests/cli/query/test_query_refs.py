# SPDX-License-Identifier: MIT
"""The table of references: every pointer of a snapshot, as referrers shows those of one block"""

import support
from snapshot_support import IN_BSS, SnapshotScript
from support import TestCase

A = 0x11000


class Refs(TestCase):
    def query(self, path, sql):
        return self.run_ok("query", "-f", "json", sql, path).json

    def trace(self):
        script = SnapshotScript().basics()
        for i in range(8):
            script.alloc(A + i * 0x100, 64, stack=2 + i % 2)
        script.snapshot((A, A + 0x100), (A + 0x108, A + 0x200), (A + 0x10, A + 0x210),
                        (A + 0x300, A + 0x300), (IN_BSS, 8, A), (IN_BSS, 0x18, A + 0x500))
        return self.write(script.close())

    def test_all(self):
        path = self.trace()
        data = self.query(path, "SELECT * FROM refs")
        found = {(r["holder"], r["offset"], r["target"], bool(r["interior"])) for r in data["rows"]}
        self.assertEqual(len(data["rows"]), 6)
        self.assertEqual(found, {(f"{A:#x}", 0, f"{A + 0x100:#x}", False),
                                 (f"{A + 0x100:#x}", 8, f"{A + 0x200:#x}", False),
                                 (f"{A:#x}", 16, f"{A + 0x200:#x}", True),
                                 (f"{A + 0x300:#x}", 0, f"{A + 0x300:#x}", False),
                                 (None, 8, f"{A:#x}", False),
                                 (None, 0x18, f"{A + 0x500:#x}", False)})
        self.assertTrue(all((r["holder"] is None) == (r["root"] is not None)
                            for r in data["rows"]))

    def test_referrers(self):
        """The words that point at each block are those that `referrers` lists at its first level."""
        path = self.trace()
        count = 0
        for i in range(8):
            target = f"{A + i * 0x100:#x}"
            there = [r for r in self.json_of("referrers", path, "--address", target)["referrers"]
                     if r["depth"] == 0]
            rows = self.query(path, "SELECT holder, root, offset FROM refs "
                                    f"WHERE target = {int(target, 16)}")["rows"]
            self.assertEqual({(r["holder"] or r["root"], r["offset"]) for r in rows},
                             {(r["block"]["address"] if r["block"] else r["root"]["label"],
                               r["offset"]) for r in there}, target)
            count += len(rows)
        self.assertEqual(count, 6)

    def test_no_snapshot(self):
        script = SnapshotScript().basics()
        script.alloc(A, 64)
        path = self.write(script.close(), "none.ttd")
        reason = "the trace has no snapshot of references at this position or before"
        for table in "refs", "retained":
            data = self.query(path, f"SELECT * FROM {table}")
            self.assertEqual((data["rows"], data["certain"]), ([], False), table)
            self.assertIn(reason, data["reasons"])
        for command in ("retained",), ("roots",), ("referrers", "--address", f"{A:#x}"):
            data = self.json_of(command[0], path, *command[1:])
            self.assertEqual((data["snapshot"], data["certain"]), (None, False), command)
            self.assertIn(reason, data["reasons"])
        data = self.query(self.trace(), "SELECT * FROM refs('start')")
        self.assertEqual((data["rows"], data["certain"]), ([], False))


if __name__ == "__main__":
    support.main()
