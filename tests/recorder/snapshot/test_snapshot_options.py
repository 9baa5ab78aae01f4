# SPDX-License-Identifier: MIT
"""Options that say which snapshots to take."""

import unittest

from support import Recording, analyze, program


class SnapshotOptions(Recording):
    def snapshot(self, *options):
        """The snapshot at the end of a program that is recorded so; None if there is none."""
        self.assertEqual(self.record(program('leaks_c'), options=options).returncode, 0)
        return analyze('leaks', self.trace)['snapshot']

    def test_default(self):
        for options in ([], ['--snapshot-at-exit=references'],
                        ['--no-snapshot', '--snapshot-at-exit=references']):
            self.assertEqual(self.snapshot(*options)['reason'], 'exit', options)

    def test_none(self):
        for options in (['--no-snapshot'], ['--snapshot-at-exit=none'],
                        ['--snapshot-at-exit', 'references', '--no-snapshot']):
            self.assertIsNone(self.snapshot(*options), options)

    def contents(self, *options):
        """The contents and the reason of each snapshot of a program that sleeps for a moment."""
        self.assertEqual(self.record('/usr/bin/python3', '-c', 'import time; time.sleep(3)',
                                     options=options).returncode, 0)
        return [(tuple(snapshot['contents']), snapshot['reason'])
                for snapshot in analyze('snapshots', self.trace)['snapshots']]

    def test_every(self):
        *regular, last = self.contents('--snapshot-every=.1')
        self.assertGreater(len(regular), 1)
        self.assertEqual(set(regular), {regular[0]})
        self.assertEqual((regular[0][1], last[1]), ('interval', 'exit'))
        blocks = self.contents('--snapshot-every=.1', '--snapshot=blocks', '--no-snapshot')
        self.assertGreater(len(blocks), 1)
        self.assertEqual(len(set(blocks)), 1)
        self.assertNotEqual(blocks[0], regular[0])

    def test_wrong_values(self):
        for option, message in (
                ('--snapshot-at-exit=all', "'all' is no kind of snapshot: blocks, references, "
                                           'memory or none'),
                ('--snapshot=none', "'none' is no kind of snapshot: blocks, references or memory"),
                ('--snapshot=', "'' is no kind of snapshot: blocks, references or memory"),
                *((f'--snapshot-every={text}', f"'{text}' is no number of seconds from 0.001 to "
                                               '1e+09')
                  for text in ('', '0', '-1', '1s', 'nan', 'inf', '1e10', '0.0009'))):
            with self.subTest(option):
                result = self.record(program('leaks_c'), options=[option])
                self.assertEqual(result.returncode, 125)
                self.assertEqual(result.stderr.decode(), f'ttdrecord: {message}\n'
                                 "Try 'ttdrecord --help'.\n")
                self.assertFalse(self.trace.exists())


if __name__ == '__main__':
    unittest.main()
