# SPDX-License-Identifier: MIT
"""Groups, trees, folded stacks and filters of the commands that group by stack, against a model."""

import random

import support
from support import run
from views_model import (KEYS, COMMANDS, random_script, function_label, LABELS, program_frames,
                         key_of, label_of, wanted, Model)


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
                    kept = [dict(g) for g in base["groups"] if wanted(g, include, exclude)]
                    found = self.groups(path, command, *options)
                    for i, group in enumerate(kept):
                        group.update({"group": i + 1} if "group" in group else {})
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


if __name__ == "__main__":
    support.main()
