# SPDX-License-Identifier: MIT
"""Baselines and suppressions that hold for a program however it is built, and wherever it runs."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import unittest

from support import ANALYZER, PATIENCE, Recording, analyze

COMPILERS = {'.c': shlex.split(os.environ['COMPILER']),
             '.cpp': shlex.split(os.environ['COMPILER_CXX'])}
LOCAL = pathlib.Path(__file__).parent.parent / 'programs/blocks/leaks_local.cpp'

PLAIN = '''
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
static void *volatile sink;
static void *keep(size_t size) { return sink = malloc(size); }
static void *copy(const char *text) { return sink = strdup(text); }
static void grow(int times) { if (times) { keep(40); grow(times - 1); } sink = NULL; }
static void work(int times)
{
    for (int i = 0; i < times; i++)
        keep(100), copy("a text");
    grow(times);
    sink = fopen("/dev/null", "r");
}
int main(int count, char **arguments)
{
    work(count > 1 ? atoi(arguments[1]) : 3);
    sink = calloc(3, 5);
    sink = NULL;
    return 0;
}
'''


class Built(Recording):
    def build(self, source, *options, name='program', shift=0):
        """Compiles a program in a folder of its own, with so many lines before the first."""
        if isinstance(source, pathlib.Path):
            text, suffix = source.read_text(), source.suffix
        else:
            text, suffix = source, '.c'
        folder = self.directory / f'build{len(list(self.directory.iterdir()))}'
        folder.mkdir()
        (folder / f'source{suffix}').write_text('\n' * shift + text)
        subprocess.run([*COMPILERS[suffix], '-g', *options, str(folder / f'source{suffix}'),
                        '-o', str(folder / name)], check=True, timeout=PATIENCE)
        return str(folder / name)

    def leaks_of(self, program, *options, times=3):
        self.assertEqual(self.record(program, str(times)).returncode, 0)
        return self.leaks(*options)

    def leaks(self, *options):
        return analyze('leaks', self.trace, '--limit', '0', *map(str, options))


class Baseline(Built):
    def agree(self, programs):
        """A finding known in one program is known in all."""
        traces = []
        for number, program in enumerate(programs):
            self.trace = self.directory / f'trace{number}'
            found = self.leaks_of(program, '--write-baseline', f'{self.trace}.known')
            self.assertGreater(found['total_groups'], 4)
            traces.append((self.trace, found['total_blocks']))
        for known, blocks in traces:
            for self.trace, _ in traces:
                found = self.leaks('--baseline', f'{known}.known')
                self.assertEqual([[frame['function'] for frame in group['stack']]
                                  for group in found['groups']], [], (known, self.trace))
                self.assertEqual((found['known_blocks'], found['grown']), (blocks, 0))

    def test_cxx(self):
        """Optimised or not, renamed, with other lines and at other addresses."""
        self.agree([self.build(LOCAL, '-O0'), self.build(LOCAL, '-O2', shift=40),
                    self.build(LOCAL, '-O2', '-fno-pie', '-no-pie', name='renamed')])

    def test_c(self):
        kept = '-fno-optimize-sibling-calls'
        self.agree([self.build(PLAIN, '-O0'), self.build(PLAIN, '-O1', kept, shift=9),
                    self.build(PLAIN, '-O2', kept, name='renamed')])

    def test_what_is_new(self):
        path = self.directory / 'known'
        self.leaks_of(self.build(LOCAL, '-O0'), '--write-baseline', path)
        found = self.leaks_of(self.build(LOCAL, '-O2', '-DNAME=another'), '--baseline', path)
        self.assertEqual([group['blocks'] for group in found['groups']], [3])
        self.assertEqual(found['groups'][0]['stack'][0]['function'],
                         'app::(anonymous namespace)::another(int, char const* const*)')

    def test_stripped(self):
        """Without names another program file is known, another build is not."""
        program = self.build(LOCAL, '-O1')
        subprocess.run(['strip', program], check=True, timeout=PATIENCE)
        other = f'{program}.renamed'
        shutil.copy(program, other)
        self.agree([program, other])

    def test_growth(self):
        program = self.build(LOCAL, '-O2')
        path = self.directory / 'known'
        self.leaks_of(program, '--write-baseline', path)
        found = self.leaks_of(program, '--baseline', path, times=4)
        self.assertEqual(found['groups'], [])
        named = {growth['stack'][0]['function']: (growth['before'], growth['now'])
                 for growth in found['growths']}
        self.assertEqual(named['app::(anonymous namespace)::Pool::take(int)'], (3, 4))
        self.assertEqual(found['grown'], len(found['growths']))
        command = [ANALYZER, 'leaks', '--baseline', str(path), str(self.trace)]
        for options, status in (([], 0), (['--error-exitcode', '7'], 0),
                                (['--fail-on-growth'], 1),
                                (['--fail-on-growth', '--error-exitcode', '7'], 7)):
            result = subprocess.run([*command, *options], capture_output=True, text=True,
                                    timeout=PATIENCE)
            self.assertEqual(result.returncode, status, options)
            self.assertIn('Grown since the baseline', result.stdout)
            self.assertIn('from 3 to 4 blocks', result.stdout)
        self.leaks_of(program, times=2)
        result = subprocess.run([*command, '--fail-on-growth'], capture_output=True, text=True,
                                timeout=PATIENCE)
        self.assertEqual(result.returncode, 0)
        self.assertNotIn('Grown', result.stdout)


class Names(Built):
    def test_inlined(self):
        """An inlined function has the name that it has when it is called."""
        seen = []
        for level in ('-O0', '-O2'):
            found = self.leaks_of(self.build(LOCAL, level))
            seen.append({frame['function'] for group in found['groups'] for frame in group['stack']
                         if '(anonymous' in (frame['function'] or '')
                         and not frame['function'].endswith('>(int)')})
            inlined = [frame for group in found['groups'] for frame in group['stack']
                       if frame['inlined'] and '(anonymous' in frame['function']]
            self.assertEqual(bool(inlined), level == '-O2')
        self.assertEqual(seen[0], {'app::(anonymous namespace)::Pool::take(int)',
                                   'app::(anonymous namespace)::helper(int, char const* const*)'})
        self.assertEqual(seen[1], seen[0])


class Rules(Built):
    @unittest.skipIf(shutil.which('valgrind') is None, 'no valgrind here')
    def test_valgrind(self):
        """What valgrind wrote to suppress everything does so."""
        for level in ('-O0', '-O2'):
            program = self.build(LOCAL, level)
            stderr = subprocess.run(['valgrind', '--leak-check=full', '--show-leak-kinds=all',
                                     '--default-suppressions=no', '--num-callers=40',
                                     '--gen-suppressions=all', program],
                                    capture_output=True, text=True, timeout=PATIENCE).stderr
            blocks = re.findall(r'^\{\n.*?^\}\n', stderr, re.MULTILINE | re.DOTALL)
            self.assertGreaterEqual(len(blocks), 4)
            rules = self.directory / f'rules{level}'
            rules.write_text(''.join(blocks))
            before = self.leaks_of(program)
            found = self.leaks('--suppressions', rules)
            self.assertEqual([[frame['function'] for frame in group['stack']]
                              for group in found['groups']], [], level)
            self.assertEqual(found['suppressed_blocks'], before['total_blocks'])

    def test_sanitizer(self):
        """Rules of LeakSanitizer match inlined functions by their full names."""
        matched = []
        for level in ('-O0', '-O2'):
            program = self.build(LOCAL, level)
            self.leaks_of(program)
            rules = self.directory / 'rules'
            rules.write_text('leak:^app::(anonymous namespace)::helper(int\nleak:Pool::take\n'
                             'leak:app::(anonymous namespace)::make<double>\n'
                             'leak:^app::Server::parse(\nleak:lambda(char\n')
            found = self.leaks('--suppressions', rules)
            matched.append({rule['rule']: rule['blocks'] for rule in found['suppressions']})
        self.assertEqual(len(matched[0]), 5)
        self.assertEqual(matched[0], matched[1])


if __name__ == '__main__':
    unittest.main(verbosity=2)
