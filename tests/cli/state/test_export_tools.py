# SPDX-License-Identifier: MIT
"""`export` for tools of other projects: each opens the file and shows the numbers of ours"""

import json
import os
import random
import re
import shutil
import subprocess
import unittest
from collections import defaultdict

import oracle
import support
from snapshot_support import IN_BSS, IN_STACK, SnapshotScript
from support import Script, TestCase, USAGE, run

# Names with the special characters of each format, line breaks and bytes that are no UTF-8.
HOSTILE = '(1)"<b>#\\;%2c%0afn=(1)%1b[31m%ff%e2%80%ae]{}|=%09'
ORIGIN = "/src/%0a# totals: 1 1@"


def names_of(stack):
    return tuple(frame.get("function") or "?" for frame in stack)


class Tools(TestCase):
    def export(self, form, path, *options):
        file = self.path("exported." + form)
        result = run("export", "-o", file, *options, form, path)
        self.assertEqual(result.status, 0, result.errors)
        return file

    def open_with(self, tool, *arguments):
        """The output of a tool; a missing one fails the test, since tools/check installs it."""
        self.assertTrue(shutil.which(tool), f"no {tool}: tools/install-packages check installs it")
        result = subprocess.run([tool, *arguments], capture_output=True, check=False,
                                env={**os.environ, "HOME": self.folder, "LC_ALL": "C"})
        errors = result.stderr.decode(errors="replace")
        self.assertEqual(result.returncode, 0, errors)
        return result.stdout.decode(), errors

    def sums(self, command, path, *options, keys=("blocks", "bytes")):
        """Blocks and bytes by the functions of their stacks, innermost first."""
        found = defaultdict(lambda: (0, 0))
        shown = self.json_of(command, path, "--limit", "0", *options)
        for group in shown["groups"] + (shown.get("runtime") or {}).get("groups", []):
            names = names_of(group["stack"])
            blocks, size = found[names]
            found[names] = blocks + int(group[keys[0]]), size + int(group[keys[1]])
        return {names: sums for names, sums in found.items() if sums[0]}

    def script(self):
        script = Script().basics()
        for index, stack in enumerate((2, 2, 3, 4, 1, 0)):
            script.alloc(0x1000 * (index + 1), 10 * (index + 1), stack=stack, wall=index * 7000000)
        script.free(0x5000, wall=50000000)
        script.realloc(0x1000, 0x9000, 5, wall=51000000)
        script.alloc(0x7000, 12, heap=2, wall=70000000)
        script.alloc(0x8000, 13, heap=2, wall=71000000)
        script.event("Destroy", heap=2, result=1, wall=72000000)
        script.alloc(0x7000, 1, stack=3, wall=80000000)
        return script

    def hostile(self):
        script = self.script()
        script.add("stack", parent=1, module=1, offset=0x900)
        script.add("symbol", module=1, offset=0x900, frames=f"{HOSTILE}@{ORIGIN}5")
        script.add("module", path=f"/lib/{HOSTILE}.so", bias=0x8000000, begin=0x8000000,
                   end=0x8100000, position="0:0")
        script.add("stack", parent=5, module=3, offset=0x10)
        script.alloc(0x90000, 7777, stack=6)
        return self.write(script.close(), "hostile.ttd")

    def paths(self):
        yield self.write(self.script().close())
        for seed in range(4):
            yield self.write(oracle.random_script(random.Random(seed), 90), f"{seed}.ttd")
        yield self.hostile()

    def lossy(self):
        script = self.script()
        script.add("loss", reason=1, count=3, last_good="8:0", first_good="8:1")
        path = self.write(script.close(), "lossy.ttd")
        reasons = self.json_of("state", path)["reasons"]
        self.assertTrue(reasons)
        return path, reasons


