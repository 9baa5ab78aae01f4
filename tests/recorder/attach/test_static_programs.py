# SPDX-License-Identifier: MIT
"""Programs that are linked statically: attached to while they run, and recorded from their start."""

import ctypes
import os
import pathlib
import shlex
import signal
import subprocess
import time
import unittest

from attaching import CONTENDED, DAEMON, ONE_ARENA, Attach
from support import PATIENCE, RECORDER, analyze, program

STATIC = 'counted_static', 'counted_static_pie'

# Prints properties that a recorder may change: arguments, environment, open descriptors, signals, its tracer.
OWN = r"""
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern char **environ;
int main(int count, char **arguments)
{
    char line[256];
    for (int i = 1; i < count; i++)
        puts(arguments[i]);
    for (char **variable = environ; *variable; variable++)
        if (strncmp(*variable, "_=", 2) != 0)
            puts(*variable);
    for (int i = 0; i < 64; i++)
        if (fcntl(i, F_GETFD) >= 0)
            printf("%d\n", i);
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        if (strncmp(line, "SigBlk", 6) == 0 || strncmp(line, "SigIgn", 6) == 0 ||
            strncmp(line, "ShdPnd", 6) == 0 || strncmp(line, "TracerPid", 9) == 0)
            fputs(line, stdout);
    return 0;
}
"""


# Its thread-local storage lies at the program break, in front of blocks.
LOCAL = r"""
#include <cstdlib>
static thread_local void *volatile held[1 << 18];
int main()
{
    held[0] = std::calloc(1, 4321);
}
"""


# The operator delete with a size lies behind the one without, and jumps to it.
DELETES = r"""
#include <new>
static void *volatile block;
int main()
{
    block = ::operator new(1234);
    ::operator delete(block);
    block = ::operator new(1234);
    ::operator delete(block, 1234);
}
"""


def metadata(info):
    return {row['key']: row['value'] for row in info['metadata']}


# Cases of tests/recorder/reach, and how many blocks of each are definitely lost.
REACH = {'pointers': {'many_lost': 5000},
         'places': {'program_break_given_back': 0, 'program_break_taken_over': 40},
         'threads': {'joined_stack_of_many': 512, 'joined_specific': 1,
                     'ended_result_not_joined': 0}}


def at_fixed_addresses():
    """The heap of a static program may be where the ends of texts in its data seem to point: three
    letters are an address."""
    ctypes.CDLL(None).personality(0x0040000)


class Static(Attach):
    """The common parts of both ways of recording."""

    def counts(self, trace=None):
        """Calls in the trace that the program's three threads made, as it counts them itself."""
        events = analyze('events', trace or self.trace, '--include', 'make_calls')
        kinds = [event['action'] for event in events]
        return [kinds.count('Alloc'), kinds.count('ReAlloc'), kinds.count('Free')]

    def assert_whole(self, failed=0):
        """But for calls that failed as they had to."""
        info = analyze('info', self.trace)
        self.assertEqual((info['lost_events'], info['failed']), (0, failed))
        self.assertEqual(analyze('verify', self.trace)['problems'], [])
        kinds = {finding['kind'] for finding in analyze('errors', self.trace)['findings']}
        self.assertEqual(kinds, {'failed-call'} if failed else set())
        return info


    def forked(self, process):
        """A child that has begun to allocate, and is recorded."""
        child, = self.tell(process, 'fork')
        deadline = time.monotonic() + PATIENCE
        while not list(self.directory.glob(f'{self.trace.name}.{child}*')):
            self.assertLess(time.monotonic(), deadline, 'not recorded')
            time.sleep(0.01)
        return child


