# SPDX-License-Identifier: MIT
"""Every command's text fits the terminal, and keeps functions with their file and line."""

import re
import unittest

from memory_support import Snapshots
from snapshot_support import SnapshotScript
import support
from support import TestCase, run

FOLDER = "/home/somebody/" + "a_folder_with_a_long_name/" * 9
CXX = ("void shop::(anonymous namespace)::Catalogue<std::vector<std::map<int, std::string>>, "
       "std::allocator<char> >::insert_or_assign_product_of_a_customer<std::pair<int, long> const>("
       "std::vector<std::map<int, std::string>> const&, unsigned long, char const*, int, int)")
RUST = ("<core::iter::adapters::map::Map<alloc::vec::into_iter::IntoIter<shop::catalogue::Product>, "
        "shop::catalogue::render::{{closure}}> as core::iter::traits::iterator::Iterator>::fold")
PLAIN = "a_function" + "_with_a_name_of_more_columns_than_any_terminal" * 6 + "_end"

# Arguments that commands need beside the trace, to have something to say.
ARGUMENTS = {
    "diff": [["--from", "20%", "--to", "80%"], ["--changes", "--from", "50%"]],
    "state": [[], ["--blocks"], ["--heaps"], ["--by", "function"], ["--address", "0x11000"]],
    "history": [["--address", "0x11000"]],
    "referrers": [["--address", "0x12000"]],
    "memory": [["--address", "0x1000", "--length", "0x40"]],
    "find": [["--string", "AAAA"]],
    "peak": [[], ["--tree", "top-down"], ["--tree", "bottom-up"], ["--by", "function"]],
    "leaks": [[], ["--show", "all"]],
    "info": [[], ["--group"]],
    "moves": [["--chains", "5"]],
    "events": [["--limit", "50"]],
    "query": [["SELECT bytes, allocations, stack FROM sites"], ["SELECT * FROM events"]],
}
# They write no text about the trace.
OTHERS = {"report", "recover", "redact", "slice", "merge", "repack", "index", "export", "import",
          "digest"}
# They name the functions of blocks or calls.
NAMING = {"leaks", "errors", "temporary", "fragmentation", "peak", "state", "hot", "diff", "moves",
          "history", "referrers", "retained"}


def commands():
    text = run("-h").text
    return re.findall(r"(?m)^  ([a-z]+) +\S", text.split("Start here:")[1].split("'ttdanalyze")[0])