class Callgrind(Tools):
    def costs(self, file, *options):
        """The output of callgrind_annotate: the totals, and bytes and blocks by function."""
        text, errors = self.open_with("callgrind_annotate", "--threshold=100", "--auto=no",
                                      *options, file)
        self.assertEqual(errors, "")
        found, total = defaultdict(lambda: (0, 0)), None
        for line in text.splitlines():
            line = re.sub(r"\([ 0-9.]+%\)", "", line)
            match = re.match(r" *([0-9,]+|\.) +([0-9,]+|\.) +(.*)$", line)
            if not match:
                continue
            size, blocks = (int(n.replace(",", "")) if n != "." else 0 for n in match.group(1, 2))
            if match.group(3) == "PROGRAM TOTALS":
                total = blocks, size
                continue
            name = match.group(3).split(":", 1)[1] if ":" in match.group(3) else match.group(3)
            name = re.sub(r" \[.*\]$", "", name) or name
            sums = found[name]
            found[name] = sums[0] + blocks, sums[1] + size
        return total, dict(found)

    def expected(self, sums, is_inclusive):
        found = defaultdict(lambda: (0, 0))
        for names, (blocks, size) in sums.items():
            for name in set(names if is_inclusive else names[:1]):
                found[name] = found[name][0] + blocks, found[name][1] + size
        return found

    def test_costs(self):
        for path in self.paths():
            sums = self.sums("state", path, "--show-runtime")
            file = self.export("callgrind", path)
            total = sum(b for b, _ in sums.values()), sum(s for _, s in sums.values())
            for is_inclusive in (False, True):
                shown, costs = self.costs(file, f"--inclusive={'yes' if is_inclusive else 'no'}")
                self.assertEqual(shown, total)
                for name, expected in self.expected(sums, is_inclusive).items():
                    if name.isidentifier():
                        self.assertEqual(costs[name], expected, name)

    def test_names(self):
        file = self.export("callgrind", self.hostile())
        with open(file, "rb") as opened:
            text = opened.read().decode()
        self.assertTrue(all(c.isprintable() or c == "\n" for c in text))
        self.assertIn("\\x0afn=(1)\\x1b[31m\\xff", text)
        shown, _ = self.open_with("callgrind_annotate", "--threshold=100", "--auto=no", file)
        self.assertIn("7,777", shown)
        self.assertIn('(1)"<b>#', shown)

    def test_recursion(self):
        script = Script().basics()
        previous = 1
        for number in range(6):  # f and g by turns, each twice
            script.add("stack", parent=previous, module=1, offset=0x1000 + number)
            script.add("symbol", module=1, offset=0x1000 + number,
                       frames=f"{'ffggff'[number]}@x.c@{number + 1}")
            previous = 5 + number
        script.alloc(0x1000, 100, stack=previous)
        _, costs = self.costs(self.export("callgrind", self.write(script.close())),
                              "--inclusive=yes")
        self.assertEqual(costs["main"], (1, 100))
        self.assertEqual(costs["g"], (1, 100))

    def test_mutual_recursion(self):
        script = Script().basics()
        for number, name in enumerate("fg"):
            script.add("symbol", module=1, offset=0x1000 + number, frames=f"{name}@x.c@1")
        for number in range(6):
            script.add("stack", parent=4 + number if number else 1, module=1,
                       offset=0x1000 + number % 2)
        script.alloc(0x1000, 100, stack=10)
        _, costs = self.costs(self.export("callgrind", self.write(script.close())),
                              "--inclusive=yes")
        # The sum of the calls of g: from f alone. Those of f are from main and from g.
        self.assertEqual(costs["g"], (1, 100))

    def test_uncertain(self):
        path, reasons = self.lossy()
        shown, _ = self.open_with("callgrind_annotate", self.export("callgrind", path))
        for reason in reasons:
            self.assertIn(f"Uncertain: {reason}", shown)

    def test_measure(self):
        path = self.write(self.script().close())
        total, _ = self.costs(self.export("callgrind", path, "--measure", "allocated"))
        hot = self.json_of("hot", path)
        self.assertEqual(total, (hot["allocations"], hot["bytes"]))


