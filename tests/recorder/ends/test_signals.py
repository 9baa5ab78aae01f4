# SPDX-License-Identifier: MIT
"""Signals between ttdrecord, the program and the shell."""

import ctypes
import os
import pathlib
import pty
import re
import resource
import signal
import subprocess
import sys
import time
import unittest

from support import PATIENCE, RECORDER, Recording, analyze, program

libc = ctypes.CDLL(None, use_errno=True)
# The C library keeps two for itself; nobody can catch the others.
LEFT_OUT = {signal.SIGKILL, signal.SIGSTOP, 32, 33}
ALL = [number for number in range(1, signal.SIGRTMAX + 1) if number not in LEFT_OUT]
STOPS = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
# Sends its parent more than the system lets wait, and ends.
FLOOD = """
import os, signal
numbers = range(signal.SIGRTMIN + 1, signal.SIGRTMAX)
for number in numbers:
    signal.signal(number, signal.SIG_IGN)
for i in range(100000):
    os.kill(os.getppid(), numbers[i % 20])
"""


def queue(pid, number, value):
    if libc.sigqueue(pid, number, ctypes.c_void_p(value)) != 0:
        raise OSError(ctypes.get_errno(), 'sigqueue')


def state(pid):
    """As in /proc; None when there is no such process."""
    try:
        text = pathlib.Path(f'/proc/{pid}/stat').read_text()
    except OSError:
        return None
    return text.rpartition(')')[2].split()[0]


