# SPDX-License-Identifier: MIT
"""Which trace is read: named, not named, through a pipe, and what is none"""

import gzip
import os
import subprocess
import unittest

import support
from support import ANALYZER, Script, TestCase, run


def run_in(directory, *arguments, **options):
    """Runs ttdanalyze in a directory: status, output, errors."""
    result = subprocess.run([ANALYZER, *arguments], cwd=directory, capture_output=True, text=True,
                            timeout=60, check=False, **options)
    return result.returncode, result.stdout, result.stderr


class OneTrace(TestCase):
    def setUp(self):
        super().setUp()
        self.path = self.write(Script().basics().close())
        self.directory = os.path.dirname(self.path)

    def name(self, name):
        return os.path.join(self.directory, name)

    def make(self, name, data):
        with open(self.name(name), "wb") as file:
            file.write(data)
        return self.name(name)


class Named(OneTrace):
    def test_trace_bin_is_read_when_none_is_named(self):
        if os.path.basename(self.path) != "trace.bin":
            os.link(self.path, self.name("trace.bin"))
        expected = run_in(self.directory, "events", "trace.bin")
        self.assertEqual(expected[0], 0)
        self.assertEqual(run_in(self.directory, "events"), expected)

    def test_without_any_trace(self):
        empty = self.name("empty")
        os.mkdir(empty)
        status, output, errors = run_in(empty, "leaks")
        self.assertEqual((status, output), (support.USAGE, ""))
        self.assertIn("no trace is named, and there is no 'trace.bin' here", errors)

    def test_a_trace_in_place_of_a_command(self):
        """Is asked for a summary, also with options before it."""
        for arguments in (self.path,), ("-f", "json", self.path), ("--no-index", "-f", "csv", self.path):
            expected = run("summary", *arguments)
            self.assertEqual(expected.status, 0)
            result = run(*arguments)
            self.assertEqual((result.status, result.text), (0, expected.text))

    def test_options_before_the_command(self):
        for arguments in ("-f", "json", "leaks"), ("--no-index", "leaks", "--limit", "1"):
            result = run(*arguments, self.path)
            self.assertEqual((result.status, result.text), (support.USAGE, ""))
            self.assertIn("leaks: the command comes before its options\n", result.errors)
        # A file of that name is meant, and an option's value.
        named = self.name("leaks")
        self.assertEqual(run("-o", named, self.path).status, 0)
        for arguments in ("-o", "leaks"), ("--no-index", "leaks"):
            result = run(*arguments, self.path, cwd=self.folder)
            self.assertNotIn("the command comes before", result.errors)

    def test_an_address_in_place_of_a_trace(self):
        for command in "history", "referrers":
            errors = run(command, "0x1000", self.path).errors
            self.assertIn(f"{command}: '0x1000' is no trace: an address is given by --address\n", errors)

    def test_neither_command_nor_file(self):
        result = run(self.name("nothing"))
        self.assertEqual((result.status, result.text), (support.USAGE, ""))
        self.assertIn("no such command or file", result.errors)

    def test_nothing_is_named(self):
        result = run()
        self.assertEqual(result.status, support.USAGE)
        for group in "Start here:", "What is wrong:", "The trace as a file:", "  leaks ":
            self.assertIn(group, result.text)

    def test_did_you_mean(self):
        for typed, meant in (("leak", "leaks"), ("laeks", "leaks"), ("evnts", "events"),
                             ("verfy", "verify"), ("frag", "fragmentation"), ("heatt", None),
                             ("x", None)):
            errors = run(typed, self.path).errors
            if meant:
                self.assertIn(f"no such command: '{typed}'; did you mean '{meant}'?", errors)
            else:
                self.assertIn(f"no such command or file: '{typed}'\n", errors)
        errors = run("leaks", "--limti=3", self.path).errors
        self.assertIn("unknown or ambiguous option '--limti=3'; did you mean '--limit'?", errors)

    def test_version_by_a_letter(self):
        expected = self.run_ok("--version").text
        self.assertEqual(self.run_ok("-V").text, expected)
        self.assertEqual(self.run_ok("leaks", "-V").text, expected)

    def test_links_are_followed(self):
        os.symlink(self.path, self.name("link"))
        self.assertEqual(self.run_ok("events", self.name("link")).text,
                         self.run_ok("events", self.path).text)


