# SPDX-License-Identifier: MIT
"""`export` writes the blocks of `state`, `peak`, `hot` and `temporary` for other viewers, whatever
names the trace has"""

import json
import os
import random
import re
import shutil
import subprocess
import unittest
from collections import Counter
from xml.etree import ElementTree

import oracle
import support
from support import Script, TestCase, USAGE, run

HOSTILE = '<script>"\\;\'%1b[31m%0a%ff%e2%80%ae&]]>'
# The same as a text that terminals and other readers can show.
SHOWN = '<script>"\\\\;\'\\x1b[31m\\x0a\\xff\\xe2\\x80\\xae&]]>'
SVG = {"svg": "http://www.w3.org/2000/svg"}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    """The fields of a message of protocol buffers, by number."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            assert at + value <= len(data), "a field is longer than its message"
            value, at = data[at:at + value], at + value
        else:
            assert key & 7 == 0, key
        found.setdefault(key >> 3, []).append(value)
    return found


class Profile:
    """The contents of a file of pprof: names of functions, innermost first."""

    def __init__(self, data):
        profile = fields(data)
        self.strings = [text.decode("utf-8") for text in profile[6]]
        self.comments = [self.strings[number] for number in profile.get(13, [])]
        self.types = [tuple(self.strings[number] for number in (entry[1][0], entry[2][0]))
                      for entry in map(fields, profile[1])]
        functions = {entry[1][0]: self.strings[entry[2][0]]
                     for entry in map(fields, profile.get(5, []))}
        mappings = {entry[1][0] for entry in map(fields, profile.get(3, []))} | {0}
        locations = {}
        for entry in map(fields, profile.get(4, [])):
            lines = [fields(line) for line in entry.get(4, [])]
            locations[entry[1][0]] = [functions[line[1][0]] for line in lines] or ["?"]
            assert entry.get(2, [0])[0] in mappings
        self.samples = []
        for entry in map(fields, profile.get(2, [])):
            names = [name for location in entry[1] for name in locations[location]]
            self.samples.append((names, *entry[2]))


class Export(TestCase):
    def export(self, form, path, *options, status=0):
        file = self.path("exported")
        result = run("export", "-o", file, *options, form, path)
        self.assertEqual(result.status, status, result.errors)
        with open(file, "rb") as opened:
            return opened.read()

    def sums(self, command, path, *options, keys=("blocks", "bytes")):
        """The blocks of a command by the functions of their stacks, with the runtimes' own."""
        found = {}
        shown = self.json_of(command, path, "--limit", "0", *options)
        for group in shown["groups"] + (shown.get("runtime") or {}).get("groups", []):
            names = tuple(frame.get("function") or "?" for frame in group["stack"]) or ("[no stack]",)
            blocks, size = found.get(names, (0, 0))
            found[names] = blocks + int(group[keys[0]]), size + int(group[keys[1]])
        return {names: sums for names, sums in found.items() if sums[0]}

    def live(self, path, *options):
        return self.sums("state", path, "--show-runtime", *options)

    def measures(self, path):
        """The blocks of each measure, by the command that has them."""
        return {"live": self.live(path), "peak": self.sums("peak", path, "--show-runtime"),
                "allocated": self.sums("hot", path, keys=("allocations", "bytes")),
                "temporary": self.sums("temporary", path, keys=("temporary", "temporary_bytes"))}

    def of_pprof(self, data):
        found = {}
        for names, blocks, size in Profile(data).samples:
            sums = found.get(tuple(names), (0, 0))
            found[tuple(names)] = sums[0] + blocks, sums[1] + size
        return found

    def of_speedscope(self, data):
        file = json.loads(data)
        frames, found = file["shared"]["frames"], {}
        self.assertEqual([profile["unit"] for profile in file["profiles"]], ["bytes", "none"])
        for profile in file["profiles"]:
            self.assertEqual(profile["endValue"], sum(profile["weights"]))
            self.assertEqual(len(profile["samples"]), len(profile["weights"]))
        sizes, blocks = file["profiles"]
        self.assertEqual(sizes["samples"], blocks["samples"])
        for sample, size, count in zip(sizes["samples"], sizes["weights"], blocks["weights"]):
            names = tuple(frames[index]["name"] for index in reversed(sample))
            names = tuple("?" if re.search(r"(^|\+)0x[0-9a-f]+$", name) else name
                          for name in names) or ("[no stack]",)
            sums = found.get(names, (0, 0))
            found[names] = sums[0] + count, sums[1] + size
        return found

    def of_firefox(self, data):
        """The samples of the Firefox Profiler's processed format; checks every table."""
        file = json.loads(data)
        self.assertEqual(file["meta"]["preprocessedProfileVersion"], 57)
        self.assertEqual(len(file["threads"]), 1)
        thread, strings = file["threads"][0], file["shared"]["stringArray"]
        self.assertTrue(all(isinstance(string, str) for string in strings))
        for name in ("frameTable", "funcTable", "resourceTable", "stackTable", "samples"):
            table = thread[name]
            for column, values in table.items():
                if isinstance(values, list):
                    self.assertEqual(len(values), table["length"], (name, column))
        for table, column, limit in (("frameTable", "func", thread["funcTable"]["length"]),
                                     ("funcTable", "name", len(strings)),
                                     ("funcTable", "resource", thread["resourceTable"]["length"]),
                                     ("resourceTable", "name", len(strings)),
                                     ("stackTable", "frame", thread["frameTable"]["length"])):
            self.assertTrue(all(0 <= value < limit for value in thread[table][column]))
        stacks, found = thread["stackTable"], {}
        self.assertTrue(all(prefix is None or prefix < row
                            for row, prefix in enumerate(stacks["prefix"])))
        self.assertEqual(thread["samples"]["weightType"], "bytes")
        for row, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
            names = []
            while row is not None:
                names.append(strings[thread["funcTable"]["name"][stacks["frame"][row]]])
                row = stacks["prefix"][row]
            found[tuple(names)] = found.get(tuple(names), 0) + weight
        return found

    def of_svg(self, data):
        """The titles of the rectangles; the heading and the notes."""
        graph = ElementTree.fromstring(data)
        titles = [box.find("svg:title", SVG).text for box in graph.findall("svg:svg", SVG)]
        return titles, [line.text for line in graph.findall("svg:text", SVG)]

    def tree_titles(self, path, *options):
        """The titles that the nodes of `state --tree` would have."""
        tree = self.json_of("state", path, "--tree", "top-down", "--limit", "0", *options)

        def amounts(bytes, blocks):
            return (f"{bytes:,} byte{'s'[bytes == 1:]} in {blocks:,} block{'s'[blocks == 1:]}")

        titles = [f"all: {amounts(tree['total_bytes'], tree['total_count'])}"]
        for node in tree["nodes"]:
            module = node.get("module")
            nameless = (f"{os.path.basename(module)}+{node['offset']}" if module
                        else node.get("offset") or "[no stack]")
            titles.append(f"{node.get('function') or nameless}: "
                          f"{amounts(node['bytes'], node['count'])} "
                          f"({node['weight'] * 100 / tree['total_weight']:.2f} %)")
        return titles

    def script(self):
        script = Script().basics()
        for index, stack in enumerate((2, 2, 3, 4, 1, 0)):
            script.alloc(0x1000 * (index + 1), 10 * (index + 1), stack=stack)
        return script

    def check(self, path, *options):
        live = self.live(path, *options)
        self.assertEqual(self.of_pprof(self.export("pprof", path, *options)), live)
        self.assertEqual(self.of_speedscope(self.export("speedscope", path, *options)), live)
        return live

    def test_as_state(self):
        path = self.write(self.script().close())
        live = self.check(path)
        self.assertEqual(sum(size for _, size in live.values()), 210)
        self.assertIn(("g(int)", "f::run()", "main"), live)
        self.assertNotEqual(self.check(path, "--at", "50%"), live)
        self.assertEqual(set(self.check(path, "--include", "g(int)")),
                         {("g(int)", "f::run()", "main")})

    def test_random(self):
        for seed in range(3):
            self.check(self.write(oracle.random_script(random.Random(seed), 60), f"{seed}.ttd"))

    def test_folded(self):
        path = self.write(self.script().close())
        folded = self.export("folded", path)
        tree = run("state", "--tree", "top-down", "--format", "folded", path)
        self.assertIn(b"main;f::run();g(int) 30\n", folded)
        self.assertEqual(folded, tree.text.encode())

    def test_measures(self):
        script = self.script()
        for number in range(5):
            script.alloc(0x80000, 1000 + number, stack=number % 3 + 1)
            script.free(0x80000, stack=4)
        script.alloc(0x90000, 3, stack=3)
        script.free(0x2000)
        scripts = [script.close()]
        scripts += [oracle.random_script(random.Random(seed), 80) for seed in range(3)]
        for index, each in enumerate(scripts):
            path = self.write(each, f"{index}.ttd")
            found = self.measures(path)
            for measure, sums in found.items():
                option = "--measure", measure
                self.assertEqual(self.of_pprof(self.export("pprof", path, *option)), sums, measure)
                self.assertEqual(self.of_speedscope(self.export("speedscope", path, *option)), sums)
                titles, _ = self.of_svg(self.export("svg", path, *option))
                size = sum(size for _, size in sums.values())
                self.assertTrue(titles[0].startswith(f"all: {size:,} byte"), titles[0])
                folded = self.export("folded", path, *option).splitlines()
                self.assertEqual(sum(int(line.split()[-1]) for line in folded), size)
            if not index:
                self.assertEqual(len({str(sums) for sums in found.values()}), 4)
                self.assertEqual(sum(count for count, _ in found["temporary"].values()), 5)
        types = Profile(self.export("pprof", path, "--measure", "peak")).types
        self.assertEqual(types, [("peak_objects", "count"), ("peak_space", "bytes")])

    def test_flame_graph(self):
        path = self.write(self.script().close())
        for options in ([], ["--at", "50%"], ["--include", "f::run()"]):
            data = self.export("svg", path, *options)
            titles, texts = self.of_svg(data)
            self.assertEqual(Counter(titles), Counter(self.tree_titles(path, *options)))
            self.assertEqual(len(texts), 1)
            self.assertNotIn(b"<script", data)
        boxes = ElementTree.fromstring(self.export("svg", path)).findall("svg:svg", SVG)
        places = {box.find("svg:title", SVG).text.split(":")[0]:
                  [float(box.get(key)) for key in ("x", "y", "width", "height")] for box in boxes}
        self.assertEqual(places["all"][2], 1200)
        x, y, width, height = places["g(int)"]
        caller = places["f"]
        self.assertAlmostEqual(width, 1200 * 30 / 210, 1)
        self.assertEqual([x, y - height - 1, width], caller[:3])

    def test_firefox(self):
        path = self.write(self.script().close())
        for measure, sums in self.measures(path).items():
            expected = {}
            for names, (_, size) in sums.items():
                expected[names] = expected.get(names, 0) + size
            found = {}
            for names, size in self.of_firefox(
                    self.export("firefox", path, "--measure", measure)).items():
                names = tuple("?" if name.startswith("0x") else name for name in names)
                found[names] = found.get(names, 0) + size
            self.assertEqual(found, expected)

    def test_flame_graph_of_many(self):
        script = Script().basics()
        previous = 2
        for number in range(1100):
            script.add("stack", parent=previous, module=1, offset=0x1000 + number)
            previous = 5 + number
        script.alloc(0x1000, 1 << 30, stack=previous)
        script.alloc(0x2000, 1, stack=3)
        titles, texts = self.of_svg(self.export("svg", self.write(script.close())))
        self.assertEqual(len(titles), 1001)
        self.assertTrue(texts[1].startswith("104 rectangles not drawn: "), texts)

    def test_hostile_names(self):
        script = self.script()
        script.add("stack", parent=1, module=1, offset=0x900)
        script.add("symbol", module=1, offset=0x900, frames=f"{HOSTILE}@{HOSTILE}@5")
        script.alloc(0x90000, 77, stack=5)
        path = self.write(script.close())
        data = self.export("pprof", path)
        self.assertIn(77, [size for _, _, size in Profile(data).samples])
        names = [text for text in Profile(data).strings if "<script>" in text]
        self.assertTrue(names)
        for text in names:
            self.assertTrue(text.isprintable(), repr(text))
            self.assertIn("\\xff", text)
        frames = json.loads(self.export("speedscope", path))["shared"]["frames"]
        self.assertIn("<script>", "".join(frame["name"] for frame in frames))
        firefox = self.export("firefox", path)
        self.assertTrue(firefox.replace(b"\n", b"").decode().isprintable())
        self.assertIn(77, self.of_firefox(firefox).values())
        self.assertIn("<script>", "".join(name for names in self.of_firefox(firefox)
                                          for name in names))
        for line in self.export("folded", path).splitlines():
            self.assertRegex(line, rb"^[ -~]* [0-9]+$")
        graph = self.export("svg", path)
        self.assertTrue(graph.isascii())
        self.assertNotIn(b"<script", graph)
        self.assertTrue(any(title.startswith(SHOWN) for title in self.of_svg(graph)[0]))

    def test_large_sums(self):
        script = Script().basics()
        script.alloc(0x1000, (1 << 53) + 1, stack=1)
        script.alloc(0x2000, (1 << 64) - 1, stack=2)
        path = self.write(script.close())
        sizes = {names[0]: size for names, _, size in Profile(self.export("pprof", path)).samples}
        self.assertEqual(sizes, {"main": (1 << 53) + 1, "g(int)": (1 << 63) - 1})
        weights = json.loads(self.export("speedscope", path))["profiles"][0]["weights"]
        self.assertEqual(sorted(weights), [(1 << 53) + 1, (1 << 64) - 1])

    def test_uncertain(self):
        script = self.script()
        script.add("loss", reason=1, count=3, last_good="8:0", first_good="8:1")
        path = self.write(script.close())
        reasons = self.json_of("state", path)["reasons"]
        self.assertTrue(reasons)
        profile = Profile(self.export("pprof", path))
        self.assertEqual(profile.comments, [f"Uncertain: {reason}" for reason in reasons])
        name = json.loads(self.export("speedscope", path))["name"]
        self.assertTrue(all(reason in name for reason in reasons), name)
        self.assertTrue(self.export("folded", path).startswith(b"[uncertain];"))
        name = json.loads(self.export("firefox", path))["meta"]["product"]
        self.assertTrue(all(reason in name for reason in reasons), name)
        self.assertEqual(self.of_svg(self.export("svg", path))[1][1:],
                         [f"Uncertain: {reason}" for reason in reasons])
        errors = run("export", "-o", self.path("again"), "pprof", path).errors
        self.assertEqual(errors.count(reasons[0]), 1, errors)

    def test_wrong_use(self):
        path = self.write(self.script().close())
        for arguments in (["export"], ["export", "none", path],
                          ["export", "--format", "csv", "pprof", path],
                          ["export", "--measure", "all", "svg", path],
                          ["export", "--measure", "peak", "--at", "50%", "svg", path]):
            self.assertEqual(run(*arguments).status, USAGE, arguments)

    def test_binary_is_not_for_terminals(self):
        path = self.write(self.script().close())
        status, text = self.on_terminal("export", "pprof", path)
        self.assertEqual(status, USAGE)
        self.assertIn("pprof is binary: write it to a file", text)

    @unittest.skipUnless(shutil.which("go"), "no go: tools/install-packages check installs it")
    def test_go(self):
        path = self.write(self.script().close())
        self.export("pprof", path)
        environment = {**os.environ, "HOME": self.path("home"), "PPROF_TMPDIR": self.path("home")}
        for index, unit, total in (("inuse_space", "B", 210), ("inuse_objects", "", 6)):
            result = subprocess.run(
                ["go", "tool", "pprof", "-symbolize=none", "-top", f"-sample_index={index}",
                 "-nodefraction=0", self.path("exported")],
                env=environment, capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(f"100% of {total}{unit} total", result.stdout)
            self.assertIn("g(int)", result.stdout)


if __name__ == "__main__":
    support.main()
