# SPDX-License-Identifier: MIT
"""The recorder's numbers against those of memcheck, of an independent interposer and of heaptrack."""

import glob
import os
import re
import shutil
import struct
import subprocess
import unittest

from support import COUNTER, PATIENCE, Recording, all_live, analyze, program


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
        by_function = {}
        for group in leaks['groups']:  # one for each class
            blocks, size = by_function.get(group['stack'][0]['function'], (0, 0))
            by_function[group['stack'][0]['function']] = (blocks + group['blocks'],
                                                          size + group['bytes'])
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


def heaptrack_part(name):
    """A file of heaptrack's; its place depends on the system. None without heaptrack."""
    found = [path for root in ('/usr', '/usr/local') for part in ('lib', 'lib64', 'lib/*')
             for path in glob.glob(f'{root}/{part}/heaptrack/{name}')]
    return found[0] if found else None


def replay(steps):
    """The most bytes that are live, and the bytes and blocks at the end."""
    live, now, most = {}, 0, 0
    for step in steps:
        now -= live.pop(step[1], 0)
        if step[0] == '+':
            live[step[1]] = step[2]
            now += step[2]
            most = max(most, now)
    return most, now, len(live)


def steps_of_events(rows):
    """The effects of calls: ('+', address, size) and ('-', address)."""
    steps = []
    for row in rows:
        if not row['result'] and row['action'] != 'Free':
            continue
        if row.get('base_address', '0x0') != '0x0':
            steps.append(('-', int(row['base_address'], 16)))
        if row['action'] != 'Free':
            steps.append(('+', int(row['address'], 16), row['size']))
    return steps


def steps_of_heaptrack(raw):
    """The same of what heaptrack writes: `+ size trace address` and `- address`, hexadecimal."""
    steps = []
    for line in raw.read_text().splitlines():
        fields = line.split()
        if fields[:1] == ['+']:
            steps.append(('+', int(fields[3], 16), int(fields[1], 16)))
        elif fields[:1] == ['-']:
            steps.append(('-', int(fields[1], 16)))
    return steps


def without_unknown(steps):
    """Without releases of what was not live."""
    live, kept = set(), []
    for step in steps:
        if step[0] == '+':
            live.add(step[1])
        elif step[1] not in live:
            continue
        else:
            live.remove(step[1])
        kept.append(step)
    return kept


