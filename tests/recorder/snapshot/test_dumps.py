# SPDX-License-Identifier: MIT
"""Dumps that a program asks for: what each leaves in its trace."""

import os
import re
import stat
import subprocess
import unittest

from support import PATIENCE, Recording, analyze, marks, program

SIZE = 16384


class Dumps(Recording):

    def dump(self, *calls, options=()):
        """Records calls; returns their results, and the addresses that the program names."""
        result = self.record(program('dumper'), *calls, options=options)
        self.assertEqual(result.returncode, 0)
        self.messages = result.stderr.decode()
        lines = [line.split() for line in result.stdout.decode().splitlines()]
        places = {line[0]: int(line[1], 16) for line in lines if line[1].startswith('0x')}
        self.threads = [(int(line[1], 16), int(line[2])) for line in lines if line[0] == 'thread']
        self.names = [line[3] for line in lines if line[0] == 'name' and len(line) > 3]
        results = [(line[0], int(line[1])) for line in lines if not line[1].startswith('0x')]
        return results, places

    def memory(self, address, length=SIZE):
        """The known bytes of memory, with '?' for each unknown one."""
        known = b''
        for part in analyze('memory', self.trace, '--address', hex(address), '--length',
                            str(length))['parts']:
            known += (bytes.fromhex(part['bytes']) if part['state'] == 'bytes' else
                      (b'\0' if part['state'] == 'zeros' else b'?') * part['size'])
        return known

    def snapshots(self):
        return [(snapshot['contents'], snapshot['stopped']) for snapshot in
                analyze('snapshots', self.trace)['snapshots'] if snapshot['reason'] == 'program']

    def test_range(self):
        results, places = self.dump('range', options=['--no-snapshot'])
        self.assertEqual(results, [('range', 1)])
        self.assertEqual(self.snapshots(), [(['memory'], True)])
        self.assertEqual(self.memory(places['range']), b'r' * SIZE)
        self.assertEqual(set(self.memory(places['marked'], 8)), set(b'?'))
        self.assertEqual(stat.S_IMODE(os.stat(self.trace).st_mode), 0o600)

    def test_later(self):
        """A dump in the background is taken before the program ends."""
        for _ in range(20):
            results, places = self.dump('later')
            self.assertEqual(results, [('later', 1)])
            self.assertEqual(self.snapshots(), [(['memory'], False)])
            self.assertEqual(self.memory(places['range']), b'r' * SIZE)

    def test_missed(self):
        """Without a snapshot at the end nothing waits: a dump that came too late is told."""
        for _ in range(20):
            self.dump('later', options=['--no-snapshot'])
            told = re.findall(r'snapshots? .*(?:fail|could not|missing)', self.messages)
            self.assertEqual(len(self.snapshots()) + len(told), 1, self.messages)

    def test_nothing(self):
        results, _ = self.dump('empty', 'unmapped', 'none', options=['--no-snapshot'])
        self.assertEqual(results, [('empty', 0), ('unmapped', 0), ('none', 0)])
        self.assertEqual(self.snapshots(), [])
        self.assertNotIn('could not be taken', self.messages)

    def test_module(self):
        marked = b'in the data of the program\0'
        results, places = self.dump('data', options=['--no-snapshot'])
        self.assertEqual(results, [('data', 1)])
        self.assertEqual(self.memory(places['marked'], len(marked)), marked)
        self.assertEqual(set(self.memory(places['code'], 8)), set(b'?'))
        results, places = self.dump('code', options=['--no-snapshot'])
        self.assertEqual(self.memory(places['marked'], len(marked)), marked)
        with open(program('dumper'), 'rb') as file:
            self.assertIn(self.memory(places['code'], 64), file.read())

    def test_heaps(self):
        results, places = self.dump('heaps', options=['--no-snapshot'])
        self.assertEqual(results, [('heaps', 1)])
        self.assertEqual(self.snapshots(), [(['references', 'memory'], True)])
        self.assertEqual(self.memory(places['block']), b'h' * SIZE)
        self.assertEqual(set(self.memory(places['range'], 8)), set(b'?'))

    def test_many_at_once(self):
        results, _ = self.dump('crowd', options=['--no-snapshot'])
        self.assertEqual(results, [('crowd', 1)])
        self.assertEqual(len(self.snapshots()), 80)
        self.assertEqual([taken for _, taken in self.threads], [10] * 8)
        for address, _ in self.threads:
            held = self.memory(address)
            self.assertRegex(held.decode(), r'^\.{10}([A-H])\1+$')
            self.assertEqual(len(held), SIZE)

    def test_vanishing(self):
        """Memory that goes away is no fault, and nothing is invented: it had these bytes."""
        results, _ = self.dump('vanish', 'range', options=['--no-snapshot'])
        self.assertEqual(results, [('vanish', 1), ('range', 1)])
        found = analyze('find', self.trace, '--string', 'vv')
        self.assertLessEqual(found['unreadable_bytes'], 50 * SIZE)

    def test_replaced(self):
        """The memory of a program that was executed meanwhile is not that of the trace."""
        for _ in range(5):
            self.record(program('dumper'), 'replaced',
                        environment={'REPLACEMENT': program('static_sleeper')})
            self.assertEqual(self.snapshots(), [])

    def test_handler_and_close(self):
        results, places = self.dump('handler', 'closed', 'heaps', 'later', 'name')
        self.assertEqual(results, [('handler', 1), ('closed', 0), ('heaps', 0), ('later', 0),
                                   ('name', 0)])
        self.assertEqual(self.memory(places['range']), b'r' * SIZE)

    def test_confined(self):
        """A program that may make no system call is not made to make one, small or so large that
        others are copied; its dumps are taken from outside."""
        for way in 'strict', 'filter':
            for megabytes in '0', '96':
                result = self.record(program('confined_dumper'), way, megabytes)
                if result.returncode == 77:
                    self.skipTest('no seccomp here')
                self.assertEqual((result.returncode, result.stderr), (7, b''))
                told = {name: int(value, 16) for name, value in
                        map(str.split, result.stdout.decode().splitlines())}
                places = {name: told.pop('at-' + name) for name in ('range', 'block', 'data')}
                self.assertEqual(told, {'heaps': 1, 'range': 1, 'data': 1, 'later': 1, 'event': 1,
                                        'name': len(str(self.trace))})
                self.assertEqual([contents for contents, _ in self.snapshots()],
                                 [['references', 'memory']] + [['memory']] * 3)
                self.assertEqual({snapshot['copied'] for snapshot in
                                  analyze('snapshots', self.trace)['snapshots']}, {False})
                self.assertEqual(self.memory(places['range']), b'r' * SIZE)
                self.assertEqual(self.memory(places['block']), b'h' * SIZE)
                self.assertEqual(self.memory(places['data'], 6), b'in the')
                self.assertEqual([mark['text'] for mark in marks(self.trace)], ['confined', 'here'])

    def test_name(self):
        self.dump('name')
        self.assertEqual(self.names, [str(self.trace)])

    def test_not_recorded(self):
        calls = ['heaps', 'range', 'later', 'data', 'none', 'name', 'handler']
        result = subprocess.run([program('dumper'), *calls], capture_output=True, text=True,
                                timeout=PATIENCE)
        self.assertEqual(re.findall(r'^(\w+) (\d) ', result.stdout, re.M),
                         [(call, '0') for call in calls])


if __name__ == '__main__':
    unittest.main()
