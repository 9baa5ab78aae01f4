# SPDX-License-Identifier: MIT
"""The cost of recording a child that lives for a moment, in pages that it touches and in calls of
the system: unlike times these hardly depend on what else runs. What does, such as how many traces
are open at once, can only add to them, so the least of several measurements counts."""

import os
import subprocess
import unittest

from support import RECORDER, Recording, program

FEW, MANY = 10, 60
MEASUREMENTS = 12

FORKS = """
import os, sys, ssl, sqlite3
for i in range(int(sys.argv[1])):
    child = os.fork()
    if child == 0:
        kept = [str(i) for i in range(100)]
        os._exit(0)
    os.waitpid(child, 0)
"""


def page_faults(*command):
    """Of the command and of all that it has waited for."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise AssertionError(f'{command} failed')
    return usage.ru_minflt


def loop(child, count):
    return ['sh', '-c', f'i=0; while [ $i -lt {count} ]; do {child}; i=$((i+1)); done']


class Children(Recording):
    def added(self, parent, *options):
        """Page faults a child that are added by recording it, in its process and elsewhere; the
        parent is a function of the number of children."""
        recorder = [RECORDER, '-q', '-o', str(self.trace), *options, '--']
        recorded, native = (page_faults(*prefix, *parent(MANY)) -
                            page_faults(*prefix, *parent(FEW)) for prefix in (recorder, []))
        return (recorded - native) / (MANY - FEW)

    def assert_parent_adds_less(self, limit, parent, *options):
        for _ in range(MEASUREMENTS):
            added = self.added(parent, *options)
            if added < limit:
                return
        self.assertLess(added, limit)

    def assert_adds_less(self, limit, child, *options):
        self.assert_parent_adds_less(limit, lambda count: loop(child, count), *options)

    def test_one_that_makes_no_calls(self):
        self.assert_adds_less(60, '/bin/true')

    def test_one_that_makes_some(self):
        """It tells itself what the runtimes keep, without a copy of it."""
        self.assert_adds_less(100, program('leaks_c'), '--no-snapshot')

    def test_one_with_handlers_of_libraries(self):
        """So does one in which the constructors of libstdc++ have registered handlers of exit()."""
        self.assert_adds_less(140, program('leaks_cxx'), '--no-snapshot')

    def test_fork_of_a_large_program(self):
        """Its parent's knowledge of modules and of unwinding is not looked up again."""
        self.assert_parent_adds_less(
            82, lambda count: ['/usr/bin/python3', '-c', FORKS, str(count)], '--no-snapshot')

    def test_snapshot_of_a_fork(self):
        """The pages that it shares with its parent are read without a copy of each."""
        self.assert_parent_adds_less(
            700, lambda count: ['/usr/bin/python3', '-c', FORKS, str(count)])

    def test_forks_find_what_their_siblings_know(self):
        """What the first one learns of unwinding stays in the table that all share, and none makes a
        larger one of its own."""
        said = self.record(program('siblings'), options=['--no-snapshot']).stdout.decode()
        counts = [line.split() for line in said.splitlines()]
        self.assertEqual(len(counts), 5)
        for before, after in counts:
            self.assertEqual(before, after)

    def test_one_with_a_snapshot(self):
        self.assert_adds_less(110, program('leaks_c'))

    def test_one_that_ends_at_once(self):
        self.assert_adds_less(100, program('kept') + ' _exit', '--no-snapshot')

    def test_each_with_addresses_of_its_own(self):
        """Their names are asked for by no process of each trace."""
        self.assert_adds_less(100, program('variants') + ' $i', '--no-snapshot')

    def calls(self, *command):
        """Reads of memory, questions about pages, writes, forks and opened files of others, of the
        recorder itself."""
        file = self.directory / 'calls'
        environment = dict(os.environ, LD_PRELOAD=os.environ['SYSTEM_CALLS_COUNTER'],
                           SYSTEM_CALLS=str(file))
        subprocess.run([RECORDER, '-q', '-o', str(self.trace), '--', *command],
                       check=True, stdout=subprocess.DEVNULL, env=environment)
        return [int(word) for word in file.read_text().split()]

    def calls_each(self, parent):
        """The same, for each child."""
        counts = [self.calls(*parent(count)) for count in (MANY, FEW)]
        return [(many - few) / (MANY - FEW) for many, few in zip(*counts)]

    def test_calls_for_a_snapshot(self):
        """The memory of a process that waits is read at once, and not structure by structure."""
        reads, questions, *_ = self.calls_each(lambda count: loop(program('leaks_c'), count))
        self.assertGreaterEqual(reads, 2)
        self.assertLess(reads, 10)
        self.assertLess(questions, 4)

    def test_writes(self):
        """The chunks of a trace are gathered: its begin, what comes before its names, the rest."""
        _, _, writes, *_ = self.calls_each(lambda count: loop(program('leaks_c'), count))
        self.assertGreaterEqual(writes, 1)
        self.assertLess(writes, 5)

    def test_modules_of_forks(self):
        """The files of the modules that a child shares with its parent are not opened again."""
        *_, opens = self.calls_each(lambda count: ['/usr/bin/python3', '-c', FORKS, str(count)])
        self.assertLess(opens, 1)

    def test_many_words_of_one_variable(self):
        """Their names are looked up without a copy of the recorder, as those of a few are."""
        few, many = (self.calls(program(name))[3] for name in ('leaks_c', 'shared'))
        self.assertGreaterEqual(few, 1)
        self.assertEqual(many, few)


if __name__ == '__main__':
    unittest.main(verbosity=2)