class Heaptrack(Recording):
    """heaptrack 1.4 sees the same calls and the same peak, to the byte.

    It differs in what it does itself: it needs the C++ runtime, which allocates a pool of 72704
    bytes when it is loaded; it tells of blocks of its own that it releases when it begins; and its
    timer's thread allocates an exception. Addresses differ from run to run, and with them when
    Python forgets names, since its cache of types is indexed by their addresses: peaks of two runs
    differ by a few bytes. So both watch one run, heaptrack behind us.
    """

    SQL = ('create table t(a); with recursive n(i) as (select 1 union all select i + 1 from n '
           'where i < 20000) insert into t select i from n; create index x on t(a);')
    # In the program that is run LD_PRELOAD is ours; heaptrack removes it again, and its own.
    BEHIND = 'preload=$1; shift; LD_PRELOAD=$LD_PRELOAD:$preload exec "$@"'

    def setUp(self):
        super().setUp()
        self.library = heaptrack_part('libheaptrack_preload.so')
        self.interpreter = heaptrack_part('libexec/heaptrack_interpret')
        if not self.library or not self.interpreter or not shutil.which('heaptrack_print'):
            self.skipTest('no heaptrack here')
        self.raw = self.directory / 'heaptrack.raw'
        self.environment = {'PATH': os.environ['PATH'], 'PYTHONMALLOC': 'malloc',
                            'PYTHONHASHSEED': '0', 'DUMP_HEAPTRACK_OUTPUT': str(self.raw)}

    def command(self, *command):
        if shutil.which(command[0]) is None:
            self.skipTest(f'no {command[0]} here')
        return [shutil.which(command[0]), *command[1:]]

    def heaptrack_peak(self):
        """By heaptrack_print's account: the sum of what each stack has then."""
        data, stacks = self.directory / 'heaptrack', self.directory / 'stacks'
        with open(self.raw, 'rb') as source, open(data, 'wb') as result:
            subprocess.run([self.interpreter], stdin=source, stdout=result,
                           stderr=subprocess.DEVNULL, timeout=PATIENCE, check=True)
        subprocess.run(['heaptrack_print', '--flamegraph-cost-type', 'peak', '-F', str(stacks),
                        str(data)], capture_output=True, timeout=PATIENCE, check=True)
        return sum(int(line.rsplit(' ', 1)[1]) for line in stacks.read_text().splitlines())

    def check_steps(self, rows, own, theirs):
        """Ours are theirs, and some of heaptrack's own, which are returned."""
        place, more = 0, []
        for row in rows:
            steps = steps_of_events([row])
            if theirs[place:place + len(steps)] == steps:
                place += len(steps)
            else:
                self.assertTrue(row['number'] in own, row)
                more += steps
        self.assertEqual(place, len(theirs))
        self.assertEqual(without_unknown(more), more)

    def check(self, *command, least):
        result = subprocess.run(
            [os.environ['TTDRECORD'], '-q', '-o', str(self.trace), '--', '/bin/sh', '-c',
             self.BEHIND, 'sh', self.library, *self.command(*command)],
            env=self.environment, capture_output=True, timeout=PATIENCE, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = analyze('events', self.trace)
        begin = max(n for n, row in enumerate(rows) if row['action'] == 'Destroy') + 1
        main = rows[-1]['thread']
        # Allocations of heaptrack itself, while it serves a call and in its timer's thread; and the
        # loader's for an error when we look for a symbol that is not there.
        own = {row['number'] for library in ('libheaptrack', 'libttdpreload')
               for row in analyze('events', self.trace, '--stack', library)}
        self.assertLessEqual({row['number'] for row in rows[begin:] if row['thread'] != main}, own)
        theirs = without_unknown(steps_of_heaptrack(self.raw))
        self.check_steps(rows[begin:], own, theirs)
        self.assertGreater(len(theirs), least)
        most = replay(theirs)[0]
        self.assertEqual(self.heaptrack_peak(), most)
        peak, state = analyze('peak', self.trace), analyze('state', self.trace)
        highest = all_live(peak)[1]
        self.assertEqual((highest, *reversed(all_live(state))),
                         replay(steps_of_events(rows[begin:])))
        self.assert_sound()
        return highest, most

    def test_python(self):
        self.check('/usr/bin/python3', '-c', 'import json; json.loads(json.dumps([{}] * 9999))',
                   least=50000)

    def test_sqlite(self):
        self.check('sqlite3', ':memory:', self.SQL, least=40000)

    def test_separate_runs(self):
        """Nothing in this program depends on addresses: all that differs is the pool."""
        command = self.command('sqlite3', ':memory:', self.SQL)
        subprocess.run(command, env=dict(self.environment, LD_PRELOAD=self.library),
                       capture_output=True, timeout=PATIENCE, check=True)
        subprocess.run([os.environ['TTDRECORD'], '-q', '-o', str(self.trace), '--', *command],
                       env={'PATH': os.environ['PATH']}, capture_output=True, timeout=PATIENCE,
                       check=True)
        pool, *theirs = [step[2] for step in steps_of_heaptrack(self.raw) if step[0] == '+']
        mine = [step[2] for step in steps_of_events(analyze('events', self.trace))
                if step[0] == '+']
        self.assertEqual(mine, theirs)
        self.assertEqual(pool, 72704)
        self.assertEqual(all_live(analyze('peak', self.trace))[1], self.heaptrack_peak() - pool)


if __name__ == '__main__':
    unittest.main()
