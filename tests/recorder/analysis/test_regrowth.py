# SPDX-License-Identifier: MIT
"""How containers of C++ grow is seen, and counted as they count."""

import unittest

from support import Recording, analyze, program


class Regrowth(Recording):
    def test_containers(self):
        self.assertEqual(self.record(program('growing')).returncode, 0)
        found = analyze('moves', self.trace, '--limit', '0')['inferred']
        by_function = {}
        for group in found['groups']:
            name = next(frame['function'] for frame in group['stack']
                        if (frame['function'] or '').startswith(('grow_', 'do_not', 'main')))
            by_function.setdefault(name, []).append(group)
        self.assertEqual(set(by_function), {'grow_vector()', 'grow_string()', 'grow_deque()',
                                            'grow_strings()'})
        vector = by_function['grow_vector()'][0]
        # 8, 16, ... 2^24 bytes: 21 times a larger one.
        self.assertEqual((vector['replaced'], vector['bytes_copied_at_most'], vector['growth'],
                          vector['growth_factor']), (21, 2 ** 24 - 8, 'geometric', 2))
        strings = by_function['grow_strings()'][0]
        self.assertEqual((strings['replaced'], strings['bytes_copied_at_most']),
                         (10, 32 * (2 ** 10 - 1)))
        for name in ('grow_string()', 'grow_deque()'):
            for group in by_function[name]:
                self.assertEqual(group['growth'], 'geometric')


if __name__ == '__main__':
    unittest.main(verbosity=2)
