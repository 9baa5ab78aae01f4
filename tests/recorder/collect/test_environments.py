# SPDX-License-Identifier: MIT
"""Environments that programs give to those that they execute."""

import unittest

from support import Recording, analyze, program


class Environments(Recording):
    def test_a_variable_twice(self):
        """Both values have room beside the recorder's own, whatever follows on the stack."""
        result = self.record(program('environments'), program('leaks_c'))
        self.assertEqual((result.returncode, result.stderr), (0, b''))
        self.assertGreater(analyze('info', self.trace)['allocs'], 0)
        self.assert_sound()


if __name__ == '__main__':
    unittest.main()
