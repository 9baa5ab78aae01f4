# SPDX-License-Identifier: MIT
"""The report of `errors` on overwritten headers of blocks. Referee: what the program
does; AddressSanitizer and memcheck say the same of it."""

import os
import pathlib
import re
import signal
import subprocess
import unittest

from support import ANALYZER, PATIENCE, Recording, analyze, program

LETTERS = "0x4141414141414141"


def made_by(call):
    return [frame['function'] for frame in call['stack']][0] if call else None


class HeapDamage(Recording):
    def damage(self, way, end='', number=0):
        """The findings of damage, and all of them."""
        result = self.record(program('damages'), way, end)
        self.assertEqual(result.returncode, -number, result.stderr)
        found = analyze('errors', self.trace)['findings']
        damages = [finding for finding in found if finding['kind'] == 'heap-damage']
        self.assertEqual(found[:len(damages)], damages, 'they come first')
        return damages, found

    def text(self, *arguments):
        return subprocess.run([ANALYZER, *arguments, str(self.trace)], capture_output=True,
                              text=True, check=True, timeout=PATIENCE).stdout

    def check(self, finding, made, beyond, header, victim):
        """A block that was overrun: who made it, how far, what the header is, and who made the next
        block."""
        self.assertEqual((finding['certain'], made_by(finding), made_by(finding['allocated']),
                          finding['damage']['adjacent'], finding['damage']['bytes_beyond']),
                         (True, made, made, True, beyond))
        if header:
            self.assertEqual(finding['damage']['header'], header)
        block = finding['block']
        self.assertEqual(int(finding['address'], 16),
                         int(block['address'], 16) + int(block['offset']))
        self.assertEqual(made_by(finding['after'] and finding['after']['allocated']), victim)

    def test_none(self):
        self.assertEqual(self.damage('none'), ([], []))

    def test_beyond_the_end(self):
        """One byte; a whole word; and a size that leads to the header of a later block."""
        for way, beyond, header in (('zero', 1, '0x0'), ('letter', 1, '0x41'),
                                    ('text', 8, LETTERS)):
            with self.subTest(way):
                (finding,), found = self.damage(way)
                self.check(finding, 'make', beyond, header, 'make_victim')
                self.assertEqual(len(found), 1)

    def test_before_the_start(self):
        (finding,), _ = self.damage('before')
        self.check(finding, 'make', 8, '0x700000000000021', 'make_victim')
        text = self.text('errors')
        self.assertIn('; or the next block was, before its start\n', text)

    def test_two_blocks(self):
        """The header that the first one has damaged leads to that behind the second."""
        (first, second), _ = self.damage('two')
        self.check(first, 'make', 1, '0x41', 'make_victim')
        self.check(second, 'make', 1, '0x0', 'make')

    def test_top(self):
        """malloc() dies of it, much later: no block is behind."""
        for end, number in (('', 0), ('malloc', signal.SIGABRT)):
            with self.subTest(end):
                (finding,), _ = self.damage('top', end, number)
                self.check(finding, 'make', 8, LETTERS, None)

    def test_free_memory(self):
        (finding,), _ = self.damage('free')
        self.check(finding, 'make', 20, '0x4343434343434343', 'make')

    def test_arena_of_a_thread_that_ended(self):
        (finding,), _ = self.damage('arena')
        self.check(finding, 'make', 8, LETTERS, 'make_victim')

    def test_mappings(self):
        """Blocks with mappings of their own; free() dies of it."""
        for way, beyond, header, number in (('mapped-letter', 697, '0x31041', 0),
                                            ('mapped', 704, LETTERS, 0),
                                            ('mapped-free', 704, LETTERS, signal.SIGABRT)):
            with self.subTest(way):
                (finding,), _ = self.damage(way, number=number)
                self.check(finding, 'make', beyond, header, 'make_victim')
        self.assertEqual(self.damage('mapped-other'), ([], []))

    def test_calls_that_die(self):
        """The block that is being released counts as well."""
        (finding,), found = self.damage('text', 'realloc', signal.SIGABRT)
        self.check(finding, 'make', 8, LETTERS, 'make_victim')
        self.assertEqual(found[1]['kind'], 'died-in-call')

    def test_who_it_was_is_not_known(self):
        """The block before is not live any more, or the header was made of a wrong one."""
        (finding,), _ = self.damage('released')
        self.assertEqual((finding['certain'], made_by(finding), finding['block'],
                          finding['allocated'], finding['damage']['adjacent']),
                         (True, 'make_victim', None, None, False))
        self.assertIn(': its header was overwritten\n', self.text('errors'))
        self.check_released(finding, 'make')
        (finding,), _ = self.damage('derived')
        self.assertEqual((finding['certain'], finding['damage']['adjacent'],
                          finding['damage']['bytes_beyond']), (False, False, None))

    def check_released(self, finding, made):
        """The block before the header, which was released."""
        before = finding['before']
        self.assertEqual((made_by(before['allocated']), before['size'],
                          made_by(finding['released']),
                          int(finding['address'], 16) - int(before['address'], 16)),
                         (made, 24, 'damage', 24))

    def test_released(self):
        """A released block between the nearest live one and the header; and one where the next
        block is released as well."""
        (finding,), _ = self.damage('released-between')
        self.assertEqual((finding['certain'], made_by(finding), finding['block']),
                         (True, 'make', None))
        self.assertIsNotNone(finding['after'])
        self.check_released(finding, 'make_victim')
        self.assertIn('\n  released block 0x', self.text('errors'))
        (finding,), _ = self.damage('released-both')
        self.assertEqual((finding['certain'], made_by(finding), finding['block']),
                         (True, 'make_victim', None))
        self.check_released(finding, 'make_victim')
        self.assertRegex(self.text('errors'),
                         r'\n  released block 0x\w+, 24 bytes: the header behind it was overwritten\n')

    def test_text_and_rows(self):
        self.damage('text', 'realloc', signal.SIGABRT)
        text = self.text('errors')
        self.assertTrue(text.startswith('heap-damage: malloc(24 bytes) at '), text)
        self.assertIn(f' is {LETTERS} ("AAAAAAAA") in snapshot 1\n', text)
        self.assertIn(' was written 8 bytes or more\n  beyond its end; or ', text)
        self.assertLess(text.index('heap-damage'), text.index('fatal-signal'))
        kinds = [line.split(',')[0] for line in self.text('errors', '--format=csv').splitlines()]
        self.assertEqual(kinds, ['kind', 'heap-damage', 'fatal-signal', 'died-in-call'])

    def test_referee(self):
        """AddressSanitizer names the same block, by the function that made it."""
        source = pathlib.Path(os.environ['SOURCES']) / 'ends' / 'overruns.c'
        build = [*os.environ['COMPILER'].split(), '-g', '-O1', '-fno-builtin', '-w', str(source)]
        plain, checked = self.directory / 'plain', self.directory / 'checked'
        subprocess.run([*build, '-o', plain], check=True, timeout=PATIENCE)
        if subprocess.run([*build, '-fsanitize=address', '-o', checked], capture_output=True,
                          timeout=PATIENCE).returncode != 0:
            self.skipTest('there is no AddressSanitizer')
        makers = []
        for way in range(5):
            told = subprocess.run([checked, str(way)], capture_output=True, text=True,
                                  timeout=PATIENCE).stderr
            maker = re.search(r'\nallocated by thread T0 here:\n +#0 .*\n +#1 \S+ in (\w+)', told)
            self.assertIsNotNone(maker, told)
            self.assertEqual(self.record(plain, str(way)).returncode, 0)
            found = [made_by(finding['allocated'])
                     for finding in analyze('errors', self.trace)['findings']]
            self.assertEqual(found, [maker[1]])
            makers.append(maker[1])
        self.assertEqual(len(set(makers)), 5)


if __name__ == '__main__':
    unittest.main()
