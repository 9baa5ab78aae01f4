# SPDX-License-Identifier: MIT
"""Recording less than all, for programs that run for long: options that bound what a trace has."""

import subprocess
import unittest

from support import PATIENCE, ANALYZER, RECORDER, Recording, analyze, program


class Bounded(Recording):

    def converse(self, *commands, options=()):
        """Records a program that is told these commands, and returns the numbers of calls that it
        has counted itself: acquisitions, reallocations, releases."""
        result = self.record(program('counted'), options=options,
                             input='\n'.join([*commands, '']).encode())
        self.assertEqual(result.returncode, 0, result.stderr)
        ready, *counts = result.stdout.decode().splitlines()
        self.assertEqual((ready, len(counts)), ('ready', len(commands)))
        return [int(count) for count in counts[-1].split()], result.stderr.decode()

    def text(self, command, *options):
        return subprocess.run([ANALYZER, command, *options, str(self.trace)], text=True,
                              capture_output=True, timeout=PATIENCE).stdout

    def refusal(self, *options, command=('true',)):
        result = subprocess.run([RECORDER, '-o', str(self.trace), *options, *command], text=True,
                                capture_output=True, timeout=PATIENCE)
        self.assertEqual((result.returncode, result.stdout), (125, ''))
        self.assertFalse(self.trace.exists())
        return result.stderr


class Stacks(Bounded):

    def test_calls_without_stacks(self):
        """All calls are there, none has a stack, and no report makes one up."""
        (acquired, reallocated, released), _ = self.converse('calls 100', 'lose 7',
                                                             options=['--no-stacks'])
        leaks = self.assert_sound()
        lost = [group for group in leaks['groups'] if group['class'] == 'definitely_lost']
        self.assertEqual([(group['blocks'], group['stack']) for group in lost], [(7, [])])
        info = analyze('info', self.trace)
        self.assertIn({'key': 'stacks', 'value': 'not recorded'}, info['metadata'])
        hot = analyze('hot', self.trace)
        self.assertGreaterEqual(hot['allocations'], acquired + reallocated + 7)
        self.assertEqual([group['stack'] for group in hot['groups']], [[]])
        self.assertIn('7 blocks, 2,100 bytes, without recorded stacks', self.text('leaks'))
        self.assertGreater(released, 0)

    def test_attached(self):
        process = subprocess.Popen([program('counted')], stdin=subprocess.PIPE, text=True,
                                   stdout=subprocess.PIPE, bufsize=1)
        self.addCleanup(process.communicate)
        process.stdout.readline()
        recorder = subprocess.Popen([RECORDER, 'attach', '--no-stacks', '-o', str(self.trace),
                                     str(process.pid)], stderr=subprocess.PIPE, text=True)
        self.addCleanup(recorder.communicate)
        recorder.stderr.readline()
        process.stdin.write('calls 100\n')
        process.stdout.readline()
        subprocess.run([RECORDER, 'detach', str(process.pid)], check=True, timeout=PATIENCE,
                       stdout=subprocess.DEVNULL)
        self.assertEqual(recorder.wait(PATIENCE), 0)
        hot = analyze('hot', self.trace)
        self.assertGreaterEqual(hot['allocations'], 3 * 100 * 5)
        self.assertEqual([group['stack'] for group in hot['groups']], [[]])


if __name__ == '__main__':
    unittest.main()
