# SPDX-License-Identifier: MIT
"""A trace has the names that are known by now: while the program runs, and if the recorder dies."""

import os
import signal
import struct
import subprocess
import time
import unittest

from support import ANALYZER, PATIENCE, RECORDER, Recording, program

HEADER_SIZE = 112
SYMBOLS = 5


class NamesWhileItRuns(Recording):
    def symbols(self):
        """How many addresses have names in the trace, as far as it has been written."""
        data = self.trace.read_bytes()
        offset = count = 0
        while offset + HEADER_SIZE <= len(data):
            kind, = struct.unpack_from('<H', data, offset + 10)
            stored, = struct.unpack_from('<I', data, offset + 16)
            items, = struct.unpack_from('<I', data, offset + 56)
            count += items if kind == SYMBOLS else 0
            offset += HEADER_SIZE + (stored + 7) // 8 * 8
        return count

    def functions(self):
        """The output of `leaks` for the trace as it stands."""
        return subprocess.run([ANALYZER, 'leaks', str(self.trace)], capture_output=True, text=True,
                              timeout=PATIENCE).stdout

    def wait_for_names(self, recorder):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and 'main (' not in self.functions():
            self.assertIsNone(recorder.poll())
            time.sleep(0.1)

    def start(self):
        recorder = subprocess.Popen([RECORDER, '-q', '-o', str(self.trace), program('sleeper')],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(recorder.wait, PATIENCE)
        self.addCleanup(recorder.stdout.close)
        self.addCleanup(recorder.stdin.close)
        self.addCleanup(recorder.kill)
        self.assertEqual(recorder.stdout.readline(), b'sleeping\n')
        return recorder

    def test_names_are_there_while_the_program_runs(self):
        recorder = self.start()
        self.wait_for_names(recorder)
        self.assertIn('main (', self.functions())
        self.assertIsNone(recorder.poll())

    def test_names_stay_when_the_recorder_is_killed(self):
        recorder = self.start()
        self.wait_for_names(recorder)
        os.kill(recorder.pid, signal.SIGKILL)
        recorder.wait(PATIENCE)
        self.assertIn('main (', self.functions())

    def test_a_name_is_written_once(self):
        recorder = self.start()
        self.wait_for_names(recorder)
        early = self.symbols()
        recorder.stdin.close()
        self.assertEqual(recorder.wait(PATIENCE), 0)
        self.assert_sound()
        whole = self.symbols()
        self.assertGreater(early, 0)
        # The same program, named only at its end: as it has ended before anybody looks.
        short = self.record(program('sleeper'), stdin=subprocess.DEVNULL)
        self.assertEqual(short.returncode, 0)
        self.assertEqual(whole, self.symbols())


if __name__ == '__main__':
    unittest.main()
