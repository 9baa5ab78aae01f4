# SPDX-License-Identifier: MIT
"""Costs of the recorder to the program: system calls, address space, memory, time per thread."""

import resource
import subprocess
import unittest

from support import Recording, analyze, program


class Confined(Recording):
    def check(self, way):
        """More calls than fit into the memory that is shared with the collector."""
        command = [program('strict'), way, '1500000']
        native = subprocess.run(command).returncode
        if native == 77:
            self.skipTest('no seccomp here')
        self.assertEqual((native, self.record(*command).returncode), (7, 7))
        info = analyze('info', self.trace)
        self.assertGreaterEqual(info['allocs'] + info['frees'] + info['lost_events'], 3000000)
        self.assertGreater(info['allocs'], 100000)

    def test_by_prctl(self):
        self.check('prctl')

    def test_by_syscall(self):
        self.check('syscall')

    def test_threads_and_children(self):
        """Threads that first allocate, from deep stacks, when not even memory may be asked for."""
        command = [program('sandboxed'), '20']
        native = subprocess.run(command).returncode
        if native == 77:
            self.skipTest('no seccomp here')
        self.assertEqual((native, self.record(*command).returncode), (0, 0))
        info = analyze('info', self.trace)
        self.assertEqual((info['lost_events'], info['threads']), (0, 21))
        self.assertGreaterEqual(info['allocs'], 20 * 500)
        [group] = analyze('hot', self.trace, '--limit', '1')['groups']
        self.assertEqual(group['allocations'], 20 * 500)
        self.assertGreater(len(group['stack']), 300)
        [child] = self.directory.glob('trace.bin.*')
        self.assertGreaterEqual(analyze('info', child)['allocs'], 500)
        self.assert_sound()


class Threads(Recording):
    def test_none_lost_of_12000(self):
        result = self.record(program('many_threads'), '12000', '10')
        if result.returncode == 77:
            self.skipTest('the system does not allow so many threads')
        self.assertEqual(result.stdout, b'done\n')
        info = analyze('info', self.trace)
        self.assertEqual(info['lost_events'], 0)
        self.assertGreaterEqual(info['frees'], 12000 * 6 + 100)
        self.assert_sound()


def footprint(text):
    """The output of the program `footprint`, in kB."""
    return {name: int(size) for name, size in (line.split() for line in text.splitlines())}


