# SPDX-License-Identifier: MIT
"""--client and --activity: what is called or allocated in an island of a client."""

import os
import re

import support
from island_support import GUID, STARTED, STOPPED, mark, random_islands
from support import Script, TestCase, USAGE, run

FILTERED = ("state", "peak", "leaks", "hot", "temporary", "lifetimes", "moves", "errors", "timeline",
            "diff", "report")
OTHER = ("events", "marks")
UNFILTERED = ("fragmentation", "history", "retained", "roots", "snapshots", "memory", "find", "query", "summary",
              "info", "verify", "recover", "redact", "slice", "merge", "repack", "index", "export",
              "import", "digest")
# The groups of leaks are selected by islands.
GROUPED = ("referrers",)


class Islands(TestCase):
    def counted(self, command, path, *options):
        """What a command prints, without the chains of `moves`, and what is an estimate of these:
        filters of stacks leave them."""
        found = self.json_of(command, path, "--limit", "0", *options) \
            if command not in ("timeline", "lifetimes") else self.json_of(command, path, *options)
        if found.pop("chains", None) is not None:
            for of in (found, *found["groups"]):
                of.pop("bytes_avoidable")
            found["groups"].sort(key=lambda group: group["stack_id"])
        return found

    def test_as_stacks(self):
        """Islands select what the stack of their calls selects."""
        for seed in range(20):
            path = self.write(random_islands(seed).close(), f"trace{seed}")
            by_stack = "--include", "g(int)"
            by_island = "--client", GUID, "--activity", "7"
            for command in FILTERED[:-1]:
                with self.subTest(seed=seed, command=command):
                    self.assertEqual(self.counted(command, path, *by_island),
                                     self.counted(command, path, *by_stack))
            for options in ["--changes"], ["--changes", "--from", "30%", "--to", "80%"]:
                self.assertEqual(self.counted("diff", path, *options, *by_island),
                                 self.counted("diff", path, *options, *by_stack))

    def test_two_traces(self):
        paths = [self.write(random_islands(seed).close(), f"two{seed}") for seed in (50, 51)]
        found = [self.run_ok("diff", "-f", "json", "--limit", "0", *options, *paths).json
                 for options in (("--activity", "7"), ("--include", "g(int)"))]
        self.assertEqual(*found)

    def test_parts(self):
        """Activities divide what happens: no call and no block is of two, or of none."""
        for seed in range(5):
            path = self.write(random_islands(seed).close(), f"parts{seed}")
            for command, member in (("peak", "live_blocks"), ("moves", "reallocs"),
                                    ("hot", "allocations"), ("leaks", "total_blocks")):
                parts = [self.json_of(command, path, "--activity", n)[member] for n in "078"]
                self.assertEqual(sum(parts), self.json_of(command, path)[member], command)

    def test_chains(self):
        """A chain has only the reallocations in the islands; others move it on."""
        script = Script().basics()
        script.alloc(0x1000, 10)
        script.realloc(0x1000, 0x2000, 20, thread=1)
        mark(script, 1, STARTED, 7)
        script.realloc(0x2000, 0x3000, 40, thread=1)
        mark(script, 1, STOPPED)
        script.realloc(0x3000, 0x4000, 50, thread=1)
        mark(script, 1, STARTED, 7)
        script.realloc(0x4000, 0x5000, 80, thread=1)
        mark(script, 1, STOPPED)
        script.realloc(0x5000, 0x6000, 90, thread=1)
        found = self.json_of("moves", self.write(script.close()), "--activity", "7")
        self.assertEqual([(chain["start_size"], chain["final_size"], chain["reallocs"],
                           chain["moved"], chain["bytes_copied_at_most"], chain["address"])
                          for chain in found["chains"]], [(20, 80, 2, 2, 70, "0x5000")])

    def test_growth_is_of_islands(self):
        """An inferred growth is where the new block is allocated."""
        script = Script().basics()
        script.alloc(0x1000, 16, thread=1)
        mark(script, 1, STARTED, 7)
        script.alloc(0x2000, 32, thread=1)
        script.free(0x1000, thread=1)
        script.close()
        path = self.write(script)
        found = [self.json_of("moves", path, "--activity", n)["inferred"] for n in "70"]
        self.assertEqual([inferred["replaced"] for inferred in found], [1, 0])

    def test_commands(self):
        """Each command selects by islands or refuses to, and the manual says which."""
        path = self.write(random_islands(1).close())
        with open(os.path.join(os.environ["TTD_SOURCE"], "analyzer/ttdanalyze.1"),
                  encoding="utf-8") as file:
            section = re.search(r"^\.Sh ISLANDS$(.*?)^\.Sh ", file.read(), re.M | re.S)[1]
        listed, refusing = section.split(".El\n")
        names = [set(re.findall(r"\w+", " ".join(re.findall(r"Cm (.*)", part))))
                 for part in (listed, refusing)]
        self.assertEqual(names, [{*FILTERED, *OTHER, *GROUPED}, set(UNFILTERED)])
        commands = [line.split()[0] for line in run("--help").text.splitlines()
                    if re.match(r"  \w", line)]
        self.assertEqual(set(commands), {*FILTERED, *OTHER, *GROUPED, *UNFILTERED})
        for command in UNFILTERED:
            for option, value in ("--client", GUID), ("--activity", "7"):
                result = run(command, option, value, path)
                self.assertEqual(result.status, USAGE)
                self.assertIn(f"{command}: {option} ", result.errors)
        for command in *FILTERED[:-1], *OTHER:
            self.run_ok(command, "--client", GUID, "--activity", "7", path)
            warned = self.run_ok(command, "--activity", "99", path).errors
            what = "no mark of the trace" if command == "marks" else "nothing in the trace"
            self.assertIn(f"{what} matches --activity", warned)

    def test_exit_status(self):
        """An island that is not there is no proof that nothing is lost or wrong."""
        path = self.write(random_islands(1).close())
        for command in "leaks", "errors":
            result = run(command, "--activity", "99", "--error-exitcode", "7", path)
            self.assertEqual((result.status, result.text), (USAGE, ""))
            self.assertIn("nothing in the trace matches --activity", result.errors)
            self.assertNotIn("warning", result.errors)


if __name__ == "__main__":
    support.main()
