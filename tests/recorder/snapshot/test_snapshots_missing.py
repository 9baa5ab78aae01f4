# SPDX-License-Identifier: MIT
"""Snapshots that cannot be taken, and what is said of them."""

import csv
import ctypes
import json
import signal
import subprocess
import time
import unittest

from support import ANALYZER, PATIENCE, PROGRAMS, RECORDER, Recording, analyze

DROP_CAPABILITY, TRACE_OTHERS = 24, 19  # prctl() and capabilities
FORBID = 'import ctypes; ctypes.CDLL(None).prctl(4, 0)\n'  # whoever is no superuser


def without_privilege():
    """Makes the recorder one that may not look into every process, also if root runs the test."""
    ctypes.CDLL(None).prctl(DROP_CAPABILITY, TRACE_OTHERS)


class Missing(Recording):

    def record_without_privilege(self, script, *options):
        result = self.record('/usr/bin/python3', '-c', script, options=options,
                             preexec_fn=without_privilege)
        self.assertEqual((result.returncode, result.stdout), (0, b''))
        self.assertEqual(analyze('verify', self.trace)['problems'], [])
        return result.stderr.decode(), analyze('snapshots', self.trace)['snapshots']

    def test_permitted(self):
        messages, snapshots = self.record_without_privilege('pass')
        self.assertEqual((messages, len(snapshots)), ('', 1))

    def test_denied_at_exit(self):
        self.assertEqual(self.record_without_privilege(FORBID), (
            'ttdrecord: warning: 1 snapshot could not be taken: the system does not permit it\n',
            []))

    def test_none_wanted(self):
        self.assertEqual(self.record_without_privilege(FORBID, '--no-snapshot'), ('', []))

    def test_denied_at_intervals(self):
        messages, _ = self.record_without_privilege(FORBID + 'import time; time.sleep(1)',
                                                    '--snapshot-every=.1', '--no-snapshot')
        self.assertRegex(messages, r'^ttdrecord: warning: [0-9]+ snapshots? could not be taken: the '
                                   'system does not permit it\n$')

    def test_killed(self):
        """The end of a process that is killed needs no warning."""
        result = self.record('/bin/sh', '-c', 'kill -KILL $$')
        self.assertEqual((result.returncode, result.stderr), (-signal.SIGKILL, b''))

    def ask(self, pid):
        """The answer of a recorder, which may be busy at first."""
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = subprocess.run([RECORDER, 'snapshot', str(pid)], capture_output=True,
                                    text=True, timeout=PATIENCE)
            if not answer.stderr.endswith('does not answer\n') or time.monotonic() > deadline:
                return answer

    def test_denied_request(self):
        script = FORBID + 'import os; print(os.getpid(), flush=True); input()'
        recorder = subprocess.Popen(
            [RECORDER, '-q', '-o', str(self.trace), '--no-snapshot', '--', '/usr/bin/python3', '-c',
             script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=without_privilege)
        pid = recorder.stdout.readline()
        answer = self.ask(int(pid))
        recorder.communicate(b'\n', timeout=PATIENCE)
        self.assertEqual(answer.returncode, 125)
        self.assertIn('a snapshot could not be taken: the system does not permit it', answer.stderr)

    def test_torn(self):
        """The snapshot of threads that cannot be stopped is one by which nothing is certain."""
        result = self.record(PROGRAMS / 'vforks')
        self.assertEqual(result.stderr.decode(), 'ttdrecord: warning: 1 snapshot was taken while '
                         'threads ran on, so that nothing is certain by it\n')
        reason = 'threads ran on while snapshot 1 was taken'
        # The vector of the thread's thread-local storage, which the thread points at.
        held = next(event['address'] for event in analyze('events', self.trace)
                    if event['api'] == 'calloc')
        for command in (['leaks'], ['retained'], ['roots'], ['referrers', '--address', held],
                        ['state', '--by', 'class']):
            printed = {name: subprocess.run([ANALYZER, *command, '-f', name, str(self.trace)],
                                            capture_output=True, text=True, timeout=PATIENCE)
                       for name in ('text', 'json', 'csv')}
            self.assertIn(f'\nUncertain: {reason}', printed['text'].stdout, command)
            self.assertIs(json.loads(printed['json'].stdout)['certain'], False, command)
            rows = list(csv.DictReader(printed['csv'].stdout.splitlines()))
            self.assertEqual({row['certain'] for row in rows}, {'false'}, command)
            self.assertIn(f'uncertain: {reason}', printed['csv'].stderr, command)

    def test_too_late(self):
        """A recorder that stands still is not waited for."""
        count = 5
        result = self.record('/usr/bin/python3', '-c', f'''
import os, time
recorder = os.getppid()
if os.fork() == 0:
    os.setsid()
    time.sleep(12)
    os.kill(recorder, {int(signal.SIGCONT)})
    os._exit(0)
for i in range({count} - 1):
    if os.fork() == 0:
        time.sleep(3)
        os._exit(0)
time.sleep(0.5)
os.kill(recorder, {int(signal.SIGSTOP)})
''')
        self.assertEqual(result.returncode, 0)
        self.assertGreaterEqual(self.assert_late_are_counted(result), count)


if __name__ == '__main__':
    unittest.main()
