# SPDX-License-Identifier: MIT
"""Shared by the tests of ttdrecord attach."""

import hashlib
import os
import pathlib
import re
import subprocess

from support import PATIENCE, RECORDER, Recording, analyze


# Confines itself: no memory may be mapped or made accessible, nor a file be made in memory.
CONFINED = """
import ctypes, struct, sys
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = ctypes.c_void_p,
libc.prctl(0x59616d61, -1, 0, 0, 0)
libc.prctl(38, 1, 0, 0, 0)
mmap, mremap, memfd_create, madvise, clone = 9, 25, 319, 28, 56
filters = [struct.pack('<HBBI', 0x20, 0, 0, 0)]
for number in mmap, mremap, memfd_create, madvise, clone:
    filters += struct.pack('<HBBI', 0x15, 0, 1, number), struct.pack('<HBBI', 6, 0, 0, 0x80000000)
filters += struct.pack('<HBBI', 6, 0, 0, 0x7fff0000),
bytes = ctypes.create_string_buffer(b''.join(filters))
program = ctypes.create_string_buffer(struct.pack('<HxxxxxxQ', len(filters), ctypes.addressof(bytes)))
assert libc.prctl(22, 2, program, 0, 0) == 0
print('ready', flush=True)
for line in sys.stdin:
    libc.free(libc.malloc(12345))
    print(7, flush=True)
"""


# Forks a child that forks another, which allocates for the first time when both others have ended.
DAEMON = r"""
#include <cstdio>
#include <cstdlib>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
int main()
{
    char byte;
    free(malloc(30));
    prctl(PR_SET_PTRACER, -1UL, 0, 0, 0);
    std::puts("ready");
    std::fflush(stdout);
    if (read(0, &byte, 1) < 0)
        _exit(1);
    pid_t child = fork();
    if (child == 0) {
        free(malloc(60));
        if (fork() != 0)
            _exit(0);
        usleep(300000);
        free(malloc(61));
        _exit(0);
    }
    waitpid(child, nullptr, 0);
}
"""


# Threads that nearly always are in a call of an allocator, where they wait for each other.
CONTENDED = r"""
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>
static void *work(void *seed)
{
    unsigned state = reinterpret_cast<unsigned long>(seed);
    void *blocks[16] = {};
    for (;;) {
        state = state * 1103515245 + 12345;
        void *&block = blocks[state >> 16 & 15];
        std::free(block);
        block = std::malloc(100 + (state >> 8) % 8 * 16);
        if ((state >> 20 & 63) == 0)
            block = std::realloc(block, 200 + (state & 127));
    }
}
int main()
{
    prctl(0x59616d61, -1, 0, 0, 0);
    for (unsigned long i = 0; i < 6; i++) {
        pthread_t thread;
        pthread_create(&thread, nullptr, work, reinterpret_cast<void *>(77 * i + 5));
    }
    std::puts("ready");
    std::fflush(stdout);
    std::getchar();
    _exit(0);
}
"""
ONE_ARENA = {'GLIBC_TUNABLES': 'glibc.malloc.arena_max=1:glibc.malloc.tcache_count=0'}


class Attach(Recording):

    def compile(self, name, text, *options):
        source = self.directory / f'{name}.cpp'
        source.write_text(text)
        subprocess.run([*os.environ['COMPILER_CXX'].split(), '-O1', '-fno-builtin', '-w', '-pthread',
                        *options, '-o', self.directory / name, source], check=True)
        return self.directory / name

    def check_daemon(self):
        """Both processes that DAEMON forks are recorded."""
        sizes = [event['size'] for trace in self.directory.glob('trace.bin.*')
                 for event in analyze('events', trace) if event['action'] == 'Alloc']
        self.assertEqual(sorted(sizes), [60, 61])

    def start(self, *command, **others):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True, bufsize=1, **others)
        self.addCleanup(self.end, process)
        self.assertEqual(process.stdout.readline(), 'ready\n')
        return process

    @staticmethod
    def end(process):
        process.kill()
        if process.returncode is None:
            process.communicate()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()

    @staticmethod
    def tell(process, command):
        """The counts that the program answers with, of all its calls so far."""
        process.stdin.write(command + '\n')
        return [int(count) for count in process.stdout.readline().split()]

    def attach(self, process, *options):
        recorder = subprocess.Popen([RECORDER, 'attach', '-o', str(self.trace), *options,
                                     str(process.pid)], stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, recorder)
        line = recorder.stderr.readline()
        self.assertIn(f'attached to process {process.pid}', line)
        return recorder

    def ask(self, command, process, *arguments):
        return subprocess.run([RECORDER, command, str(process.pid), *arguments],
                              capture_output=True, text=True, timeout=PATIENCE)

    def detach(self, process, recorder):
        answer = self.ask('detach', process)
        self.assertEqual((answer.returncode, answer.stderr), (0, ''))
        self.assertIn(': detached', answer.stdout)
        self.assertEqual(recorder.wait(PATIENCE), 0)
        return recorder.stderr.read()

    def refusal(self, pid, *options):
        """Why a process cannot be attached to: one line."""
        result = subprocess.run([RECORDER, 'attach', '-o', str(self.trace), *options, str(pid)],
                                capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, 125, result.stderr)
        self.assertEqual(result.stdout, '')
        self.assertEqual(result.stderr.count('\n'), 1, result.stderr)
        self.assertFalse(self.trace.exists())
        self.assertIn(f'cannot attach to process {pid}: ', result.stderr)
        return result.stderr

    @staticmethod
    def caught(process):
        """The signals for which the process has handlers."""
        status = pathlib.Path(f'/proc/{process.pid}/status').read_text()
        return re.search('SigCgt:.*', status)[0]

    @staticmethod
    def image(process):
        """The mappings of a process, but for the sizes of its heaps; and its code, and how much of
        that is not its files' any more."""
        mappings, code, dirty = [], [], 0
        with open(f'/proc/{process.pid}/mem', 'rb') as memory:
            for line in pathlib.Path(f'/proc/{process.pid}/smaps').read_text().splitlines():
                found = re.match(r'([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ (\d+) *(.*)', line)
                if found is None:
                    key, *values = line.split()
                    if key == 'Private_Dirty:' and 'x' in mappings[-1][1]:
                        dirty += int(values[0])
                    continue
                begin, end, permissions, inode, name = found.groups()
                is_heap = inode == '0'
                mappings.append((begin if not is_heap else '', permissions, name))
                if 'x' in permissions and name.startswith('/'):
                    memory.seek(int(begin, 16))
                    try:
                        content = memory.read(int(end, 16) - int(begin, 16))
                    except OSError:  # a library that a thread has closed since
                        content = b''
                    code.append((name, hashlib.sha256(content).hexdigest()))
        return mappings, code, dirty
