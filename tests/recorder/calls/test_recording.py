# SPDX-License-Identifier: MIT
"""ttdrecord as its users see it: what passes through, what is recorded, what is refused."""

import datetime
import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

from support import PATIENCE, RECORDER, Recording, analyze, program


class PassingThrough(Recording):
    def test_output_and_status(self):
        result = self.record('sh', '-c', 'echo out; echo err >&2; exit 42')
        self.assertEqual((result.returncode, result.stdout, result.stderr), (42, b'out\n', b'err\n'))
        info = analyze('info', self.trace)
        self.assertEqual((info['end_reason'], info['closed']), ('exited', True))

    def test_input(self):
        result = self.record('cat', input=b'through\n')
        self.assertEqual(result.stdout, b'through\n')

    def test_unflushed_output_comes_once(self):
        result = self.record('/usr/bin/python3', '-c', 'import sys; sys.stdout.write("once")')
        self.assertEqual(result.stdout, b'once')

    def test_death_by_signal(self):
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM):
            result = self.record('sh', '-c', f'kill -{int(number)} $$')
            self.assertEqual(result.returncode, -number)
            self.assertEqual(analyze('info', self.trace)['end_reason'], 'killed')

    def test_signal_to_the_recorder_reaches_the_program(self):
        script = 'trap "echo caught; exit 5" TERM; echo ready; while :; do sleep 0.1; done'
        with subprocess.Popen([RECORDER, '-q', '-o', self.trace, 'sh', '-c', script],
                              stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            process.terminate()
            self.assertEqual(process.stdout.read(), b'caught\n')
            self.assertEqual(process.wait(PATIENCE), 5)

    @staticmethod
    def names_of_children(pid):
        """By process id, the oldest first."""
        children = pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text().split()
        return {int(child): pathlib.Path(f'/proc/{child}/comm').read_text().strip()
                for child in children}

    def find_helper(self, recorder):
        """The process that reads debug information."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                names = self.names_of_children(recorder.pid)
            except OSError:
                continue
            # Before it is one with another name, the program is named like its parent, too. While
            # processes come and go, the list may lack some.
            helpers = [pid for pid, name in names.items() if name == 'ttdrecord']
            if 'sleep' in names.values() and helpers:
                return helpers[0]
        return self.fail('no helper')

    def interrupt_naming(self):
        """What was said; the recorder must end although its helper does not go on."""
        recorder = subprocess.Popen([RECORDER, '-q', '-o', self.trace, '--', 'sleep', '0.2'],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        helper = self.find_helper(recorder)
        os.kill(helper, signal.SIGSTOP)
        time.sleep(0.7)
        begin = time.monotonic()
        recorder.send_signal(signal.SIGINT)
        _, errors = recorder.communicate(timeout=PATIENCE)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertEqual(recorder.returncode, 0)
        self.assertFalse(pathlib.Path(f'/proc/{helper}').exists())
        self.assert_sound()
        return errors

    def test_interrupt_while_names_are_looked_up(self):
        """The trace is whole, but for names."""
        errors = self.interrupt_naming()
        self.assertIn(b'not all addresses have names: Interrupted', errors)

    @unittest.skipIf(os.geteuid() != 0, 'only root may look at it')
    def test_the_helper_has_no_part_in_recording(self):
        """It reads what nobody trusts: shared memory is not there."""
        with subprocess.Popen([RECORDER, '-q', '-o', self.trace, '--', 'sleep', '0.5'],
                              stdout=subprocess.PIPE) as recorder:
            helper = self.find_helper(recorder)
            maps = pathlib.Path(f'/proc/{helper}/maps').read_text()
            recorder.communicate(timeout=PATIENCE)
        self.assertIn('libdw', maps)
        self.assertEqual([line for line in maps.splitlines() if line.split()[1][3] == 's'], [])

    def test_names_are_looked_up_meanwhile(self):
        """A file that is gone when the program ends."""
        copy = shutil.copy(program('lingering'), self.directory)
        with subprocess.Popen([RECORDER, '-q', '-o', self.trace, copy], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as recorder:
            self.assertEqual(recorder.stdout.readline(), b'allocated\n')
            time.sleep(1)
            os.unlink(copy)
            recorder.communicate(timeout=PATIENCE)
        functions = {frame['function'] for group in self.assert_sound()['groups']
                     for frame in group['stack']}
        self.assertIn('lose_a_block', functions)

    def test_private(self):
        self.record('true')
        self.assertEqual(self.trace.stat().st_mode & 0o777, 0o600)

    def test_no_descriptor_leaks_in(self):
        command = ('sh', '-c', 'ls /proc/self/fd | wc -l')
        self.assertEqual(self.record(*command).stdout, subprocess.check_output(command))


class RealPrograms(Recording):
    """They print the same, and end the same, as without us."""

    COMMANDS = {
        'curl': ['--version'],
        'gdb': ['-batch', '-ex', 'print 6 * 7'],
        'git': ['-C', str(pathlib.Path(__file__).parent), 'log', '-1'],
        'gcc': ['-E', '-xc', '/dev/null'],
        'perl': ['-e', 'print join ",", sort { $a <=> $b } map { $_ * 7 % 100 } 1..50'],
        'python3': ['-c', 'import threading, json; print(json.dumps([1, 2]))'],
        'sqlite3': [':memory:', 'select hex(zeroblob(20))'],
        'tar': ['-cf', '-', '/etc/hostname'],
    }

    def test_all(self):
        for name, arguments in self.COMMANDS.items():
            path = shutil.which(name)
            if path is None:
                continue
            with self.subTest(name):
                native = subprocess.run([path, *arguments], capture_output=True, timeout=PATIENCE)
                recorded = self.record(path, *arguments)
                self.assertEqual((recorded.returncode, recorded.stdout, recorded.stderr),
                                 (native.returncode, native.stdout, native.stderr))
                self.assert_sound()


class Refusals(Recording):
    def refuse(self, status, text, *command, output=None):
        self.trace = output or self.trace
        result = self.record(*command)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertIn(text, result.stderr.decode())
        self.assertFalse(self.trace.exists())

    def test_missing(self):
        self.refuse(127, 'cannot find', 'no-such-program')
        self.refuse(127, 'cannot find', '/no/such/program')

    def test_not_executable(self):
        self.refuse(126, 'cannot run', '/etc/passwd')
        self.refuse(126, 'cannot run', '/tmp')

    def test_static(self):
        self.refuse(124, 'statically linked', program('static'))

    def test_setuid(self):
        copy = self.directory / 'setuid'
        copy.write_bytes(pathlib.Path('/bin/true').read_bytes())
        copy.chmod(0o4755)
        self.refuse(123, 'setuid', str(copy))

    def test_unwritable(self):
        self.refuse(122, 'No such file', 'true', output=self.directory / 'none' / 'trace.bin')

    def test_usage(self):
        result = subprocess.run([RECORDER, '--wrong'], capture_output=True)
        self.assertEqual(result.returncode, 125)
        result = subprocess.run([RECORDER], capture_output=True)
        self.assertEqual(result.returncode, 125)

    def test_disk_full(self):
        result = subprocess.run([RECORDER, '-o', '/dev/full', program('leaks_c')],
                                capture_output=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, 122)
        self.assertIn(b'No space left', result.stderr)
        self.assertTrue(pathlib.Path('/dev/full').is_char_device())


class Calls(Recording):
    def test_every_api(self):
        self.assertEqual(self.record(program('every_api')).returncode, 0)
        leaks = self.assert_sound()
        self.assertEqual((leaks['total_blocks'], leaks['groups']), (0, []))
        events = [event for event in analyze('events', self.trace, '--parameters')]
        seen = {event['api'] for event in events}
        expected = {'malloc', 'calloc', 'realloc', 'reallocarray', 'free', 'memalign',
                    'posix_memalign', 'aligned_alloc', 'valloc', 'pvalloc', 'free_sized',
                    'free_aligned_sized', 'cfree'}
        self.assertEqual(expected - seen, set())
        news = [event for event in events if event['action'] == 'Alloc' and
                event['api'].startswith('operator new') and event['result'] != 0]
        self.assertEqual([event['size'] for event in news],
                         [*range(201, 207), *range(301, 307)])
        deletes = [event for event in events if event['api'].startswith('operator delete')]
        self.assertEqual(len(deletes), 12)
        self.assertEqual(len({event['api'] for event in deletes}), 12)
        self.assertEqual([event['base_address'] for event in deletes],
                         [event['address'] for event in news])
        calloc = next(event for event in events if event['api'] == 'calloc' and
                      event['size'] == 102)
        self.assertEqual([int(value, 0) for value in calloc['parameters']], [3, 34])

    def test_failures(self):
        self.record(program('every_api'))
        events = analyze('events', self.trace)
        failed = [event['api'] for event in events if event['result'] == 0]
        self.assertEqual(failed, ['malloc', 'calloc', 'realloc', 'posix_memalign', 'operator new'])
        freed = [event for event in events if event['action'] == 'ReAlloc' and
                 event['size'] == 0]
        self.assertEqual([(event['result'], event['address']) for event in freed], [(1, '0x0')])

    def test_a_call_that_never_returns(self):
        self.assertEqual(self.record(program('double_free')).returncode, -signal.SIGABRT)
        last = [event for event in analyze('events', self.trace) if event['action'] == 'Free'][-2:]
        self.assertEqual(last[0]['base_address'], last[1]['base_address'])
        self.assertIsNotNone(last[0]['time_end'])
        self.assertIsNone(last[1]['time_end'])

    def test_plugins(self):
        self.assertEqual(self.record(program('plugin'), program('libplugin_a.so'),
                                     program('libplugin_b.so')).returncode, 0)
        groups = {group['bytes'] // group['blocks']: [frame['function'] for frame in group['stack']]
                  for group in analyze('leaks', self.trace, '--limit', '0')['groups']}
        self.assert_sound()
        self.assertEqual(groups[111][0], 'from_plugin_a')
        self.assertEqual(groups[222][0], 'from_plugin_b')
        modules = analyze('info', self.trace)['module_list']
        loads = [module for module in modules if module['path'].endswith('libplugin_a.so')]
        self.assertEqual(len(loads), 20)
        self.assertTrue(all(module['unloaded'] for module in loads))


class Loading(Recording):
    def test_fork_after_an_unseen_unloading(self):
        result = self.record(program('unloaded_fork'))
        if result.returncode == 77:
            self.skipTest('no converter that is a module')
        self.assertEqual(result.returncode, 0)

    def test_operators_under_the_loaders_lock(self):
        result = self.record(program('plugin_host'), program('libplugin_threads.so'))
        self.assertEqual(result.returncode, 0)
        self.assert_sound()


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
        """What a thread has begun to fill does not count as waiting to be collected."""
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
        limit = 5_000_000
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
        self.assertLess(infos[1]['last_wall_time_ns'], 1e9)

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
        script = 'last=/proc/sys/kernel/ns_last_pid; for i in 1 2 3; do echo 99 >$last; "$@"; sleep 0.5; done'
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

    def test_exec_in_place(self):
        self.record('env', 'A=b', program('leaks_c'))
        self.assertEqual(self.traces(), [])
        stacks = [[frame['function'] for frame in group['stack']]
                  for group in self.assert_sound()['groups']]
        self.assertIn('leak_plain', {stack[0] for stack in stacks})


if __name__ == '__main__':
    unittest.main()
