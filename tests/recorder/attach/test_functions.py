# SPDX-License-Identifier: MIT
"""The functions that are recorded in a process that runs: the same as in one that is started."""

import os
import pathlib
import subprocess
import sys
import types
import unittest

from attaching import Attach
from support import PATIENCE, Recording, analyze, program

for folder in 'calls', 'collect':
    sys.path.append(str(pathlib.Path(__file__).parent.parent / folder))
import test_allocators  # noqa: E402
import test_conformance  # noqa: E402
import test_own_functions  # noqa: E402

# Threads in which new fails, all the time, and which release blocks of before by their sizes.
THROWING = r"""
#include <atomic>
#include <cstdio>
#include <new>
#include <sys/prctl.h>
#include <thread>
#include <unistd.h>
static std::atomic<bool> is_over;
static void fail()
{
    volatile std::size_t size = ~std::size_t(0) / 4;
    while (!is_over)
        try {
            ::operator delete(::operator new(size));
        } catch (std::bad_alloc &) {
        }
}
int main()
{
    char byte;
    std::thread threads[] = {std::thread(fail), std::thread(fail)};
    void *block = ::operator new(101);
    prctl(PR_SET_PTRACER, -1UL, 0, 0, 0);
    std::puts("ready");
    std::fflush(stdout);
    while (read(0, &byte, 1) > 0) {
        ::operator delete(block, 101);
        block = ::operator new(101);
        std::puts("0");
        std::fflush(stdout);
    }
    is_over = true;
    for (auto &thread : threads)
        thread.join();
    ::operator delete(block, 101);
    return 5;
}
"""

# Blocks that the C++ runtime acquires when it starts, for exceptions when there is no memory.
EMERGENCY = 72704


def is_within(few, many):
    """Whether a list is another one without some of its elements."""
    rest = iter(many)
    return all(element in rest for element in few)


class Attached(Attach):

    def record(self, *command, environment=None, **_):
        """Attaches to the program before its calls, and records it to its end."""
        process = self.start(*command,
                             env=dict(os.environ, UNTIL_TOLD='', **(environment or {})))
        recorder = self.attach(process)
        process.stdin.write('on\n')
        output, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual(recorder.wait(PATIENCE), 0)
        said = ''.join(line for line in recorder.stderr if 'warning' in line)
        return types.SimpleNamespace(returncode=process.returncode, stdout=output.encode(),
                                     stderr=said.encode())


class Allocators(Attached, test_allocators.Allocators):
    """Functions that only one allocator has."""

    # What takes the place of symbols at the start is not done when a recorder is attached.
    for name in dir(test_allocators.Allocators):
        if name.startswith('test_') and name not in ('test_jemalloc', 'test_tcmalloc',
                                                     'test_mimalloc'):
            locals()[name] = None


    def test_mimalloc(self):
        """Calls within its library that go through its table of functions are recorded besides."""
        self.result = self.record(self.build('MIMALLOC', '-l:libmimalloc.so.2'),
                                  environment={'NUMBER': '7'})
        told = {}
        for line in self.result.stdout.decode().splitlines():
            who, action, base, block, size, done = line.split()
            told.setdefault(who, []).append(
                (action, int(base, 16), int(block, 16), int(size), int(done)))
        recorded = test_allocators.calls_of(analyze('events', self.trace), ())
        for thread in '0123':
            self.assertTrue(any(is_within(told[thread], calls) for calls in recorded.values()))
        self.assert_sound()
        self.assertEqual(analyze('errors', self.trace)['findings'], [])
        self.assertEqual(analyze('info', self.trace)['lost_events'], 0)


class Prefixed(Attached):
    """Functions that the program has linked in, under names of its own."""

    build, build_jemalloc = test_own_functions.Programs.build, test_own_functions.Patched.build_jemalloc
    check_jemalloc = test_own_functions.Patched.check_jemalloc

    def test_jemalloc(self):
        for path in self.build_jemalloc():
            self.assertEqual(self.record(path).returncode, 0)
            self.check_jemalloc()
            self.assertEqual(analyze('errors', self.trace)['findings'], [])


class Operators(Attached):

    def test_every_api(self):
        """Each function of C and each operator, failures and an exception among them."""
        self.assertEqual(self.record(program('every_api')).returncode, 0)
        attached = self.calls(self.trace)
        findings = analyze('errors', self.trace)['findings']
        self.trace.unlink()
        Recording.record(self, program('every_api'))
        self.assertEqual(attached, self.calls(self.trace)[-len(attached):])
        self.assertEqual([finding['kind'] for finding in findings],
                         [finding['kind'] for finding in analyze('errors', self.trace)['findings']])
        self.assertEqual(len(set(api for api, *_ in attached)), 28)

    def test_frames(self):
        """Stacks have none of hooks: the C++ runtime's operators call the program's."""
        self.assertEqual(self.record(program('own_operators')).returncode, 0)
        rows = analyze('query', self.trace, 'SELECT function, module FROM frames')['rows']
        self.assertIn('operator new(unsigned long)', [row['function'] for row in rows])
        self.assertNotIn('[ttdrecord]', [row['module'] for row in rows])

    def test_exceptions(self):
        """They pass hooks also after these were taken away from the functions. The sizes of blocks
        from before are not those that were asked for."""
        path = self.directory / 'throwing'
        (self.directory / 'throwing.cpp').write_text(THROWING)
        subprocess.run([*os.environ['COMPILER_CXX'].split(), '-O1', '-fno-builtin', '-w',
                        '-fsized-deallocation', '-pthread', '-o', path,
                        self.directory / 'throwing.cpp'], check=True)
        process = self.start(path)
        for _ in range(6):
            recorder = self.attach(process)
            process.stdin.write('\n')
            self.assertEqual(process.stdout.readline(), '0\n')
            self.assertNotIn('warning', self.detach(process, recorder))
            self.assertEqual({finding['kind'] for finding in
                              analyze('errors', self.trace)['findings']}, {'failed-call'})
        process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 5)

    @staticmethod
    def calls(trace):
        """But functions that not every C library has; it has one function of two names."""
        return [(event['api'].replace('memalign', 'aligned_alloc'), event.get('size'),
                 event['result'],
                 [number for number in event['parameters'] if int(number, 0) < 1 << 32])
                for event in analyze('events', trace, '--parameters')
                if event['api'] not in ('other', 'free', 'cfree', 'free_sized',
                                        'free_aligned_sized') and event.get('size') != EMERGENCY]


class Live(Attached, test_conformance.Conformance):
    """The live API: each call, as the table has it."""
    test_table = test_runs = None

    def test_conforms(self):
        self.check()


del Attached

if __name__ == '__main__':
    unittest.main()
