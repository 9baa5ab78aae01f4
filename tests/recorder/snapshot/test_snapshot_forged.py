# SPDX-License-Identifier: MIT
"""Requests for snapshots that a hostile program makes: they cost others nothing."""

import re
import unittest

from support import Recording, analyze, program

ROUNDS = 20
STEPS = 200000

# On a busy machine, of the program that claims all memory.
INCOMPLETE = rb'(ttdrecord: warning: \d snapshots? (is|are) not complete, .*\n)?'


class Forged(Recording):
    def trace_of(self, name):
        traces = list(self.directory.glob(f'trace.bin.*.{name}'))
        self.assertEqual(len(traces), 1, name)
        return traces[0]

    def test_requests(self):
        """A program gets as many snapshots as it may ask for, whatever it asks; another one that
        is recorded loses nothing meanwhile."""
        other = f'exec {program("progress")} {self.directory}/steps {STEPS}'
        run = self.record('/bin/sh', '-c',
                          f'(exec {program("asker")} {ROUNDS}) & ({other}) & wait')
        self.assertEqual(run.returncode, 0)
        self.assertRegex(run.stderr, rb'\A' + INCOMPLETE + rb'\Z')
        said = re.fullmatch(rb'(\d+) taken, (\d+) refused\n', run.stdout)
        taken, refused = map(int, said.groups())
        self.assertEqual(taken + refused, ROUNDS)
        self.assertIn(taken, (1, 2))
        other = self.trace_of('progress')
        self.assert_sound(other)
        self.assertEqual(analyze('info', other)['lost_events'], 0)
        hostile = self.trace_of('asker')
        self.assertEqual(analyze('verify', hostile)['problems'], [])
        self.assertEqual(len(analyze('snapshots', hostile)['snapshots']), taken)


if __name__ == '__main__':
    unittest.main()
