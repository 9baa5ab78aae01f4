# SPDX-License-Identifier: MIT
"""What a program and its children have of their surroundings is what they have without us."""

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
        self.assertIn(b'1 process executed a program that could not be recorded', result.stderr)
        self.assertFalse(analyze('leaks', self.trace)['certain'])
        failing = 'import ctypes; ctypes.CDLL(None).syscall(59, b"/nowhere", 0, 0)'
        self.assertEqual(self.record('/usr/bin/python3', '-c', failing).stderr, b'')
        self.assert_sound()


if __name__ == '__main__':
    unittest.main()