class Massif(Tools):
    def snapshots(self, file):
        """(time, bytes, tree) of each snapshot; a tree is its lines."""
        with open(file, encoding="utf-8") as opened:
            text = opened.read()
        found = []
        for part in re.split(r"#-+\nsnapshot=\d+\n#-+\n", text)[1:]:
            values = dict(line.split("=", 1) for line in part.splitlines()[:5])
            found.append((float(values["time"]), int(values["mem_heap_B"]),
                          part.splitlines()[5:] if values["heap_tree"] == "peak" else None))
        return found

    def test_peak(self):
        for path in self.paths():
            file = self.export("massif", path)
            shown, errors = self.open_with("ms_print", "--threshold=0", file)
            self.assertEqual(errors, "")
            sums = self.sums("peak", path, "--show-runtime")
            total = sum(size for _, size in sums.values())
            snapshots = self.snapshots(file)
            peaks = [(size, tree) for _, size, tree in snapshots if tree is not None]
            self.assertEqual([size for size, _ in peaks], [total])
            self.assertEqual(max(size for _, size, _ in snapshots), total)
            self.assertEqual([time for time, _, _ in snapshots],
                             sorted(time for time, _, _ in snapshots))
            self.assertIn(f"({total:,}B) (heap allocation functions)", shown)
            outermost = defaultdict(int)
            for names, (_, size) in sums.items():
                outermost[names[0] if names else "[no stack]"] += size
            for name, size in outermost.items():
                if name.isidentifier() and size * 200 >= total:
                    self.assertRegex(shown, rf"\({size:,}B\) 0x0: {name}\b")

    def test_times(self):
        path = self.write(self.script().close())
        snapshots = self.snapshots(self.export("massif", path))
        timeline = self.json_of("timeline", path, "--points", "200")
        self.assertEqual([size for _, size, _ in snapshots],
                         [point["peak_bytes"] for point in timeline["points"]])
        self.assertEqual([time for time, _, _ in snapshots],
                         [point["first"] / 1e6 for point in timeline["points"]])

    def test_small_shares(self):
        script = Script().basics()
        script.alloc(0x1000, 100000, stack=1)
        for number in range(5):
            script.add("stack", parent=1, module=1, offset=0x1000 + number)
            script.add("symbol", module=1, offset=0x1000 + number, frames=f"f{number}@x.c@1")
            script.alloc(0x2000 + number * 0x100, number + 1, stack=5 + number)
        (_, _, tree), = self.snapshots(self.export("massif", self.write(script.close())))[-1:]
        self.assertEqual(tree, ["n2: 100015 (heap allocation functions) malloc/new/new[], "
                                "--alloc-fns, etc.",
                                " n0: 15 in 5 places, all below the threshold of 0.5%",
                                " n0: 100000 0x0: main (in /opt/app/bin/demo)"])

    def test_names(self):
        shown, _ = self.open_with("ms_print", self.export("massif", self.hostile()))
        self.assertIn('0x0: (1)"<b>\\x23\\\\;,\\x0afn=(1)\\x1b[31m\\xff', shown)
        self.assertIn("(7,777B)", shown)

    def test_uncertain(self):
        path, reasons = self.lossy()
        shown, _ = self.open_with("ms_print", self.export("massif", path))
        for reason in reasons:
            self.assertIn(f"Uncertain: {reason}", shown)


