# SPDX-License-Identifier: MIT
"""The live API: random programs of its calls against a model of what each of them does."""

import collections
import json
import os
import random
import subprocess
import unittest

from support import ANALYZER, PATIENCE, RECORDER, Recording, analyze, marks, program

NO_LIMIT = 2**64 - 1
NOT_STARTED, RECORDING, PAUSED, THROTTLED = range(4)
LETTERS = 'eeEkmmmmmmffffsStppprrrR'
CLIENT = '5b010203-0405-4607-8809-0a0b0c0d0e0f'


class Island:
    """A model of a thread's recording, by the contract of the header."""

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
    """The output of a thread of `speaks`, and its records in the trace."""

    def __init__(self, thread, script):
        self.printed, self.sizes, self.marks = [], [], []
        self.held, self.recorded, self.unknown = [], set(), set()
        self.activities, activity = collections.defaultdict(list), 0
        island = Island()
        for index, letter in enumerate(script):
            name = f'{thread}.{index}'
            result = True
            if letter in 'eEk':
                self.marks.append(('event', name))
            elif letter == 'm':
                size = 100000 + 10000 * thread + index
                self.held.append(size)
                if self.call(island):
                    self.sizes.append(size)
                    self.activities[activity].append(size)
                    self.recorded.add(size)
            elif letter == 'f':
                if self.held:
                    size = self.held.pop()
                    if self.call(island):
                        self.recorded.discard(size)
                        self.unknown.discard(size)
            elif letter in 'sS':
                if island.is_open:
                    self.marks.append(('stop', ''))
                result, activity = island.start(NO_LIMIT if letter == 's' else 3), thread + 1
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

    def call(self, island):
        """A heap call. One that is not recorded may have released any block of before."""
        is_recorded = island.call()
        if not is_recorded:
            self.unknown = set(self.recorded)
        elif island.state == THROTTLED:
            self.marks.append(('throttled', ''))
        return is_recorded


