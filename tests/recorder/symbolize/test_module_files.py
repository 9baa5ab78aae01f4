# SPDX-License-Identifier: MIT
"""Modules have the right names wherever their files are, or none and a reason: loaded by a relative
path, removed or replaced while they run, without a path, run by the dynamic loader."""

import os
import pathlib
import shutil
import subprocess
import unittest

from support import ANALYZER, PATIENCE, Recording, analyze, public_recorder

COMPILER = os.environ['COMPILER'].split()
LOADER = '/lib64/ld-linux-x86-64.so.2'
PLUG = """
#include <stdlib.h>
static __attribute__((noinline)) void *NAME(void) { return malloc(123); }
void *plug(void) { void *block = NAME(); __asm__ volatile(""); return block; }
"""
# Runs a command, if there is one, before it allocates.
LINKED = """
#include <stdlib.h>
void *plug(void);
int main(int count, char **arguments)
{
    void *block = count > 1 && system(arguments[1]) != 0 ? NULL : plug();
    return block == NULL;
}
"""
LOADING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char **arguments)
{
    static char data[1 << 20];
    char path[64] = "./libplug.so";
    int memory = -1;
    (void)count;
    if (strcmp(arguments[1], "memory") == 0) {
        int file = open(path, O_RDONLY);
        ssize_t size = read(file, data, sizeof data);
        memory = memfd_create("code", 0);
        if (size < 0 || write(memory, data, (size_t)size) != size)
            return 2;
        snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
    }
    void *library = dlopen(path, RTLD_NOW);
    if (library == NULL)
        return 3;
    close(memory);
    if (strcmp(arguments[1], "removed") == 0)
        unlink(path);
    if (strcmp(arguments[1], "elsewhere") == 0 && chdir("/") != 0)
        return 4;
    void *(*plug)(void) = (void *(*)(void))dlsym(library, "plug");
    return plug() == NULL;
}
"""


class ModuleFiles(Recording):
    flags = []

    def setUp(self):
        super().setUp()
        self.library('inner', 'libplug.so')

    def compile(self, text, target, *flags):
        source = self.directory / 'source.c'
        source.write_text(text)
        subprocess.run([*COMPILER, '-g', '-O0', *self.flags, str(source), '-o',
                        str(self.directory / target), *flags], check=True, cwd=self.directory)

    def library(self, name, target):
        self.compile(PLUG.replace('NAME', name), target, '-fPIC', '-shared')

    def linked(self, *flags):
        self.compile(LINKED, 'linked', '-L.', '-lplug', *flags)

    def run_in(self, *command, **others):
        result = self.record(*command, cwd=self.directory, **others)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr.decode()

    def names(self):
        """The functions of the stack of the block of 123 bytes, innermost first, without a file for
        those of a symbol table."""
        groups = [group for group in analyze('leaks', self.trace)['groups'] if group['bytes'] == 123]
        self.assertEqual(len(groups), 1)
        return [frame['function'] for frame in groups[0]['stack']][:3]

    def assert_named(self, *command, **others):
        self.assertEqual(self.run_in(*command, **others), '')
        self.assertEqual(self.names(), ['inner', 'plug', 'main'])


class FilesElsewhere(ModuleFiles):
    def test_library_path_is_relative(self):
        self.linked()
        self.assert_named('./linked', environment={'LD_LIBRARY_PATH': '.'})

    def test_run_path_is_relative(self):
        (self.directory / 'lib').mkdir()
        self.linked('-Wl,-rpath,lib')
        shutil.move(self.directory / 'libplug.so', self.directory / 'lib')
        self.assert_named('./linked')

    def test_plugin_by_relative_path(self):
        self.compile(LOADING, 'loading')
        self.assert_named('./loading', 'here')

    def test_plugin_of_a_program_that_goes_elsewhere(self):
        self.compile(LOADING, 'loading')
        self.assert_named('./loading', 'elsewhere')

    def test_program_of_the_loader(self):
        self.linked()
        self.assert_named(LOADER, '--library-path', '.', './linked')
        self.assert_named('sh', '-c', f'exec {LOADER} --library-path . ./linked')

    def test_program_by_a_link_has_its_name(self):
        self.linked('-Wl,-rpath,$ORIGIN')
        (self.directory / 'server').symlink_to('linked')
        self.assert_named('./server')
        stack = analyze('leaks', self.trace)['groups'][0]['stack']
        self.assertEqual(stack[2]['module'], str(self.directory / 'server'))


class FilesThatGo(ModuleFiles):
    @unittest.skipIf(os.getuid() != 0, 'needs root, who is given the files of mappings')
    def test_removed_and_in_memory(self):
        self.compile(LOADING, 'loading')
        self.assert_named('./loading', 'memory')
        self.assert_named('./loading', 'removed')

    def test_program_is_replaced(self):
        self.compile(PLUG.replace('NAME', 'right') + LINKED, 'one')
        self.compile(PLUG.replace('NAME', 'wrong') + LINKED, 'other')
        for command in ('cp other new; mv new program', 'mv program old; cp other program',
                        'rm program; cp other program; touch -r one program'):
            with self.subTest(command):
                shutil.copy2(self.directory / 'one', self.directory / 'program')
                self.assertEqual(self.run_in('./program', command), '')
                self.assertEqual(self.names(), ['right', 'plug', 'main'])

    def test_library_is_replaced(self):
        self.linked('-Wl,-rpath,$ORIGIN')
        self.library('wrong', 'other.so')
        self.assert_named('./linked', 'mv other.so libplug.so')

    def test_library_is_overwritten(self):
        self.linked('-Wl,-rpath,$ORIGIN')
        self.library('wrong', 'other.so')
        said = self.run_in('./linked', 'dd if=other.so of=libplug.so conv=notrunc status=none')
        self.assertEqual(self.names(), [None, None, 'main'])
        reason = 'its file was replaced or changed while the program ran'
        self.assertEqual(said, f"ttdrecord: warning: '{self.directory}/libplug.so' has no names: "
                               f"{reason}\n")
        info = subprocess.run([ANALYZER, 'info', str(self.trace)], capture_output=True, text=True,
                              timeout=PATIENCE, check=True).stdout
        self.assertIn(f'unnamed       {self.directory}/libplug.so: {reason}\n', info)

    def test_touched_is_not_replaced(self):
        self.linked('-Wl,-rpath,$ORIGIN')
        self.assert_named('./linked', 'chmod 700 libplug.so; ln libplug.so second.so')


class WithoutBuildId(FilesThatGo):
    flags = ['-Wl,--build-id=none']


@unittest.skipIf(os.getuid() != 0, 'needs root, to be somebody else')
class Unprivileged(ModuleFiles):
    """The files of mappings are root's: the exported names are those in memory."""

    def test_exported_names(self):
        self.compile(LOADING, 'loading')
        environment, recorder = public_recorder(self.directory)
        preload = recorder.parent / 'preload'
        preload.mkdir()
        pathlib.Path(shutil.copy(os.environ['PRELOAD'], preload)).chmod(0o755)
        preload.chmod(0o755)
        self.directory.chmod(0o777)
        for file in self.directory.iterdir():
            file.chmod(0o755)
        for mode in ('memory', 'removed'):
            subprocess.run([recorder, '-q', '-o', str(self.trace), './loading', mode],
                           env=environment, cwd=self.directory, check=True, timeout=PATIENCE,
                           user=65534, group=65534, extra_groups=[])
            self.assertEqual(self.names(), [None, 'plug', 'main'])
            pathlib.Path(self.trace).unlink()


if __name__ == '__main__':
    unittest.main()
