# SPDX-License-Identifier: MIT
"""The collector when it is stopped, when processes outlive the program, when there are very
many of them, when they lie, and when files cannot be written."""

import datetime
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import time
import unittest

from support import ANALYZER, PATIENCE, RECORDER, Recording, analyze, program


def memory_file(path):
    return int.from_bytes(path.read_bytes()[:8], 'little') if path.exists() else 0


class Collector(Recording):
    def traces(self):
        return sorted(self.directory.glob('trace.bin.*'))

    def start(self, *command, **others):
        return subprocess.Popen([RECORDER, '-q', '-o', self.trace, '--', *command], **others)

    def test_stopped(self):
        """The program waits for a while, and loses what it counts."""
        done = self.directory / 'done'
        limit = 10_000_000
        recorder = self.start(program('progress'), done, str(limit))
        deadline = time.monotonic() + PATIENCE
        while not memory_file(done) and time.monotonic() < deadline:
            time.sleep(0.001)
        recorder.send_signal(signal.SIGSTOP)
        before = memory_file(done)
        self.assertLess(before, limit)
        last, moved, longest = before, time.monotonic(), 0
        while last < limit and time.monotonic() < deadline:
            now = memory_file(done)
            if now != last:
                last, moved = now, time.monotonic()
            longest = max(longest, time.monotonic() - moved)
            time.sleep(0.001)
        recorder.send_signal(signal.SIGCONT)
        self.assertEqual(recorder.wait(PATIENCE), 0)
        self.assertGreater(longest, 1)  # that is, it did wait
        self.assertLess(longest, 30)
        info = analyze('info', self.trace)
        self.assertGreater(info['lost_events'], 0)
        self.assertGreaterEqual(info['events'] + info['lost_events'], limit)
        self.assertFalse(analyze('leaks', self.trace)['certain'])

    def test_begun_and_ended_between_two_looks(self):
        """The recorder has not let go a program that it finds when it has ended."""
        for status in 0, 3:
            result = subprocess.run(
                [os.environ['TTDRECORD_BOUNDED'], '-q', '--snapshot-at-exit=none', '-o', self.trace,
                 '--', 'sh', '-c', f'exit {status}'], env={**os.environ, 'REAP_LATE': '1'},
                timeout=PATIENCE, stderr=subprocess.PIPE)
            self.assertEqual((result.returncode, result.stderr), (status, b''))
            info = analyze('info', self.trace)
            self.assertEqual((info['end_reason'], info['end_code']), ('exited', status))
            self.assert_sound()

    def test_stopped_together(self):
        """A program that waits, and is stopped for long, has not waited for so long."""
        done, limit = self.directory / 'done', 3_000_000
        recorder = self.start(program('progress'), done, str(limit))
        deadline = time.monotonic() + PATIENCE
        while not memory_file(done) and time.monotonic() < deadline:
            time.sleep(0.001)
        recorder.send_signal(signal.SIGSTOP)
        children = pathlib.Path(f'/proc/{recorder.pid}/task/{recorder.pid}/children').read_text()
        pid = next(int(child) for child in children.split()
                   if pathlib.Path(f'/proc/{child}/comm').read_text() == 'progress\n')
        before = -1
        while memory_file(done) != before:
            before = memory_file(done)
            time.sleep(0.2)
        self.assertLess(before, limit)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(6)
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.3)
        recorder.send_signal(signal.SIGCONT)
        self.assertEqual(recorder.wait(PATIENCE), 0)
        info = analyze('info', self.trace)
        self.assertEqual((info['lost_events'], info['events']), (0, limit))
        self.assert_sound()

    def test_daemon_that_allocates_late(self):
        begin = time.monotonic()
        self.assertEqual(self.record(program('daemon')).returncode, 0)
        self.assertGreater(time.monotonic() - begin, 4)
        trace, = self.traces()
        self.assertIn(4321, [group['bytes'] for group in analyze('leaks', trace)['groups']])

    def test_daemon_that_is_waited_for(self):
        result = subprocess.run([RECORDER, '-o', self.trace, '--', program('daemon')],
                                capture_output=True, timeout=PATIENCE)
        self.assertIn(b'waiting for a process that the program has started', result.stderr)
        result = subprocess.run(
            [RECORDER, '-o', self.trace, '--', 'sh', '-c', 'sleep 2.5 </dev/null & exit 0'],
            capture_output=True, timeout=PATIENCE)
        self.assertRegex(result.stderr, rb'waiting for 1 process \(\d+ sleep\);')
        self.assertEqual(result.stderr.count(b'waiting'), 1)
        result = subprocess.run([RECORDER, '-o', self.trace, '--', 'true'], capture_output=True,
                                timeout=PATIENCE)
        self.assertNotIn(b'waiting', result.stderr)

    def test_process_with_most_live_blocks(self):
        """The summary names it, if it is not the first one."""
        leaving = "exec perl -e 'my @kept = map { [$_] } 1 .. 30000; use POSIX; POSIX::_exit(0)'"
        summary = [RECORDER, '-o', self.trace, '--', 'sh', '-c']
        result = subprocess.run([*summary, f'perl -e 1; ({leaving}); perl -e 1; exit 0'],
                                capture_output=True, text=True, timeout=PATIENCE)
        left, path = re.search(r"left by another process, ([\d,]+): see 'ttdanalyze leaks (.*)'",
                               result.stderr).groups()
        self.assertGreater(int(left.replace(',', '')), 30000)
        self.assertGreater(analyze('leaks', path)['total_blocks'], 30000)
        family = f"see 'ttdanalyze leaks --group {self.trace}'"
        self.assertIn(family, result.stderr)
        result = subprocess.run([*summary, f'(perl -e 1); {leaving}'], capture_output=True,
                                text=True, timeout=PATIENCE)
        self.assertNotIn('left by another process', result.stderr)
        self.assertIn(family, result.stderr)
        result = subprocess.run([*summary, 'true'], capture_output=True, text=True,
                                timeout=PATIENCE)
        self.assertNotIn('--group', result.stderr)

    def test_daemon_that_executes_late(self):
        self.assertEqual(self.record(program('daemon'), program('leaks_c')).returncode, 0)
        trace, = self.traces()
        stacks = [[frame['function'] for frame in group['stack']]
                  for group in self.assert_sound(trace)['groups']]
        self.assertIn('leak_plain', {stack[0] for stack in stacks})

    def test_daemon_that_is_let_go(self):
        """It is not recorded, and that is said."""
        with self.start(program('daemon'), stderr=subprocess.PIPE) as recorder:
            time.sleep(1.5)
            recorder.send_signal(signal.SIGINT)
            _, errors = recorder.communicate(timeout=PATIENCE)
        self.assertEqual(recorder.returncode, 0)
        self.assertIn(b'processes of the program go on', errors)
        self.assertEqual(self.traces(), [])

    def test_no_daemon_of_no_children(self):
        begin = time.monotonic()
        self.record(program('daemon'), options=['--no-children'])
        self.assertLess(time.monotonic() - begin, 4)

    def test_somebody_looks_at_the_channel(self):
        """A process that opens it while the recorder looks for openers harms neither."""
        result = self.record(program('leaks_c'), environment={'LD_PRELOAD': os.environ['LOOKER']})
        self.assertEqual((result.returncode, result.stderr), (0, b''))
        self.assert_sound()

    def test_a_crowd(self):
        count = 2000
        result = self.record(program('crowd'), str(count))
        self.assertEqual(result.returncode, 0)
        self.assertEqual(len(self.traces()), count - 1)
        self.assert_late_are_counted(result)
        for trace in self.traces()[::199]:
            self.assertIn(1234, [group['bytes'] for group in analyze('leaks', trace)['groups']])

    def test_a_crowd_and_few_descriptors(self):
        """More processes live at once than the recorder may have files open."""
        count = 1500

        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))

        result = self.record(program('crowd'), str(count), preexec_fn=limit)
        self.assertEqual(result.returncode, 0)
        self.assertEqual(len(self.traces()), count - 1)
        self.assert_late_are_counted(result)
        for trace in self.traces()[::99]:
            info = analyze('info', trace)
            self.assertTrue(info['closed'])
            self.assertEqual((info['allocs'], info['lost_events']), (1, 0))

    def test_a_crowd_for_which_there_is_no_room(self):
        """Where there is no room for a process, it waits until there is."""
        result = self.record(program('crowd'), '8', 'full')
        self.assertEqual((result.returncode, result.stderr), (0, b''))
        self.assertEqual(len(self.traces()), 8)
        late, = [trace for trace in self.traces() if result.stdout.decode().strip() in trace.name]
        self.assertIn(1234, [group['bytes'] for group in analyze('leaks', late)['groups']])

    def test_descriptors(self):
        """Of children that have ended none stay open."""
        copies = [shutil.copy(program('leaks_c'), self.directory / f'copy-{i}') for i in range(20)]
        script = 'echo begun; read line; for copy; do "$copy" >/dev/null; done; echo ran; read line'
        with self.start('bash', '-c', script, 'bash', *copies, stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE, bufsize=0) as recorder:
            files = pathlib.Path(f'/proc/{recorder.pid}/fd')
            recorder.stdout.readline()
            time.sleep(0.2)
            before = len(list(files.iterdir()))
            recorder.stdin.write(b'\n')
            recorder.stdout.readline()
            deadline = time.monotonic() + min(PATIENCE, 20)
            while len(list(files.iterdir())) > before + 3 and time.monotonic() < deadline:
                time.sleep(0.05)
            after = len(list(files.iterdir()))
            recorder.stdin.write(b'\n')
        self.assertLessEqual(after, before + 3)
        self.assertEqual(len(self.traces()), 20)
        for trace in self.traces():
            self.assert_sound(trace)

    def test_impostors(self):
        """Claims of processes that are not ours; of none; of ttdrecord and of what it has started."""
        bystander = subprocess.Popen(['sleep', '1000'])
        self.addCleanup(bystander.wait)
        self.addCleanup(bystander.kill)
        time.sleep(0.1)  # when a process began is known to a hundredth of a second
        ids = ['1', '0', '0xffffffff', '0x80000000', str(bystander.pid), str(os.getpid())]
        script = f'exec {program("impostor")} {" ".join(ids)} $PPID'
        result = self.record('sh', '-c', script)
        self.assertEqual(result.returncode, 0)
        self.assertIn(b'28 child processes could not be recorded', result.stderr)
        self.assertEqual(self.traces(), [])
        info = analyze('info', self.trace)
        self.assertTrue(info['closed'])
        self.assertGreaterEqual(min(info['allocs'], info['frees']), 1000)

    def test_times_that_cannot_be(self):
        """Of processes that have ended, as far as anybody can tell: forks, each one of its own."""
        ended = subprocess.Popen(['true'])
        ended.wait()
        self.assertEqual(self.record(program('impostor'), str(ended.pid)).returncode, 0)
        traces = [self.trace, *self.traces()]
        self.assertEqual(len(traces), 1 + 4)
        begin = [analyze('info', trace)['trace']['start_time'] for trace in traces]
        times = [datetime.datetime.strptime(time, '%Y-%m-%dT%H:%M:%SZ') for time in begin]
        self.assertLess((max(times) - min(times)).total_seconds(), 60)
        for trace in traces:
            self.assertTrue(analyze('info', trace)['closed'])

    def test_a_full_disk(self):
        """One message, however many traces cannot be written."""
        script = (f'echo begun; read line; for i in 1 2 3 4 5 6 7 8; do {program("leaks_c")} '
                  '>/dev/null; done; :')
        with self.start('bash', '-c', script, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE, bufsize=0) as recorder:
            recorder.stdout.readline()
            resource.prlimit(recorder.pid, resource.RLIMIT_FSIZE, (4096, 4096))
            _, errors = recorder.communicate(b'\n', timeout=PATIENCE)
        self.assertEqual(recorder.returncode, 122)
        self.assertEqual(errors.count(b'File too large'), 1, errors)
        self.assertIn(b'warning: 9 traces are not whole', errors)

    def test_counts_of_a_full_disk(self):
        """The calls that the summary counts are in the file, and the rest is lost. A program's own
        failure is passed on."""
        script = ('import json, os, resource, sys; [str(i) for i in range(1000)]; '
                  'resource.prlimit(os.getppid(), resource.RLIMIT_FSIZE, (400000, 400000)); '
                  '[json.dumps(list(range(100))) for _ in range(8000)]; sys.exit(int(sys.argv[1]))')
        for status in 0, 3:
            result = subprocess.run(
                [RECORDER, '--no-snapshot', '-o', self.trace, '--', '/usr/bin/python3', '-c', script,
                 str(status)],
                capture_output=True, text=True, timeout=PATIENCE,
                env=dict(os.environ, PYTHONMALLOC='malloc'))
            self.assertEqual(result.returncode, status or 122, result.stderr)
            numbers = re.search(r'([\d,]+) events \(([\d,]+) allocations, ([\d,]+) frees\), '
                                r'([\d,]+) lost;', result.stderr)
            events, allocations, frees, lost = (int(number.replace(',', ''))
                                                for number in numbers.groups())
            info = analyze('info', self.trace)
            self.assertEqual((info['events'], info['frees']), (events, frees))
            self.assertGreater(min(events, allocations, frees, lost), 100)
            self.assertGreater(events + lost, 300000)

    def test_first_answers(self):
        """Where the analyzer is beside the recorder, the summary has errors, leaks and the peak."""
        beside = self.directory / 'bin'
        shutil.copytree(pathlib.Path(RECORDER).parent / 'preload', beside / 'preload',
                        ignore=lambda _, names: [name for name in names
                                                 if not name.endswith('.so')])
        shutil.copy(RECORDER, beside)
        analyzer = beside / 'ttdanalyze'
        command = [beside / 'ttdrecord', '-o', self.trace, '--', program('leaks_c')]
        native = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        self.assertNotRegex(native.stderr, r'(?m)^(peak|leaks) ')
        self.assertIn(f"ttdrecord: or 'ttdanalyze report -o report.html {self.trace}'", native.stderr)
        analyzer.symlink_to(ANALYZER)
        result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((result.stdout, result.returncode), (native.stdout, native.returncode))
        said = subprocess.run([ANALYZER, 'summary', '--brief', self.trace], capture_output=True,
                              text=True, timeout=PATIENCE).stdout
        self.assertRegex(said, r'(?m)^leaks .* definitely lost, \d+ % by ')
        self.assertRegex(said, r'(?m)^peak .*, \d+ % by ')
        self.assertIn(said, result.stderr)
        self.assertNotIn(said, self.record('-q', program('leaks_c')).stderr.decode())
        # An analyzer that takes too long is ended.
        analyzer.unlink()
        analyzer.write_text('#!/bin/sh\nwhile :; do :; done\n')
        analyzer.chmod(0o755)
        result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, native.returncode)
        self.assertIn("ttdanalyze report", result.stderr)

    def test_memory_that_is_no_heap(self):
        """The trace has samples of the whole memory of the process; the last one is of its end."""
        size = 64 << 20
        script = (f"import mmap; memory = mmap.mmap(-1, {size})\n"
                  f"for page in range(0, {size}, 4096): memory[page] = 1\n"
                  "memory.close()")
        self.assertEqual(self.record('/usr/bin/python3', '-c', script).returncode, 0)
        found = analyze('summary', self.trace)
        self.assertGreater(found['resident_bytes'], size)
        self.assertGreater(found['mapped_bytes'], 0)
        self.assertLess(found['peak']['bytes'], size)
        self.assertEqual(analyze('info', self.trace)['user_events'], 0)

    def test_nested(self):
        inner = self.directory / 'inner.bin'
        result = self.record(RECORDER, '-o', inner, '--', 'true')
        self.assertEqual(result.returncode, 125)
        self.assertIn(b'recordings cannot be nested', result.stderr)
        self.assertFalse(inner.exists())


if __name__ == '__main__':
    unittest.main()
