# SPDX-License-Identifier: MIT
"""Programs that are started suspended, recorded from their first call on, and let go."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import unittest

from support import (COUNTER, PATIENCE, PRELOAD, RECORDER, Recording, analyze, program,
                     public_recorder, wait_for)


def state(pid):
    """The letter of a process's state; None if there is no process."""
    try:
        return pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(') ')[2][0]
    except FileNotFoundError:
        return None


def can_trace():
    """Whether this system lets a process be traced by another one that is not its parent."""
    result = subprocess.run([RECORDER, 'suspend', '--', 'no such program'], capture_output=True)
    return result.returncode == 127


class Suspend(Recording):
    def suspend(self, *command, recorder=RECORDER, **others):
        others.setdefault('stdout', subprocess.PIPE)
        process = subprocess.Popen([recorder, 'suspend', '--', *command], stderr=subprocess.PIPE,
                                   text=True, **others)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        wait_for(lambda: state(process.pid) in ('T', 'Z', None), 'it is not suspended')
        return process

    def attach(self, pid, *options, recorder=RECORDER, environment=None):
        """A recorder that has armed the process, or has ended."""
        process = subprocess.Popen([recorder, 'attach', *options, '-o', str(self.trace), str(pid)],
                                   stderr=subprocess.PIPE, text=True, env=environment)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        process.first_line = process.stderr.readline()
        return process

    def resume(self, pid, recorder=RECORDER):
        return subprocess.run([recorder, 'resume', str(pid)], capture_output=True, text=True,
                              timeout=PATIENCE)

    def finish(self, process):
        output, errors = process.communicate(timeout=PATIENCE)
        return process.returncode, output, errors

    def test_the_first_call_is_recorded(self):
        """Create suspended, enable, resume: the example of the manual."""
        self.record(program('double_free'))
        launched = analyze('info', self.trace)
        suspended = self.suspend(program('double_free'))
        maps = pathlib.Path(f'/proc/{suspended.pid}/maps').read_text()
        self.assertNotIn('libc.so', maps)
        recorder = self.attach(suspended.pid)
        self.assertIn('from its first instruction on', recorder.first_line)
        self.assertEqual(state(suspended.pid), 'T')
        self.assertEqual(self.resume(suspended.pid).returncode, 0)
        self.finish(suspended)
        self.assertEqual(self.finish(recorder)[0], 0)
        info = analyze('info', self.trace)
        self.assertEqual(info['events'], launched['events'])
        self.assertGreater(info['events'], 0)
        header = info['trace']
        self.assertEqual(header['process_id'], suspended.pid)
        self.assertEqual(header['parent_process_id'], os.getpid())
        self.assertFalse(header['attached'])

    def test_the_environment_is_kept(self):
        environment = dict(os.environ, LD_PRELOAD=COUNTER, LAST='kept')
        code = 'import os; print(os.environ["LD_PRELOAD"], os.environ["LAST"], __import__("sys").argv)'
        suspended = self.suspend(sys.executable, '-c', code, 'a b', env=environment)
        recorder = self.attach(suspended.pid)
        self.resume(suspended.pid)
        status, output, _ = self.finish(suspended)
        self.assertEqual((status, output), (0, f"{PRELOAD}:{COUNTER} kept ['-c', 'a b']\n"))
        self.assertEqual(self.finish(recorder)[0], 0)
        self.assertGreater(analyze('info', self.trace)['events'], 1000)

    def test_many_arguments(self):
        arguments = [str(i) for i in range(20000)]
        suspended = self.suspend(sys.executable, '-c', 'import sys; print(len(sys.argv))',
                                 *arguments)
        recorder = self.attach(suspended.pid)
        self.resume(suspended.pid)
        self.assertEqual(self.finish(suspended)[1], '20001\n')
        recorder.communicate(timeout=PATIENCE)

    def test_programs_that_it_executes_are_recorded(self):
        suspended = self.suspend('/bin/sh', '-c', '"$0"; "$0"; exit 3', program('double_free'))
        recorder = self.attach(suspended.pid)
        self.resume(suspended.pid)
        self.assertEqual(self.finish(suspended)[0], 3)
        self.assertEqual(self.finish(recorder)[0], 0)
        self.assertEqual(len(list(self.directory.glob('trace.bin.*'))), 2)

    def test_a_recorder_that_dies(self):
        suspended = self.suspend(sys.executable, '-c', 'print("alive")')
        recorder = self.attach(suspended.pid)
        recorder.kill()
        recorder.communicate(timeout=PATIENCE)
        self.resume(suspended.pid)
        self.assertEqual(self.finish(suspended)[:2], (0, 'alive\n'))

    def test_nobody_records(self):
        suspended = self.suspend(sys.executable, '-c', 'print("alive")')
        result = self.resume(suspended.pid)
        self.assertEqual(result.returncode, 0)
        self.assertIn('from its first instruction', result.stderr)
        self.assertEqual(self.finish(suspended)[:2], (0, 'alive\n'))

    def test_the_recording_is_ended(self):
        suspended = self.suspend(sys.executable, '-c', 'input(); print("alive")',
                                 stdin=subprocess.PIPE)
        recorder = self.attach(suspended.pid)
        self.resume(suspended.pid)
        wait_for(lambda: subprocess.run([RECORDER, 'status', str(suspended.pid)],
                                        capture_output=True).returncode == 0, 'not recorded')
        result = subprocess.run([RECORDER, 'detach', str(suspended.pid)], capture_output=True,
                                text=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.finish(recorder)[0], 0)
        output, _ = suspended.communicate('\n', timeout=PATIENCE)
        self.assertEqual((suspended.returncode, output), (0, 'alive\n'))
        self.assertTrue(analyze('verify', self.trace)['ok'])

    def test_refusals(self):
        result = subprocess.run([RECORDER, 'suspend', '--', program('static')],
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, 124)
        result = subprocess.run([RECORDER, 'suspend'], capture_output=True, text=True)
        self.assertEqual(result.returncode, 125)
        # One that is stopped later is none that was suspended.
        process = subprocess.Popen(['sleep', '1000'])
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        wait_for(lambda: 'libc.so' in pathlib.Path(f'/proc/{process.pid}/maps').read_text(), 'run')
        process.send_signal(signal.SIGSTOP)
        wait_for(lambda: state(process.pid) == 'T', 'it is not stopped')
        self.assertIn('is not being recorded', self.resume(process.pid).stderr)
        self.assertEqual(state(process.pid), 'T')

    def test_one_recorder_at_a_time(self):
        suspended = self.suspend(program('double_free'))
        self.attach(suspended.pid)
        second = self.attach(suspended.pid)
        second.communicate(timeout=PATIENCE)
        self.assertEqual(second.returncode, 125)
        self.assertIn('another recorder', second.first_line)

    @unittest.skipUnless(os.geteuid() == 0 and subprocess.run(
        ['unshare', '--pid', '--fork', '--mount-proc', 'true'], capture_output=True
    ).returncode == 0, 'needs root, and namespaces')
    def test_another_namespace(self):
        """It would not find the channel there: a refusal, and it goes on."""
        process = subprocess.Popen(['unshare', '--pid', '--fork', '--mount-proc', RECORDER,
                                    'suspend', '--', '/bin/echo', 'alive'],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        process.stderr.readline()
        children = pathlib.Path(f'/proc/{process.pid}/task/{process.pid}/children')
        wait_for(lambda: children.read_text() and state(int(children.read_text())) == 'T',
                 'it is not suspended')
        child = int(children.read_text())
        recorder = self.attach(child)
        recorder.communicate(timeout=PATIENCE)
        self.assertIn('in another namespace', recorder.first_line)
        self.assertEqual(self.resume(child).returncode, 0)
        self.assertEqual(self.finish(process)[:2], (0, 'alive\n'))

    @unittest.skipUnless(os.geteuid() == 0, 'needs root')
    def test_root_records_another_user(self):
        environment, recorder = public_recorder(self.directory)
        libraries = recorder.parent / 'preload'
        libraries.mkdir()
        for library in pathlib.Path(PRELOAD).parent.glob('libttd*.so'):
            shutil.copy(library, libraries)
        for path in [libraries, *libraries.iterdir()]:
            path.chmod(0o755)
        suspended = self.suspend('/bin/sh', '-c', 'id -u; exit 5', user=65534, group=65534,
                                 cwd='/', recorder=recorder,
                                 env=environment)
        process = self.attach(suspended.pid, recorder=recorder, environment=environment)
        self.assertIn('from its first instruction on', process.first_line)
        self.resume(suspended.pid)
        self.assertEqual(self.finish(suspended)[:2], (5, '65534\n'))
        self.assertEqual(self.finish(process)[0], 0)
        self.assertGreater(analyze('info', self.trace)['events'], 0)
        self.assertEqual(len(list(self.directory.glob('trace.bin.*'))), 1)
        # Without the library's directory, the user cannot load it: a refusal, and it goes on.
        libraries.chmod(0o700)
        suspended = self.suspend('/bin/sh', '-c', 'echo alive', user=65534, group=65534, cwd='/',
                                 recorder=recorder,
                                 env=environment)
        process = self.attach(suspended.pid, recorder=recorder, environment=environment)
        self.assertIn('cannot read the recorder', process.first_line)
        self.resume(suspended.pid)
        self.assertEqual(self.finish(suspended)[:2], (0, 'alive\n'))


if __name__ == '__main__':
    if not can_trace():
        print('this system does not let processes be traced')
        sys.exit(77)
    unittest.main()
