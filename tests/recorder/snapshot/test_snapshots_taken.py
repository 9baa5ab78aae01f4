# SPDX-License-Identifier: MIT
"""Which words snapshots have of real programs, however these end, and while they run."""

import ctypes
import os
import pathlib
import struct
import subprocess
import unittest

from snapshots import Records
from support import PATIENCE, RECORDER, Recording, analyze, program

HEAP, MODULE, STACK, REGISTERS, TLS, ANONYMOUS, FILE = range(1, 8)
STOPPED = 1
INTERVAL, EXIT = 2, 4

# By size of the block: the kind of the region that has the only pointer to it. See places.c.
MAIN_STACK, MAIN_TLS = 103, 104
PLACES = {101: MODULE, 102: MODULE, MAIN_STACK: STACK, MAIN_TLS: TLS, 105: ANONYMOUS, 106: HEAP,
          107: ANONYMOUS, 108: FILE, 109: STACK, 110: TLS, 111: ANONYMOUS, 112: HEAP,
          1 << 20: ANONYMOUS, 140: ANONYMOUS}
UNMAPPED, OVERWRITTEN, DEAD_STACK, ENDED_THREAD = LOST = 141, 142, 143, 144


def without_kcmp():
    """Installs a filter by which kcmp() is not permitted."""
    library, kcmp = ctypes.CDLL(None), 312
    filters = ctypes.create_string_buffer(b''.join(struct.pack('<HBBI', *words) for words in (
        (0x20, 0, 0, 0), (0x15, 0, 1, kcmp), (6, 0, 0, 0x50001), (6, 0, 0, 0x7fff0000))))
    rules = ctypes.create_string_buffer(struct.pack('<HxxxxxxQ', 4, ctypes.addressof(filters)))
    if library.prctl(38, 1, 0, 0, 0) or library.prctl(22, 2, rules, 0, 0):
        raise OSError('no seccomp here')


class Places(Recording):
    def check(self, trace, expected=PLACES):
        records = Records(trace)
        snapshot, = records.kinds['snapshot']
        self.assertEqual((snapshot.reason, snapshot.flags, snapshot.missing), (EXIT, STOPPED, 0))
        for size, kind in expected.items():
            kinds = {region.kind for region, _ in records.words_to(size)}
            self.assertIn(kind, kinds, size)
        for size in (UNMAPPED, DEAD_STACK, ENDED_THREAD):
            self.assertEqual(records.words_to(size), [], size)
        # The released block still has the pointer: no root, but a word of the heap.
        self.assertLessEqual({region.kind for region, _ in records.words_to(OVERWRITTEN)}, {HEAP})
        return records

    def end(self, *arguments, expected=PLACES):
        result = self.record(program('places'), *arguments)
        self.assertEqual((result.returncode, result.stderr), (0, b''))
        return self.check(self.trace, expected)

    def lost(self, trace):
        return sorted(group['bytes'] for group in analyze('leaks', trace)['groups']
                      if group['class'] == 'definitely_lost')

    def test_return(self):
        """The frame of main is not in use any more."""
        expected = dict(PLACES)
        del expected[MAIN_STACK]
        self.end(expected=expected)
        self.assertEqual(self.lost(self.trace), sorted((*LOST, MAIN_STACK)))

    def test_exit(self):
        self.end('exit')
        self.assertEqual(self.lost(self.trace), sorted(LOST))

    def test_exit_of_a_thread(self):
        self.end('thread')
        self.assertEqual(self.lost(self.trace), sorted(LOST))

    def test_exit_after_the_main_thread(self):
        """Its stack is not in use any more; its thread-local storage still is."""
        expected = dict(PLACES) | {MAIN_TLS: ANONYMOUS}
        del expected[MAIN_STACK]
        records = self.end('gone', expected=expected)
        self.assertEqual(records.words_to(MAIN_STACK), [])
        self.assertEqual(self.lost(self.trace), sorted((*LOST, MAIN_STACK)))

    def test_child(self):
        """The child's blocks are in its own trace; one of them its parent has allocated."""
        self.assertEqual(self.record(program('places'), 'fork').returncode, 0)
        child, = self.directory.glob('trace.bin.*.places')
        self.check(child, {size: kind for size, kind in PLACES.items() if size != MAIN_STACK})


