# SPDX-License-Identifier: MIT
"""Shared by the recorder's tests: recording programs, and asking ttdanalyze about the traces."""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest

RECORDER = os.environ['TTDRECORD']
ANALYZER = os.environ['TTDANALYZE']
PROGRAMS = pathlib.Path(os.environ['PROGRAMS'])
COUNTER = os.environ['COUNTER']
PRELOAD = os.environ['PRELOAD']
# Long enough for a machine that is busy with something else.
PATIENCE = int(os.environ.get("PATIENCE", 120))


def program(name):
    return str(PROGRAMS / name)


def wait_for(condition, message):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(message)
        time.sleep(0.01)


def all_live(found):
    """Live blocks and bytes of a report, with what the runtimes keep."""
    return (found['live_blocks'] + found['runtime_blocks'],
            found['live_bytes'] + found['runtime_bytes'])


def analyze(command, trace, *options):
    """The JSON object that a command prints; a list of them for events. Leaks are of all classes:
    whatever was never released."""
    if command == 'leaks' and '--show' not in options:
        options = ('--show', 'all', *options)
    result = subprocess.run([ANALYZER, command, '--format', 'json', *options, str(trace)],
                            capture_output=True, text=True, timeout=PATIENCE)
    if not result.stdout:
        raise AssertionError(f'{command} {trace}: {result.stderr}')
    if command == 'events':
        return [json.loads(line) for line in result.stdout.splitlines()]
    return json.loads(result.stdout)


def public_recorder(directory):
    """The environment and the path of a copy of ttdrecord that every user can execute, wherever the
    build is and whatever the umask: the build may lie in a folder that only root can enter."""
    directory.chmod(0o755)
    copies = directory / 'public'
    copies.mkdir()
    libraries = subprocess.run(['ldd', RECORDER], capture_output=True, text=True, check=True).stdout
    for path in [RECORDER, *re.findall(r'=> (/\S*libttdtrace\S*) ', libraries)]:
        shutil.copy(path, copies / os.path.basename(path))
    for path in [copies, *copies.iterdir()]:
        path.chmod(0o755)
    return dict(os.environ, LD_LIBRARY_PATH=str(copies)), copies / os.path.basename(RECORDER)


def beside_analyzer(directory):
    """The path of a copy of ttdrecord that has ttdanalyze beside it, as when they are installed."""
    preload = pathlib.Path(RECORDER).parent / 'preload'
    shutil.copytree(preload, directory / 'preload', ignore=lambda _, names: [
        name for name in names if not name.endswith('.so')])
    shutil.copy(RECORDER, directory)
    (directory / 'ttdanalyze').symlink_to(ANALYZER)
    return directory / 'ttdrecord'


def marks(trace, *options):
    """The marks of a trace, one at a time."""
    result = subprocess.run([ANALYZER, 'marks', '--format', 'json', *options, str(trace)],
                            capture_output=True, text=True, timeout=PATIENCE, check=True)
    return [json.loads(line) for line in result.stdout.splitlines()]


class Recording(unittest.TestCase):
    """A test with a directory of its own, in which programs are recorded into trace.bin."""

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.directory)
        self.trace = self.directory / 'trace.bin'

    def record(self, *command, options=(), environment=None, **others):
        return subprocess.run([RECORDER, '-q', '-o', str(self.trace), *options, '--', *command],
                              env=dict(os.environ, **(environment or {})), capture_output=True,
                              timeout=PATIENCE, **others)

    def assert_late_are_counted(self, result):
        """All that the recorder says is how many traces lack the snapshot that there was no time
        for, and how many have one of a part for the same reason. Returns how many lack it."""
        traces = self.directory.glob('trace.bin*')
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(lambda trace: analyze('snapshots', trace), traces))
        missing = sum(answer['snapshots'] == [] for answer in answers)
        warning = (f'ttdrecord: warning: {missing} process{"es" if missing != 1 else ""} ended '
                   'without a snapshot, which took too long\n')
        said = re.sub(r'ttdrecord: warning: \d+ snapshots? (is|are) not complete, .*\n', '',
                      result.stderr.decode())
        self.assertEqual(said, warning if missing else '')
        return missing

    def assert_sound(self, trace=None, *, has_end=True):
        """The trace is whole, and no address was live twice or released without being live. `has_end`
        is false where the system may have no status of a process any more when the collector asks,
        or the snapshot of the end may be late."""
        verdict = analyze('verify', trace or self.trace)
        self.assertEqual(verdict['problems'], [])
        self.assertTrue(verdict['ok'])
        leaks = analyze('leaks', trace or self.trace)
        no_end = {'how the program ended is not known: it may have been killed',
                  'no snapshot was taken when the program ended'}
        self.assertLessEqual(set(leaks['reasons']), set() if has_end else no_end)
        return leaks