class Heaptrack(Tools):
    def costs(self, file, cost):
        """Amounts by stack, outermost first, from the stacks that heaptrack_print writes."""
        stacks = self.path("stacks")
        text, errors = self.open_with(
            "heaptrack_print", "-f", file, "-F", stacks, "--flamegraph-cost-type", cost,
            "--disable-builtin-suppressions", "--shorten-templates=0")
        self.assertEqual([line for line in errors.splitlines() if "failed" in line.lower()], [])
        found = defaultdict(int)
        with open(stacks, encoding="utf-8") as opened:
            for line in opened:
                names, amount = line.rstrip("\n").rsplit(" ", 1)
                names = [re.sub(r" \([^()]*\)$", "", name) for name in names.split(";") if name]
                found[tuple(names)] += int(amount)
        return text, {names: amount for names, amount in found.items() if amount}

    def test_costs(self):
        for path in self.paths():
            file = self.export("heaptrack", path)
            live = self.sums("state", path, "--show-runtime")
            hot = self.json_of("hot", path)
            peak = self.json_of("peak", path)
            text, leaked = self.costs(file, "leaked")
            self.assertIn(f"calls to allocation functions: {hot['allocations']} ", text)
            self.assertIn(f"reading file \"{file}\"", text)
            self.assertEqual(sum(leaked.values()), sum(size for _, size in live.values()))
            for names, (_, size) in live.items():
                if size and names and all(name.isidentifier() for name in names):
                    self.assertEqual(leaked.get(tuple(reversed(names))), size, leaked)
            _, calls = self.costs(file, "allocations")
            self.assertEqual(sum(calls.values()), hot["allocations"])
            # Calls at the same position have no order; in heaptrack they have.
            _, most = self.costs(file, "peak")
            expected = peak["live_bytes"] + peak["runtime_bytes"]
            self.assertGreaterEqual(sum(most.values()), expected)
            if path.endswith("trace.ttd"):
                self.assertEqual(sum(most.values()), expected)

    def test_times(self):
        file = self.export("heaptrack", self.write(self.script().close()))
        with open(file, encoding="utf-8") as opened:
            times = [int(line[2:], 16) for line in opened if line.startswith("c ")]
        self.assertEqual(times, [10, 20, 30, 50, 70, 80])

    def test_nested_heaps(self):
        script = Script().basics()
        script.add("heap", name="pool", handle=0x10000, parent=1)
        script.alloc(0x10000, 1000, heap=1)
        script.alloc(0x10010, 100, heap=3)
        _, leaked = self.costs(self.export("heaptrack", self.write(script.close())), "leaked")
        self.assertEqual(sum(leaked.values()), 1000)

    def test_filter(self):
        path = self.write(self.script().close())
        file = self.export("heaptrack", path, "--include", "f::run()")
        live = self.sums("state", path, "--show-runtime", "--include", "f::run()")
        _, leaked = self.costs(file, "leaked")
        self.assertEqual(sum(leaked.values()), sum(size for _, size in live.values()))

    def test_names(self):
        file = self.export("heaptrack", self.hostile())
        with open(file, encoding="utf-8") as opened:
            text = opened.read()
        self.assertTrue(all(c.isprintable() or c == "\n" for c in text))
        for line in text.splitlines():
            if line.startswith("s "):
                _, size, string = line.split(" ", 2)
                self.assertEqual(int(size, 16), len(string.encode()))
        _, leaked = self.costs(file, "leaked")
        self.assertIn(7777, leaked.values())

    def test_uncertain(self):
        path, reasons = self.lossy()
        text, _ = self.costs(self.export("heaptrack", path), "leaked")
        self.assertIn(f"(uncertain: {'; '.join(reasons)})", text)

    def test_whole_trace(self):
        path = self.write(self.script().close())
        for form in ("heaptrack", "massif", "chrome"):
            for options in (["--at", "50%"], ["--measure", "live"]):
                result = run("export", form, *options, path)
                self.assertEqual(result.status, USAGE)
                self.assertIn("has no place for", result.errors)


