# SPDX-License-Identifier: MIT
"""ttdanalyze errors against a judge of random calls"""

import random

import support
from support import Script, TestCase


class Oracle(TestCase):
    """Random calls one after the other, judged by a model that reads what `events` prints."""

    def script(self, chance):
        script = Script().basics()
        for _ in range(60):
            what = chance.random()
            fields = {"stack": chance.randrange(1, 5), "thread": chance.randrange(1, 3)}
            address = 0x1000 + 16 * chance.randrange(12)
            if what < 0.45:
                script.alloc(address, chance.randrange(0, 60), **fields)
            elif what < 0.85:
                script.free(address, **fields)
            else:
                script.realloc(address, 0x1000 + 16 * chance.randrange(12), 20, **fields)
        return script.close()

    @staticmethod
    def judge(rows):
        live, freed, found = {}, {}, {}
        for row in rows:
            if row["action"] != "Alloc":
                base = int(row["base_address"], 16)
                inside = [a for a, (_, size, _) in live.items() if a < base < a + size]
                realloc = row["action"] == "ReAlloc"
                key = None
                if base in live:
                    freed[base] = (live.pop(base), row)
                elif base in freed:
                    key = ("realloc-of-freed" if realloc else "double-free", row["action"],
                           row["stack"], freed[base][0][0], freed[base][1]["stack"])
                    freed[base] = (freed[base][0], row)
                elif inside:
                    key = ("interior-free", row["action"], row["stack"], live[max(inside)][0], 0)
                else:
                    # The block released last of those that it lay in; the table keeps their order.
                    around = [stacks for a, stacks in freed.items() if a < base < a + stacks[0][1]]
                    allocated, released = around[-1] if around else ((0,), {"stack": 0})
                    key = ("invalid-free", row["action"], row["stack"], allocated[0],
                           released["stack"])
                if key:
                    found[key] = found.get(key, 0) + 1
            if row["action"] != "Free":
                address = int(row["address"], 16)
                if address in live:
                    key = ("trace-inconsistency", row["action"], row["stack"], live[address][0], 0)
                    found[key] = found.get(key, 0) + 1
                live[address] = (row["stack"], row["size"], row)
                freed.pop(address, None)
        return found

    def test_random(self):
        for seed in range(25):
            path = self.write(self.script(random.Random(seed)), f"trace{seed}")
            rows = self.run_ok("events", "-f", "json", path).json_lines
            found = {}
            for f in self.json_of("errors", path, "--limit", "0")["findings"]:
                key = (f["kind"], f["action"], f["stack_id"],
                       f["allocated"]["stack_id"] if f["allocated"] else 0,
                       f["released"]["stack_id"] if f["released"] else 0)
                self.assertNotIn(key, found)
                found[key] = f["count"]
            self.assertEqual(found, self.judge(rows), seed)


if __name__ == "__main__":
    support.main()
