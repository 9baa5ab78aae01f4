# SPDX-License-Identifier: MIT
"""Shared by the command line's tests: making traces, running ttdanalyze, reading its output."""

import csv
import fcntl
import io
import json
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

import served

ANALYZER = os.environ["TTDANALYZE"]
TRACEGEN = os.environ["TRACEGEN"]

USAGE, OPEN, DAMAGED, INTERNAL = 2, 3, 4, 5
HAS_VIEWER = os.environ.get("HAS_VIEWER", "1") == "1"
HAS_QUERY = os.environ.get("HAS_QUERY", "1") == "1"


def make_trace(path, lines):
    """Runs tracegen."""
    return served.run([TRACEGEN, path], input=("\n".join(lines) + "\n").encode())


class Script:
    """A script for tracegen, with short methods for what most tests need."""

    def __init__(self, **trace):
        self.lines = []
        self.clock = 0
        self.numbers = 0
        self.add("trace", **trace)

    def add(self, word, **fields):
        def text(value):
            return f"0x{value:x}" if isinstance(value, int) else str(value)

        self.lines.append(" ".join([word] + [f"{k}={text(v)}" for k, v in fields.items()]))
        return self

    def basics(self):
        """A module with named functions, two threads, a heap and stacks 1 to 4."""
        self.add("module", path="/opt/app/bin/demo", bias=0x400000, begin=0x400000, end=0x500000,
                 build_id="00ff12", position="0:0")
        self.add("module", path="/usr/lib/libwork.so", bias=0x7000000, begin=0x7000000,
                 end=0x7100000, position="0:0")
        self.add("thread", os=1000, name="main", position="0:0")
        self.add("thread", os=1001, name="worker", position="1:0")
        self.add("heap", name="malloc")
        self.add("heap", handle=0xb00000, name="private")
        self.add("stack", parent=0, module=1, offset=0x100)  # 1: main
        self.add("stack", parent=1, module=1, offset=0x200)  # 2: main > f (with an inlined g)
        self.add("stack", parent=1, module=2, offset=0x300)  # 3: main > ?
        self.add("stack", parent=3, module=0, offset=0xdead)  # 4: main > ? > nowhere
        self.add("symbol", module=1, offset=0x100, frames="main@main.c@10")
        self.add("symbol", module=1, offset=0x200, frames="_Z1gi@g.h@5,_ZN1f3runEv@f.cc@20")
        return self

    def tick(self):
        self.clock += 1
        return f"{self.clock // 4:X}:{self.clock % 4:X}"

    def event(self, action, **fields):
        """An event of one tick, or with `start` and `end` given."""
        if "start" not in fields:
            fields["start"] = self.tick()
        if "end" not in fields:
            fields["end"] = self.tick()
        self.add("event", action=action, **fields)
        self.numbers += 1
        return self.numbers - 1

    def alloc(self, address, size, stack=2, **fields):
        return self.event("Alloc", address=address, size=size, stack=stack, api=1, **fields)

    def free(self, address, stack=1, **fields):
        return self.event("Free", base=address, stack=stack, api=5, **fields)

    def realloc(self, base, address, size, stack=2, **fields):
        return self.event("ReAlloc", base=base, address=address, size=size, stack=stack, api=3,
                          **fields)

    def memory(self, *values, **fields):
        """A sample of the process's memory: resident, mapped and most resident bytes."""
        data = b"".join(value.to_bytes(8, "little") for value in values)
        return self.add("user", position=self.tick(), client="ttdtrace.memory%00",
                        data="".join(f"%{byte:02x}" for byte in data), **fields)

    def close(self, reason=1, **fields):
        return self.add("close", reason=reason, **fields)

    def abandon(self):
        return self.add("close")


class Result:
    def __init__(self, process):
        self.status = process.returncode
        self.raw = process.stdout
        self.text = process.stdout.decode(errors="replace")
        self.errors = process.stderr.decode(errors="replace")

    @property
    def json(self):
        return json.loads(self.raw.decode())

    @property
    def json_lines(self):
        return [json.loads(line) for line in self.raw.decode().splitlines()]

    @property
    def csv(self):
        return list(csv.DictReader(io.StringIO(self.raw.decode())))


def badly_filled(text):
    """The lines of a text that are wider than 80 columns, or that break although the next word of
    their sentence has much room."""
    lines = text.splitlines()
    found = [line for line in lines if len(line) > 80]
    for line, following in zip(lines, lines[1:]):
        word = re.match(r"[A-Za-z'(]\S*", following)
        is_open = re.match(r"[A-Za-z'(].*[^.:]$", line) and not line.startswith("Usage: ")
        if word and is_open and len(line) + 1 + len(word[0]) <= 70:
            found.append(line)
    return found


def run(*arguments, **options):
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "PAGER")}
    environment.update(options.pop("env", {}))
    return Result(served.run([ANALYZER, *map(str, arguments)], env=environment, **options))


def npm_package(name):
    """The folder of a package that tools/install-packages installs, or None."""
    npm = shutil.which("npm")
    root = npm and subprocess.run([npm, "root", "-g"], capture_output=True, text=True).stdout.strip()
    folder = pathlib.Path(root or "/nonexistent") / name
    return folder if folder.is_dir() else None


def on_one_processor():
    """For `preexec_fn`."""
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])


class TestCase(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, script, name="trace.ttd"):
        path = self.path(name)
        made = make_trace(path, script.lines)
        self.assertEqual(made.returncode, 0, made.stderr)
        return path

    def run_ok(self, *arguments, **options):
        result = run(*arguments, **options)
        self.assertEqual(result.status, 0, result.errors)
        return result

    def json_of(self, command, path, *arguments):
        return self.run_ok(command, "--format", "json", *arguments, path).json

    def on_terminal(self, *arguments, columns=0, **environment):
        """The output on a terminal."""
        try:
            master, slave = pty.openpty()
        except OSError as error:
            self.skipTest(f"no pseudo-terminals here: {error}")
        attributes = termios.tcgetattr(slave)
        attributes[1] &= ~termios.OPOST
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        settings = {"PATH": os.environ["PATH"], "TERM": "xterm", **environment}
        with subprocess.Popen([ANALYZER, *arguments], stdout=slave, stderr=slave,
                              stdin=slave, env=settings) as process:
            os.close(slave)
            fcntl.fcntl(master, fcntl.F_SETFL, os.O_NONBLOCK)
            seen = b""
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:
                try:
                    part = os.read(master, 65536)
                except BlockingIOError:
                    time.sleep(0.01)
                    continue
                except OSError:
                    break
                seen += part
            process.wait()
        os.close(master)
        return process.returncode, seen.decode()


def main():
    unittest.main(argv=[sys.argv[0], "-v"])
