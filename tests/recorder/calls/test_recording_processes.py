# SPDX-License-Identifier: MIT
"""ttdrecord of threads, deaths and children, from outside."""

import ctypes
import ctypes.util
import datetime
import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

from support import ANALYZER, PATIENCE, RECORDER, Recording, analyze, program, public_recorder


class Privileged(Recording):
    @unittest.skipIf(os.geteuid() != 0, 'only root can make programs of root')
    def test_child_that_gains_privileges(self):
        """Its loader ignores the recorder, so it is counted; but not where it gains nothing."""
        environment, recorder = public_recorder(self.directory)
        preload = recorder.parent / 'preload'
        preload.mkdir()
        pathlib.Path(shutil.copy(os.environ['PRELOAD'], preload)).chmod(0o755)
        preload.chmod(0o755)
        traces = self.directory / 'traces'
        traces.mkdir()
        os.chown(traces, 65534, 65534)
        copy = shutil.copy('/bin/true', self.directory / 'privileged')
        if os.statvfs(copy).f_flag & os.ST_NOSUID:
            self.skipTest('no program is setuid here')
        for mode, count in (0o4755, 2), (0o2755, 2), (0o755, 0):
            os.chmod(copy, mode)
            result = subprocess.run(
                [recorder, '-q', '-o', traces / 'trace', 'sh', '-c', f'{copy}; {copy}; :'],
                user=65534, group=65534, extra_groups=[], cwd='/', env=environment,
                capture_output=True, text=True, timeout=PATIENCE)
            said = f'ttdrecord: warning: {count} child processes could not be recorded\n'
            self.assertEqual((result.returncode, result.stderr), (0, said if count else ''))


class Threads(Recording):
    def test_order_respects_causality(self):
        for _ in range(3):
            self.assertEqual(self.record(program('threads')).stdout, b'done\n')
            info = analyze('info', self.trace)
            self.assertEqual(info['lost_events'], 0)
            self.assertEqual(info['threads'], 9)
            # On a busy machine the C library's own blocks may not be told apart in time.
            leaks = self.assert_sound()
            self.assertEqual([group for group in leaks['groups'] if self.is_of_work(group)], [])
            [group] = analyze('hot', self.trace, '--limit', '1')['groups']
            self.assertTrue(self.is_of_work(group))
            self.assertEqual(group['never_released'], 0)

    @staticmethod
    def is_of_work(group):
        return any(frame['function'] == 'work' for frame in group['stack'])

    def test_many_that_hold_a_chunk(self):
        """A chunk that a thread has begun to fill does not count as waiting to be collected."""
        result = self.record(program('many_threads'), '1040', '3000')
        if result.returncode == 77:
            self.skipTest('the system does not allow so many threads')
        self.assertEqual(result.stdout, b'done\n')
        info = analyze('info', self.trace)
        self.assertEqual(info['lost_events'], 0)
        self.assertGreaterEqual(info['frees'], 1040 * 1501 + 30000)

    def test_more_than_there_is_room_for(self):
        self.assertEqual(self.record(program('hoarder'), '10').returncode, 0)
        info = analyze('info', self.trace)
        self.assertGreaterEqual(info['lost_events'], 2 * 7)
        leaks = analyze('leaks', self.trace)
        self.assertFalse(leaks['certain'])