class Widths(TestCase):
    def named(self, script, name):
        """Appends a stack of five frames with that name in it."""
        base = script.stacks = getattr(script, "stacks", 4) + 1
        offset = 0x1000 * base
        script.add("stack", parent=1, module=1, offset=offset)
        script.add("symbol", module=1, offset=offset,
                   frames=f"{name}@{FOLDER}place.cc@77".replace("%", "%25").replace(",", "%2c")
                   .replace(" ", "%20"))
        return base

    def fill(self, script, threads=1):
        """Blocks, growth and errors of functions with long names."""
        script.basics()
        script.add("metadata", key="command", value="/" + "directory/" * 30 + "program")
        stacks = [self.named(script, name) for name in (PLAIN, CXX, RUST)]
        for thread in range(2, threads):
            script.add("thread", os=1000 + thread, name=f"worker-{thread}", position="1:0")
        for i, stack in enumerate(stacks):
            for j in range(12):
                script.alloc(0x11000 + 0x1000 * i + 0x40 * j, 1_234_567 if not j else 24,
                             stack=stack, wall=1_000_000 * (12 * i + j))
            script.free(0x11000 + 0x1000 * i + 0x40 * 11, stack=stack, wall=12_000_000 * (i + 1))
            script.free(0x11000 + 0x1000 * i + 0x40 * 11, stack=stack, wall=12_000_000 * (i + 1))
            address = 0x80000 * (i + 4)
            script.alloc(address, 16, stack=stack)
            for j in range(6):
                script.realloc(address, address + 0x8000, 16 << (j + 1), stack=stack)
                address += 0x8000
        for data in ("mark", "request%2017%20of%20a%20customer%20begins"):
            script.add("user", position=script.tick(), data=data, client="0123456789abcdef")
        for thread in range(1, threads):
            script.event("Alloc", address=0x4000000 + 0x100 * thread, size=thread, stack=stacks[0],
                         api=1, thread=thread + 1)
        return script

    def traces(self):
        snapshot = self.fill(SnapshotScript())
        snapshot.snapshot((0x11000, 0x12000), (0x12000, 0x13000), (2, 0, 0x11000),
                          classes=((0x401000, "N3app6ServerE"),))
        memory = self.fill(Snapshots())
        memory.pages(b"A" * 512)
        memory.memory((0x1000, 1, 3))
        return [self.write(script.close(), name) for name, script in (
            ("names", snapshot), ("memory", memory),
            ("threads", self.fill(SnapshotScript(), 2000)))]

    def check(self, command, path, arguments, columns):
        result = run(command, *arguments, path, env={"COLUMNS": str(columns), "LC_ALL": "C.UTF-8"})
        what = (command, arguments, path, columns)
        self.assertIn(result.status, (0, 1), (what, result.errors))
        lines = result.text.splitlines()
        self.assertGreater(len(lines), 0, what)
        for line in lines:
            self.assertLessEqual(len(line), columns, what)
        self.assertNotRegex(result.text, r"(?m)\d\n +(kB|MB|blocks?|pointers?)\b", what)
        # A line that goes on has its parts together.
        text = re.sub(r"\n +(?!#)", " ", result.text)
        if command not in NAMING or (command == "fragmentation" and "kept by" not in text):
            return
        function = r"(a_function\w*…\w*_end|…?\w*product_of_a_customer<…>\(…\)|Iterator>::fold)"
        place = "" if "--tree" in arguments or "--by" in arguments else r" \((/[^ ]*/)?place\.cc:77\)"
        self.assertRegex(text, function + place, what)

    def test_every_command(self):
        paths = self.traces()
        names = set(commands())
        self.assertGreater(len(names), 20)
        self.assertLess(NAMING | OTHERS | set(ARGUMENTS), names)
        if not support.HAS_QUERY:
            names.remove("query")
        for command in sorted(names - OTHERS):
            for arguments in ARGUMENTS.get(command, [[]]):
                for path in paths:
                    if command in ("retained", "roots", "referrers") and "names" not in path:
                        continue
                    for columns in 80, 160:
                        with self.subTest(command=command, columns=columns, arguments=arguments):
                            self.check(command, path, arguments, columns)

    def test_help(self):
        for command in ([], *([name] for name in commands())):
            result = run(*command, "--help")
            self.assertEqual((result.status, result.errors), (0, ""), command)
            self.assertGreater(len(result.text.splitlines()), 5, command)
            self.assertEqual(support.badly_filled(result.text), [], command)

    def test_the_pager(self):
        """It gets lines of the terminal's width."""
        path = self.traces()[0]
        status, seen = self.on_terminal("leaks", path, columns=80, PAGER="cat -A", LC_ALL="C.UTF-8",
                                        NO_COLOR="1")
        self.assertEqual(status, 0)
        self.assertIn("place.cc:77", seen)
        for line in seen.replace("M-bM-^@M-&", "…").splitlines():
            self.assertLessEqual(len(line.rstrip("$\r")), 80)

    def test_formats_for_programs(self):
        """They have the same bytes in a terminal of any width, and so has text in none."""
        path = self.traces()[0]
        for form in "json", "csv":
            texts = {run("leaks", "--format", form, path, env=env).text
                     for env in ({}, {"COLUMNS": "80"}, {"COLUMNS": "160"})}
            self.assertEqual(len(texts), 1)
        self.assertIn(FOLDER + "place.cc:77", run("leaks", path, env={"COLUMNS": ""}).text)


if __name__ == "__main__":
    unittest.main()
