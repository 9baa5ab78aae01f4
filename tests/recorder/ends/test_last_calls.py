# SPDX-License-Identifier: MIT
"""A program that the C library aborts inside of free(): what `errors` says of its last call."""

import signal
import unittest

from support import Recording, analyze, program


class LastCalls(Recording):
    def test_abort_after_an_overrun(self):
        result = self.record(program('overrun'))
        self.assertEqual(result.returncode, -signal.SIGABRT)
        damage, finding = analyze('errors', self.trace)['findings']
        self.assertEqual(damage['kind'], 'heap-damage')
        self.assertEqual((finding['kind'], finding['api'], finding['signal'], finding['certain']),
                         ('died-in-call', 'free', signal.SIGABRT, True))
        self.assertEqual(finding['stack'][0]['function'], 'main')
        blocks = [int(finding[key]['address'], 16) for key in ('before', 'block', 'after')]
        self.assertEqual(blocks, [blocks[0], blocks[0] + 32, blocks[0] + 64])

    def test_a_kill_from_outside_is_no_finding(self):
        self.record('sh', '-c', 'kill -KILL $$')
        self.assertEqual(analyze('errors', self.trace)['findings'], [])


if __name__ == '__main__':
    unittest.main()
