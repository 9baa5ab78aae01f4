# SPDX-License-Identifier: MIT
"""Groups, trees, folded stacks and filters of the commands that group by stack, against a model"""

import fnmatch
import os
import random

import support
from support import Script, TestCase, run

KEYS = ("stack", "function", "file", "module", "thread", "heap")
# Commands, and what their trees weigh and count.
COMMANDS = {
    ("leaks",): ("bytes", "blocks"),
    ("state", "--at", "70%"): ("bytes", "blocks"),
    ("peak",): ("bytes", "blocks"),
    ("hot",): ("bytes", "allocations"),
    ("hot", "--sort", "calls"): ("allocations", "allocations"),
    ("temporary", "--steps", "3"): ("temporary", "temporary"),
    ("moves",): ("bytes_copied", "reallocs"),
}
TOTALS = {"leaks": {"bytes": "total_bytes", "blocks": "total_blocks"},
          "state": {"bytes": "live_bytes", "blocks": "live_blocks"},
          "peak": {"bytes": "live_bytes", "blocks": "live_blocks"}}
NAMES = ["main", "_Z1gi", "_ZN1f3runEv", "work;er", "malloc", "_Znwm", "two words", "a*b",
         "_ZNSaIcE8allocateEm", "na%0ame"]
ALLOCATORS = ("malloc", "operator new(", "std::allocator<")


def random_script(chance, count=120):
    """Random calls with random stacks of functions that may be inlined, or have no name or file."""
    script = Script(events_per_chunk=16)
    for number, path in enumerate(("/opt/app/bin/demo", "/usr/lib/libwork.so", "/lib/libc.so.6")):
        begin = (number + 1) << 24
        script.add("module", path=path, bias=begin, begin=begin, end=begin + 0x10000,
                   position="0:0")
    script.add("thread", os=1000, name="main", position="0:0")
    script.add("thread", os=1001, position="0:0")
    script.add("heap", name="malloc")
    script.add("heap", handle=0xb00000)
    stacks = 25
    for stack in range(stacks):
        script.add("stack", parent=chance.randrange(stack + 1), module=chance.randrange(4),
                   offset=0x100 * chance.randrange(1, 6))
    for module in (1, 2, 3):
        for offset in range(1, 5):
            frames = [chance.choice(NAMES).replace(" ", "%20")
                      + chance.choice(["", f"@{chance.choice('abc')}.c@{chance.randrange(1, 99)}"])
                      for _ in range(chance.choice([1, 1, 2, 3]))]
            if chance.random() < 0.8:
                script.add("symbol", module=module, offset=0x100 * offset,
                           frames=",".join(frames))
    live = []
    for _ in range(count):
        fields = {"thread": chance.choice([1, 2]), "heap": chance.choice([1, 2]),
                  "stack": chance.randrange(stacks + 1)}
        action = chance.choice("aaaafffr")
        if action == "a" or not live:
            live.append(0x1000 * (script.numbers + 1))
            script.alloc(live[-1], chance.randrange(5000), **fields)
        elif action == "f":
            script.free(live.pop(chance.choice([-1, chance.randrange(len(live))])), **fields)
        else:
            old = live.pop()
            live.append(chance.choice([old, 0x1000 * (script.numbers + 1)]))
            script.realloc(old, live[-1], chance.randrange(1, 9000), **fields)
    return script.close()


def function_label(frame):
    name = frame["function"]
    return ("function", name, frame["module"], None if name else frame["offset"])


def file_label(frame):
    return ("file", frame["file"], None if frame["file"] else frame["module"])


def module_label(frame):
    return ("module", frame["module"])


LABELS = {"function": function_label, "file": file_label, "module": module_label}


def program_frames(stack):
    """Frames from the first that is no allocation function."""
    for i, frame in enumerate(stack):
        if frame is None:
            return stack[i:]
        name = frame["function"] or ""
        if name != "malloc" and not name.startswith(ALLOCATORS[1:]):
            return stack[i:]
    return stack