class Shared(Recording):
    """Memory that others write as well, or that the process has not touched itself."""

    def leaks(self, way, kilobytes, file=None):
        arguments = (way, str(kilobytes), *([] if file is None else [str(file)]))
        self.said = self.record(program('held_in_shared'), *arguments,
                                pass_fds=() if file is None else (file,)).stderr.decode()
        children = list(self.directory.glob('trace.bin.*'))
        return analyze('leaks', *children) if children else analyze('leaks', self.trace)

    def test_is_searched(self):
        for way in 'unmapped', 'dropped', 'fork', 'read only':
            self.check_searched(way, 64)

    def check_searched(self, way, kilobytes, file=None):
        found = self.leaks(way, kilobytes, file)
        self.assertEqual((self.said, found['certain']), ('', True), way)
        self.assertEqual(found['classes']['definitely_lost']['blocks'], 0, way)
        self.assertEqual(found['classes']['still_reachable']['blocks'], 5, way)

    def test_mapping_that_is_longer_than_its_file(self):
        """Behind the file there is nothing: databases map what may be one day."""
        with open(self.directory / 'file', 'w+b') as file:
            self.check_searched('short', 500 << 10, file.fileno())

    def test_that_nobody_has_touched_is_not_made(self):
        """The system says what there is, by the thread that waits, or by one that is held. It does
        not tell of what is swapped out, but of how much is."""
        for way in 'unmapped', 'dropped', 'fork', 'read only', 'threads':
            file = os.memfd_create('shared')
            self.addCleanup(os.close, file)
            self.check_searched(way, 200 << 10, file)
            status = os.fstat(file)
            self.assertEqual(status.st_size, 200 << 20)
            self.assertLess(status.st_blocks * 512, 1 << 20, way)

    def test_is_searched_in_part(self):
        """What the process has not touched of a file is not read, so that the report is uncertain:
        it may be on a disk, and have been written by others."""
        system = subprocess.run(['stat', '-f', '-c', '%T', self.directory], capture_output=True,
                                text=True, check=True).stdout.strip()
        if system in ('tmpfs', 'ramfs'):
            self.skipTest('files are memory here')
        file = os.open(self.directory / 'file', os.O_RDWR | os.O_CREAT)
        self.addCleanup(os.close, file)
        found = self.leaks('dropped', 64 << 10, file)
        self.assertFalse(found['certain'])
        self.assertIn('1 snapshot is not complete', self.said)
        snapshot, = analyze('snapshots', self.trace)['snapshots']
        self.assertGreater(snapshot['missing_bytes'], 60 << 20)


