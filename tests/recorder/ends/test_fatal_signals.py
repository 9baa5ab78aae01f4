# SPDX-License-Identifier: MIT
"""A program that dies of a signal: what the trace says of it, and that it dies as it would."""

import csv
import os
import pathlib
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import unittest

from support import ANALYZER, PATIENCE, Recording, analyze, program

READER = os.environ['READER']
RIP = 16
NOWHERE = 0x10
SEGV_MAPERR, SEGV_ACCERR, SI_TKILL, SI_USER, SI_KERNEL = 1, 2, -6, 0, 128
FPE_INTDIV, ILL_ILLOPN, BUS_ADRERR = 1, 2, 2


def note(core, kind):
    """The first note of a kind in a core."""
    offset, = struct.unpack_from('=Q', core, 32)
    size, count = struct.unpack_from('=HH', core, 54)
    for at in range(offset, offset + size * count, size):
        segment_kind, _, begin, _, _, length = struct.unpack_from('=IIQQQQ', core, at)
        end = begin + length
        while segment_kind == 4 and begin < end:
            name, content, found = struct.unpack_from('=III', core, begin)
            begin += 12 + (name + 3) // 4 * 4
            if found == kind:
                return core[begin:begin + content]
            begin += (content + 3) // 4 * 4
    return None


class Deaths(Recording):
    def signals(self, trace=None):
        """The fatal signals of the trace, by the second reader, as dicts."""
        text = subprocess.run([sys.executable, '-B', READER, str(trace or self.trace)],
                              capture_output=True, text=True, timeout=PATIENCE).stdout
        return [{**dict(word.split('=') for word in line.split()[1:] if '=' in word),
                 'registers': {int(number, 16): int(value, 16) for number, value in
                               re.findall(r' ([0-9a-f]+):([0-9a-f]+)(?= |$)', line)}}
                for line in text.splitlines() if line.startswith('signal ')]

    def die(self, way, *options, name='dies'):
        """Dies alone and recorded, in the same way. Returns the result and the fatal signals."""
        native = subprocess.run([program(name), way], capture_output=True, timeout=PATIENCE)
        recorded = self.record(program(name), way, options=options)
        self.assertEqual((recorded.returncode, recorded.stdout, recorded.stderr),
                         (native.returncode, native.stdout, native.stderr))
        return native, self.signals()


