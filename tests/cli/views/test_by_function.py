# SPDX-License-Identifier: MIT
"""Text of peak, state and hot leads with functions; the stacks are below each."""

import random
import re
import unittest

from support import Script, TestCase


class ByFunction(TestCase):
    def setUp(self):
        super().setUp()
        draw = random.Random(5)
        script = Script().basics()
        # Functions f5 to f9, each with six callers.
        stacks = []
        for function in range(5, 10):
            for caller in range(6):
                script.add("stack", parent=1, module=1, offset=0x1000 + 0x10 * caller)
                script.add("stack", parent=4 + 2 * len(stacks) + 1, module=1,
                           offset=0x100 * function)
                stacks.append(4 + 2 * len(stacks) + 2)
            script.add("symbol", module=1, offset=0x100 * function,
                       frames=f"f{function}@f.c@{function}")
        for caller in range(6):
            script.add("symbol", module=1, offset=0x1000 + 0x10 * caller,
                       frames=f"caller{caller}@c.c@{caller + 1}")
        for i in range(200):
            script.alloc(0x10000 + 0x1000 * i, draw.randrange(1, 4000), stack=draw.choice(stacks))
        self.trace = self.write(script.close())

    def check(self, command, amount, *arguments):
        by_function = self.json_of(command, self.trace, "--by", "function", "--limit", "0", *arguments)
        stacks = self.json_of(command, self.trace, "--limit", "0", *arguments)["groups"]
        total = sum(group[amount] for group in by_function["groups"])
        text = self.run_ok(command, self.trace, "--limit", "0", *arguments).text
        parts = re.split(r"(?m)\n\n(?=\d)", text)
        parts = [part for part in parts if " by f" in part.splitlines()[0]]
        self.assertEqual(len(parts), len(by_function["groups"]))
        for part, group in zip(parts, by_function["groups"]):
            first, *lines = part.splitlines()
            share = round(100 * group[amount] / total)
            function, line = group["function"], group["function"][1:]
            self.assertRegex(first, rf"\({share} %\).* by {function} \(f\.c:{line}\)$")
            listed = [int(match[1].replace(",", "")) for line in lines
                      if (match := re.match(r"  ([\d,]+) bytes? (in|by) ", line))]
            self.assertEqual(listed, [stack["bytes"] for stack in stacks
                                      if stack["stack"][0]["function"] == function])
            self.assertEqual(sum(listed), group["bytes"])
        return text

    def test_shares_and_stacks(self):
        self.check("peak", "bytes")
        self.check("hot", "bytes")
        self.check("hot", "allocations", "--sort", "calls")
        text = self.check("state", "bytes")
        self.assertIn("  heap 1 malloc", text)

    def test_the_heaviest_first(self):
        text = self.run_ok("peak", self.trace, "--limit", "2").text
        self.assertEqual(len(re.findall(r"(?m)^\d.* %\) in ", text)), 2)
        self.assertEqual(len(re.findall(r"(?m)^  [\d,]+ bytes in ", text)), 6)
        self.assertEqual(text.count("  … and 3 stacks more of it (--by stack)\n"), 2)
        self.assertIn("\n… and 3 functions more (--limit 0 for all)\n", text)

    def test_many_functions_are_a_table(self):
        groups = self.json_of("peak", self.trace, "--by", "function", "--limit", "4")["groups"]
        total = sum(group["bytes"] for group in
                    self.json_of("peak", self.trace, "--by", "function", "--limit", "0")["groups"])
        text = self.run_ok("peak", self.trace, "--limit", "4").text
        table = text.split("\n\n")[1].splitlines()
        for line, group in zip(table, groups):
            share = round(100 * group["bytes"] / total)
            function = group["function"]
            self.assertRegex(line, rf"^ +{share} %  [\d.]+ kB +{group['blocks']} blocks  {function} "
                                   rf"\(f\.c:{function[1:]}\)$")
        self.assertEqual(table[4:], ["         … and 1 function more (--limit 0 for all)"])
        self.assertEqual(len(re.findall(r"(?m)^\d.* %\) in ", text)), 4)

    def test_small_functions_of_a_table_have_no_stacks(self):
        def text(name, sizes, *options):
            script = Script().basics()
            for function, size in enumerate(sizes):
                script.add("stack", parent=1, module=1, offset=0x2000 + 0x10 * function)
                script.add("symbol", module=1, offset=0x2000 + 0x10 * function,
                           frames=f"g{function}@g.c@{function + 1}")
                script.alloc(0x1000 + 0x10000 * function, size, stack=5 + function)
            return self.run_ok("peak", self.write(script.close(), name), *options).text

        sizes = 10000, 5000, 2000, 1400, 950, 830, 120, 90
        with_stacks = text("small", sizes)
        self.assertIn("\n    1 %  120 bytes  1 block   g6 (g.c:7)\n"
                      "   <1 %  90 bytes   1 block   g7 (g.c:8)\n", with_stacks)
        self.assertEqual(re.findall(r"(?m)^\d.* by (g\d) ", with_stacks), ["g0", "g1", "g2", "g3", "g4"])
        self.assertIn("\n950 bytes (5 %) in 1 block by g4 ", with_stacks)
        self.assertTrue(with_stacks.endswith(
            "\n\nStacks of functions with less than 5 %: --by stack, or --limit 0\n"))
        everything = text("all", sizes, "--limit", "0")
        self.assertEqual(len(re.findall(r"(?m)^\d.* by g\d ", everything)), len(sizes))
        self.assertIn("\n90 bytes (0 %) in 1 block by g7 ", everything)
        # In a flat profile the first three have them.
        flat = text("flat", [1000] * 30)
        self.assertEqual(len(re.findall(r"(?m)^\d.* by g\d+ ", flat)), 3)

    def test_temporary(self):
        script = Script().basics()
        for function, count in enumerate((5, 4, 2, 1)):
            script.add("stack", parent=1, module=1, offset=0x2000 + 0x10 * function)
            script.add("symbol", module=1, offset=0x2000 + 0x10 * function,
                       frames=f"g{function}@g.c@{function + 1}")
            for _ in range(count):
                script.alloc(0x1000, 10, stack=5 + function)
                script.free(0x1000)
        path = self.write(script.close(), "temporary")
        text = self.run_ok("temporary", path).text
        self.assertIn("\n   42 %  50 bytes   5 blocks  g0 (g.c:1)\n", text)
        self.assertIn("\n5 blocks (42 %), 50 bytes by g0 (g.c:1)\n"
                      "  5 of 5 allocations were temporary, 50 bytes\n    #0  g0 (g.c:1)", text)
        self.assertIn("\n5 of 5 allocations were temporary, 50 bytes\n",
                      self.run_ok("temporary", "--by", "stack", path).text)

    def test_moves(self):
        """A table before the stacks, of the functions that copied something."""
        script = Script().basics()
        for function, size in enumerate((400, 300, 200, 100, 0)):
            script.add("stack", parent=1, module=1, offset=0x2000 + 0x10 * function)
            script.add("symbol", module=1, offset=0x2000 + 0x10 * function,
                       frames=f"g{function}@g.c@{function + 1}")
            block = 0x10000 * (function + 1)
            script.alloc(block, size, stack=5 + function)
            script.realloc(block, block + 0x8000, size + 1, stack=5 + function)
        text = self.run_ok("moves", self.write(script.close(), "moves")).text
        self.assertEqual(text.split("\n\n")[1].splitlines(), [
            "Bytes copied at most, by function:",
            "   40 %  400 bytes  1 move   g0 (g.c:1)", "   30 %  300 bytes  1 move   g1 (g.c:2)",
            "   20 %  200 bytes  1 move   g2 (g.c:3)", "   10 %  100 bytes  1 move   g3 (g.c:4)"])
        self.assertIn("\n\nat most 400 bytes copied", text)

    def test_moves_of_many_stacks_of_a_function(self):
        """One function copies nearly everything, and no stack of it stands out."""
        script = Script().basics()
        script.add("symbol", module=1, offset=0x2000, frames="grow@g.c@1")
        for caller in range(6):
            script.add("stack", parent=1, module=1, offset=0x1000 + 0x10 * caller)
            script.add("stack", parent=5 + 2 * caller, module=1, offset=0x2000)
            block = 0x10000 * (caller + 1)
            script.alloc(block, 100, stack=6 + 2 * caller)
            script.realloc(block, block + 0x8000, 101, stack=6 + 2 * caller)
        text = self.run_ok("moves", self.write(script.close(), "moves")).text
        self.assertEqual(text.split("\n\n")[1].splitlines(), [
            "Bytes copied at most, by function:", "  100 %  600 bytes  6 moves  grow (g.c:1)"])

    def test_diff(self):
        text = self.run_ok("diff", "--from", "0:0", self.trace).text
        added = self.json_of("diff", self.trace, "--by", "function", "--from", "0:0")["aifo"]
        lines = re.findall(r"(?m)^ +\d+ %  [\d.]+ kB +(\d+) blocks  (f\d) ", text)
        self.assertEqual(lines, [(str(group["blocks"]), group["function"]) for group in added["groups"]])

    def test_leaks(self):
        """A table of the groups, by stack, with the function of each; by other keys there is none."""
        groups = self.json_of("leaks", self.trace)["groups"]
        text = self.run_ok("leaks", self.trace).text
        table = re.findall(r"(?m)^  group (\d+) +([\d.]+) kB +(\d+) blocks? +(\w+) \(f\.c:(\d)\)$", text)
        self.assertEqual([(number, blocks, function, line) for number, _, blocks, function, line in table],
                         [(str(number), str(group["blocks"]), group["stack"][0]["function"],
                           group["stack"][0]["function"][1:])
                          for number, group in enumerate(groups, 1)])
        for (_, size, *_), group in zip(table, groups):
            self.assertAlmostEqual(1000 * float(size), group["bytes"], delta=group["bytes"] / 199)
        self.assertEqual(len(table), 20)
        self.assertNotIn("\n  group 1  ", self.run_ok("leaks", "--limit", "3", self.trace).text)
        self.assertNotIn("\n  group 1  ", self.run_ok("leaks", "--by", "function", self.trace).text)

    def test_by_stack(self):
        """As asked for, and in other formats."""
        text = self.run_ok("peak", self.trace, "--by", "stack").text
        self.assertNotIn(" by f", text)
        groups = self.json_of("peak", self.trace)
        self.assertEqual(groups["by"], "stack")
        self.assertIn(f"\n\n{groups['groups'][0]['bytes']:,} bytes in ", text)

    def test_frames_of_libraries_are_dim(self):
        script = Script().basics()
        script.add("stack", parent=1, module=1, offset=0x900)
        script.add("symbol", module=1, offset=0x900,
                   frames="_ZNSt6vectorIiSaIiEE9push_backERKi@stl_vector.h@7,own@own.c@9")
        script.alloc(0x1000, 10, stack=5)
        path = self.write(script.close(), "library")
        status, seen = self.on_terminal("peak", "--no-pager", path, columns=100)
        self.assertEqual(status, 0)
        self.assertRegex(seen, r"\033\[2m    #0  std::vector[^\n]*\(stl_vector\.h:7\)[^\n]*\033\[0m")
        self.assertRegex(seen, r"(?m)^    #1  own \(own\.c:9\)")


