# SPDX-License-Identifier: MIT
"""Recording a process that runs: ttdrecord attach PID, and detach PID."""

import contextlib
import functools
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time
import types
import unittest

from attaching import CONFINED, CONTENDED, DAEMON, ONE_ARENA, Attach
from support import ANALYZER, PATIENCE, RECORDER, analyze, marks, program, wait_for

# Its only thread gets a signal of a timer more often than it can be stopped and let go.
TIMED = """
import ctypes, signal, sys
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = ctypes.c_void_p,
libc.prctl(0x59616d61, -1, 0, 0, 0)
count = 0
def tick(*_):
    global count
    count += 1
signal.signal(signal.SIGALRM, tick)
signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
print('ready', flush=True)
for line in sys.stdin:
    libc.free(libc.malloc(12345))
    print(count, flush=True)
"""

# Two children, each with a child of its own; each line of input makes one more child.
EXECUTING = """
import os, resource
resource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print('ready', flush=True)
input()
os.execv('/bin/true', ['true'] + [''] * 500000)
"""
TREE = """
import os, sys, time
def work():
    kept = []
    while True:
        kept = kept[-50:] + [bytearray(5000)]
        time.sleep(0.001)
def fork(generations):
    pid = os.fork()
    if pid == 0:
        if generations > 1:
            fork(generations - 1)
        work()
    return pid
for i in range(2):
    fork(2)
print('ready', flush=True)
for line in sys.stdin:
    print(fork(1), flush=True)
"""

# Threads that start others; these release the block of their own start.
STARTING = r"""
#include <cstdio>
#include <string>
#include <sys/prctl.h>
#include <thread>
#include <unistd.h>
#include <vector>
static void fill()
{
    std::vector<std::string> texts;
    for (int i = 0; i < 30; i++)
        texts.emplace_back(50 + i % 7 * 30, 'x');
}
static void start()
{
    for (;;) {
        fill();
        std::thread(fill).join();
    }
}
int main()
{
    prctl(0x59616d61, -1, 0, 0, 0);
    for (int i = 0; i < 4; i++)
        std::thread(start).detach();
    std::puts("ready");
    std::fflush(stdout);
    std::getchar();
    _exit(0);
}
"""

# The only frame of blocks from before.
FOUND = '[found when the recorder was attached]'


# Two threads that do nothing but acquire and release blocks, in one of three ways, until input has
# them rest between calls, and the next one has them go on.
CALLING = r"""
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <sys/prctl.h>
#include <thread>
#include <unistd.h>
static volatile std::size_t size = 100;
static std::atomic<bool> is_slow;
static void call(int way)
{
    for (;;) {
        void *blocks[4];
        for (std::size_t i = 0; i < 4; i++)
            blocks[i] = way == 0   ? malloc(size * (i + 1))
                        : way == 1 ? aligned_alloc(64, size * (i + 1))
                                   : ::operator new(size * (i + 1));
        for (void *block : blocks)
            if (way == 2)
                ::operator delete(block);
            else
                free(way == 1 ? realloc(block, size) : block);
        if (is_slow)
            usleep(1000);
    }
}
int main(int, char **arguments)
{
    char byte;
    std::thread threads[] = {std::thread(call, atoi(arguments[1])),
                             std::thread(call, atoi(arguments[1]))};
    prctl(PR_SET_PTRACER, -1UL, 0, 0, 0);
    std::puts("ready");
    std::fflush(stdout);
    while (read(0, &byte, 1) > 0)
        is_slow = !is_slow;
    _exit(0);
}
"""


# Its allocator, which has one block for these sizes, waits while it allocates in the thread, until the
# main thread has had that block; and reads the clock meanwhile or not.
WAITING = r"""
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sched.h>
#include <sys/prctl.h>
#include <thread>
#include <unistd.h>
enum { MAIN_SIZE = 4001, THREAD_SIZE = 4002 };
alignas(16) static char pool[1 << 20], block[4096];
static std::atomic<std::size_t> used;
static std::atomic<bool> is_had;
__attribute__((noinline)) static void *take(std::size_t size)
{
    sched_yield();
    return pool + used.fetch_add((size + 31) & -16);
}
__attribute__((noinline)) static void *allocate_for(bool waits, std::size_t size)
{
    struct timespec now;
    while (waits && !is_had)
        if (READS_CLOCK)
            clock_gettime(CLOCK_MONOTONIC, &now);
    return waits || size == MAIN_SIZE ? block : take(size);
}
struct Allocator {
    virtual void *allocate(bool waits, std::size_t size) { return allocate_for(waits, size); }
};
static Allocator allocator, *volatile chosen = &allocator;
extern "C" __attribute__((noipa)) void *malloc(std::size_t size)
{
    if (IS_VIRTUAL)
        return chosen->allocate(size == THREAD_SIZE, size);
    return allocate_for(size == THREAD_SIZE, size);
}
static void *(*volatile allocate)(std::size_t) = malloc;
extern "C" void free(void *)
{
    sched_yield();
}
extern "C" void *calloc(std::size_t count, std::size_t size)
{
    return allocate(count * size);
}
extern "C" void *realloc(void *old, std::size_t size)
{
    void *grown = malloc(size);
    return old ? std::memcpy(grown, old, size) : grown;
}
static void (*volatile release)(void *) = std::free;
int main()
{
    char byte;
    std::thread thread([] { release(IS_VIRTUAL ? malloc(THREAD_SIZE) : allocate(THREAD_SIZE)); });
    prctl(PR_SET_PTRACER, -1UL, 0, 0, 0);
    std::puts("ready");
    std::fflush(stdout);
    if (read(0, &byte, 1) < 0)
        return 1;
    release(allocate(MAIN_SIZE));
    is_had = true;
    thread.join();
    _exit(0);
}
"""