class Memory(Recording):
    ONE_ARENA = {'MALLOC_ARENA_MAX': '1'}

    def least_added(self, threads, address_limit):
        """The least that it adds: a window of 256 kB more is mapped while calls wait to be collected,
        as they do on a busy machine, and stays. So it is tried again if there are more addresses."""
        sizes = []
        while len(sizes) < 3 or (min(sizes)[0] >= address_limit and len(sizes) < 12):
            sizes.append(self.added(threads))
        return tuple(map(min, zip(*sizes)))

    def added(self, threads):
        """The recorder's part of the address space and memory of so many threads."""
        command = [program('footprint'), str(threads)]
        native = subprocess.run(command, capture_output=True, env=self.ONE_ARENA)
        if native.returncode == 77:
            self.skipTest('the system does not allow so many threads')
        recorded = footprint(self.record(*command, environment=self.ONE_ARENA).stdout)
        native = footprint(native.stdout)
        return recorded[b'VmSize'] - native[b'VmSize'], recorded[b'VmRSS'] - native[b'VmRSS']

    def test_in_proportion_to_threads(self):
        """As the manual says: 2 MB, and for each thread 30 kB, and 68 kB of addresses."""
        for threads in (0, 100, 3000):
            limits = 2048 + (30 + 68) * threads, 2048 + 30 * threads
            for kind, limit, size in zip(('addresses', 'memory'), limits,
                                         self.least_added(threads, limits[0])):
                with self.subTest(threads=threads, kind=kind):
                    self.assertLess(size, limit)

    def limit(self, kind, size):
        """Arguments of subprocess.run() that limit a process to so many bytes."""
        if resource.getrlimit(kind)[1] not in (resource.RLIM_INFINITY, size):
            self.skipTest('limits are not ours to set')
        return {'preexec_fn': lambda: resource.setrlimit(kind, (size, size))}

    def test_all_locked(self):
        """An ordinary user may lock 8 MB."""
        limit = {'preexec_fn': lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (8 << 20,) * 2)}
        command = [program('footprint'), '0', 'lock']
        native = subprocess.run(command, capture_output=True, **limit)
        self.assertEqual(native.returncode, 0)
        recorded = self.record(*command, **limit)
        self.assertEqual(recorded.returncode, 0)
        more = footprint(recorded.stdout)[b'VmLck'] - footprint(native.stdout)[b'VmLck']
        self.assertLess(more, 2048)
        self.assert_sound()

    def test_little_address_space(self):
        code = 'import sys; sys.stdout.write(str(len(bytearray(1 << 20))))'
        result = self.record('/usr/bin/python3', '-c', code,
                             **self.limit(resource.RLIMIT_AS, 200 << 20))
        self.assertEqual((result.returncode, result.stdout), (0, b'1048576'))
        self.assertGreater(analyze('info', self.trace)['allocs'], 100)
        self.assert_sound()

    def test_no_room_for_tables(self):
        """The program does the same with less of the recorder, or with nothing of it."""
        for limit in ('-d 1000', '-d 2000', '-v 12000', '-v 13000'):
            with self.subTest(limit):
                self.trace.unlink(missing_ok=True)
                result = self.record('/bin/sh', '-c', f'ulimit {limit}; exec cat /etc/passwd')
                self.assertEqual(result.returncode, 0, result.stderr)
                with open('/etc/passwd', 'rb') as file:
                    self.assertEqual(result.stdout, file.read())


class Stack(Recording):
    # The recorder's limit on the stack of a thread: on the usual path, and the first time.
    USUAL, FIRST, SIGNAL = 512, 1024, 920
    # Where no path is the usual one: a frame without a plain rule, a signal stack.
    UNUSUAL = 'register', 'handler'

    @staticmethod
    def depths(result):
        """Lines of the program `small_stack`: what is called, how deep at first, how deep then."""
        return [(what, int(first), int(then)) for what, first, then in
                (line.replace(', then', ':').split(':') for line in result.splitlines())]

    def test_depth(self):
        native = subprocess.run(program('small_stack'), capture_output=True, text=True).stdout
        recorded = self.record(program('small_stack')).stdout.decode()
        self.assertEqual(len(self.depths(native)), 8)
        for (what, _, then), (_, first_now, then_now) in zip(self.depths(native),
                                                            self.depths(recorded), strict=True):
            with self.subTest(what):
                # At first the C library itself may need more, once.
                self.assertLess(first_now - then, self.FIRST)
                self.assertLess(then_now - then,
                                self.FIRST if what in self.UNUSUAL else self.USUAL)

    def test_signal_stack(self):
        """Handlers of signals on a stack of 4,096 bytes, of which the registers of AVX-512 take most:
        what is left is enough, at the first call from a place as well."""
        native = subprocess.run(program('signal_stack'), capture_output=True, text=True)
        if native.returncode == 77:
            self.skipTest('no AVX-512 here, or the system saves more than that')
        self.assertEqual(native.returncode, 0)
        recorded = self.record(program('signal_stack'))
        self.assertEqual((recorded.returncode, recorded.stderr), (0, b''))
        self.assertLess(int(recorded.stdout) - int(native.stdout), self.SIGNAL)
        self.assert_sound()

    def test_misaligned(self):
        """A stack that is 8 bytes off, on which the C library runs as well."""
        self.assertEqual(subprocess.run(program('misaligned')).returncode, 0)
        result = self.record(program('misaligned'))
        self.assertEqual((result.returncode, result.stderr), (0, b''))
        self.assert_sound()
        sizes = [event.get('size') for event in analyze('events', self.trace)]
        self.assertEqual(sizes.count(33), 4 * 199)


if __name__ == '__main__':
    unittest.main()
