# SPDX-License-Identifier: MIT
"""Recording less than all, for programs that run for long: options that bound what a trace has."""

import collections
import csv
import json
import math
import os
import pathlib
import re
import subprocess
import time
import unittest

from attaching import Attach
from support import PATIENCE, ANALYZER, RECORDER, Recording, analyze, program


# Bytes of a block of the list of counted.c.
KEPT_SIZE = 104

# Makes many calls of sizes that no pattern foretells.
OPERATORS = """
#include <cstdlib>
int main()
{
    unsigned seed = 1;
    for (int i = 0; i < 1500000; i++, seed = seed * 1103515245 + 12345)
        ::operator delete(::operator new(seed / 65536 % 5000 + 1));
}
"""

# Keeps blocks of every way to allocate them, of a size for each way.
WAYS = """
#include <cstdio>
#include <cstdlib>
#include <new>
#include <sys/prctl.h>
#include <thread>
enum { COUNT = 100000, THREADS = 500 };
static void *volatile kept;
template <class Way> static void keep(int count, Way way)
{
    for (int i = 0; i < count; i++)
        kept = way();
}
int main(int argc, char **)
{
    if (argc > 1) {
        prctl(0x59616d61, -1, 0, 0, 0);
        std::puts("ready");
        std::fflush(stdout);
        std::getchar();
    }
    keep(COUNT, [] { return std::malloc(64); });
    keep(COUNT, [] { return std::calloc(3, 24); });
    keep(COUNT, [] { return std::realloc(nullptr, 80); });
    keep(COUNT, [] { return ::operator new(88); });
    keep(COUNT, [] { return ::operator new[](96); });
    keep(COUNT, [] { return ::operator new(104, std::nothrow); });
    keep(COUNT, [] { return ::operator new(112, std::align_val_t(64)); });
    keep(COUNT, [] { return std::aligned_alloc(64, 128); });
    keep(COUNT, [] {
        void *block = nullptr;
        return posix_memalign(&block, 16, 136) == 0 ? block : nullptr;
    });
    keep(COUNT, [] { return std::realloc(std::malloc(24), 144); });
    for (int i = 0; i < THREADS; i++)
        std::thread([] { keep(COUNT / THREADS, [] { return std::malloc(152); }); }).join();
}
"""

# Releases a recorded block while its thread is suspended; a block that is not recorded gets its
# address later.
SUSPENDED = """
#include <cstdio>
#include <cstdlib>
#include <ttdtrace/live.h>
static void *volatile first, *volatile again, *volatile small;
int main()
{
    const struct ttd_live_guid guid = {{7}};
    struct ttd_live *client = ttd_live_open(&guid, nullptr, 0);
    for (int i = 0; i < 10; i++) {
        first = std::malloc(200);
        ttd_live_try_pause(client);
        std::free(first);
        ttd_live_resume(client);
        again = std::malloc(200);
        std::free(again);
        small = std::malloc(199);
        if (first != again || first != small)
            return 1;
        std::free(small);
    }
    return client == nullptr;
}
"""

# An allocator that gives a reallocation a block which another thread releases meanwhile.
ALLOCATOR = """
#include <atomic>
#include <cstddef>
#include <cstring>
#include <sched.h>
static char memory[1 << 24];
static std::atomic<std::size_t> used;
std::atomic<void *> awaited;
std::atomic<bool> is_waiting, is_free;
extern "C" void *malloc(std::size_t size)
{
    return memory + used.fetch_add((size + 15) / 16 * 16);
}
extern "C" void *calloc(std::size_t count, std::size_t size)
{
    return malloc(count * size);
}
extern "C" void free(void *block)
{
    if (block && block == awaited)
        is_free = true;
}
extern "C" void *realloc(void *block, std::size_t size)
{
    if (size != 7777)
        return block ? std::memcpy(malloc(size), block, size) : malloc(size);
    is_waiting = true;
    while (!is_free)
        sched_yield();
    return awaited;
}
"""

TAKES_OVER = """
#include <atomic>
#include <cstdlib>
#include <thread>
extern std::atomic<void *> awaited;
extern std::atomic<bool> is_waiting, is_free;
int main(int count, char **)
{
    void *moved;
    awaited = malloc(8000);
    std::thread thread([&moved] { moved = realloc(malloc(5000), 7777); });
    while (!is_waiting)
        std::this_thread::yield();
    free(awaited);
    thread.join();
    if (count > 1)
        free(moved);
}
"""