class Attached(Static):

    def test_all_calls_are_recorded(self):
        for name in STATIC:
            process = self.start(program(name))
            before = self.tell(process, 'calls 50')
            recorder = self.attach(process)
            after = self.tell(process, 'calls 300')
            self.detach(process, recorder)
            self.assertEqual(self.counts(), [b - a for a, b in zip(before, after)])
            self.tell(process, 'calls 100')  # and none of these
            info = self.assert_whole()
            self.assertTrue(info['trace']['attached'])
            self.assertIn('its C library is linked statically', metadata(info)['unrecorded'])

    def test_calls_at_both_moments(self):
        """A call that had begun before may return a block that others have released since: frames
        are found by the file of the program, and if there is none, each thread may be in a call."""
        for has_file in True, False:
            contended = self.compile('contended', CONTENDED, '-static')
            process = self.start(contended, env={**os.environ, **ONE_ARENA})
            if not has_file:
                contended.unlink()
            for _ in range(8):
                recorder = self.attach(process, '--no-snapshot')
                time.sleep(0.1)
                self.detach(process, recorder)
                self.assertEqual(analyze('errors', self.trace)['findings'], [], has_file)

    def test_nothing_is_left(self):
        for name in STATIC:
            process = self.start(program(name))
            self.tell(process, 'calls 100')
            before = self.image(process)
            for _ in range(2):
                recorder = self.attach(process)
                self.assertNotEqual(self.image(process)[1], before[1])
                self.tell(process, 'calls 100')
                self.detach(process, recorder)
                *same, dirty = self.image(process)
                self.assertEqual(same, list(before[:2]))
                self.assertLessEqual(dirty, before[2] + 4)

    def test_leaks_at_the_exit(self):
        for name in STATIC:
            process = self.start(program(name))
            recorder = self.attach(process)
            self.tell(process, 'lose 7')
            self.tell(process, 'keep 5')
            process.stdin.write('exit\n')
            self.assertEqual((process.wait(), recorder.wait()), (3, 0))
            leaks = analyze('leaks', self.trace)
            self.assertEqual(leaks['snapshot']['reason'], 'exit')
            self.assertIn((7, 2100), [(group['blocks'], group['bytes']) for group in leaks['groups']])
            self.assert_whole()

    def test_a_signal_of_which_it_dies(self):
        process = self.start(program('counted_static'))
        recorder = self.attach(process)
        self.tell(process, 'calls 5')
        process.stdin.write('crash\n')
        self.assertEqual((process.wait(), recorder.wait()), (-signal.SIGSEGV, 0))
        self.assertEqual(analyze('leaks', self.trace)['snapshot']['reason'], 'signal')

    def test_children(self):
        """One that forks goes on being recorded; so does the program that another one executes."""
        process = self.start(program('counted_static'))
        recorder = self.attach(process)
        child = self.forked(process)
        self.assertEqual(self.tell(process, 'calls 10')[0], 120)
        os.kill(child, signal.SIGKILL)
        self.tell(process, 'wait')
        self.assertEqual(self.tell(process, 'spawn'), [0])
        self.detach(process, recorder)
        self.assertEqual(self.counts(), [120, 30, 120])
        children = sorted(self.directory.glob(self.trace.name + '.*'))
        commands = [metadata(analyze('info', path))['command'] for path in children]
        self.assertEqual(sorted(os.path.basename(command.split()[0]) for command in commands),
                         ['counted_static', 'true'])


