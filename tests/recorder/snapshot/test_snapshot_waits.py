# SPDX-License-Identifier: MIT
"""Calls that wait with a time limit, in a program that snapshots stop again and again; and many
processes that wait for their snapshots."""

import subprocess
import unittest

from support import Recording, analyze, program


class Waits(Recording):

    def test_waits_end_as_without_snapshots(self):
        expected = subprocess.run([program('waits')], capture_output=True, check=True).stdout
        self.assertIn(b'epoll_wait: 0 \n', expected)
        self.assertNotIn(b'early', expected)
        # A recorder that gets no processor has the snapshot of the end alone.
        for _ in range(5):
            try:
                result = self.record(program('waits'), options=['--snapshot-every=0.05'])
            except subprocess.TimeoutExpired as expired:
                self.fail(f'a wait never ends: {expired.stdout}')
            self.assertEqual((result.returncode, result.stdout.decode()), (0, expected.decode()))
            if len(analyze('snapshots', self.trace)['snapshots']) > 1:
                return
        self.fail('no snapshot has stopped a wait')

    def test_memory_that_many_share_is_searched(self):
        """Children that end together share one search of the memory that they have in common."""
        self.assertEqual(self.record(program('shared_forks')).returncode, 0)
        children = list(self.directory.glob(f'{self.trace.name}.*.shared_forks'))
        self.assertEqual(len(children), 40)
        for trace in children:
            leaks = analyze('leaks', trace)
            self.assertTrue(leaks['certain'], leaks['reasons'])
            self.assertEqual(leaks['classes']['definitely_lost'], {'blocks': 1, 'bytes': 1234})
            self.assertEqual(leaks['classes']['still_reachable'], {'blocks': 1, 'bytes': 4321})


if __name__ == '__main__':
    unittest.main()
