# SPDX-License-Identifier: MIT
"""ttdanalyze diff of two traces, or of one at two positions"""

import os
import random

import oracle
import support
from support import Script, TestCase, run
from compare_support import MOVED, other_build, paths, rebuilt


def changes(found):
    return [(c["change"], c["change_bytes"], c["change_blocks"], c["stack_id"])
            for c in found["changes"]]


class Two(TestCase):
    def compare(self, old, new, *arguments):
        return self.run_ok("diff", "-f", "json", *arguments, self.write(old, "old"),
                           self.write(new, "new")).json

    def test_rebuilt(self):
        script = Script().basics()
        for i, stack in enumerate((0, 1, 2, 3, 4)):
            script.alloc(0x1000 * (i + 1), 10 << i, stack=stack)
        found = self.compare(script.close(), rebuilt(script))
        self.assertEqual((found["same_stacks"], found["changes"], found["change_bytes"]),
                         (5, [], 0))
        self.assertEqual([found[side]["live_bytes"] for side in ("old", "new")], [310, 310])
        self.assertEqual(found["new"]["trace_id"], "0x777")

    def test_by(self):
        """Functions, files and modules are the same, wherever they are; threads of one trace."""
        script = Script().basics()
        for i, stack in enumerate((0, 1, 2, 3, 4, 2)):
            script.alloc(0x1000 * (i + 1), 10 << i, stack=stack)
        new = rebuilt(script)
        old = script.close()
        more = Script()
        more.lines = list(new.lines)
        more.clock = 400
        more.alloc(0x9000, 7, stack=1)
        more.alloc(0xa000, 1000, stack=4)
        old, new, more = (self.write(script, name) for script, name in
                          ((old, "old"), (new.close(), "same"), (more.close(), "new")))
        found = self.run_ok("diff", "-f", "json", "--by", "function", old, new).json
        self.assertEqual(found["changes"], [])
        for key, name in (("function", "g(int)"), ("module", None)):
            found = self.run_ok("diff", "-f", "json", "--by", key, old, more).json
            first = found["changes"][0]
            self.assertNotIn("fingerprint", first)
            self.assertEqual(first.get("function"), name)
            self.assertEqual(first["module"], "/home/me/demo")
            self.assertEqual([c["change_bytes"] for c in found["changes"]],
                             [1000, 7] if key == "function" else [1007])
            self.assertEqual(found["new_stacks"] + found["gone_stacks"], 0)
        some = self.run_ok("diff", "-f", "json", "--include", "g.h", old, more).json
        self.assertEqual((some["old"]["live_bytes"], some["change_bytes"]), (40 + 320, 1000))
        text = self.run_ok("diff", "--by", "function", old, more).text
        self.assertIn("g(int) in demo\n", text)
        self.assertIn("; functions: 0 new, 0 gone, 2 grown, 0 shrunk, ", text)
        rows = self.run_ok("diff", "--by", "function", "-f", "csv", old, more).csv
        self.assertEqual([(row["function"], row["change_bytes"]) for row in rows],
                         [("g(int)", "1000"), ("main", "7")])
        found = self.json_of("diff", old, "--changes", "--by", "thread")
        self.assertEqual([(c["thread"], c["new_blocks"]) for c in found["changes"]], [(1, 6)])
        for arguments in (("--by", "thread"), ("--by", "heap"), ("--quadrant", "aifi")):
            result = run("diff", *arguments, old, more)
            self.assertEqual(result.status, support.USAGE)

    def test_changes(self):
        old = Script().basics()
        old.alloc(0x1000, 100, stack=2)                     # grows
        old.alloc(0x2000, 500, stack=3)                     # gone
        old.alloc(0x3000, 80, stack=1)                      # fewer blocks, as many bytes
        old.alloc(0x3100, 80, stack=1)
        old.alloc(0x4000, 7, stack=0)                       # stays
        new = other_build(Script())
        new.alloc(0x1000, 100, stack=4)
        new.alloc(0x2000, 40, stack=4)
        new.alloc(0x3000, 160, stack=1)
        new.alloc(0x4000, 7, stack=0)
        new.alloc(0x5000, 60, stack=3)                      # new
        found = self.compare(old.close(), new.close())
        self.assertEqual(changes(found), [("gone", -500, -1, 3), ("new", 60, 1, 3),
                                          ("grown", 40, 1, 4), ("shrunk", 0, -1, 1)])
        self.assertEqual([found[name + "_stacks"] for name in
                          ("new", "gone", "grown", "shrunk", "same")], [1, 1, 1, 1, 1])
        self.assertEqual((found["change_bytes"], found["change_blocks"], found["certain"]),
                         (-400, 0, True))
        gone, new_one, grown, _ = found["changes"]
        self.assertEqual([f["module"] for f in gone["stack"]],
                         ["/usr/lib/libwork.so", "/opt/app/bin/demo"])
        self.assertEqual([f["offset"] for f in new_one["stack"]], ["0xbeef", "0x300", "0x120"])
        self.assertEqual((grown["old_bytes"], grown["old_blocks"], grown["new_bytes"],
                          grown["new_blocks"]), (100, 1, 140, 2))
        self.assertEqual(grown["stack"][0]["line"], 7)
        rows = self.run_ok("diff", "-f", "csv", self.path("old"), self.path("new")).csv
        self.assertEqual([(r["change"], int(r["change_bytes"]), int(r["change_blocks"]),
                           int(r["stack_id"])) for r in rows], changes(found))
        self.assertEqual([r["fingerprint"] for r in rows],
                         [c["fingerprint"] for c in found["changes"]])
        text = self.run_ok("diff", "--limit", "3", self.path("old"), self.path("new")).text
        self.assertIn("-500 bytes, -1 block, gone\n    #0  libwork.so+0x300\n", text)
        self.assertIn("+40 bytes, +1 block, grown: from 100 bytes in 1 block to 140 bytes in 2 "
                      "blocks\n    #0  g(int) (g.h:7) in demo (inlined)\n", text)
        self.assertIn("… and 1 stack more", text)
        self.assertIn("Change: -400 bytes, +0 blocks; stacks: 1 new, 1 gone, 1 grown, 1 shrunk, "
                      "1 same\n", text)

    def test_stacks_of_one_content_are_one(self):
        script = Script().basics()
        script.add("stack", parent=1, module=1, offset=0x210)
        script.add("symbol", module=1, offset=0x210, frames="_Z1gi@g.h@6,_ZN1f3runEv@f.cc@22")
        script.alloc(0x1000, 100, stack=2)
        script.alloc(0x2000, 11, stack=5)
        old = Script().basics()
        old.alloc(0x1000, 100, stack=2)
        found = self.compare(old.close(), script.close())
        self.assertEqual(changes(found), [("grown", 11, 1, 2)])
        self.assertEqual((found["changes"][0]["new_blocks"], found["same_stacks"]), (2, 0))

    def test_positions(self):
        script = Script().basics()
        script.alloc(0x1000, 1, start="1:0", end="1:0")
        script.alloc(0x2000, 2, start="2:0", end="2:0")
        script.alloc(0x3000, 4, start="3:0", end="3:0")
        script.realloc(0x3000, 0x4000, 64, start="4:0", end="5:0")
        script.free(0x4000, start="6:0", end="6:0")
        script.alloc(0x3000, 4, start="7:0", end="7:0")
        path = self.write(script.close())
        for arguments, expected in (((), (7, 7)), (("--from", "1:0"), (1, 7)),
                                    (("--to", "2:0"), (7, 3)),
                                    (("--from", "start", "--to", "#1"), (0, 3)),
                                    (("--from", "4:0", "--to", "#3"), (3, 67))):
            found = self.run_ok("diff", "-f", "json", *arguments, path, path).json
            self.assertEqual((found["old"]["live_bytes"], found["new"]["live_bytes"]), expected)
        found = self.json_of("diff", path, "--changes", "--from", "1:0", "--to", "2:0")
        self.assertEqual((found["old"]["live_bytes"], found["new"]["live_bytes"],
                          found["old"]["position"], found["new"]["position"]),
                         (1, 3, "1:0", "2:0"))

    def test_nonsense_sizes(self):
        most = (1 << 64) - 1
        old, new = Script().basics(), Script().basics()
        old.alloc(0x1000, most, stack=2)
        old.add("stack", parent=1, module=1, offset=0x210)
        old.add("symbol", module=1, offset=0x210, frames="_Z1gi,_ZN1f3runEv")
        old.alloc(0x2000, most, stack=5)
        new.alloc(0x1000, 1 << 60, stack=3)
        found = self.compare(old.close(), new.close())
        self.assertEqual(changes(found), [("gone", str(-most), -2, 2), ("new", str(1 << 60), 1, 3)])

    def test_doubts_of_either(self):
        whole = Script().basics()
        whole.alloc(0x1000, 100)
        torn = Script().basics()
        torn.alloc(0x1000, 100)
        torn.add("loss", reason=1, count=3, last_good="0:0", first_good="0:1")
        whole, torn = self.write(whole.close(), "whole"), self.write(torn.abandon(), "torn")
        for old, new in ((whole, torn), (torn, whole), (torn, torn), (whole, whole)):
            result = self.run_ok("diff", "-f", "json", old, new)
            found = result.json
            self.assertIs(found["old"]["certain"], old == whole)
            self.assertIs(found["new"]["certain"], new == whole)
            self.assertIs(found["certain"], old == new == whole)
            if old == torn:
                self.assertIn("3 events are missing", found["old"]["reasons"][0])
                self.assertIn("not closed", found["old"]["reasons"][1])
            text = self.run_ok("diff", old, new).text
            self.assertEqual("Uncertain, of the old heap: " in text, old == torn)
            self.assertEqual("Uncertain, of the new heap: " in text, new == torn)

    def test_what_is_wrong(self):
        path = self.write(Script().basics().close())
        result = run("diff", path, path, path)
        self.assertEqual(result.status, support.USAGE)
        self.assertIn("2 traces at a time", result.errors)
        self.assertIn("1 trace at a time", run("leaks", path, path).errors)
        for pair in ((path, self.path("none")), (self.path("none"), path)):
            result = run("diff", *pair)
            self.assertEqual(result.status, support.OPEN)
            self.assertIn("none: ", result.errors)
        with open(self.path("text"), "wb") as file:
            file.write(b"no trace at all, but long enough to be one" * 10)
        self.assertEqual(run("diff", path, self.path("text")).status, support.OPEN)

    def test_traces_are_not_overwritten(self):
        old = self.write(Script().basics().close(), "old")
        new = self.write(Script().basics().close(), "new")
        for output in (old, new):
            result = run("diff", "-o", output, old, new)
            self.assertEqual(result.status, support.USAGE)
            self.assertIn("is the trace itself", result.errors)
        self.run_ok("verify", old)
        self.run_ok("verify", new)
        self.assertEqual(sorted(os.listdir(self.folder)), ["new", "old"])


