# SPDX-License-Identifier: MIT
"""A program that is started without standard descriptors does not have them when it is recorded, and
nothing that is said about it ends up in its trace."""

import subprocess
import unittest

from support import PATIENCE, RECORDER, Recording

REPORT = 'for i in 0 1 2; do [ -e /proc/$$/fd/$i ] && echo $i; done > "$0"; exec 3>&-'


# Files of the recorder there, so that none of its own files is taken for one of them.
PARENT = 'for i in 0 1 2; do readlink /proc/$PPID/fd/$i; done > "$0"'


class Descriptors(Recording):
    def test_closed(self):
        seen = self.directory / 'seen'
        for closed in ('2>&-', '0<&- 1>&- 2>&-'):
            with self.subTest(closed):
                subprocess.run(
                    ['sh', '-c', f'"$0" -o "$1" -- sh -c "$2" "$3" {closed}', RECORDER,
                     str(self.trace), REPORT, str(seen)], stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PATIENCE,
                    check=True)
                self.assert_sound()
                # The file that the shell opens for its report takes the first number that is free.
                unrecorded = self.directory / 'unrecorded'
                subprocess.run(['sh', '-c', f'sh -c "$0" "$1" {closed}', REPORT, str(unrecorded)],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, timeout=PATIENCE, check=True)
                self.assertEqual(seen.read_text(), unrecorded.read_text())
                subprocess.run(
                    ['sh', '-c', f'"$0" -o "$1" -- sh -c "$2" "$3" {closed}', RECORDER,
                     str(self.trace), PARENT, str(seen)], stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PATIENCE,
                    check=True)
                self.assertEqual(seen.read_text(), '/dev/null\n' * 3)


if __name__ == '__main__':
    unittest.main()