def launched(recorder):
    """The process id of the program."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for child in pathlib.Path(f'/proc/{recorder}/task/{recorder}/children').read_text().split():
            try:
                if pathlib.Path(f'/proc/{child}/comm').read_text() != 'ttdrecord\n':
                    return int(child)
            except OSError:
                pass
        time.sleep(0.01)
    raise AssertionError('no program')


class Signals(Recording):
    def start(self, *command):
        # As a shell does it, a process group of its own: the system does not stop one that has
        # no parent in the session outside of it, as the test's own may be.
        recorder = subprocess.Popen([RECORDER, '-q', '-o', self.trace, '--', *command],
                                    stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True,
                                    process_group=0)
        self.addCleanup(self.end, recorder)
        return recorder

    @staticmethod
    def end(recorder):
        if recorder.poll() is None:
            recorder.kill()
        recorder.communicate()

    def wait_for(self, pid, *states):
        deadline = time.monotonic() + PATIENCE
        while state(pid) not in states and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertIn(state(pid), states)

    def test_all_are_passed_on(self):
        """Each with its value, and once."""
        recorder = self.start(program('signaled'))
        self.assertEqual(recorder.stdout.readline(), 'ready\n')
        seen = {}
        for number in ALL:
            os.kill(recorder.pid, number)
            seen[number] = recorder.stdout.readline()
            self.assertIsNone(recorder.poll(), f'signal {number} has ended ttdrecord')
        self.assertEqual(seen, {number: f'{number} -1\n' for number in ALL})
        for number in ALL:
            queue(recorder.pid, number, 1000 + number)
            seen[number] = recorder.stdout.readline()
        self.assertEqual(seen, {number: f'{number} {1000 + number}\n' for number in ALL})
        queue(recorder.pid, signal.SIGUSR1, 99)
        self.assertEqual(recorder.stdout.read(), f'{int(signal.SIGUSR1)} 99\n')
        self.assertEqual(recorder.wait(PATIENCE), 0)
        self.assert_sound()

    def test_stopping_stops_both(self):
        for number in STOPS:
            recorder = self.start(program('signaled'), *(str(int(stop)) for stop in STOPS))
            recorder.stdout.readline()
            pid = launched(recorder.pid)
            os.kill(recorder.pid, number)
            self.wait_for(pid, 'T')
            _, status = os.waitpid(recorder.pid, os.WUNTRACED)
            self.assertTrue(os.WIFSTOPPED(status))
            self.assertEqual(os.WSTOPSIG(status), number)
            os.kill(recorder.pid, signal.SIGCONT)
            self.wait_for(pid, 'S')
            self.wait_for(recorder.pid, 'S', 'R')
            self.assertEqual(recorder.stdout.readline(), f'{int(signal.SIGCONT)} -1\n')
            queue(recorder.pid, signal.SIGUSR1, 99)
            self.assertEqual(recorder.wait(PATIENCE), 0)

    def test_the_program_alone(self):
        """ttdrecord stops with it, and goes on with it."""
        recorder = self.start(program('signaled'))
        recorder.stdout.readline()
        pid = launched(recorder.pid)
        os.kill(pid, signal.SIGSTOP)
        _, status = os.waitpid(recorder.pid, os.WUNTRACED)
        self.assertEqual((os.WIFSTOPPED(status), os.WSTOPSIG(status)), (True, signal.SIGSTOP))
        os.kill(pid, signal.SIGCONT)
        self.wait_for(recorder.pid, 'S', 'R')
        self.assertEqual(recorder.stdout.readline(), f'{int(signal.SIGCONT)} -1\n')
        os.kill(pid, signal.SIGSTOP)
        self.wait_for(recorder.pid, 'T')
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(recorder.wait(PATIENCE), -signal.SIGKILL)
        self.assertEqual(analyze('info', self.trace)['end_reason'], 'killed')

    def test_others_that_run_are_collected(self):
        """While the program is stopped, its child goes on."""
        recorder = self.start('sh', '-c', 'sh -c "echo begun; sleep 3" & wait; exit 3')
        pid = launched(recorder.pid)
        self.assertEqual(recorder.stdout.readline(), 'begun\n')
        os.kill(pid, signal.SIGSTOP)
        self.wait_for(pid, 'T')
        time.sleep(0.3)
        self.assertIn(state(recorder.pid), ('S', 'R'))
        self.wait_for(recorder.pid, 'T')
        os.kill(pid, signal.SIGCONT)
        self.assertEqual(recorder.wait(PATIENCE), 3)

    def on_terminal(self, *command):
        """A process group in the foreground of a terminal of its own; its parent, and the master."""
        shell, terminal = pty.fork()
        if shell != 0:
            return shell, terminal
        try:
            job = os.fork()
            if job == 0:
                os.setpgid(0, 0)
                os.execv(RECORDER, [RECORDER, '-q', '-o', str(self.trace), '--', *command])
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            try:
                os.setpgid(job, job)
            except OSError:
                pass
            os.tcsetpgrp(0, job)
            _, status = os.waitpid(job, os.WUNTRACED)
            while os.WIFSTOPPED(status):
                print(f'stopped by {os.WSTOPSIG(status)}', flush=True)
                time.sleep(0.2)
                os.killpg(job, signal.SIGCONT)
                _, status = os.waitpid(job, os.WUNTRACED)
            print(f'status {status}', flush=True)
        finally:
            os._exit(0)

    def read_until(self, terminal, end):
        text = b''
        deadline = time.monotonic() + PATIENCE
        while end not in text and time.monotonic() < deadline:
            try:
                text += os.read(terminal, 1000)
            except OSError:
                break
        self.assertIn(end, text)
        return text

    def test_flood(self):
        """However many wait to be passed on: once the program has ended, none of them delays the
        end. One by one they take minutes. The rest of what may wait is left to other programs: of
        all processes of a user, none can cancel a thread once nothing more may wait."""
        limits = resource.getrlimit(resource.RLIMIT_SIGPENDING)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_SIGPENDING, limits)
        resource.setrlimit(resource.RLIMIT_SIGPENDING, (limits[0] // 2, limits[1]))
        recorder = self.start(sys.executable, '-S', '-E', '-c', FLOOD)
        self.assertEqual(recorder.wait(timeout=PATIENCE / 2), 0)
        self.assert_sound(has_end=False)

    def test_terminal(self):
        """^Z stops both, and each signal reaches the program once."""
        stops = [str(int(stop)) for stop in STOPS]
        shell, terminal = self.on_terminal(program('signaled'), *stops)
        self.addCleanup(os.close, terminal)
        self.read_until(terminal, b'ready\r\n')
        time.sleep(1)
        os.write(terminal, b'\x1a')
        text = self.read_until(terminal, f'{int(signal.SIGCONT)} -1\r\n'.encode())
        self.assertIn(f'stopped by {int(signal.SIGTSTP)}'.encode(), text)
        os.write(terminal, b'\x03')
        text += self.read_until(terminal, f'{int(signal.SIGINT)} -1\r\n'.encode())
        os.write(terminal, b'\x1c')
        text += self.read_until(terminal, f'{int(signal.SIGQUIT)} -1\r\n'.encode())
        queue(launched_below(shell), signal.SIGUSR1, 99)
        text += self.read_until(terminal, b'status 0')
        os.waitpid(shell, 0)
        for number in (signal.SIGCONT, signal.SIGINT, signal.SIGQUIT):
            self.assertEqual(len(re.findall(rb'(?<!\d)%d -1\r' % number, text)), 1, text)


def launched_below(shell):
    recorder, = pathlib.Path(f'/proc/{shell}/task/{shell}/children').read_text().split()
    return launched(int(recorder))


if __name__ == '__main__':
    unittest.main()
