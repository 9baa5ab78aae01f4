# SPDX-License-Identifier: MIT
"""Calls that wait with a time limit, in a program that snapshots stop again and again."""

import subprocess
import unittest

from support import Recording, analyze, program


class Waits(Recording):

    def test_waits_end_as_without_snapshots(self):
        expected = subprocess.run([program('waits')], capture_output=True, check=True).stdout
        self.assertIn(b'epoll_wait: 0 \n', expected)
        self.assertNotIn(b'early', expected)
        try:
            result = self.record(program('waits'), options=['--snapshot-every=0.05'])
        except subprocess.TimeoutExpired as expired:
            self.fail(f'a wait never ends: {expired.stdout}')
        self.assertEqual((result.returncode, result.stdout.decode()), (0, expected.decode()))
        self.assertGreater(len(analyze('snapshots', self.trace)['snapshots']), 1)


if __name__ == '__main__':
    unittest.main()
