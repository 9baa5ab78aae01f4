# SPDX-License-Identifier: MIT
"""Where outputs go: only regular files are replaced, by any program. Nothing here is written outside
of the test's own directory, where links stand for those in /dev."""

import os
import pathlib
import stat
import subprocess
import threading
import time
import unittest

from support import ANALYZER, PATIENCE, RECORDER, Recording, analyze, program


class Outputs(Recording):
    def setUp(self):
        super().setUp()
        self.standard = self.directory / 'stdout'
        self.standard.symlink_to('/proc/self/fd/1')
        self.target = self.directory / 'target'

    def record_to(self, output, *command, **others):
        return subprocess.run([RECORDER, '-q', '-o', output, '--', *(command or ('true',))],
                              stderr=subprocess.PIPE, timeout=PATIENCE, **others)

    def read_all(self, fifo):
        """A reader of a FIFO, in a thread; what it read is in the list."""
        found = []
        reader = threading.Thread(target=lambda: found.append(fifo.read_bytes()))
        reader.start()
        return reader, found

    def assert_link(self):
        self.assertTrue(self.standard.is_symlink())
        self.assertEqual(os.readlink(self.standard), '/proc/self/fd/1')

    def test_standard_output(self):
        """As '/dev/stdout' is: a link to a pipe, or to a file."""
        result = self.record_to(self.standard, stdout=subprocess.PIPE)
        self.assertEqual((result.returncode, result.stderr), (0, b''))
        self.target.write_bytes(result.stdout)
        self.assert_sound(self.target)
        self.assert_link()
        with open(self.target, 'wb') as file:
            number = os.fstat(file.fileno()).st_ino
            self.assertEqual(self.record_to(self.standard, stdout=file).returncode, 0)
        self.assertEqual(self.target.stat().st_ino, number)
        self.assert_sound(self.target)
        self.assert_link()

    def test_link_to_a_file(self):
        self.target.write_bytes(b'old')
        link = self.directory / 'link'
        link.symlink_to('target')
        number = self.target.stat().st_ino
        with open(self.target, 'rb') as old:
            self.assertEqual(self.record_to(link).returncode, 0)
            self.assertEqual(old.read(), b'old')
        self.assertTrue(link.is_symlink())
        self.assertFalse(self.target.is_symlink())
        self.assertEqual(stat.S_IMODE(self.target.stat().st_mode), 0o600)
        self.assert_sound(self.target)
        self.assertNotEqual(self.target.stat().st_ino, number)

    def test_link_that_leads_nowhere(self):
        link = self.directory / 'link'
        link.symlink_to('nothing')
        result = self.record_to(link)
        self.assertEqual(result.returncode, 122)
        self.assertIn(b'No such file or directory', result.stderr)
        self.assertTrue(link.is_symlink())

    def test_directory(self):
        result = self.record_to(self.directory)
        self.assertEqual(result.returncode, 122)
        self.assertIn(b'Is a directory', result.stderr)

    def test_process_substitution(self):
        script = f'{RECORDER} -q -o >(cat >{self.target}; echo closed) true; wait $!'
        result = subprocess.run(['bash', '-c', script], capture_output=True, timeout=PATIENCE)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, b'closed\n', b''))
        self.assert_sound(self.target)

    def test_children_have_no_place(self):
        """Beside a pipe there can be no files: they are lost, and that is said."""
        script = f'{program("leaks_c")} >/dev/null; :'
        result = self.record_to(self.standard, 'bash', '-c', script, stdout=subprocess.PIPE)
        self.assertEqual(result.returncode, 0)
        self.assertIn(b'no place for the trace of a child process', result.stderr)
        self.target.write_bytes(result.stdout)
        self.assert_sound(self.target)
        self.assertEqual({file.name for file in self.directory.iterdir()}, {'stdout', 'target'})

    def analyze_to(self, *arguments, **others):
        return subprocess.run([ANALYZER, *arguments], stderr=subprocess.PIPE, timeout=PATIENCE,
                              **others)

    def test_reports(self):
        self.record(program('leaks_c'))
        expected = subprocess.check_output([ANALYZER, 'leaks', self.trace])
        for option in ('-o', '--write-baseline'):
            result = self.analyze_to('leaks', option, self.standard, self.trace,
                                     stdout=subprocess.PIPE)
            self.assertEqual(result.stderr, b'')
            self.assertGreater(len(result.stdout), 100)
            with open(self.target, 'wb') as file:
                self.analyze_to('leaks', option, self.standard, self.trace, stdout=file)
            self.assertGreater(self.target.stat().st_size, 100)
            self.assert_link()
        self.target.write_bytes(b'old')
        link = self.directory / 'link'
        link.symlink_to('target')
        self.assertEqual(self.analyze_to('leaks', '-o', link, self.trace).returncode, 0)
        self.assertTrue(link.is_symlink())
        self.assertEqual(self.target.read_bytes(), expected)
        self.assertEqual({file.name for file in self.directory.iterdir()},
                         {'stdout', 'target', 'link', 'trace.bin'})

    def test_index(self):
        self.record(program('leaks_c'))
        self.target.write_bytes(b'')
        link = self.directory / 'trace.bin.idx'
        link.symlink_to('target')
        self.assertEqual(self.analyze_to('index', self.trace,
                                         stdout=subprocess.DEVNULL).returncode, 0)
        self.assertTrue(link.is_symlink())
        self.assertGreater(self.target.stat().st_size, 100)

    @unittest.skipIf(os.geteuid() != 0, 'only root can make files of another user')
    def test_fifo_of_another_user(self):
        """Where everybody may put one, it is not written to: the trace would be theirs."""
        self.directory.chmod(0o1777)
        fifo = self.directory / 'fifo'
        os.mkfifo(fifo, 0o666)
        os.chown(fifo, 65534, 65534)
        holder = os.open(fifo, os.O_RDWR)
        self.addCleanup(os.close, holder)
        result = self.record('true', options=['-o', fifo])
        self.assertEqual(result.returncode, 122)
        self.assertIn(b'Permission denied', result.stderr)

    @unittest.skipIf(os.geteuid() != 0, 'only root can make files of another user')
    def test_link_of_another_user(self):
        """Where everybody may put one, the file that it names is not replaced."""
        self.record(program('leaks_c'))
        public = self.directory / 'public'
        public.mkdir()
        public.chmod(0o1777)
        self.target.write_bytes(b'mine')
        for link in public / 'link', public / 'trace.bin.idx':
            link.symlink_to('../target')
            os.chown(link, 65534, 65534, follow_symlinks=False)
        result = self.record('true', options=['-o', public / 'link'])
        self.assertEqual(result.returncode, 122)
        self.assertIn(b'Permission denied', result.stderr)
        for options in ['leaks', '-o', public / 'link', self.trace], \
                ['leaks', '--write-baseline', public / 'link', self.trace], \
                ['report', '-o', public / 'link', self.trace], \
                ['recover', '-o', public / 'link', self.trace], \
                ['redact', '-o', public / 'link', self.trace]:
            result = self.analyze_to(*options, stdout=subprocess.DEVNULL)
            self.assertNotEqual(result.returncode, 0, options)
            self.assertIn(b'Permission denied', result.stderr)
        (public / 'trace.bin').write_bytes(self.trace.read_bytes())
        self.analyze_to('index', public / 'trace.bin', stdout=subprocess.DEVNULL)
        self.assertEqual(self.target.read_bytes(), b'mine')

    @unittest.skipIf(os.geteuid() != 0, 'only root can make files of another user')
    def test_links_that_only_others_can_have_made(self):
        """In a directory that is not sticky, too, and behind a link of our own."""
        public = self.directory / 'public'
        public.mkdir()
        public.chmod(0o777)
        self.target.write_bytes(b'mine')
        planted, own, outer = public / 'planted', public / 'own', self.directory / 'outer'
        planted.symlink_to('../target')
        os.chown(planted, 65534, 65534, follow_symlinks=False)
        own.symlink_to('planted')
        outer.symlink_to('public/own')
        os.mkfifo(public / 'fifo', 0o666)
        os.chown(public / 'fifo', 65534, 65534)
        holder = os.open(public / 'fifo', os.O_RDWR)
        self.addCleanup(os.close, holder)
        for output in planted, own, outer, public / 'fifo':
            result = self.record('true', options=['-o', output])
            self.assertEqual(result.returncode, 122, output)
            self.assertIn(b'Permission denied', result.stderr)
        self.assertEqual(self.target.read_bytes(), b'mine')
        planted.unlink()
        planted.symlink_to('../target')
        self.assertEqual(self.record_to(outer).returncode, 0)
        self.assert_sound(self.target)
        self.assertTrue(outer.is_symlink() and own.is_symlink() and planted.is_symlink())

    def test_links_without_end(self):
        link = self.directory / 'link'
        link.symlink_to('link')
        result = self.record_to(link)
        self.assertEqual(result.returncode, 122)
        self.assertIn(b'Too many levels of symbolic links', result.stderr)

    def test_recover(self):
        self.record(program('leaks_c'))
        result = self.analyze_to('recover', '-o', self.standard, self.trace, stdout=subprocess.PIPE)
        self.assertEqual((result.returncode, result.stderr), (0, b''))
        self.target.write_bytes(result.stdout)
        self.assertEqual(analyze('verify', self.target)['problems'], [])
        fifo = self.directory / 'fifo'
        os.mkfifo(fifo)
        reader, found = self.read_all(fifo)
        result = self.analyze_to('recover', '-o', fifo, self.trace, stdout=subprocess.PIPE)
        reader.join()
        self.assertEqual(result.returncode, 0)
        self.assertIn(b'fifo', result.stdout)
        self.assertEqual(found, [self.target.read_bytes()])
        self.assert_link()
        self.assertEqual(self.analyze_to('recover', '-o', self.target, self.trace).returncode, 2)


