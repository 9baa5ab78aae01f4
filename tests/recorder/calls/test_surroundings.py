# SPDX-License-Identifier: MIT
"""The surroundings of a program and its children are the same as without the recorder."""

import ctypes
import os
import pathlib
import resource
import select
import shutil
import signal
import subprocess
import unittest

from support import PATIENCE, RECORDER, Recording, analyze, program

PR_SET_PDEATHSIG, PR_GET_PDEATHSIG, PR_SET_SUBREAPER, PR_GET_SUBREAPER = 1, 2, 36, 37
TELL = """
import ctypes
for option in 2, 37:
    value = ctypes.c_int()
    ctypes.CDLL(None).prctl(option, ctypes.byref(value))
    print(value.value)
"""


# All that a process has and that its program may look at. Not its ids; nor whether it leads its
# group, which it does not when recorded, nor the signals that the recorder catches in it.
EVERYTHING = r"""
import ctypes, os, re, resource
def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError as error:
        return error.strerror
library = ctypes.CDLL(None)
self = os.getpid()
stat = read('/proc/self/stat').rpartition(')')[2].split()
print('leads', os.getsid(0) == self, os.getsid(0) == os.getpgrp())
print('terminal', stat[4], stat[5] == str(os.getpgrp()), [os.isatty(i) for i in range(3)])
print('scheduling', os.nice(0), os.sched_getaffinity(0), os.sched_getscheduler(0), stat[37:39])
print('limits', [resource.getrlimit(i) for i in range(16)])
print('umask', os.umask(0), 'in', os.getcwd(), os.readlink('/proc/self/root'))
print('files', sorted(os.listdir('/proc/self/fd')), os.get_inheritable(0))
print([os.readlink(f'/proc/self/fd/{i}') for i in (0, 5) if os.path.exists(f'/proc/self/fd/{i}')])
for name in 'oom_score_adj', 'personality', 'timerslack_ns', 'coredump_filter', 'cgroup', \
        'loginuid', 'attr/current', 'uid_map', 'comm':
    print(name, read('/proc/self/' + name))
print([os.readlink('/proc/self/ns/' + name) for name in sorted(os.listdir('/proc/self/ns'))])
print(re.findall(r'^(?:Sig(?:Blk|Ign)|ShdPnd|Cap\w+|NoNew\w+|Sec\w+|Spec\w+|Groups|[UG]id|Threads):.*',
                 read('/proc/self/status'), re.M))
print([library.prctl(option, 0, 0, 0, 0) for option in (3, 7, 21, 23, 27, 30, 34, 39, 42, 53)])
print(sorted(name for name in os.environ if name not in ('LD_PRELOAD', 'TTDRECORD_CHANNEL')))
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_nsignals, os.times().children_user)
"""