WAYS_MEAN = 2048


def check_ways(test):
    """The sample has each way that WAYS allocates blocks by as often as is likely."""
    count = 100000
    blocks = collections.Counter()
    for group in analyze('leaks', test.trace, '--show', 'all')['groups']:
        size = group['bytes'] // group['blocks']
        if group['bytes'] == size * group['blocks']:
            blocks[size] += group['blocks']
    for size in 64, 72, 80, 88, 96, 104, 112, 128, 136, 144, 152:
        chance = 1 - math.exp(-size / WAYS_MEAN)
        deviation = math.sqrt(count * chance * (1 - chance))
        test.assertLess(abs(blocks[size] - count * chance), 6 * deviation, size)
    test.assertEqual(analyze('errors', test.trace)['findings'], [])
    test.assertTrue(analyze('verify', test.trace)['ok'])


class Bounded(Recording):

    def converse(self, *commands, options=()):
        """Records a program that is told these commands, and returns the numbers of calls that it
        has counted itself: acquisitions, reallocations, releases."""
        result = self.record(program('counted'), options=options,
                             input='\n'.join([*commands, '']).encode())
        self.assertEqual(result.returncode, 0, result.stderr)
        ready, *counts = result.stdout.decode().splitlines()
        self.assertEqual((ready, len(counts)), ('ready', len(commands)))
        return [int(count) for count in counts[-1].split()], result.stderr.decode()

    def compile(self, name, text, *options):
        path = self.directory / name
        path.with_suffix('.cpp').write_text(text)
        subprocess.run([*os.environ['COMPILER_CXX'].split(), '-O1', '-fno-builtin', '-pthread', '-o',
                        path, path.with_suffix('.cpp'), *options], check=True)
        return path

    def text(self, command, *options):
        return subprocess.run([ANALYZER, command, *options, str(self.trace)], text=True,
                              capture_output=True, timeout=PATIENCE).stdout

    def refusal(self, *options, command=('true',)):
        result = subprocess.run([RECORDER, '-o', str(self.trace), *options, *command], text=True,
                                capture_output=True, timeout=PATIENCE)
        self.assertEqual((result.returncode, result.stdout), (125, ''))
        self.assertFalse(self.trace.exists())
        return result.stderr


