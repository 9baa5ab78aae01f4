# SPDX-License-Identifier: MIT
"""The bounds of a snapshot: what is beyond them is left out, which is said, and the program goes on."""

import csv
import json
import os
import subprocess
import unittest

from support import ANALYZER, PATIENCE, Recording, analyze, program

BOUNDED = os.environ['TTDRECORD_BOUNDED']
MEGABYTES, STATUS, LAST = 64, 7, 48  # the size of the block that the last word alone points to
SIZE = MEGABYTES << 20
CHUNK = 65536 * 8  # memory with as many references as are written at once
TIME_LIMIT = 2_000_000_000


class Bounds(Recording):

    def record_bounded(self, **bounds):
        """Returns what the recorder says, and the snapshot that the program ends with."""
        result = subprocess.run(
            [BOUNDED, '-q', '-o', self.trace, '--', program('filled'), str(MEGABYTES), str(STATUS)],
            env={**os.environ, **bounds}, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((result.returncode, result.stdout), (STATUS, 'filled\n'))
        verdict = analyze('verify', self.trace)
        self.assertEqual((verdict['ok'], verdict['problems']), (True, []))
        snapshot, = analyze('snapshots', self.trace)['snapshots']
        self.assertTrue(snapshot['stopped'])
        return result.stderr, snapshot

    def leaks(self, style):
        return subprocess.run([ANALYZER, 'leaks', '-f', style, self.trace], capture_output=True,
                              text=True, timeout=PATIENCE)

    def test_within(self):
        warning, snapshot = self.record_bounded()
        self.assertEqual((warning, snapshot['complete'], snapshot['missing_bytes']), ('', True, 0))
        self.assertGreaterEqual(snapshot['references'], SIZE // 8)
        found = json.loads(self.leaks('json').stdout)
        self.assertEqual((found['certain'], found['groups']), (True, []))

    def assert_uncertain(self, warning, snapshot):
        """The block that the last word points to seems lost."""
        missing = snapshot['missing_bytes']
        self.assertFalse(snapshot['complete'])
        self.assertEqual(warning, 'ttdrecord: warning: 1 snapshot is not complete, so that nothing '
                         'is certain by it\n')
        reason = (f'snapshot 1 is not complete: {missing} bytes of memory were not searched for '
                  'pointers')
        text = self.leaks('text').stdout
        self.assertIn(f'incomplete: {missing:,} bytes left out', text)
        self.assertIn(f'\nUncertain: {reason}\n', text)
        found = json.loads(self.leaks('json').stdout)
        self.assertEqual((found['certain'], found['reasons'], found['snapshot']['complete']),
                         (False, [reason], False))
        self.assertEqual([group['bytes'] for group in found['groups']], [LAST])
        printed = self.leaks('csv')
        self.assertEqual([(row['bytes'], row['certain'])
                          for row in csv.DictReader(printed.stdout.splitlines())],
                         [(str(LAST), 'false')])
        self.assertIn(f'uncertain: {reason}\n', printed.stderr)

    def test_references(self):
        """The bound is looked at whenever a chunk of references is written, and for every batch that
        is searched: the first of them may be roots."""
        warning, snapshot = self.record_bounded(REFERENCES_MAX='1000')
        self.assertLess(snapshot['references'] * 8, CHUNK + (2 << 20))
        self.assertGreater(snapshot['missing_bytes'], SIZE - CHUNK - (2 << 20))
        self.assertLess(snapshot['missing_bytes'], SIZE + (2 << 20))
        self.assert_uncertain(warning, snapshot)

    def test_time(self):
        """The search takes 6 seconds."""
        warning, snapshot = self.record_bounded(READ_MILLISECONDS='100')
        self.assertGreater(snapshot['held_ns'], TIME_LIMIT)
        self.assertLess(snapshot['held_ns'], 6_000_000_000)
        self.assertGreater(snapshot['missing_bytes'], SIZE // 2)
        self.assert_uncertain(warning, snapshot)

    def test_read_that_needs_the_program(self):
        """A thread of the program has to provide memory that the snapshot reads, but stands still:
        all threads go on, and nothing is certain by this snapshot. Later ones leave the memory out
        that would have to be provided, and so take no time."""
        command = [program('provides'), '15']
        if subprocess.run(command, capture_output=True, timeout=PATIENCE).returncode == 77:
            self.skipTest('userfaultfd is not permitted')
        result = self.record(*command, options=('--snapshot-every', '0.5'))
        self.assertEqual((result.returncode, result.stdout), (0, b'provided\n'))
        self.assertIn(b'warning: 1 snapshot could not read memory in time: ', result.stderr)
        first, *others = analyze('snapshots', self.trace)['snapshots']
        self.assertEqual((first['stopped'], first['complete']), (False, False))
        self.assertLess(first['held_ns'], TIME_LIMIT)
        self.assertGreaterEqual(len(others), 1)
        for snapshot in others:
            self.assertTrue(snapshot['stopped'])
        found = analyze('leaks', self.trace, '--at', first['position'])
        self.assertFalse(found['certain'])


if __name__ == '__main__':
    unittest.main()
