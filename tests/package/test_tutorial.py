# SPDX-License-Identifier: MIT
"""The tutorial, ttdtrace(7): its commands print what the page shows, in the installed project"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ['TTD_SOURCE'])
BUILD = pathlib.Path(os.environ['TTD_BUILD'])
PAGE = SOURCE / 'analyzer/ttdtrace.7'
BASH = '5.2.15'


def blocks(page):
    """The programs and transcripts of a page in mdoc: (name of the file, or "", text)."""
    for kind, name, text in re.findall(
            r'(?ms)^\.\\" (file|run) ?(\S*)\n\.Bd -literal -compact\n(.*?)^\.Ed$', page):
        yield name if kind == 'file' else '', text.replace('\\&', '').replace('\\e', '\\')


def commands(transcript):
    """Each command of a transcript with the lines that it prints."""
    for part in re.split(r'(?m)^\$ ', transcript)[1:]:
        lines = part.splitlines()
        end = 1
        while '\n'.join(lines[:end]).count('"') % 2:
            end += 1
        yield '\n'.join(lines[:end]), lines[end:]


def normalized(line):
    """A line with N for what differs from run to run: all numbers, unless it is about lost blocks."""
    line = re.sub(r'\b[0-9A-F]+:[0-9A-F]+\b|0x[0-9a-f]+|[+][0-9.]+s\b', 'N', line)
    if re.search(r'definitely lost|Definitely lost|by sh_single_quote$|^status', line):
        return line
    return re.sub(r'\b[0-9][0-9,.]*\b', 'N', line)


def flat(lines):
    """The words of all lines: where lines are broken depends on the numbers in them."""
    return ' '.join(' '.join(map(normalized, lines)).split())


class Tutorial(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        root = self.folder / 'root'
        subprocess.run(['meson', 'install', '-C', BUILD, '--no-rebuild', '--destdir', root],
                       check=True, stdout=subprocess.DEVNULL)
        packages = next(root.rglob('ttdtrace.pc')).parent
        programs = next(root.rglob('bin/ttdrecord')).parent
        # bash has blocks for each variable and for each folder of PATH, so their number decides which
        # blocks a range of a trace has.
        self.environment = dict(
            HOME=str(self.folder), PATH=f'{programs}:/usr/bin:/bin', COLUMNS='75', PAGER='',
            LC_ALL='C.UTF-8', LD_LIBRARY_PATH=str(packages.parent),
            PKG_CONFIG_PATH=str(packages), PKG_CONFIG_SYSROOT_DIR=str(root))

    def run_command(self, command):
        """The output of a command, on both of its streams."""
        done = subprocess.run(['bash', '-c', f'exec 2>&1\n{command}'], cwd=self.folder,
                              env=self.environment, stdin=subprocess.DEVNULL, timeout=120,
                              stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 0, f'{command}\n{done.stdout}')
        return done.stdout

    def check_transcript(self, transcript):
        """Commands without output share a shell with the next one, such as those of a job."""
        together = []
        for command, lines in commands(transcript):
            together.append(command)
            if not lines and any(' & ' in each for each in together):
                continue
            printed = flat(self.run_command('\n'.join(together)).splitlines())
            wanted = re.escape(flat(lines)).replace(re.escape('...'), '.*')
            self.assertRegex(printed, f'^{wanted}$', together)
            together = []
        self.assertFalse(together, 'commands that nothing follows')

    def test_commands(self):
        said = subprocess.run(['bash', '--version'], check=True, capture_output=True, text=True)
        if BASH not in said.stdout:
            self.skipTest(f'the leak is in bash {BASH}')
        found = list(blocks(PAGE.read_text()))
        self.assertGreater(len(found), 12)
        self.assertEqual(PAGE.read_text().count('.Bd '), len(found), 'a block without a comment')
        for name, text in found:
            if name:
                (self.folder / name).write_text(text)
            else:
                self.check_transcript(text)


if __name__ == '__main__':
    unittest.main()
