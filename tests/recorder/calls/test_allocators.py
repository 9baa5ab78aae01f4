# SPDX-License-Identifier: MIT
"""Functions that only one allocator has: every call is recorded, wherever the program finds it."""

import os
import pathlib
import subprocess
import unittest

from support import Recording, analyze

LIBRARIES = {'JEMALLOC': 'libjemalloc.so.2', 'TCMALLOC': 'libtcmalloc_minimal.so.4',
             'MIMALLOC': 'libmimalloc.so.2'}


# Bytes of what the C library's realpath() allocates for "/", and mimalloc's copies and frees.
REALPATH = 2


def calls_of(events, untold=(REALPATH,)):
    """The calls of each thread, as the program prints them. It does not know of realpath()."""
    found, passing = {}, set()
    for event in events:
        if event['api'] == 'malloc' and event['size'] in untold:
            passing.add(event['address'])
            continue
        if event['api'] == 'free' and event['base_address'] in passing:
            passing.remove(event['base_address'])
            continue
        if event['action'] in ('Alloc', 'ReAlloc', 'Free'):
            is_free = event['action'] == 'Free'
            call = (event['action'], int(event.get('base_address', '0'), 16),
                    int(event.get('address', '0'), 16), 0 if is_free else event['size'],
                    event['result'])
            found.setdefault(event['thread'], []).append(call)
    return found


class Allocators(Recording):

    def build(self, allocator, *options):
        """A program that calls the functions of an allocator."""
        path = self.directory / 'allocators'
        source = pathlib.Path(os.environ['SOURCES'], 'calls/allocators.c')
        built = subprocess.run([*os.environ['COMPILER'].split(), '-O1', '-g', '-fno-builtin',
                                f'-D{allocator}', '-o', path, source, '-pthread', *options],
                               capture_output=True, text=True)
        if built.returncode != 0:
            self.skipTest(f'no {allocator} here: {built.stderr[-200:]}')
        return str(path)

    def check(self, path, environment=None):
        result = self.record(path, environment={'NUMBER': '7', **(environment or {})})
        self.assertEqual((result.returncode, result.stderr), (0, b''))
        told = {}
        for line in result.stdout.decode().splitlines():
            who, action, base, block, size, done = line.split()
            told.setdefault(who, []).append(
                (action, int(base, 16), int(block, 16), int(size), int(done)))
        child, = self.directory.glob('trace.bin.*')
        recorded = calls_of(analyze('events', self.trace))
        self.assertEqual(sorted(told), [*'0123c'])
        for thread in '0123':
            self.assertIn(told[thread], recorded.values())
        self.assertEqual(calls_of(analyze('events', child))[1], told['c'])
        leaks = self.assert_sound()
        self.assertIn(77, [group['bytes'] // group['blocks'] for group in leaks['groups']])
        self.assertEqual(analyze('verify', child)['problems'], [])
        self.assertEqual(analyze('errors', self.trace)['findings'], [])

    def check_linked(self, allocator):
        library = f'-l:{LIBRARIES[allocator]}'
        for binding in 'now', 'lazy':
            with self.subTest(binding=binding):
                for old in self.directory.iterdir():
                    old.unlink()
                self.check(self.build(allocator, library, f'-Wl,-z,{binding}'))

    def test_jemalloc(self):
        self.check_linked('JEMALLOC')

    def test_tcmalloc(self):
        self.check_linked('TCMALLOC')

    def test_mimalloc(self):
        self.check_linked('MIMALLOC')

    def test_preloaded(self):
        """A program that finds out which allocator it has is told the same as without us."""
        self.build('JEMALLOC', '-l:libjemalloc.so.2')
        path = self.build('JEMALLOC', '-DWEAK')
        result = self.record(path)
        self.assertEqual((result.returncode, result.stderr), (77, b''))
        self.check(path, {'LD_PRELOAD': LIBRARIES['JEMALLOC']})

    def test_code_with_relocations(self):
        """The address of a function that is in read-only code is replaced as well."""
        code, caller = self.directory / 'code.c', self.directory / 'caller.c'
        code.write_text(
            'void *mallocx(unsigned long, int);\n'
            '__attribute__((section(".text"))) void *(*const of_code)(unsigned long, int) = mallocx;\n'
            'int run(void) { return of_code(4321, 0) == 0; }\n')
        caller.write_text('int run(void);\nint main(void) { return run(); }\n')
        library, path = self.directory / 'libcode.so', self.directory / 'caller'
        compiler = [*os.environ['COMPILER'].split(), '-w', '-fno-builtin', '-o']
        for command in ([*compiler, library, code, '-shared', '-fPIC', '-Wl,-z,notext',
                         '-l:libjemalloc.so.2'], [*compiler, path, caller, library]):
            if subprocess.run(command, capture_output=True).returncode != 0:
                self.skipTest('no jemalloc here')
        result = self.record(str(path))
        self.assertEqual((result.returncode, result.stderr), (0, b''))
        self.assertIn(4321, [event.get('size') for event in analyze('events', self.trace)])

    def test_plugin(self):
        """An allocator that is loaded later: its calls are not recorded, and that is said."""
        plugin, host = self.directory / 'plugin.so', self.directory / 'host'
        (self.directory / 'plugin.c').write_text(
            'void *malloc(unsigned long); void *mallocx(unsigned long, int);\n'
            'void *run(void) { mallocx(100, 0); return malloc(200); }\n')
        (self.directory / 'host.c').write_text(
            '#include <dlfcn.h>\nint main(int argc, char **argv) {\n'
            '  void *plugin = dlopen(argv[argc - 1], RTLD_NOW);\n'
            '  return ((void *(*)(void))dlsym(plugin, "run"))() == 0; }\n')
        compiler = [*os.environ['COMPILER'].split(), '-w', '-fno-builtin', '-o']
        for command in ([*compiler, plugin, self.directory / 'plugin.c', '-shared', '-fPIC',
                         '-l:libjemalloc.so.2'], [*compiler, host, self.directory / 'host.c']):
            if subprocess.run(command, capture_output=True).returncode != 0:
                self.skipTest('no jemalloc here')
        # The plugin's allocator needs more room for its thread than is left for plugins.
        result = self.record(str(host), str(plugin),
                             environment={'GLIBC_TUNABLES': 'glibc.rtld.optional_static_tls=20000'})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(b'warning: modules that were loaded later call mallocx()', result.stderr)
        self.assertFalse(analyze('leaks', self.trace)['certain'])

    def test_reset(self):
        """Blocks that are released all at once are not recorded one by one, and that is said."""
        source = self.directory / 'reset.c'
        source.write_text(
            '#include <stdio.h>\n'
            'void *mallocx(unsigned long, int); int mallctl(const char *, void *, unsigned long *,\n'
            '    void *, unsigned long);\n'
            'int main(void) { unsigned arena; unsigned long size = sizeof arena; char name[40];\n'
            '  mallctl("arenas.create", &arena, &size, 0, 0);\n'
            '  mallocx(100, (int)((arena + 1) << 20) | 1 << 8);\n'
            '  sprintf(name, "arena.%u.reset", arena); return mallctl(name, 0, 0, 0, 0); }\n')
        path = self.directory / 'reset'
        if subprocess.run([*os.environ['COMPILER'].split(), '-fno-builtin', '-o', path, source,
                           '-l:libjemalloc.so.2'], capture_output=True).returncode != 0:
            self.skipTest('no jemalloc here')
        result = self.record(str(path))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(b'warning: ', result.stderr)
        self.assertFalse(analyze('leaks', self.trace)['certain'])


if __name__ == '__main__':
    unittest.main()
