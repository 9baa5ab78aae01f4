# SPDX-License-Identifier: MIT
"""The project as others get it: installed, linked through pkg-config, as a Meson subproject; and
the README's example, as it stands there."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ['TTD_SOURCE'])
BUILD = pathlib.Path(os.environ['TTD_BUILD'])
COMPILER = os.environ['TTD_COMPILER'].split()


def readme_examples():
    """One that reads, one that writes, and one that asks about the heap."""
    return re.findall(r'```c\n(.*?)```', (SOURCE / 'README.md').read_text(), re.DOTALL)


def header_examples():
    """By header: the program in its first comment. One without a main() is the body of main()."""
    for folder in ('libtrace/include', 'analyzer/library/include'):
        for path in sorted((SOURCE / folder).rglob('*.h')):
            comment = re.search(r'(?s)\n/\*\*(.*?)\*/', path.read_text())[1]
            lines = re.findall(r'(?m)^ \*     (.*)$', comment)
            if lines and not any('int main(' in line for line in lines):
                lines = ['int main(void)', '{', *('    ' + line for line in lines),
                         '    return 0;', '}']
            includes = [f'#include <{name}>' for name in
                        ('stdio.h', 'ttdtrace/ttdtrace.h', f'ttdtrace/{path.name}')]
            yield path.name, '\n'.join([*includes, *lines, '']) if lines else ''


def run(*command, **others):
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, **others)
    if result.returncode != 0:
        raise AssertionError(f'{command}: {result.stdout}{result.stderr}')
    return result.stdout

# Has blocks of its own at any moment, not only those that the C library keeps.
BUSY_PROGRAM = sys.executable, '-c', 'print([str(i) for i in range(5000)][-1])'


class Package(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.directory)

    def check_example(self, program, environment=None):
        trace = self.directory / 'events.bin'
        run(BUILD / 'recorder' / 'ttdrecord', '-q', '-o', trace, 'ls', '/')
        lines = run(program, trace, env=environment).splitlines()
        self.assertGreater(len(lines), 10)
        for line in lines:
            self.assertRegex(line, r'^[0-9A-F]+:[0-9A-F]+ \w+ (0x[0-9a-f]+|0)$')

    def test_installed(self):
        root = self.directory / 'root'
        run('meson', 'install', '-C', BUILD, '--no-rebuild', '--destdir', root)
        files = [str(path.relative_to(root)) for path in root.rglob('*')]
        for wanted in (r'bin/ttdrecord', r'bin/ttdanalyze', r'ttdtrace/libttdpreload\.so',
                       r'man1/ttdrecord\.1', r'man1/ttdanalyze\.1', r'man7/ttdtrace\.7',
                       r'libttdtrace\.a', r'libttdtrace\.so\.0', r'include/ttdtrace/ttdtrace\.h',
                       r'pkgconfig/ttdtrace\.pc', r'doc/ttdtrace/format\.md',
                       r'doc/ttdtrace/example\.md', r'doc/ttdtrace/LICENSE', r'man3/ttdtrace\.3',
                       r'man3/ttd_reader_open\.3', r'man3/ttdheap\.3', r'libttdheap\.so\.0',
                       r'pkgconfig/ttdheap\.pc', r'include/ttdtrace/ttdheap\.h',
                       r'completions/ttdrecord', r'site-functions/_ttdrecord',
                       r'vendor_completions\.d/ttdrecord\.fish',
                       r'completions/ttdanalyze', r'site-functions/_ttdanalyze',
                       r'vendor_completions\.d/ttdanalyze\.fish'):
            self.assertTrue(any(re.search(wanted + '$', name) for name in files), wanted)
        package = next(root.rglob('ttdtrace.pc'))
        environment = dict(os.environ, PKG_CONFIG_SYSROOT_DIR=str(root),
                           PKG_CONFIG_PATH=str(package.parent))
        flags = run('pkg-config', '--cflags', '--libs', 'ttdtrace', env=environment).split()
        for name, text in zip(('example', 'writer'), readme_examples()):
            source = self.directory / (name + '.c')
            source.write_text(text)
            run(*COMPILER, '-std=c11', '-Wall', '-Wextra', '-Werror', '-o', self.directory / name,
                source, *flags)
        program = self.directory / 'example'
        environment['LD_LIBRARY_PATH'] = str(package.parent.parent)
        self.check_example(program, environment)
        self.check_sites(root, environment)
        self.check_header_examples(environment)
        # A foreign writer's stacks have names.
        run(self.directory / 'writer', self.directory / 'foreign.bin', env=environment)
        analyze = next(root.rglob('bin/ttdanalyze'))
        found = run(analyze, 'leaks', self.directory / 'foreign.bin', env=environment)
        self.assertRegex(found, r'#0 +generated_loop in \[jit\]\n +#1 +generated_main in \[jit\]')
        run(analyze, 'verify', self.directory / 'foreign.bin', env=environment)
        # The recorder finds its library from wherever it was installed to.
        trace = self.directory / 'trace.bin'
        run(next(root.rglob('bin/ttdrecord')), '-o', trace, 'true', env=environment)
        self.assertIn('"closed": true', run(next(root.rglob('bin/ttdanalyze')), 'info', '--format',
                                            'json', trace, env=environment))

    def check_header_examples(self, environment):
        """The program of each header compiles, runs over a trace, and prints something. Programs of
        the live API are recorded."""
        flags = run('pkg-config', '--cflags', '--libs', 'ttdheap', env=environment).split()
        run(BUILD / 'recorder' / 'ttdrecord', '-q', '-o', self.directory / 'trace.bin',
            *BUSY_PROGRAM)
        for name, text in header_examples():
            with self.subTest(header=name):
                self.assertTrue(text, 'no example')
                source = self.directory / 'header.c'
                source.write_text(text)
                run(*COMPILER, '-std=c11', '-Wall', '-Wextra', '-Werror', '-o',
                    self.directory / 'header', source, *flags)
                recorder = [BUILD / 'recorder' / 'ttdrecord', '-q', '-o', 'live.bin', '--']
                said = run(*(recorder if name.startswith('live') else []),
                           self.directory / 'header', cwd=self.directory, env=environment)
                self.assertTrue(said)
                self.assertNotIn('not recorded', said)

    def check_sites(self, root, environment):
        """The program with libttdheap agrees with `ttdanalyze state`."""
        flags = run('pkg-config', '--cflags', '--libs', 'ttdheap', env=environment).split()
        source, program = self.directory / 'sites.c', self.directory / 'sites'
        source.write_text(readme_examples()[2])
        run(*COMPILER, '-std=c11', '-Wall', '-Wextra', '-Werror', '-o', program, source, *flags)
        trace = self.directory / 'sites.bin'
        run(BUILD / 'recorder' / 'ttdrecord', '-q', '-o', trace, *BUSY_PROGRAM)
        lines = run(program, trace, env=environment).splitlines()
        found = json.loads(run(next(root.rglob('bin/ttdanalyze')), 'state', '--at', '50%', '-f',
                               'json', '--limit', '10', trace, env=environment))
        self.assertTrue(lines)
        for line, group in zip(lines, found['groups'], strict=True):
            size, function = line.split(' bytes by ')
            self.assertEqual(size, str(group['bytes']))
            # Wrappers of the allocator are looked through.
            self.assertIn(function, [frame['function'] or '?' for frame in group['stack']])

    def test_only_public_symbols_of_ttdheap(self):
        library = next(path for path in BUILD.glob('analyzer/library/shared/libttdheap.so.0.*')
                       if path.is_file())
        names = re.findall(r' [TDBR] (\w+)@@TTDHEAP_0', run('nm', '-D', '--defined-only', library))
        header = (SOURCE / 'analyzer/library/include/ttdtrace/ttdheap.h').read_text()
        declared = re.findall(r'(?m)^TTD_EXPORT [^(;]*?\b(ttdheap_\w+)\(', header)
        self.assertEqual(sorted(names), sorted(declared))
        self.check_debian_symbols('libttdheap0', names)

    def test_only_public_symbols(self):
        library = next(path for path in BUILD.glob('libtrace/libttdtrace.so.0.*')
                       if path.is_file())
        symbols = run('nm', '-D', '--defined-only', library)
        names = re.findall(r' [TDBR] (\w+)@@TTDTRACE_0\n', symbols)
        self.assertEqual(len(names), len(re.findall(r' [TDBR] ', symbols)), symbols)
        declared = ''.join(path.read_text()
                           for path in (SOURCE / 'libtrace' / 'include').rglob('*.h'))
        self.assertGreater(len(names), 20)
        for name in names:
            self.assertRegex(declared, rf'\b{name}\(')
        self.check_debian_symbols('libttdtrace0', names)

    def check_debian_symbols(self, package, names):
        """The package's list of symbols has each function, with the version that brought it."""
        text = (SOURCE / f'debian/{package}.symbols').read_text()
        self.assertEqual(sorted(re.findall(r'(?m)^ (ttd\w+)@TTD\w+ [0-9.]+$', text)), sorted(names))

    def test_subproject(self):
        project = self.directory / 'user'
        (project / 'subprojects').mkdir(parents=True)
        (project / 'subprojects' / 'ttdtrace').symlink_to(SOURCE)
        (project / 'example.c').write_text(readme_examples()[0])
        (project / 'meson.build').write_text(
            "project('user', 'c')\n"
            "executable('example', 'example.c', dependencies: dependency('ttdtrace', "
            "fallback: 'ttdtrace', default_options: ['tests=disabled', 'fuzz=disabled', "
            "'analyzer=disabled', 'recorder=disabled', 'default_library=static']))\n")
        environment = dict(os.environ, CC=' '.join(COMPILER))
        run('meson', 'setup', '--wrap-mode=default', project / 'build', project, env=environment)
        run('ninja', '-C', project / 'build', env=environment)
        self.check_example(project / 'build' / 'example')
        # The library is in the program, as default_library asks.
        self.assertNotIn('libttdtrace', run('readelf', '-d', project / 'build' / 'example'))


if __name__ == '__main__':
    unittest.main()
