# SPDX-License-Identifier: MIT
"""What the analyzer says of real programs' traces: answers that have to agree, two builds of one
program, and a program that is still running."""

import os
import shutil
import subprocess
import time
import unittest

from support import PATIENCE, RECORDER, Recording, all_live, analyze, program

NEVER = (1 << 65, 0)


def position(text):
    if text is None:
        return NEVER
    sequence, steps = text.split(':')
    return int(sequence, 16), int(steps, 16)


def added(*all_groups):
    """The groups of one stack together."""
    found = {}
    for group in (group for groups in all_groups for group in groups):
        before = found.get(group['stack_id'], (0, 0))
        found[group['stack_id']] = before[0] + group['blocks'], before[1] + group['bytes']
    return found


def sums(groups):
    """Groups of leaks may be several of one stack: one for each class."""
    return added(groups)


class Agreement(Recording):
    """Different questions about the same blocks."""

    def check_end(self):
        """The state at the end has the leaks, and what the runtimes keep."""
        leaks = analyze('leaks', self.trace, '--show-runtime', '--limit', '0')
        for at in ([], ['--at', 'end']):
            state = analyze('state', self.trace, *at, '--limit', '0', '--blocks',
                            '--show-runtime')
            self.assertEqual((state['live_blocks'], state['live_bytes']),
                             (leaks['total_blocks'], leaks['total_bytes']))
            for name in ('groups', 'runtime_groups'):
                self.assertEqual(sums(state[name]), sums(leaks[name]))
            self.assertEqual((len(state['blocks']), sum(block['size'] for block in state['blocks'])),
                             all_live(state))
        self.assertGreater(leaks['runtime_blocks'], 0)

    def check_range(self, allocations, begin, end):
        """All that was allocated in a range was freed in it or not; so was all that was before."""
        spell = '{:X}:{:X}'.format
        inside = [size for at, size in allocations if begin <= at < end]
        found = analyze('diff', self.trace, '--from', spell(*begin), '--to', spell(*end),
                        '--limit', '0')
        self.assertGreater(len(inside), 100)
        # The last positions before these; a sequence has fewer steps than that.
        before, last = ((at[0], at[1] - 1) if at[1] else (at[0] - 1, 1 << 62)
                        for at in (begin, end))
        old, new = (analyze('state', self.trace, '--at', spell(*at), '--limit', '0')
                    for at in (before, last))
        self.assertEqual(tuple(found['aifi'][what] + found['aifo'][what] +
                               new[f'runtime_{what}'] - old[f'runtime_{what}']
                               for what in ('blocks', 'bytes')), (len(inside), sum(inside)))
        self.assertEqual(added(found['aofi']['groups'], found['aofo']['groups']),
                         sums(old['groups']))
        self.assertEqual(added(found['aifo']['groups'], found['aofo']['groups']),
                         sums(new['groups']))
        change = analyze('diff', self.trace, '--changes', '--from', spell(*before), '--to',
                         spell(*last), '--limit', '0')
        self.assertEqual((change['change_blocks'], change['change_bytes']),
                         (found['aifo']['blocks'] - found['aofi']['blocks'],
                          found['aifo']['bytes'] - found['aofi']['bytes']))
        old, new = sums(old['groups']), sums(new['groups'])
        self.assertEqual({c['stack_id']: (c['change_blocks'], c['change_bytes'])
                          for c in change['changes']},
                         {stack: tuple(a - b for a, b in
                                       zip(new.get(stack, (0, 0)), old.get(stack, (0, 0))))
                          for stack in old.keys() | new.keys()
                          if old.get(stack) != new.get(stack)})

    def check(self, *command):
        if shutil.which(command[0]) is None:
            self.skipTest(f'no {command[0]} here')
        self.record(*command, environment={'PYTHONMALLOC': 'malloc'})
        self.assert_sound()
        self.check_end()
        rows = analyze('events', self.trace)
        allocations = [(position(row['time_end']), row['size']) for row in rows
                       if row['action'] in ('Alloc', 'ReAlloc') and row['result'] and
                       row['address'] != '0x0']
        places = sorted(at for at, _ in allocations)
        for begin, end in ((0, 50), (10, 30), (25, 90), (60, 99)):
            self.check_range(allocations, places[len(places) * begin // 100],
                             places[len(places) * end // 100])
        hot = analyze('hot', self.trace)
        self.assertEqual((hot['allocations'], hot['bytes']),
                         (len(allocations), sum(size for _, size in allocations)))
        peak = analyze('peak', self.trace)
        for over in ('time', 'position'):
            points = analyze('timeline', self.trace, '--over', over)['points']
            self.assertEqual(sum(p['allocations'] for p in points), len(allocations))
            self.assertEqual(max(p['peak_bytes'] for p in points), all_live(peak)[1])

    def test_python(self):
        self.check('/usr/bin/python3', '-c', 'import json; json.loads(json.dumps([{}] * 9999))')

    def test_sqlite(self):
        self.check('sqlite3', ':memory:', 'create table t(a); with recursive n(i) as (select 1 '
                   'union all select i + 1 from n where i < 9000) insert into t select i from n;')


PROGRAM = r'''
#include <stdlib.h>
#include <string.h>
void *volatile keep[2000];
static int used;
%s
__attribute__((noinline)) static void *get(size_t size)
{
    void *block = malloc(size);
    memset(block, 1, size);
    return block;
}
__attribute__((noinline)) static void steady(void)
{
    for (int i = 0; i < 10; i++)
        keep[used++] = get(100);
}
__attribute__((noinline)) static void growing(int count)
{
    for (int i = 0; i < count; i++)
        keep[used++] = get(24);
}
int main(void)
{
    steady();
    growing(%d);
    %s
    return used == 0;
}
'''
MORE = r'''
/* Some lines, and a function that moves all others. */
__attribute__((noinline)) static void added(void)
{
    for (int i = 0; i < 3; i++)
        keep[used++] = calloc(7, 1000);
}
'''


class TwoBuilds(Recording):
    """Lines, offsets and addresses differ; the stacks that matter are found all the same."""

    def build(self, name, *parts):
        compiler = shutil.which('cc') or self.skipTest('no compiler here')
        directory = self.directory / name
        directory.mkdir()
        (directory / 'main.c').write_text(PROGRAM % parts)
        subprocess.run([compiler, '-g', '-O1', '-pie', '-fPIE', '-o', directory / 'program',
                        directory / 'main.c'], check=True, timeout=PATIENCE)
        subprocess.run([RECORDER, '-q', '-o', directory / 'trace', '--', directory / 'program'],
                       check=False, capture_output=True, timeout=PATIENCE)
        return str(directory / 'trace')

    def compare(self, old, new):
        found = analyze('diff', new, old)    # which runs: diff OLD NEW
        self.assertTrue(found['certain'])
        return found, {tuple(f['function'] for f in c['stack'][:2]):
                       (c['change'], c['change_blocks'], c['change_bytes'])
                       for c in found['changes']}

    def test_two_builds(self):
        old = self.build('old', '', 50, '')
        new = self.build('new', MORE, 70, 'added();')
        found, changes = self.compare(old, new)
        self.assertEqual(changes, {('added', 'main'): ('new', 3, 21000),
                                   ('get', 'growing'): ('grown', 20, 480)})
        self.assertGreaterEqual(found['same_stacks'], 1)
        _, changes = self.compare(new, old)
        self.assertEqual(changes, {('added', 'main'): ('gone', -3, -21000),
                                   ('get', 'growing'): ('shrunk', -20, -480)})
        # Their lines have moved: it was no accident.
        lines = [next(g['stack'][0]['line'] for g in
                      analyze('leaks', trace, '--limit', '0')['groups']
                      if g['stack'][1]['function'] == 'growing') for trace in (old, new)]
        self.assertNotEqual(*lines)

    def test_two_runs(self):
        """Of one build: loaded elsewhere."""
        old = self.build('old', '', 50, '')
        new = self.directory / 'again'
        subprocess.run([RECORDER, '-q', '-o', new, '--', self.directory / 'old' / 'program'],
                       check=False, capture_output=True, timeout=PATIENCE)
        found, changes = self.compare(old, str(new))
        self.assertEqual((changes, found['change_bytes']), ({}, 0))


class Running(Recording):
    """A program that has not ended."""

    COMMANDS = (('info',), ('events', '--from', '99%'), ('leaks',), ('moves',), ('state',),
                ('history', '--address', '0x1000'), ('peak',), ('diff',), ('diff', '--changes'),
                ('hot',), ('temporary',), ('lifetimes',), ('timeline',), ('fragmentation',),
                ('errors',))

    def test_running(self):
        sleeper = program('sleeper')
        with subprocess.Popen([RECORDER, '-q', '-o', str(self.trace), '--', sleeper],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as process:
            self.assertEqual(process.stdout.readline(), b'sleeping\n')
            self.wait_for(100000)
            for command in self.COMMANDS:
                with self.subTest(command=command):
                    result = subprocess.run(
                        [os.environ['TTDANALYZE'], *command, str(self.trace)],
                        capture_output=True, text=True, timeout=PATIENCE, check=False)
                    self.assertEqual(result.returncode, 0, result.stderr)
                    self.assertIn('not closed', result.stdout + result.stderr)
            running = analyze('state', self.trace)
            self.assertIs(running['certain'], False)
            process.stdin.close()
            self.assertEqual(process.wait(PATIENCE), 0)
        # The earlier answer still holds.
        state = analyze('state', self.trace, '--at', running['position'])
        self.assertEqual((all_live(state), state['groups'][0]['bytes']),
                         (all_live(running), running['groups'][0]['bytes']))
        self.assertTrue(state['certain'])
        self.assert_sound()

    def wait_for(self, blocks):
        """The collector writes when it has a chunk full, or after a while."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self.trace.exists() and self.trace.stat().st_size > 1000:
                if analyze('state', self.trace)['live_blocks'] >= blocks:
                    return
            time.sleep(0.1)
        self.fail('nothing is written')


if __name__ == '__main__':
    unittest.main()