# Allocates and releases by operators that do not throw.
QUIET_OPERATORS = r"""
#include <cstdio>
#include <cstdlib>
#include <new>
#include <sys/prctl.h>
#include <unistd.h>
static void *volatile block;
int main()
{
    char byte;
    std::align_val_t alignment{64};
    prctl(PR_SET_PTRACER, -1UL, 0, 0, 0);
    std::puts("ready");
    std::fflush(stdout);
    if (read(0, &byte, 1) < 0)
        return 1;
    block = operator new(5, std::nothrow);
    operator delete(block, std::nothrow);
    block = operator new[](6, std::nothrow);
    operator delete[](block, std::nothrow);
    block = operator new(65, alignment, std::nothrow);
    operator delete(block, alignment, std::nothrow);
    block = operator new[](66, alignment);
    operator delete[](block, 66, alignment);
    block = realloc(nullptr, 67);
    block = realloc(block, 680);
    free(block);
    _exit(0);
}
"""


# Threads that hold all their blocks in a table.
HOLDING = r"""
#include <cstdio>
#include <cstdlib>
#include <sys/prctl.h>
#include <thread>
static void *volatile held[4][300];
static void work(int number)
{
    for (unsigned state = 7919 * number + 1;;) {
        state = state * 1103515245 + 12345;
        void *volatile &block = held[number][(state >> 8) % 300];
        void *old = block;
        if (old == nullptr) {
            block = std::malloc(16 + (state >> 8) % 900);
            continue;
        }
        block = nullptr;
        std::free(old);
    }
}
int main()
{
    prctl(PR_SET_PTRACER, -1UL, 0, 0, 0);
    for (int i = 0; i < 4; i++)
        std::thread(work, i).detach();
    std::puts("ready");
    std::fflush(stdout);
    std::getchar();
    std::_Exit(0);
}
"""


