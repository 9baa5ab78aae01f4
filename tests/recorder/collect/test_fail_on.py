# SPDX-License-Identifier: MIT
"""--fail-on records, asks the analyzer and fails if that has findings."""
import os
import subprocess
import unittest

from support import ANALYZER, PATIENCE, Recording, beside_analyzer, program

FINDINGS, NO_ANSWER = 116, 125

CAUGHT = r"""
#include <cstdlib>
#include <stdexcept>
#include <string>

int main()
{
    try {
        throw std::runtime_error(std::string(100, 'x'));
    } catch (const std::exception &) {
        try {
            throw 5;
        } catch (int) {
            std::exit(0);
        }
    }
}
"""

# A pool of workers: one is told to exit, and gets a signal while it waits for its snapshot, since the
# recorder is stopped.
WORKER = r"""
#include <csignal>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile held;

int main()
{
    pid_t recorder = getppid();
    kill(recorder, SIGSTOP);
    pid_t worker = fork();
    if (worker == 0) {
        held = malloc(77);
        _exit(0);
    }
    usleep(50000);
    kill(worker, SIGTERM);
    usleep(200000);
    kill(recorder, SIGCONT);
    waitpid(worker, NULL, 0);
}
"""

# Ends by an instruction of its own; or two threads end it, and the one that does not wait for its
# snapshot is the first.
UNSEEN_END = r"""
#include <cstdlib>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *volatile held;

static void *end(void *)
{
    exit(0);
}

int main(int count, char **)
{
    pthread_t thread;
    held = malloc(77);
    if (count == 1)
        __asm__ volatile("syscall" : : "a"(SYS_exit_group), "D"(0) : "rcx", "r11", "memory");
    pthread_create(&thread, NULL, end, NULL);
    return 0;
}
"""


# Forgets a block when the newest snapshot is taken; no call follows.
FORGETS = r"""
#include <cstdlib>
#include <unistd.h>

static void *volatile held;

int main()
{
    held = malloc(77);
    usleep(700000);
    held = NULL;
}
"""


