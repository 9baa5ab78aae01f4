# SPDX-License-Identifier: MIT
"""The live API against conformance.txt: what each call returns, and what it leaves in the trace.
RUNS in the environment says how often."""

import collections
import os
import pathlib
import re
import subprocess
import unittest

from support import PATIENCE, Recording, analyze, marks, program

THREADS, CALLS, MARKED, SIZE = 8, 200, 10000, 4096
NO_LIMIT = str(2**64 - 1)
ROOT = pathlib.Path(__file__).resolve().parents[3]
HEADERS = [ROOT / 'libtrace/include/ttdtrace' / name
           for name in ('live.h', 'live_dump.h', 'live_heap.h')]
FIELDS = 'call reference function result state used left recorded'
# A busy machine has no time for it, which concerns no call of the program.
STACKS_LATE = r'ttdrecord: \d+ stacks? of threads in snapshots .* not followed, .*\n'
CHANGES = {'start', 'stop', 'paused', 'resumed', 'reset'}
# Contents of a snapshot.
SNAPSHOTS = {'heaps': ('references', 'memory'), 'memory': ('memory',)}
# Events of heaps: what they have beside action and heap, from the base of the thread's addresses.
HEAP_EVENTS = {
    'heap-create': {'reserve_size': 0, 'commit_size': 0},
    'heap-create-sized': {'heap': 64, 'reserve_size': 4096, 'commit_size': 512},
    'heap-alloc': {'address': 1024, 'size': 128},
    'heap-alloc-failed': {'address': None, 'size': 128, 'result': 0},
    'heap-realloc': {'address': 2048, 'base_address': 1024, 'previous_address': 1024, 'size': 256},
    'heap-free': {'base_address': 2048},
    'heap-protect': {'make_read_only': 1},
    'heap-unprotect': {'make_read_only': 0},
}


class Row(collections.namedtuple('Row', FIELDS + ' trace')):
    """A row of the table."""

    def printed(self, thread, number):
        numbers = [NO_LIMIT if value == '-' else value for value in (self.used, self.left)]
        return ' '.join([f'{thread}.{number}', self.call, self.result, self.state, *numbers])

    @property
    def has_gap(self):
        """Whether the thread has been changed, and then did not record the next heap call or,
        behind a throttle, the one after it."""
        kinds = {token.split('/')[0] for token in self.trace}
        return 'throttled' in kinds or (self.recorded == 'no' and bool(kinds & CHANGES))

    def marks(self, name):
        """The marks of the thread, and those of the process, as kind, keyframe, data, throttle."""
        of_thread, of_process = [], []
        for token in self.trace:
            kind, data, throttle, *_ = token.split('/') + ['', '', '']
            data = {'name': name, '16384': 'l' * 16384}.get(data, data)
            if kind in ('open', 'close', 'global'):
                of_process.append((kind.replace('global', 'event'), False, data, None))
            elif kind in ('event', 'keyframe'):
                of_thread.append(('event', kind == 'keyframe', data, None))
            elif kind.islower() and kind not in SNAPSHOTS:
                throttle = int(throttle) if throttle else None
                of_thread.append((kind, False, data, throttle))
        return of_thread, of_process


def table():
    rows = [line.split() for line in (ROOT / 'tests/recorder/conformance.txt').read_text().splitlines()
            if line and not line.startswith('#')]
    fields = len(FIELDS.split())
    return [Row(*row[:fields], [] if row[fields:] == ['-'] else row[fields:]) for row in rows]


def functions():
    """The functions of the headers, without ttd_live_."""
    return set(re.findall(r'^static inline [\w ]+?\*?ttd_live_(\w+)\(', '\n'.join(
        header.read_text() for header in HEADERS), re.M))


