# SPDX-License-Identifier: MIT
"""ttdanalyze diff of two traces, or of one at two positions"""

import os
import random
import re

import oracle
import support
from support import Script, TestCase, run


def other_build(script):
    """The same program loaded elsewhere, its modules and stacks in another order, other lines."""
    script.add("module", path="/build/libwork.so", bias=0x9000000, begin=0x9000000, end=0x9100000,
               position="0:0")
    script.add("module", path="/usr/lib/libother.so", bias=0xa000000, begin=0xa000000,
               end=0xa100000, position="0:0")
    script.add("module", path="/home/me/demo", bias=0x5550000, begin=0x5550000, end=0x5560000,
               position="0:0")
    script.add("thread", os=2000, position="0:0")
    script.add("thread", os=2001, position="0:0")
    script.add("heap", name="malloc")
    script.add("heap", handle=0xc00000, name="private")
    script.add("stack", parent=0, module=3, offset=0x120)       # 1: main
    script.add("stack", parent=1, module=1, offset=0x300)       # 2: main > ?
    script.add("stack", parent=2, module=0, offset=0xbeef)      # 3: main > ? > nowhere
    script.add("stack", parent=1, module=3, offset=0x280)       # 4: main > f (with an inlined g)
    script.add("symbol", module=3, offset=0x120, frames="main@main.c@99")
    script.add("symbol", module=3, offset=0x280,
               frames="_Z1gi@g.h@7,_ZN1f3runEv.constprop.0@f.cc@21")
    return script


# Stacks of Script.basics(), by what they have become there.
MOVED = {0: 0, 1: 1, 3: 2, 4: 3, 2: 4}


def rebuilt(script):
    """The same events of that other build."""
    lines = [line for line in script.lines
             if line.split()[0] not in ("trace", "module", "thread", "heap", "stack", "symbol")]

    def moved(match):
        return f"stack={MOVED[int(match[1], 16)]}"

    found = other_build(Script(id=0x777, events_per_chunk=5))
    found.lines += [re.sub(r"\bstack=(?:0x)?(\w+)", moved, line) for line in lines]
    return found


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
        self.assertIn("two traces at a time", result.errors)
        self.assertIn("one trace at a time", run("leaks", path, path).errors)
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


AMOUNTS = ("depth", "weight", "self_weight", "bytes", "self_bytes", "count", "self_count")
SIDES = ("old_blocks", "old_bytes", "new_blocks", "new_bytes")
NOWHERE = (("function", None), ("module", None), ("offset", None))
SELF = ("old_self_blocks", "old_self_bytes", "new_self_blocks", "new_self_bytes")


def across(label):
    """What a node is called in both traces."""
    label = dict(label, module=os.path.basename(label["module"] or "") or None)
    if "function" in label and not label["module"]:
        label["offset"] = None
    if label.get("function"):
        label["function"] = label["function"].split(" [clone ")[0]
    return label


def paths(nodes, apart, name=lambda label: label):
    """Nodes by what leads to them, without the members `apart` in their names."""
    found, way = {}, []
    for node in nodes:
        label = name({k: v for k, v in node.items() if k not in apart})
        way[node["depth"]:] = [tuple(sorted(label.items(), key=str))]
        found.setdefault(tuple(way), []).append(node)
    return found