class Deaths(Recording):
    def test_every_completed_call_survives_a_kill(self):
        for delay in (0.05, 0.2, 0.31):
            done = self.directory / f'done-{delay}'
            process = subprocess.Popen([RECORDER, '-q', '-o', self.trace, program('progress'), done])
            deadline = time.monotonic() + PATIENCE
            while not (done.exists() and done.stat().st_size) and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(delay)
            children = pathlib.Path(f'/proc/{process.pid}/task/{process.pid}/children').read_text()
            os.kill(int(children.split()[0]), signal.SIGKILL)
            self.assertEqual(process.wait(PATIENCE), -signal.SIGKILL)
            completed = int.from_bytes(done.read_bytes()[:8], 'little')
            info = analyze('info', self.trace)
            self.assertEqual(info['end_reason'], 'killed')
            # The program had counted `completed` calls; one more may have been under way.
            recorded = info['allocs'] + info['frees']
            self.assertIn(recorded - completed, (0, 1, 2))
            self.assertGreater(completed, 1000)

    def test_program_goes_on_without_the_collector(self):
        done = self.directory / 'done'
        limit = 10_000_000
        process = subprocess.Popen([RECORDER, '-q', '-o', self.trace, program('progress'), done,
                                    str(limit)])
        deadline = time.monotonic() + PATIENCE
        while not (done.exists() and done.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
        process.wait(PATIENCE)
        while time.monotonic() < deadline:
            if int.from_bytes(done.read_bytes()[:8], 'little') == limit:
                break
            time.sleep(0.05)
        self.assertEqual(int.from_bytes(done.read_bytes()[:8], 'little'), limit)
        self.assertFalse(analyze('info', self.trace)['closed'])


class Forgeries(Recording):
    def test_threads_that_cannot_be(self):
        """Nothing in the shared memory is trusted: what is wrong there is a loss, and no more."""
        self.assertEqual(self.record(program('forger')).returncode, 0)
        info = analyze('info', self.trace)
        self.assertEqual((info['closed'], info['end_reason']), (True, 'exited'))
        self.assertGreaterEqual(min(info['allocs'], info['frees']), 1000)
        addresses = {event.get('address') for event in analyze('events', self.trace)}
        self.assertNotIn('0x1000', addresses)
        self.assertFalse(analyze('leaks', self.trace)['certain'])
        self.assertEqual(analyze('verify', self.trace)['problems'], [])


class Children(Recording):
    def traces(self):
        return sorted(self.directory.glob('trace.bin.*'))

    def test_each_has_its_own(self):
        self.assertEqual(self.record(program('children')).returncode, 0)
        parent = analyze('info', self.trace)
        self.assertEqual(self.assert_sound()['total_bytes'], 1000)
        infos = [analyze('info', trace) for trace in self.traces()]
        self.assertEqual(len(infos), 3)  # the one that does nothing has none
        for info in infos:
            self.assertEqual(info['trace']['group'], parent['trace']['group'])
            self.assertEqual(info['trace']['parent_trace_id'], parent['trace']['trace_id'])
        forked = next(trace for trace, info in zip(self.traces(), infos)
                      if info['trace']['inherits'])
        leaks = analyze('leaks', forked)
        self.assertIn(2000, [group['bytes'] for group in leaks['groups']])

    def test_times_of_a_child(self):
        """They count from its own start."""
        program_text = 'import subprocess, time; time.sleep(2); subprocess.run(["git", "--version"])'
        self.record('/usr/bin/python3', '-c', program_text)
        child, = self.traces()
        infos = [analyze('info', trace) for trace in (self.trace, child)]
        starts = [datetime.datetime.strptime(info['trace']['start_time'][:19], '%Y-%m-%dT%H:%M:%S')
                  for info in infos]
        self.assertGreaterEqual((starts[1] - starts[0]).total_seconds(), 1)
        self.assertGreater(infos[0]['last_wall_time_ns'], 2e9)
        self.assertLess(infos[1]['last_wall_time_ns'], 2e9)

    def test_no_children(self):
        self.record(program('children'), options=['--no-children'])
        self.assertEqual(self.traces(), [])
        self.assertEqual(self.assert_sound()['total_bytes'], 1000)

    def test_exec_again_and_again(self):
        self.assertEqual(self.record(program('exec_chain'), '50').returncode, 0)
        info = analyze('info', self.trace)
        self.assertEqual((info['lost_events'], info['destroys']), (0, 50))
        self.assertGreaterEqual(info['frees'], 51 * 200)
        self.assert_sound()
        summary = subprocess.run([ANALYZER, self.trace], check=True, text=True,
                                 stdout=subprocess.PIPE).stdout
        self.assertIn(' by 52 threads of 51 programs in turn\n', summary)

    def test_confined(self):
        """No system call is made that a program which confines itself may be killed for."""
        native = subprocess.run([program('confined')]).returncode
        if native == 77:
            self.skipTest('no seccomp here')
        self.assertEqual((native, self.record(program('confined')).returncode), (0, 0))
        self.assertEqual(len(self.traces()), 1)
        for trace in (self.trace, *self.traces()):
            self.assertGreaterEqual(analyze('info', trace)['allocs'], 1000)
            self.assertIs(analyze('leaks', trace)['runtime_counted'], True)
        leaks = analyze('leaks', self.trace)
        self.assertEqual((leaks['certain'], leaks['snapshot']['reason']), (True, 'exit'))
        self.assertEqual(leaks['classes']['definitely_lost'], {'blocks': 3, 'bytes': 150})
        self.assertIn((70, 1), [(group['bytes'], group['blocks']) for group in
                                analyze('leaks', self.trace, '--show', 'reachable')['groups']])

    def test_runtimes_told(self):
        """Whether the runtimes could say what they keep, if only that it is nothing."""
        no_room = 'echo text; ulimit -v 1000'  # for what the copy would record
        for shell, script, counted in (('dash', ':', False), ('dash', 'kill -KILL $$', True),
                                       ('bash', ':', False), ('bash', no_room, True)):
            self.record(shell, '-c', script)
            self.assertIs(analyze('leaks', self.trace)['runtime_counted'], counted)

    def test_which_command(self):
        """Also of children that have ended before anybody could look."""
        true = program('leaks_c')
        long = 'a' * 3000
        script = f'for i in 1 2 3; do {true} $i "x y" & done; wait; cd /; {true} {long}; :'
        self.record('bash', '-c', script)
        found = [{item['key']: item['value'] for item in analyze('info', trace)['metadata']}
                 for trace in [self.trace, *self.traces()]]
        self.assertEqual(found[0]['command'], f'bash -c {script}')
        self.assertEqual(sorted(item['command'] for item in found[1:])[:3],
                         [f'{true} {i} x y' for i in (1, 2, 3)])
        last = max((item['command'] for item in found[1:]), key=len)
        self.assertEqual(last, f'{true} {long}'[:1024] + '…')
        self.assertEqual(sorted(item['directory'] for item in found),
                         ['/'] + 4 * [os.getcwd()])

    def test_pools(self):
        """Of Python, and of GLib as long as it had them."""
        python = ['/usr/bin/python3', '-c', 'pass']
        python_fact = "Python's small objects, unless PYTHONMALLOC=malloc"
        for command, variables, fact in ((python, {}, python_fact),
                                         (python, {'PYTHONMALLOC': 'debug'}, python_fact),
                                         (python, {'PYTHONMALLOC': 'malloc'}, None),
                                         (python, {'PYTHONMALLOC': 'malloc_debug'}, None),
                                         (['true'], {}, None)):
            self.record(*command, environment=variables)
            self.assertEqual(analyze('leaks', self.trace)['pooled'], [fact] if fact else [])
        self.record('sh', '-c', f'{" ".join(python)}; :')
        self.assertEqual([analyze('leaks', trace)['pooled']
                          for trace in [self.trace, *self.traces()]].count([python_fact]), 1)
        library = ctypes.util.find_library('glib-2.0')
        loads = f'import ctypes; print(ctypes.CDLL("{library}").glib_minor_version)'
        version = ctypes.c_uint.in_dll(ctypes.CDLL(library), 'glib_minor_version').value
        for variables in {}, {'G_SLICE': 'always-malloc'}:
            self.record('/usr/bin/python3', '-c', loads,
                        environment={'PYTHONMALLOC': 'malloc', **variables})
            has_slices = version < 76 and not variables
            self.assertEqual(analyze('leaks', self.trace)['pooled'],
                             ["GLib's slices, unless G_SLICE=always-malloc"] * has_slices)

    def test_no_file_for_a_child(self):
        """It is neither held up, nor does it write into another's trace."""
        output = './' * 2042 + 'trace.bin'  # with '.PID' it is longer than a path can be
        python = 'import json; [json.dumps(list(range(100))) for _ in range(10000)]; print("done")'
        begin = time.monotonic()
        result = subprocess.run([RECORDER, '-o', output, '--', 'sh', '-c',
                                 f"for i in 1 2; do /usr/bin/python3 -c '{python}'; done"],
                                env=dict(os.environ, PYTHONMALLOC='malloc'),
                                cwd=self.directory, capture_output=True, timeout=PATIENCE)
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual((result.returncode, result.stdout), (0, b'done\ndone\n'))
        self.assertEqual(result.stderr.count(b'File name too long'), 1)
        self.assertIn(b'warning: 2 traces are not whole', result.stderr)
        self.assertNotIn(b'child process', result.stderr)
        self.assertEqual([file.name for file in self.directory.iterdir()], ['trace.bin'])

    def test_the_same_process_id_again(self):
        """Its trace does not replace that of the first."""
        script = 'last=/proc/sys/kernel/ns_last_pid; for i in 1 2 3; do echo 99 >$last; "$@"; sleep 1.5; done'
        isolated = ['unshare', '--pid', '--fork', '--mount-proc']
        if subprocess.run([*isolated, 'sh', '-c', 'echo 99 >/proc/sys/kernel/ns_last_pid'],
                          capture_output=True).returncode != 0:
            self.skipTest('no PID namespaces here')
        subprocess.run([*isolated, RECORDER, '-q', '-o', self.trace, '--', 'bash', '-c', script,
                        'sh', program('leaks_c')], check=True, capture_output=True,
                       timeout=PATIENCE)
        traces = sorted(self.directory.glob('trace.bin.100*'))
        self.assertEqual([trace.name for trace in traces],
                         ['trace.bin.100-2.leaks_c', 'trace.bin.100-3.leaks_c', 'trace.bin.100.leaks_c'])
        for trace in traces:
            self.assertGreater(self.assert_sound(trace)['total_blocks'], 0)

    def test_the_id_of_a_process_whose_end_was_not_seen_yet(self):
        """A process that has it is not the same one, which has executed another program."""
        script = """
            recorder=$PPID
            exec 3< <(sleep 1; kill -STOP $recorder)
            sleep 0.3 # until that one has its id
            echo 99 >/proc/sys/kernel/ns_last_pid; "$1" <&3
            echo 99 >/proc/sys/kernel/ns_last_pid; "$2"
            kill -CONT $recorder"""
        isolated = ['unshare', '--pid', '--fork', '--mount-proc', 'sh', '-c', '"$@"; exit $?', 'sh']
        if subprocess.run([*isolated, 'sh', '-c', 'echo 99 >/proc/sys/kernel/ns_last_pid'],
                          capture_output=True).returncode != 0:
            self.skipTest('no PID namespaces here')
        subprocess.run([*isolated, RECORDER, '-q', '--no-snapshot', '-o', self.trace, '--', 'bash',
                        '-c', script, 'bash', program('lingering'), program('leaks_c')],
                       check=True, capture_output=True, timeout=PATIENCE)
        for name, function in ('lingering', 'lose_a_block'), ('leaks_c', 'leak_plain'):
            trace, = self.directory.glob(f'trace.bin.100*.{name}')
            leaks = self.assert_sound(trace, has_end=False)
            functions = {frame['function'] for group in leaks['groups'] for frame in group['stack']}
            self.assertIn(function, functions)

    def test_exec_in_place(self):
        self.record('env', 'A=b', program('leaks_c'))
        self.assertEqual(self.traces(), [])
        stacks = [[frame['function'] for frame in group['stack']]
                  for group in self.assert_sound()['groups']]
        self.assertIn('leak_plain', {stack[0] for stack in stacks})


class Siblings(Recording):
    SCRIPT = """
import ctypes, os, sys
for path in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        plugin = ctypes.CDLL(path)
        for i in range(10):
            plugin.allocate()
        os._exit(0)
    os.waitpid(child, 0)
"""

    def test_other_modules_at_the_same_place(self):
        """Forked children share what their parent knows of unwinding, but not of modules that each
        of them loads by itself."""
        plugins = [program('libplugin_a.so'), program('libplugin_b.so')] * 2
        result = self.record('/usr/bin/python3', '-c', self.SCRIPT, *plugins)
        self.assertEqual(result.returncode, 0, result.stderr)
        begins, found = set(), {'from_plugin_a': 0, 'from_plugin_b': 0}
        for trace in self.directory.glob('trace.bin.*'):
            begins |= {module['begin'] for module in analyze('info', trace)['module_list']
                       if 'libplugin' in module['path']}
            for group in self.assert_sound(trace)['groups']:
                functions = [frame['function'] for frame in group['stack']]
                if functions[0] in found:
                    found[functions[0]] += group['blocks']
                    self.assertEqual(functions[1], 'allocate')
                    self.assertIn('Py_RunMain', functions)
        self.assertEqual(found, {'from_plugin_a': 20, 'from_plugin_b': 20})
        self.assertEqual(len(begins), 1, 'the plugins are not at the same place')

    def test_forks_while_a_library_is_loaded(self):
        """A child has what another thread of its parent had in hand, and nobody goes on with it."""
        result = self.record(program('loads_and_forks'), program('libplugin_a.so'),
                             program('libplugin_b.so'), '300', options=['--no-snapshot'])
        self.assertEqual((result.returncode, result.stderr), (0, b''))
        traces = list(self.directory.glob('trace.bin.*'))
        self.assertEqual(len(traces), 300)
        for trace in traces[::20]:
            [group] = analyze('hot', trace)['groups']
            self.assertEqual(group['stack'][0]['function'], 'from_plugin_b')


if __name__ == "__main__":
    unittest.main()