# Loses blocks of 104 usable bytes. Behind each lies free memory, which the allocator links to the
# next: it points at the last word of the block before. The free memory of "kept" has the address of
# the last block.
LINKED = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/prctl.h>
#include <unistd.h>
int main()
{
    static void *holders[20];
    for (void *&holder : holders) {
        std::memset(malloc(100), 0, 100);
        holder = std::calloc(1, 2000);
        std::memset(malloc(100), 0, 100);
    }
    static_cast<void **>(holders[0])[100] = std::calloc(1, 200);
    for (void *&holder : holders) {
        free(holder);
        holder = nullptr;
    }
    char byte;
    prctl(PR_SET_PTRACER, -1UL, 0, 0, 0);
    std::puts("ready");
    std::fflush(stdout);
    _exit(read(0, &byte, 1) < 0);
}
"""


class Calls(Attach):

    def counts(self):
        """Calls in the trace that the program's three threads made, as it counts them itself."""
        events = analyze('events', self.trace, '--include', 'make_calls')
        kinds = [event['action'] for event in events]
        return [kinds.count('Alloc'), kinds.count('ReAlloc'), kinds.count('Free')]

    def test_all_calls_are_recorded(self):
        process = self.start(program('counted'))
        before = self.tell(process, 'calls 50')
        recorder = self.attach(process)
        after = self.tell(process, 'calls 700')
        self.detach(process, recorder)
        self.assertEqual(self.counts(), [b - a for a, b in zip(before, after)])
        self.tell(process, 'calls 100')  # and none of these
        self.assertEqual(process.poll(), None)
        info = analyze('info', self.trace)
        self.assertTrue(info['trace']['attached'])
        self.assertEqual(info['lost_events'], 0)
        self.assertEqual(analyze('verify', self.trace)['problems'], [])
        self.assertEqual(analyze('errors', self.trace)['total_findings'], 0)

    def test_a_snapshot_before_the_end(self):
        for options, reason in ((), 'requested'), (('--no-snapshot',), None):
            process = self.start(program('counted'))
            recorder = self.attach(process, *options)
            self.tell(process, 'keep 5')
            self.detach(process, recorder)
            leaks = analyze('leaks', self.trace)
            self.assertEqual(leaks['snapshot'] and leaks['snapshot']['reason'], reason)
            self.assertIs(leaks['judged'], reason is not None)

    def test_only_an_earlier_snapshot(self):
        """It does not show what the process held when the recording ended."""
        process = self.start(program('counted'))
        recorder = self.attach(process, '--no-snapshot')
        self.tell(process, 'keep 5')
        self.assertEqual(self.ask('snapshot', process).returncode, 0)
        self.detach(process, recorder)
        leaks = analyze('leaks', self.trace)
        self.assertEqual((leaks['snapshot']['reason'], leaks['judged']), ('requested', False))

    def test_the_live_api(self):
        """A program that asks for it finds it, keeps its client, and is heard whenever a recorder is
        attached. Only the memory of its clients stays, once."""
        process = self.start(program('counted'))
        speak = functools.partial(self.tell, process, 'speak')
        self.assertEqual(speak(), [0, 0, 0, 0])
        before = self.image(process)
        for count in 1, 2, 3:
            recorder = self.attach(process)
            self.assertEqual((speak(), speak()), ([1, 1, 1, 1],) * 2)
            self.detach(process, recorder)
            self.assertEqual(speak(), [1, 0, 0, 0])
            told = [(mark['kind'], mark['text']) for mark in marks(self.trace)]
            self.assertEqual(told, [('open', 'opened' if count == 1 else ''),
                                    ('event', 'spoken'), ('event', 'spoken')])
            self.assertEqual(analyze('verify', self.trace)['problems'], [])
            mappings, code, _ = self.image(process)
            self.assertEqual(code, before[1])
            mappings.remove(('', 'r-xp', ''))
            # If its neighbour has the same rights, the kernel makes one mapping of both.
            if mappings.count(('', 'rw-p', '')) > before[0].count(('', 'rw-p', '')):
                mappings.remove(('', 'rw-p', ''))
            self.assertEqual(sorted(mappings), sorted(before[0]))
        self.assertEqual(self.tell(process, 'calls 10'), self.tell(process, 'calls 0'))

    def test_a_shell(self):
        """Its own data, and that of the C library, end shortly before the end of a page."""
        process = self.start('sh', '-c', 'echo ready; while read line; do echo "0 $line"; done')
        recorder = self.attach(process)
        self.tell(process, '1')
        self.detach(process, recorder)
        self.tell(process, '2')

    def test_nothing_is_left(self):
        process = self.start(program('counted'))
        self.tell(process, 'calls 300')
        before = self.image(process)
        for _ in range(3):
            recorder = self.attach(process)
            self.assertNotEqual(self.image(process)[1], before[1])
            self.tell(process, 'calls 300')
            self.detach(process, recorder)
            *same, dirty = self.image(process)
            self.assertEqual(same, list(before[:2]))
            # The page with the code by which the last of the library was unmapped.
            self.assertLessEqual(dirty, before[2] + 4)

    def test_commands(self):
        process = self.start(program('counted'))
        recorder = self.attach(process)
        self.tell(process, 'keep 5')
        self.assertRegex(self.ask('status', process).stdout, "^'.*': [0-9]+ events")
        self.assertIn('snapshot 1', self.ask('snapshot', process).stdout)
        self.assertIn('marked', self.ask('mark', process, 'here').stdout)
        self.assertIn('paused', self.ask('pause', process).stdout)
        self.assertIn('resumed', self.ask('resume', process).stdout)
        self.assertIn(f'process {recorder.pid} records it already',
                      self.refusal_while_recorded(process))
        self.detach(process, recorder)
        snapshot, _ = analyze('snapshots', self.trace)['snapshots']
        self.assertGreater(snapshot['references'], 0)

    def refusal_while_recorded(self, process):
        return subprocess.run([RECORDER, 'attach', '-o', str(self.directory / 'other'),
                               str(process.pid)], capture_output=True, text=True,
                              timeout=PATIENCE).stderr

    def test_blocks_from_before_are_known(self):
        process = self.start(program('counted'))
        self.tell(process, 'keep 40')
        self.tell(process, 'lose 9')
        recorder = self.attach(process)
        process.stdin.write('exit\n')
        self.assertEqual(recorder.wait(PATIENCE), 0)
        events = analyze('events', self.trace)
        earlier = [event for event in events if event['api'] == 'other']
        sizes = [event['size'] for event in earlier]
        self.assertEqual(sizes.count(104), 40)  # usable bytes
        self.assertEqual(sizes.count(312), 9)
        self.assertEqual(len({event['stack'] for event in earlier}), 1)
        metadata = {entry['key']: entry['value'] for entry in
                    analyze('info', self.trace)['metadata']}
        self.assertIn(f'{len(earlier)} blocks of {sum(sizes)} bytes', metadata['before'])
        self.assertNotIn('unrecorded', metadata)
        leaks = analyze('leaks', self.trace)
        self.assertTrue(leaks['attached'])
        self.assertEqual(leaks['unknown_releases'], 0)
        found = [group for group in leaks['groups']
                 if [frame['function'] for frame in group['stack']] == [FOUND]]
        self.assertEqual({group['class'] for group in found},
                         {'definitely_lost', 'still_reachable'})
        text = subprocess.run([ANALYZER, 'leaks', self.trace], capture_output=True, text=True,
                              timeout=PATIENCE).stdout
        self.assertIn('\nThe process had run before: ', text)
        self.assertIn(f'    #0  {FOUND}\n  group', text)
        lost = leaks['classes']['definitely_lost']
        self.assertLessEqual(8 * 312, lost['bytes'])  # one may be held by a register
        self.assertLessEqual(40 * 104, leaks['classes']['still_reachable']['bytes'])

    def test_vector_registers_are_kept(self):
        """The only thread is in a loop with values in them when it is borrowed."""
        process = self.start(program('vectors'))
        for _ in range(4):
            self.detach(process, self.attach(process))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(PATIENCE), 0)

    def test_signals_of_a_timer(self):
        """They come while the process is stopped, before any call that it is to make."""
        process = self.start(sys.executable, '-c', TIMED)
        for _ in range(2):
            recorder = self.attach(process)
            before, = self.tell(process, '')
            self.detach(process, recorder)
            sizes = [event.get('size') for event in analyze('events', self.trace)
                     if event['api'] != 'other']
            self.assertIn(12345, sizes)
            # The kernel blocks the timer's signal while its handler runs.
            status = pathlib.Path(f'/proc/{process.pid}/status')
            wait_for(lambda: 'SigBlk:\t0000000000000000\n' in status.read_text(),
                     'a signal stays blocked')
            self.assertGreater(self.tell(process, '')[0], before)

    def test_the_first_thread_has_ended(self):
        process = self.start(program('counted'))
        self.tell(process, 'leave')
        before = self.tell(process, 'calls 50')
        for _ in range(2):
            recorder = self.attach(process)
            start, before = before, self.tell(process, 'calls 70')
            self.detach(process, recorder)
            self.assertEqual(self.counts(), [b - a for a, b in zip(start, before)])

    def test_interrupt_detaches(self):
        process = self.start(program('counted'))
        recorder = self.attach(process)
        recorder.send_signal(signal.SIGINT)
        self.assertEqual(recorder.wait(PATIENCE), 0)
        self.assertEqual(analyze('info', self.trace)['end_reason'], 'detached')
        self.assertNotEqual(self.tell(process, 'calls 10'), [])

    def test_who_looks_at_a_recorder_is_no_program_that_goes_on(self):
        """Commands that look for the recorder of a process open what all recorders share."""
        process = self.start(program('counted'))
        for _ in range(6):
            recorder = self.attach(process)
            looking = threading.Thread(target=self.look, args=[recorder])
            looking.start()
            self.assertNotIn('warning', self.detach(process, recorder))
            looking.join()

    @staticmethod
    def look(recorder):
        folder = pathlib.Path(f'/proc/{recorder.pid}/fd')
        with contextlib.suppress(FileNotFoundError):
            while True:
                for file in folder.iterdir():
                    if 'memfd:ttdrecord' in os.readlink(file):
                        with open(file, 'rb'):
                            time.sleep(0.01)
                time.sleep(0.003)


