# SPDX-License-Identifier: MIT
"""ttdanalyze retained and roots, against deleting what goes away and marking anew."""

import random

import support
from support import run
from snapshot_support import (IN_BSS, IN_REGISTERS, IN_STACK, SnapshotCase, SnapshotScript)

FIRST, STEP = 0x20000, 0x1000


def address_of(number):
    return FIRST + STEP * number


class Graph:
    """Blocks with pointers and roots, as a script and as sets."""

    def __init__(self, sizes, edges, roots, stacks=None):
        self.sizes, self.edges, self.roots = sizes, sorted(set(edges)), roots
        self.stacks = stacks or [2] * len(sizes)

    def script(self, **fields):
        script = SnapshotScript().basics()
        for number, size in enumerate(self.sizes):
            script.alloc(address_of(number), size, stack=self.stacks[number])
        words = [(address_of(a) + 8 * [c for c, _ in self.edges[:i]].count(a), address_of(b))
                 for i, (a, b) in enumerate(self.edges)]
        words += [(*place, address_of(target)) for place, target in self.roots.items()]
        return script.snapshot(*words, **fields)

    def held(self, without=frozenset(), roots=None):
        """The blocks that roots lead to, when some blocks are not there."""
        targets = {}
        for source, target in self.edges:
            targets.setdefault(source, []).append(target)
        found, todo = set(), list(self.roots.values() if roots is None else roots)
        while todo:
            block = todo.pop()
            if block in found or block in without:
                continue
            found.add(block)
            todo += targets.get(block, [])
        return found

    def sums(self, blocks):
        return len(blocks), sum(self.sizes[block] for block in blocks)


def random_graph(seed):
    chance = random.Random(seed)
    count = chance.randrange(2, 20)
    edges = [(chance.randrange(count), chance.randrange(count))
             for _ in range(chance.randrange(2 * count))]
    roots = {(chance.choice((IN_BSS, IN_STACK)), 8 * i): chance.randrange(count)
             for i in range(chance.randrange(1, 5))}
    sizes = [chance.randrange(1, 40) + 8 * len({e for e in edges if e[0] == block})
             for block in range(count)]
    return Graph(sizes, edges, roots, [chance.choice((1, 2, 3)) for _ in range(count)])


def retained(item):
    return item["retained_blocks"], item["retained_bytes"]


