# SPDX-License-Identifier: MIT
"""What the recorder costs the program: system calls, address space, memory, time per thread."""

import subprocess
import unittest

from support import Recording, analyze, program


class Confined(Recording):
    def check(self, way):
        """More calls than fit into the memory that is shared with the collector."""
        command = [program('strict'), way, '600000']
        native = subprocess.run(command).returncode
        if native == 77:
            self.skipTest('no seccomp here')
        self.assertEqual((native, self.record(*command).returncode), (7, 7))
        info = analyze('info', self.trace)
        self.assertGreaterEqual(info['allocs'] + info['frees'] + info['lost_events'], 1200000)
        self.assertGreater(info['allocs'], 100000)

    def test_by_prctl(self):
        self.check('prctl')

    def test_by_syscall(self):
        self.check('syscall')


class Threads(Recording):
    def test_none_lost_of_12000(self):
        result = self.record(program('many_threads'), '12000', '10')
        if result.returncode == 77:
            self.skipTest('the system does not allow so many threads')
        self.assertEqual(result.stdout, b'done\n')
        info = analyze('info', self.trace)
        self.assertEqual(info['lost_events'], 0)
        self.assertGreaterEqual(info['frees'], 12000 * 6 + 100)
        self.assert_sound()


if __name__ == '__main__':
    unittest.main()
