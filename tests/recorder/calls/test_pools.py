# SPDX-License-Identifier: MIT
"""The examples: what APR's pools, talloc's contexts and Boehm's collector do is in the trace."""

import collections
import os
import pathlib
import subprocess
import unittest

from support import Recording, analyze

EXAMPLES = pathlib.Path(os.environ['EXAMPLES'])
INCLUDES = os.environ['INCLUDES']


class Pools(Recording):

    def compile(self, output, source, *options):
        built = subprocess.run([*os.environ['COMPILER'].split(), '-g', '-O1', '-D_GNU_SOURCE',
                                '-I', INCLUDES, '-o', self.directory / output, source, *options],
                               capture_output=True, text=True)
        if built.returncode != 0:
            self.skipTest(f'not installed: {built.stderr[:200]}')
        return str(self.directory / output)

    def events_of(self, name, *options):
        """Records a program with the example for its allocator; returns the events of heaps."""
        program = self.compile('program', pathlib.Path(os.environ['SOURCES'], f'pools/{name}.c'),
                               *options)
        library = self.compile('pools.so', EXAMPLES / f'pools/{name}.c', '-shared', '-fPIC',
                               *[option for option in options if not option.startswith('-l')])
        native = subprocess.run([program], env=dict(os.environ, LD_PRELOAD=library))
        self.assertEqual(native.returncode, 0)
        result = self.record('env', f'LD_PRELOAD={library}', program)
        self.assertEqual((result.returncode, result.stderr), (0, b''))
        self.assertEqual(analyze('verify', self.trace)['problems'], [])
        self.assertEqual(analyze('errors', self.trace)['findings'], [])
        return [event for event in analyze('events', self.trace, '--stacks')
                if event['api'].startswith('ttd_live_heap')]

    def live(self, events):
        """By heap: how often it has blocks of each size in the end."""
        blocks = collections.defaultdict(dict)
        for event in events:
            heap = blocks[event['heap_id']]
            if event['action'] in ('Free', 'ReAlloc'):
                del heap[event['base_address']]
            if event['action'] in ('Alloc', 'ReAlloc'):
                self.assertNotIn(event['address'], heap)
                heap[event['address']] = event['size']
            if event['action'] == 'Destroy':
                heap.clear()
        return {heap: collections.Counter(sizes.values()) for heap, sizes in blocks.items() if sizes}

    def check_lost(self, events, sizes):
        """The heaps with blocks of these sizes were made by the function that loses them."""
        live = self.live(events)
        self.assertEqual([count for heap in live.values() for size, count in heap.items()
                          if 1000 < size < 1006 or 1010 <= size], [])
        for size, count in sizes.items():
            heap, = [heap for heap, blocks in live.items() if blocks[size] == count]
            create, = [event for event in events
                       if event['action'] == 'Create' and event['heap_id'] == heap]
            self.assertIn('lose_one', [frame.get('function') for frame in create['frames']])

    def test_apr(self):
        options = []
        for option in '--includes', '--cppflags', '--link-ld':
            try:
                options += subprocess.run(['apr-1-config', option], capture_output=True, text=True,
                                          check=True).stdout.split()
            except OSError:
                self.skipTest('no APR here')
        events = self.events_of('apr', *options)
        allocated = collections.Counter(event.get('size') for event in events
                                        if event['action'] == 'Alloc')
        expected = {1001: 5, 1002: 3, 1003: 2, 66: 1, 1004: 4, 5: 1, 1005: 1, 1006: 1, 1007: 10}
        self.assertLessEqual(expected.items(), allocated.items())
        self.assertEqual(sum(event['action'] == 'Destroy' for event in events), 5)
        self.check_lost(events, {1006: 1, 1007: 10})

    def test_talloc(self):
        events = self.events_of('talloc', '-ltalloc')
        allocated = collections.Counter(event['size'] for event in events
                                        if event['action'] == 'Alloc')
        self.assertEqual(allocated, {1001: 5, 1002: 3, 1003: 2, 1004: 1, 5: 1, 1005: 1, 1006: 1,
                                     10007: 1, 6: 2, 1008: 1, 1009: 10, 1010: 1})
        self.check_lost(events, {1008: 1, 1009: 10})

    def test_gc(self):
        events = self.events_of('gc', '-lgc')
        actions = collections.Counter(event['action'] for event in events)
        self.assertEqual(actions['Alloc'], 1000 + 10 + 1)
        self.assertEqual(actions['Lock'], actions['Unlock'])
        self.assertGreaterEqual(actions['Lock'], 3)
        live, = self.live(events).values()
        self.assertEqual([live[size] for size in (1002, 1004, 50003)], [8, 1, 1])
        # The collector is conservative: a word may look like the address of a forgotten block.
        self.assertLessEqual(live[1001], 100)


if __name__ == '__main__':
    unittest.main()