class Retained(SnapshotCase):
    def graph(self):
        """0 holds 1 and 2, both hold 3, and a stack holds 2 as well; 4 is lost and holds 5."""
        return Graph([100, 200, 300, 400, 50, 60], [(0, 1), (0, 2), (1, 3), (2, 3), (4, 5)],
                     {(IN_BSS, 8): 0, (IN_STACK, 16): 2}, [2, 2, 3, 3, 2, 2])

    def test_blocks(self):
        found = self.json_of("retained", self.write(self.graph().script().close()))
        self.assertEqual([(i["block"]["address"], *retained(i)) for i in found["retainers"]],
                         [("0x23000", 1, 400), ("0x20000", 2, 300), ("0x22000", 1, 300),
                          ("0x21000", 1, 200)])
        self.assertEqual([found[k] for k in ("total_blocks", "total_bytes", "unheld_blocks",
                                             "unheld_bytes", "by", "total_retainers")],
                         [6, 1110, 2, 110, "block", 4])

    def test_random_blocks(self):
        for seed in range(15):
            graph = random_graph(seed)
            path = self.write(graph.script().close(), f"trace{seed}.ttd")
            held = graph.held()
            expected = {hex(address_of(b)): graph.sums(held - graph.held({b})) for b in held}
            found = self.json_of("retained", path, "--limit", "0")
            self.assertEqual({i["block"]["address"]: retained(i) for i in found["retainers"]},
                             expected, seed)
            for limit in (1, 3):
                self.assertEqual(self.json_of("retained", path, "--limit", str(limit))["retainers"],
                                 found["retainers"][:limit], (seed, limit))

    def test_words_outside_of_blocks(self):
        """One that a released block may have left holds nothing; nor does any other what is held
        already."""
        old, freed, young = FIRST, FIRST + STEP, FIRST + 2 * STEP
        both = {hex(old): (2, 48), hex(young): (1, 16)}
        for number, (words, expected) in enumerate((
                ([(freed + 8, old)], {}),
                ([(freed - 8, old)], {hex(old): (1, 32)}),
                ([(freed + 8, young)], {hex(young): (1, 16)}),
                ([(IN_BSS, 0, old), (old, young), (freed + 8, young)], both),
                ([(IN_STACK, 0, old), (old, young), (freed + 8, young)], both))):
            script = SnapshotScript().basics()
            script.alloc(old, 32)
            script.alloc(freed, 64)
            script.free(freed)
            script.alloc(young, 16)
            path = self.write(script.snapshot(*words).close(), f"outside{number}.ttd")
            found = self.json_of("retained", path)["retainers"]
            self.assertEqual({i["block"]["address"]: retained(i) for i in found}, expected, number)

    def test_random_roots(self):
        """By variable and stack; here each region is one."""
        labels = {"demo .bss": IN_BSS, "thread 1, stack": IN_STACK}
        for seed in range(15):
            graph = random_graph(seed)
            path = self.write(graph.script().close(), f"trace{seed}.ttd")
            for item in self.json_of("roots", path)["retainers"]:
                region = labels[item["root"]["label"]]
                own = [t for (r, _), t in graph.roots.items() if r == region]
                others = [t for (r, _), t in graph.roots.items() if r != region]
                self.assertEqual(retained(item),
                                 graph.sums(graph.held() - graph.held(roots=others)), seed)
                self.assertEqual((item["reachable_blocks"], item["reachable_bytes"]),
                                 graph.sums(graph.held(roots=own)), seed)
                self.assertEqual((item["blocks"], item["pointers"]), (len(set(own)), len(own)))

    def test_tree(self):
        """A branch retains itself and the memory that its lower branches retain."""
        for seed in range(15):
            graph = random_graph(seed)
            path = self.write(graph.script().close(), f"trace{seed}.ttd")
            found = self.json_of("retained", path, "--tree", "--limit", "0", "--depth", "100")
            above = []
            left = {}
            for number, item in enumerate(found["retainers"]):
                del above[item["depth"]:]
                for one in above:
                    left[one] -= item["bytes"]
                left[number] = item["retained_bytes"] - item["bytes"]
                above.append(number)
                self.assertEqual(item["others"], 0)
            self.assertEqual(set(left.values()), {0} if left else set(), seed)
            self.assertEqual(sum(i["bytes"] for i in found["retainers"]),
                             graph.sums(graph.held())[1])

    def test_tree_text(self):
        text = self.run_ok("retained", "--tree", self.write(self.graph().script().close())).text
        lines = text.splitlines()
        self.assertTrue(lines[0].startswith("6 blocks, 1,110 bytes by snapshot 1 at "))
        self.assertIn("2 blocks, 110 bytes, are held by nothing", lines[1])
        self.assertRegex(lines[2], r"^400 bytes in 1 block: block 0x23000, 400 bytes by libwork")
        self.assertEqual(lines[3], "300 bytes in 2 blocks: demo .bss")
        self.assertRegex(lines[4], r"^  300 bytes in 2 blocks: block 0x20000")
        self.assertRegex(lines[5], r"^    200 bytes in 1 block: block 0x21000")
        text = self.run_ok("retained", "--tree", "--limit", "1", self.path("trace.ttd")).text
        self.assertIn("… and 3 more: 600 bytes in 3 blocks", text)

    def test_random_groups(self):
        """All blocks of a stack, function or module go away at once."""
        members = {"stack": "stack_id", "function": "function", "module": "module",
                   "file": "file", "thread": "thread", "heap": "heap_id"}
        names = {"stack": {1: 1, 2: 2, 3: 3}, "function": {1: "main", 2: "g(int)", 3: None},
                 "module": {1: "/opt/app/bin/demo", 2: "/opt/app/bin/demo",
                            3: "/usr/lib/libwork.so"},
                 "file": {1: "main.c", 2: "g.h", 3: None}, "thread": {1: 1, 2: 1, 3: 1},
                 "heap": {1: 1, 2: 1, 3: 1}}
        several = 0
        for seed in range(12):
            graph = random_graph(seed)
            path = self.write(graph.script().close(), f"trace{seed}.ttd")
            held = graph.held()
            for key, of_stack in names.items():
                groups = {}
                for block in held:
                    groups.setdefault(of_stack[graph.stacks[block]], set()).add(block)
                expected = {name: graph.sums(held - graph.held(blocks))
                            for name, blocks in groups.items()}
                found = self.json_of("retained", path, "--by", key)["retainers"]
                self.assertEqual({i[members[key]]: retained(i) for i in found}, expected,
                                 (seed, key))
                self.assertEqual([i["retained_bytes"] for i in found],
                                 sorted((i["retained_bytes"] for i in found), reverse=True))
                alone = {name: graph.sums(set().union(*(held - graph.held({b}) for b in blocks)))
                         for name, blocks in groups.items()}
                several += alone != expected
        self.assertGreater(several, 5)

    def test_labels(self):
        path = self.write(self.graph().script().close())
        text = self.run_ok("retained", "--by", "module", path).text
        self.assertIn("\n700 bytes in 2 blocks, held by 2 blocks of 700 bytes\n"
                      "    /usr/lib/libwork.so\n", text)
        self.assertIn("… and 1 function more", self.run_ok("retained", "--by", "function",
                                                           "--limit", "1", path).text)
        rows = self.run_ok("retained", "--by", "module", "-f", "csv", path).csv
        self.assertEqual([(r["module"], r["retained_bytes"]) for r in rows],
                         [("/usr/lib/libwork.so", "700"), ("/opt/app/bin/demo", "300")])

    def test_stacks(self):
        found = self.json_of("retained", self.write(self.graph().script().close()), "--by", "stack")
        self.assertEqual([(i["stack_id"], i["blocks"], i["bytes"], *retained(i))
                          for i in found["retainers"]], [(3, 2, 700, 2, 700), (2, 2, 300, 2, 300)])
        self.assertEqual(found["retainers"][0]["stack"][0]["module"], "/usr/lib/libwork.so")

    def test_classes(self):
        graph = self.graph()
        script = SnapshotScript().basics()
        for number, size in enumerate((10, 20, 30)):
            script.alloc(address_of(number), size)
        script.snapshot((address_of(0), 0x401000), (address_of(1), 0x401000),
                        (address_of(2), 0x402000), (IN_BSS, 8, address_of(0)),
                        (IN_BSS, 16, address_of(1)), (IN_BSS, 24, address_of(2)),
                        classes=((0x401000, "N3app6ServerE"), (0x402000, "")))
        path = self.write(script.close())
        found = self.json_of("retained", path, "--by", "class")
        self.assertEqual([(i["class"], i["class_address"], i["blocks"], *retained(i))
                          for i in found["retainers"]],
                         [("app::Server", "0x401000", 2, 2, 30), (None, "0x402000", 1, 1, 30)])
        found = self.json_of("retained", path)
        self.assertEqual([i["class"] for i in found["retainers"]], [None, "app::Server",
                                                                    "app::Server"])
        self.assertRegex(self.run_ok("retained", path).text,
                         r"block 0x21000, 20 bytes, app::Server by g")
        text = self.run_ok("retained", "--by", "class", path).text
        self.assertIn("30 bytes in 2 blocks, held by 2 blocks of 30 bytes: app::Server\n", text)
        self.assertIn(": table of virtual functions at 0x402000\n", text)

    def test_variables(self):
        """Roots are told apart by variable where one is known, else by region."""
        graph = Graph([1, 2, 3, 4], [], {(IN_BSS, 0x200): 0, (IN_BSS, 0x208): 1, (IN_BSS, 0x300): 2,
                                         (IN_REGISTERS, 40): 3})
        script = graph.script()
        script.add("variable", module=1, offset=0x600000000 - 0x400000 + 0x200, size=16,
                   name="server")
        found = self.json_of("roots", self.write(script.close()))
        self.assertEqual([(i["root"]["label"], *retained(i), i["pointers"])
                          for i in found["retainers"]],
                         [("thread 1, registers", 1, 4, 1), ("demo .bss: server", 2, 3, 2),
                          ("demo .bss", 1, 3, 1)])
        text = self.run_ok("roots", "--limit", "1", self.path("trace.ttd")).text
        self.assertIn("thread 1, registers\n  alone holds 4 bytes in 1 block; leads to 4 bytes in "
                      "1 block; 1 pointer\n", text)
        self.assertIn("… and 2 roots more (--limit 0 for all)", text)

    def test_long_list(self):
        """A doubly linked list held at both ends, and a long chain: neither recurses."""
        count = 10000
        script = SnapshotScript().basics()
        for i in range(count):
            script.alloc(FIRST + 32 * i, 24)
        words = [(FIRST + 32 * i, FIRST + 32 * i + 32) for i in range(count - 1)]
        script.snapshot((IN_BSS, 0, FIRST), *words)
        path = self.write(script.close())
        found = self.json_of("retained", path, "--limit", "1")["retainers"][0]
        self.assertEqual((found["block"]["address"], *retained(found)), (hex(FIRST), count,
                                                                         24 * count))
        tree = self.json_of("retained", "--tree", path, "--depth", "4096")["retainers"]
        self.assertEqual(len(tree), 4096)

    def test_none(self):
        path = self.write(SnapshotScript().basics().close())
        for command in ("retained", "roots"):
            found = self.json_of(command, path)
            self.assertEqual((found["snapshot"], found["retainers"]), (None, []))
            self.assertIn("no snapshot of references at this position", run(command, path).text)

    def test_options(self):
        path = self.write(self.graph().script().close())
        for wrong in (("--by", "colour"), ("--tree", "--by", "root"), ("--depth", "0")):
            self.assertEqual(run("retained", *wrong, path).status, support.USAGE, wrong)
        rows = self.run_ok("retained", "-f", "csv", path).csv
        self.assertEqual([(r["block"], r["retained_bytes"]) for r in rows][:2],
                         [("0x23000", "400"), ("0x20000", "300")])
        rows = self.run_ok("roots", "-f", "csv", path).csv
        self.assertEqual([r["root"] for r in rows], ["demo .bss", "thread 1, stack"])


if __name__ == "__main__":
    support.main()