class Stacks(Bounded):

    def test_calls_without_stacks(self):
        """All calls are there, none has a stack, and no report makes one up."""
        (acquired, reallocated, released), _ = self.converse('calls 100', 'lose 7',
                                                             options=['--no-stacks'])
        leaks = self.assert_sound()
        lost = [group for group in leaks['groups'] if group['class'] == 'definitely_lost']
        self.assertEqual([(group['blocks'], group['stack']) for group in lost], [(7, [])])
        info = analyze('info', self.trace)
        self.assertIn({'key': 'stacks', 'value': 'not recorded'}, info['metadata'])
        hot = analyze('hot', self.trace)
        self.assertGreaterEqual(hot['allocations'], acquired + reallocated + 7)
        self.assertEqual([group['stack'] for group in hot['groups']], [[]])
        self.assertIn('7 blocks, 2,100 bytes, without recorded stacks', self.text('leaks'))
        self.assertGreater(released, 0)

    def stacks_of(self, *options):
        """Functions of the stacks that calls have, by action; also of calls without a stack."""
        self.converse('calls 100', 'keep 3', 'calls 100', options=[*options, '--no-snapshot'])
        self.assertTrue(analyze('verify', self.trace)['ok'])
        stacks = {}
        for line in self.text('events', '--stacks', '--full-stacks', '--format', 'json').splitlines():
            event = json.loads(line)
            if 'action' in event:
                stack = tuple(frame['offset'] for frame in event['frames'] if not frame['inlined'])
                stacks.setdefault(event['action'], collections.Counter())[stack] += 1
        stated = [fact['value'] for fact in analyze('info', self.trace)['metadata']
                  if fact['key'] == 'stacks']
        return stacks, stated

    def test_kinds_of_calls(self):
        """Each kind has the stacks that it has otherwise, or none."""
        kinds = {'alloc': 'Alloc', 'realloc': 'ReAlloc', 'free': 'Free'}
        whole, stated = self.stacks_of()
        self.assertEqual(stated, [])
        for names, said in (('alloc', 'not recorded of reallocations, releases'),
                            ('free,realloc', 'not recorded of allocations'),
                            ('all', None), ('none', 'not recorded')):
            stacks, stated = self.stacks_of('--stacks', names)
            self.assertEqual(stated, [said] if said else [])
            for name, action in kinds.items():
                has_stacks = names == 'all' or name in names.split(',')
                expected = whole[action] if has_stacks else {(): whole[action].total()}
                self.assertEqual(stacks[action], expected, (names, action))

    def test_depth(self):
        """Of each stack the innermost frames are there."""
        whole, _ = self.stacks_of()
        for depth in 1, 3, 4096:
            cut = {}
            for action, stacks in whole.items():
                cut[action] = collections.Counter()
                for stack, count in stacks.items():
                    cut[action][stack[:depth]] += count
            stacks, stated = self.stacks_of('--stack-depth', str(depth))
            self.assertEqual(stated, [f'the innermost {depth} frames'])
            self.assertEqual(stacks, cut)

    def test_refusals(self):
        for kinds in 'allocs', '', 'alloc,', 'alloc free':
            self.assertIn(f"'{kinds}' names no kinds of calls", self.refusal('--stacks', kinds))
        for depth in '0', '4097', 'x', '-1', '':
            self.assertIn(f"'{depth}' is no number of frames", self.refusal('--stack-depth', depth))

    def test_attached(self):
        process = subprocess.Popen([program('counted')], stdin=subprocess.PIPE, text=True,
                                   stdout=subprocess.PIPE, bufsize=1)
        self.addCleanup(process.communicate)
        process.stdout.readline()
        recorder = subprocess.Popen([RECORDER, 'attach', '--no-stacks', '-o', str(self.trace),
                                     str(process.pid)], stderr=subprocess.PIPE, text=True)
        self.addCleanup(recorder.communicate)
        recorder.stderr.readline()
        process.stdin.write('calls 100\n')
        process.stdout.readline()
        subprocess.run([RECORDER, 'detach', str(process.pid)], check=True, timeout=PATIENCE,
                       stdout=subprocess.DEVNULL)
        self.assertEqual(recorder.wait(PATIENCE), 0)
        hot = analyze('hot', self.trace)
        self.assertGreaterEqual(hot['allocations'], 3 * 100 * 5)
        calls, earlier = (group['stack'] for group in hot['groups'])
        self.assertEqual(calls, [])
        self.assertEqual([frame['function'] for frame in earlier],
                         ['[found when the recorder was attached]'])
        # Neither is about the program.
        redacted = self.directory / 'redacted.bin'
        subprocess.run([ANALYZER, 'redact', '--strings', '-o', str(redacted), str(self.trace)],
                       check=True, capture_output=True, timeout=PATIENCE)
        whole, left = (analyze('info', trace)['metadata'] for trace in (self.trace, redacted))
        for key in 'before', 'stacks':
            [fact] = [fact for fact in whole if fact['key'] == key]
            self.assertIn(fact, left)


