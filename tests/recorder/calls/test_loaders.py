# SPDX-License-Identifier: MIT
"""Programs whose loader cannot load the recorder run as they do without it."""

import os
import shutil
import subprocess
import unittest

from support import PATIENCE, Recording, analyze, program

SOURCE = '''
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    char *volatile block = malloc(100);
    puts("done");
    free(block);
    return 0;
}
'''


class Loaders(Recording):
    def build(self, compiler, *flags):
        path, source = self.directory / 'program', self.directory / 'program.c'
        source.write_text(SOURCE)
        if shutil.which(compiler) is None or subprocess.run(
                [compiler, *flags, '-o', path, source], capture_output=True).returncode != 0:
            self.skipTest(f'no {compiler} {" ".join(flags)} here')
        return path

    def build_musl(self):
        return self.build('musl-gcc')

    def with_loader(self, loader):
        """A program of the C library whose loader has this path."""
        return self.build('gcc', f'-Wl,--dynamic-linker={loader}')

    def script_of(self, path):
        script = self.directory / 'script'
        script.write_text(f'#! {path} argument\n')
        script.chmod(0o755)
        return script

    def check_children(self, path):
        """They print what they print otherwise, in whatever way they are started."""
        try:
            native = subprocess.run([path], capture_output=True).stdout
        except OSError as error:
            native = error
        if native != b'done\n':
            self.skipTest(f'it does not run here: {native}')
        result = self.record(program('sanitized_start'), path)
        self.assertEqual((result.returncode, result.stdout), (0, b'done\n' * 4), result.stderr)
        self.assertEqual(result.stderr,
                         b'ttdrecord: warning: 4 child processes could not be recorded\n')
        self.assert_sound()
        result = self.record('sh', '-c', '"$0"; "$0"', path)
        self.assertEqual((result.returncode, result.stdout), (0, b'done\n' * 2), result.stderr)
        result = self.record('sh', '-c', 'exec "$0"', path)
        self.assertEqual((result.returncode, result.stdout), (0, b'done\n'), result.stderr)
        self.assertIn(b'warning: the program executed another one that could not be', result.stderr)
        self.assertFalse(analyze('leaks', self.trace)['certain'])

    def test_preloaded_sanitizer(self):
        """Its runtime ends a program in which another library comes first. Such a child runs as it
        does otherwise."""
        path = self.build('gcc')
        runtime = subprocess.run(['gcc', '-print-file-name=libasan.so'], capture_output=True,
                                 text=True, timeout=PATIENCE).stdout.strip()
        preloaded = {'LD_PRELOAD': f'{os.path.realpath(runtime)}:libdl.so.2'}
        native = subprocess.run([path], env=dict(os.environ, **preloaded), capture_output=True,
                                timeout=PATIENCE)
        if native.returncode:
            self.skipTest('no such runtime here')
        result = self.record(path, environment=preloaded)
        self.assertEqual((result.returncode, result.stdout), (121, b''))
        self.assertIn(b'LD_PRELOAD has the runtime of a sanitizer, libasan.so', result.stderr)
        self.assertFalse(self.trace.exists())
        result = self.record('/bin/sh', '-c', 'LD_PRELOAD="$1" "$0"; LD_PRELOAD="$1" exec "$0"',
                             path, preloaded['LD_PRELOAD'])
        self.assertEqual((result.returncode, result.stdout), (0, b'done\n' * 2), result.stderr)
        self.assertIn(b'1 child process could not be recorded\n', result.stderr)
        self.assertIn(b'the program executed another one that could not be recorded', result.stderr)

    def check_refused(self, status, text, path):
        self.trace.unlink(missing_ok=True)
        result = self.record(path)
        self.assertEqual((result.returncode, result.stdout), (status, b''))
        self.assertIn(text, result.stderr)
        self.assertFalse(self.trace.exists())

    def test_musl(self):
        path = self.build_musl()
        self.check_children(path)
        self.check_refused(124, b'is not that of the GNU C library', path)

    def test_static_musl(self):
        path = self.build('musl-gcc', '-static')
        self.check_children(path)
        self.check_refused(124, b'not with the GNU C library 2.34 or newer', path)

    def test_script_of_musl(self):
        script = self.script_of(self.build_musl())
        self.check_children(script)
        self.check_refused(124, b'is not that of the GNU C library', script)

    def test_32_bits(self):
        path = self.build('gcc', '-m32')
        self.check_children(path)
        self.check_refused(126, b'another architecture', path)

    def test_static(self):
        self.check_children(self.build('gcc', '-static'))

    def test_copy_of_the_loader(self):
        """Another loader of the same library records."""
        loader = self.directory / 'ld-of-its-own.so'
        shutil.copy('/lib64/ld-linux-x86-64.so.2', loader)
        path = self.with_loader(loader)
        for command in ([path], ['sh', '-c', '"$0"; exit $?', path]):
            result = self.record(*command)
            self.assertEqual((result.returncode, result.stdout, result.stderr),
                             (0, b'done\n', b''))
        child, = self.directory.glob('trace.bin.*')
        for trace in (child, self.trace):
            self.assert_sound(trace)
        sizes = [event.get('size') for event in analyze('events', child)]
        self.assertIn(100, sizes)

    def test_missing_loader(self):
        """The system says so, as it does without us."""
        path = self.with_loader(self.directory / 'nowhere')
        result = self.record(path)
        self.assertEqual(result.returncode, 126)
        self.assertIn(b'No such file', result.stderr)
        result = self.record(program('sanitized_start'), path)
        self.assertNotIn(b'could not be recorded', result.stderr)


if __name__ == '__main__':
    unittest.main()
