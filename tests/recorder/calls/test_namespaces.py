# SPDX-License-Identifier: MIT
"""Programs in namespaces of their own, and those of other users, which cannot open the channel: it is
handed over to them, and what they are called there is translated."""

import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from support import PATIENCE, RECORDER, Recording, analyze, program, wait_for

LISTING = 'ls /proc/self/fd'
# Five threads that allocate and are still there when the process ends.
THREADS = """
import os, threading, time
ready = threading.Semaphore(0)
def run():
    kept = [bytearray(9000) for _ in range(99)]
    ready.release()
    time.sleep(1000)
for _ in range(5):
    threading.Thread(target=run).start()
for _ in range(5):
    ready.acquire()
os._exit(7)
"""


class Namespaces(Recording):
    def run_native(self, *command):
        """The result of a command without the recorder. Skips the test if it is not permitted."""
        if shutil.which(command[0]) is None:
            self.skipTest(f'no {command[0]} here')
        result = subprocess.run([*command[:-1], 'true'], capture_output=True)
        if result.returncode != 0:
            self.skipTest(f'not permitted: {result.stderr}')
        return subprocess.run(command, capture_output=True)

    def traces(self):
        """The traces of children, by the names of their programs."""
        return {trace.name.split('.')[-1]: trace for trace in self.directory.glob('trace.bin.*')}

    def check(self, *command):
        """It runs as it does otherwise, and all that it runs is recorded."""
        native = self.run_native(*command)
        result = self.record(*command)
        self.assertEqual((result.returncode, result.stdout, result.stderr),
                         (native.returncode, native.stdout, native.stderr))
        for trace in self.traces().values():
            self.assert_sound(trace)
            snapshot, = analyze('snapshots', trace)['snapshots']
            self.assertEqual(snapshot['missing_bytes'], 0)
        return self.traces()

    def test_processes(self):
        for options in ('-pf', '--mount-proc'), ('-pf',), ('-npf', '--mount-proc'):
            traces = self.check('unshare', *options, program('leaks_c'))
            leaks = analyze('leaks', traces['leaks_c'])
            self.assertIn(1000, [group['bytes'] for group in leaks['groups']])
            self.assertEqual(analyze('info', traces['leaks_c'])['trace']['process_id'],
                             int(traces['leaks_c'].name.split('.')[2]))

    def test_ids(self):
        """Processes and threads have the ids that the recorder sees, not their own."""
        self.run_native('unshare', '-pf', '--mount-proc', 'true')
        self.record('unshare', '-pf', '--mount-proc', sys.executable, '-S', '-c', THREADS)
        trace, = self.directory.glob('trace.bin.*')
        info = analyze('info', trace)
        self.assertEqual((info['end_reason'], info['end_code']), ('exited', 7))
        process = info['trace']['process_id']
        ids = [thread['os_id'] for thread in info['thread_list']]
        self.assertEqual(len(set(ids)), 6)
        self.assertEqual(ids[0], process)
        self.assertNotIn(1, ids)

    def test_nothing_is_left_open(self):
        self.check('unshare', '-pf', '--mount-proc', 'sh', '-c', LISTING)

    def test_what_runs_other_programs(self):
        """By execve(), posix_spawn(), system() and popen(), in a child, a grandchild, a daemon."""
        for inner in ('ls /; exec ls /', 'ls / | cat', 'awk \'BEGIN { system("ls /; ls /") }\'',
                      'awk \'BEGIN { while ("ls /" | getline) print }\'', 'make -f /dev/null -s nothing; :',
                      'env -i /bin/ls /', 'unshare -pf --mount-proc ls /', '(ls / &); sleep 0.1'):
            with self.subTest(inner):
                traces = self.check('unshare', '-pf', '--mount-proc', 'sh', '-c', inner)
                if 'ls' in inner.split():
                    self.assertIn('ls', traces)

    def test_users(self):
        traces = self.check('unshare', '-Ur', 'sh', '-c', 'ls /; ls /')
        self.assertIn('ls', traces)

    @unittest.skipIf(os.geteuid() != 0, 'only root can become another user')
    def test_another_user(self):
        preload = pathlib.Path(os.environ['PRELOAD'])
        if any(not parent.stat().st_mode & 1 for parent in preload.parents):
            self.skipTest('another user cannot load the recorder here')
        self.check('setpriv', '--reuid=65534', '--clear-groups', 'ls', '/')
        self.assertGreater(analyze('info', self.trace)['trace']['modules'], 5)

    def test_mounts(self):
        """Without /proc there is no path to the channel."""
        traces = self.check('unshare', '-m', 'sh', '-c', 'umount -l /proc; echo hello; ls /')
        self.assertIn('ls', traces)

    def test_mounts_with_proc(self):
        traces = self.check('unshare', '-m', 'sh', '-c', f'{program("leaks_c")}; :')
        self.assertIn('leaks_c', traces)

    def test_containers(self):
        """Bubblewrap, which runs the program by its own first process in a namespace."""
        for options in ('--unshare-all',), ('--unshare-pid',), ('--unshare-all', '--clearenv'):
            traces = self.check('bwrap', *options, '--ro-bind', '/', '/', '--proc', '/proc',
                                '--dev', '/dev', '/bin/sh', '-c', 'ls /; ls /')
            self.assertIn('ls', traces)

    def test_status(self):
        """A process is asked about by the id that it has outside."""
        self.run_native('unshare', '-pf', '--mount-proc', 'true')
        with subprocess.Popen([RECORDER, '-q', '-o', str(self.trace), '--', 'unshare', '-pf',
                               '--mount-proc', 'sh', '-c', 'echo hi; read line; :'],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as recorder:
            recorder.stdout.readline()
            # The program may speak before the recorder has heard of it.
            wait_for(lambda: list(self.directory.glob('trace.bin.*')), 'there is no trace')
            process, = (int(trace.name.split('.')[2])
                        for trace in self.directory.glob('trace.bin.*'))
            status = subprocess.run([RECORDER, 'status', str(process)], capture_output=True,
                                    text=True, timeout=PATIENCE)
            recorder.stdin.close()
        self.assertIn('0 lost', status.stdout, status.stderr)

    def test_what_cannot_be_had_is_counted(self):
        """A program that no library can be loaded into, in a namespace."""
        self.run_native('unshare', '-pf', '--mount-proc', 'true')
        result = self.record('unshare', '-pf', '--mount-proc', 'sh', '-c',
                             f'{program("static")}; :')
        self.assertIn(b'1 child process could not be recorded', result.stderr)
        self.assertIn({'key': 'unrecorded', 'value': '1 child process of the recording'},
                      analyze('info', self.trace)['metadata'])


if __name__ == '__main__':
    unittest.main()
