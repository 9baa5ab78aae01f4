#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A trace of a real program, with an index and without: the same answers."""

import json
import subprocess
import unittest

from support import ANALYZER, PATIENCE, Recording, analyze

PROGRAM = """
import json, threading
def work():
    for i in range(40):
        json.loads(json.dumps([{'key': [n, str(n)], 'other': i * .5} for n in range(300)]))
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


class Index(Recording):
    def answer(self, *arguments):
        result = subprocess.run([ANALYZER, *arguments, str(self.trace)], capture_output=True,
                                timeout=PATIENCE)
        self.assertEqual(result.returncode, 0, result.stderr)
        # An answer from the index is uncertain, and the same otherwise.
        if not result.stdout.startswith(b'{'):
            return [line for line in result.stdout.splitlines() if b'index was used' not in line]
        data = json.loads(result.stdout)
        self.assertEqual(data.pop('certain'), data.pop('reasons') == [])
        return data

    def test_same(self):
        result = self.record('/usr/bin/python3', '-c', PROGRAM,
                             environment={'PYTHONMALLOC': 'malloc'})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertGreater(analyze('index', self.trace)['keyframes'], 2)
        for percent in (1, 25, 37.5, 62, 88, 99.99):
            for command in (['state', '--blocks', '--limit', '0'], ['leaks', '--limit', '0'],
                            ['fragmentation']):
                command += ['--format', 'json', '--at', f'{percent}%']
                with self.subTest(command):
                    self.assertEqual(self.answer(*command), self.answer(*command, '--no-index'))
        self.assertEqual(self.answer('peak'), self.answer('peak', '--no-index'))


if __name__ == '__main__':
    unittest.main()