def own_frame(stack):
    """The first frame that is of the program: not of the C library, nor of std, nor malloc()."""
    for frame in stack:
        if (frame["module"] or "") != "/lib/libc.so.6" and \
                program_frames([frame, None])[0] is frame:
            return frame
    return program_frames(stack)[0]


def key_of(by, group):
    """What a group by stack is grouped by."""
    frames = group["stack"] and [own_frame(group["stack"])]
    if not frames:
        return {"function": ("function", None, None, None), "file": ("file", None, None),
                "module": ("module", None)}[by]
    return LABELS[by](frames[0])


def label_of(by, item):
    """What a group or a node says that it is."""
    members = {"function": ("function", "module", "offset"), "file": ("file", "module"),
               "module": ("module",), "thread": ("thread",), "heap": ("heap_id",)}[by]
    return (by, *(item[name] for name in members))


def folded_text(label):
    """A label as a frame of a folded stack; None is of a stack without frames."""
    if label is None:
        return "[no stack]"
    kind, name = label[:2]
    module = (label[2] or "").rpartition("/")[2] if len(label) > 2 else ""
    if kind == "module":
        name = name and name.rpartition("/")[2]
    if not name and kind == "function":
        name = module + ("+" if module else "") + label[3]
    elif not name:
        name = module or "[unknown]"
    return name.replace(";", "\\x3b").replace("\n", "\\x0a")


def wanted(group, include, exclude):
    def has(patterns):
        return any(
            (fnmatch.fnmatchcase(text, pattern.replace("[", "[[]"))
             if set("*?") & set(pattern) else pattern in text)
            for frame in group["stack"] for pattern in patterns
            for text in (frame["function"], frame["file"], frame["module"]) if text)

    return (not include or has(include)) and not has(exclude)


class Model(TestCase):
    """What follows from groups by stack."""

    def groups(self, path, command, *arguments):
        return self.json_of(command[0], path, *command[1:], "--limit", "0", *arguments)

    def check_sums(self, command, found):
        for weight in COMMANDS[command]:
            total = found[TOTALS.get(command[0], {}).get(weight, weight)]
            self.assertEqual(sum(g[weight] for g in found["groups"]), total, (command, weight))
        self.assertEqual(found["total_groups"], len(found["groups"]))

    def check_keys(self, path, command, base):
        for by in KEYS:
            found = self.groups(path, command, "--by", by)
            self.assertEqual(found["by"], by)
            self.check_sums(command, found)
            if by not in LABELS:
                continue
            sums = {}
            for group in base["groups"]:
                item = sums.setdefault(key_of(by, group), dict.fromkeys(COMMANDS[command], 0))
                for weight in item:
                    item[weight] += group[weight]
            self.assertEqual({label_of(by, g): {w: g[w] for w in COMMANDS[command]}
                              for g in found["groups"]}, sums, (command, by))
            self.assertEqual(len(sums), len(found["groups"]))

    def check_tree(self, path, command, by, shape):
        tree = self.groups(path, command, "--by", by, "--tree", shape)
        nodes = tree["nodes"]
        self.assertEqual(tree["total_nodes"], len(nodes))
        for what in ("weight", "bytes", "count"):
            ends = []
            for node in reversed(nodes):
                below = 0
                while ends and ends[-1][0] > node["depth"]:
                    self.assertEqual(ends[-1][0], node["depth"] + 1)
                    below += ends.pop()[1]
                self.assertEqual(node[what], node["self_" + what] + below)
                ends.append((node["depth"], node[what]))
            self.assertTrue(all(depth == 0 for depth, _ in ends))
            self.assertEqual(sum(amount for _, amount in ends), tree["total_" + what])
        return tree

    def model_folded(self, base, weight, by, shape, depth=None):
        sums = self.model_sums(base["groups"], weight, by, shape, depth)
        inferred = base.get("inferred", {"groups": []})["groups"]
        return sums | {f"[inferred];{text}": amount for text, amount in self.model_sums(
            inferred, "bytes_copied_at_most", by, shape, depth).items()}

    def model_sums(self, groups, weight, by, shape, depth):
        sums = {}
        for group in groups:
            path = [LABELS.get(by, function_label)(f) for f in program_frames(group["stack"])]
            if shape == "top-down":
                path.reverse()
            if by in ("file", "module"):
                path = [p for i, p in enumerate(path) if not i or p != path[i - 1]]
            nothing = (by, None) if by in ("file", "module") else None
            text = ";".join(folded_text(p) for p in path[:depth] or [nothing])
            if group[weight]:
                sums[text] = sums.get(text, 0) + group[weight]
        return sums

    def check_folded(self, path, command, weight, by, shape, base):
        for depth in (None, 1, 3):
            options = ("--depth", str(depth)) if depth else ()
            lines = self.run_ok(*command, "-f", "folded", "--by", by, "--tree", shape, *options,
                                path).text.splitlines()
            sums = {}
            for line in lines:
                text, _, amount = line.rpartition(" ")
                sums[text] = sums.get(text, 0) + int(amount)
            self.assertEqual(sums, self.model_folded(base, weight, by, shape, depth),
                             (command, by, shape, depth))


