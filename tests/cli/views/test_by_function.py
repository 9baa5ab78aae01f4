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
        script = Script().basics()
        for function, size in enumerate((10000, 5000, 3000, 2000, 120, 90)):
            script.add("stack", parent=1, module=1, offset=0x2000 + 0x10 * function)
            script.add("symbol", module=1, offset=0x2000 + 0x10 * function,
                       frames=f"g{function}@g.c@{function}")
            script.alloc(0x1000 + 0x10000 * function, size, stack=5 + function)
        path = self.write(script.close(), "small")
        text = self.run_ok("peak", path).text
        self.assertIn("\n    1 %  120 bytes  1 block   g4 (g.c:4)\n", text)
        self.assertIn("\n   <1 %  90 bytes   1 block   g5 (g.c:5)\n", text)
        self.assertIn("\n120 bytes (1 %) in 1 block by g4 ", text)
        self.assertNotIn(" by g5", text)
        self.assertTrue(text.endswith("\nStacks of functions with less than 1 %: --by stack, or "
                                      "--limit 0\n"))
        self.assertIn("\n90 bytes (0 %) in 1 block by g5 ", self.run_ok("peak", path, "--limit", "0").text)

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


if __name__ == "__main__":
    unittest.main()