class Restless(Attach):

    def setUp(self):
        super().setUp()
        self.process = self.start(program('restless_calls'), program('libplugin_a.so'))

    def assert_right(self):
        self.assertEqual(self.process.poll(), None)
        self.process.communicate(timeout=PATIENCE)
        self.assertEqual(self.process.returncode, 0)

    def test_a_busy_program_is_attached_to_again_and_again(self):
        for _ in range(4):
            recorder = self.attach(self.process, '--no-children')
            time.sleep(0.2)
            said = self.detach(self.process, recorder)
            self.assertNotIn('warning', said)
            verdict = analyze('verify', self.trace)
            self.assertEqual(verdict['problems'], [])
            self.assertEqual(analyze('info', self.trace)['lost_events'], 0)
        self.assert_right()

    def test_detach_removes_what_a_killed_recorder_has_left(self):
        before = self.caught(self.process)
        recorder = self.attach(self.process, '--no-children')
        recorder.kill()
        recorder.wait(PATIENCE)
        answer = self.ask('detach', self.process)
        self.assertEqual((answer.returncode, answer.stdout), (0, ''))
        self.assertIn('removed from process', answer.stderr)
        names = [name for *_, name in self.image(self.process)[0] if 'ttdrecord' in name]
        self.assertEqual(names, [])
        self.assertEqual(self.caught(self.process), before)
        self.assertEqual(self.ask('detach', self.process).returncode, 125)
        self.assert_right()

    def test_a_recorder_is_killed(self):
        """At any moment; the next one removes what it has left."""
        dice = random.Random(1)
        for _ in range(8):
            recorder = subprocess.Popen([RECORDER, 'attach', '-q', '--no-children', '-o',
                                         str(self.trace), str(self.process.pid)],
                                        stderr=subprocess.PIPE, text=True)
            time.sleep(dice.random() ** 2 / 2)
            recorder.kill()
            self.assertEqual(recorder.communicate()[1], '')
            self.assertEqual(self.process.poll(), None)
        self.detach(self.process, self.attach(self.process, '--no-children'))
        self.assert_right()


class Copies(Attach):
    def ended_children(self, process):
        """Children that nobody has waited for."""
        found = []
        for thread in pathlib.Path(f'/proc/{process.pid}/task').iterdir():
            for child in (thread / 'children').read_text().split():
                stat = pathlib.Path(f'/proc/{child}/stat').read_text()
                found += [child] if stat.rsplit(')', 1)[1].split()[0] == 'Z' else []
        return found

    def test_one_that_could_not_be_waited_for(self):
        """As on a machine that has no time for any thread: detaching does so."""
        process = self.start(program('counted'))
        recorder = subprocess.Popen(
            [os.environ['TTDRECORD_BOUNDED'], 'attach', '-q', '--no-snapshot', '-o', self.trace,
             str(process.pid)], stderr=subprocess.PIPE, env={**os.environ, 'BURY_LATE': '1'})
        self.addCleanup(self.end, recorder)
        wait_for(lambda: self.ended_children(process), 'no copy has ended')
        recorder.send_signal(signal.SIGINT)
        self.assertEqual(recorder.communicate(timeout=PATIENCE)[1], b'')
        self.assertEqual(recorder.returncode, 0)
        self.assertEqual(self.ended_children(process), [])


