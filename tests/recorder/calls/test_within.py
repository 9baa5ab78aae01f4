# SPDX-License-Identifier: MIT
"""Calls within calls of the allocator, and calls that are left by exceptions, jumps and signals."""

import unittest

from support import Recording, analyze, program

FALSE_FINDINGS = ('double-free', 'invalid-free', 'mismatched-free', 'trace-inconsistency')


class Within(Recording):
    def run_sound(self, name, scenario, **others):
        """The leaks of the scenario: blocks by their size."""
        result = self.record(program(name), *scenario, **others)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.false_findings(), [])
        self.assertEqual(analyze('info', self.trace)['loss_list'], [])
        blocks = {}
        self.assert_sound()
        for group in analyze('leaks', self.trace, '--limit', '0')['groups']:
            size = group['bytes'] // group['blocks']
            blocks[size] = blocks.get(size, 0) + group['blocks']
        return result.stdout, blocks

    def false_findings(self):
        findings = analyze('errors', self.trace)['findings']
        return [finding['kind'] for finding in findings
                if finding['kind'] in FALSE_FINDINGS and finding['certain']]

    def failed(self):
        return [event['api'] for event in analyze('events', self.trace) if event['result'] == 0]


class Left(Within):
    def test_by_bad_alloc(self):
        _, blocks = self.run_sound('within', ['bad_alloc'])
        self.assertEqual(blocks, {4001: 1, 4002: 100})
        self.assertEqual(self.failed(), ['operator new', 'operator new[](nothrow)'])

    def test_in_a_new_handler(self):
        _, blocks = self.run_sound('within', ['new_handler'])
        self.assertEqual(blocks, {4003: 2})
        stack = analyze('leaks', self.trace)['groups'][0]['stack']
        self.assertEqual([frame['function'] for frame in stack][1], 'spend_reserve()')
        self.assertIn('in_new_handler()', [frame['function'] for frame in stack])

    def test_by_longjmp(self):
        """From frames that are deeper than the hook was, and from others."""
        self.assertEqual(self.run_sound('within', ['longjmp'])[1], {4004: 100})

    def test_by_the_end_of_its_thread(self):
        self.assertEqual(self.run_sound('within', ['exit'])[1], {4006: 2})

    def test_by_cancellation(self):
        self.assertEqual(self.run_sound('within', ['cancel'])[1], {4006: 1, 4007: 1})

    def test_by_handlers_as_threads_begin(self):
        """The calls of all threads are recorded, also of one that was jumped out of as it began."""
        result = self.record(program('jumps_out'))
        self.assertEqual(result.returncode, 0)
        self.assertGreater(int(result.stdout), 10)
        self.assertEqual(self.false_findings(), [])
        self.assertGreaterEqual(analyze('info', self.trace)['allocs'], 1000 * 20 + 1000000)

    def test_by_signal_handlers_that_jump(self):
        """Interrupted calls may be lost, and then are counted; no others are."""
        self.assertEqual(self.record(program('handlers'), 'jump').returncode, 0)
        self.assertEqual(self.false_findings(), [])
        kept = [event for event in analyze('events', self.trace) if event.get('size') == 70]
        self.assertEqual(len(kept), 100)
        self.assertEqual(analyze('verify', self.trace)['problems'], [])
        self.check_losses()

    def check_losses(self):
        """Each reaches forward, and all together hold what was interrupted."""
        info = analyze('info', self.trace)
        ranges = [[[int(part, 16) for part in loss[end].split(':')]
                   for end in ('last_good', 'first_good')] for loss in info['loss_list']]
        self.assertEqual(bool(ranges), info['lost_events'] > 0)
        for last_good, first_good in ranges:
            self.assertLess(last_good, first_good)


class SignalHandlers(Within):
    """Of an allocator that may be called from them, wherever they come."""

    def check(self, scenario, threads):
        output, _ = self.run_sound('handlers', scenario)
        mallocs, reallocs, frees, interruptions = map(int, output.split())
        events = analyze('events', self.trace)
        own = [event for event in events if event.get('size') in (40, 50, 60) or
               event['action'] == 'Free']
        actions = [event['action'] for event in own]
        self.assertEqual((actions.count('Alloc'), actions.count('ReAlloc')), (mallocs, reallocs))
        self.assertGreaterEqual(actions.count('Free'), frees)
        self.assertLessEqual(actions.count('Free'), frees + 10)
        self.assertGreater(interruptions, 100)
        # They are calls of the thread that was interrupted.
        self.assertEqual(len({event['thread'] for event in own if event.get('size') == 60}), threads)

    def test_in_one_thread(self):
        self.check([], 1)

    def test_between_an_allocation_within_a_call_and_its_return(self):
        """The allocation serves the call, although it is recorded when the handler allocates."""
        _, blocks = self.run_sound('handlers', ['between'])
        self.assertEqual({size: blocks.get(size) for size in (80, 90, 100, 110)},
                         {80: None, 90: 2, 100: 1, 110: 1})

    def test_whose_block_another_thread_releases(self):
        """The allocator hands it out again, to the call that was interrupted."""
        self.run_sound('handlers', ['handed'])

    def test_while_the_program_ends(self):
        """It waits until the recorder has ended what it does then, which is not lost."""
        for microseconds in range(200, 4000, 200):
            self.run_sound('handlers', ['last', str(microseconds)])

    def test_in_two_threads(self):
        self.check(['threads'], 2)

    def test_on_stacks_of_the_programs_own(self):
        self.check(['contexts'], 1)


if __name__ == '__main__':
    unittest.main()
