# SPDX-License-Identifier: MIT
"""Programs without unwind data in memory have the stacks that their .debug_frame leads to."""

import shutil
import subprocess
import unittest

from support import Recording, analyze, program


def own_frames(stack):
    names = [frame['function'] for frame in stack]
    return names[:names.index('main') + 1] if 'main' in names else names


class DebugFrame(Recording):
    def stacks(self, *command):
        self.record(*command)
        return sorted(own_frames(group['stack']) for group in analyze('leaks', self.trace)['groups']
                      if group['stack'][0]['function'] == 'make')

    def test_a_program(self):
        self.assertEqual(self.stacks(program('debug_frame')), [['make', 'middle', 'outer', 'main']])

    def test_a_library_that_is_loaded_again(self):
        """Each time it may be elsewhere."""
        own = ['make', 'middle', 'outer', 'main']
        self.assertEqual(self.stacks(program('debug_frame'), program('libdebug_frame_library.so')),
                         [own, own])

    def test_without_the_section(self):
        stripped = self.directory / 'stripped'
        shutil.copy(program('debug_frame'), stripped)
        subprocess.run(['strip', '--remove-section=.debug_frame', '--keep-symbol=make', stripped],
                       check=True)
        self.assertEqual(self.stacks(stripped), [['make']])


if __name__ == '__main__':
    unittest.main()