class Views(Model):
    """Random traces: everything follows from the groups by stack."""

    def test_random(self):
        for seed in range(3):
            path = self.write(random_script(random.Random(seed)), f"trace{seed}")
            for command in COMMANDS:
                base = self.groups(path, command)
                with self.subTest(seed=seed, command=command):
                    self.check_keys(path, command, base)
                    for by, shape in (("stack", "top-down"), ("function", "bottom-up"),
                                      ("file", "top-down"), ("module", "bottom-up")):
                        tree = self.check_tree(path, command, by, shape)
                        self.assertEqual(tree["total_weight"],
                                         sum(g[COMMANDS[command][0]] for g in base["groups"]))
                        self.check_folded(path, command, COMMANDS[command][0], by, shape, base)

    def test_first_level(self):
        """Threads, heaps, and functions from the bottom up, are what they are as groups."""
        for seed in range(20, 24):
            path = self.write(random_script(random.Random(seed)), f"trace{seed}")
            for by in ("thread", "heap", "function"):
                groups = self.groups(path, ("hot",), "--by", by)["groups"]
                tree = self.check_tree(path, ("hot",), by, "bottom-up")
                sums = {label_of(by, g): (g["bytes"], g["allocations"]) for g in groups}
                if by == "function":
                    # A tree begins with the libraries' functions, too.
                    sums = {}
                    for group in self.groups(path, ("hot",))["groups"]:
                        frames = program_frames(group["stack"])
                        key = function_label(frames[0]) if frames else (by, None, None, None)
                        size, calls = sums.get(key, (0, 0))
                        sums[key] = (size + group["bytes"], calls + group["allocations"])
                self.assertEqual({label_of(by, n): (n["bytes"], n["count"])
                                  for n in tree["nodes"] if n["depth"] == 0}, sums)

    def test_threads_and_heaps(self):
        """Whose a block is, from the calls themselves."""
        for seed in range(30, 34):
            path = self.write(random_script(random.Random(seed)), f"trace{seed}")
            rows = [r for r in self.run_ok("events", "-f", "json", path).json_lines
                    if r["action"] in ("Alloc", "ReAlloc") and r["result"]]
            for by, member in (("thread", "thread"), ("heap", "heap_id")):
                sums = {}
                for row in rows:
                    count, size = sums.get(row[member], (0, 0))
                    sums[row[member]] = (count + 1, size + row["size"])
                found = self.groups(path, ("hot",), "--by", by)["groups"]
                self.assertEqual({g[member]: (g["allocations"], g["bytes"]) for g in found}, sums)
                found = self.groups(path, ("moves",), "--by", by)["groups"]
                calls = [r for r in rows if r["action"] == "ReAlloc"]
                self.assertEqual({g[member]: g["reallocs"] for g in found},
                                 {key: sum(r[member] == key for r in calls)
                                  for key in {r[member] for r in calls}})
                live = self.groups(path, ("state", "--at", "60%"), "--by", by)
                table = live["threads" if by == "thread" else "heaps"]
                self.assertEqual({g[member]: g["bytes"] for g in live["groups"]},
                                 {g[member]: g["bytes"] for g in table})

    def test_filters(self):
        cases = ((("main",), ()), ((), ("main",)), (("libwork",), ("a.c",)), (("g(int)", "b.c"), ()),
                 (("*run*",), ()), (("a*b",), ()), (("?.c",), ("/lib/*",)), (("operator",), ()),
                 (("nothing at all",), ()))
        for seed in range(40, 42):
            path = self.write(random_script(random.Random(seed)), f"trace{seed}")
            for command in COMMANDS:
                base = self.groups(path, command)
                for include, exclude in cases:
                    options = [f"--include={p}" for p in include]
                    options += [f"--exclude={p}" for p in exclude]
                    kept = [g for g in base["groups"] if wanted(g, include, exclude)]
                    found = self.groups(path, command, *options)
                    self.assertEqual(found["groups"], kept, (command, options))
                    self.check_sums(command, found)
                    by = self.groups(path, command, "--by", "module", *options)
                    self.check_sums(command, by)
                    tree = self.groups(path, command, "--tree", "top-down", *options)
                    self.assertEqual(tree["total_weight"],
                                     sum(g[COMMANDS[command][0]] for g in kept))
                    if command[0] == "state":
                        for table in ("heaps", "threads", "sizes"):
                            self.assertEqual(sum(g["bytes"] for g in found[table]),
                                             found["live_bytes"])


