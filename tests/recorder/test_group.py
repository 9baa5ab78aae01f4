# SPDX-License-Identifier: MIT
"""The traces of a recording: how they are called, and what becomes of those of an earlier one."""

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
        """What follows the process ids in the names of the children's traces."""
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