class Trees(TestCase):
    """The trees of two heaps against those of one."""

    SHAPES = (("stack", "top-down"), ("function", "bottom-up"), ("file", "bottom-up"),
              ("module", "top-down"))

    def state(self, path, at, *view):
        return self.json_of("state", path, "--at", at, "--limit", "0", *view)["nodes"]

    def model(self, old, new, name):
        """By path: blocks and bytes of stacks that end there, in both heaps."""
        ends = {}
        for side, nodes in enumerate((old, new)):
            for way, same in paths(nodes, AMOUNTS, name).items():
                sums = ends.setdefault(way, [0, 0, 0, 0])
                for node in same:
                    sums[2 * side] += node["self_count"]
                    sums[2 * side + 1] += node["self_bytes"]
        return ends

    def check(self, tree, ends, levels=1000):
        expected = {}
        for way, sums in ends.items():
            for i in range(1, min(len(way), levels) + 1):
                node = expected.setdefault(way[:i], [0, 0, 0, 0, 0])
                node[4] += abs(sums[3] - sums[1]) + abs(sums[2] - sums[0])
                for k, amount in enumerate(sums):
                    node[k] += amount
        own = paths(tree["nodes"], ("depth", "change_blocks", "change_bytes") + SIDES + SELF)
        self.assertEqual(tree["total_nodes"], len(tree["nodes"]))
        # Where no stack was recorded, and at an address in no module, are called the same.
        own = {way: nodes for way, nodes in own.items() if NOWHERE not in way}
        self.assertEqual({way: [nodes[0][k] for k in SIDES] for way, nodes in own.items()},
                         {way: sums[:4] for way, sums in expected.items()
                          if sums[4] and NOWHERE not in way})
        for way, (node,) in own.items():
            self.assertEqual([node[k] for k in SELF],
                             expected[way][:4] if len(way) == levels else
                             ends.get(way, [0, 0, 0, 0]))
            self.assertEqual((node["change_blocks"], node["change_bytes"]),
                             (node["new_blocks"] - node["old_blocks"],
                              node["new_bytes"] - node["old_bytes"]))
        self.check_order(list(own), ends)

    def check_order(self, ways, ends):
        """Of those beside each other, what has changed more comes first."""
        def moved(way):
            return sum(abs(sums[3] - sums[1]) for other, sums in ends.items()
                       if other[:len(way)] == way)
        last = {}
        for way in ways:
            self.assertGreaterEqual(last.get(way[:-1], moved(way)), moved(way))
            last[way[:-1]] = moved(way)

    def check_folded(self, found, old, new):
        sums = {}
        for side, text in enumerate((old, new)):
            for line in text.splitlines():
                way, _, amount = line.replace("[uncertain];", "").rpartition(" ")
                sums.setdefault(way, [0, 0])[side] += int(amount)
        mine = {}
        for line in found.splitlines():
            way, before, after = line.replace("[uncertain];", "").rsplit(" ", 2)
            self.assertNotIn(way, mine)
            mine[way] = [int(before), int(after)]
        self.assertEqual(mine, sums)

    def test_one_trace(self):
        for seed in range(40, 46):
            chance = random.Random(seed)
            path = self.write(oracle.random_script(chance, 60), str(seed))
            rows = self.run_ok("events", "-f", "json", path).json_lines
            begin, end = (oracle.spell(chance.choice(oracle.positions(rows))) for _ in range(2))
            for by, shape in self.SHAPES + (("thread", "top-down"), ("heap", "bottom-up")):
                view = ("--by", by, "--tree", shape)
                command = ("diff", path, "--changes", "--from", begin, "--to", end, *view)
                with self.subTest(seed=seed, by=by, shape=shape):
                    tree = self.json_of(*command, "--limit", "0")
                    self.assertEqual((tree["tree"], tree["by"]), (shape, by))
                    ends = self.model(self.state(path, begin, *view),
                                      self.state(path, end, *view), dict)
                    self.check(tree, ends)
                    self.check(self.json_of(*command, "--limit", "0", "--depth", "1"), ends,
                               2 if by in ("thread", "heap") else 1)
                    self.check_folded(
                        self.run_ok(*command, "-f", "folded").text,
                        *(self.run_ok("state", path, "--at", at, *view, "-f", "folded").text
                          for at in (begin, end)))
                    rows = self.run_ok(*command, "--limit", "0", "-f", "csv").csv
                    names = ("depth", "change_blocks", "change_bytes") + SIDES + SELF
                    self.assertEqual([[int(row[k]) for k in names] for row in rows],
                                     [[node[k] for k in names] for node in tree["nodes"]])

    def test_two_traces(self):
        for seed in range(50, 56):
            chance = random.Random(seed)
            old = self.write(oracle.random_script(chance, 60), f"{seed}.old")
            new = self.write(rebuilt(oracle.random_script(chance, 60)), f"{seed}.new")
            for by, shape in self.SHAPES:
                view = ("--by", by, "--tree", shape)
                with self.subTest(seed=seed, by=by, shape=shape):
                    tree = self.run_ok("diff", "-f", "json", "--limit", "0", *view, old, new).json
                    self.check(tree, self.model(self.state(old, "end", *view),
                                                self.state(new, "end", *view), across))

    def test_what_cancels_out(self):
        script = Script().basics()
        script.alloc(0x1000, 100, stack=2, start="1:0", end="1:0")
        script.free(0x1000, start="2:0", end="2:0")
        script.alloc(0x1000, 100, stack=4, start="3:0", end="3:0")
        path = self.write(script.close())
        for options, count in (((), 5), (("--depth", "1"), 1)):
            tree = self.json_of("diff", path, "--changes", "--from", "1:0", "--tree", "top-down",
                                *options)
            self.assertEqual(tree["total_nodes"], count)
            self.assertEqual([(n["function"], n["change_bytes"]) for n in tree["nodes"]][:1],
                             [("main", 0)])

    def test_text(self):
        script = Script().basics()
        script.alloc(0x1000, 2000, stack=2, start="1:0", end="1:0")
        script.alloc(0x2000, 50, stack=1, start="1:1", end="1:1")
        script.alloc(0x3000, 8, stack=4, start="1:2", end="1:2")
        script.free(0x1000, start="2:0", end="2:0")
        script.alloc(0x4000, 700, stack=1, start="3:0", end="3:0")
        path = self.write(script.close())
        command = ("diff", path, "--changes", "--from", "1:2", "--tree", "top-down")
        text = self.run_ok(*command).text
        self.assertEqual(text.splitlines()[4:8], [
            "          change     blocks       old bytes       new bytes",
            "          -1,300         +0           2,058             758  main in demo",
            "          -2,000         -1           2,000               0  - f::run() in demo",
            "          -2,000         -1           2,000               0    g(int) in demo"])
        self.assertNotIn("libwork", text)
        self.assertIn("Change: -1,300 bytes, +0 blocks\n", text)
        text = self.run_ok(*command, "--limit", "1", "--depth", "2").text
        self.assertIn("  main in demo\n", text)
        same = self.run_ok("diff", path, path, "--tree", "top-down").text
        self.assertTrue(same.startswith("Old: 758 bytes"), same)
        nothing = self.json_of("diff", path, path, "--tree", "top-down")
        self.assertEqual((nothing["nodes"], nothing["total_nodes"]), ([], 0))
        self.assertEqual(self.run_ok("diff", path, path, "-f", "folded").text.splitlines(),
                         ["main 750 750", "main;libwork.so+0x300;[unknown] 8 8"])


if __name__ == "__main__":
    support.main()