class Ends(Attach):

    def finish(self, command):
        process = self.start(program('counted'))
        recorder = self.attach(process)
        self.tell(process, 'keep 5')
        self.tell(process, 'lose 4')
        process.stdin.write(command + '\n')
        if command != 'exec':
            process.wait(PATIENCE)
        self.assertEqual(recorder.wait(PATIENCE), 0)
        self.said = recorder.stderr.read()
        return process, analyze('info', self.trace)

    def test_exit(self):
        process, info = self.finish('exit')
        self.assertEqual(process.returncode, 3)
        self.assertEqual((info['end_reason'], info['end_code']), ('exited', 3))
        leaks = analyze('leaks', self.trace, '--show', 'definite')
        self.assertEqual(leaks['snapshot']['reason'], 'exit')
        sites = {group['stack'][0]['function']: group['blocks'] for group in leaks['groups']}
        self.assertLessEqual(3, sites.pop('lose'))  # one may be held by a register
        self.assertNotIn('keep', sites)

    def test_signals_of_which_it_dies(self):
        for command, number in ('abort', signal.SIGABRT), ('crash', signal.SIGSEGV):
            process, info = self.finish(command)
            self.assertEqual(process.returncode, -number)
            self.assertEqual(info['end_reason'], 'killed')
            fatal = analyze('errors', self.trace)['fatal_signal']
            self.assertEqual(fatal['signal'], number)
            self.assertIn('finish', [frame['function'] for frame in fatal['stack']])
            leaks = analyze('leaks', self.trace, '--show', 'definite')
            self.assertEqual(leaks['snapshot']['reason'], 'signal')

    def test_it_is_asked_to_end(self):
        process = self.start(program('counted'))
        recorder = self.attach(process)
        self.tell(process, 'keep 5')
        process.terminate()
        self.assertEqual(process.wait(PATIENCE), -signal.SIGTERM)
        self.assertEqual(recorder.wait(PATIENCE), 0)
        self.assertEqual(analyze('leaks', self.trace)['snapshot']['reason'], 'signal')

    def test_actions_of_signals(self):
        """The program sees its own, during and after; the system has them again."""
        process = self.start(program('counted'))
        before = self.caught(process)
        for _ in range(2):
            recorder = self.attach(process)
            self.assertNotEqual(self.caught(process), before)
            self.assertEqual(self.tell(process, 'signals'), [5, 5])
            self.assertNotEqual(self.caught(process), before)
            self.detach(process, recorder)
            self.assertEqual(self.caught(process), before)
            self.assertEqual(self.tell(process, 'signals'), [5, 5])

    def execute(self, process):
        """Has the process become another program."""
        process.stdin.write('exec\n')
        name = pathlib.Path(f'/proc/{process.pid}/comm')
        wait_for(lambda: name.read_text() == 'cat\n', 'not executed')
        process.stdin.write('still there\n')
        self.assertEqual(process.stdout.readline(), 'still there\n')

    def test_a_program_that_is_executed(self):
        """It is recorded to its end, in the same trace."""
        process = self.start(program('counted'))
        recorder = self.attach(process)
        self.execute(process)
        process.stdin.close()
        self.assertEqual(process.wait(PATIENCE), 0)
        self.assertEqual(recorder.wait(PATIENCE), 0)
        self.assertNotIn('warning', recorder.stderr.read())
        self.assertEqual(analyze('info', self.trace)['end_reason'], 'exited')
        modules = [module['path'] for module in analyze('info', self.trace)['module_list']]
        self.assertTrue(any(path.endswith('/cat') for path in modules), modules)
        self.assertEqual(analyze('verify', self.trace)['problems'], [])

    def test_detach_of_a_program_that_was_executed(self):
        process = self.start(program('counted'))
        recorder = self.attach(process)
        self.execute(process)
        self.detach(process, recorder)
        process.stdin.write('and here\n')
        self.assertEqual(process.stdout.readline(), 'and here\n')

    def test_a_program_that_is_executed_slowly(self):
        """While its arguments are copied, it has no environment yet that names the recorder."""
        for number in range(4):
            self.trace = self.directory / f'{number}.bin'
            process = self.start(sys.executable, '-c', EXECUTING)
            recorder = self.attach(process)
            process.stdin.write('\n')
            process.stdin.flush()
            self.assertEqual(process.wait(PATIENCE), 0)
            self.assertEqual(recorder.wait(PATIENCE), 0)
            self.assertEqual(analyze('info', self.trace)['end_reason'], 'exited')

    def test_a_thread_confines_itself(self):
        """From then on a system call of the recorder in it would end it."""
        process = self.start(program('counted'))
        recorder = self.attach(process)
        self.tell(process, 'keep 5')
        self.tell(process, 'confine')
        self.tell(process, 'keep 300')
        self.detach(process, recorder)
        self.assertNotEqual(self.tell(process, 'keep 5'), [])
        self.assertEqual(analyze('info', self.trace)['lost_events'], 0)
        sizes = [event['size'] for event in analyze('events', self.trace)
                 if event['api'] == 'malloc']
        self.assertEqual(sizes.count(104), 305)

    def test_an_attempt_to_execute_a_program_fails(self):
        process = self.start(program('counted'))
        recorder = self.attach(process)
        self.tell(process, 'fail')
        self.tell(process, 'calls 2')
        self.detach(process, recorder)
        self.assertTrue(analyze('leaks', self.trace)['certain'])


