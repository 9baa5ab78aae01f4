# SPDX-License-Identifier: MIT
"""The recorder ends a process in exit() itself, where it can tell that nothing is left to run: the
program's handlers, its streams and its status are as they are without it."""

import os
import subprocess
import time
import unittest

from support import RECORDER, Recording, analyze, program

STATUS, OTHER_STATUS, MANY, LEAK = 7, 9, 100, 100
WAIT = 1  # seconds: longer than the recorder gives the C library to release its blocks


class Handlers(Recording):
    def end(self, *way, early=False):
        """Ends the program natively and recorded; what both do must be the same."""
        environment = {'EARLY': '1'} if early else {}
        native = subprocess.run([program('last_handlers'), *way], capture_output=True, text=True,
                                env=dict(os.environ, **environment))
        recorded = self.record(program('last_handlers'), *way, environment=environment, text=True)
        self.assertEqual((recorded.returncode, recorded.stdout),
                         (native.returncode, native.stdout))
        found = analyze('leaks', self.trace)
        self.assertEqual(found['classes']['definitely_lost']['bytes'], LEAK)
        self.assertGreater(found['runtime_blocks'], 0)
        return native.returncode, native.stdout

    def test_usual(self):
        self.assertEqual(self.end(), (STATUS, 'the end\nhandlers: 0\n'))

    def test_one_comes_later(self):
        """A library that was initialized before the recorder's has registered it."""
        for way, status in (('', STATUS), ('nested', OTHER_STATUS)):
            self.assertEqual(self.end(way, early=True), (status, (
                f'the end\nhandlers: 0\nthe very last handler: {status}\n')))

    def test_one_ends_the_process(self):
        self.assertEqual(self.end('nested'), (OTHER_STATUS, 'the end\nhandlers: 0\n'))

    def test_they_run_before(self):
        self.assertEqual(self.end('finalized'), (STATUS, 'handlers: 0\nthe end\n'))

    def test_many(self):
        self.assertEqual(self.end('many'), (STATUS, f'the end\nhandlers: {MANY}\n'))

    def test_signal(self):
        self.assertEqual(self.end('signal'), (STATUS, 'handled\nthe end\nhandlers: 0\n'))

    def test_slow_reader(self):
        """The streams are flushed, however long that takes."""
        command = [RECORDER, '-q', '-o', self.trace, '--', program('last_handlers'), 'pipe']
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            time.sleep(WAIT)
            output = process.stdout.read()
        self.assertTrue(output.endswith(b'\0the end\nhandlers: 0\n'))
        self.assertEqual(process.returncode, STATUS)


if __name__ == '__main__':
    unittest.main()
