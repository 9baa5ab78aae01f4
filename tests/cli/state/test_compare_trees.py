# SPDX-License-Identifier: MIT
"""ttdanalyze diff --tree: trees of the differences of two heaps, against a model"""

import os
import random

import oracle
import support
from support import Script, TestCase
from compare_support import paths, rebuilt

AMOUNTS = ("depth", "weight", "self_weight", "bytes", "self_bytes", "count", "self_count")
SIDES = ("old_blocks", "old_bytes", "new_blocks", "new_bytes")
NOWHERE = (("function", None), ("module", None), ("offset", None))
SELF = ("old_self_blocks", "old_self_bytes", "new_self_blocks", "new_self_bytes")


def across(label):
    """The name of a node in both traces."""
    label = dict(label, module=os.path.basename(label["module"] or "") or None)
    if "function" in label and not label["module"]:
        label["offset"] = None
    if label.get("function"):
        label["function"] = label["function"].split(" [clone ")[0]
    return label


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
