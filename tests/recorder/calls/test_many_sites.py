# SPDX-License-Identifier: MIT
"""A function with many call sites costs in proportion to their number, in instructions: unlike
times these are the same on a busy machine."""

import os
import re
import shutil
import subprocess
import unittest

from support import PATIENCE, Recording, program

# As in the program.
FEW, MANY = 128, 2048


@unittest.skipUnless(shutil.which('valgrind'), 'instructions are counted by valgrind')
@unittest.skipUnless('UNWIND_LIBRARY' in os.environ, 'built without the library that captures')
class ManySites(Recording):
    def instructions(self, *arguments):
        """Of a program whose calls' stacks are captured: in valgrind it cannot be recorded."""
        counts = self.directory / 'counts'
        report = self.directory / 'report'
        result = subprocess.run(
            ['valgrind', '--tool=callgrind', f'--callgrind-out-file={counts}', program('many_sites'),
             *arguments], capture_output=True, timeout=PATIENCE, check=False,
            env=dict(os.environ, LD_PRELOAD=os.environ['UNWIND_LIBRARY'], UNWIND_CHECK='0',
                     UNWIND_REPORT=str(report)))
        self.assertEqual(result.returncode, 0, result.stderr)
        # One line for each program that made calls; the newest comes last.
        self.report = report.read_text() if report.exists() else ''
        return int(re.search(r'^summary: (\d+)', counts.read_text(), re.MULTILINE)[1])

    def test_each_costs_the_same(self):
        none = self.instructions()
        few = (self.instructions('few') - none) / FEW
        many = (self.instructions('many') - none) / MANY
        self.assertGreaterEqual(int(re.search(r'.*events (\d+)', self.report, re.DOTALL)[1]), MANY)
        self.assertLess(many, 2 * few)


if __name__ == '__main__':
    unittest.main(verbosity=2)