class Conformance(Recording):
    rows = table()

    def test_table(self):
        """The table has every function, and every call of the reference that the manual has."""
        self.assertEqual({row.function for row in self.rows}, functions())
        manual = (ROOT / 'recorder/ttdrecord.1').read_text()
        named = set(re.findall(r'^\.It (\w+) Ta Fn ttd_live_(\w+)$', manual, re.M))
        self.assertEqual({(row.reference, row.function) for row in self.rows
                          if row.reference != '-'}, named)
        heaps = re.search(r'\.Fn ttd_live_heap_create ,$(.*?)^and$\n^\.Fn (\w+)', manual, re.M | re.S)
        told = {'create', heaps[2], *re.findall(r'^\.Fn (\w+)', heaps[1], re.M)}
        self.assertEqual({row.function.removeprefix('heap_').removesuffix('_sized')
                          for row in self.rows if row.reference == '-'}, told)

    def test_runs(self):
        for run in range(int(os.environ.get('RUNS', 3))):
            with self.subTest(run=run):
                self.check()

    def check(self):
        self.trace.unlink(missing_ok=True)
        result = self.record(program('conforms'), *(row.call for row in self.rows))
        told = re.sub(STACKS_LATE, '', result.stderr.decode())
        self.assertEqual((result.returncode, told), (0, ''))
        lines = result.stdout.decode().splitlines()
        places = [line.split()[1:] for line in lines if line.startswith('ranges ')]
        self.assertEqual([line for line in lines if not line.startswith('ranges ')],
                         [row.printed(thread, number) for thread in range(THREADS)
                          for number, row in enumerate(self.rows)])
        self.assertEqual([place[2] for place in places], [str(self.trace)] * THREADS)
        threads = self.check_marks()
        self.check_events(threads)
        self.check_snapshots(threads)
        for thread, (filled, later, _) in enumerate(places):
            self.check_memory(filled, chr(ord('A') + thread))
            self.check_memory(later, chr(ord('a') + thread))
        self.check_losses(threads)
        self.assertEqual(analyze('verify', self.trace)['problems'], [])

    def check_marks(self):
        """Returns the numbers of the threads in the trace."""
        told, of_process, threads = collections.defaultdict(list), [], {}
        for mark in marks(self.trace):
            text = mark['text'] if mark['text'] is not None else bytes.fromhex(mark['data']).decode()
            found = (mark['kind'], mark['keyframe'], text,
                     mark['throttle'] if mark['kind'] == 'start' else None)
            self.assertTrue(mark['client'].startswith('5d010203-0405-4607-8809-0a0b0c0d0e'))
            client = int(mark['client'][-2:])
            if mark['kind'] == 'start':
                self.assertEqual(mark['activity'], 7)
            if mark['thread']:
                self.assertEqual(threads.setdefault(client, mark['thread']), mark['thread'])
                told[client].append(found)
            else:
                of_process.append((client, found))
        for thread in range(THREADS):
            wanted = [row.marks(f'{thread}.{i}') for i, row in enumerate(self.rows)]
            self.assertEqual(told[thread], sum((marks for marks, _ in wanted), []))
            self.assertEqual([mark for client, mark in of_process if client == thread],
                             sum((marks for _, marks in wanted), []))
        self.assertEqual(len(set(threads.values())), THREADS)
        return threads

    def check_events(self, threads):
        """Which blocks are in the trace, and the calls about heaps between them."""
        found = collections.defaultdict(list)
        for event in analyze('events', self.trace):
            base = int(event['heap'], 16) >> 40 << 40
            size = event.get('size', 0)
            if base:
                fields = {name: event.get(name) for name in ('action', 'result', 'size',
                                                             'reserve_size', 'commit_size',
                                                             'make_read_only')}
                fields['heap'] = int(event['heap'], 16) - base or None
                for name in 'address', 'base_address', 'previous_address':
                    address = int(event.get(name, '0'), 16)
                    fields[name] = address - base if address else None
                found[(base >> 40) - 1].append(
                    {name: value for name, value in fields.items() if value is not None})
            elif event['action'] == 'Alloc' and 0 <= size - MARKED < THREADS * CALLS:
                thread, number = divmod(size - MARKED, CALLS)
                self.assertEqual(event['thread'], threads[thread])
                found[thread].append(number)
        for thread in range(THREADS):
            wanted = []
            for number, row in enumerate(self.rows):
                actions = [action for action in row.trace if action[0].isupper()]
                for i, action in enumerate(actions):
                    # A heap is destroyed with the one that lies in it, which goes first.
                    is_inner = actions == ['Destroy', 'Destroy'] and i == 0
                    fields = HEAP_EVENTS.get(row.call, {}) if action != 'Destroy' else {}
                    wanted.append({'action': action, 'result': 1, 'heap': 64 * is_inner or None,
                                   **fields})
                wanted += [number] if row.recorded == 'yes' else []
            wanted = [{name: value for name, value in event.items() if value is not None}
                      if isinstance(event, dict) else event for event in wanted]
            self.assertEqual(found[thread], wanted)

    def check_snapshots(self, threads):
        found = collections.Counter()
        for snapshot in analyze('snapshots', self.trace)['snapshots']:
            if snapshot['reason'] == 'program':
                contents = tuple(snapshot['contents'])
                found[snapshot['thread'], contents] += 1
                self.assertTrue(snapshot['complete'])
                if contents == SNAPSHOTS['heaps']:
                    self.assertTrue(snapshot['stopped'])
        self.assertEqual(found, collections.Counter(
            (threads[thread], SNAPSHOTS[token]) for thread in range(THREADS)
            for row in self.rows for token in row.trace if token in SNAPSHOTS))

    def check_memory(self, address, letter):
        parts = analyze('memory', self.trace, '--address', address, '--length', str(SIZE))['parts']
        self.assertEqual(b''.join(bytes.fromhex(part.get('bytes', '')) for part in parts),
                         letter.encode() * SIZE)

    def check_losses(self, threads):
        """A loss begins with each change of a thread that leaves it without recording, and ends
        with the next change."""
        gaps = sum(row.has_gap for row in self.rows)
        losses = analyze('info', self.trace)['loss_list']
        self.assertEqual(collections.Counter(loss['thread'] for loss in losses),
                         {thread: gaps for thread in threads.values()})
        self.assertEqual({loss['reason'] for loss in losses}, {'not all calls are recorded'})

    def test_not_recorded(self):
        """Without a recorder no call does anything."""
        result = subprocess.run([program('conforms'), *(row.call for row in self.rows)],
                                capture_output=True, text=True, timeout=PATIENCE, check=True)
        self.assertEqual([line for line in result.stdout.splitlines()
                          if not line.startswith('ranges ')],
                         [f'{thread}.{i} {row.call} 0 0 0 0' for thread in range(THREADS)
                          for i, row in enumerate(self.rows)])


if __name__ == '__main__':
    unittest.main()