class Quadrants(Model):
    """Each quadrant of a diff is grouped and filtered on its own."""

    RANGE = ("--from", "30%", "--to", "70%")

    def quadrants(self, path, *arguments):
        found = self.json_of("diff", path, *self.RANGE, "--limit", "0", *arguments)
        return {name: found[name] for name in ("aifi", "aifo", "aofi", "aofo")}

    def test_random(self):
        for seed in range(60, 65):
            path = self.write(random_script(random.Random(seed)), f"trace{seed}")
            base = self.quadrants(path)
            for by in KEYS:
                for name, quadrant in self.quadrants(path, "--by", by).items():
                    for weight in ("blocks", "bytes"):
                        self.assertEqual(quadrant[weight], base[name][weight])
                        self.assertEqual(sum(g[weight] for g in quadrant["groups"]),
                                         quadrant[weight])
                    if by in LABELS:
                        self.assertEqual({label_of(by, g) for g in quadrant["groups"]},
                                         {key_of(by, g) for g in base[name]["groups"]})
            for name, quadrant in self.quadrants(path, "--include", "main", "--exclude",
                                                 "a.c").items():
                self.assertEqual(quadrant["groups"], [g for g in base[name]["groups"]
                                                      if wanted(g, ["main"], ["a.c"])])
            for by in ("thread", "heap"):
                self.assertEqual(self.json_of("diff", path, "--by", by)["aifo"]["groups"],
                                 self.json_of("state", path, "--by", by)["groups"])
            rows = self.run_ok("diff", "-f", "csv", "--by", "module", path).csv
            self.assertIn("module", rows[0])
            for arguments in (("--quadrant", "aofi"), ("--quadrant", "aof", "--tree", "top-down"),
                              ("--changes", "--quadrant", "aifo", "--tree", "top-down")):
                self.assertEqual(run("diff", *arguments, path).status, support.USAGE, arguments)

    def test_trees(self):
        for seed in range(65, 68):
            path = self.write(random_script(random.Random(seed)), f"trace{seed}")
            for name, base in self.quadrants(path).items():
                command = ("diff", *self.RANGE, "--quadrant", name)
                for by, shape in (("stack", "top-down"), ("file", "bottom-up")):
                    tree = self.check_tree(path, command, by, shape)
                    self.assertEqual((tree["total_bytes"], tree["total_count"]),
                                     (base["bytes"], base["blocks"]))
                    self.check_folded(path, command, "bytes", by, shape, base)
            self.assertEqual(self.json_of("diff", path, "--tree", "top-down"),
                             self.json_of("diff", path, "--tree", "top-down",
                                          "--quadrant", "aifo"))


