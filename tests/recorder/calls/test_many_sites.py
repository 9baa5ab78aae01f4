# SPDX-License-Identifier: MIT
"""A function with many call sites costs in proportion to their number, in instructions: unlike
times these are the same on a busy machine."""

import re
import shutil
import unittest

from support import Recording, analyze, program

# As in the program.
FEW, MANY = 128, 2048


@unittest.skipUnless(shutil.which('valgrind'), 'instructions are counted by valgrind')
class ManySites(Recording):
    def instructions(self, *arguments):
        """Of the recorded program, with the recorder's part in it."""
        counts = self.directory / 'counts'
        result = self.record('valgrind', '--tool=callgrind', f'--callgrind-out-file={counts}',
                             program('many_sites'), *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return int(re.search(r'^summary: (\d+)', counts.read_text(), re.MULTILINE)[1])

    def test_each_costs_the_same(self):
        none = self.instructions()
        few = (self.instructions('few') - none) / FEW
        many = (self.instructions('many') - none) / MANY
        self.assertGreaterEqual(analyze('info', self.trace)['events'], MANY)
        self.assertLess(many, 2 * few)


if __name__ == '__main__':
    unittest.main(verbosity=2)
