# SPDX-License-Identifier: MIT
"""Suppressions against the tools whose files they are, and baselines of programs built again."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import unittest

from support import PATIENCE, PROGRAMS, Recording, analyze, program

COMPILER = shlex.split(os.environ['COMPILER'])
LEAKS_C = pathlib.Path(__file__).parent.parent / 'programs/blocks/leaks_c.c'

WORK = '''
#include <stdlib.h>
static void *volatile kept;
static void keep(size_t size) { kept = malloc(size); }
static void often(int depth) { if (depth) often(depth - 1); else keep(40); }
SPECIFIER void work(size_t size) { keep(size); often(3); }
#ifdef MORE
SPECIFIER void more(void) { kept = calloc(3, 5); }
#endif
int main(void)
{
    work(100);
#ifdef MORE
    more();
#endif
    return 0;
}
'''


class Known(Recording):
    def compile(self, name, source, *options):
        path = self.directory / name
        subprocess.run([*COMPILER, '-g', *options, str(source), '-o', str(path)], check=True,
                       timeout=PATIENCE)
        return str(path)

    def leaks(self, *options):
        return analyze('leaks', self.trace, '--limit', '0', *map(str, options))


class Baseline(Known):
    def build(self, shift, *options):
        folder = self.directory / f'build{shift}{len(options)}'
        folder.mkdir()
        source = folder / 'work.c'
        source.write_text('\n' * shift + WORK)
        path = self.compile(f'{folder.name}/work', source, *options)
        self.assertEqual(self.record(path).returncode, 0)

    def test_rebuild(self):
        """Other lines, addresses and folders; and what was a call is inlined."""
        known = self.directory / 'known'
        self.build(0, '-O0', '-DSPECIFIER=__attribute__((noinline))')
        before = self.leaks('--write-baseline', known)
        self.assertEqual((before['total_blocks'], before['total_bytes']), (2, 140))
        self.build(50, '-O0', '-fno-pie', '-no-pie', '-DSPECIFIER=__attribute__((noinline))')
        self.assertEqual(self.leaks('--baseline', known)['groups'], [])
        self.build(7, '-O1', '-fno-optimize-sibling-calls', '-finline-functions',
                   '-finline-small-functions', '-fno-ipa-cp',
                   '-DSPECIFIER=static inline __attribute__((always_inline))')
        after = self.leaks()
        self.assertTrue(any(frame['inlined'] for group in after['groups']
                            for frame in group['stack']))
        found = self.leaks('--baseline', known)
        self.assertLessEqual(found['total_blocks'], 1)
        self.assertIn(100, [group['bytes'] for group in after['groups']])
        self.assertNotIn(100, [group['bytes'] for group in found['groups']])
        self.build(3, '-O0', '-DMORE', '-DSPECIFIER=__attribute__((noinline))')
        found = self.leaks('--baseline', known)
        self.assertEqual([(group['bytes'], group['stack'][0]['function'])
                          for group in found['groups']], [(15, 'more')])
        self.assertEqual((found['known_blocks'], found['known_bytes']), (2, 140))


class Sanitizer(Known):
    def test_rules(self):
        """As many blocks and bytes as LeakSanitizer says that each rule suppressed."""
        try:
            checked = self.compile('checked', LEAKS_C, '-O1', '-fsanitize=leak')
        except subprocess.CalledProcessError:
            self.skipTest('no LeakSanitizer here')
        self.record(program('leaks_c'))
        rules = self.directory / 'rules'
        for names in (['leak_plain'], ['^leak_list$'], ['leak_pl*n$', 'leak_cyc'], ['leak_'],
                      ['^eak_plain'], ['leak_plai$'], ['leaks_c.c'], ['^leak_*$'], ['k_*y*e'],
                      ['nothing', 'grown', 'k_list']):
            rules.write_text('# a comment\n' + ''.join(f'leak:{name}\n' for name in names))
            result = subprocess.run([checked], capture_output=True, text=True, timeout=PATIENCE,
                                    env=dict(os.environ, LSAN_OPTIONS='print_suppressions=1:'
                                             f'suppressions={rules}'))
            if 'has encountered a fatal error' in result.stderr:
                self.skipTest('LeakSanitizer does not work here')
            used = {f'leak:{template}': (int(count), int(size)) for count, size, template in
                    re.findall(r'^ +(\d+) +(\d+) (\S+)$', result.stderr, re.MULTILINE)}
            found = self.leaks('--suppressions', rules)
            # Reachable blocks are no leaks to LeakSanitizer.
            kept = {group['stack_id'] for group in found['groups']}
            self.assertEqual({rule['rule']: (rule['blocks'], rule['bytes'])
                              for rule in found['suppressions']
                              if rule['rule'] != 'leak:leaks_c.c'},
                             {rule: sums for rule, sums in used.items()
                              if rule != 'leak:leaks_c.c'}, (names, kept))


@unittest.skipIf(shutil.which('valgrind') is None, 'no valgrind here')
class Valgrind(Known):
    def memcheck(self, *options):
        return subprocess.run(['valgrind', '--leak-check=full', '--show-leak-kinds=all',
                               '--default-suppressions=no', '--num-callers=40', *options,
                               program('leaks_c')],
                              capture_output=True, text=True, timeout=PATIENCE).stderr

    def test_generated(self):
        """What valgrind wrote to suppress everything does so."""
        blocks = re.findall(r'^\{\n.*?^\}\n', self.memcheck('--gen-suppressions=all'),
                            re.MULTILINE | re.DOTALL)
        self.assertGreaterEqual(len(blocks), 4)
        rules = self.directory / 'rules'
        rules.write_text(''.join(blocks))
        self.record(program('leaks_c'))
        before = self.leaks()
        found = self.leaks('--suppressions', rules)
        self.assertEqual(found['groups'], [])
        self.assertEqual((found['suppressed_blocks'], found['suppressed_bytes']),
                         (before['total_blocks'], before['total_bytes']))

    def test_rules(self):
        """As many blocks and bytes as memcheck says that are suppressed."""
        self.record(program('leaks_c'))
        rules = self.directory / 'rules'
        for lines in (('fun:malloc', 'fun:leak_plain'), ('fun:leak_plain',),
                      ('...', 'fun:leak_plain', 'fun:main'), ('fun:*alloc', 'fun:leak_*'),
                      ('fun:calloc', '...', 'fun:main'), ('fun:m*c', 'obj:*/leaks_c'),
                      ('fun:malloc', 'obj:*/libc*', 'fun:main'), ('fun:?alloc', 'fun:main'),
                      ('...', 'fun:leak_grown'), ('fun:realloc', '...'),
                      ('match-leak-kinds: all', 'fun:malloc', 'fun:leak_list'),
                      ('match-leak-kinds: none', 'fun:malloc', 'fun:leak_list'),
                      ('fun:malloc', 'src:leaks_c.c:18', 'fun:main'), ('...', 'src:leaks_?.c'),
                      ('fun:malloc', 'fun:leak_plain', '...', 'fun:leak_plain')):
            text = '\n  '.join(('{', 'name', 'Memcheck:Leak', *lines)) + '\n}\n'
            rules.write_text(text)
            stderr = self.memcheck(f'--suppressions={rules}')
            size, blocks = re.search(r' suppressed: ([\d,]+) bytes in ([\d,]+) blocks',
                                     stderr).groups()
            found = self.leaks('--suppressions', rules)
            self.assertEqual((found['suppressed_bytes'], found['suppressed_blocks']),
                             (int(size.replace(',', '')), int(blocks.replace(',', ''))), lines)


if __name__ == '__main__':
    assert PROGRAMS
    unittest.main(verbosity=2)
