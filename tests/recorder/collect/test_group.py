# SPDX-License-Identifier: MIT
"""The traces of a recording: how they are called, and what becomes of those of an earlier one."""

import csv
import os
import re
import shutil
import subprocess
import unittest

from support import ANALYZER, Recording, analyze, program

SCRIPT = f'{program("leaks_c")} >/dev/null; git --version >/dev/null; :'


class Group(Recording):
    def names(self):
        return sorted(file.name for file in self.directory.iterdir())

    def programs(self):
        """The ends of the names of the children's traces, behind the process ids."""
        found = [re.fullmatch(r'trace\.bin\.(\d+)\.(.*)', name) for name in self.names()
                 if name != 'trace.bin']
        self.assertNotIn(None, found, self.names())
        return sorted(match[2] for match in found)

    def test_names(self):
        self.record('bash', '-c', SCRIPT)
        self.assertEqual(self.programs(), ['git', 'leaks_c'])
        for trace in self.directory.glob('trace.bin.*'):
            self.assertEqual(analyze('info', trace)['trace']['process_id'],
                             int(trace.name.split('.')[2]))
            self.assert_sound(trace)

    def test_names_that_cannot_be(self):
        """They are the program's, which may put there what it likes."""
        names = ['../x', '-login', 'a b\n;$(c)', 'p.idx', 'long' * 50, '..', 'ü', '']
        script = 'for name; do (exec -a "$name" true); done; :'
        self.record('bash', '-c', script, 'bash', *names)
        self.assertEqual(self.programs(), sorted([
            'x', 'login', 'a_b____c_', 'p_idx', ('long' * 50)[:32], '..', '__', 'bash']))

    def test_listing(self):
        script = f'{program("leaks_c")} >/dev/null; (exec -a "a,b" dash -c "kill -9 $BASHPID"); :'
        self.record('bash', '-c', script)
        child, = self.directory.glob('trace.bin.*.leaks_c')
        subprocess.check_output([ANALYZER, 'index', child])         # is no trace of the recording
        (self.directory / 'cut').write_bytes(child.read_bytes()[:-100])
        (self.directory / 'empty').touch()
        (self.directory / 'link').symlink_to(child.name)
        os.mkfifo(self.directory / 'fifo')
        expected = {}
        for name in ['trace.bin', 'cut'] + [trace.name for trace in
                                            self.directory.glob('trace.bin.*.*')]:
            if name.endswith('.idx'):
                continue
            info = analyze('info', self.directory / name)
            facts = {item['key']: item['value'] for item in info['metadata']}
            expected[name] = {
                'process_id': info['trace']['process_id'],
                'parent_process_id': info['trace']['parent_process_id'],
                'parent_trace_id': info['trace']['parent_trace_id'],
                'trace_id': info['trace']['trace_id'], 'command': facts.get('command'),
                'events': info['events'],
                'lost_events': info['lost_events'] if info['closed'] else None,
                'closed': info['closed'], 'file_bytes': info['file_bytes'],
                'end_reason': info['end_reason'], 'end_code': info['end_code']}
        self.assertEqual(len(expected), 4)
        self.assertEqual([item['closed'] for item in expected.values()].count(False), 1)
        for begin in ('trace.bin', 'cut', child.name):
            found = analyze('info', self.directory / begin, '--group')
            self.assertEqual(found['group'], analyze('info', self.trace)['trace']['group'])
            self.assertEqual(found['traces'][0]['path'].rpartition('/')[2], 'trace.bin')
            listed = {trace.pop('path').rpartition('/')[2]: trace for trace in found['traces']}
            for trace in listed.values():
                self.assertTrue(trace.pop('start_time'))
            self.assertEqual(listed, expected)
        text, rows = (subprocess.check_output([ANALYZER, 'info', '--group', '-f', form, 'trace.bin'],
                                              cwd=self.directory, text=True)
                      for form in ('text', 'csv'))
        for name, facts in expected.items():
            line, = [line for line in text.splitlines() if line.endswith(f' {name}')]
            self.assertTrue(line.startswith(f'{facts["process_id"]} '), line)
            end = facts['end_reason'] if facts['closed'] else 'not closed'
            code = facts['end_code']
            self.assertIn(f' {end} ' if code is None else f' {end} {code} ', line)
        rows = {row['path']: row for row in csv.DictReader(rows.splitlines())}
        self.assertEqual(rows.keys(), expected.keys())
        for name, row in rows.items():
            for key in ('events', 'process_id', 'lost_events', 'end_code', 'end_reason'):
                value = expected[name][key]
                self.assertEqual(row[key], '' if value is None else str(value))

    def test_links_are_not_followed(self):
        """A link that has a child's name is not what anybody asked for."""
        victim = self.directory / 'victim'
        victim.write_text('mine')
        script = (f'for i in 1 2 3; do :; done; ln -s victim {self.trace}.$$.sleep; '
                  f'exec sleep 0')
        self.record('bash', '-c', f"bash -c '{script}'; :")
        self.assertEqual(victim.read_text(), 'mine')

    def test_earlier_ones_are_removed(self):
        self.record('bash', '-c', SCRIPT)
        child, = self.directory.glob('trace.bin.*.git')
        subprocess.check_output([ANALYZER, 'index', child])
        others = self.directory / 'others'
        others.mkdir()
        subprocess.check_output([ANALYZER, 'info', child])
        kept = {'others', 'trace.bin.keep', 'trace.bin.77.none', 'trace.bin.1', 'trace.bin.99.git',
                'trace.bin.98.other', 'trace.bin.97.link', 'copy.bin'}
        shutil.copy(child, self.directory / 'trace.bin.keep')
        shutil.copy(child, self.directory / 'trace.bin.99.git')     # of another process
        shutil.copy(self.trace, self.directory / 'trace.bin.1')     # of the program itself
        shutil.copy(child, self.directory / 'copy.bin')
        (self.directory / 'trace.bin.77.none').write_text('no trace')
        process = child.name.split('.')[2]
        link = self.directory / f'trace.bin.{process}.link'
        link.symlink_to('copy.bin')
        kept = (kept - {'trace.bin.97.link'}) | {link.name}
        previous = self.trace
        self.trace = self.directory / 'other.bin'                   # another recording
        self.record('bash', '-c', SCRIPT)
        stranger, = self.directory.glob('other.bin.*.git')
        number = stranger.name.split('.')[2]
        os.rename(stranger, self.directory / f'trace.bin.{number}.git')
        self.trace = previous
        kept = (kept - {'trace.bin.98.other'}) | {f'trace.bin.{number}.git', 'other.bin'}
        kept |= {file.name for file in self.directory.glob('other.bin.*')}
        self.record('true')
        self.assertEqual(set(self.names()) - {'trace.bin'}, kept)


if __name__ == '__main__':
    unittest.main()
