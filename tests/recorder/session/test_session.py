# SPDX-License-Identifier: MIT
"""Sessions: recordings of a set of processes, by process id and by name."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

from support import (PATIENCE, PRELOAD, RECORDER, Recording, analyze, program, public_recorder,
                     wait_for)

WAITS = 'import sys; print("ready", flush=True)\nfor line in sys.stdin: print(len([bytes(i) for i in range(600, 1600)]), flush=True)'
HOLDS = ('import sys; print("ready", flush=True); held = []\nfor line in sys.stdin: '
         'held += [bytes(i) for i in range(600, 1600)]; print(1000, flush=True)')
EXISTS, DENIED, NO_SESSION, USAGE = 120, 119, 117, 125


def can_watch():
    """Whether this system lets programs be recorded by name."""
    code = ('import ctypes, os; libc = ctypes.CDLL(None, use_errno=True); '
            'file = libc.fanotify_init(0x105, 0); '
            'os._exit(file < 0 or libc.fanotify_mark(file, 1, ctypes.c_ulong(0x40000), -100, '
            'b"/bin/true") != 0)')
    return subprocess.run([sys.executable, '-c', code]).returncode == 0


class SessionTest(Recording):
    def setUp(self):
        super().setUp()
        self.runtime = self.directory / 'runtime'
        self.runtime.mkdir(mode=0o700)
        self.environment = dict(os.environ, XDG_RUNTIME_DIR=str(self.runtime), PYTHONMALLOC='malloc')
        self.sessions = []

    def tearDown(self):
        for name in self.sessions:
            self.session('stop', name)
        self.ttdrecord('disable')

    def ttdrecord(self, *arguments, recorder=RECORDER, **others):
        others.setdefault('env', self.environment)
        return subprocess.run([recorder, *map(str, arguments)], capture_output=True, text=True,
                              timeout=PATIENCE, **{'cwd': self.directory, **others})

    def session(self, *arguments, **others):
        return self.ttdrecord('session', *arguments, **others)

    def begin(self, name, *arguments):
        self.sessions.append(name)
        result = self.session('start', name, *arguments)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, '', ''))

    def start(self, *command):
        process = subprocess.Popen(command or (sys.executable, '-c', WAITS), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True, bufsize=1,
                                   env=self.environment)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), 'ready\n')
        return process

    @staticmethod
    def call(process):
        process.stdin.write('\n')
        assert process.stdout.readline() == '1000\n'

    def status(self, name='one', command=('session', 'status')):
        arguments = (*command, name) if command[0] == 'session' else command
        result = self.ttdrecord(*arguments, '--format', 'json')
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def daemon(self, name='one'):
        """The process id of the daemon: that which has the lock."""
        lock = (self.runtime / 'ttdrecord' / f'{name}.lock').stat().st_ino
        for path in pathlib.Path('/proc').glob('[0-9]*/fd/*'):
            try:
                if path.stat().st_ino == lock and 'ttdrecord/' + name in os.readlink(path):
                    return int(path.parts[2])
            except OSError:
                pass
        return None


class Sessions(SessionTest):
    def test_the_interval_of_snapshots_is_changed(self):
        """Of what is recorded, and of what will be; until it is off."""
        first, second = self.start(), self.start()
        self.begin('one', '--pid', first.pid)
        self.call(first)
        result = self.session('update', 'one', '--snapshot-every', '0.02')
        self.assertEqual((result.returncode, result.stderr), (0, ''))
        self.assertIn(': a snapshot every 0.02 s\n', result.stdout)
        self.assertEqual(self.session('update', 'one', '--pid', second.pid).returncode, 0)
        self.call(second)
        files = [self.directory / process['file'] for process in self.status()['processes']]
        for file in files:
            wait_for(lambda: any(snapshot['reason'] == 'interval' for snapshot in
                                 analyze('snapshots', file)['snapshots']), f'none in {file}')
        result = self.session('update', 'one', '--snapshot-every=off')
        self.assertEqual(result.stdout.count(': no more snapshots at intervals\n'), 2)
        for wrong in [], ['--snapshot-every'], ['--snapshot-every', '1', '2'], ['--every', '1']:
            result = self.session('update', 'one', *wrong)
            self.assertEqual((result.returncode, result.stderr.count('\n')), (USAGE, 1), wrong)

    def test_stacks_are_changed(self):
        """Of what is recorded, from then on, and of what will be; each trace says so."""
        first, second = self.start(), self.start()
        self.begin('one', '--pid', first.pid, '--stacks', 'none')
        self.call(first)
        result = self.session('update', 'one', '--stacks', 'alloc', '--stack-depth=4')
        self.assertEqual((result.returncode, result.stderr), (0, ''))
        self.assertIn(': other stacks are recorded from now on\n', result.stdout)
        self.call(first)
        self.assertEqual(self.session('update', 'one', '--pid', second.pid).returncode, 0)
        self.call(second)
        files = [self.directory / process['file'] for process in self.status()['processes']]
        self.assertEqual(self.session('stop', 'one').returncode, 0)
        changed = 'not recorded of reallocations, releases; else the innermost 4 frames'
        for file, stated in zip(files, (['not recorded', changed], [changed])):
            self.assertTrue(analyze('verify', file)['ok'])
            self.assertEqual([fact['value'] for fact in analyze('info', file)['metadata']
                              if fact['key'] == 'stacks'], stated)
            hot = analyze('hot', file, '--full-stacks')
            depths = {sum(not frame['inlined'] for frame in group['stack'])
                      for group in hot['groups']
                      if group['stack'][:1] != [] and
                      not (group['stack'][0]['function'] or '').startswith('[')}
            self.assertEqual(max(depths), 4)
        for wrong in ['--stacks'], ['--stacks', 'x'], ['--stack-depth=0']:
            self.assertEqual(self.session('update', 'one', *wrong).returncode, USAGE, wrong)

    def test_processes_come_and_go(self):
        first, second = self.start(), self.start()
        self.begin('one', '--pid', first.pid, '-o', 'traces')
        self.call(first)
        result = self.session('update', 'one', f'--pid={second.pid}')
        self.assertEqual((result.returncode, result.stderr), (0, ''))
        self.call(second)
        status = self.status()
        self.assertEqual(status['folder'], str((self.directory / 'traces').resolve()))
        self.assertEqual([process['pid'] for process in status['processes']],
                         [first.pid, second.pid])
        for process in status['processes']:
            self.assertEqual((process['state'], process['lost']), ('recording', 0))
        text = self.session('status', 'one').stdout
        self.assertIn('Session one: 2 processes recorded, 0 calls lost', text)
        self.assertTrue(all(len(line) <= 80 for line in text.splitlines()[1:]), text)
        rows = re.findall(r'(?m)^ *(\d+) (\S+) +(\d+) +\d+ +0 +\d+'
                          r' +[\d.]+[BkM] +[\d.]+[BkM] (\S+)$', text)
        self.assertEqual([(int(row[0]), row[1], row[3][:6]) for row in rows],
                         [(pid, 'recording', 'python') for pid in (first.pid, second.pid)])
        self.assertIn('one: 2 processes recorded', self.session('list').stdout)
        # One goes, and goes on.
        self.session('update', 'one', '--remove-pid', first.pid)
        wait_for(lambda: self.status()['processes'][0]['state'] == 'ended', 'it is recorded')
        self.call(first)
        self.assertEqual(self.session('stop', 'one').returncode, 0)
        self.call(second)
        for process in (first, second):
            trace, = (self.directory / 'traces').glob(f'python*.{process.pid}.bin')
            self.assertTrue(analyze('verify', trace)['ok'])
            self.assertGreater(analyze('info', trace)['allocs'], 1000)
        self.assertEqual(self.session('status', 'one').returncode, NO_SESSION)
        self.assertEqual(oct((self.directory / 'traces').stat().st_mode & 0o777), '0o700')

    def test_counts_are_those_of_the_trace(self):
        process = self.start()
        self.begin('one', '--pid', process.pid, '-o', 'traces')
        self.call(process)
        counts = self.settled()
        self.assertGreater(counts['events'], 2000)
        self.session('stop', 'one')
        info = analyze('info', counts['file'])
        self.assertEqual((counts['events'], counts['acquisitions'], counts['releases']),
                         (info['events'], info['allocs'] + info['reallocs'], info['frees']))

    def test_live_bytes(self):
        """The bytes of live blocks, also of those from before; a lower bound without these; unknown
        once calls are missing."""
        for options, doubt in ((), None), (('--only-above=700',), 'live_bytes_at_least'), \
                (('--sample=4K',), 'live_bytes_unknown'), (('--blocks-only',), None):
            process = self.start(sys.executable, '-c', HOLDS)
            self.begin('one', '--pid', process.pid, '-o', 'traces', *options)
            self.call(process)
            self.assertEqual(self.session('snapshot', 'one').returncode, 0)
            counts = self.settled()
            self.assertEqual([name for name in counts if name.startswith('live_bytes_')],
                             [doubt] if doubt else [])
            text = self.session('status', 'one').stdout
            mark = {None: r'\d', 'live_bytes_at_least': r'>\d', 'live_bytes_unknown': r'\?'}[doubt]
            self.assertRegex(text, rf'\n *{process.pid} recording .* {mark}.* python')
            self.assertEqual('Live bytes' in text, doubt is not None)
            self.assertLessEqual(max(map(len, text.splitlines()[2:])), 80)
            self.session('pause', 'one')
            self.call(process)
            self.session('resume', 'one')
            self.call(process)
            self.assertIn('live_bytes_unknown', self.settled())
            self.session('stop', 'one')
            first, *_ = analyze('snapshots', counts['file'])['snapshots']
            state = analyze('state', counts['file'], '--at', first['position'])
            if doubt != 'live_bytes_unknown':
                self.assertEqual(counts['live_bytes'], state['live_bytes'] + state['runtime_bytes'])
                self.assertGreater(counts['live_bytes'], 1000 * 700)
            else:
                self.assertNotIn('live_bytes', counts)

    def test_the_recent_past(self):
        """Each process of a session has its own, also once the daemon was killed."""
        for is_killed in False, True:
            processes = [self.start(), self.start()]
            self.begin('one', *(f'--pid={process.pid}' for process in processes), '-o', 'traces',
                       '--keep=20K', '--no-snapshot')
            for _ in range(100):
                for process in processes:
                    self.call(process)
            counts = self.settled()
            self.assertGreater(counts['live_bytes'], 0)
            if is_killed:
                os.kill(self.daemon(), signal.SIGKILL)
            self.session('stop', 'one')
            for process in processes:
                trace, = (self.directory / 'traces').glob(f'*.{process.pid}.bin')
                wait_for(lambda: analyze('verify', trace)['closed'], 'the trace is not closed')
                self.assertEqual(analyze('verify', trace)['problems'], [])
                info = analyze('info', trace)
                self.assertGreater(info['lost_events'], info['events'])
                self.assertIn('unrecorded', [fact['key'] for fact in info['metadata']])
                # The blocks that were live at the cut are there, the calls before are not.
                self.assertTrue(analyze('state', trace)['certain'])
                self.assertFalse(analyze('peak', trace)['certain'])
            self.assertEqual(list((self.directory / 'traces').glob('*.keep')), [])

    def settled(self):
        """The counts of the only process, once they do not change any more."""
        counts = {}
        def is_settled():
            before = dict(counts)
            counts.clear()
            counts.update(self.status()['processes'][0])
            return before and before.get('events') == counts.get('events')
        wait_for(is_settled, 'the counts do not settle')
        return counts

    def test_losses_are_told_at_once(self):
        """A thread that finds no room goes on at once, if that is wanted."""
        code = ("import sys; print('ready', flush=True)\n"
                "for line in sys.stdin:\n"
                "    for i in range(300): [bytes(k % 600 + 600) for k in range(10000)]\n"
                "    print('over', flush=True)\n")
        process = self.start(sys.executable, '-c', code)
        self.begin('one', '--pid', process.pid, '-o', 'traces', '--when-full=lose')
        collector = self.collector()
        def switches():
            text = pathlib.Path(f'/proc/{process.pid}/status').read_text()
            return int(re.search(r'\nvoluntary_ctxt_switches:\s*(\d+)', text)[1])
        before = switches()
        os.kill(collector, signal.SIGSTOP)
        process.stdin.write('\n')
        self.assertEqual(process.stdout.readline(), 'over\n')
        os.kill(collector, signal.SIGCONT)
        self.assertLess(switches() - before, 50) # it would wait 20 ms at a time, for 5 seconds
        log = self.directory / 'traces' / 'session.log'
        wait_for(lambda: re.search(r'\d+ calls lost so far', log.read_text()), 'no loss is told')
        lost = self.status()['processes'][0]['lost']
        self.assertGreater(lost, 1000)
        self.session('stop', 'one')
        trace, = (self.directory / 'traces').glob('*.bin')
        self.assertGreaterEqual(analyze('info', trace)['lost_events'], lost)

    def collector(self):
        """The recorder of a process: the child of the daemon."""
        daemon = self.daemon()
        child, = pathlib.Path(f'/proc/{daemon}/task/{daemon}/children').read_text().split()
        return int(child)

    def test_pause_resume_snapshot(self):
        process = self.start()
        self.begin('one', '--pid', process.pid, '-o', 'traces')
        self.call(process)
        result = self.session('snapshot', 'one')
        self.assertIn('snapshot 1', result.stdout)
        self.assertEqual(self.session('pause', 'one').returncode, 0)
        self.assertEqual(self.status()['processes'][0]['state'], 'paused')
        result = self.session('pause', 'one')
        self.assertEqual(result.returncode, 125)
        self.assertIn('paused already', result.stderr)
        self.assertEqual(self.session('resume', 'one').returncode, 0)
        self.assertEqual(self.status()['processes'][0]['state'], 'recording')

    def test_errors_have_statuses_of_their_own(self):
        self.begin('one')
        result = self.session('start', 'one')
        self.assertEqual(result.returncode, EXISTS)
        self.assertIn("there is a session 'one' already", result.stderr)
        self.assertEqual(self.session('stop', 'two').returncode, NO_SESSION)
        self.assertEqual(self.session('update', 'two', '--pid', 1).returncode, NO_SESSION)
        for arguments in (('start',), ('start', '../x'), ('start', 'two', '--pid', 'x'),
                          ('start', 'two', '--unknown'), ('start', 'two', '--when-full=x'),
                          ('start', 'two', '--pid'), ('begin', 'x'),
                          ('update', 'one'), ('update', 'one', '-q'), ('status', 'one', '--text')):
            result = self.session(*arguments)
            self.assertEqual(result.returncode, USAGE, arguments)
            self.assertTrue(result.stderr)
        self.assertEqual(self.session('list').stdout.count('\n'), 1)
        result = self.session('update', 'one', '--pid', 999999999)
        self.assertEqual(result.returncode, 125)
        self.assertIn('there is no such process', result.stderr)
        # The folder of the sockets must be this user's alone.
        (self.runtime / 'ttdrecord').chmod(0o755)
        result = self.session('start', 'three')
        self.assertEqual(result.returncode, DENIED)
        self.assertIn('alone', result.stderr)
        (self.runtime / 'ttdrecord').chmod(0o700)

    @unittest.skipUnless(os.geteuid() == 0, 'needs root')
    def test_other_users(self):
        self.directory.chmod(0o755)
        _, recorder = public_recorder(self.directory)
        environment = dict(self.environment, LD_LIBRARY_PATH=str(recorder.parent))
        other = {'user': 65534, 'group': 65534, 'env': environment, 'cwd': '/'}
        self.begin('one')
        result = self.session('status', 'one', recorder=str(recorder), **other)
        self.assertEqual(result.returncode, NO_SESSION)
        # Even with the way open, the daemon looks who asks.
        self.runtime.chmod(0o755)
        (self.runtime / 'ttdrecord').chmod(0o755)
        (self.runtime / 'ttdrecord' / 'one.socket').chmod(0o777)
        code = ('import socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); '
                's.connect(sys.argv[1]); s.settimeout(60)\n'
                'try: s.send(b"x" * 100); answer = s.recv(100)\n'
                'except OSError: answer = b""\n'
                'sys.exit(answer != b"")')
        result = subprocess.run(['/usr/bin/python3', '-c', code,
                                 str(self.runtime / 'ttdrecord' / 'one.socket')],
                                user=65534, group=65534, cwd='/', capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        (self.runtime / 'ttdrecord').chmod(0o700)
        self.runtime.chmod(0o700)

    def test_a_daemon_that_is_killed(self):
        process = self.start()
        self.begin('one', '--pid', process.pid, '-o', 'traces')
        self.call(process)
        os.kill(self.daemon(), signal.SIGKILL)
        trace, = (self.directory / 'traces').glob('*.bin')
        wait_for(lambda: analyze('info', trace)['closed'], 'the trace is not closed')
        self.call(process)
        self.assertEqual(self.session('status', 'one').returncode, NO_SESSION)
        self.begin('one', '--pid', process.pid, '-o', 'traces')
        self.assertEqual(len(list((self.directory / 'traces').glob('*.bin'))), 2)

    def test_an_idle_daemon_needs_no_time(self):
        self.begin('one')
        daemon = self.daemon()
        def switches():
            text = pathlib.Path(f'/proc/{daemon}/status').read_text()
            return int(re.search(r'\nvoluntary_ctxt_switches:\s*(\d+)', text)[1])
        wait_for(lambda: pathlib.Path(f'/proc/{daemon}/stat').read_text().split(') ')[1][0] == 'S',
                 'it does not sleep')
        before = switches()
        time.sleep(1)
        self.assertEqual(switches(), before)

    def test_hostile_messages(self):
        self.begin('one')
        path = str(self.runtime / 'ttdrecord' / 'one.socket')
        size = 8 + 4 * 3 + 8192 + 4
        for data in (b'', b'x', b'x' * size, b'TDTTSSN1'[::-1] + b'\xff' * (size - 8)):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
                client.connect(path)
                client.send(data)
        # Those who ask nothing make room.
        clients = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(40)]
        for client in clients:
            client.connect(path)
        self.assertEqual(self.status()['processes'], [])
        for client in clients:
            client.close()

    def test_the_example_of_the_manual(self):
        """Create suspended, enable, resume. A shell does not wait for its first command."""
        manual = (pathlib.Path(__file__).parents[3] / 'recorder/ttdrecord.1').read_text()
        example, = re.findall(r'(?s)\.Bd -literal[^\n]*\n(ttdrecord suspend.*?)\.Ed', manual)
        self.assertIn('server --port 80', example)
        example = example.replace('server --port 80', program('double_free'))
        self.record(program('double_free'))
        self.sessions.append('web')
        environment = dict(self.environment, PATH=f'{pathlib.Path(RECORDER).parent}:{os.environ["PATH"]}')
        for _ in range(3):
            # A pipe would stay open in a program that was never resumed.
            said = self.directory / 'said'
            with open(said, 'w', encoding='utf-8') as output:
                result = subprocess.run(['sh', '-e', '-c', example + 'wait $pid || true'],
                                        stdout=output, stderr=output, env=environment,
                                        cwd=self.directory, timeout=PATIENCE, check=False)
            self.assertEqual(result.returncode, 0, said.read_text())
            self.session('stop', 'web')
            trace, = (self.directory / 'web').glob('double_free*.bin')
            self.assertEqual(analyze('info', trace)['events'], analyze('info', self.trace)['events'])
            trace.unlink()

    def test_suspended_and_resumed(self):
        """A session sees the first call of a program that is created suspended."""
        process = subprocess.Popen([RECORDER, 'suspend', '--', program('double_free')],
                                   stderr=subprocess.PIPE, env=self.environment)
        self.addCleanup(process.stderr.close)
        process.stderr.readline()
        wait_for(lambda: pathlib.Path(f'/proc/{process.pid}/stat').read_text().split(') ')[1][0]
                 in 'TZ', 'it is not suspended')
        self.begin('one', '--pid', process.pid, '-o', 'traces')
        self.assertEqual(self.status()['processes'][0]['state'], 'waiting')
        self.assertEqual(self.ttdrecord('resume', process.pid).returncode, 0)
        process.wait(PATIENCE)
        self.session('stop', 'one')
        trace, = (self.directory / 'traces').glob('double_free*.bin')
        self.record(program('double_free'))
        self.assertEqual(analyze('info', trace)['events'], analyze('info', self.trace)['events'])


@unittest.skipUnless(can_watch(), 'this system does not permit to record by name')
class ByName(SessionTest):
    def copy(self, name='watched'):
        path = self.directory / name
        shutil.copy(program('double_free'), path)
        path.chmod(0o755)
        return path

    def traces(self, name='watched', folder='traces'):
        return sorted((self.directory / folder).glob(f'{name}.*.bin'))

    def assert_recorded(self, path, count):
        """Each run is recorded from the first call on."""
        self.record(str(path))
        events = analyze('info', self.trace)['events']
        wait_for(lambda: len(self.traces(path.name)) == count and all(
            analyze('info', trace)['closed'] for trace in self.traces(path.name)),
                 f'not recorded: {self.traces(path.name)}')
        for trace in self.traces(path.name):
            self.assertEqual(analyze('info', trace)['events'], events)

    def test_every_new_process(self):
        path = self.copy()
        result = self.ttdrecord('enable', '--name', path, '-o', 'traces')
        self.assertEqual((result.returncode, result.stderr), (0, ''))
        reference = subprocess.run([self.copy('other')], capture_output=True)
        # By a thread that is not the first, by a shell, and by vfork.
        for command in ([str(path)], ['/bin/sh', '-c', f'"{path}"; exit $?'],
                        [sys.executable, '-c', f'import threading, os; t = threading.Thread('
                         f'target=os.execv, args=("{path}", ["{path}"])); t.start(); t.join()']):
            result = subprocess.run(command, capture_output=True, timeout=PATIENCE)
            self.assertIn(result.returncode, (reference.returncode, 128 - reference.returncode))
        names = self.status(command=('query',))['names']
        self.assertEqual(names, [str(path.resolve())])
        wait_for(lambda: len(self.traces()) == 3, 'not recorded')
        self.ttdrecord('disable', '--name', path)
        subprocess.run([path], capture_output=True)
        wait_for(lambda: self.ttdrecord('query').returncode == NO_SESSION, 'the daemon goes on')
        self.assert_recorded(path, 3)

    def test_a_program_that_is_replaced(self):
        path = self.copy()
        self.ttdrecord('enable', '--name', path, '-o', 'traces')
        subprocess.run([path], capture_output=True)
        os.replace(self.copy('new'), path)
        wait_for(lambda: self.watches(path), 'the new file is not watched')
        subprocess.run([path], capture_output=True)
        wait_for(lambda: len(self.traces()) == 2, 'not recorded')
        self.assertEqual(self.ttdrecord('disable').returncode, 0)
        self.assert_recorded(path, 2)

    def watches(self, path):
        """Whether the daemon has a mark on the file."""
        inode = f'ino:{path.stat().st_ino:x} '
        daemon = self.daemon('by-name')
        return any(inode in info.read_text() for info in
                   pathlib.Path(f'/proc/{daemon}/fdinfo').iterdir())

    def test_ten_names(self):
        paths = [self.copy(f'watched{i}') for i in range(10)]
        for path in paths:
            self.assertEqual(self.ttdrecord('enable', f'--name={path}',
                                            *(('-o', 'traces') if path == paths[0] else ())
                                            ).returncode, 0)
        for path in paths:
            subprocess.run([path], capture_output=True)
        self.assertEqual(len(self.status(command=('query',))['names']), 10)
        self.ttdrecord('disable', '--name', paths[3])
        self.assertEqual(len(self.status(command=('query',))['names']), 9)
        self.assertEqual(self.ttdrecord('disable').returncode, 0)
        for path in paths:
            self.assertEqual(len(self.traces(path.name)), 1)

    def test_a_daemon_that_is_killed_holds_up_nothing(self):
        path = self.copy()
        self.ttdrecord('enable', '--name', path, '-o', 'traces')
        daemon = self.daemon('by-name')
        os.kill(daemon, signal.SIGSTOP)
        waiting = subprocess.Popen(['/bin/sh', '-c', 'exec "$0"', path], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        place = pathlib.Path(f'/proc/{waiting.pid}/wchan')
        wait_for(lambda: 'fanotify' in place.read_text(), 'it is not held')
        os.kill(daemon, signal.SIGKILL)
        waiting.wait(PATIENCE)
        subprocess.run([path], capture_output=True, timeout=PATIENCE)
        self.assertEqual(self.ttdrecord('query').returncode, NO_SESSION)

    def test_traced_already(self):
        """A program that another one traces runs, unrecorded."""
        path = self.copy()
        self.ttdrecord('enable', '--name', path, '-o', 'traces')
        code = ('import ctypes, os, sys; libc = ctypes.CDLL(None); pid = os.fork()\n'
                'if pid == 0: libc.ptrace(0, 0, 0, 0); os.execv(sys.argv[1], sys.argv[1:])\n'
                'status = os.waitpid(pid, 0)[1]\n'
                'while os.WIFSTOPPED(status): libc.ptrace(7, pid, 0, os.WSTOPSIG(status) if '
                'os.WSTOPSIG(status) != 5 else 0); status = os.waitpid(pid, 0)[1]\n')
        self.assertEqual(subprocess.run([sys.executable, '-c', code, path], capture_output=True,
                                        timeout=PATIENCE).returncode, 0)
        process, = self.status(command=('query',))['processes']
        self.assertEqual(process['state'], 'refused')
        self.assertIn('another one traces it', (self.directory / 'traces' / 'session.log').read_text())

    def test_a_session_has_running_and_new_ones(self):
        path = self.directory / 'watched'
        shutil.copy(os.path.realpath('/bin/cat'), path)
        path.chmod(0o755)
        running = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(running.communicate)
        wait_for(lambda: os.path.realpath(f'/proc/{running.pid}/exe') == str(path.resolve()) and
                 'libc.so' in pathlib.Path(f'/proc/{running.pid}/maps').read_text() and
                 pathlib.Path(f'/proc/{running.pid}/stat').read_text().split(') ')[1][0] == 'S',
                 'it does not run')
        self.begin('one', '--name', path, '-o', 'traces')
        subprocess.run([path], input=b'', capture_output=True)
        self.assertEqual(self.status()['processes'][0]['pid'], running.pid)
        wait_for(lambda: len(self.traces()) == 2, 'not recorded')

    def test_refusals(self):
        static = self.ttdrecord('enable', '--name', program('static'))
        self.assertEqual(static.returncode, 124)
        self.assertEqual(self.ttdrecord('enable', '--name', '/no/such').returncode, 127)
        self.assertEqual(self.ttdrecord('enable').returncode, USAGE)
        self.assertEqual(self.ttdrecord('disable', '--name', '/no/such').returncode, NO_SESSION)


class WithoutPermission(SessionTest):
    @unittest.skipIf(can_watch() and os.geteuid() != 0, 'it is permitted')
    def test_a_refusal_with_advice(self):
        self.directory.chmod(0o755)
        environment, recorder = public_recorder(self.directory)
        user = {'user': 65534, 'group': 65534} if os.geteuid() == 0 else {}
        result = self.ttdrecord('enable', '--name', '/bin/cat', recorder=str(recorder), cwd='/',
                                env=environment, **user)
        self.assertEqual(result.returncode, DENIED, result.stderr)
        self.assertIn('CAP_SYS_ADMIN', result.stderr)
        self.assertRegex(result.stdout, r'(?m)^\[Service\]\nExecStart=\nExecStart=/\S+ -q -o ')


if __name__ == '__main__':
    unittest.main()