def state_of(blocks, at, names):
    return oracle.sums([b for b in blocks if b.live(at)], lambda b: names[b.row["stack"]])


def expected_changes(old, new):
    found = {}
    for key in old.keys() | new.keys():
        (blocks, size), (more_blocks, more) = old.get(key, (0, 0)), new.get(key, (0, 0))
        if (blocks, size) != (more_blocks, more):
            found[key] = (more_blocks - blocks, more - size)
    return found


class Random(TestCase):
    """Random traces against a model."""

    def check(self, found, old, new, names):
        """`names` of the old side's and the new side's stacks."""
        mine = {names[c["change"] != "gone"][c["stack_id"]]: (c["change_blocks"], c["change_bytes"])
                for c in found["changes"]}
        self.assertEqual(mine, expected_changes(old, new))
        self.assertEqual(len(mine), len(found["changes"]))
        order = [abs(c["change_bytes"]) for c in found["changes"]]
        self.assertEqual(order, sorted(order, reverse=True))
        self.assertEqual(found["same_stacks"], len(old.keys() | new.keys()) - len(mine))

    def test_two_traces(self):
        plain = {i: i for i in range(5)}
        moved = {there: here for here, there in MOVED.items()}
        for seed in range(20):
            chance = random.Random(seed)
            paths, rows, blocks, at = [], [], [], []
            for side in range(2):
                script = oracle.random_script(chance, 40)
                paths.append(self.write(rebuilt(script) if side else script, f"{seed}.{side}"))
                rows.append(self.run_ok("events", "-f", "json", paths[-1]).json_lines)
                blocks.append(oracle.owners(rows[-1]))
                at.append(chance.choice(oracle.positions(rows[-1])))
            found = self.run_ok("diff", "-f", "json", "--limit", "0", "--from",
                                oracle.spell(at[0]), "--to", oracle.spell(at[1]), *paths).json
            with self.subTest(seed=seed):
                self.check(found, state_of(blocks[0], at[0], plain),
                           state_of(blocks[1], at[1], moved), (plain, moved))

    def test_one_trace(self):
        names = {i: i for i in range(5)}
        for seed in range(20, 35):
            chance = random.Random(seed)
            path = self.write(oracle.random_script(chance, 40), str(seed))
            rows = self.run_ok("events", "-f", "json", path).json_lines
            blocks = oracle.owners(rows)
            begin, end = (chance.choice(oracle.positions(rows)) for _ in range(2))
            found = self.json_of("diff", path, "--changes", "--limit", "0", "--from",
                                 oracle.spell(begin), "--to", oracle.spell(end))
            with self.subTest(seed=seed):
                self.check(found, state_of(blocks, begin, names), state_of(blocks, end, names),
                           (names, names))


if __name__ == "__main__":
    support.main()
