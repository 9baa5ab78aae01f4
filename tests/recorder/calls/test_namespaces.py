# SPDX-License-Identifier: MIT
"""Programs in namespaces of their own, which the recorder's collector is not in."""

import shutil
import subprocess
import unittest

from support import Recording, analyze, program


class Namespaces(Recording):
    def run_native(self, *command):
        """What a command prints without the recorder. Skips the test if it is not permitted."""
        if shutil.which(command[0]) is None:
            self.skipTest(f'no {command[0]} here')
        result = subprocess.run(command, capture_output=True)
        if result.returncode != 0:
            self.skipTest(f'not permitted: {result.stderr}')
        return result.stdout

    def check_counted(self, *command):
        """Each runs as it does otherwise, and a warning says that it was not recorded."""
        native = self.run_native(*command)
        result = self.record(*command)
        self.assertEqual((result.returncode, result.stdout), (0, native), result.stderr)
        self.assertIn(b'could not be recorded', result.stderr)
        return result.stderr

    def test_processes(self):
        said = self.check_counted('unshare', '-pf', '--mount-proc', 'echo', 'hello')
        self.assertIn(b'1 child process could', said)
        said = self.check_counted('unshare', '-pf', 'echo', 'hello')
        self.assertIn(b'1 child process could', said)

    def test_users(self):
        self.check_counted('unshare', '-Ur', 'echo', 'hello')
        self.assertFalse(analyze('leaks', self.trace)['certain'])

    def test_mounts(self):
        """Without /proc there is no path to the channel."""
        said = self.check_counted('unshare', '-m', 'sh', '-c', 'umount -l /proc; echo hello; ls /')
        self.assertIn(b'1 child process could', said)

    def test_mounts_with_proc(self):
        result = self.record('unshare', '-m', program('leaks_c'))
        self.assertNotIn(b'could not be recorded', result.stderr)


if __name__ == '__main__':
    unittest.main()
