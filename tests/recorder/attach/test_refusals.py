# SPDX-License-Identifier: MIT
"""Processes that cannot be attached to: one line says why and what to do, and nothing changes."""

import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
import unittest

from attaching import CONFINED, Attach
from support import PATIENCE, PRELOAD, RECORDER, program, public_recorder

NOBODY = 65534
# Every user can execute the system's.
PYTHON = '/usr/bin/python3' if os.path.exists('/usr/bin/python3') else sys.executable

# Holds a process as a debugger does.
TRACER = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
assert libc.ptrace(0x4206, int(sys.argv[1]), None, None) == 0, ctypes.get_errno()
print('ready', flush=True)
input()
"""

# Is not to be looked at, not even by its own user.
PROTECTED = """
import ctypes
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
print('ready', flush=True)
input()
"""

# Has a seccomp filter that allows all calls, and executes a program under it.
FILTERED = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
allow = ctypes.create_string_buffer(struct.pack('<HBBI', 6, 0, 0, 0x7fff0000))
program = ctypes.create_string_buffer(struct.pack('<HxxxxxxQ', 1, ctypes.addressof(allow)))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""

# Has a malloc() that changes few registers.
LEAF = """
#include <stdio.h>
static char memory[1 << 20];
static size_t used;
void *malloc(size_t size) { used += (size + 63) / 64 * 64; return memory + used - size / 64 * 64; }
int main(void)
{
    char line[8];
    setvbuf(stdout, memory, _IOLBF, 1024);
    used = 1024;
    puts("ready");
    read(0, line, sizeof line);
    puts("over");
}
"""

# Is the first process of a PID namespace, and killed: the system keeps it until the other one's parent,
# which is outside, has waited for that.
ENDING = """
import ctypes, os, signal
if ctypes.CDLL(None).unshare(0x20000000) != 0:
    print('not permitted', flush=True)
    raise SystemExit
