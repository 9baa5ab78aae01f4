# SPDX-License-Identifier: MIT
"""Names that are added to a trace whose recorder was killed; from servers; and wrong usage."""

import gzip
import http.server
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest

from later import EXIT_OUTPUT, EXIT_RECORDER, LIBRARY, Later, build_id
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


class HostileServer(Later):
    """Whatever a server answers: the command ends, its trace is sound, and no name is wrong."""

    def setUp(self):
        super().setUp()
        if not shutil.which('debuginfod'): # its library comes with it
            self.skipTest('debuginfod is not installed')
        self.roots, self.library = self.record_roots()
        self.roots.unlink()
        self.files = {build_id(self.kept / path.name): self.kept / path.name
                      for path in (self.roots, self.library)}
        self.asked = 0

    def serve(self, answer):
        """Answers each question about a file that is known by a call of the function."""
        test = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                test.asked += 1
                file = test.files.get(self.path.split('/')[2])
                try:
                    if file is None:
                        self.send_error(404)
                    else:
                        answer(self, file)
                except (BrokenPipeError, ConnectionResetError):
                    pass

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        server.daemon_threads = True
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f'http://127.0.0.1:{server.server_address[1]}'

    def answer(self, answer, **changes):
        """The output of the command; the trace that it made has been verified."""
        address = self.serve(answer)
        shutil.rmtree(self.directory / 'cache', ignore_errors=True)
        text = self.to_result(DEBUGINFOD_URLS=address, **changes)
        self.assertGreater(self.asked, 0)
        self.assertNotRegex(text, r'[\x00-\x09\x0b-\x1f]')
        self.assert_sound(self.result)
        return text

    @staticmethod
    def send(handler, body, length=None, **headers):
        handler.send_response(200)
        for name, value in headers.items():
            handler.send_header(name.replace('_', '-'), value)
        handler.send_header('Content-Length', str(len(body) if length is None else length))
        handler.end_headers()
        handler.wfile.write(body)

    def test_the_file_of_another_build(self):
        """Alike but for its build-id: its names may be others."""
        def rebuild(handler, file):
            number = bytes.fromhex(build_id(file))
            content = file.read_bytes()
            self.assertEqual(content.count(number), 1)
            self.send(handler, content.replace(number, bytes(reversed(number))))
        self.assertIn('without names', self.answer(rebuild))
        self.assert_unnamed(self.result)

    def test_files_cut_short_and_damaged(self):
        def damage(handler, file):
            content = bytearray(file.read_bytes())
            half = len(content) // 2
            content[half:] = bytes(random ^ 0x5A for random in content[half:])
            self.send(handler, bytes(content))
        for answer in (lambda handler, file: self.send(handler, b''),
                       lambda handler, file: self.send(handler, file.read_bytes()[:1000]),
                       lambda handler, file: self.send(handler, file.read_bytes()[:1000], 1 << 40),
                       lambda handler, file: self.send(handler, b'<html>no such file</html>'),
                       lambda handler, file: self.send(handler, b'\x7fELF' + bytes(10000)),
                       damage):
            self.answer(answer)
            self.assert_no_wrong_name()

    def assert_no_wrong_name(self):
        known = {function for path in self.files.values() for function in
                 subprocess.check_output(['nm', '--format=just-symbols', path], text=True).split()}
        for size in (1005, 1007):
            for frame in self.stack(self.result, size):
                if pathlib.Path(frame['module']).parent == self.directory:
                    self.assertIn(frame['function'], known | {None})

    def test_answers_without_end(self):
        def drip(handler, _):
            handler.send_response(200)
            handler.end_headers()
            for _ in range(PATIENCE):
                handler.wfile.write(b'\x7f')
                time.sleep(1)
        text = self.answer(drip, DEBUGINFOD_TIMEOUT='1', DEBUGINFOD_MAXTIME='1',
                           DEBUGINFOD_RETRY_LIMIT='0')
        self.assertIn('without names', text)

    def test_a_header_of_many_megabytes(self):
        def flood(handler, _):
            handler.send_response(200)
            for _ in range(100):
                handler.wfile.write(b'X-Debuginfod-Size: ' + b'9' * 1_000_000 + b'\r\n')
            handler.end_headers()
        self.answer(flood)

    def test_redirections(self):
        def to_itself(handler, _):
            handler.send_response(302)
            handler.send_header('Location', handler.path)
            handler.end_headers()

        def to_a_file(handler, file):
            handler.send_response(302)
            handler.send_header('Location', f'file://{file}')
            handler.end_headers()
        self.assertIn('without names', self.answer(to_itself))
        self.assertIn('without names', self.answer(to_a_file))

    def test_a_compressed_answer_that_never_ends(self):
        bomb = gzip.compress(bytes(200 << 20))
        self.answer(lambda handler, _: self.send(handler, bomb, Content_Encoding='gzip'))

    def test_a_right_answer(self):
        """The other tests would pass if this server were never understood."""
        self.answer(lambda handler, file: self.send(handler, file.read_bytes()))
        self.assert_named(self.result)


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
