# SPDX-License-Identifier: MIT
"""Emulators: they and the program that they run are in one process, and each has a trace of its own.
Not so with valgrind, which is left alone."""

import os
import re
import shutil
import subprocess
import time
import unittest

from support import Recording, analyze, program

EMULATOR = shutil.which('qemu-x86_64')


@unittest.skipUnless(EMULATOR, 'there is no qemu-x86_64')
class Emulation(Recording):
    def guests(self, name):
        return list(self.directory.glob(f'trace.bin.*.{name}'))

    def test_both_are_recorded(self):
        begin = time.monotonic()
        result = self.record(EMULATOR, program('leaks_c'))
        taken = time.monotonic() - begin
        self.assertEqual(result.returncode, 0, result.stderr)
        own = self.directory / 'native.bin'
        self.record(program('leaks_c'), options=['-o', str(own)])
        guests = self.guests('leaks_c')
        self.assertEqual(len(guests), 1, list(self.directory.iterdir()))
        emulator, guest = analyze('info', self.trace), analyze('info', guests[0])
        self.assertEqual(emulator['trace']['process_id'], guest['trace']['process_id'])
        self.assertEqual((emulator['lost_events'], guest['lost_events']), (0, 0))
        self.assertGreater(emulator['events'], guest['events'])
        native = analyze('info', own)
        for key in ('allocs', 'frees', 'reallocs', 'bytes_requested', 'end_reason', 'end_code'):
            self.assertEqual(guest[key], native[key], key)
        for trace in (self.trace, guests[0]):
            self.assertEqual(analyze('verify', trace)['problems'], [])
        self.assertLess(taken, 30)  # what cannot be mapped is not waited for, a minute each time

    def test_both_are_gone_before_the_collector_looks(self):
        """The collector is stopped while they run."""
        script = 'kill -STOP $PPID; "$0" "$1"; kill -CONT $PPID'
        self.record('sh', '-c', script, EMULATOR, program('leaks_c'))
        own = self.directory / 'native.bin'
        self.record(program('leaks_c'), options=['-o', str(own)])
        guests = self.guests('leaks_c')
        self.assertEqual(len(guests), 1, list(self.directory.iterdir()))
        guest, native = analyze('info', guests[0]), analyze('info', own)
        emulators = self.guests(os.path.basename(EMULATOR))
        self.assertEqual([analyze('info', trace)['trace']['process_id'] for trace in emulators],
                         [guest['trace']['process_id']])
        for key in ('allocs', 'frees', 'reallocs', 'bytes_requested'):
            self.assertEqual(guest[key], native[key], key)
        for trace in emulators + guests:
            self.assert_sound(trace, has_end=False)

    def test_fork(self):
        """The fork of a guest does not write into the trace of its parent. How it ends may remain
        unknown: no snapshot makes it wait until it has been seen."""
        self.assertEqual(self.record(EMULATOR, program('children')).returncode, 0)
        counts = [(info['end_code'] or 0, info['allocs'], info['frees'])
                  for info in (analyze('info', trace) for trace in self.guests('children'))]
        self.assertEqual([count[1:] for count in sorted(counts)], [(1, 0), (1, 1)])
        self.assertIn(max(counts)[0], (0, 7))

    def test_execute(self):
        """An executed program replaces the emulator as well as its program."""
        self.assertEqual(self.record(EMULATOR, program('exec_chain'), '2').returncode, 0)
        allocations = 0
        for trace in self.directory.iterdir():
            info = analyze('info', trace)
            self.assertEqual(info['lost_events'], 0, trace)
            self.assertEqual(analyze('verify', trace)['problems'], [])
            allocations += sum(event['action'] == 'Alloc' and event['size'] == 77777
                               for event in analyze('events', trace))
        self.assertEqual(allocations, 3 * 200)


VALGRIND = shutil.which('valgrind')


@unittest.skipUnless(VALGRIND, 'there is no valgrind')
class Valgrind(Recording):
    """A program in valgrind is not recorded, and valgrind sees it as it is without us."""

    def check(self, *command, warning):
        """Returns what valgrind says of a program with a leak."""
        result = self.record(*command, program('leaks_c'))
        self.assertEqual(result.returncode, 9, result.stderr)
        said = result.stderr.decode()
        self.assertIn(warning, said)
        self.assertFalse(analyze('leaks', self.trace)['certain'])
        return re.sub('==[0-9]+==|0x[0-9A-F]+', '', said.split('ttdrecord: ')[0])

    def test_memcheck(self):
        options = ['--leak-check=full', '-q', '--error-exitcode=9']
        native = subprocess.run([VALGRIND, *options, program('leaks_c')], capture_output=True)
        native = re.sub('==[0-9]+==|0x[0-9A-F]+', '', native.stderr.decode())
        warning = 'the program executed another one that could not be recorded'
        self.assertIn('definitely lost', native)
        self.assertEqual(self.check(VALGRIND, *options, warning=warning), native)

    def test_other_tools(self):
        for tool in 'helgrind', 'massif':
            options = [f'--tool={tool}', '-q', '--error-exitcode=9']
            options += ['--massif-out-file=/dev/null'] if tool == 'massif' else []
            result = self.record(VALGRIND, *options, program('leaks_c'))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertNotIn(b'==', result.stderr)


if __name__ == '__main__':
    unittest.main(verbosity=2)
