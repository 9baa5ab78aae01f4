# SPDX-License-Identifier: MIT
"""ttdrecord as its users see it: what passes through, what is recorded, what is refused."""

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
        """The messages; the recorder must end although its helper does not go on."""
        recorder = subprocess.Popen([RECORDER, '-q', '-o', self.trace, '--', 'sleep', '1'],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        helper = self.find_helper(recorder)
        os.kill(helper, signal.SIGSTOP)
        time.sleep(3)
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
        with subprocess.Popen([RECORDER, '-q', '-o', self.trace, '--', 'sleep', '2'],
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
            time.sleep(3)
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

    def test_static_and_stripped(self):
        path = self.directory / 'stripped'
        subprocess.run(['strip', '-o', path, program('static')], check=True)
        self.refuse(124, 'statically linked and stripped', str(path))

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

    def test_a_reallocation_that_takes_long(self):
        """Its end is waited for, though the channel is full of what comes behind it."""
        result = self.record(program('held_up'))
        self.assertEqual((result.returncode, result.stdout), (0, b'held\n'), result.stderr)
        self.assertEqual(analyze('info', self.trace)['lost_events'], 0)
        self.assertEqual(analyze('errors', self.trace)['total_findings'], 0)

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


if __name__ == "__main__":
    unittest.main()
