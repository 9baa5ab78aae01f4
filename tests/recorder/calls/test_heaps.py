# SPDX-License-Identifier: MIT
"""Custom heaps: random programs of calls about them against a model of what each leaves."""

import os
import random
import re
import subprocess
import sys
import unittest

from support import Recording, analyze, program

LETTERS = 'cCsnaaaaaarRffpwludD()'
STRIDE = 64


class Model:
    """The events of a thread of `pools`."""

    def __init__(self, thread, script):
        self.base, self.made, self.pauses = (thread + 1) << 40, 0, 0
        self.stack, self.children, self.heaps = [], {}, {}
        self.events, self.defined = [], []
        for letter in script:
            self.take(letter)

    def event(self, action, heap, **values):
        if self.pauses == 0:
            self.events.append({'action': action, 'heap': hex(heap), 'result': 1, **values})

    def create(self, parent):
        heap = self.base + (self.made << 20)
        self.made += 1
        self.stack.append({'heap': heap, 'blocks': 0, 'newest': 0})
        self.define(heap, parent)
        if parent in self.children:
            self.children[parent].append(heap)

    def define(self, heap, parent):
        self.children[heap] = []
        self.defined.append({'heap': heap, 'has_ended': False})
        self.heaps[heap] = f'pool {heap:x}', parent
        self.event('Create', heap, reserve_size=self.made, commit_size=len(self.stack))

    def destroy(self, heap):
        if self.pauses != 0:
            return
        for child in reversed(self.children.pop(heap, [])):
            if child in self.children:
                self.destroy(child)
        self.event('Destroy', heap)
        for definition in self.defined:
            definition['has_ended'] |= definition['heap'] == heap

    def replace(self, heap):
        """The heap is told of anew, which no pause prevents."""
        pauses, self.pauses = self.pauses, 0
        self.destroy(heap)
        self.pauses = pauses
        for children in self.children.values():
            if heap in children:
                children.remove(heap)
        self.define(heap, 0)

    def take(self, letter):
        top = self.stack[-1] if self.stack else None
        if letter == '(':
            self.pauses += 1
        elif letter == ')':
            self.pauses -= self.pauses > 0
        elif letter in 'cCs':
            self.create(None if letter == 's' else top['heap'] if top and letter == 'c' else 0)
        elif letter == 'F':
            self.events = []
            for definition in reversed(self.defined):
                if definition['has_ended']:
                    self.event('Destroy', definition['heap'])
        elif top:
            self.change(letter, top)

    def change(self, letter, top):
        heap, old = top['heap'], top['newest']
        if letter == 'n':
            top['newest'] = 0
            self.replace(heap)
        if letter in 'aR' and (letter == 'a' or old):
            top['blocks'] += 1
            top['newest'] = heap + top['blocks'] * STRIDE
        if letter == 'a':
            self.event('Alloc', heap, address=hex(top['newest']), size=1 + top['blocks'] % STRIDE)
        elif letter in 'rR' and old:
            self.event('ReAlloc', heap, address=hex(top['newest']), previous_address=hex(old),
                       base_address=hex(old), size=50)
        elif letter == 'f':
            if old:
                self.event('Free', heap, base_address=hex(old))
            top['newest'] = 0
        elif letter in 'pw':
            self.event('Protect', heap, make_read_only=int(letter == 'p'))
        elif letter in 'lu':
            self.event('Lock' if letter == 'l' else 'Unlock', heap)
        elif letter in 'dD':
            if letter == 'D':
                del self.stack[1:]
            self.destroy(self.stack.pop()['heap'])