class Chrome(Tools):
    def events(self, path, *options):
        with open(self.export("chrome", path, *options), "rb") as opened:
            text = opened.read().decode()
        self.assertTrue(text.isprintable() or text.replace("\n", "").isprintable())
        found = json.loads(text)
        self.assertEqual(set(found), {"displayTimeUnit", "traceEvents"})
        for event in found["traceEvents"]:
            self.assertIn(event["ph"], "MCi")
            self.assertIsInstance(event["pid"], int)
            self.assertIsInstance(event["name"], str)
            self.assertIsInstance(event["args"], dict)
            if event["ph"] != "M":
                self.assertGreaterEqual(event["ts"], 0)
            if event["ph"] == "i":
                self.assertIn(event["s"], "gpt")
        return found["traceEvents"]

    def counters(self, events, name):
        return [(event["ts"], event["args"]["value"]) for event in events
                if event["ph"] == "C" and event["name"] == name]

    def test_counters(self):
        for path in self.paths():
            events = self.events(path)
            timeline = self.json_of("timeline", path, "--points", "200")["points"]
            sizes = self.counters(events, "live bytes")
            self.assertEqual([size for _, size in sizes[:-1]],
                             [point["peak_bytes"] for point in timeline])
            self.assertEqual([time for time, _ in sizes[:-1]],
                             [point["first"] / 1000 for point in timeline])
            self.assertEqual(sizes[-1][1], timeline[-1]["live_bytes"])
            self.assertEqual([count for _, count in self.counters(events, "live blocks")][:-1],
                             [point["live_blocks"] for point in timeline])
            self.assertEqual(sum(count for _, count in self.counters(events, "allocations")),
                             self.json_of("hot", path)["allocations"])
            names = {event["tid"]: event["args"]["name"] for event in events
                     if event["name"] == "thread_name"}
            self.assertEqual(names, {1000: "main", 1001: "worker"})

    def test_marks(self):
        script = self.script()
        script.add("user", position=script.tick(), client="ttdtrace.mark%00%00", wall=81000000,
                   data='%22%0a%5c%ff%e2%80%aestart')
        script.add("user", position=script.tick(), client="0123456789abcdef", wall=82000000,
                   thread=2, data="work")
        script.memory(4096, 8192, 4096, wall=83000000)
        path = self.write(script.close())
        events = self.events(path)
        marks = [(event["ts"], event["name"], event.get("tid"), event["args"]["kind"])
                 for event in events if event["ph"] == "i"]
        self.assertEqual(marks, [(81000, '"\n\\\ufffd\u202estart', None, "mark"),
                                 (82000, "work", 1001, "event")])
        self.assertEqual([size for _, size in self.counters(events, "resident bytes")], [4096])

    def test_uncertain(self):
        path, reasons = self.lossy()
        self.assertEqual([event["args"]["reason"] for event in self.events(path)
                          if event["name"] == "uncertain"], reasons)

    def test_filter(self):
        path = self.write(self.script().close())
        sizes = self.counters(self.events(path, "--include", "f::run()"), "live bytes")
        live = self.sums("state", path, "--include", "f::run()", "--show-runtime")
        self.assertEqual(sizes[-1][1], sum(size for _, size in live.values()))

    def test_without_times(self):
        path = self.write(Script(time_unit=0xffffffffffffffff).basics().close())
        result = run("export", "chrome", path)
        self.assertNotEqual(result.status, 0)
        self.assertEqual(result.text, "")