class Surroundings(Recording):
    def recorder(self, *command):
        return [RECORDER, '-q', '-o', str(self.trace), '--', *command]

    def assert_alike(self, *command, **others):
        """The command says and returns the same with and without a recorder."""
        native, recorded = (subprocess.run(line, capture_output=True, timeout=PATIENCE, **others)
                            for line in (command, self.recorder(*command)))
        self.assertEqual((native.returncode, native.stdout, native.stderr),
                         (recorded.returncode, recorded.stdout, recorded.stderr))
        return recorded

    def assert_end_is_seen(self, number):
        """A pipe that the program closes has ended, though the program goes on."""
        reader, writer = os.pipe()
        if number == 1:
            pipes = {'stdout': writer}
        else:
            os.dup2(writer, number)
            self.addCleanup(os.close, number)
            pipes = {'pass_fds': [number]}
        script = f'echo hi >&{number}; exec {number}>&-; read line'
        with subprocess.Popen(self.recorder('bash', '-c', script), stdin=subprocess.PIPE,
                              **pipes) as recorder:
            os.close(writer)
            if number != 1:
                os.dup2(reader, number)  # ours, and not the pipe's other end any more
            text = b'?'
            while text not in (b'', None):
                ready, _, _ = select.select([reader], [], [], PATIENCE / 10)
                text = os.read(reader, 100) if ready else None
            os.close(reader)
            self.assertEqual(text, b'')
            self.assertIsNone(recorder.poll())
            recorder.stdin.close()

    def test_ends_of_pipes(self):
        for number in 1, 57:
            with self.subTest(number):
                self.assert_end_is_seen(number)

    def test_what_exec_keeps_and_fork_does_not(self):
        """The signal at the death of the parent, and who gets orphans."""
        def set_both():
            library = ctypes.CDLL(None)
            library.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
            library.prctl(PR_SET_SUBREAPER, 1)
        found = self.assert_alike('/usr/bin/python3', '-c', TELL, preexec_fn=set_both)
        self.assertEqual(found.stdout, b'9\n1\n')
        found = self.assert_alike('/usr/bin/python3', '-c', TELL)
        self.assertEqual(found.stdout, b'0\n0\n')

    def test_everything(self):
        """Native and recorded alike, whatever the recorder was started with."""
        def change():
            os.umask(0o27)
            os.nice(3)
            os.dup2(0, 5)
            os.set_inheritable(5, True)
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2, signal.SIGRTMAX])
            resource.setrlimit(resource.RLIMIT_NOFILE, (100, 200))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 4096))
            ctypes.CDLL(None).personality(0x0040000)
            pathlib.Path('/proc/self/oom_score_adj').write_text('7')
            ctypes.CDLL(None).prctl(29, 60000)
        command = '/usr/bin/python3', '-S', '-c', EVERYTHING
        for others in {}, {'start_new_session': True}, {'preexec_fn': change}:
            with self.subTest(others):
                found = self.assert_alike(*command, **others, stdin=subprocess.DEVNULL)
                self.assertEqual((found.returncode, found.stderr), (0, b''))
        found = self.assert_alike(*command, start_new_session=True)
        self.assertIn(b'leads True True', found.stdout)

    def test_limits(self):
        small = resource.RLIMIT_STACK, (256 << 10, 256 << 10)
        self.assert_alike('bash', '-c', 'ulimit -s', preexec_fn=lambda: resource.setrlimit(*small))
        soft = resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY)
        self.assert_alike('bash', '-c', 'ulimit -f', preexec_fn=lambda: resource.setrlimit(*soft))
        self.assert_sound()

    def test_limit_of_files_that_is_hard(self):
        hard = resource.RLIMIT_FSIZE, (4096, 4096)
        result = subprocess.run(self.recorder('true'), capture_output=True, timeout=PATIENCE,
                                preexec_fn=lambda: resource.setrlimit(*hard))
        self.assertEqual((result.returncode, result.stderr),
                         (125, b'ttdrecord: cannot create shared memory: File too large\n'))

    @unittest.skipIf(os.geteuid() != 0, 'only root can change the root')
    def test_child_that_does_not_see_the_library(self):
        """The loader does not complain of it."""
        root = self.directory / 'root'
        needed = subprocess.run(['ldd', '/bin/echo'], capture_output=True, text=True, check=True)
        for path in ['/bin/echo', *(word for word in needed.stdout.split() if word[0] == '/')]:
            copy = pathlib.Path(f'{root}{path}')
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        native = subprocess.run(['chroot', root, '/bin/echo', 'hello'], capture_output=True)
        recorded = subprocess.run(self.recorder('chroot', root, '/bin/echo', 'hello'),
                                  capture_output=True, timeout=PATIENCE)
        self.assertEqual((native.returncode, native.stdout, recorded.returncode, recorded.stdout),
                         (0, b'hello\n', 0, b'hello\n'))
        self.assertEqual(native.stderr, b'')
        self.assertNotIn(b'ld.so', recorded.stderr)

    def test_vforked_child_that_gives_up_privileges(self):
        """Its parent has not: it is recorded as before, with a snapshot at its end."""
        self.assert_alike(program('gives_up'))
        snapshot, = analyze('snapshots', self.trace)['snapshots']
        self.assertEqual(snapshot['reason'], 'exit')

    def test_execution_by_syscall(self):
        """A program that cannot be recorded, executed so, makes the trace uncertain."""
        script = f'import ctypes; ctypes.CDLL(None).syscall(59, b"{program("static")}", 0, 0)'
        result = self.record('/usr/bin/python3', '-c', script)
        self.assertIn(b'the program executed another one that could not be recorded', result.stderr)
        self.assertFalse(analyze('leaks', self.trace)['certain'])
        failing = 'import ctypes; ctypes.CDLL(None).syscall(59, b"/nowhere", 0, 0)'
        self.assertEqual(self.record('/usr/bin/python3', '-c', failing).stderr, b'')
        self.assert_sound()


if __name__ == '__main__':
    unittest.main()