class Formats(TestCase):
    def setUp(self):
        super().setUp()
        script = Script().basics()
        script.add("stack", parent=2, module=1, offset=0x400)      # 5: main > f (g) > new
        script.add("symbol", module=1, offset=0x400, frames="_Znwm@new.cc@1")
        script.alloc(0x1000, 100)
        script.alloc(0x2000, 50, stack=3, thread=2, heap=2)
        script.alloc(0x3000, 10, stack=4)
        script.alloc(0x4000, 7, stack=5)
        script.alloc(0x5000, 3, stack=0)
        self.trace = self.write(script.close())

    def test_text(self):
        text = self.run_ok("leaks", "--by", "function", self.trace).text
        self.assertIn("107 bytes in 2 blocks, allocated from 0:2 to 2:0\n    g(int) in demo\n",
                      text)
        self.assertIn("50 bytes in 1 block, allocated at 1:0\n    libwork.so+0x300\n", text)
        self.assertIn("    (no stack was recorded)\n", text)
        self.assertIn("Never released: 5 blocks, 170 bytes, from 4 functions\n", text)
        text = self.run_ok("leaks", "--by", "file", "--limit", "1", self.trace).text
        self.assertIn("    g.h\n", text)
        self.assertIn("… and 2 files more (--limit 0 for all)\n", text)
        self.assertIn("    thread 2 worker\n", self.run_ok("hot", "--by", "thread", self.trace).text)
        self.assertIn("    heap 2 private\n", self.run_ok("peak", "--by", "heap", self.trace).text)

    def test_tree(self):
        text = self.run_ok("leaks", "--tree", "top-down", self.trace).text
        self.assertEqual(
            text,
            "All: 170 bytes in 5 blocks\n\n"
            "           bytes        %      blocks\n"
            "             167    98.2%           4  - main in demo\n"
            "             107    62.9%           2    - f::run() in demo\n"
            "             107    62.9%           2      g(int) in demo\n"
            "              60    35.3%           2    - libwork.so+0x300\n"
            "              10     5.9%           1      - 0xdead\n"
            "               3     1.8%           1  - (no stack was recorded)\n")
        text = self.run_ok("leaks", "--tree", "top-down", "--depth", "2", "--limit", "1",
                           self.trace).text
        self.assertEqual(
            text,
            "All: 170 bytes in 5 blocks\n\n"
            "           bytes        %      blocks\n"
            "             167    98.2%           4  - main in demo (1 of 2 shown)\n"
            "             107    62.9%           2    - f::run() in demo\n"
            "… and 1 more (--limit 0 for all)\n")

    def test_csv(self):
        rows = self.run_ok("leaks", "-f", "csv", "--by", "function", self.trace).csv
        self.assertEqual([(r["bytes"], r["function"], r["module"], r["offset"]) for r in rows],
                         [("107", "g(int)", "/opt/app/bin/demo", ""),
                          ("50", "", "/usr/lib/libwork.so", "0x300"), ("10", "", "", "0xdead"),
                          ("3", "", "", "")])
        rows = self.run_ok("state", "-f", "csv", "--by", "heap", self.trace).csv
        self.assertEqual([(r["heap_id"], r["name"], r["bytes"]) for r in rows],
                         [("1", "malloc", "120"), ("2", "private", "50")])
        for command in COMMANDS:
            for by in KEYS:
                found = self.json_of(*command[:1], self.trace, *command[1:], "--by", by)
                rows = self.run_ok(*command, "-f", "csv", "--by", by, self.trace).csv
                members = [name for name in found["groups"][0] if name in rows[0]] \
                    if found["groups"] else []
                for row, group in zip(rows, found["groups"], strict=True):
                    for name in members:
                        if name != "stack":
                            self.assertEqual(row[name],
                                             "" if group[name] is None else str(group[name]))
        nodes = self.json_of("hot", self.trace, "--by", "thread", "--tree", "bottom-up")["nodes"]
        rows = self.run_ok("hot", "-f", "csv", "--by", "thread", "--tree", "bottom-up",
                           self.trace).csv
        self.assertEqual([(int(r["depth"]), int(r["bytes"]), int(r["self_count"])) for r in rows],
                         [(n["depth"], n["bytes"], n["self_count"]) for n in nodes])
        self.assertEqual((rows[0]["kind"], rows[0]["name"], rows[0]["number"]),
                         ("thread", "main", "1"))

    def test_folded(self):
        lines = self.run_ok("leaks", "-f", "folded", self.trace).text.splitlines()
        self.assertEqual(lines, ["main;f::run();g(int) 107", "main;libwork.so+0x300 50",
                                 "main;libwork.so+0x300;0xdead 10", "[no stack] 3"])
        lines = self.run_ok("leaks", "-f", "folded", "--by", "thread", "--tree", "bottom-up",
                            self.trace).text.splitlines()
        self.assertIn("thread 1 main;g(int);f::run();main 107", lines)
        self.assertIn("thread 2 worker;libwork.so+0x300;main 50", lines)

    def test_hostile(self):
        script = Script().basics()
        script.add("stack", parent=1, module=1, offset=0x900)
        script.add("symbol", module=1, offset=0x900, frames="%1b]0;t%07%0a1%20999%e2%80%ae%ff@x@1")
        script.alloc(0x1000, 5, stack=5)
        path = self.write(script.close(), "hostile")
        raw = self.run_ok("leaks", "-f", "folded", path).raw
        self.assertEqual(raw, b"main;\\x1b]0\\x3bt\\x07\\x0a1 999\\xe2\\x80\\xae\\xff 5\n")
        for by in KEYS:
            for shape in ((), ("--tree", "top-down")):
                raw = self.run_ok("leaks", "--by", by, *shape, path).raw
                self.assertNotRegex(raw.decode(), "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")

    def test_deep(self):
        """A stack as deep as they come, in trees of one branch."""
        script = Script()
        script.add("module", path="/m", bias=0, begin=0, end=0x100000, position="0:0")
        script.add("thread", os=1, position="0:0").add("heap", name="h")
        for stack in range(3000):
            script.add("stack", parent=stack, module=1, offset=16 * stack + 16)
        for stack in range(1000, 3001, 500):
            script.alloc(0x1000 * stack, 1, stack=stack)
        path = self.write(script.close(), "deep")
        for shape in ("top-down", "bottom-up"):
            tree = self.json_of("leaks", path, "--tree", shape, "--limit", "0")
            self.assertEqual(max(n["depth"] for n in tree["nodes"]), 2999)
            self.assertEqual(tree["total_bytes"], 5)
        lines = self.run_ok("leaks", "-f", "folded", path).text.splitlines()
        self.assertEqual(sorted(line.count(";") + 1 for line in lines),
                         [1000, 1500, 2000, 2500, 3000])

    def test_usage(self):
        for arguments in (("leaks", "--by", "color"), ("leaks", "--tree", "sideways"),
                          ("leaks", "--depth", "3"), ("hot", "--tree", "top-down", "--depth", "0"),
                          ("leaks", "--include", ""), ("info", "-f", "folded"),
                          ("events", "-f", "folded"), ("info", "--by", "file"),
                          ("leaks", *["--include=a"] * 65)):
            result = run(*arguments, self.trace)
            self.assertEqual(result.status, support.USAGE, arguments)
            self.assertEqual(result.raw, b"")

    def test_files(self):
        target = self.path("folded")
        self.run_ok("leaks", "-f", "folded", "-o", target, self.trace)
        with open(target, encoding="utf-8") as file:
            self.assertEqual(file.read(), self.run_ok("leaks", "-f", "folded", self.trace).text)
        self.assertEqual(run("leaks", "--tree", "top-down", "--error-exitcode", "9",
                             self.trace).status, 9)
        self.assertEqual(run("leaks", "--include", "main", "--exclude", "main",
                             "--error-exitcode", "9", self.trace).status, 0)
        self.assertTrue(os.path.exists(target))


if __name__ == "__main__":
    support.main()