class StandardInput(OneTrace):
    def ask(self, command, data, **options):
        return subprocess.run([ANALYZER, command, "-"], input=data, capture_output=True, timeout=60,
                              check=False, **options)

    def test_a_pipe_and_a_file(self):
        with open(self.path, "rb") as file:
            data = file.read()
        for command in ("events", "leaks", "info", "verify", "state", "diff"):
            expected = run(command, self.path)
            piped = self.ask(command, data)
            self.assertEqual((piped.returncode, piped.stderr), (expected.status, b""), command)
            self.assertEqual(piped.stdout.decode(), expected.text.replace(self.path, "-"), command)
            with open(self.path, "rb") as file:
                redirected = subprocess.run([ANALYZER, command, "-"], stdin=file, timeout=60,
                                            capture_output=True, check=False)
            self.assertEqual(redirected.stdout, piped.stdout, command)

    def test_a_pipe_and_a_file_without_a_magic(self):
        """The first chunk is damage like any other, also if the pipe gives its bytes one by one."""
        with open(self.path, "rb") as file:
            data = bytearray(file.read())
        for size in (1, 8):
            data[:size] = bytes(size)
            path = self.make("damaged", data)
            for command in ("events", "verify", "info"):
                expected = run(command, path)
                self.assertNotEqual(expected.status, support.OPEN)
                with subprocess.Popen([ANALYZER, command, "-"], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE) as piped:
                    for byte in data[:16]:
                        piped.stdin.write(bytes([byte]))
                        piped.stdin.flush()
                    output, _ = piped.communicate(data[16:])
                self.assertEqual(piped.returncode, expected.status, command)
                self.assertEqual(output.decode(), expected.text.replace(path, "-"), command)

    def test_a_fifo(self):
        os.mkfifo(self.name("fifo"))
        with open(self.path, "rb") as source:
            with subprocess.Popen(["sh", "-c", f"cat >'{self.name('fifo')}'"], stdin=source):
                self.assertEqual(self.run_ok("events", self.name("fifo")).text,
                                 self.run_ok("events", self.path).text)

    def test_the_copy_has_no_name_and_is_gone(self):
        with open(self.path, "rb") as file:
            self.ask("events", file.read(), env=dict(os.environ, TMPDIR=self.directory))
        self.assertEqual([name for name in os.listdir(self.directory) if "ttdanalyze" in name], [])

    def test_input_that_never_ends_and_is_no_trace(self):
        with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as endless:
            result = subprocess.run([ANALYZER, "leaks", "-"], stdin=endless.stdout, timeout=60,
                                    capture_output=True, text=True, check=False)
            endless.kill()
        self.assertEqual(result.returncode, support.OPEN)
        self.assertIn("standard input: offset 0x0: not a trace", result.stderr)

    def test_no_index_of_a_pipe(self):
        result = self.ask("index", b"")
        self.assertEqual(result.returncode, support.USAGE)
        self.assertIn(b"an index stands beside a trace", result.stderr)


class Recognised(OneTrace):
    def test_files_that_are_no_traces(self):
        for name, data, said in (
                ("a.gz", gzip.compress(b"x" * 1000), "a gzip file; unpack it first, with gzip -d"),
                ("a.zst", b"\x28\xb5\x2f\xfd" + bytes(100), "a zstd file, such as heaptrack writes"),
                ("a.json", b'{"events": []}', "JSON"),
                ("heaptrack", b"v 10400 2\nX /bin/true\n" * 20, "a trace of heaptrack"),
                ("program", b"\x7fELF" + bytes(100), "a program; record it with ttdrecord"),
                ("empty", b"", "an empty file")):
            path = self.make(name, data)
            for command in ("leaks", "verify", "info"):
                result = run(command, path)
                self.assertEqual((result.status, result.text), (support.OPEN, ""), (command, name))
                self.assertIn(f"ttdanalyze: {path}: not a trace, but {said}", result.errors)

    def test_a_directory(self):
        result = run("leaks", self.directory)
        self.assertEqual(result.status, support.OPEN)
        self.assertIn(f"{self.directory}: open: Is a directory", result.errors)


if __name__ == "__main__":
    unittest.main()
