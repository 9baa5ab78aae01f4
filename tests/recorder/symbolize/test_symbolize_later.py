# SPDX-License-Identifier: MIT
"""Names that are added to a trace after the recording: by build-id, never by path alone."""

import os
import pathlib
import shutil
import stat
import subprocess
import time
import unittest

from later import LIBRARY, Later, run
from snapshots import Records
from support import PATIENCE, RECORDER, analyze, program

# By the size of a block, the variable that holds it.
ROOTS = {1001: ('global_root', 0), 1002: ('own_roots', 16), 1003: ('record_root', 8),
         1004: ('thread_root', 0), 1006: ('own_thread_roots', 8), 1007: ('library_roots', 88)}


class LocalFiles(Later):
    def test_frames_and_variables_get_names(self):
        self.record_roots()
        self.assert_unnamed(self.trace)
        self.install('roots')
        self.install(LIBRARY)
        text = self.to_result()
        self.assertIn(' got names', text)
        self.assertNotIn('without names', text)
        self.assert_named(self.result)
        records = Records(self.result)
        for size, variable in ROOTS.items():
            (region, offset), = [(region, offset) for region, offset in records.words_to(size)
                                 if region.module]
            self.assertIn(variable, records.variables_at(region, offset))
        self.assert_sound(self.result)
        self.assertEqual(self.events(self.result), self.events(self.trace))
        self.assertFalse(analyze('info', self.result)['trace']['recovered'])

    def test_a_second_time_nothing_is_added(self):
        self.record_roots()
        self.install('roots')
        self.install(LIBRARY)
        self.symbolize(self.trace)
        once = self.trace.read_bytes()
        self.assertIn(': 0 frames got names', self.symbolize(self.trace))
        self.assertEqual(len(once), len(self.trace.read_bytes()))

    def test_the_trace_is_replaced_when_all_is_written(self):
        self.record_roots()
        self.install('roots')
        self.install(LIBRARY)
        link = self.directory / 'link.bin'
        link.symlink_to(self.trace)
        before = sorted(self.directory.iterdir())
        self.assertEqual(self.symbolize('-q', link), '')
        self.assert_named(self.trace)
        self.assertEqual(sorted(self.directory.iterdir()), before)
        self.assertTrue(link.is_symlink())
        self.assertEqual(stat.S_IMODE(self.trace.stat().st_mode), 0o600)

    @unittest.skipIf(os.geteuid() != 0, 'only root can make files of another user')
    def test_only_the_owner_of_the_trace_keeps_its_file(self):
        """The owner of a file in the place of the new trace must not be able to read it."""
        self.record_roots()
        self.result.touch()
        os.chown(self.result, 65534, 65534)
        self.to_result()
        self.assertEqual(self.result.stat().st_uid, 0)
        os.chown(self.trace, 65534, 65534)
        self.symbolize(self.trace)
        self.assertEqual(self.trace.stat().st_uid, 65534)
        self.assertEqual(stat.S_IMODE(self.trace.stat().st_mode), 0o600)

    def test_the_trace_is_the_one_that_was_opened(self):
        """Another trace that has its name by now does not get its names."""
        self.record_roots()
        events = self.events(self.trace)
        other, fifo = self.directory / 'other.bin', self.directory / 'fifo'
        self.record('true', options=['-o', other])
        os.mkfifo(fifo)
        command = subprocess.Popen([RECORDER, 'symbolize', '-q', '-o', str(fifo), str(self.trace)],
                                   env=self.environment())
        self.addCleanup(command.wait, PATIENCE)
        self.addCleanup(command.kill)
        self.wait_for_open(command)
        other.rename(self.trace)
        self.result.write_bytes(fifo.read_bytes())
        self.assertEqual(command.wait(PATIENCE), 0)
        self.assertEqual(self.events(self.result), events)

    def wait_for_open(self, command):
        """Until the process sleeps: it waits for a reader of the FIFO."""
        status = pathlib.Path(f'/proc/{command.pid}/status')
        deadline = time.monotonic() + PATIENCE
        while 'State:\tS' not in status.read_text():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_modules_without_a_file_are_named_with_the_reason(self):
        roots, library = self.record_roots()
        self.install(LIBRARY)
        self.assertIn('no debug information with its build-id names them', self.to_result())
        roots.unlink()
        text = self.to_result()
        self.assertRegex(text, f'{roots}: [0-9]+ frames without names: no file has its build-id')
        self.assertNotIn(f'{library}:', text)

    def test_names_do_not_get_worse(self):
        copy = self.directory / 'roots'
        shutil.copy(program('roots'), copy)
        library = self.strip(LIBRARY)
        self.assertEqual(self.record(str(copy), str(library)).returncode, 0)
        self.install(LIBRARY)
        run('strip', '--strip-debug', copy)
        self.to_result()
        self.assert_named(self.result)


class OtherBuilds(Later):
    def test_a_file_with_another_build_id_is_not_used(self):
        roots, library = self.record_roots()
        for name in ('roots', LIBRARY):
            place = self.install(name)
            shutil.copy(program('churner'), place)
        shutil.copy(program('churner'), roots)
        text = self.to_result()
        self.assert_unnamed(self.result)
        self.assertIn(f'{roots}: ', text)
        self.assertIn('the file there is another build', text)

    def test_a_module_without_a_build_id_is_not_named_by_its_path(self):
        roots, library = self.strip('roots'), self.strip(LIBRARY)
        run('objcopy', '--remove-section=.note.gnu.build-id', roots)
        self.assertEqual(self.record(str(roots), str(library)).returncode, 0)
        whole = self.directory / 'whole'
        shutil.copy(program('roots'), whole)
        run('objcopy', '--remove-section=.note.gnu.build-id', whole)
        whole.rename(roots)
        text = self.to_result()
        self.assert_unnamed(self.result)
        self.assertIn('it has no build-id', text)


class HostileFiles(Later):
    def test_damaged_debug_information_is_survived(self):
        self.record_roots()
        self.install(LIBRARY)
        place = self.install('roots')
        whole = place.read_bytes()
        for step in (3, 7, 64, 1000):
            damaged = bytearray(whole)
            for at in range(0x400, len(damaged), step):
                damaged[at] ^= 0xff
            place.write_bytes(damaged)
            self.to_result()
            self.assert_sound(self.result)
            self.assertEqual(self.stack(self.result, 1007)[0]['function'], 'keep')

    def test_a_file_that_is_no_debug_file_is_told(self):
        roots, _ = self.record_roots()
        self.install(LIBRARY)
        self.install('roots').write_bytes(b'no ELF file')
        roots.unlink()
        text = self.to_result()
        self.assertIn(f'{roots}: ', text)
        self.assertIn('is damaged', text)

    def test_control_characters_of_paths_are_not_printed(self):
        odd = self.directory / 'odd\x1b[31m'
        shutil.copy(self.strip('roots'), odd)
        library = self.strip(LIBRARY)
        self.assertEqual(self.record(str(odd), str(library)).returncode, 0)
        odd.unlink()
        text = self.to_result()
        self.assertNotIn('\x1b', text)
        self.assertIn(r'odd\x1b[31m: ', text)


if __name__ == '__main__':
    unittest.main()
