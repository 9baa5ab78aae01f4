# SPDX-License-Identifier: MIT
"""Hooks that stand between the program's functions have no frames in stacks; all else has."""

import os
import subprocess
import unittest

from support import Recording, analyze, program

# The C library's reallocarray() calls the program's realloc().
OWN_REALLOC = '''
#include <stdlib.h>
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void __libc_free(void *);
void *malloc(size_t size) { return __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return __libc_calloc(count, size); }
void *realloc(void *block, size_t size) { return __libc_realloc(block, size + 100); }
void free(void *block) { __libc_free(block); }
__attribute__((noinline)) void grow(void)
{
    void *volatile block = reallocarray(NULL, 7, 1001);
    block = NULL;
}
int main(void)
{
    grow();
    return 0;
}
'''

PLUGIN = '''
#include <stdlib.h>
static void *kept;
__attribute__((constructor)) static void begin(void) { kept = malloc(1002); }
__attribute__((destructor)) static void end(void) { free(kept); }
'''
LOADS = '''
#include <dlfcn.h>
int main(int count, char **arguments)
{
    return count != 2 || dlclose(dlopen(arguments[1], RTLD_NOW)) != 0;
}
'''

# Glibc finds that the block was released before, and aborts.
TWICE = '''
#include <stdlib.h>
int main(void)
{
    char *volatile block = malloc(40);
    free(block);
    free(block);
    return 0;
}
'''

FRAMES = ('SELECT number, size, action, function, module FROM events JOIN frames USING (stack_id) '
          'ORDER BY number, depth')


class FramesOfHooks(Recording):
    def build(self, source, *options, name='program'):
        (self.directory / f'{name}.c').write_text(source)
        path = self.directory / name
        subprocess.run([*os.environ['COMPILER'].split(), '-w', '-g', '-O1', '-fno-builtin', '-o', path,
                        self.directory / f'{name}.c', *options], check=True)
        return str(path)

    def stacks(self):
        """Size, action and functions of each call; none has a frame of the recorder."""
        stacks = {}
        for row in analyze('query', self.trace, FRAMES)['rows']:
            self.assertNotIn('libttdpreload', row['module'] or '')
            stacks.setdefault((row['number'], row['size'], row['action']), []).append(row['function'])
        return [(size, action, functions) for (_, size, action), functions in stacks.items()]

    def functions(self, wanted):
        """The functions of the stack that allocates the only block of that size."""
        functions, = (functions for size, action, functions in self.stacks()
                      if size == wanted and action != 'Free')
        return functions

    def test_operators(self):
        self.assertEqual(self.record(program('own_operators')).returncode, 0)
        self.assertEqual(self.functions(1001 + 16)[:3],
                         ['operator new(unsigned long)', 'use_all()', 'main'])

    def test_reallocation(self):
        self.assertEqual(self.record(self.build(OWN_REALLOC)).returncode, 0)
        functions = self.functions(7 * 1001 + 100)
        self.assertEqual((functions[0], functions.index('main') - functions.index('grow')),
                         ('realloc', 1))

    def test_end_of_a_library(self):
        plugin = self.build(PLUGIN, '-shared', '-fPIC', name='plugin.so')
        self.assertEqual(self.record(self.build(LOADS), plugin).returncode, 0)
        ends = [functions for *_, functions in self.stacks() if functions[0] == 'end']
        self.assertEqual([functions[functions.index('main') - 1] for functions in ends],
                         ['__dlclose'])

    def test_abort(self):
        self.record(self.build(TWICE))
        fatal = analyze('errors', self.trace)['fatal_signal']
        self.assertNotIn('libttdpreload', str(fatal))
        self.assertIn('main', [frame['function'] for frame in fatal['stack']])


if __name__ == '__main__':
    unittest.main()
