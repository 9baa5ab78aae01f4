# SPDX-License-Identifier: MIT
"""Modules and programs that look for malloc elsewhere than where the recorder stands."""

import os
import pathlib
import shutil
import subprocess
import unittest

from support import Recording, analyze, program


class DeepBinding(Recording):
    def check(self, mode):
        result = self.record(program('deepbind'), program('libdeepbound.so'), mode)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(analyze('errors', self.trace)['findings'], [])
        self.assert_sound()
        events = analyze('events', self.trace)
        # By the function, too: the dynamic linker's own blocks are as large as paths are long.
        calls = [(event['api'], event['size']) for event in events if event['action'] != 'Free']
        self.assertEqual([calls.count(call) for call in
                          (('calloc', 50), ('realloc', 100), ('malloc', 100))], [2000, 2000, 2000])
        groups = {group['bytes']: group['stack'][0]['function']
                  for group in analyze('leaks', self.trace, '--limit', '0')['groups']}
        self.assertEqual(groups[111], 'make')

    def test_at_once(self):
        self.check('now')

    def test_lazily(self):
        self.check('lazy')


class Unrecorded(Recording):
    """Unrecorded calls are reported, and nothing is certain."""

    def check(self, text, *command):
        result = self.record(*command)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(b'warning: ', result.stderr)
        for report in ('leaks', 'errors'):
            verdict = analyze(report, self.trace)
            self.assertFalse(verdict['certain'])
            self.assertIn('not all calls are recorded', verdict['reasons'][0])
        told = [item['value'] for item in analyze('info', self.trace)['metadata']
                if item['key'] == 'unrecorded']
        self.assertEqual(len(told), 1)
        self.assertIn(text, told[0])

    def test_namespace(self):
        """The program's own RUNPATH finds the plugin, as it does without us."""
        self.check('dlmopen', program('namespaces'))
        sizes = [event.get('size') for event in analyze('events', self.trace)]
        self.assertIn(200, sizes)
        self.assertNotIn(100, sizes)

    def test_malloc_of_its_own(self):
        self.check('that the program defines itself', program('own_malloc'))


class Executed(Recording):
    """A program that is executed by a recorded one, and does not record itself."""

    def static(self):
        path, source = self.directory / 'static', self.directory / 'static.c'
        source.write_text('int main(void) { return 3; }\n')
        if subprocess.run(['gcc', '-static', '-o', path, source], capture_output=True).returncode:
            self.skipTest('no static C library here')
        return str(path)

    def test_static(self):
        """The heap of the program before is gone, and not leaked."""
        script = 'my @kept = map { "x" x $_ } 1 .. 100; exec { $ARGV[0] } "it"'
        result = self.record('perl', '-e', script, self.static())
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn(b'warning: the program executed another one that could not be', result.stderr)
        found = analyze('leaks', self.trace)
        self.assertEqual((found['total_blocks'], found['certain']), (0, False))
        self.assertEqual(analyze('verify', self.trace)['problems'], [])

    def test_recorded(self):
        """Code that was not executed, or is recorded, is not missing."""
        script = 'exec { "/nowhere" } "it" if not @ARGV; exec @ARGV'
        for arguments in [], ['perl', '-e', '1']:
            result = self.record('perl', '-e', script, *arguments)
            self.assertNotIn(b'could not be recorded', result.stderr)
            self.assertIs(analyze('leaks', self.trace)['certain'], True)


class Sanitizers(Recording):
    def build(self, compiler, *flags):
        path = self.directory / 'sanitized'
        source = pathlib.Path(os.environ['SOURCES'], 'calls/sanitized.c')
        if shutil.which(compiler) is None or subprocess.run(
                [compiler, *flags, '-o', path, source], capture_output=True).returncode != 0:
            self.skipTest(f'no {compiler} {flags[0]} here')
        return str(path)

    def check_refused(self, *flags):
        path = self.build('gcc', *flags)
        result = self.record(path)
        self.assertEqual((result.returncode, result.stdout), (121, b''))
        self.assertIn(b'built with a sanitizer', result.stderr)
        self.assertFalse(self.trace.exists())

    def test_address(self):
        self.check_refused('-fsanitize=address')

    def test_thread(self):
        self.check_refused('-fsanitize=thread')

    def test_child(self):
        """It runs as it does without us, however it is started."""
        path = self.build('gcc', '-fsanitize=address')
        result = self.record(program('sanitized_start'), path)
        self.assertEqual((result.returncode, result.stdout), (0, b'done\n' * 4))
        self.assertIn(b'warning: 4 child processes could not be recorded', result.stderr)
        self.assert_sound()

    def test_of_clang(self):
        path = self.build('clang', '-fsanitize=address')
        result = self.record(path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(b'has a malloc, free or operator new of its own', result.stderr)
        self.assertFalse(analyze('leaks', self.trace)['certain'])
        result = self.record('sh', '-c', '"$0"; "$0"; exit 0', path)
        self.assertIn(b'2 child processes have a malloc, free or operator new of their own', result.stderr)


if __name__ == '__main__':
    unittest.main()
