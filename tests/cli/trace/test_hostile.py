# SPDX-License-Identifier: MIT
"""Traces of less than a megabyte that stand for gigabytes: no command takes long or much memory."""

import os
import resource
import subprocess
import tempfile
import unittest

import support

HOSTILE = os.environ["HOSTILE"]

# The limits of a command. A machine may be slow and busy: a fault takes ten times as much.
SECONDS = 20
MEGABYTES = 500

RULES = """leak:*a*a*a*a*b
{
   a
   Memcheck:Leak
   ...
   fun:*a*a*a*a*b
   ...
   fun:none
}
"""

# By shape and count, commands; those that start with '!' must succeed, those that start with '5'
# need more than is allowed, and the others may do either.
CASES = {
    ("inlined", 1200): ["! leaks --tree top-down --limit 3 --depth 9", "! leaks",
                        "! leaks --write-baseline BASELINE", "! timeline --include heap",
                        "leaks --tree bottom-up"],
    ("deep", 4000): ["! export massif", "! leaks --tree bottom-up", "5 leaks --tree bottom-up -f folded"],
    ("recursive", 20000): ["leaks --tree bottom-up", "leaks -f folded"],
    ("tails", 64000): ["! leaks --by function", "! leaks --include tail",
                       "! timeline --include tail", "! leaks --tree bottom-up",
                       "! leaks --tree top-down", "! leaks --write-baseline BASELINE",
                       "! events --stack tail --limit 9", "leaks --suppressions RULES"],
    ("twins", 30000): ["leaks --tree bottom-up --by file"],
    ("strings", 30000000): ["5 diff --changes"],
    ("names", 400): ["leaks --by file", "events --stack *a*a*a*b*a --limit 9"],
    # Words of a snapshot: all to one block, a ring, and the same without a root.
    ("star", 700000): ["! leaks", "! retained --tree", "! referrers --address 0x20000",
                       "! state --address 0x20000"],
    ("ring", 700000): ["! leaks --show all", "! retained --tree", "! roots",
                       "! referrers --address 0x20010"],
    ("lost-ring", 700000): ["! leaks", "! retained", "! referrers --address 0x20000"],
    ("lost-chain", 700000): ["! leaks", "! retained", "! referrers --address 0x20000"],
    ("sheaf", 10000000): ["leaks", "retained --tree", "referrers --address 0x20000",
                          "find --pointer-to 0x20000", "state --address 0x20000"],
    ("roots", 600000): ["! roots --limit 0", "! retained --by root --limit 0", "! leaks",
                       "retained --tree --limit 0", "! referrers --address 0x20000"],
    ("sites", 100000): ["! retained --by stack --limit 0", "! retained --by function --limit 0"],
    ("snapshots", 5000): ["! leaks", "! snapshots", "! history --address 0x20000"],
    ("blocks", 12000000): ["5 fragmentation --gap 1", "5 leaks"],
}


class Usage:
    """A run, and what it took."""

    def __init__(self, arguments):
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen([support.ANALYZER, *arguments], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=errors,
                                       preexec_fn=self.limit,
                                       env={**os.environ, "MALLOC_PERTURB_": "0"})
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            errors.seek(0)
            self.errors = errors.read().decode(errors="replace")
        self.status = process.returncode
        self.seconds = used.ru_utime + used.ru_stime
        self.megabytes = used.ru_maxrss / 1024

    @staticmethod
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


@unittest.skipUnless(os.environ["SANITIZE"] == "none", "a sanitizer takes memory of its own")
class Hostile(support.TestCase):
    def trace(self, shape, count):
        path = self.path(f"{shape}.trace")
        subprocess.run([HOSTILE, shape, str(count), path], check=True)
        self.assertLess(os.path.getsize(path), 1 << 20, shape)
        return path

    def check(self, path, command):
        words = command.split()
        wanted = words.pop(0) if words[0] in ("!", "5") else None
        names = {"TRACE": path, "RULES": self.path("rules"), "BASELINE": self.path("baseline")}
        used = Usage([names.get(word, word) for word in words] + [path])
        self.assertIn(used.status, {"!": (0,), "5": (5,)}.get(wanted, (0, 5)), used.errors)
        self.assertLess(used.megabytes, MEGABYTES)
        if used.status == 5:
            self.assertRegex(used.errors, r"needs more .* 448 MB; --max-memory SIZE allows more")

    def test_limits_of_the_system(self):
        """--max-memory raises no limit of the shell's."""
        case, words = next((case, command.split()[1:]) for case, commands in CASES.items()
                           for command in commands if command.startswith("5 "))
        path = self.trace(*case)
        for limit, option in (resource.RLIMIT_AS, "ulimit -v"), (resource.RLIMIT_DATA, "ulimit -d"):
            for more in (), ("--max-memory", "8G"):
                result = subprocess.run(
                    [support.ANALYZER, *words, *more, path], capture_output=True, text=True,
                    preexec_fn=lambda: resource.setrlimit(limit, (100 << 20, 100 << 20)))
                self.assertEqual(result.returncode, 5, result.stderr)
                self.assertIn(f"100 MB; {option} allows more", result.stderr)

    def test_cost(self):
        with open(self.path("rules"), "w", encoding="utf-8") as file:
            file.write(RULES)
        for (shape, count), commands in CASES.items():
            path = self.trace(shape, count)
            for command in commands:
                with self.subTest(shape=shape, command=command):
                    self.check(path, command)
            os.remove(path)

    def test_formats(self):
        """Every command that a snapshot concerns, in every format."""
        commands = ["leaks --show all", "leaks --by function --tree top-down", "state --by class",
                    "state --address 0x20010", "history --address 0x20000 --size 4096",
                    "diff", "diff --by class", "referrers --address 0x20020 --depth 4096",
                    "retained --limit 0", "retained --tree --depth 4096 --limit 0",
                    "retained --by class", "retained --by module", "roots --limit 0",
                    "memory --address 0x20000 --length 4096", "find --pointer-to 0x20020",
                    "snapshots", "info"]
        for shape in ("star", "lost-ring", "sheaf", "roots", "sites"):
            path = self.trace(shape, 3000)
            for command in commands:
                for form in ("text", "json", "csv"):
                    if form == "csv" and command.startswith("state --address"):
                        continue
                    with self.subTest(shape=shape, command=command, form=form):
                        used = Usage([*command.split(), "-f", form, path])
                        self.assertIn(used.status, (0, 2) if "class" in command else (0,),
                                      used.errors)
                        self.assertLess(used.megabytes, MEGABYTES)

    def test_advice(self):
        """Only a command that has the option is advised to use it."""
        path = self.trace("names", 400)
        for command, has_option in (("leaks --tree top-down", True), ("export folded", False)):
            used = Usage([*command.split(), "--max-memory", "40M", path])
            self.assertEqual(used.status, 5)
            self.assertIn("needs more steps", used.errors)
            self.assertEqual("--depth" in used.errors, has_option, command)

    def test_option(self):
        path = self.trace("blocks", 1000000)
        small = Usage(["leaks", "--max-memory", "64M", path])
        self.assertEqual(small.status, 5)
        self.assertIn("needs more memory than 64 MB", small.errors)
        self.assertLess(small.megabytes, 80)
        self.assertEqual(Usage(["leaks", "--max-memory", "1G", path]).status, 0)
        for wrong in ("0", "x", "-1", "1Q"):
            self.assertEqual(Usage(["leaks", "--max-memory", wrong, path]).status, support.USAGE)


if __name__ == "__main__":
    unittest.main(verbosity=2)