class Kernel(Recording):
    def leaks_by_the_newest(self):
        """The answer about the moment of the newest snapshot."""
        *_, newest = analyze('snapshots', self.trace)['snapshots']
        return analyze('leaks', self.trace, '--at', newest['position'])

    def record_request(self, mode, count=1):
        """Records the program with snapshots taken from outside."""
        with subprocess.Popen([RECORDER, '-q', '--snapshot-at-exit=none', '-o', self.trace,
                               program('held_in_kernel'), mode], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as recorder:
            self.assertEqual(recorder.stdout.readline(), b'ready\n')
            with open(f'/proc/{recorder.pid}/task/{recorder.pid}/children') as children:
                pid, = [child for child in children.read().split()
                        if pathlib.Path(f'/proc/{child}/comm').read_text() == 'held_in_kernel\n']
            for _ in range(count):
                subprocess.run([RECORDER, 'snapshot', pid], check=True, capture_output=True,
                               timeout=PATIENCE)
            _, messages = recorder.communicate(b'\n', timeout=PATIENCE)
        return subprocess.CompletedProcess([], recorder.returncode, stderr=messages)

    def test_words_that_it_gives_back(self):
        """Data of epoll and of timers hold blocks, also once the main thread has ended."""
        for take in (lambda: self.record(program('held_in_kernel')),
                     lambda: self.record(program('held_in_kernel'), 'gone'),
                     lambda: self.record_request('wait')):
            result = take()
            self.assertEqual((result.returncode, result.stderr), (0, b''))
            records = Records(self.trace)
            for size in 301, 302, 303, 304, 305:
                (region, _), = records.words_to(size)
                self.assertEqual((region.kind, records.strings[region.name]),
                                 (FILE, '[timers]' if size > 303 else '[epoll]'))
            found = self.leaks_by_the_newest()
            self.assertIs(found['certain'], True)
            self.assertEqual({group['bytes']: group['class'] for group in found['groups']},
                             {306: 'definitely_lost'} | dict.fromkeys(range(301, 306),
                                                                      'still_reachable'))

    def test_tables_of_threads(self):
        """Threads may have files of their own, also while the tables have too many files to be listed
        while the process is held."""
        for mode in 'apart', 'apart-many':
            result = self.record(program('held_in_kernel'), mode)
            self.assertEqual((result.returncode, result.stderr), (0, b''))
            found = analyze('leaks', self.trace)
            self.assertIs(found['certain'], True)
            self.assertEqual(found['classes']['definitely_lost'], {'blocks': 1, 'bytes': 306})

    def test_tables_that_the_system_does_not_compare(self):
        """As in some containers: a table that differs makes a doubt, and one that is shared does not."""
        for mode in 'apart', 'apart-many', 'gone':
            self.record(program('held_in_kernel'), mode, preexec_fn=without_kcmp)
            self.assertIs(analyze('leaks', self.trace)['certain'], mode == 'gone')

    def test_files_that_are_new(self):
        """A file of epoll that was made while the files were listed holds its block, too."""
        for _ in range(8):
            self.record_request('anew', 4)
            found = analyze('leaks', self.trace, '--show', 'all')
            self.assertEqual([group['class'] for group in found['groups'] if group['bytes'] == 307],
                             ['still_reachable'])
            self.trace.unlink()

    def test_files_that_are_many(self):
        """They are not listed while the process is held: one that is new makes a doubt."""
        for _ in range(8):
            self.record_request('many', 4)
            found = self.leaks_by_the_newest()
            kind, = [group['class'] for group in found['groups'] if group['bytes'] == 307]
            if found['certain']:
                self.assertEqual(kind, 'still_reachable')
            self.trace.unlink()

    def test_files_that_are_many_and_stay(self):
        self.record_request('stay')
        found = self.leaks_by_the_newest()
        self.assertIs(found['certain'], True, found['reasons'])
        self.assertEqual(found['classes']['definitely_lost'], {'blocks': 1, 'bytes': 306})

    def test_queues(self):
        """Blocks that only the kernel holds seem lost, so nothing is certain."""
        for kind in 'ring', 'unmapped ring', 'aio':
            result = self.record(program('queues'), kind)
            if result.returncode == 77:
                self.skipTest(f'{kind}: not permitted')
            self.assertEqual(result.stdout, b'submitted\n')
            self.assertIn(b'1 snapshot is not complete', result.stderr)
            found = analyze('leaks', self.trace)
            self.assertFalse(found['certain'], kind)
            self.assertIn('snapshot 1 is not complete', found['reasons'][0])


class Running(Recording):
    def test_interval(self):
        """The program notices nothing, and whatever it holds is found."""
        result = self.record(program('churner'), options=['--snapshot-every=0.05'])
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, b'fine\n', b''))
        snapshots = Records(self.trace).kinds['snapshot']
        self.assertGreater(len(snapshots), 2)
        self.assertEqual([snapshot.number for snapshot in snapshots],
                         list(range(1, len(snapshots) + 1)))
        self.assertEqual({(snapshot.reason, snapshot.flags) for snapshot in snapshots[:-1]},
                         {(INTERVAL, STOPPED)})
        self.assertEqual(snapshots[-1].reason, EXIT)
        self.assert_sound()
        for percent in range(10, 101, 15):
            found = analyze('leaks', self.trace, '--at', f'{percent}%')
            if found['snapshot'] is not None:
                self.assertEqual(found['classes']['definitely_lost']['blocks'], 0, found)


if __name__ == '__main__':
    unittest.main()