class Heaps(Recording):

    def events(self, trace):
        """The events about custom heaps, without what the model does not tell."""
        fields = ('action', 'heap', 'result', 'address', 'previous_address', 'base_address',
                  'size', 'make_read_only', 'reserve_size', 'commit_size')
        return [{name: event[name] for name in fields if name in event}
                for event in analyze('events', trace) if int(event.get('heap', '0'), 16) >> 40]

    def check(self, trace, model):
        mine = [event for event in self.events(trace) if int(event['heap'], 16) >> 40 ==
                model.base >> 40]
        self.assertEqual(mine, model.events)
        self.assertEqual(analyze('verify', trace)['problems'], [])

    def heaps(self, trace):
        """The name of each heap and its parent's handle, by its handle."""
        text = subprocess.run([sys.executable, '-B', os.environ['READER'], str(trace)],
                              capture_output=True, text=True, check=True).stdout
        strings = dict(re.findall(r'^string id=(\w+) text=(\w*)', text, re.M))
        heaps = re.findall(r'^heap id=(\w+) handle=(\w+) name=(\w+)', text, re.M)
        handles = {number: int(handle, 16) for number, handle, _ in heaps}
        parents = {heap: handles[parent] for heap, parent in
                   re.findall(r'^parent heap=(\w+) parent=(\w+)', text, re.M)}
        return {handles[number]: (bytes.fromhex(strings.get(name, '')).decode(),
                                  parents.get(number)) for number, _, name in heaps}

    def test_random(self):
        for seed in range(6):
            choice = random.Random(seed)
            scripts = [''.join(choice.choice(LETTERS) for _ in range(400)) for _ in range(8)]
            with self.subTest(seed=seed):
                result = self.record(program('pools'), *scripts)
                self.assertEqual((result.returncode, result.stderr), (0, b''))
                heaps = self.heaps(self.trace)
                for thread, script in enumerate(scripts):
                    model = Model(thread, script)
                    self.check(self.trace, model)
                    self.assertLessEqual(model.heaps.items(), heaps.items())

    def test_fork(self):
        """The child of a fork knows the heaps that its parent had then."""
        for seed in range(8):
            choice = random.Random(seed)
            before, after = (''.join(choice.choice(LETTERS.rstrip('()')) for _ in range(60))
                             for _ in range(2))
            with self.subTest(seed=seed):
                for old in self.directory.iterdir():
                    old.unlink()
                result = self.record(program('pools'), before + 'ccF' + after)
                self.assertEqual((result.returncode, result.stderr), (0, b''))
                self.check(self.trace, Model(0, before + 'cc'))
                child, = self.directory.glob('trace.bin.*')
                model = Model(0, before + 'ccF' + after)
                self.check(child, model)
                used = {int(event['heap'], 16) for event in model.events}
                self.assertLessEqual({heap: model.heaps[heap] for heap in used}.items(),
                                     self.heaps(child).items())

    def test_threads_share(self):
        """A handle that was never told of is a heap without a name."""
        result = self.record(program('pools'), '(c)aaf', '(C)ad')
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([event['action'] for event in self.events(self.trace)
                          if event['heap'] == hex(1 << 40)], ['Alloc', 'Alloc', 'Free'])

    def errors(self, script):
        """The errors of a script, and those of the children that it has."""
        for old in self.directory.iterdir():
            old.unlink()
        result = self.record(program('pools'), script)
        self.assertEqual((result.returncode, result.stderr), (0, b''))
        traces = [self.trace, *sorted(self.directory.glob('trace.bin.*'))]
        return [[(error['kind'], error['certain'])
                 for error in analyze('errors', trace)['findings']] for trace in traces]

    def test_used_after_destruction(self):
        used = [('use-of-destroyed-heap', True)]
        self.assertEqual(self.errors('Cadx'), [used])
        self.assertEqual(self.errors('CadFx'), [[], used])
        self.assertEqual(self.errors('CCdFaFx'), [[], [], used])

    def test_errors_of_an_activity(self):
        self.errors('Cadx[xx')
        counts = [[error['count'] for error in analyze('errors', self.trace, *options)['findings']
                   if error['kind'] == 'use-of-destroyed-heap']
                  for options in ([], ['--activity', '7'], ['--activity', '0'])]
        self.assertEqual(counts, [[3], [2], [1]])

    def test_odd_addresses(self):
        """A block that the child of a fork has from its parent may lie anywhere."""
        self.assertEqual(self.errors('CoFf'), [[], []])

    def test_odd_address_twice(self):
        """Uncertain: in the child's trace the first release may have been of no block either."""
        self.assertEqual(self.errors('CoFee'), [[], [('double-free', False)]])

    def unrecorded(self, trace):
        """The gaps that the trace reports."""
        return [fact['value'] for fact in analyze('info', trace)['metadata']
                if fact['key'] == 'unrecorded']

    def test_parent_changes_its_heaps(self):
        """The child has the heaps at the fork, even if the parent has destroyed them since."""
        result = self.record(program('pools'), 'CcaGaddCaa')
        self.assertEqual((result.returncode, result.stderr), (0, b''))
        child, = self.directory.glob('trace.bin.*')
        model = Model(0, 'CcaFaddCaa')
        self.check(child, model)
        self.assertLessEqual(model.heaps.items(), self.heaps(child).items())
        self.assertEqual(self.unrecorded(child), [])

    def test_parent_ends(self):
        """If the parent has ended before, its heaps are not known, and that is said."""
        result = self.record(program('pools'), 'CcaEa')
        self.assertEqual(result.returncode, 0)
        child, = self.directory.glob('trace.bin.*')
        self.assertEqual(self.heaps(child)[1 << 40 | 1 << 20][0], '')
        self.assertEqual(self.unrecorded(child),
                         ['custom heaps of the process that forked, as they were then'])
        self.assertFalse(analyze('leaks', child)['certain'])

    def test_not_recorded(self):
        """Without a recorder no call does anything."""
        subprocess.run([program('pools'), 'caarRfpwlud', 'cD'], check=True)


if __name__ == '__main__':
    unittest.main()