class Graphviz(Tools):
    def script(self):
        """0 holds 1 and 2, both hold 3; a stack holds 20 more."""
        script = SnapshotScript().basics()
        script.add("stack", parent=1, module=1, offset=0x900)  # 5
        script.add("symbol", module=1, offset=0x900, frames=f"{HOSTILE}&amp;@{ORIGIN}5")
        words = []
        for number in range(4):
            script.alloc(0x20000 + number * 0x1000, 100 * (number + 1), stack=5 if number else 2)
        for number in range(20):
            script.alloc(0x40000 + number * 0x1000, 10, stack=2)
            words.append((IN_STACK, 8 * number, 0x40000 + number * 0x1000))
        words += [(IN_BSS, 0, 0x20000), (0x20000, 0x21000), (0x20008, 0x22000), (0x21000, 0x23000),
                  (0x22000, 0x23000)]
        return script.snapshot(*words)

    def drawn(self, path, *options):
        """The label of the graph, labels of nodes, and edges, as dot has read them."""
        text, errors = self.open_with("dot", "-Tjson0", self.export("graphviz", path, *options))
        self.assertEqual(errors, "")
        graph = json.loads(text)
        nodes = [node["label"] for node in graph.get("objects", [])]
        return graph["label"], nodes, [(edge["tail"], edge["head"])
                                       for edge in graph.get("edges", [])]

    def test_tree(self):
        path = self.write(self.script().close())
        _, nodes, edges = self.drawn(path)
        tree = self.json_of("retained", path, "--tree", "--depth", "12", "--limit", "16")
        above, expected = {}, []
        for index, item in enumerate(tree["retainers"]):
            above[item["depth"]] = index
            if item["depth"]:
                expected.append((above[item["depth"] - 1], index))
            self.assertIn(f"retains {item['retained_bytes']:,} bytes in "
                          f"{item['retained_blocks']:,} block", nodes[index])
            if item["block"]:
                self.assertIn(item["block"]["address"], nodes[index])
        self.assertEqual(len(nodes), len(tree["retainers"]))
        self.assertEqual(sorted(edges), sorted(expected))
        self.assertTrue(any(" more\\nretains" in node for node in nodes), nodes)

    def referrers(self, path, address):
        """The lines of `referrers`, and each with the address that its pointer leads to."""
        there = self.json_of("referrers", path, "--address", address, "--depth", "12", "--limit",
                             "16")
        above = [there["block"]["address"]]
        for line in there["referrers"]:
            target = above[line["depth"]]
            above[line["depth"] + 1:] = [line["block"] and line["block"]["address"]]
            yield line, target

    def test_referrers(self):
        path = self.write(self.script().close())
        label, nodes, edges = self.drawn(path, "--address", "0x23000")
        self.assertIn("pointers to 0x23000", label)
        lines = list(self.referrers(path, "0x23000"))
        blocks = {line["block"]["address"] for line, _ in lines if line["block"]} | {"0x23000"}
        self.assertEqual(blocks, {"0x20000", "0x21000", "0x22000", "0x23000"})
        places = [line for line, _ in lines if line["kind"] == "root"]
        # Each block is drawn once, however many pointers it has.
        self.assertEqual(len(nodes), len(blocks) + len(places))

        def name(index):
            return next((address for address in blocks if address in nodes[index]), "place")

        drawn = sorted((name(tail), name(head)) for tail, head in edges)
        self.assertEqual(drawn, sorted((line["block"]["address"] if line["block"] else "place",
                                        target) for line, target in lines))
        self.assertIn(("0x21000", "0x23000"), drawn)
        self.assertIn(("place", "0x20000"), drawn)
        label, nodes, edges = self.drawn(path, "--address", "0x99")
        self.assertIn("in no block that was live", label)
        self.assertEqual((nodes, edges), ([], []))
        self.assertEqual(run("export", "pprof", "--address", "1", "-o", self.path("x"), path).status,
                         USAGE)

    def test_names(self):
        path = self.write(self.script().close())
        label, nodes, _ = self.drawn(path)
        self.assertIn("24 blocks, 1,200 bytes", label)
        self.assertTrue(any("\\\\x0afn=(1)" in node and "&amp;amp;" in node for node in nodes),
                        nodes)
        image, _ = self.open_with("dot", "-Tsvg", self.path("exported.graphviz"))
        self.assertIn("by (1)&quot;", image)
        self.assertNotIn("<b>", image)

    def test_without_snapshot(self):
        path = self.write(Tools.script(self).close())
        label, nodes, edges = self.drawn(path)
        self.assertIn("no snapshot of references", label)
        self.assertEqual((nodes, edges), ([], []))

    def test_uncertain(self):
        script = self.script()
        script.add("loss", reason=1, count=3, last_good="8:0", first_good="8:1")
        path = self.write(script.close())
        for reason in self.json_of("retained", path)["reasons"]:
            self.assertIn(f"Uncertain: {reason}", self.drawn(path)[0])

    def test_filter(self):
        path = self.write(self.script().close())
        self.assertEqual(run("export", "graphviz", "--include", "main", path).status, USAGE)


if __name__ == "__main__":
    support.main()