first = os.fork() or signal.pause()
os.fork() or signal.pause()
os.kill(first, signal.SIGKILL)
print(first, flush=True)
input()
"""

READY = '#include <unistd.h>\nint main(void) { return write(1, "ready\\n", 6) != 6 || pause(); }\n'

# A program of 32 bits that waits: pause() again and again.
CODE_32 = bytes.fromhex('b81d000000cd80ebf7')
PROGRAM_32 = (b'\x7fELF\1\1\1' + bytes(9) +
              struct.pack('<HHIIIIIHHHHHH', 2, 3, 1, 0x8048054, 52, 0, 0, 52, 32, 1, 0, 0, 0) +
              struct.pack('<8I', 1, 0, 0x8048000, 0x8048000, 84 + len(CODE_32),
                          84 + len(CODE_32), 5, 4096) + CODE_32)


def until(condition, what):
    for _ in range(100 * PATIENCE):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError(what)


def tracer_of(pid):
    status = pathlib.Path(f'/proc/{pid}/status').read_text()
    return int(re.search(r'TracerPid:\t(\d+)', status)[1])


# Executes itself some times.
EXECUTING = r"""
#include <cstdio>
#include <cstdlib>
#include <sys/prctl.h>
#include <unistd.h>
int main(int count, char **arguments)
{
    char rest[32];
    int left = count > 1 ? std::atoi(arguments[1]) : 20;
    prctl(PR_SET_PTRACER, -1UL, 0, 0, 0);
    if (count == 1)
        std::puts("ready");
    std::fflush(stdout);
    std::sprintf(rest, "%d", left - 1);
    usleep(left != 0 ? 3000 : 100000000);
    execl("/proc/self/exe", "executing", rest, nullptr);
}
"""


class Refusals(Attach):

    def refusal_of(self, process):
        """Why a process that runs cannot be attached to. It is as it was then."""
        before = self.image(process)
        said = self.refusal(process.pid)
        self.assertEqual(self.image(process)[:2], before[:2])
        return said

    def test_no_process(self):
        self.assertIn('there is no such process', self.refusal(2 ** 22 - 1))

    def test_wrong_usage(self):
        for arguments in ([], ['12x'], ['1', '2'], ['0']):
            result = subprocess.run([RECORDER, 'attach', *arguments], capture_output=True,
                                    text=True, timeout=PATIENCE)
            self.assertEqual(result.returncode, 125)

    def test_ended(self):
        process = subprocess.Popen(['true'])
        self.addCleanup(process.wait)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        self.assertIn('it has ended', self.refusal(process.pid))

    def test_executing(self):
        """Programs that the process executes one after the other, quicker than one is examined; the
        last one stays."""
        for _ in range(4):
            process = self.start(self.compile('executing', EXECUTING, '-O1'))
            recorder = self.attach(process)
            self.detach(process, recorder)

    def start_loading(self):
        """A process whose loader waits for a library; and what it waits for."""
        library = self.directory / 'library'
        if not library.exists():
            os.mkfifo(library)
        process = subprocess.Popen(['cat'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True,
                                   env={**os.environ, 'LD_PRELOAD': str(library)})
        self.addCleanup(self.end, process)
        until(lambda: pathlib.Path(f'/proc/{process.pid}/comm').read_text() == 'cat\n',
              'not executed')
        return process, library

    def test_loading(self):
        process, library = self.start_loading()
        self.assertIn('its C library is not loaded yet; try again\n', self.refusal(process.pid))
        library.write_text('')
        process, library = self.start_loading()
        writer = threading.Timer(0.3, lambda: library.write_text(''))
        writer.start()
        recorder = self.attach(process)
        writer.join()
        self.detach(process, recorder)

    def test_ending(self):
        """Its memory is gone, and the system does not forbid it."""
        parent = subprocess.Popen([sys.executable, '-c', ENDING], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end, parent)
        pid = parent.stdout.readline().strip()
        if not pid.isdigit():
            self.skipTest('no PID namespaces for this user')
        until(lambda: int(pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[6])
              & 4, 'it does not end')
        self.assertRegex(self.refusal(int(pid)), ': it is ending\n$')

    def test_stopped(self):
        process = self.start(program('counted'))
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        said = self.refusal_of(process)
        self.assertIn(f'it is stopped; let it go on first, as by kill -CONT {process.pid}', said)
        process.send_signal(signal.SIGCONT)
        self.assertNotEqual(self.tell(process, 'calls 1'), [])

    def test_traced(self):
        process = self.start(program('counted'))
        tracer = self.start(sys.executable, '-c', TRACER, str(process.pid))
        self.assertIn(f'process {tracer.pid} (', self.refusal_of(process))

    def assert_traced_by(self, name, *command):
        if shutil.which(name) is None:
            self.skipTest(f'no {name} here')
        process = self.start(program('counted'))
        tracer = subprocess.Popen([name, *command, '-p', str(process.pid)], stdin=subprocess.PIPE,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.end, tracer)
        until(lambda: tracer_of(process.pid) != 0, f'{name} does not trace')
        self.assertIn(f'process {tracer_of(process.pid)} ({name}) traces it; end that first',
                      self.refusal(process.pid))

    def test_in_a_debugger(self):
        self.assert_traced_by('gdb', '-q', '-nx')

    def test_under_strace(self):
        self.assert_traced_by('strace', '-o', '/dev/null')

    def test_a_thread_cannot_be_stopped(self):
        """It waits in vfork() for its child."""
        process = self.start(program('counted'))
        self.tell(process, 'calls 3')
        child, = self.tell(process, 'vfork')
        said = self.refusal_of(process)
        self.assertIn(f'thread {process.pid} is in vfork() until its child executes a program or '
                      'ends; try again\n', said)
        os.kill(child, signal.SIGKILL)
        self.assertEqual(process.stdout.readline(), '0\n')
        self.detach(process, self.attach(process))

    def test_of_32_bits(self):
        path = self.directory / 'small'
        path.write_bytes(PROGRAM_32)
        path.chmod(0o755)
        try:
            process = subprocess.Popen([path], stdin=subprocess.DEVNULL)
        except OSError as error:
            self.skipTest(f'programs of 32 bits do not run here: {error}')
        self.addCleanup(self.end, process)
        self.assertIn('it is not a program of 64 bits', self.refusal(process.pid))
        self.assertEqual(process.poll(), None)

    def test_static_and_stripped(self):
        path = self.directory / 'stripped'
        subprocess.run(['strip', '-o', path, program('static_sleeper')], check=True)
        process = subprocess.Popen(path, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(self.end, process)
        self.assertEqual(process.stdout.readline(), b'sleeping\n')
        self.assertIn('it is statically linked and stripped', self.refusal(process.pid))
        self.assertEqual(process.poll(), None)

    def test_musl(self):
        if shutil.which('musl-gcc') is None:
            self.skipTest('no musl here')
        source, path = self.directory / 'musl.c', self.directory / 'musl'
        source.write_text(READY)
        for options, reason in (((), 'linked with musl cannot be attached to'),
                                (('-static',), 'not with the GNU C library 2.34 or newer')):
            subprocess.run(['musl-gcc', *options, '-o', path, source], check=True)
            try:
                process = self.start(path)
            except OSError as error:
                self.skipTest(f'musl does not run here: {error}')
            self.assertIn(reason, self.refusal_of(process))

    def test_recorded_from_its_start(self):
        recorder = subprocess.Popen([RECORDER, '-q', '-o', str(self.directory / 'first'),
                                     program('counted')], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, text=True, bufsize=1)
        self.addCleanup(self.end, recorder)
        self.assertEqual(recorder.stdout.readline(), 'ready\n')
        with open(f'/proc/{recorder.pid}/task/{recorder.pid}/children') as children:
            pids = [int(pid) for pid in children.read().split()]
        pid, = [pid for pid in pids if os.readlink(f'/proc/{pid}/exe') == program('counted')]
        self.assertIn(f'process {recorder.pid} records it already', self.refusal(pid))

    def test_changed_code(self):
        """By another tool, in the first bytes of a function."""
        process = self.start(program('counted'))
        for line in pathlib.Path(f'/proc/{process.pid}/maps').read_text().splitlines():
            if 'libc.so.6' in line:
                begin, path = int(line.split('-')[0], 16), line.split()[-1]
                break
        symbols = subprocess.run(['readelf', '-W', '--dyn-syms', path], capture_output=True,
                                 text=True, check=True).stdout
        offset = int(re.search(r'([0-9a-f]+) +\d+ FUNC +\S+ +\S+ +\d+ pvalloc@', symbols)[1], 16)
        with open(f'/proc/{process.pid}/mem', 'r+b', buffering=0) as memory:
            memory.seek(begin + offset)
            memory.write(b'\xcc')
        self.assertIn('pvalloc() of', self.refusal_of(process))

    def test_function_that_calls_nothing(self):
        """A compiler may have left values in registers that it does not change."""
        path = self.directory / 'leaf'
        (self.directory / 'leaf.c').write_text(LEAF)
        subprocess.run([*os.environ['COMPILER'].split(), '-O2', '-fno-builtin', '-rdynamic', '-w',
                        '-o', path, self.directory / 'leaf.c'], check=True)
        process = self.start(path)
        self.assertIn('values in registers', self.refusal_of(process))
        self.assertEqual(process.communicate('\n')[0], 'over\n')

    def test_kernel_thread(self):
        if pathlib.Path('/proc/2/comm').exists() and not os.path.exists('/proc/2/exe'):
            self.assertRegex(self.refusal(2), "one of the system's own|the system")
        else:
            self.skipTest('none is seen here')

    def test_output_that_cannot_be_written(self):
        process = self.start(program('counted'))
        before = self.image(process)[0]
        self.trace = self.directory / 'nothing' / 'trace.bin'
        result = subprocess.run([RECORDER, 'attach', '-o', str(self.trace), str(process.pid)],
                                capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, 122)
        self.assertEqual(self.image(process)[0], before)

    def test_detach_of_a_process_that_is_not_attached_to(self):
        process = self.start(program('counted'))
        answer = self.ask('detach', process)
        self.assertEqual(answer.returncode, 125)
        self.assertIn('is not being recorded by this user', answer.stderr)


class Permissions(Attach):
    """Refusals of the system to a user who is not root."""

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.recorder, self.user, self.environment = RECORDER, {}, dict(os.environ)
            return
        self.environment, self.recorder = public_recorder(self.directory)
        libraries = self.recorder.parent / 'preload'
        libraries.mkdir()
        libraries.chmod(0o755)
        for name in 'libttdattached.so', 'libttdpreload.so':
            shutil.copy(pathlib.Path(PRELOAD).with_name(name), libraries)
            (libraries / name).chmod(0o755)
        self.user = {'user': NOBODY, 'group': NOBODY, 'extra_groups': []}

    def refusal_to_user(self, pid):
        result = subprocess.run([self.recorder, 'attach', '-o', '/dev/null', str(pid)],
                                capture_output=True, text=True, timeout=PATIENCE, cwd='/',
                                env=self.environment, **self.user)
        self.assertEqual((result.returncode, result.stdout), (125, ''), result.stderr)
        self.assertEqual(result.stderr.count('\n'), 1, result.stderr)
        self.assertIn(f'cannot attach to process {pid}: ', result.stderr)
        return result.stderr

    def test_another_user(self):
        pid = os.getpid() if self.user else 1
        self.assertRegex(self.refusal_to_user(pid), 'as root, or as its user|to root only')

    def test_seccomp(self):
        process = self.start(PYTHON, '-c', CONFINED, cwd='/', **self.user)
        said = self.refusal_to_user(process.pid)
        self.assertRegex(said, 'a seccomp filter watches its system calls.*as root|to root only')
        self.assertEqual(self.tell(process, ''), [7])

    def test_a_static_program_that_is_started_under_a_filter(self):
        static = self.directory / 'static'
        shutil.copy(program('counted_static'), static)
        static.chmod(0o755)
        result = subprocess.run([PYTHON, '-c', FILTERED, self.recorder, '-o', '/dev/null', static],
                                capture_output=True, text=True, timeout=PATIENCE, cwd='/',
                                stdin=subprocess.DEVNULL, env=self.environment, **self.user)
        self.assertIn('a seccomp filter watches its system calls, and would not let the recorder '
                      'in; run ttdrecord as root (with CAP_SYS_ADMIN)\n', result.stderr)

    def test_a_process_that_protects_itself(self):
        process = self.start(PYTHON, '-c', PROTECTED, cwd='/', **self.user)
        self.assertRegex(self.refusal_to_user(process.pid), 'protects itself.*as root|to root only')

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which('setpriv'), 'only root gives it up')
    def test_root_without_the_capability(self):
        """As in a container: it is no use to tell root to be root."""
        process = self.start(PYTHON, '-c', PROTECTED, cwd='/')
        result = subprocess.run(['setpriv', '--bounding-set=-sys_ptrace', RECORDER, 'attach', '-o',
                                 '/dev/null', str(process.pid)], capture_output=True, text=True,
                                timeout=PATIENCE)
        self.assertEqual((result.returncode, result.stderr.count('\n')), (125, 1))
        self.assertRegex(result.stderr, 'lacks CAP_SYS_PTRACE.*--cap-add=SYS_PTRACE')

    @unittest.skipUnless(os.geteuid() == 0, 'only root can make such a program')
    def test_set_user_id(self):
        path = self.directory / 'counted'
        shutil.copy(program('counted'), path)
        path.chmod(0o4755)
        process = self.start(path, cwd='/', **self.user)
        if os.stat(f'/proc/{process.pid}').st_uid != 0:
            self.skipTest('the file system ignores set-user-ID')
        self.assertRegex(self.refusal_to_user(process.pid), 'protects itself.*as root|to root only')


if __name__ == '__main__':
    unittest.main()
