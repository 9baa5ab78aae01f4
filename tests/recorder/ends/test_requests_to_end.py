# SPDX-License-Identifier: MIT
"""A program that dies of a signal which asks it to end: a snapshot, and the same death."""

import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

from support import RECORDER, Recording, analyze, program
from test_ends import Ended

STATUS, LOST = 3, 100
FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT,
          signal.SIGTRAP, signal.SIGSYS}
HARMLESS = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH, signal.SIGTSTP,
            signal.SIGTTIN, signal.SIGTTOU, signal.SIGSTOP, signal.SIGKILL, 32, 33}
REQUESTS = sorted(set(range(1, 65)) - FAULTS - HARMLESS)
TIMERS = {0: signal.SIGALRM, 1: signal.SIGVTALRM, 2: signal.SIGPROF}


def setUpModule():
    """The parent of the tests may ignore signals, as nohup does; programs would inherit that."""
    for number in signal.valid_signals():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


class Asked(Recording):
    def run_both(self, way, number=0, command=(), name='asked'):
        """Runs the program alone and recorded, in the same way. Returns its status."""
        command = [*command, program(name), way, str(int(number))]
        native = subprocess.run(command, capture_output=True, timeout=120)
        recorded = self.record(*command)
        self.assertEqual((recorded.returncode, recorded.stdout, recorded.stderr),
                         (native.returncode, native.stdout, native.stderr), (way, number))
        return native.returncode

    def assert_classes(self, trace=None):
        """The trace tells what was lost, perhaps but for a register, and has no error."""
        trace = trace or self.trace
        leaks = analyze('leaks', trace)
        lost, = [group for group in leaks['groups'] if group['bytes'] == LOST]
        self.assertIn((lost['class'], lost.get('held_by')),
                      (('definitely_lost', None), ('still_reachable', 'stack')))
        self.assertEqual(leaks['snapshot']['reason'], 'signal')
        errors = analyze('errors', trace)
        self.assertEqual((errors['fatal_signal'], errors['findings']), (None, []))

    def die(self, way, number, argument=None):
        self.assertEqual(self.run_both(way, number if argument is None else argument), -number)
        self.assert_classes()
        fatal = analyze('info', self.trace)['fatal_signal']
        self.assertEqual((fatal['signal'], fatal['thread'], fatal['address']), (number, 1, None))

    def test_each(self):
        """By kill(), which needs no memory of the system: tests may run that use up all of it."""
        for number in REQUESTS:
            with self.subTest(number):
                self.die('kill', number)

    def test_ways(self):
        for way in ('raise', 'wait', 'reset'):
            self.die(way, signal.SIGTERM)
        self.die('wait', signal.SIGRTMIN)
        self.die('pipe', signal.SIGPIPE)
        for timer, number in TIMERS.items():
            self.die('timer', number, timer)

    def test_that_do_not_die(self):
        for way in ('take', 'handled'):
            self.assertEqual(self.run_both(way, signal.SIGTERM), STATUS)
        self.run_both('raise', signal.SIGTERM,
                      ['sh', '-c', 'trap "" TERM; exec "$@"', 'sh'])
        self.assertEqual(analyze('snapshots', self.trace)['snapshots'][0]['reason'], 'exit')
        self.run_both('vfork', signal.SIGTERM)

    def test_what_the_program_sees(self):
        self.assertEqual(self.run_both('actions'), STATUS)

    def test_child(self):
        """A command that is run by one that has the recorder's handlers."""
        self.record('sh', '-c', f'{program("asked")} raise 15; {program("asked")} actions 0; :')
        traces = sorted(self.directory.glob('trace.bin.*.asked'))
        self.assert_classes(traces[0])

    def test_group(self):
        """As timeout(1) does it, the program gets the signal twice, or three times."""
        for _ in range(5):
            command = [RECORDER, '-q', '-o', str(self.trace), '--', program('asked'), 'forever', '0']
            recorder = subprocess.Popen(command, stdout=subprocess.PIPE, process_group=0)
            self.assertEqual(recorder.stdout.readline(), b'ready\n')
            os.kill(recorder.pid, signal.SIGTERM)
            os.killpg(recorder.pid, signal.SIGTERM)
            self.assertEqual(recorder.wait(), -signal.SIGTERM)
            recorder.stdout.close()
            self.assert_classes()

    def test_first_process_of_a_namespace(self):
        """The system ignores such signals there."""
        command = ['unshare', '--user', '--map-root-user', '--pid', '--fork', '--kill-child']
        if shutil.which('unshare') is None or subprocess.run([*command, 'true']).returncode != 0:
            self.skipTest('no namespaces here')
        recorded = self.record(*command, program('asked'), 'raise', str(int(signal.SIGTERM)))
        self.assertEqual(recorded.returncode, STATUS)

    def test_system_call(self):
        self.assertEqual(self.run_both('system call'), STATUS)
        self.assertEqual(analyze('snapshots', self.trace)['snapshots'][0]['reason'], 'exit')

    def test_no_new_privileges_alone(self):
        """Nothing is confined yet."""
        self.assertEqual(self.run_both('no new privileges'), STATUS)
        self.assertEqual(analyze('snapshots', self.trace)['snapshots'][0]['reason'], 'exit')
        self.assertEqual(analyze('leaks', self.trace, '--show', 'definite')['groups'][0]['bytes'],
                         LOST)

    def test_shells(self):
        """They tell of the death as they do without the recorder."""
        script = f'{program("asked")} raise 15; echo $?; {program("asked")} raise 2; echo $?'
        native = subprocess.run(['sh', '-c', script], capture_output=True)
        recorded = self.record('sh', '-c', script)
        self.assertEqual((recorded.returncode, recorded.stdout), (native.returncode, native.stdout))


def state(pid):
    text = pathlib.Path(f'/proc/{pid}/stat').read_text()
    return text.rpartition(')')[2].split()[0]


class WhileItDies(unittest.TestCase):
    """Events while the process waits for its last snapshot."""

    def end(self, answer, way='raise', number=signal.SIGTERM):
        ended = Ended([program('asked'), way, str(int(number))], answer)
        self.assertEqual(ended.status, 128 + number)
        return ended.requests

    def test_request(self):
        request, = self.end(lambda request: 'taken')
        self.assertEqual((request.signal, request.tid), (signal.SIGTERM, request.pid))
        self.assertTrue(request.frames)

    def test_again_at_once(self):
        """It is the same wish."""
        def answer(request):
            os.kill(request.pid, signal.SIGTERM)
            os.kill(request.pid, signal.SIGHUP)
            time.sleep(.3)
            self.assertIn(state(request.pid), ('S', 'R'))
            return 'taken'
        self.end(answer)

    def test_again_later(self):
        """Somebody is tired of waiting."""
        def answer(request):
            time.sleep(1.3)
            os.kill(request.pid, signal.SIGTERM)
            return 'silent'
        began = time.monotonic()
        self.end(answer)
        self.assertLess(time.monotonic() - began, 4)

    def test_exit(self):
        """Another thread calls exit() meanwhile: without the handler it would not live."""
        def answer(request):
            os.kill(request.pid, signal.SIGUSR1)
            time.sleep(.3)
            return 'taken'
        self.end(answer, 'beside exit')


if __name__ == '__main__':
    unittest.main()