class Signals(Deaths):
    def test_each(self):
        for way, number, code, address in (
                ('write', signal.SIGSEGV, SEGV_MAPERR, NOWHERE),
                ('abort', signal.SIGABRT, SI_TKILL, 0),
                ('free', signal.SIGABRT, SI_TKILL, 0),
                ('divide', signal.SIGFPE, FPE_INTDIV, None),
                ('instruction', signal.SIGILL, ILL_ILLOPN, None),
                ('trap', signal.SIGTRAP, SI_KERNEL, None),
                ('file', signal.SIGBUS, BUS_ADRERR, None),
                ('thread', signal.SIGSEGV, SEGV_MAPERR, NOWHERE),
                ('overflow', signal.SIGSEGV, SEGV_MAPERR, None),
                ('thread overflow', signal.SIGSEGV, SEGV_ACCERR, None),
                ('later thread overflow', signal.SIGSEGV, SEGV_ACCERR, None),
                ('raise', signal.SIGSEGV, SI_TKILL, 0),
                ('kill', signal.SIGBUS, SI_USER, 0),
                ('reset', signal.SIGSEGV, SEGV_MAPERR, NOWHERE),
                ('pass on', signal.SIGSEGV, SEGV_MAPERR, NOWHERE)):
            with self.subTest(way):
                native, (found,) = self.die(way)
                self.assertEqual(native.returncode, -number)
                self.assertEqual((int(found['signal'], 16), int(found['code']), found['snapshot']),
                                 (number, code, '1'))
                if address is not None:
                    self.assertEqual(int(found['address'], 16), address)
                self.assertEqual(set(found['registers']), set(range(17)))
                self.assertNotEqual(found['stack'], '0')
                self.assertNotEqual(found['thread'], '0')

    def test_reset_and_raised(self):
        """Servers with a handler: the system or the program resets it, and the handler
        raises the signal again."""
        for way, number in (('once', signal.SIGSEGV), ('once asked', signal.SIGTERM),
                            ('once by an older function', signal.SIGSEGV),
                            ('by a system call', signal.SIGSEGV), ('read', signal.SIGTERM)):
            with self.subTest(way):
                native, found = self.die(way)
                self.assertEqual(native.returncode, -number)
                self.assertNotIn(b'wrong', native.stdout)
                self.assertEqual([(int(item['signal'], 16), item['snapshot']) for item in found],
                                 [(number, '1')])

    def abort(self, *arguments):
        """Aborts alone and recorded, in the same way. Returns the status and the fatal signals."""
        native = subprocess.run([program('aborts'), *arguments], capture_output=True,
                                timeout=PATIENCE)
        recorded = self.record(program('aborts'), *arguments)
        self.assertEqual((recorded.returncode, recorded.stdout, recorded.stderr),
                         (native.returncode, native.stdout, native.stderr))
        return native.returncode, self.signals()

    def test_abort_after_a_handler(self):
        """abort() resets the action when the handler has returned, and raises the signal again."""
        for way in ('abort', 'assert', 'free'):
            for how in ('sigaction', 'signal', 'once', 'stack'):
                with self.subTest(way=way, how=how):
                    status, found = self.abort(way, how)
                    self.assertEqual(status, -signal.SIGABRT)
                    self.assertEqual([(int(item['signal'], 16), int(item['code']),
                                       item['snapshot']) for item in found],
                                     [(signal.SIGABRT, SI_TKILL, '1')])
        self.abort('abort', 'sigaction')
        self.assertEqual(analyze('leaks', self.trace)['classes']['definitely_lost']['bytes'], 0)

    def test_survived_aborts(self):
        """The handler jumps out of abort(), or the signal was raised by the program."""
        for way in ('jump', 'raise'):
            self.assertEqual(self.abort(way, 'sigaction'), (3, []))

    def test_where(self):
        """The program's code is not moved: the address is the same without the recorder."""
        _, (found,) = self.die('write')
        listing = subprocess.run(['nm', '-S', program('dies')], capture_output=True,
                                 text=True).stdout
        begin, size = next((int(line.split()[0], 16), int(line.split()[1], 16))
                           for line in listing.splitlines() if line.endswith(' fail'))
        self.assertLess(found['registers'][RIP] - begin, size)

    def test_jumps(self):
        """The stack begins where the jump came from: what it led to is in a register."""
        for way in ('jump', 'wild jump', 'jump to data'):
            _, (found,) = self.die(way)
            fatal = analyze('errors', self.trace)['fatal_signal']
            self.assertEqual([frame['function'] for frame in fatal['stack']][:4],
                             ['jump_to', 'die_by_access', 'die', 'main'])
            self.assertEqual(int(fatal['address'], 16), found['registers'][RIP])
            text = subprocess.run([ANALYZER, 'errors', str(self.trace)], capture_output=True,
                                  text=True).stdout
            self.assertIn('  it jumped to the fault address\n', text)

    def text(self, way):
        self.die(way)
        return subprocess.run([ANALYZER, 'errors', str(self.trace)], capture_output=True,
                              text=True).stdout

    def test_overflow(self):
        for way, thread in (('overflow', 1), ('thread overflow', 2)):
            text = self.text(way)
            self.assertIn('  the stack of the thread has overflown\n', text)
            self.assertRegex(text, '\\n    … [0-9]+ × overflow\\n')
            self.assertLess(text.count(' overflow ('), 5)
            fatal = analyze('errors', self.trace)['fatal_signal']
            self.assertEqual((fatal['cause'], fatal['thread']), ('stack-overflow', thread))
            # Who has begun the recursion is the outermost of the frames.
            self.assertRegex(text, '\\n    … [0-9,]+ frames were not recorded\\n')
            begins = 'main' if thread == 1 else 'overflow_in_thread'
            self.assertRegex(text, rf'\n    #[0-9]{{4,}} {begins} \(')
            gap, = [int(frame['address'], 16) for frame in fatal['stack']
                    if int(frame['address'], 16) > 2 ** 63]
            self.assertGreater(2 ** 64 - gap, 1000)
            self.assertLess(len(fatal['stack']), 270)

    def test_what_an_address_is(self):
        for way, line in (('jump to data', ' lies in no block: dies .bss: data\n'),
                          ('jump', ' lies in no block: a null pointer, or a member of an object at '),
                          ('read only', ' lies in no block: dies .rodata'),
                          ('read only table', ' lies in no block: dies: table+0x8\n'),
                          ('read only mapping', ' lies in no block: mapping 0x')):
            self.assertIn(line, self.text(way))
            table = subprocess.run([ANALYZER, 'errors', '--format=csv', str(self.trace)],
                                   capture_output=True, text=True, check=True).stdout
            row, = csv.DictReader(table.splitlines())
            place = line.rstrip().split(' lies in no block: ')[1]
            if way != 'jump':
                self.assertIn(place, row['place'])
                fatal = analyze('errors', self.trace)['fatal_signal']
                self.assertIn(place, fatal['fault']['place']['label'])
        text = self.text('free data')
        self.assertIn('\n  the address is dies .bss: data+0x10\n', text)
        self.assertNotIn('  the block b', text)
        finding, = analyze('errors', self.trace)['findings']
        self.assertEqual((finding['kind'], finding['place']['label'], finding['before'],
                          finding['after']), ('invalid-free', 'dies .bss: data+0x10', None, None))

    def test_variables_on_the_stack(self):
        """Frames are those of the call: the snapshot has some that came later, or others."""
        for way, label in (
                ('free variable', r', free_variable \(dies\.c:\d+\) \+0x[0-9a-f]+'),
                ('free left variable', ', in a frame that had returned'),
                ('free block on stack', r' \+0x[0-9a-f]+')):  # and dies in another call
            result = self.record(program('dies'), way)
            self.assertEqual(result.returncode, -signal.SIGABRT)
            finding, = analyze('errors', self.trace)['findings']
            self.assertEqual(finding['kind'], 'invalid-free')
            self.assertRegex(finding['place']['label'], f'^thread 1, stack{label}$')

    def test_without_a_snapshot(self):
        _, (found,) = self.die('write', '--no-snapshot')
        self.assertEqual(found['snapshot'], '0')

    def test_two_at_once(self):
        """The process does not die of one while the other is being told."""
        for _ in range(20):
            _, found = self.die('two threads')
            self.assertTrue(found)
            self.assertEqual([item['snapshot'] for item in found][:1], ['1'])

    def test_child(self):
        _, own = self.die('child')
        self.assertEqual(own, [])
        child, = self.directory.glob('trace.bin.*.dies')
        self.assertEqual(len(self.signals(child)), 1)

    def test_overflow_in_child_of_thread(self):
        native, own = self.die('child of thread')
        self.assertEqual((native.returncode, own), (3, []))
        child, = self.directory.glob('trace.bin.*.dies')
        found, = self.signals(child)
        self.assertEqual(int(found['code']), SEGV_ACCERR)

    def test_that_cannot_be_told(self):
        """No handler runs where the signal is blocked, or in a child that shares the memory."""
        for way, number in (('blocked', signal.SIGSEGV), ('quiet thread overflow', signal.SIGSEGV),
                            ('vfork', 0)):
            with self.subTest(way):
                native, found = self.die(way)
                self.assertEqual(found, [])
                told = analyze('errors', self.trace)['fatal_signal'] or {'signal': 0}
                self.assertEqual(told['signal'], number)
                self.assertIsNone(told.get('position'))

    def test_core(self):
        """The core has the registers and the signal of the failure itself."""
        pattern = pathlib.Path('/proc/sys/kernel/core_pattern').read_text().strip()
        if pattern != 'core':
            self.skipTest('cores go elsewhere')
        unlimited = {'preexec_fn': lambda: resource.setrlimit(
            resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)),
            'cwd': self.directory}
        for way in ('write', 'divide', 'instruction', 'trap', 'abort'):
            with self.subTest(way):
                seen = []
                for run in (lambda: subprocess.run([program('dies'), way], capture_output=True,
                                                   **unlimited),
                            lambda: self.record(program('dies'), way, **unlimited)):
                    (self.directory / 'core').unlink(missing_ok=True)
                    run()
                    core = (self.directory / 'core').read_bytes()
                    status, info = note(core, 1), note(core, 0x53494749)
                    # In PRSTATUS the registers begin at 112; rip is the 17th of them. Addresses of
                    # the C library and ids of processes differ from run to run.
                    place = struct.unpack_from('=Q', status, 112 + 8 * 16)[0]
                    seen.append((struct.unpack_from('=H', status, 12)[0],
                                 struct.unpack_from('=iii', info),
                                 place if way != 'abort' else 0))
                self.assertEqual(*seen)