class Live(Recording):

    def scripts(self, seed, threads=8, length=300):
        choice = random.Random(seed)
        return [''.join(choice.choice(LETTERS) for _ in range(length)) for _ in range(threads)]

    def check(self, scripts):
        self.letters = {f'{i}.{j}': letter for i, script in enumerate(scripts)
                        for j, letter in enumerate(script)}
        models = [Model(i, script) for i, script in enumerate(scripts)]
        result = self.record(program('speaks'), *scripts)
        self.assertEqual((result.returncode, result.stderr), (0, b''))
        self.assertEqual(result.stdout.decode().splitlines(),
                         [line for model in models for line in model.printed] +
                         ['client 1 open 0 added 0'])
        self.check_trace(models)
        self.check_blocks(models)
        if len(models) == 1:
            self.check_filters(models)

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

    def check_blocks(self, models):
        """A block that was released in a gap is unknown, and no call is an error."""
        blocks = {block['size']: block['unknown'] for block in
                  analyze('state', self.trace, '--blocks')['blocks'] if block['size'] >= 100000}
        for model in models:
            # A block that was released in a gap is gone when another gets its address.
            self.assertEqual(model.recorded & set(model.held) - set(blocks), set())
            for size in model.recorded & set(blocks):
                if size in model.unknown:
                    self.assertTrue(blocks[size])
                if not blocks[size]:
                    self.assertIn(size, model.held)
                elif len(models) == 1:
                    self.assertIn(size, model.unknown)
        if len(models) == 1:
            unknown = analyze('leaks', self.trace, '--include', 'call')['unknown_blocks']
            self.assertEqual(unknown, len(models[0].unknown & set(blocks)))
        self.assertEqual(analyze('errors', self.trace)['findings'], [])

    def check_filters(self, models):
        """Islands divide the calls: each is of its thread's activity, or of none."""
        for i, model in enumerate(models):
            for activity in 0, i + 1:
                found = subprocess.run(
                    [ANALYZER, 'events', '--format', 'json', '--activity', str(activity), '--size',
                     f'{100000 + 10000 * i}+10000', '--action', 'Alloc', self.trace],
                    capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
                self.assertEqual([json.loads(line)['size'] for line in found.splitlines()],
                                 model.activities[activity])
        sizes = {size for model in models for size in model.sizes}
        options = '--client', CLIENT
        info = analyze('info', self.trace)
        self.assertEqual([(client['client'], client['marks']) for client in info['client_list']],
                         [(CLIENT, len(marks(self.trace, *options)))])
        islands = [(i + 1, sum(kind == 'start' for kind, _ in model.marks))
                   for i, model in enumerate(models)]
        self.assertEqual([(found['client'], found['activity'], found['islands'])
                          for found in info['activity_list']],
                         [(CLIENT, *island) for island in islands if island[1]])
        started = {size for i, model in enumerate(models) for size in model.activities[i + 1]}
        blocks = analyze('state', self.trace, '--blocks')['blocks']
        of_client = analyze('state', self.trace, '--blocks', *options)['blocks']
        self.assertEqual([block['size'] for block in of_client],
                         [block['size'] for block in blocks if block['size'] in started])
        known = [block['size'] for block in of_client if block['size'] in sizes]
        leaks = analyze('leaks', self.trace, *options)
        self.assertEqual((leaks['total_blocks'], leaks['total_bytes']), (len(known), sum(known)))
        added = analyze('diff', self.trace, *options)
        self.assertEqual(added['aifo']['bytes'], sum(known))
        self.assertEqual(added['aifi']['blocks'] + added['aifo']['blocks'], len(started))
        for command in 'hot', 'temporary':
            used = analyze(command, self.trace, *options)
            self.assertEqual((used['allocations'], used['bytes']), (len(started), sum(started)))
        lives = analyze('lifetimes', self.trace, *options)
        self.assertEqual(lives['total_blocks'], len(started))
        self.assertEqual(sum(lifetime['blocks'] for lifetime in lives['by_time']),
                         len(started) - lives['never_released'])

    def is_global(self, mark, models, thread):
        kind, name = mark
        return kind == 'event' and self.letters[name] == 'E'

    def test_random_programs(self):
        for seed in range(int(os.environ.get('RUNS', 12))):
            with self.subTest(seed=seed):
                scripts = ['e' + script for script in self.scripts(seed)]
                self.check(scripts)

    def test_unknown(self):
        """The blocks of a thread that a gap may have released: exactly the ones before it."""
        for seed in range(8):
            with self.subTest(seed=seed):
                self.check(['e' + script for script in self.scripts(seed, threads=1, length=30)])

    def test_unknown_is_no_leak(self):
        """Blocks from before a gap do not set the status of the program, with or without a
        snapshot; blocks from after it do."""
        for options in [], ['--no-snapshot']:
            for script, blocks, status in ('mpfr', 1, 0), ('mmpfr', 2, 0), ('pfrm', 0, 9):
                with self.subTest(options=options, script=script):
                    self.record(program('speaks'), script, options=options)
                    leaks = analyze('leaks', self.trace)
                    groups = [group for group in analyze('leaks', self.trace, '--show', 'all',
                                                         '--include', 'call')['groups']
                              if group.get('class') == 'unknown']
                    self.assertEqual(sum(group['blocks'] for group in groups), blocks)
                    self.assertGreaterEqual(leaks['unknown_blocks'], blocks)
                    result = subprocess.run(
                        [ANALYZER, 'leaks', '--error-exitcode', '9', '--errors-for', 'all',
                         '--include', 'call', self.trace], capture_output=True, timeout=PATIENCE)
                    self.assertEqual(result.returncode, status)

    def test_filters(self):
        scripts = self.scripts(77, threads=4, length=60)
        self.check(scripts)
        self.check_filters([Model(i, script) for i, script in enumerate(scripts)])

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

    def test_no_client(self):
        """A program that is linked statically, or loads the recorder's library by itself, runs on
        without a client; the same program gets one when it is recorded."""
        library = os.path.join(os.path.dirname(RECORDER), 'preload', 'libttdpreload.so')
        for command in [program('latecomer_static')], [program('latecomer'), library]:
            with self.subTest(command=command):
                result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
                self.assertEqual((result.returncode, result.stdout, result.stderr),
                                 (0, 'client 0: 0 0 0\n', ''))
        result = self.record(program('latecomer'))
        self.assertEqual(result.stdout, b'client 1: 1 1 1\n')

    def test_scopes(self):
        """A pause of C++ lasts as long as its scope, however that is left, and ends no other."""
        self.assertEqual(subprocess.run([program('scoped')], timeout=PATIENCE).returncode, 0)
        self.assertEqual(self.record(program('scoped')).returncode, 0)
        self.assertEqual([event['size'] for event in analyze('events', self.trace)
                          if event['action'] == 'Alloc' and 10000 <= event['size'] < 10100],
                         [10000, 10005, 10006])
        self.assertEqual([mark['kind'] for mark in marks(self.trace)],
                         ['open', *['paused'] * 2, *['resumed'] * 2, 'paused', 'resumed', 'stop',
                          'start', 'paused'])

    def test_gaps_are_losses(self):
        """Possible gaps are reported, and only where they may be."""
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
