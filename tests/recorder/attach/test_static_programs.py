# SPDX-License-Identifier: MIT
"""Programs that are linked statically: attached to while they run."""

import os
import signal
import unittest

from attaching import Attach
from support import analyze, program

STATIC = 'counted_static', 'counted_static_pie'


def metadata(info):
    return {row['key']: row['value'] for row in info['metadata']}


class Static(Attach):

    def counts(self, trace=None):
        """Calls in the trace that the program's three threads made, as it counts them itself."""
        events = analyze('events', trace or self.trace, '--include', 'make_calls')
        kinds = [event['action'] for event in events]
        return [kinds.count('Alloc'), kinds.count('ReAlloc'), kinds.count('Free')]

    def assert_sound(self):
        info = analyze('info', self.trace)
        self.assertEqual(info['lost_events'], 0)
        self.assertEqual(analyze('verify', self.trace)['problems'], [])
        self.assertEqual(analyze('errors', self.trace)['total_findings'], 0)
        return info

    def test_all_calls_are_recorded(self):
        for name in STATIC:
            process = self.start(program(name))
            before = self.tell(process, 'calls 50')
            recorder = self.attach(process)
            after = self.tell(process, 'calls 300')
            self.detach(process, recorder)
            self.assertEqual(self.counts(), [b - a for a, b in zip(before, after)])
            self.tell(process, 'calls 100')  # and none of these
            info = self.assert_sound()
            self.assertTrue(info['trace']['attached'])
            self.assertIn('its C library is linked statically', metadata(info)['unrecorded'])

    def test_nothing_is_left(self):
        for name in STATIC:
            process = self.start(program(name))
            self.tell(process, 'calls 100')
            before = self.image(process)
            for _ in range(2):
                recorder = self.attach(process)
                self.assertNotEqual(self.image(process)[1], before[1])
                self.tell(process, 'calls 100')
                self.detach(process, recorder)
                *same, dirty = self.image(process)
                self.assertEqual(same, list(before[:2]))
                self.assertLessEqual(dirty, before[2] + 4)

    def test_leaks_at_the_exit(self):
        for name in STATIC:
            process = self.start(program(name))
            recorder = self.attach(process)
            self.tell(process, 'lose 7')
            self.tell(process, 'keep 5')
            process.stdin.write('exit\n')
            self.assertEqual((process.wait(), recorder.wait()), (3, 0))
            leaks = analyze('leaks', self.trace)
            self.assertEqual(leaks['snapshot']['reason'], 'exit')
            self.assertIn((7, 2100), [(group['blocks'], group['bytes']) for group in leaks['groups']])
            self.assert_sound()

    def test_a_signal_of_which_it_dies(self):
        process = self.start(program('counted_static'))
        recorder = self.attach(process)
        self.tell(process, 'calls 5')
        process.stdin.write('crash\n')
        self.assertEqual((process.wait(), recorder.wait()), (-signal.SIGSEGV, 0))
        self.assertEqual(analyze('leaks', self.trace)['snapshot']['reason'], 'signal')

    def test_children(self):
        """One that forks goes on being recorded; so does the program that another one executes."""
        process = self.start(program('counted_static'))
        recorder = self.attach(process)
        child, = self.tell(process, 'fork')
        self.assertEqual(self.tell(process, 'calls 10')[0], 120)
        os.kill(child, signal.SIGKILL)
        self.tell(process, 'wait')
        self.assertEqual(self.tell(process, 'spawn'), [0])
        self.detach(process, recorder)
        self.assertEqual(self.counts(), [120, 30, 120])
        children = sorted(self.directory.glob(self.trace.name + '.*'))
        commands = [metadata(analyze('info', path))['command'] for path in children]
        self.assertEqual(sorted(os.path.basename(command.split()[0]) for command in commands),
                         ['counted_static', 'true'])


if __name__ == '__main__':
    unittest.main()
