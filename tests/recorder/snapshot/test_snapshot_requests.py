# SPDX-License-Identifier: MIT
"""Snapshots that are asked for from outside, of a program that does not keep still."""

import json
import os
import pathlib
import re
import subprocess
import time
import unittest

from support import ANALYZER, PATIENCE, RECORDER, Recording, analyze, program

# A campaign sets this to a thousand.
SNAPSHOTS = int(os.environ.get('SNAPSHOTS', 25))
THREADS = 4

TORN = r'ttdrecord: warning: (\d+) snapshots? w(?:as|ere) taken while threads ran on, .*\n'


def resident(pid):
    return int(pathlib.Path(f'/proc/{pid}/statm').read_text().split()[1]) * 4096


class Requests(Recording):

    def start(self, *options, megabytes=0):
        self.recorder = subprocess.Popen(
            [RECORDER, '-q', *options, '-o', str(self.trace), program('restless'), str(THREADS),
             str(megabytes)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.recorder.poll() is None:
            children = pathlib.Path(
                f'/proc/{self.recorder.pid}/task/{self.recorder.pid}/children').read_text()
            for child in children.split():
                if pathlib.Path(f'/proc/{child}/comm').read_text() == 'restless\n':
                    return int(child)
            time.sleep(0.05)
        raise AssertionError('the program does not start')

    def ask(self, pid):
        return subprocess.run([RECORDER, 'snapshot', str(pid)], capture_output=True, text=True,
                              timeout=PATIENCE)

    def finish(self):
        """What the program says of what it computed; nothing may have disturbed it. Returns how many
        snapshots are said to have been taken while threads ran on, as on a busy machine."""
        output, messages = self.recorder.communicate(timeout=PATIENCE)
        torn = re.match(TORN, messages.decode())
        self.assertEqual((self.recorder.returncode, output.decode(), re.sub(TORN, '', messages.decode())),
                         (0, '0 failures\n', ''))
        return int(torn[1]) if torn else 0

    def check_pages(self):
        output = subprocess.run([program('page_check'), str(self.trace)], check=True,
                                capture_output=True, timeout=PATIENCE).stdout
        return json.loads(output)

    def take_many(self, count, megabytes=0):
        """Snapshots of a program that holds so much memory beside what it uses all the time."""
        pid = self.start('--snapshot=memory', '--snapshot-at-exit=none', megabytes=megabytes)
        while resident(pid) < megabytes << 20:
            time.sleep(0.05)
        numbers = []
        while len(numbers) < count:
            answer = self.ask(pid)
            if answer.returncode == 0:
                numbers.append(int(re.search(r': snapshot (\d+)$', answer.stdout)[1]))
            else:
                self.assertIn('is not being recorded', answer.stderr)  # not yet
                time.sleep(0.05)
        torn = self.finish()
        self.assertEqual(numbers, sorted(set(numbers)))
        pages = self.check_pages()
        self.assertEqual(pages['snapshots'], count)
        self.assertEqual(pages['maps'], count)
        self.assertGreater(pages['filled'], count)
        self.assertEqual(pages['unstopped'], torn)
        if torn == 0:
            self.assertEqual(pages['wrong'], 0)
        verdict = analyze('verify', self.trace)
        self.assertEqual(verdict['problems'], [])
        return analyze('snapshots', self.trace)['snapshots']

    def snapshots_so_far(self):
        run = subprocess.run([ANALYZER, 'snapshots', '--format', 'json', str(self.trace)],
                             capture_output=True, timeout=PATIENCE)
        return len(json.loads(run.stdout)['snapshots']) if run.returncode == 0 else 0

    def test_held(self):
        for snapshot in self.take_many(SNAPSHOTS):
            self.assertFalse(snapshot['copied'])

    def test_copied(self):
        """A large process is let go, and a copy of it is read. A program that forks all the time
        sees its own children only."""
        snapshots = self.take_many(SNAPSHOTS // 2, megabytes=96)
        # Not if a signal comes first, or a thread comes back too late.
        self.assertGreater(sum(snapshot['copied'] for snapshot in snapshots), 1)

    def test_references_at_intervals(self):
        self.start('--snapshot-every=0.05', '--snapshot-at-exit=none')
        deadline = time.monotonic() + PATIENCE
        while self.snapshots_so_far() < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        self.finish()
        pages = self.check_pages()
        self.assertGreater(pages['snapshots'], 1)
        self.assertEqual((pages['maps'], pages['filled']), (0, 0))
        self.assertEqual(analyze('verify', self.trace)['problems'], [])


if __name__ == '__main__':
    unittest.main()