class Owners(TestCase):
    def test_of_one_block(self):
        """The function in a line about a block is the program's own."""
        script = Script().basics()
        script.add("stack", parent=1, module=1, offset=0x100)
        script.add("symbol", module=1, offset=0x100, frames="own@own.c@7")
        script.add("stack", parent=5, module=1, offset=0x200)
        script.add("symbol", module=1, offset=0x200, frames="_ZNSt6vectorIiSaIiEE4growEv@vector@8")
        script.alloc(0x1000, 24, stack=6)
        path = self.write(script.close())
        self.assertRegex(self.run_ok("state", "--blocks", path).text, r"(?m)0x1000 .* own \(own\.c:7\)")


class Nameless(TestCase):
    """Functions without names, as in libraries without debug symbols."""

    def write_calls(self, functions):
        """Writes a trace with a block for each stack of (module, name), the outermost first."""
        script = Script()
        for number, path in enumerate(("/opt/demo", "/usr/lib/libx.so.2", "/usr/lib/libc.so.6"), 1):
            begin = number << 24
            script.add("module", path=path, bias=begin, begin=begin, end=begin + 0x10000,
                       position="0:0")
        script.add("thread", os=1, position="0:0").add("heap", name="malloc")
        count = 0
        for size, stack in functions:
            parent = 0
            for module, name in stack:
                count += 1
                script.add("stack", parent=parent, module=module, offset=0x10 * count)
                if name:
                    script.add("symbol", module=module, offset=0x10 * count, frames=f"{name}@x.c@1")
                parent = count
            script.alloc(0x1000 * count, size, stack=parent)
        return self.write(script.close(), f"{len(functions)}-{count}.ttd")

    BEGIN = ((3, "__libc_start_call_main"),)
    HINT = ("Names are missing in libx.so.2: install its debug symbols,\n"
            "or set DEBUGINFOD_URLS; then ttdrecord symbolize {}\n")

    def test_the_next_name_outward(self):
        path = self.write_calls([
            (900, (*self.BEGIN, (1, "main"), (2, "parse"), (2, None), (2, None))),
            (80, (*self.BEGIN, (1, None), (2, None))), (20, (*self.BEGIN, (1, "main")))])
        for command in ("peak", "state", "hot", "leaks"):
            text = self.run_ok(command, path, "--limit", "0").text
            with self.subTest(command=command):
                if command != "leaks":
                    self.assertRegex(text, r"(?m) by libx\.so\.2\+0x50, below parse$")
                    # Nothing but the C library has a name below the other.
                    self.assertRegex(text, r"(?m) by libx\.so\.2\+0x80$")
                self.assertEqual(text.count("\n" + self.HINT.format(path)), 1)

    def test_once_in_a_report(self):
        path = self.write_calls([(900, (*self.BEGIN, (2, None))), (80, (*self.BEGIN, (2, None)))])
        text = self.run_ok("diff", "--from", "0:3", path).text
        self.assertEqual(text.count("Names are missing"), 1)

    def test_summary(self):
        path = self.write_calls([(900, (*self.BEGIN, (1, "main"), (2, "parse"), (2, None)))])
        text = self.run_ok("summary", path).text
        self.assertIn("100 % by libx.so.2+0x40, below parse\n", text)
        self.assertIn("names      missing in libx.so.2: install its debug symbols,\n"
                      f"           or set DEBUGINFOD_URLS; then ttdrecord symbolize {path}\n", text)

    def test_no_need(self):
        """All have names, those without one have a small share, or lie in no module."""
        named = (*self.BEGIN, (1, "main"), (2, "parse"))
        others = [(500 - i, (*named, (1, f"f{i}"))) for i in range(3)]
        for stacks in ([(900, named)], [*others, (10, (*self.BEGIN, (1, "main"), (2, None)))],
                       [(900, ((1, "main"), (0, None)))]):
            path = self.write_calls(stacks)
            for command in ("peak", "hot", "leaks", "summary"):
                with self.subTest(stacks=stacks, command=command):
                    self.assertNotRegex(self.run_ok(command, path).text, "issing in|names  ")


if __name__ == "__main__":
    unittest.main()
