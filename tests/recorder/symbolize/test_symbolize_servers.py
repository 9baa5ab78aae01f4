# SPDX-License-Identifier: MIT
"""Names that are added to a trace whose recorder was killed; from servers; and wrong usage."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import unittest

from later import EXIT_OUTPUT, EXIT_RECORDER, LIBRARY, Later
from support import ANALYZER, PATIENCE, RECORDER, analyze


class KilledRecorder(Later):
    def start(self):
        self.strip('sleeper')
        recorder = subprocess.Popen([RECORDER, '-q', '-o', str(self.trace),
                                     str(self.directory / 'sleeper')],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(recorder.wait, PATIENCE)
        self.addCleanup(recorder.stdout.close)
        self.addCleanup(recorder.stdin.close)
        self.addCleanup(recorder.kill)
        self.assertEqual(recorder.stdout.readline(), b'sleeping\n')
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and ' sleeper+0x' not in self.leaks(self.trace):
            time.sleep(0.05)
        self.install('sleeper')
        return recorder

    def leaks(self, trace):
        return subprocess.run([ANALYZER, 'leaks', '--show', 'all', str(trace)],
                              capture_output=True, text=True, timeout=PATIENCE).stdout

    def test_its_trace_gets_names_and_stays_uncertain(self):
        recorder = self.start()
        os.kill(recorder.pid, signal.SIGKILL)
        recorder.wait(PATIENCE)
        before = analyze('leaks', self.trace)
        self.assertNotIn('sleeper.c', self.leaks(self.trace))
        text = self.symbolize(self.trace)
        self.assertIn('was not closed', text)
        after = analyze('leaks', self.trace)
        self.assertIn('main (', self.leaks(self.trace))
        self.assertIn('sleeper.c', self.leaks(self.trace))
        self.assertFalse(before['certain'])
        self.assertFalse(after['certain'])
        self.assertEqual(after['total_blocks'], before['total_blocks'])
        self.assertTrue(analyze('verify', self.trace)['ok'])
        self.assertTrue(analyze('info', self.trace)['trace']['recovered'])

    def test_a_trace_that_is_being_recorded_is_not_replaced(self):
        self.start()
        before = self.trace.stat().st_ino
        text = self.symbolize(self.trace, status=EXIT_RECORDER)
        self.assertIn('use -o', text)
        self.assertEqual(self.trace.stat().st_ino, before)
        self.to_result()
        self.assertIn('sleeper.c', self.leaks(self.result))


class Servers(Later):
    def serve(self):
        """A debuginfod server for the kept files."""
        if not shutil.which('debuginfod'):
            self.skipTest('debuginfod is not installed')
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            port = free.getsockname()[1]
        server = subprocess.Popen(['debuginfod', '-p', str(port), '-d', ':memory:', '-F',
                                   str(self.kept)], cwd=self.directory,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait, PATIENCE)
        self.addCleanup(server.terminate)
        return f'http://127.0.0.1:{port}', server

    def test_a_server_has_the_names(self):
        roots, _ = self.record_roots()
        roots.unlink() # the other module's own file is there
        address, server = self.serve()
        # The server reads its files before it knows them.
        deadline = time.monotonic() + PATIENCE
        text = 'without names'
        while 'without names' in text and time.monotonic() < deadline:
            self.assertIsNone(server.poll())
            shutil.rmtree(self.directory / 'cache', ignore_errors=True)
            text = self.to_result(DEBUGINFOD_URLS=address)
            time.sleep(0.2)
        self.assertNotIn('without names', text)
        self.assert_named(self.result)
        self.assert_sound(self.result)

    def test_a_server_that_does_not_know_them_is_no_failure(self):
        roots, _ = self.record_roots()
        for name in ('roots', LIBRARY):
            (self.kept / name).unlink()
        address, _ = self.serve()
        roots.unlink()
        text = self.to_result(DEBUGINFOD_URLS=address)
        self.assertIn(f'{roots}: ', text)
        self.assertIn('no file has its build-id', text)

    def test_nobody_is_asked_unless_a_server_is_named(self):
        self.record_roots()
        with socket.create_server(('127.0.0.1', 0)) as listener:
            listener.settimeout(0)
            self.to_result()
            with self.assertRaises(BlockingIOError):
                listener.accept()

    def test_an_interrupt_leaves_the_trace_as_it_was(self):
        self.record_roots()
        before = self.trace.read_bytes()
        files = sorted(self.directory.iterdir())
        with socket.create_server(('127.0.0.1', 0)) as silent:
            silent.settimeout(PATIENCE)
            address = f'http://127.0.0.1:{silent.getsockname()[1]}'
            command = subprocess.Popen([RECORDER, 'symbolize', str(self.trace)],
                                       env=self.environment(DEBUGINFOD_URLS=address))
            connection, _ = silent.accept()
            command.terminate()
            self.assertEqual(command.wait(PATIENCE), -signal.SIGTERM)
            connection.close()
        shutil.rmtree(self.directory / 'cache', ignore_errors=True)
        self.assertEqual(sorted(self.directory.iterdir()), files)
        self.assertEqual(self.trace.read_bytes(), before)


class CommandLine(Later):
    def test_a_file_that_is_no_trace_is_refused(self):
        self.trace.write_bytes(b'no trace')
        self.result.write_bytes(b'old')
        text = self.to_result(status=EXIT_RECORDER)
        self.assertIn(str(self.trace), text)
        self.assertEqual(self.result.read_bytes(), b'old')

    def test_an_output_that_cannot_be_written_is_told(self):
        self.record_roots()
        self.symbolize('-o', self.directory / 'nowhere' / 'x', self.trace, status=EXIT_OUTPUT)
        self.symbolize('-o', self.directory, self.trace, status=EXIT_OUTPUT)

    def test_a_device_that_is_full(self):
        self.record_roots()
        text = self.symbolize('-o', '/dev/full', self.trace, status=EXIT_OUTPUT)
        self.assertIn('No space left', text)

    def test_wrong_usage(self):
        self.symbolize(status=EXIT_RECORDER)
        self.symbolize('one', 'two', status=EXIT_RECORDER)
        self.symbolize('--unknown', 'one', status=EXIT_RECORDER)
        self.symbolize(self.directory / 'nowhere', status=EXIT_RECORDER)

    def test_the_index_of_a_trace_gets_no_names(self):
        self.record_roots()
        subprocess.run([ANALYZER, 'index', str(self.trace)], check=True, capture_output=True)
        index = pathlib.Path(str(self.trace) + '.idx')
        before = index.read_bytes()
        self.assertIn('derived', self.symbolize(index, status=EXIT_RECORDER))
        self.assertEqual(index.read_bytes(), before)


if __name__ == '__main__':
    unittest.main()
