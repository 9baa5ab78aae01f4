# SPDX-License-Identifier: MIT
"""Runs commands for the benchmarks, and measures them."""

import collections
import os
import subprocess
import time

# Seconds of the clock, seconds of all processors, and the largest resident size in bytes.
Usage = collections.namedtuple('Usage', 'seconds processor resident')


def usage_of(command, **others):
    """Runs a command without its output. `others` go to Popen."""
    begin = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, **others) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f'{command} failed')
    return Usage(time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)
