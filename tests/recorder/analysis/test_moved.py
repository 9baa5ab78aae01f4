# SPDX-License-Identifier: MIT
"""How the C library moves blocks: by a copy, or by mapping their pages."""

import os
import subprocess
import unittest

from support import Recording, analyze, program

SIZE, MOVES = 1 << 20, 10


class Moved(Recording):
    def moves(self, **environment):
        alone = subprocess.run([program('moving')], env={**os.environ, **environment})
        if alone.returncode == 77:
            self.skipTest('blocks are not moved so here')
        result = self.record(program('moving'), environment=environment)
        self.assertEqual((alone.returncode, result.returncode, result.stderr), (0, 0, b''))
        found = analyze('moves', self.trace)
        by_site = {frame['function']: group for group in found['groups'] for frame in group['stack']}
        return found, by_site['remap'], by_site['copy']

    def test_c_library(self):
        found, remapped, copied = self.moves()
        self.assertEqual((remapped['moved'], remapped['remapped'], remapped['unknown_moves'],
                          remapped['bytes_copied_at_most']), (MOVES, MOVES, 0, 0))
        self.assertEqual((copied['moved'], copied['remapped'], copied['unknown_moves'],
                          copied['bytes_copied']), (1, 0, 0, SIZE))
        self.assertEqual(found['bytes_copied_at_most'], SIZE)
        flags = [event['flags'] for event in analyze('events', self.trace)
                 if event['action'] == 'ReAlloc']
        self.assertEqual(flags, ['0x2'] * MOVES + ['0x1'])
        self.assertEqual(analyze('verify', self.trace)['problems'], [])

    def test_another_allocator(self):
        """Nothing is known of its blocks, and nothing is certain of those at page boundaries."""
        library = 'libjemalloc.so.2'
        alone = subprocess.run([program('moving')], env={**os.environ, 'LD_PRELOAD': library},
                               capture_output=True)
        if alone.returncode not in (0, 77) or alone.stderr:
            self.skipTest('no jemalloc here')
        result = self.record(program('moving'), environment={'LD_PRELOAD': library})
        self.assertEqual(result.returncode, alone.returncode)
        found = analyze('moves', self.trace)
        self.assertGreater(found['reallocs'], 0)
        self.assertEqual(found['remapped'], 0)
        self.assertEqual(found['unknown_moves'] * SIZE + found['bytes_copied'],
                         found['bytes_copied_at_most'])


if __name__ == '__main__':
    unittest.main(verbosity=2)
