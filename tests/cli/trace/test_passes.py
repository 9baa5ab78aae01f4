# SPDX-License-Identifier: MIT
"""Each command makes the passes over a trace that passes.md says."""

import os
import re
import shlex
import shutil
import unittest

import support
from snapshot_support import SnapshotScript
from support import Script, TestCase, on_one_processor, run

HEADER_SIZE = 112
MAGIC_SIZE = 8


def documented_passes():
    """Pairs of a command line and the names of its passes."""
    path = os.path.join(os.path.dirname(os.path.realpath(__file__)), "passes.md")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    table = text[text.index("\n| Command line |"):]
    for row in re.findall(r"(?m)^\| (`.*`) \| (.*) \|$", table[:table.index("\n\n")]):
        for command in re.findall(r"`([^`]+)`", row[0]):
            yield command, re.split("[,;] ", row[1])


@unittest.skipIf("address" in os.environ["SANITIZE"] and "gcc" in os.environ["COMPILER"],
                 "gcc's sanitizer refuses a library before its own")
class Passes(TestCase):
    def setUp(self):
        super().setUp()
        script = Script().basics()
        script.alloc(0x1000, 10)
        script.alloc(0x2000, 20, stack=3)
        script.realloc(0x1000, 0x3000, 30)
        script.free(0x3000)
        script.free(0x3000)
        script.alloc(0x1000, 40)
        self.trace = self.write(script.close())
        script = SnapshotScript().basics()
        script.alloc(0x20000, 10)
        script.snapshot((0x20000, 0x401000), classes=((0x401000, "5Class"),))
        self.trace_with_classes = self.write(script.close(), "classes.ttd")

    def count_reads(self, command, size, begin):
        """How often a command reads so many bytes at the beginning of a trace, which is a new file
        each time: what the command writes beside it must not be there before."""
        directory = self.path(str(len(os.listdir(self.path('')))))
        os.mkdir(directory)
        trace = shutil.copy(self.trace_with_classes if "--by class" in command else self.trace,
                            directory)
        name, *options = shlex.split(
            command.replace("OUT", os.path.join(directory, "out")))
        environment = {"LD_PRELOAD": os.environ["COUNT_READS"], "COUNT_AT": "0",
                       "COUNT_SIZE": str(size), "COUNT_TO": self.path("reads")}
        result = run(name, *options, trace, env=environment, preexec_fn=begin)
        self.assertEqual(result.status, 0, f"{command}: {result.errors}")
        with open(self.path("reads"), encoding="ascii") as file:
            return int(file.read())

    def count_passes(self, command, begin=on_one_processor):
        """Each pass reads the header of the first chunk; so does who opens the trace, once it has
        read the magic."""
        return (self.count_reads(command, HEADER_SIZE, begin) -
                self.count_reads(command, MAGIC_SIZE, begin))

    @unittest.skipUnless(support.HAS_VIEWER, "built without the viewer")
    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "needs two processors")
    def test_two_processors(self):
        """As the text below the table says."""
        for command, more in (("report -o OUT", 1), ("digest", 1), ("summary", 0), ("report -o OUT --include main", 0),
                              ("report -o OUT --to 50%", 0), ("leaks", 0)):
            with self.subTest(command=command):
                self.assertEqual(self.count_passes(command, None), self.count_passes(command) + more)

    def test_fatal_signal(self):
        """As the text below the table says: more passes to the position of the signal."""
        usual = self.count_passes("errors")
        script = Script().basics()
        script.alloc(0x1000, 10)
        script.add("snapshot", number=1, position="9:0")
        script.add("fatal", position="9:0", code=1, snapshot=1)
        script.alloc(0x2000, 10, start="9:1", end="9:2")
        self.trace = self.write(script.close(), "fatal.ttd")
        self.assertEqual(self.count_passes("errors"), usual + 5)

    def test_table(self):
        commands = set()
        for command, passes in documented_passes():
            if ((support.HAS_VIEWER or not command.startswith("report")) and
                    (support.HAS_QUERY or not command.startswith("query"))):
                with self.subTest(command=command):
                    self.assertEqual(self.count_passes(command), len(passes), passes)
            commands.add(command.split()[0])
        listed = re.findall(r"(?m)^  (\w+) +\w", run("--help").text)
        self.assertGreater(len(listed), 10)
        # It reads no trace.
        self.assertEqual(commands | {"import", "merge"}, set(listed))


if __name__ == "__main__":
    support.main()
