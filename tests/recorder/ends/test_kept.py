# SPDX-License-Identifier: MIT
"""A program ends as it does without the recorder, whatever happens while it is found out which
blocks the C library keeps: with its status, at once, and with the same output."""

import os
import subprocess
import time
import unittest

from support import Recording, analyze, program

STATUS, LEAK, MANY = 7, 100, 20
LONG = 5  # seconds; the request itself is given half of one


class Kept(Recording):
    def end(self, how, does, **options):
        """Ends the program natively and recorded; what both do must be the same."""
        native = subprocess.run([program('kept'), how, *does], capture_output=True, **options)
        recorded = self.record(program('kept'), how, *does, **options)
        self.assertEqual((recorded.returncode, recorded.stdout), (native.returncode, native.stdout))
        return recorded

    def assert_known(self):
        found = analyze('leaks', self.trace)
        self.assertEqual(found['classes']['definitely_lost']['bytes'], LEAK)
        self.assertGreater(found['runtime_blocks'], MANY)
        return found['runtime_blocks']

    def test_all_are_known(self):
        """Also where other threads run, which do not stop for it."""
        for how in ('_exit', 'exit'):
            counts = []
            for does in ([], ['nothing'], ['thread']):
                self.assertEqual(self.end(how, does).returncode, STATUS)
                counts.append(self.assert_known())
            self.assertLessEqual(max(counts) - min(counts), 6, counts)

    def test_failures(self):
        """Nothing is flushed natively, so nothing can fail."""
        for does in ('fail', 'abort', 'end'):
            self.assertEqual(self.end('_exit', [does]).returncode, STATUS, does)
            self.assertEqual(analyze('leaks', self.trace)['runtime_blocks'], 0)

    def test_wait(self):
        begin = time.monotonic()
        self.assertEqual(self.end('_exit', ['wait']).returncode, STATUS)
        self.assertLess(time.monotonic() - begin, LONG)

    def test_input(self):
        """Input that was read ahead is given back, for the next program that reads the file."""
        path = self.directory / 'input'
        path.write_text('12345')
        for how, place in (('exit', 1), ('_exit', 5)):
            with open(path, encoding='ascii') as file:
                self.record(program('kept'), how, 'read', stdin=file)
                self.assertEqual(os.lseek(file.fileno(), 0, os.SEEK_CUR), place, how)

    def test_failures_of_the_program(self):
        for does in ('fail', 'abort', 'end'):
            self.end('exit', [does])


if __name__ == '__main__':
    unittest.main()