class Size(Bounded):

    def test_recording_ends(self):
        """The trace is valid and has little more than its size; the program goes on, and the calls
        that it makes from there on are counted."""
        commands = [f'calls {n}' for n in (2000, 50000)]
        (acquired, reallocated, released), said = self.converse(
            *commands, options=['--max-size', '200K', '--no-snapshot'])
        self.assertIn('1 trace has reached the size of --max-size', said)
        self.assertLess(self.trace.stat().st_size, 1500000)
        verdict = analyze('verify', self.trace)
        self.assertEqual((verdict['ok'], verdict['problems']), (True, []))
        info = analyze('info', self.trace)
        [reason] = info['reasons']
        self.assertIn('left out to bound the trace', reason)
        calls = acquired + reallocated + released
        # The threads' own: each has a few blocks that the C library makes.
        self.assertLess(abs(info['lost_events'] + info['events'] - calls), 100)
        self.assertGreater(info['lost_events'], calls // 2)
        leaks = analyze('leaks', self.trace)
        self.assertFalse(leaks['certain'])
        self.assertIn('left out to bound the trace', leaks['reasons'][0])
        self.assertIn('events are missing after', self.text('leaks'))

    def test_nothing_is_lost_after_the_size(self):
        """A program that ends at once may have made all its calls by then: the summary has one answer,
        whatever the moment."""
        for size in '1', '1000', '100K':
            said = subprocess.run([RECORDER, '-o', self.trace, '--max-size', size, '--',
                                   program('leaks_c')], capture_output=True, text=True,
                                  timeout=PATIENCE).stderr
            lost = int(re.search(r', ([0-9,]+) lost', said)[1].replace(',', ''))
            self.assertEqual('reached the size of --max-size' in said,
                             lost != 0, said)

    def test_counts_of_operators(self):
        """A call that an operator makes counts as well: none is missing."""
        self.record(program('growing'), options=['--no-snapshot'])
        whole = analyze('info', self.trace)
        self.record(program('growing'), options=['--max-size', '1', '--no-snapshot'])
        info = analyze('info', self.trace)
        self.assertGreaterEqual(info['lost_events'] + info['events'], whole['events'])

    def test_calls_of_operators_that_were_seen(self):
        """From then on a call that an operator makes does not count."""
        path = self.compile('operators', OPERATORS)
        self.record(path, options=['--no-snapshot'])
        whole = analyze('info', self.trace)
        self.record(path, options=['--max-size', '50K', '--no-snapshot'])
        info = analyze('info', self.trace)
        self.assertGreater(info['lost_events'], whole['events'] // 2)
        self.assertEqual(info['lost_events'] + info['events'], whole['events'])

    def test_reallocations(self):
        """A thread is not suspended between the two records of a reallocation, which would count
        twice, and seem not to return."""
        self.record(program('moving'), options=['--no-snapshot'])
        whole = analyze('info', self.trace)
        self.record(program('moving'), options=['--max-size', '1', '--no-snapshot'])
        info = analyze('info', self.trace)
        self.assertEqual((info['lost_events'] + info['events'], info['unfinished']),
                         (whole['events'], 0))

    def test_asking(self):
        process = subprocess.Popen([RECORDER, '-q', '-o', str(self.trace), '--max-size', '1',
                                    program('counted')], stdin=subprocess.PIPE, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=1)
        self.addCleanup(process.communicate)
        process.stdout.readline()
        for _ in range(2):
            process.stdin.write('calls 10\n')
            process.stdout.readline()
        pid = str(analyze('info', self.trace)['trace']['process_id'])
        for command in 'snapshot', 'resume', 'pause':
            answer = subprocess.run([RECORDER, command, pid], capture_output=True, text=True,
                                    timeout=PATIENCE)
            self.assertEqual(answer.returncode, 125, answer.stdout)
            self.assertIn('its trace has the size that was asked for', answer.stderr)
        answer = subprocess.run([RECORDER, 'status', pid], capture_output=True, text=True,
                                timeout=PATIENCE)
        self.assertIn(', full', answer.stdout)

    def test_sizes(self):
        for size in '0', '-1', '1X', '', '1KB', '99999999999T':
            self.assertIn(f"'{size}' is no size", self.refusal('--max-size', size))


class Keep(Bounded):

    def assert_valid(self):
        """The trace is intact, begins with the blocks that lived, and is certain of nothing."""
        verdict = analyze('verify', self.trace)
        self.assertEqual((verdict['ok'], verdict['problems']), (True, []))
        self.assertEqual(analyze('errors', self.trace)['findings'], [])
        leaks = analyze('leaks', self.trace)
        self.assertFalse(leaks['certain'])
        self.assertIn('left out to bound the trace', leaks['reasons'][0])
        return leaks

    def assert_blocks(self, leaks, **classes):
        """The blocks from before the cut are there, with their stacks."""
        for name, (size, count) in classes.items():
            groups = [group for group in leaks['groups']
                      if group['class'] == name and group['bytes'] == size * group['blocks']]
            self.assertEqual([group['blocks'] for group in groups], [count])
            self.assertIn('main', [frame['function'] for frame in groups[0]['stack']])

    def converse_in_step(self, *commands, options):
        """As converse(), but no command is given before the recorder has written some of what the
        calls of the one before have added: else all of them can be in the channel at the end, and
        the recorder shortens the trace only between what it writes."""
        process = subprocess.Popen([RECORDER, '-q', '-o', str(self.trace), *options, '--',
                                    program('counted')], stdin=subprocess.PIPE, text=True,
                                   stdout=subprocess.PIPE, bufsize=1)
        self.addCleanup(process.communicate)
        self.assertEqual(process.stdout.readline(), 'ready\n')
        for command in commands:
            before = self.trace.stat()
            process.stdin.write(command + '\n')
            counts = process.stdout.readline()
            deadline = time.monotonic() + PATIENCE
            while command.startswith('calls') and time.monotonic() < deadline:
                now = self.trace.stat()
                if (now.st_ino, now.st_size) != (before.st_ino, before.st_size):
                    break
                time.sleep(0.01)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0)
        return [int(count) for count in counts.split()]

    def test_size(self):
        """Dropped calls are counted, and the blocks that lived then are known as ever."""
        calls = self.converse_in_step('keep 200', 'lose 5', *['calls 4000'] * 5, 'hold 20',
                                      *['calls 4000'] * 5, options=['--keep', '100K'])
        leaks = self.assert_valid()
        self.assert_blocks(leaks, definitely_lost=(300, 5), still_reachable=(KEPT_SIZE, 200))
        info = analyze('info', self.trace)
        # The threads' own: each has a few blocks that the C library makes.
        self.assertLess(abs(info['lost_events'] + info['events'] - sum(calls) - 225), 100)
        self.assertGreater(info['lost_events'], sum(calls) // 2)
        self.assertLess(self.trace.stat().st_size, 600000)
        # The heap at a position rests on the blocks that are kept, what happened before does not.
        self.assertTrue(analyze('state', self.trace)['certain'])
        self.assertFalse(analyze('peak', self.trace)['certain'])
        [stated] = [fact['value'] for fact in info['metadata'] if fact['key'] == 'unrecorded']
        self.assertIn('calls before the last 102400 bytes of the trace', stated)
        self.assertFalse(self.trace.with_name(self.trace.name + '.keep').exists())

    def test_time(self):
        """Another file takes the place of the first when it is twice as old as asked for."""
        process = subprocess.Popen([RECORDER, '-q', '-o', str(self.trace), '--keep', '0.05s',
                                    program('counted')], stdin=subprocess.PIPE, text=True,
                                   stdout=subprocess.PIPE, bufsize=1)
        self.addCleanup(process.communicate)
        process.stdout.readline()
        process.stdin.write('lose 5\n')
        process.stdout.readline()
        first = self.trace.stat().st_ino
        for _ in range(int(PATIENCE / 0.01)):
            process.stdin.write('calls 10\n')
            process.stdout.readline()
            if self.trace.stat().st_ino != first:
                break
            time.sleep(0.01)
        process.communicate(timeout=PATIENCE)
        # On a busy machine the snapshot at the end may be older than what is kept.
        self.assert_valid()
        [group] = [group for group in analyze('state', self.trace)['groups']
                   if group['bytes'] == 300 * group['blocks']]
        self.assertEqual(group['blocks'], 5)
        self.assertIn('main', [frame['function'] for frame in group['stack']])
        [stated] = [fact['value'] for fact in analyze('info', self.trace)['metadata']
                    if fact['key'] == 'unrecorded']
        self.assertIn('calls before the last 0.1 seconds', stated.replace('0.05', '0.1'))

    def test_killed(self):
        """A recorder that is killed at any moment leaves a trace that can be read."""
        for rounds in 1000, 5000, 12000:
            recorder = subprocess.Popen([RECORDER, '-q', '-o', str(self.trace), '--keep', '50K',
                                         program('counted')], stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE, bufsize=1)
            recorder.stdout.readline()
            recorder.stdin.write(f'keep 50\ncalls {rounds}\ncalls {rounds}\n')
            recorder.stdout.readline()
            recorder.stdout.readline()
            recorder.kill()
            recorder.communicate()
            verdict = analyze('verify', self.trace)
            self.assertFalse(verdict['closed'])
            self.assertLessEqual({problem['status'] for problem in verdict['problems']},
                                 {'truncated'})
            self.assertFalse(analyze('state', self.trace)['certain'])

    def test_file_of_a_killed_recorder(self):
        """One that was killed while it wrote the trace anew leaves a file, until the next one."""
        left = self.trace.with_name(self.trace.name + '.keep')
        left.write_bytes(b'left')
        self.record('true')
        self.assertTrue(left.exists())
        self.record('true', options=['--keep', '1M'])
        self.assertFalse(left.exists())
        left.mkdir()
        self.assertEqual(self.record('true', options=['--keep', '1M']).returncode, 0)
        self.assertTrue(left.exists())

    def test_refusals(self):
        for extent in '0', '10m', '3x', '-1s', '0s', '':
            wrong = self.refusal('--keep', extent) if extent != '10m' else ''
            self.assertIn('and no time, such as 30s' if wrong else '', wrong)
        self.assertIn('exclude each other', self.refusal('--keep', '1M', '--max-size', '1M'))
        self.assertIn('exclude each other', self.refusal('--keep', '1M', '--blocks-only'))
        result = subprocess.run([RECORDER, '-o', '/dev/stdout', '--keep', '1M', 'true'],
                                capture_output=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, 122)
        self.assertIn('--keep needs a regular file', result.stderr.decode())


class BlocksOnly(Bounded):

    def assert_states_alike(self, options=(), at='100%'):
        """The live blocks are the same as in a recording of all calls."""
        states = []
        for less in [], ['--blocks-only']:
            self.record(program('moving'), options=[*options, *less])
            state = analyze('state', self.trace, '--at', at)
            states.append([state[name] for name in ('live_blocks', 'live_bytes')] +
                          [sorted((group['blocks'], group['bytes']) for group in state['groups'])])
        self.assertEqual(states[0], states[1])
        return state

    def test_blocks_at_the_end(self):
        state = self.assert_states_alike(options=['--no-snapshot'])
        self.assertIn('the trace has the blocks that were live at a snapshot or at the end: all '
                      'other calls are left out', state['reasons'])
        self.assertFalse(state['certain'])
        verdict = analyze('verify', self.trace)
        self.assertEqual((verdict['ok'], verdict['problems']), (True, []))
        self.assertEqual(analyze('errors', self.trace)['findings'], [])

    def test_a_block_that_a_reallocation_takes_over(self):
        """Another thread releases it in the middle of the reallocation: that is the block before."""
        allocator = self.compile('allocator.so', ALLOCATOR, '-shared', '-fPIC')
        takes_over = self.compile('takes_over', TAKES_OVER, allocator)
        for less in [], ['--blocks-only']:
            for arguments, sizes in ((), [7777]), (('free',), []):
                self.record(takes_over, *arguments, options=['--no-snapshot', *less])
                self.assertEqual(analyze('errors', self.trace)['findings'], [])
                groups = analyze('state', self.trace)['groups']
                self.assertEqual([group['bytes'] for group in groups], sizes, (arguments, less))

    def test_classes(self):
        """Calls of blocks that are gone leave nothing but their number."""
        options = ['--blocks-only']
        (acquired, _, _), _ = self.converse('calls 3000', 'lose 7', options=options)
        leaks = analyze('leaks', self.trace)
        lost = [group for group in leaks['groups'] if group['class'] == 'definitely_lost']
        self.assertEqual([(group['blocks'], group['bytes']) for group in lost], [(7, 2100)])
        self.assertTrue(lost[0]['stack'])
        info = analyze('info', self.trace)
        self.assertLess(info['events'], acquired // 10)
        [left_out] = [fact['value'] for fact in info['metadata'] if fact['key'] == 'unrecorded']
        self.assertGreater(int(left_out.split()[0]), acquired)
        self.assertIn('calls, for blocks that were live at no snapshot', left_out)

    def test_snapshots(self):
        """Each has the blocks that are live then, also those that are released before the next."""
        process = subprocess.Popen([RECORDER, '-q', '-o', str(self.trace), '--blocks-only',
                                    program('counted')], stdin=subprocess.PIPE, text=True,
                                   stdout=subprocess.PIPE, bufsize=1)
        self.addCleanup(process.communicate)
        process.stdout.readline()
        for count in 5, 7:
            process.stdin.write(f'keep {count}\n')
            process.stdout.readline()
            pid = str(analyze('info', self.trace)['trace']['process_id'])
            subprocess.run([RECORDER, 'snapshot', pid], check=True, stdout=subprocess.DEVNULL,
                           timeout=PATIENCE)
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 0)
        positions = [snapshot['position'] for snapshot in
                     analyze('snapshots', self.trace)['snapshots']]
        kept = [sum(group['blocks'] for group in
                    analyze('state', self.trace, '--at', position)['groups']
                    if group['bytes'] == KEPT_SIZE * group['blocks']) for position in positions]
        self.assertEqual(kept, [5, 12, 12])

    def test_releases_between_snapshots(self):
        """A block that a snapshot has is released in the trace when it is in the program."""
        self.assert_states_alike(options=['--snapshot-every', '0.01'])


class Chosen(Bounded):

    def test_small_blocks_are_left_out(self):
        """A recorded block is released in the trace when it is in the program, whatever is moved
        beyond the limit, or back."""
        self.converse('calls 300', 'keep 100', 'lose 5', 'hold 20',
                      options=['--only-above', '200'])
        leaks = analyze('leaks', self.trace)
        self.assertIn('not all calls are recorded', leaks['reasons'][0])
        self.assertIn('the trace has blocks of at least 200 bytes only: a smaller one may hold others',
                      leaks['reasons'])
        self.assertFalse(leaks['attached'])
        self.assertNotIn('had run before', self.text('leaks') + self.text('info'))
        lost = sum(group['blocks'] for group in leaks['groups']
                   if group['class'] == 'definitely_lost')
        self.assertEqual(lost, 5)
        # The blocks that small ones hold, and not one of those that the threads have released.
        small = [group for group in leaks['groups'] if group['bytes'] < 200 * group['blocks']]
        self.assertEqual(small, [])
        held = sum(group['blocks'] for group in leaks['groups']
                   if group['class'] == 'still_reachable' and
                   group['bytes'] == 300 * group['blocks'])
        self.assertEqual(held, 20)
        self.assertEqual(analyze('errors', self.trace)['findings'], [])
        info = analyze('info', self.trace)
        chosen = {'key': 'chosen', 'value': 'blocks of at least 200 bytes'}
        self.assertIn(chosen, info['metadata'])
        self.assertFalse(info['trace']['attached'])
        redacted = self.directory / 'redacted.bin'
        subprocess.run([ANALYZER, 'redact', '--strings', '-o', str(redacted), str(self.trace)],
                       check=True, capture_output=True, timeout=PATIENCE)
        self.assertIn(chosen, analyze('info', redacted)['metadata'])
        self.assertNotIn('estimated', self.text('leaks', '--format', 'json'))
        self.assertLess(info['events'], 300 * 3 * 9)
        self.assertTrue(analyze('verify', self.trace)['ok'])

    def test_released_while_suspended(self):
        """Such a block is forgotten: the releases of later blocks at its address are not recorded."""
        includes = pathlib.Path(os.environ['SOURCES']).parents[2] / 'libtrace' / 'include'
        path = self.compile('suspended', SUSPENDED, '-I', includes)
        self.record(path, options=['--only-above', '200', '--no-snapshot'])
        self.assertEqual(analyze('errors', self.trace)['findings'], [])
        info = analyze('info', self.trace)
        self.assertEqual(info['allocs'] - info['frees'], 10)

    def test_same_blocks(self):
        """With a limit of one byte, all is recorded as without."""
        self.record(program('moving'), options=['--no-snapshot'])
        whole = analyze('state', self.trace)
        events = analyze('info', self.trace)['events']
        for option in '--only-above', '--sample':
            self.record(program('moving'), options=[option, '1', '--no-snapshot'])
            part = analyze('state', self.trace)
            self.assertEqual((part['live_blocks'], part['live_bytes']),
                             (whole['live_blocks'], whole['live_bytes']))
            self.assertEqual(analyze('info', self.trace)['events'], events)

    def test_sample_is_fair(self):
        """A block of the sample stands for size / (1 - exp(-size / mean)) bytes."""
        count, size, mean = 200000, KEPT_SIZE, 4096
        self.converse(f'keep {count}', 'calls 100', options=['--sample', str(mean)])
        leaks = analyze('leaks', self.trace)
        self.assertFalse(leaks['certain'])
        self.assertIn('not all calls are recorded', leaks['reasons'][0])
        self.assertTrue(leaks['reasons'][-1].startswith(
            'the trace has a sample of the blocks, one for every 4096 bytes: sums are of the sample'))
        blocks = sum(group['blocks'] for group in leaks['groups']
                     if group['bytes'] == size * group['blocks'])
        chance = 1 - math.exp(-size / mean)
        deviation = math.sqrt(count * chance * (1 - chance))
        self.assertLess(abs(blocks - count * chance), 7 * deviation)
        self.assertEqual(analyze('errors', self.trace)['findings'], [])
        self.assertTrue(analyze('verify', self.trace)['ok'])
        # What they stand for, in all reports and formats that say so.
        for command, *options in ('leaks', '--show', 'all'), ('state',), ('peak',):
            groups = analyze(command, self.trace, *options)['groups']
            estimates = [(group['estimated_blocks'], group['estimated_bytes']) for group in groups
                         if group['bytes'] == size * group['blocks']]
            estimated = sum(estimate[0] for estimate in estimates)
            self.assertLess(abs(estimated - count), 7 * deviation / chance)
            self.assertLess(abs(sum(estimate[1] for estimate in estimates) - size * estimated),
                            size * len(estimates))
            self.assertIn('a sample, estimated in all: ', self.text(command, *options))
            rows = csv.DictReader(self.text(command, *options, '--format', 'csv').splitlines())
            self.assertGreater(max(int(row['estimated_bytes']) for row in rows), size * count / 2)

    def test_each_way_is_as_likely(self):
        """Whatever function allocates a block, and in however short a thread, it counts once."""
        path = self.compile('ways', WAYS)
        self.record(path, options=['--sample', str(WAYS_MEAN), '--no-snapshot'])
        check_ways(self)

    def test_grown_blocks(self):
        """A block that has grown step by step is as likely as one that was allocated at once."""
        self.record(program('moving'), options=['--sample', '64', '--no-snapshot'])
        self.assertTrue(analyze('verify', self.trace)['ok'])
        self.assertEqual(analyze('errors', self.trace)['findings'], [])

    def test_operators(self):
        """An operator new decides for the call of malloc() that it makes, which is not counted again,
        and not recorded as a call of its own that delete would not match."""
        for options in ['--sample', '64'], ['--sample', '1'], ['--only-above', '40']:
            self.record(program('growing'), options=[*options, '--no-snapshot'])
            self.assertTrue(analyze('verify', self.trace)['ok'])
            self.assertEqual(analyze('errors', self.trace)['findings'], [])
            self.assertGreater(analyze('info', self.trace)['events'], 0)

    def test_refusals(self):
        self.assertIn('exclude each other', self.refusal('--sample', '512K', '--only-above', '100'))
        self.assertIn('too much for a sample', self.refusal('--sample', '8G'))


class ChosenAttached(Attach):

    def test_each_way_is_as_likely(self):
        """Nor does it matter whether the program was running already."""
        process = self.start(self.compile('ways', WAYS), 'wait')
        recorder = self.attach(process, '--sample', str(WAYS_MEAN), '--no-snapshot')
        process.stdin.write('\n')
        self.assertEqual(process.wait(PATIENCE), 0)
        self.assertEqual(recorder.wait(PATIENCE), 0)
        check_ways(self)

    def test_releases(self):
        """Of the blocks that were recorded, and of no others."""
        process = self.start(program('counted'))
        recorder = self.attach(process, '--only-above', '250', '--no-snapshot')
        self.tell(process, 'calls 300')
        self.detach(process, recorder)
        sizes = [event['size'] for event in analyze('events', self.trace)
                 if event['action'] == 'Alloc']
        self.assertGreater(len(sizes), 0)
        self.assertGreaterEqual(min(sizes), 250)
        self.assertEqual(analyze('errors', self.trace)['findings'], [])
        self.assertTrue(analyze('verify', self.trace)['ok'])


if __name__ == '__main__':
    unittest.main()