class FailOn(Recording):
    def setUp(self):
        super().setUp()
        self.recorder = beside_analyzer(self.directory / 'bin')
        self.analyzer = self.recorder.parent / 'ttdanalyze'

    def judge(self, kinds, *command, options=()):
        return subprocess.run([self.recorder, '-q', *options, '-o', self.trace, '--fail-on',
                               kinds, '--', *command], capture_output=True, text=True,
                              timeout=PATIENCE)

    def test_leaks(self):
        result = self.judge('leaks,errors', program('leaks_c'))
        self.assertEqual(result.returncode, FINDINGS, result.stderr)
        self.assertIn('Definitely lost: ', result.stderr)
        self.assertIn('No errors', result.stderr)
        self.assertNotIn('lost: ', result.stdout)

    def test_known_findings(self):
        """The manual has the two commands that leave them out, and the answer names it."""
        hint = 'suppressions, baselines and other kinds: see ttdrecord(1), --fail-on\n'
        for command, status in (program('leaks_c'), FINDINGS), ('/bin/true', 0):
            result = self.judge('leaks', command)
            self.assertEqual((result.returncode, hint in result.stderr), (status, bool(status)))
        self.record('/bin/sh', '-c', '"$0"; exit 0', program('leaks_c'))
        rules = self.directory / 'known.supp'
        rules.write_text('leak:leaks_c\n')
        for options, status in ((), FINDINGS), (('--suppressions', rules), 0):
            result = subprocess.run([ANALYZER, 'leaks', '--group', '--error-exitcode', str(FINDINGS),
                                     '--errors-for', 'definite', *options, self.trace],
                                    capture_output=True, timeout=PATIENCE)
            self.assertEqual(result.returncode, status, result.stderr)

    def test_only_what_was_asked_for(self):
        result = self.judge('errors', program('leaks_c'))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn('lost: ', result.stderr)

    def test_a_program_without_findings(self):
        result = self.judge('leaks,errors', '/bin/sh', '-c', ':')
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_errors_and_the_death_of_the_program(self):
        """A program that fails keeps its status."""
        result = self.judge('errors', program('double_free'))
        self.assertLess(result.returncode, 0, result.stderr)
        self.assertIn('double-free', result.stderr)

    def test_a_child_and_the_status_of_the_program(self):
        for status in (0, 3):
            result = self.judge('leaks', '/bin/sh', '-c', f'"$0"; exit {status}', program('leaks_c'))
            self.assertEqual(result.returncode, status or FINDINGS, result.stderr)
            self.assertIn('leaks_c', result.stderr)

    def test_no_answer_is_no_success(self):
        self.analyzer.unlink()
        result = self.judge('leaks', '/bin/echo', 'ran')
        self.assertEqual((result.returncode, result.stdout), (NO_ANSWER, ''))
        self.assertIn('ttdanalyze, which is not installed beside', result.stderr)
        self.analyzer.write_text('#!/bin/sh\nexit 4\n')
        self.analyzer.chmod(0o755)
        result = self.judge('leaks', '/bin/true')
        self.assertEqual(result.returncode, NO_ANSWER)
        self.assertIn("the analyzer failed in 'leaks'", result.stderr)

    def test_a_recording_that_ended_before_the_program(self):
        """Blocks that were live then are no findings, and no success either."""
        result = self.judge('leaks', program('growing'), options=('--max-size', '1'))
        self.assertEqual(result.returncode, NO_ANSWER, result.stderr)
        self.assertIn("no answer to 'leaks': the recording ended before the program\n",
                      result.stderr)
        self.assertIn("--fail-on has no answer: the recording has none to 'leaks'", result.stderr)
        self.assertNotIn('ever released', result.stderr)

    def test_a_child_that_was_killed(self):
        """It had no chance to release its blocks. The system may have no status of a child."""
        result = self.judge('leaks', '/bin/sh', '-c', '"$0" -c "kill -KILL \\$\\$"; exit 0', '/bin/sh')
        self.assertEqual(result.returncode, NO_ANSWER, result.stderr)
        self.assertRegex(result.stderr, "no answer to 'leaks': (the program was killed before|how the "
                                        "program ended is not known)")
        self.assertNotIn('ever released', result.stderr)

    def test_an_end_without_its_snapshot(self):
        """What the program held then is no finding, unless no snapshot was asked for."""
        unseen_end = self.compile('unseen_end', UNSEEN_END, '-pthread')
        for arguments in (), ('twice',):
            result = self.judge('leaks', unseen_end, *arguments)
            self.assertIn(result.returncode, (NO_ANSWER, 0) if arguments else (NO_ANSWER,),
                          result.stderr)
            if result.returncode:
                self.assertIn("no answer to 'leaks': no snapshot was taken when the program ended",
                              result.stderr)
        result = self.judge('leaks', unseen_end, options=('--no-snapshot',))
        self.assertEqual(result.returncode, FINDINGS, result.stderr)

    def test_a_block_that_is_forgotten_after_the_newest_snapshot(self):
        forgets = self.compile('forgets', FORGETS)
        result = self.judge('leaks', forgets, options=('--no-snapshot', '--snapshot-every', '.1'))
        self.assertEqual(result.returncode, NO_ANSWER, result.stderr)
        self.assertIn("no answer to 'leaks': no snapshot was taken when the program ended",
                      result.stderr)
        for options in ('--no-snapshot',), ('--snapshot-every', '.1'):
            result = self.judge('leaks', forgets, options=options)
            self.assertEqual(result.returncode, FINDINGS, result.stderr)

    def test_an_allocator_whose_calls_are_not_recorded(self):
        for kind in 'leaks', 'errors':
            result = self.judge(kind, program('own_malloc'))
            self.assertEqual(result.returncode, NO_ANSWER, result.stderr)
            self.assertRegex(result.stderr, f"no answer to '{kind}': no allocation was recorded, and "
                             "not all calls were \\(missing: calls of malloc, free or operator new that ")
        # A child is as one that ran unrecorded.
        result = self.judge('leaks', '/bin/sh', '-c', '"$0"; exit 0', program('own_malloc'))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn('Uncertain: process ', result.stderr)

    def test_a_child_that_was_not_recorded(self):
        """The answer is about all processes, and says that one of them is missing."""
        child = self.compile('static', 'int main() {}', '-static')
        for kind in 'leaks', 'errors':
            result = self.judge(kind, '/bin/sh', '-c', '"$0"; exit 0', child)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn('Uncertain: 1 child process of the recording ran unrecorded\n',
                          result.stderr)

    def test_modules_with_a_heap_of_their_own(self):
        """Their C library releases no block of the program's: the answer is uncertain only."""
        result = self.judge('leaks', program('namespaces'))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn('Uncertain: ', result.stderr)

    def test_a_worker_that_exits_and_is_signalled(self):
        """It ends anyway, so that it still has its snapshot: what it held is not lost."""
        worker = self.compile('worker', WORKER)
        for _ in range(3): # each has a second, which may pass on a busy machine
            result = self.judge('leaks', worker)
            if result.returncode == 0:
                break
        self.assertEqual(result.returncode, 0, result.stderr)

    def compile(self, name, source, *options):
        path = self.directory / name
        path.with_suffix('.cpp').write_text(source)
        subprocess.run([*os.environ['COMPILER_CXX'].split(), '-O1', *options, '-o', path,
                        path.with_suffix('.cpp')], check=True)
        return path

    def test_an_exception_that_is_handled_at_the_end(self):
        """The runtime holds it, and with it its string, by pointers behind their headers."""
        path = self.compile('caught', CAUGHT)
        result = self.judge('leaks', path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn('Still reachable', result.stderr)

    def test_findings_come_before_a_missing_answer(self):
        self.analyzer.unlink()
        self.analyzer.write_text('#!/bin/sh\n[ "$1" = leaks ] && exit 6\nexit "$3"\n')
        self.analyzer.chmod(0o755)
        self.assertEqual(self.judge('leaks,errors', '/bin/true').returncode, FINDINGS)
        self.assertEqual(self.judge('leaks', '/bin/true').returncode, NO_ANSWER)
        result = self.judge('leaks', '/bin/sh', '-c', 'exit 3')
        self.assertEqual(result.returncode, 3)

    def test_a_program_that_executes_another(self):
        """A shell leaves blocks to the command that it executes: that is judged, and they are
        counted."""
        for command, status in (('/bin/true', 0), (program('leaks_c'), FINDINGS)):
            result = self.judge('leaks', '/bin/sh', '-c', 'exec "$0"', command)
            self.assertEqual(result.returncode, status, result.stderr)
            self.assertIn(' left by programs before, at exec: not searched\n', result.stderr)

    def test_the_analyzer_of_the_build_directory(self):
        """A recorder that is in a build directory finds the analyzer in its folder there, unless
        somebody else has put it there."""
        built = self.directory / 'analyzer'
        built.mkdir()
        self.analyzer.rename(built / 'ttdanalyze')
        result = self.judge('leaks', program('leaks_c'))
        self.assertEqual(result.returncode, FINDINGS, result.stderr)
        (built / 'ttdanalyze').unlink()
        (built / 'ttdanalyze').write_text('#!/bin/sh\nexit 0\n')
        (built / 'ttdanalyze').chmod(0o755)
        self.assertEqual(self.judge('leaks', program('leaks_c')).returncode, 0)
        if os.getuid() == 0:
            os.chown(built / 'ttdanalyze', 65534, 65534)
            self.assertEqual(self.judge('leaks', program('leaks_c')).returncode, NO_ANSWER)

    def test_no_other_folder_has_the_analyzer(self):
        """A recorder without its library beside it is installed: no folder of a build is asked."""
        preload = self.recorder.parent / 'preload'
        built = self.directory / 'analyzer'
        built.mkdir()
        self.analyzer.rename(built / 'ttdanalyze')
        preload.rename(self.recorder.parent / 'elsewhere')
        result = self.judge('leaks', program('leaks_c'))
        self.assertIn('ttdanalyze, which is not installed beside', result.stderr)

    def test_an_output_that_cannot_be_read_again(self):
        os.mkfifo(self.trace)
        for path in (self.trace, '/dev/null'):
            self.trace = path
            result = self.judge('leaks', '/bin/echo', 'ran')
            self.assertEqual((result.returncode, result.stdout), (NO_ANSWER, ''))
            self.assertIn('--fail-on needs a regular file', result.stderr)

    def test_each_answer_counts(self):
        self.analyzer.unlink()
        for kind in ('leaks', 'errors'):
            self.analyzer.write_text(f'#!/bin/sh\n[ "$1" != {kind} ] || exit "$3"\n')
            self.analyzer.chmod(0o755)
            self.assertEqual(self.judge('leaks,errors', '/bin/true').returncode, FINDINGS, kind)

    def test_kinds(self):
        for kinds in ('', 'leaks,', 'leak', 'all'):
            result = self.judge(kinds, '/bin/true')
            self.assertEqual(result.returncode, NO_ANSWER)
            self.assertIn('names no kinds of findings: leaks, errors', result.stderr)


if __name__ == '__main__':
    unittest.main()