class Trees(Attach):
    def start_tree(self):
        """A process with four descendants, and their ids."""
        process = subprocess.Popen([sys.executable, '-c', TREE], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(self.kill_tree, process)
        self.assertEqual(process.stdout.readline(), 'ready\n')
        return process, self.descendants(process.pid, 4)

    @staticmethod
    def kill_tree(process):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    @staticmethod
    def children(pid):
        listed = pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text(encoding='ascii')
        return [int(word) for word in listed.split()]

    def descendants(self, pid, count):
        found, deadline = [], time.monotonic() + PATIENCE
        while len(found) < count and time.monotonic() < deadline:
            found, queue = [], [pid]
            while queue:
                queue += (children := self.children(queue.pop()))
                found += children
        self.assertEqual(len(found), count)
        return found

    def check_left(self, pids):
        """They run, without the library."""
        for pid in pids:
            maps = pathlib.Path(f'/proc/{pid}/maps').read_text(encoding='utf-8')
            self.assertNotIn('ttd', maps)

    def trace_of(self, pid):
        """The trace of a descendant."""
        return next(self.trace.parent.glob(f'{self.trace.name}.{pid}.*'))

    def test_descendants(self):
        process, pids = self.start_tree()
        recorder = self.attach(process, '--children')
        process.stdin.write('\n')
        process.stdin.flush()
        later = int(process.stdout.readline())
        time.sleep(0.5)
        said = self.detach(process, recorder)
        self.assertEqual(said, f"ttdrecord: the traces are '{self.trace}' and '{self.trace}.PID.NAME'; "
                               f"see 'ttdanalyze leaks --group {self.trace}'\n")
        traces = analyze('info', '--group', self.trace)['traces']
        self.assertEqual({trace['process_id'] for trace in traces}, {process.pid, *pids, later})
        for trace in traces:
            self.assertEqual((trace['lost_events'], trace['end_reason']), (0, 'detached'))
            if trace['process_id'] in pids:
                self.assertGreater(trace['events'], 50)
        self.check_left([process.pid, *pids, later])

    def test_interrupt(self):
        """All are left when only the command gets the signal."""
        process, pids = self.start_tree()
        recorder = subprocess.Popen([RECORDER, 'attach', str(process.pid), '--children', '-o',
                                     str(self.trace)], stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, recorder)
        self.assertEqual(recorder.stderr.readline(),
                         f"ttdrecord: attached to process {process.pid} and 4 of its 4 descendants; "
                         f"^C or 'ttdrecord detach {process.pid}' ends it\n")
        recorder.send_signal(signal.SIGINT)
        self.assertEqual(recorder.wait(PATIENCE), 0)
        for pid in pids:
            self.assertEqual(analyze('info', self.trace_of(pid))['end_reason'], 'detached')
        self.check_left([process.pid, *pids])

    def test_one_is_recorded_already(self):
        process, pids = self.start_tree()
        other = subprocess.Popen([RECORDER, 'attach', '-o', f'{self.trace}.other', str(pids[0])],
                                 stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, other)
        self.assertIn('attached to', other.stderr.readline())
        recorder = subprocess.Popen([RECORDER, 'attach', '-o', str(self.trace), '--children',
                                     str(process.pid)], stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, recorder)
        self.assertEqual(recorder.stderr.readline(),
                         f'ttdrecord: cannot attach to process {pids[0]}: process {other.pid} '
                         'records it already\n')
        self.assertIn('and 3 of its 4 descendants;', recorder.stderr.readline())
        self.detach(process, recorder)
        self.check_left([process.pid, *pids[1:]])

    def test_the_recorder_is_killed(self):
        """Its recorders leave the processes."""
        process, pids = self.start_tree()
        recorder = self.attach(process, '--children')
        recorder.kill()
        recorder.wait()
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and any(
                'ttd' in pathlib.Path(f'/proc/{pid}/maps').read_text(encoding='utf-8')
                for pid in (process.pid, *pids)):
            time.sleep(0.05)
        self.check_left([process.pid, *pids])


class Moments(Attach):

    def test_free_memory_from_before_holds_nothing_for_certain(self):
        process = self.start(self.compile('linked', LINKED),
                             env={**os.environ, 'MALLOC_PERTURB_': '0'})
        recorder = self.attach(process)
        process.stdin.close()
        self.assertEqual(recorder.wait(PATIENCE), 0)
        classes = {}
        for group in analyze('leaks', self.trace, '--show', 'all', '--limit', '0')['groups']:
            self.assertEqual([frame['function'] for frame in group['stack']], [FOUND])
            classes[group['class']] = group['blocks'], group['bytes']
        self.assertEqual(classes['definitely_lost'], (40, 40 * 104))
        self.assertEqual(classes['possibly_lost'], (1, 200))

    def test_a_thread_allocates_at_that_moment(self):
        """Its blocks may be listed as live or not, so that nothing is certain."""
        for command, is_certain in ('calls 2', True), ('lock', False):
            process = self.start(program('counted'))
            self.tell(process, command)
            self.detach(process, self.attach(process))
            leaks = analyze('leaks', self.trace)
            self.assertEqual(leaks['certain'], is_certain, leaks)
            unrecorded = [entry['value'] for entry in analyze('info', self.trace)['metadata']
                          if entry['key'] == 'unrecorded']
            self.assertEqual(unrecorded == [], is_certain, unrecorded)


    def test_threads_that_are_in_calls_nearly_always(self):
        """They are waited for; those that are not seen outside make nothing certain. No call that
        had begun before is taken for an error of the program."""
        calling = self.compile('calling', CALLING)
        for way in '0', '1', '2':
            process = self.start(calling, way)
            for _ in range(3):
                recorder = self.attach(process)
                process.stdin.write('r')
                process.stdin.flush()
                self.detach(process, recorder)
                process.stdin.write('g')
                process.stdin.flush()
                errors = analyze('errors', self.trace)
                self.assertEqual(errors['findings'], [])
                unrecorded = [entry['value'] for entry in analyze('info', self.trace)['metadata']
                              if entry['key'] == 'unrecorded']
                self.assertEqual(errors['certain'], unrecorded == [], (way, unrecorded))
                self.trace.unlink()

    def assert_no_findings(self, process, times, seconds, *options):
        """Attaches again and again, for so long. No trace has a finding; where the recorder got too
        little of the processors, and calls were lost, none is certain."""
        for _ in range(times):
            recorder = self.attach(process, *options)
            time.sleep(seconds)
            self.detach(process, recorder)
            has_losses = analyze('info', self.trace)['lost_events'] != 0
            self.assertEqual([finding for finding in analyze('errors', self.trace)['findings']
                              if finding['certain'] or not has_losses], [])
            self.trace.unlink()

    def test_calls_at_both_moments(self):
        """One that had begun before may return a block that others have released since; and one
        that goes on at the end, a block whose release is not recorded."""
        process = self.start(self.compile('contended', CONTENDED), env={**os.environ, **ONE_ARENA})
        self.assert_no_findings(process, 12, 0.1, '--no-snapshot')

    def test_threads_that_begin_before_the_end(self):
        """Their calls are recorded, though the recorder has not looked for them meanwhile."""
        process = self.start(self.compile('starting', STARTING))
        self.assert_no_findings(process, 6, 0.1)

    def test_calls_of_jemalloc_at_both_moments(self):
        """Its functions end by jumps to others, which have no name and end by jumps as well."""
        contended = self.compile('contended', CONTENDED.replace('& 63) == 0', '& 1) == 0'))
        process = self.start(contended, env=dict(os.environ, LD_PRELOAD='libjemalloc.so.2',
                                                 MALLOC_CONF='narenas:1,tcache:false'))
        if 'jemalloc' not in pathlib.Path(f'/proc/{process.pid}/maps').read_text():
            self.skipTest('no jemalloc here')
        self.assert_no_findings(process, 12, 0.05, '--no-snapshot')

    def test_a_detach_while_it_attaches(self):
        """It takes nothing away from a recorder that lives."""
        process = self.start(self.compile('contended', CONTENDED), env={**os.environ, **ONE_ARENA})
        for _ in range(15):
            recorder = subprocess.Popen([RECORDER, 'attach', '-q', '--no-snapshot', '-o',
                                         str(self.trace), str(process.pid)],
                                        stderr=subprocess.PIPE, text=True)
            self.addCleanup(self.end, recorder)
            while recorder.poll() is None:
                said = self.ask('detach', process)
                self.assertNotIn('remains', said.stdout + said.stderr)
            self.assertEqual((recorder.returncode, recorder.stderr.read()), (0, ''))
            self.assertIsNone(process.poll())

    def test_no_snapshot_while_the_process_is_let_go(self):
        """It would show the memory of calls that are not recorded any more: blocks that are held
        would be lost."""
        process = self.start(self.compile('holding', HOLDING))
        for _ in range(2):
            recorder = self.attach(process, '--snapshot-every=0.01')
            time.sleep(0.1)
            self.detach(process, recorder)
            leaks = analyze('leaks', self.trace)
            self.assertEqual(leaks['snapshot']['reason'], 'requested')
            self.assertEqual(leaks['classes']['definitely_lost']['blocks'], 0)
            self.trace.unlink()

    def test_a_call_without_a_frame_of_its_function(self):
        """That ends by a jump to another one, or to a virtual one. The thread is in this one, or in
        the vDSO, which is no file; and its block is another one's meanwhile."""
        for is_virtual, reads_clock in (0, 0), (0, 1), (1, 0), (1, 1):
            process = self.start(self.compile(f'waiting{is_virtual}{reads_clock}', WAITING, '-O2',
                                              '-fno-devirtualize-speculatively',
                                              f'-DIS_VIRTUAL={is_virtual}',
                                              f'-DREADS_CLOCK={reads_clock}'))
            recorder = self.attach(process, '--no-snapshot')
            process.stdin.close()
            self.assertEqual(recorder.wait(PATIENCE), 0)
            errors = analyze('errors', self.trace)
            self.assertEqual((errors['findings'], errors['certain']), ([], False))
            self.trace.unlink()

    def test_a_call_is_left_by_a_jump(self):
        """Its frames are on the stack, among those of what goes on deeper."""
        process = self.start(program('counted'))
        self.tell(process, 'calls 3')
        before = self.image(process)
        recorder = self.attach(process)
        self.assertEqual(self.tell(process, 'jump'), [0])
        for _ in range(2):
            self.assertNotIn('warning', self.detach(process, recorder))
            self.assertEqual(self.image(process)[:2], before[:2])
            recorder = self.attach(process)
            self.assertNotEqual(self.tell(process, 'calls 3'), [])
            self.assertEqual(self.tell(process, 'jump'), [0])
        self.detach(process, recorder)


class Families(Attach):

    def test_children_that_fork(self):
        """They are recorded, go on, and are as they were when the recorder lets go."""
        process = self.start(program('counted'))
        recorder = self.attach(process)
        child, = self.tell(process, 'fork')
        wait_for(lambda: 'events' in self.ask('status', Pid(child)).stdout, 'not recorded')
        self.assertIn(f'.{child}.', self.ask('status', Pid(child)).stdout)
        said = self.detach(process, recorder)
        self.assertNotIn('warning', said)
        maps = pathlib.Path(f'/proc/{child}/maps').read_text()
        self.assertNotIn('ttdrecord', maps)
        os.kill(child, signal.SIGTERM)
        self.assertEqual(self.tell(process, 'wait'), [signal.SIGTERM])
        trace, = self.directory.glob(f'trace.bin.{child}.*')
        self.assertEqual(analyze('verify', trace)['problems'], [])

    def test_child_that_has_not_allocated_when_the_others_have_ended(self):
        process = self.start(self.compile('daemon', DAEMON))
        recorder = self.attach(process)
        process.stdin.close()
        self.assertEqual(recorder.wait(PATIENCE), 0)
        self.check_daemon()

    def test_children_that_execute_programs(self):
        process = self.start(program('counted'))
        recorder = self.attach(process)
        self.assertEqual(self.tell(process, 'spawn'), [0])
        self.assertEqual(self.tell(process, 'spawn'), [0])
        said = self.detach(process, recorder)
        self.assertNotIn('warning', said)
        self.assertIn('2 child processes recorded', said)
        children = list(self.directory.glob('trace.bin.*.true'))
        self.assertEqual(len(children), 2)
        for child in children:
            self.assertEqual(analyze('verify', child)['problems'], [])

    def test_no_children(self):
        process = self.start(program('counted'))
        recorder = self.attach(process, '--no-children')
        self.assertEqual(self.tell(process, 'spawn'), [0])
        self.detach(process, recorder)
        self.assertEqual(list(self.directory.glob('trace.bin.*')), [])


class Allocators(Calls):
    """The calls of an allocator that takes the place of the C library's."""

    def start(self, *command, **others):
        process = super().start(*command, **others,
                                env=dict(os.environ, LD_PRELOAD='libjemalloc.so.2'))
        if 'jemalloc' not in pathlib.Path(f'/proc/{process.pid}/maps').read_text():
            self.skipTest('no jemalloc here')
        return process

    def test_blocks_from_before_are_known(self):
        """They are not, and the trace says so."""
        process = self.start(program('counted'))
        self.tell(process, 'keep 40')
        self.detach(process, self.attach(process))
        metadata = {entry['key']: entry['value'] for entry in
                    analyze('info', self.trace)['metadata']}
        self.assertIn("its allocator is not the GNU C library's", metadata['unrecorded'])


class Operators(Attach):

    def test_operators_beside_those_of_the_allocator(self):
        """mimalloc's operators new are malloc() by another name, and it leaves operators delete with
        std::nothrow to the C++ library: their calls match. Its realloc() ends in another function
        that is known: the call is one."""
        process = self.start(self.compile('quiet', QUIET_OPERATORS),
                             env=dict(os.environ, LD_PRELOAD='libmimalloc.so.2'))
        if 'mimalloc' not in pathlib.Path(f'/proc/{process.pid}/maps').read_text():
            self.skipTest('no mimalloc here')
        recorder = self.attach(process)
        process.stdin.close()
        self.assertEqual(recorder.wait(PATIENCE), 0)
        errors = analyze('errors', self.trace)
        self.assertEqual((errors['findings'], errors['certain']), ([], True))
        self.assertEqual(len(analyze('events', self.trace)), 11)


class Pid:
    """Any process, which need not be a child of the test."""

    def __init__(self, pid):
        self.pid = pid


class Surroundings(Calls):
    """Processes of which the recorder sees less than others do."""

    test_all_calls_are_recorded = None
    for name in dir(Calls):
        if name.startswith('test_'):
            locals()[name] = None

    def inner(self, *command):
        """The only child of a command, which is the program that counts."""
        outer = subprocess.Popen([*command, program('counted')], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True, bufsize=1)
        self.addCleanup(self.end, outer)
        if outer.stdout.readline() != 'ready\n':
            self.skipTest('there can be no other namespace here')
        with open(f'/proc/{outer.pid}/task/{outer.pid}/children') as children:
            pid, = [int(pid) for pid in children.read().split()]
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        return types.SimpleNamespace(pid=pid, stdin=outer.stdin, stdout=outer.stdout)

    @unittest.skipUnless(os.geteuid() == 0, 'only root has other namespaces')
    def test_namespaces(self):
        """Ids of the process and its threads are others inside."""
        for options in ('--pid',), ('--pid', '--mount'), ('--user', '--map-root-user', '--pid'):
            process = self.inner('unshare', *options, '--fork')
            before = self.tell(process, 'calls 50')
            for _ in range(2):
                recorder = self.attach(process)
                start, after = before, self.tell(process, 'calls 700')
                self.detach(process, recorder)
                self.assertEqual(self.counts(), [b - a for a, b in zip(start, after)])
                before = after
            maps = pathlib.Path(f'/proc/{process.pid}/maps').read_text()
            self.assertNotIn('ttdrecord', maps)

    @unittest.skipUnless(os.geteuid() == 0, 'only root may suspend filters')
    def test_confined(self):
        """A filter that ends the process for the system calls which the recorder makes it make."""
        process = self.start(sys.executable, '-c', CONFINED)
        for _ in range(2):
            recorder = self.attach(process)
            self.assertEqual(self.tell(process, ''), [7])
            self.detach(process, recorder)
            sizes = [event.get('size') for event in analyze('events', self.trace)
                     if event['api'] != 'other']
            self.assertIn(12345, sizes)
        maps = pathlib.Path(f'/proc/{process.pid}/maps').read_text()
        self.assertNotIn('ttdrecord', maps)
        process.stdin.close()
        self.assertEqual(process.wait(PATIENCE), 0)


if __name__ == '__main__':
    unittest.main()