class Handlers(Deaths):
    """Programs with handlers of their own keep them, and see none of the recorder's."""

    def test_own(self):
        native, found = self.die('own')
        self.assertEqual((native.returncode, found), (3, []))

    def test_ignored(self):
        native, found = self.die('ignored')
        self.assertEqual((native.returncode, found), (3, []))

    def test_what_the_program_sees(self):
        for name, way in (('dies', 'ask'), ('handles', 'stack'), ('handles', 'thread stack')):
            native, _ = self.die(way, name=name)
            self.assertEqual(native.returncode, 3)
            self.assertIn(b'default' if way == 'ask' else b'on the signal stack', native.stdout)

    def test_thread_without_a_stack(self):
        native, found = self.die('beside stack', name='handles')
        self.assertEqual((native.returncode, found), (3, []))
        self.assertIn(b'handled', native.stdout)

    def test_faulthandler(self):
        python = shutil.which('python3', path='/usr/bin')
        if python is None:
            self.skipTest('no python3 here')
        command = [python, '-X', 'faulthandler', '-c', 'import ctypes; ctypes.string_at(0)']
        result = self.record(*command)
        self.assertEqual(result.returncode, -signal.SIGSEGV)
        self.assertIn(b'Fatal Python error: Segmentation fault', result.stderr)
        self.assertEqual([int(found['signal'], 16) for found in self.signals()], [signal.SIGSEGV])


if __name__ == '__main__':
    unittest.main()