class Names(Recording):
    """Names of files and programs, and arguments, can be any bytes: none reaches the terminal as it
    is."""

    NAME = b'red\x1b[31m\xc2\x9b2J\xe2\x80\xae\xff\\'
    ESCAPED = br'red\x1b[31m\xc2\x9b2J\xe2\x80\xae\xff\\'

    def setUp(self):
        super().setUp()
        self.named = os.fsencode(self.directory) + b'/' + self.NAME

    def check(self, *arguments, status=None):
        result = subprocess.run([RECORDER, *arguments], capture_output=True, timeout=PATIENCE)
        said = result.stdout + result.stderr
        self.assertIn(self.ESCAPED, said)
        self.assertNotRegex(said, rb'[\x00-\x09\x0b-\x1f\x80-\xff]')
        if status is not None:
            self.assertEqual(result.returncode, status, said)

    def test_programs(self):
        self.check('-o', self.trace, '--', self.NAME, status=127)
        self.check('-o', self.trace, '--', self.named, status=127)
        with open(self.named, 'wb') as file:
            file.write(b'no program')
        self.check('-o', self.trace, '--', self.named, status=126)
        os.chmod(self.named, 0o755)
        self.check('-o', self.trace, '--', self.named, status=126)

    def test_traces(self):
        self.check('-o', self.named, '--', 'true', status=0)
        self.check('-o', self.named, '--', 'sh', '-c', '(:); :', status=0)
        self.check('-o', self.named + b'/trace', '--', 'true', status=122)
        self.check('symbolize', self.named, status=0)
        self.check('symbolize', self.named + b'/trace')

    def test_options(self):
        for command in (), ('symbolize',):
            self.check(*command, b'--' + self.NAME, status=125)
        self.check('--snapshot', self.NAME, status=125)
        self.check('--snapshot-every', self.NAME, status=125)
        result = subprocess.run([RECORDER, b'-\x1b'], capture_output=True, timeout=PATIENCE)
        self.assertIn(br"option '-\x1b' is unknown", result.stderr)

    def test_status(self):
        with subprocess.Popen([RECORDER, '-q', '-o', self.named, '--', 'cat'],
                              stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as recorder:
            children = pathlib.Path(f'/proc/{recorder.pid}/task/{recorder.pid}/children')
            pids, deadline = [], time.monotonic() + PATIENCE
            while not pids and time.monotonic() < deadline:
                pids = [pid for pid in children.read_text().split()
                        if subprocess.run([RECORDER, 'status', pid],
                                          capture_output=True).returncode == 0]
            self.check('status', pids[0], status=0)
            recorder.stdin.close()


if __name__ == '__main__':
    unittest.main()
