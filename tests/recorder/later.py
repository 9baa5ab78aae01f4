# SPDX-License-Identifier: MIT
"""Shared by the tests of names that come later: programs recorded without, and debug files."""

import os
import pathlib
import shutil
import subprocess

from support import PATIENCE, RECORDER, Recording, analyze, program

LIBRARY = 'libroots_library.so'
# By the size of a block, functions of its stack, innermost first.
STACKS = {1005: ['keep_in_function', 'main'], 1007: ['keep', 'main']}
EXIT_OUTPUT, EXIT_RECORDER = 122, 125


def build_id(path):
    """The build-id in hexadecimal digits."""
    notes = subprocess.run(['readelf', '-n', str(path)], capture_output=True, text=True, check=True)
    return notes.stdout.split('Build ID: ')[1].split()[0]


def run(*command):
    subprocess.run([str(part) for part in command], check=True, capture_output=True)


class Later(Recording):
    def setUp(self):
        super().setUp()
        self.result = self.directory / 'result.bin'
        self.debug = self.directory / 'debug'
        self.kept = self.directory / 'kept'
        self.kept.mkdir()

    def strip(self, name):
        """A stripped copy of a program, whose debug file is kept where nobody looks for it."""
        copy = self.directory / name
        shutil.copy(program(name), copy)
        run('objcopy', '--only-keep-debug', copy, self.kept / name)
        run('strip', copy)
        return copy

    def install(self, name):
        """Puts a kept debug file where its build-id belongs."""
        digits = build_id(self.kept / name)
        place = self.debug / '.build-id' / digits[:2] / (digits[2:] + '.debug')
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.kept / name, place)
        return place

    def record_roots(self):
        copies = [self.strip(name) for name in ('roots', LIBRARY)]
        self.assertEqual(self.record(*map(str, copies)).returncode, 0)
        return copies

    def environment(self, **changes):
        environment = {k: v for k, v in os.environ.items() if k != 'DEBUGINFOD_URLS'}
        return dict(environment, DEBUGINFOD_CACHE_PATH=str(self.directory / 'cache'), **changes)

    def symbolize(self, *arguments, status=0, **changes):
        """The output of the command."""
        done = subprocess.run(
            [RECORDER, 'symbolize', f'--debug-path={self.debug}', *map(str, arguments)],
            capture_output=True, text=True, timeout=PATIENCE, env=self.environment(**changes))
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout, '')
        return done.stderr

    def to_result(self, **changes):
        return self.symbolize('-o', self.result, self.trace, **changes)

    def stack(self, trace, size):
        """The frames of the allocation of a block, innermost first."""
        group, = [group for group in analyze('leaks', trace)['groups']
                  if (group['blocks'], group['bytes']) == (1, size)]
        return group['stack']

    def assert_named(self, trace):
        for size, functions in STACKS.items():
            frames = self.stack(trace, size)[:len(functions)]
            self.assertEqual([frame.get('function') for frame in frames], functions)
            for frame in frames:
                self.assertIn(pathlib.Path(frame['file']).name, ('roots.c', 'roots_library.c'))
                self.assertGreater(frame['line'], 0)

    def assert_unnamed(self, trace):
        for size in STACKS:
            own = [frame for frame in self.stack(trace, size)
                   if pathlib.Path(frame['module']).parent == self.directory]
            self.assertEqual([frame['file'] for frame in own], [None] * len(own))
            self.assertIn(None, [frame['function'] for frame in own])

    def events(self, trace):
        return analyze('events', trace)