class Launched(Static):

    def launch(self, *command, **others):
        process = subprocess.Popen([RECORDER, '-q', '-o', str(self.trace), '--', *command],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, bufsize=1, **others)
        self.addCleanup(self.end, process)
        self.assertEqual(process.stdout.readline(), 'ready\n')
        return process

    def finish(self, process, command='exit', status=3):
        process.stdin.write(command + '\n')
        self.assertEqual((process.wait(PATIENCE), process.stderr.read()), (status, ''))

    def test_all_calls_are_recorded(self):
        """From the first one on; the lost blocks are known for certain."""
        for name in STATIC:
            process = self.launch(program(name))
            counts = self.tell(process, 'calls 200')
            self.tell(process, 'lose 7')
            self.tell(process, 'keep 5')
            self.finish(process)
            self.assertEqual(self.counts(), counts)
            info = self.assert_whole()
            self.assertFalse(info['trace']['attached'])
            self.assertNotIn('unrecorded', metadata(info))
            leaks = self.assert_sound()
            self.assertEqual(leaks['snapshot']['reason'], 'exit')
            self.assertEqual(leaks['classes']['definitely_lost'], {'blocks': 7, 'bytes': 2100})

    def test_exceptions(self):
        for name in 'thrower_static', 'thrower_static_pie':
            result = self.record(program(name))
            self.assertEqual((result.returncode, result.stderr), (0, b''))
            self.assertEqual(result.stdout, b'80 200\n')
            events = analyze('events', self.trace)
            apis = [event['api'] for event in events
                    if event['action'] == 'Alloc' and event['size'] == 1000]
            self.assertEqual(apis, ['operator new[]'] * 200)
            self.assert_whole(failed=40)

    def test_children(self):
        """A child that forks, one that executes a program, and a program in the place of this."""
        process = self.launch(program('counted_static'))
        child = self.forked(process)
        os.kill(child, signal.SIGKILL)
        self.tell(process, 'wait')
        self.assertEqual(self.tell(process, 'spawn'), [0])
        process.stdin.write('exec\n')
        process.stdin.close()
        self.assertEqual((process.wait(PATIENCE), process.stderr.read()), (0, ''))
        traces = sorted(self.directory.glob(self.trace.name + '*'))
        commands = [metadata(analyze('info', path))['command'] for path in traces]
        self.assertEqual(sorted(os.path.basename(command.split()[0]) for command in commands),
                         ['counted_static', 'counted_static', 'true'])
        paths = {module['path'] for module in analyze('info', self.trace)['module_list']}
        self.assertTrue(any(os.path.basename(path) == 'cat' for path in paths), paths)

    def test_ends(self):
        for command, status, reason in (('crash', -signal.SIGSEGV, 'signal'),
                                        ('abort', -signal.SIGABRT, 'signal'),
                                        ('exit', 3, 'exit')):
            self.finish(self.launch(program('counted_static_pie')), command, status)
            self.assertEqual(analyze('leaks', self.trace)['snapshot']['reason'], reason)

    def test_script(self):
        """Its interpreter is linked statically."""
        script = self.directory / 'script'
        script.write_text(f'#! {program("thrower_static")}\n')
        script.chmod(0o755)
        result = self.record(script)
        self.assertEqual((result.returncode, result.stdout), (0, b'80 200\n'), result.stderr)
        self.assert_whole(failed=40)

    def test_child_that_has_not_allocated_when_the_others_have_ended(self):
        result = self.record(self.compile('daemon', DAEMON, '-static'), stdin=subprocess.DEVNULL)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.check_daemon()

    def test_a_function_that_the_next_one_jumps_to(self):
        result = self.record(self.compile('deletes', DELETES, '-static'))
        self.assertEqual((result.returncode, result.stderr), (0, b''))
        apis = [event['api'] for event in analyze('events', self.trace)]
        self.assertEqual(apis[-4:], ['operator new', 'operator delete', 'operator new',
                                     'operator delete(size)'])
        self.assert_whole()

    def test_large_thread_local_storage(self):
        self.record(self.compile('local', LOCAL, '-static'))
        for kinds, count in ('reachable', 1), ('stack', 0):
            groups = analyze('leaks', self.trace, '--show', kinds, '--limit', '0')['groups']
            self.assertEqual([group['bytes'] for group in groups].count(4321), count, kinds)

    def test_reach(self):
        """Data of the C library are found in the program: lists of threads, and the arena."""
        sources = pathlib.Path(os.environ['SOURCES']).parent / 'reach'
        for name, cases in REACH.items():
            subprocess.run(['gcc', '-static', '-fno-builtin', '-D_GNU_SOURCE', '-w', '-pthread',
                            '-o', self.directory / name, sources / f'{name}.c',
                            sources / 'case.c'], check=True)
            for case, blocks in cases.items():
                self.record(self.directory / name, case, preexec_fn=at_fixed_addresses)
                leaks = analyze('leaks', self.trace)
                self.assertTrue(leaks['certain'])
                self.assertEqual(leaks['classes']['definitely_lost']['blocks'], blocks, case)

    def test_as_without_a_recorder(self):
        """Its environment, descriptors and signals are its own, and no tracer is left."""
        source, path = self.directory / 'own.c', self.directory / 'own'
        source.write_text(OWN)
        subprocess.run(['gcc', '-static', '-o', path, source], check=True)
        command = ['sh', '-c', f'trap "" USR2; exec {shlex.quote(str(path))} a b']
        plain = subprocess.run(command, capture_output=True, close_fds=True)
        self.assertEqual(plain.returncode, 0, plain.stderr)
        recorded = ['sh', '-c', f'trap "" USR2; exec {RECORDER} -q -o {self.trace} -- '
                    f'{shlex.quote(str(path))} a b']
        result = subprocess.run(recorded, capture_output=True)
        self.assertEqual((result.returncode, result.stdout, result.stderr),
                         (0, plain.stdout, b''))
        self.assertTrue(pathlib.Path(self.trace).exists())


if __name__ == '__main__':
    unittest.main()
