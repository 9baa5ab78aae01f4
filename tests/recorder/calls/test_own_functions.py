# SPDX-License-Identifier: MIT
"""Functions under the C library's other names, and functions that the program defines itself."""

import os
import subprocess
import unittest

from support import Recording, analyze

LIBC_NAMES = '''
#include <dlfcn.h>
#include <stdlib.h>
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t), *__libc_valloc(size_t), *__libc_pvalloc(size_t);
void __libc_free(void *);
int main(void)
{
    void *block = malloc(1001);
    __libc_free(block);
    free(__libc_malloc(1002));
    free(__libc_realloc(__libc_calloc(2, 1003), 1004));
    free(__libc_memalign(64, 1005));
    free(__libc_valloc(1006));
    free(__libc_pvalloc(1007));
#ifdef OTHERS
    void *aligned;
    __posix_memalign(&aligned, 64, 1008);
    __libc_cfree(aligned);
#else
    void *library = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    free(((void *(*)(size_t))dlsym(library, "__libc_malloc"))(1008));
#endif
    ((void **)__libc_malloc(1009))[0] = 0;
    return 0;
}
'''

ABOVE_LIBC = '''
#include <string.h>
void *__libc_malloc(size_t), *__libc_realloc(void *, size_t);
void __libc_free(void *);
void *malloc(size_t size) { char *block = __libc_malloc(size + 16); return block + 16; }
void *calloc(size_t count, size_t size) { return memset(malloc(count * size), 0, count * size); }
void free(void *block) { if (block) __libc_free((char *)block - 16); }
void *realloc(void *block, size_t size)
{
    char *moved = __libc_realloc(block ? (char *)block - 16 : 0, size + 16);
    return moved + 16;
}
'''


class Programs(Recording):
    def build(self, source, *options, compiler='COMPILER', name='program'):
        suffix = '.c' if compiler == 'COMPILER' else '.cpp'
        (self.directory / (name + suffix)).write_text(source)
        path = self.directory / name
        built = subprocess.run([*os.environ[compiler].split(), '-w', '-g', '-fno-builtin', '-o',
                                path, self.directory / (name + suffix), *options],
                               capture_output=True, text=True)
        self.assertEqual(built.returncode, 0, built.stderr)
        return str(path)

    def run_recorded(self, path, *arguments):
        result = self.record(path, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr.decode()


class LibcNames(Programs):
    """__libc_malloc() and its like are malloc() and its like."""

    def check(self, *options):
        self.assertEqual(self.run_recorded(self.build(LIBC_NAMES, *options)), '')
        self.assertEqual(analyze('errors', self.trace)['findings'], [])
        leaks = self.assert_sound()
        self.assertIn((1, 1009), [(group['blocks'], group['bytes']) for group in leaks['groups']
                                  if group['class'] == 'definitely_lost'])
        sizes = [event.get('size') for event in analyze('events', self.trace)]
        for size in range(1001, 1010):
            self.assertEqual(sizes.count(size if size != 1003 else 2006), 1, size)

    def test_plain(self):
        self.check()

    def test_other_allocators(self):
        for library in 'libtcmalloc_minimal.so.4', 'libmimalloc.so.2':
            with self.subTest(library=library):
                try:
                    self.build(LIBC_NAMES, '-DOTHERS', f'-l:{library}')
                except AssertionError:
                    self.skipTest(f'no {library} here')
                self.check('-DOTHERS', f'-l:{library}')

    def test_allocator_above(self):
        """An allocator in a library that calls these functions: each call is one event."""
        library = self.build(ABOVE_LIBC, '-shared', '-fPIC', name='above.so')
        path = self.build('#include <stdlib.h>\nint main(void) { free(malloc(4321)); return 0; }',
                          library)
        self.assertEqual(self.run_recorded(path), '')
        self.assertEqual(analyze('errors', self.trace)['findings'], [])
        sizes = [event.get('size', 0) for event in analyze('events', self.trace)]
        self.assertEqual([size for size in sizes if size >= 4321], [4321])


if __name__ == '__main__':
    unittest.main()
