# SPDX-License-Identifier: MIT
"""A model of groups, trees, folded stacks and filters, and random traces for it."""

import fnmatch

from support import Script, TestCase

KEYS = ("stack", "function", "file", "module", "thread", "heap")
# Commands, and what their trees weigh and count.
COMMANDS = {
    ("leaks",): ("bytes", "blocks"),
    ("state", "--at", "70%"): ("bytes", "blocks"),
    ("peak",): ("bytes", "blocks"),
    ("hot",): ("bytes", "allocations"),
    ("hot", "--sort", "calls"): ("allocations", "allocations"),
    ("temporary", "--steps", "3"): ("temporary", "temporary"),
    ("moves",): ("bytes_copied_at_most", "reallocs"),
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
    """The key of a group by stack."""
    frames = group["stack"] and [own_frame(group["stack"])]
    if not frames:
        return {"function": ("function", None, None, None), "file": ("file", None, None),
                "module": ("module", None)}[by]
    return LABELS[by](frames[0])


def label_of(by, item):
    """The name that a group or a node gives itself."""
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
    """The groups that follow from groups by stack."""

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
