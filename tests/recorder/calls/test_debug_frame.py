# SPDX-License-Identifier: MIT
"""Programs without unwind data in memory have the stacks that their .debug_frame leads to."""

import re
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

    def copy(self, *options):
        """Returns a copy of the program that objcopy has changed."""
        changed = self.directory / 'changed'
        subprocess.run(['objcopy', *options, program('debug_frame'), changed], check=True)
        return changed

    def test_compressed(self):
        for form in ('zlib-gabi', 'zlib-gnu'):
            with self.subTest(form):
                self.assertEqual(self.stacks(self.copy(f'--compress-debug-sections={form}')),
                                 [['make', 'middle', 'outer', 'main']])

    def test_in_a_debug_file(self):
        for folder, form in (('.', 'none'), ('.debug', 'zlib-gabi')):
            with self.subTest(folder):
                (self.directory / folder).mkdir(exist_ok=True)
                debug = self.directory / folder / 'changed.debug'
                subprocess.run(['objcopy', '--only-keep-debug', f'--compress-debug-sections={form}',
                                program('debug_frame'), debug], check=True)
                changed = self.copy('--strip-debug', f'--add-gnu-debuglink={debug}')
                self.assertEqual(self.stacks(changed), [['make', 'middle', 'outer', 'main']])
                debug.unlink()

    def test_the_debug_file_of_another_program(self):
        """With a build-id, that decides; without one, the checksum."""
        for remove in ((), ('--remove-section=.note.gnu.build-id',)):
            with self.subTest(remove):
                debug = self.directory / 'changed.debug'
                subprocess.run(['objcopy', '--only-keep-debug', *remove, program('debug_frame'),
                                debug], check=True)
                changed = self.copy('--strip-debug', *remove, f'--add-gnu-debuglink={debug}')
                if remove:
                    self.assertEqual(self.stacks(changed), [['make', 'middle', 'outer', 'main']])
                other = self.directory / 'other'
                subprocess.run(['objcopy', '--only-keep-debug', *remove,
                                program('blocked_without_tables'), other], check=True)
                other.replace(debug)
                self.assertEqual(self.stacks(changed), [['make']])

    def test_go(self):
        """Its function that calls C functions is on another stack, and the section does not say
        so."""
        self.assertEqual(self.stacks(self.copy(f'--add-section=.go.buildinfo={__file__}')),
                         [['make']])

    def test_a_compressed_section_that_is_damaged(self):
        """The program runs as ever, and its stacks are as if there were no section."""
        path = self.copy('--compress-debug-sections=zlib-gabi')
        whole = path.read_bytes()
        header = subprocess.run(['readelf', '-SW', path], check=True, capture_output=True,
                                text=True).stdout
        place = re.search(r' \.debug_frame +PROGBITS +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)', header)
        begin, size = (int(number, 16) for number in place.groups())
        for index in (begin, begin + 8, begin + 15, begin + 24, begin + size // 2, begin + size - 1):
            with self.subTest(index - begin):
                path.write_bytes(whole[:index] + bytes([whole[index] ^ 0x55]) + whole[index + 1:])
                self.assertEqual(self.stacks(path), [['make']])

    def test_without_the_section(self):
        stripped = self.directory / 'stripped'
        shutil.copy(program('debug_frame'), stripped)
        subprocess.run(['strip', '--remove-section=.debug_frame', '--keep-symbol=make', stripped],
                       check=True)
        self.assertEqual(self.stacks(stripped), [['make']])


if __name__ == '__main__':
    unittest.main()
