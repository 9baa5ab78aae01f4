# SPDX-License-Identifier: MIT
"""The live API: random programs of its calls against a model of what each of them does."""

import collections
import os
import random
import subprocess
import unittest

from support import PATIENCE, RECORDER, Recording, analyze, marks, program

NO_LIMIT = 2**64 - 1
NOT_STARTED, RECORDING, PAUSED, THROTTLED = range(4)
LETTERS = 'eeEkmmmmmmffffsStppprrrR'
CLIENT = '5b010203-0405-4607-8809-0a0b0c0d0e0f'


class Island:
    """What a thread's recording is, by the contract of the header."""

    def __init__(self):
        self.is_open, self.pauses, self.maximum, self.used = True, 0, NO_LIMIT, 0

    @property
    def state(self):
        if not self.is_open:
            return NOT_STARTED
        if self.used == self.maximum:
            return THROTTLED
        return PAUSED if self.pauses else RECORDING

    def start(self, maximum):
        self.is_open, self.pauses, self.maximum, self.used = True, 0, maximum, 0
        return True

    def stop(self):
        was_open, self.is_open = self.is_open, False
        return was_open

    def pause(self):
        if not self.is_open or self.used == self.maximum:
            return False
        self.pauses += 1
        return True

    def resume(self):
        if not self.pauses:
            return False
        self.pauses -= 1
        return True

    def reset(self):
        self.used = 0 if self.is_open else self.used
        return self.is_open

    def call(self):
        """A heap call; returns whether it is recorded."""
        is_recorded = self.state == RECORDING
        self.used += is_recorded
        return is_recorded

    def throttle(self):
        if not self.is_open:
            return 0, 0, 0
        remaining = NO_LIMIT if self.maximum == NO_LIMIT else self.maximum - self.used
        return 1, self.used, remaining


class Model:
    """What a thread of `speaks` prints, and what it leaves in the trace."""

    def __init__(self, thread, script):
        self.printed, self.sizes, self.marks, self.frees = [], [], [], 0
        island, held = Island(), 0
        for index, letter in enumerate(script):
            name = f'{thread}.{index}'
            result = True
            if letter in 'eEk':
                self.marks.append(('event', name))
            elif letter == 'm':
                held += 1
                if island.call():
                    self.sizes.append(100000 + 10000 * thread + index)
                    self.note_throttle(island)
            elif letter == 'f':
                if held:
                    held -= 1
                    if island.call():
                        self.frees += 1
                        self.note_throttle(island)
            elif letter in 'sS':
                if island.is_open:
                    self.marks.append(('stop', ''))
                result = island.start(NO_LIMIT if letter == 's' else 3)
                self.marks.append(('start', name))
            else:
                result, kind, text = {'t': (island.stop, 'stop', name),
                                      'p': (island.pause, 'paused', ''),
                                      'r': (island.resume, 'resumed', ''),
                                      'R': (island.reset, 'reset', '')}[letter]
                result = result()
                if result:
                    self.marks.append((kind, text))
            self.printed.append(' '.join(map(str, [name, letter, int(result), island.state,
                                                   *island.throttle()])))

    def note_throttle(self, island):
        if island.state == THROTTLED:
            self.marks.append(('throttled', ''))


class Live(Recording):

    def scripts(self, seed, threads=8, length=300):
        choice = random.Random(seed)
        return [''.join(choice.choice(LETTERS) for _ in range(length)) for _ in range(threads)]

    def check(self, scripts):
        models = [Model(i, script) for i, script in enumerate(scripts)]
        result = self.record(program('speaks'), *scripts)
        self.assertEqual((result.returncode, result.stderr), (0, b''))
        self.assertEqual(result.stdout.decode().splitlines(),
                         [line for model in models for line in model.printed] +
                         ['client 1 open 0 added 0'])
        self.check_trace(models)

    def check_trace(self, models):
        sizes, told = collections.defaultdict(list), collections.defaultdict(list)
        for event in analyze('events', self.trace):
            if event['action'] == 'Alloc' and event['size'] >= 100000:
                sizes[(event['size'] - 100000) // 10000].append(event['size'])
        threads = {}
        for mark in marks(self.trace):
            self.assertEqual(mark['client'], CLIENT)
            if mark['kind'] in ('start', 'event'):
                threads[mark['thread']] = int(mark['text'].split('.')[0]) if mark['thread'] else 0
        all_marks = list(marks(self.trace))
        for mark in all_marks:
            if mark['thread']:
                told[threads[mark['thread']]].append((mark['kind'], mark['text'] or ''))
        for i, model in enumerate(models):
            self.assertEqual(sizes[i], model.sizes)
            of_thread = [mark for mark in model.marks if not self.is_global(mark, models, i)]
            self.assertEqual(told[i], of_thread)
        global_marks = [mark['text'] for mark in all_marks if not mark['thread']]
        self.assertEqual(sorted(global_marks),
                         sorted(['speaks', 'quiet'] + [name for model in models
                                                       for kind, name in model.marks
                                                       if kind == 'event' and
                                                       self.letters[name] == 'E']))

    def is_global(self, mark, models, thread):
        kind, name = mark
        return kind == 'event' and self.letters[name] == 'E'

    def test_random_programs(self):
        for seed in range(int(os.environ.get('RUNS', 12))):
            with self.subTest(seed=seed):
                scripts = ['e' + script for script in self.scripts(seed)]
                self.letters = {f'{i}.{j}': letter for i, script in enumerate(scripts)
                                for j, letter in enumerate(script)}
                self.check(scripts)

    def test_not_recorded(self):
        """Without a recorder there is no client, and nothing else happens."""
        result = subprocess.run([program('speaks'), 'eEkmfsStprR'], capture_output=True, text=True,
                                timeout=PATIENCE)
        self.assertEqual((result.returncode, result.stderr), (0, ''))
        for line in result.stdout.splitlines()[:-1]:
            name, letter, done, *rest = line.split()
            self.assertEqual(rest, ['0', '0', '0', '0'])
            self.assertEqual(done, '1' if letter in 'mf' else '0')
        self.assertEqual(result.stdout.splitlines()[-1], 'client 0 open 0 added 0')

    def test_gaps_are_losses(self):
        """What may be missing is said, and only where it may be."""
        self.record(program('speaks'), 'mmpmfrmm')
        leaks = analyze('leaks', self.trace)
        self.assertFalse(leaks['certain'])
        self.record(program('speaks'), 'mmprmm')
        self.assertTrue(analyze('leaks', self.trace)['certain'])

    def test_positions(self):
        self.record(program('speaks'), 'mmemm')
        before = [event['size'] for event in analyze('events', self.trace, '--to', 'mark:0.2')]
        after = [event['size'] for event in analyze('events', self.trace, '--from', 'mark:0.2')]
        self.assertEqual([size for size in before if size >= 100000], [100000, 100001])
        self.assertEqual([size for size in after if size >= 100000], [100003, 100004])


if __name__ == '__main__':
    unittest.main()
