# SPDX-License-Identifier: MIT
"""Frames of threads that go on or wait while a snapshot is taken: where their blocks are held."""

import re
import shutil
import subprocess
import unittest

from support import ANALYZER, PATIENCE, RECORDER, Recording, analyze, program

# By the size of a block: the function whose frame has the only pointer to it.
HOLDERS = {1001: 'wait_for_lock', 1002: 'keep_locked', 1003: 'wait_for_signals',
           1004: 'keep_waiting', 1005: 'run_on', 1006: 'keep_running'}
# So large that a process of which a snapshot is asked for is copied.
LARGE = '80'


class StackFrames(Recording):
    def ask(self, command):
        """Records a program that waits, and takes a snapshot of it from outside."""
        recorder = subprocess.Popen(
            [RECORDER, '-q', '--snapshot-at-exit=none', '-o', str(self.trace), *command, 'wait'],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(recorder.stdout.readline(), 'ready\n')
        with open(f'/proc/{recorder.pid}/task/{recorder.pid}/children') as children:
            pid, = [child for child in children.read().split()
                    if self.name_of(child) == 'blocked']
        subprocess.run([RECORDER, 'snapshot', pid], check=True, capture_output=True,
                       timeout=PATIENCE)
        _, messages = recorder.communicate(timeout=PATIENCE)
        self.assertEqual((recorder.returncode, messages), (0, ''))

    @staticmethod
    def name_of(pid):
        with open(f'/proc/{pid}/comm') as name:
            return name.read().strip()

    def referrers(self, size):
        address, = [event['address'] for event in analyze('events', self.trace)
                    if event.get('size') == size]
        return subprocess.run([ANALYZER, 'referrers', '--address', address, self.trace],
                              capture_output=True, text=True, timeout=PATIENCE, check=True).stdout

    def assert_named(self, label):
        """The label of a place in a stack, with the name of a function put in."""
        for size, function in HOLDERS.items():
            with self.subTest(size=size):
                self.assertRegex(self.referrers(size),
                                 r'(?m)^ +thread [234], stack, ' + label(function) +
                                 r' \+0x[0-9a-f]+, word at 0x[0-9a-f]+$')

    @staticmethod
    def with_line(function):
        return re.escape(function) + r' \(blocked\.c:[0-9]+\)'

    def test_referrers_name_the_functions_of_threads_at_the_end(self):
        self.assertEqual(self.record(program('blocked'), '0').returncode, 0)
        self.assert_named(self.with_line)

    def test_roots_are_frames(self):
        self.assertEqual(self.record(program('blocked'), '0').returncode, 0)
        text = subprocess.run([ANALYZER, 'roots', '--limit', '0', self.trace], capture_output=True,
                              text=True, timeout=PATIENCE, check=True).stdout
        for function in HOLDERS.values():
            self.assertRegex(text, r'(?m)^thread [234], stack, ' + self.with_line(function) + '$')
        self.assertNotRegex(text, r'(?m)^thread [234], stack$')

    def test_frames_by_debug_frame(self):
        """The program's segments have no unwind data, its file has."""
        self.assertEqual(self.record(program('blocked_without_tables'), '0').returncode, 0)
        self.assert_named(self.with_line)

    def test_a_snapshot_from_outside_has_the_frames_of_all_threads(self):
        self.ask([program('blocked'), '0'])
        self.assert_named(self.with_line)

    def test_a_copy_has_the_frames_too(self):
        self.ask([program('blocked'), LARGE])
        snapshot, = analyze('snapshots', self.trace)['snapshots']
        self.assertTrue(snapshot['copied'], snapshot)
        self.assert_named(self.with_line)

    def test_modules_name_frames_of_stripped_programs(self):
        stripped = str(self.directory / 'blocked')
        shutil.copy(program('blocked'), stripped)
        subprocess.run(['strip', stripped], check=True)
        self.assertEqual(self.record(stripped, '0').returncode, 0)
        self.assert_named(lambda function: r'blocked\+0x[0-9a-f]+')


if __name__ == '__main__':
    unittest.main()
