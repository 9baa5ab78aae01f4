# SPDX-License-Identifier: MIT
"""A program behaves alike as a child of itself, as most tests run it, and when it is started"""

import os
import subprocess
import tempfile
import unittest

import served

PROBE = os.environ["PROBE"]


@unittest.skipUnless(served.LIBRARY, "programs are not served in this build")
class Served(unittest.TestCase):
    def both(self, *arguments, **options):
        """The result, which is the same both ways."""
        command = [PROBE, *arguments]
        child = served.run(command, **options)
        self.assertIn(PROBE, served.servers)
        if "input" not in options:
            options["stdin"] = subprocess.DEVNULL
        alone = subprocess.run(command, capture_output=True, timeout=60, check=False, **options)
        self.assertEqual(child.returncode, alone.returncode)
        self.assertEqual(child.stdout, alone.stdout)
        if alone.stderr == b"errors\n":
            self.assertEqual(child.stderr, alone.stderr)
        return child

    def test_arguments(self):
        self.assertIn(b"argument ''\n", self.both("0", "", "two words", "\udcff", "").stdout)
        self.both()

    def test_environment(self):
        self.assertIn(b"PROBE 1, HOME not set, LD_PRELOAD not set", self.both(env={"PROBE": "1"}).stdout)
        self.both(env={})

    def test_directory_and_input(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIn(os.fsencode(folder), self.both(cwd=folder).stdout)
        many = b"".join(b"%d\n" % i for i in range(20000))
        self.assertEqual(self.both(input=many).stdout.count(b"input "), 20000)

    def test_ends(self):
        for way, status in (("0", 0), ("7", 7), ("kill", -9)):
            self.assertEqual(self.both(way).returncode, status, way)
        self.assertNotEqual(self.both("abort").returncode, 0)

    def test_leak(self):
        """A sanitizer reports it in a child too."""
        result = self.both("leak")
        is_found = os.environ["SANITIZE"] != "none"
        self.assertEqual(result.returncode != 0, is_found)
        self.assertEqual(b"77 byte(s) leaked" in result.stderr, is_found)

    def test_too_long(self):
        with self.assertRaises(subprocess.TimeoutExpired):
            served.run([PROBE, "sleep"], timeout=0.5)
        self.both("0")

    def test_what_cannot_be_served(self):
        """A setting that must be there at the start is given to a program of its own."""
        result = served.run([PROBE], env={**os.environ, "LD_PRELOAD": "/dev/null"})
        self.assertIn(b"LD_PRELOAD set", result.stdout)
        self.assertFalse(served.can_serve({"preexec_fn": None}))
        self.assertTrue(served.can_serve({"cwd": "/"}))


if __name__ == "__main__":
    unittest.main(argv=["test_served.py", "-v"])
