# SPDX-License-Identifier: MIT
"""To look names up costs no more than it has to."""

import os
import pathlib
import shutil
import subprocess
import time
import unittest

from support import PATIENCE, RECORDER, Recording

PROC = pathlib.Path('/proc')


def parent_of(process):
    try:
        return int((process / 'stat').read_text().rsplit(')', 1)[1].split()[1])
    except OSError:  # it is gone by now
        return 0


def maps_of(process):
    try:
        return (process / 'maps').read_text()
    except OSError:
        return ''


def helpers_of(recorder):
    """Maps of the processes that it has started for itself."""
    own = os.path.realpath(RECORDER)
    maps = [maps_of(process) for process in PROC.glob('[0-9]*') if parent_of(process) == recorder]
    return '\n'.join(text for text in maps if own in text)


class NamesCost(Recording):
    def maps_after_reading(self, environment):
        """Of the recorder's helpers, when they have read the program's file."""
        program = shutil.which('sleep')
        command = [RECORDER, '-q', '-o', str(self.trace), '--', program, str(PATIENCE)]
        with subprocess.Popen(command, env=environment) as recorder:
            end = time.monotonic() + PATIENCE
            marker = os.path.realpath(program)
            while marker not in helpers_of(recorder.pid) and time.monotonic() < end:
                time.sleep(0.1)
            time.sleep(1)  # by then it has looked for separate debug information
            maps = helpers_of(recorder.pid)
            recorder.terminate()
        self.assertIn(marker, maps)
        return maps

    def test_libraries_for_servers_that_nobody_named(self):
        environment = {k: v for k, v in os.environ.items() if k != 'DEBUGINFOD_URLS'}
        self.assertNotIn('libdebuginfod', self.maps_after_reading(environment))


if __name__ == '__main__':
    unittest.main(verbosity=2)
