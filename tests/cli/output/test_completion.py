# SPDX-License-Identifier: MIT
"""Shells complete commands, options and some of their values"""

import os
import re
import shutil
import subprocess

import support
from support import TestCase, run

ASK = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); ' \
      '_ttdanalyze; printf "%s\\n" "${COMPREPLY[@]}"'


class Completion(TestCase):
    def ask(self, *words):
        found = subprocess.run(["bash", "-c", ASK, "bash", os.environ["COMPLETION_BASH"],
                                "ttdanalyze", *words], capture_output=True, text=True, check=True)
        self.assertEqual(found.stderr, "")
        return found.stdout.split()

    def commands(self):
        return re.findall(r"(?m)^  (\w+) +\w", run("--help").text)

    def test_commands(self):
        commands = self.commands()
        self.assertGreater(len(commands), 20)
        self.assertEqual(sorted(self.ask("")), sorted([*commands, "help"]))
        self.assertEqual(sorted(self.ask("re")), sorted(c for c in commands if c.startswith("re")))
        self.assertEqual(self.ask("nothing"), [])

    def test_options(self):
        """Those that the help has."""
        for command in self.commands():
            options = set(re.findall(r"(?m)^ +(?:-\w, )?(--[a-z-]+)", run(command, "--help").text))
            self.assertGreater(len(options), 3)
            found = self.ask(command, "--")
            self.assertEqual(len(found), len(set(found)))
            self.assertLessEqual(options, set(found), command)
            for option in set(found) - options:
                refused = run(command, option + "=", "trace").errors
                self.assertNotIn("unknown", refused, (command, option))
        self.assertEqual(self.ask("diff", "--fro"), ["--from"])
        self.assertEqual(self.ask("leaks", "x"), [])
        self.assertEqual(self.ask("nothing", "--"), [])

    def test_values(self):
        self.assertEqual(self.ask("leaks", "-f", ""), ["text", "json", "csv", "folded"])
        self.assertEqual(self.ask("leaks", "--format", "j"), ["json"])
        self.assertEqual(self.ask("leaks", "--format", "=", "c"), ["csv"])
        self.assertEqual(self.ask("leaks", "--format", "="), ["text", "json", "csv", "folded"])
        self.assertEqual(self.ask("leaks", "--tree", "b"), ["bottom-up"])
        keys = self.ask("leaks", "--by", "")
        self.assertEqual(len(keys), 7)
        for key in keys:
            refused = run("leaks", "--by", key, self.path("nothing")).errors
            self.assertNotIn("invalid argument", refused)
        self.assertEqual(self.ask("leaks", "--by", "fu"), ["function"])
        self.assertEqual(self.ask("info", "-f", ""), ["text", "json", "csv"])
        self.assertEqual(self.ask("hot", "--by", "cl"), [])
        self.assertEqual(self.ask("retained", "--by", ""), [])

    def check_syntax(self, shell, option):
        path = os.environ[f"COMPLETION_{shell.upper()}"]
        if not shutil.which(shell):
            self.skipTest(f"{shell} is not installed")
        subprocess.run([shell, option, path], check=True)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for command in self.commands():
            self.assertRegex(text, rf"\b{command}\b")
        self.assertIn("full-stacks", text)

    def test_zsh(self):
        self.check_syntax("zsh", "-n")

    def test_fish(self):
        self.check_syntax("fish", "--no-execute")


if __name__ == "__main__":
    support.main()
