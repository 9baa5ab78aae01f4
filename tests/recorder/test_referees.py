# SPDX-License-Identifier: MIT
"""The recorder's numbers against those of memcheck and of an independent interposer."""

import re
import shutil
import struct
import subprocess
import unittest

from support import COUNTER, PATIENCE, Recording, analyze, program


def memcheck(*command):
    """Blocks and bytes that are in use at exit, by memcheck's account."""
    result = subprocess.run(['valgrind', '--leak-check=no', *command], capture_output=True,
                            text=True, timeout=PATIENCE)
    found = re.search(r'in use at exit: ([\d,]+) bytes in ([\d,]+) blocks', result.stderr)
    return tuple(int(number.replace(',', '')) for number in found.groups())


class Leaks(Recording):
    """Exactly the blocks that memcheck sees in use at exit, the runtimes' own not counted."""

    def check(self, name):
        self.assertEqual(self.record(program(name)).returncode, 0)
        leaks = self.assert_sound()
        self.assertEqual((leaks['total_bytes'], leaks['total_blocks']), memcheck(program(name)))
        return leaks

    def test_c(self):
        leaks = self.check('leaks_c')
        by_function = {group['stack'][0]['function']: (group['blocks'], group['bytes'])
                       for group in leaks['groups']}
        self.assertEqual(by_function['leak_plain'], (10, 1000))
        self.assertEqual(by_function['leak_list'], (25, 25 * 48))
        frame = next(group['stack'][0] for group in leaks['groups']
                     if group['stack'][0]['function'] == 'leak_plain')
        self.assertTrue(frame['file'].endswith('leaks_c.c'))
        self.assertEqual(frame['line'], 18)

    def test_cxx(self):
        self.check('leaks_cxx')

    def test_threads(self):
        self.check('threads')


class Counts(Recording):
    """Every call that the allocator behind the recorder sees is an event, and nothing else is."""

    def check(self, *command, least, environment=None):
        if shutil.which(command[0]) is None:
            self.skipTest(f'no {command[0]} here')
        counts_file = self.directory / 'counts'
        self.record(*command, options=['--no-children'], environment=dict(
            environment or {}, LD_PRELOAD=COUNTER, COUNTER_FILE=str(counts_file)))
        acquired, released, reallocated = struct.unpack('3Q', counts_file.read_bytes()[:24])
        info = analyze('info', self.trace)
        moves = analyze('moves', self.trace)
        self.assertEqual(info['lost_events'], 0)
        failed_allocations = info['failed'] - moves['failed']
        self.assertEqual((info['allocs'] - failed_allocations + moves['from_null'],
                          info['frees'] + moves['to_zero'], moves['moved'] + moves['in_place']),
                         (acquired, released, reallocated))
        self.assertGreater(acquired, least)
        self.assert_sound()

    def test_python(self):
        self.check('/usr/bin/python3', '-c', 'import json; json.loads(json.dumps([{}] * 9999))',
                   least=10000, environment={'PYTHONMALLOC': 'malloc'})

    def test_clang(self):
        self.check('clang', '-fsyntax-only', '-x', 'c', '-include', 'stdio.h', '/dev/null',
                   least=5000)

    def test_git(self):
        self.check('git', '--version', least=10)

    def test_perl(self):
        self.check('perl', '-e', 'my %h; $h{$_} = [1..3] for 1..5000;', least=10000)

    def test_sqlite(self):
        self.check('sqlite3', ':memory:', 'create table t(a); with recursive n(i) as (select 1 '
                   'union all select i + 1 from n where i < 2000) insert into t select i from n;',
                   least=1000)

    def test_threads(self):
        self.check(program('threads'), least=400000)


if __name__ == '__main__':
    unittest.main()
