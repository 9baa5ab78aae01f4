# SPDX-License-Identifier: MIT
"""examples/ci: Meson, CTest and pytest run programs under the recorder; those that leak fail."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree

from support import PATIENCE, Recording, beside_analyzer

EXAMPLE = pathlib.Path(os.environ['EXAMPLES']) / 'ci'
FINDINGS, NOT_RECORDED = 116, 125


class Wrappers(Recording):
    def setUp(self):
        super().setUp()
        self.project = self.directory / 'project'
        shutil.copytree(EXAMPLE, self.project, ignore=lambda *_: ['__pycache__'])
        self.traces = self.directory / 'traces'
        self.build = self.directory / 'build'
        self.environment = dict(os.environ, TTDCHECK_DIR=str(self.traces),
                                TTDRECORD=str(beside_analyzer(self.directory / 'bin')),
                                PROGRAMS_BUILD=str(self.build), PYTHONDONTWRITEBYTECODE='1',
                                PYTHONPATH=str(self.project), CC='cc')
        self.environment.pop('MESON_TEST_ITERATION', None)

    def need(self, name):
        if not shutil.which(name):
            self.skipTest(f'{name} is not installed')

    def run_in(self, folder, *command, status=0):
        result = subprocess.run(command, cwd=folder, env=self.environment, capture_output=True,
                                text=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def check_report(self, text):
        self.assertIn('12 bytes in 1 block definitely lost', text)
        self.assertRegex(text, r'#1  main \(.*heap_leaks\.c:\d+\)')

    def check_traces(self):
        """The trace of the test that fails is all that stays."""
        folder, = self.traces.iterdir()
        self.assertIn('heap_leaks', folder.name)
        self.assertTrue((folder / 'trace.bin').exists())

    def compile(self):
        self.build.mkdir()
        for name in ('heap_clean', 'heap_leaks'):
            self.run_in(self.project, 'cc', '-g', '-o', self.build / name, f'{name}.c')

    def test_meson(self):
        self.need('meson')
        self.run_in(self.project, 'meson', 'setup', self.build)
        self.run_in(self.build, 'meson', 'compile')
        self.run_in(self.build, 'meson', 'test')
        for options in (('--setup', 'heap'), ('--wrapper', self.project / 'ttdcheck')):
            text = self.run_in(self.build, 'meson', 'test', *options, '--print-errorlogs', status=1)
            self.assertRegex(text, r'heap_clean +OK')
            self.assertRegex(text, rf'heap_leaks +FAIL .*exit status {FINDINGS}')
            self.check_report(text)
            self.check_traces()
            shutil.rmtree(self.traces)

    def test_ctest(self):
        self.need('ctest')
        self.run_in(self.project, 'cmake', '-S', '.', '-B', self.build)
        self.run_in(self.build, 'cmake', '--build', '.')
        text = self.run_in(self.build, 'ctest', '--output-on-failure', status=8)
        self.assertRegex(text, r'heap_clean \.+ +Passed')
        self.assertRegex(text, r'heap_leaks \.+\*+Failed')
        self.check_report(text)
        self.check_traces()

    def test_pytest(self):
        self.need('pytest-3')
        self.compile()
        report = self.directory / 'report.xml'
        text = self.run_in(self.project, 'pytest-3', '-p', 'no:cacheprovider', '--junitxml', report,
                           '--basetemp', self.traces, status=1)
        self.check_report(text)
        self.assertIn('1 failed, 1 passed', text)
        trace = re.search("see 'ttdanalyze (.*)'", text).group(1)
        self.assertTrue(os.path.exists(trace))
        failures = {test.get('name'): len(test.findall('failure'))
                    for test in ElementTree.parse(report).iter('testcase')}
        self.assertEqual(failures, {'test_program[heap_clean]': 0, 'test_program[heap_leaks]': 1})

    def test_pytest_without_a_recorder(self):
        """A program that is not recorded does not pass."""
        self.need('pytest-3')
        self.compile()
        text = self.run_in(self.project, 'pytest-3', '-p', 'no:cacheprovider', '-p',
                           'pytest_ttdcheck', '--ttd-fail-on', 'nothing', '--basetemp', self.traces,
                           status=1)
        self.assertIn('2 failed', text)
        self.assertIn('names no kinds of findings', text)

    def test_pytest_of_programs_with_statuses(self):
        """The statuses of the recorder are not taken for its own if the program has ended so."""
        self.need('pytest-3')
        (self.project / 'test_programs.py').write_text(
            'import pytest\n'
            'pytest_plugins = ["pytest_ttdcheck"]\n'
            '@pytest.mark.parametrize("status", [0, 1, 116, *range(121, 128)])\n'
            'def test_program(ttdcheck, status):\n'
            '    assert ttdcheck("/bin/sh", "-c", f"exit {status}").returncode == status\n')
        text = self.run_in(self.project, 'pytest-3', '-p', 'no:cacheprovider', '-p',
                           'pytest_ttdcheck', '--ttd-fail-on', 'leaks', '--basetemp', self.traces)
        self.assertIn('10 passed', text)

    def test_statuses(self):
        self.compile()
        wrapper = self.project / 'ttdcheck'
        self.run_in(self.project, wrapper, self.build / 'heap_clean')
        self.run_in(self.project, wrapper, '/bin/sh', '-c', 'exit 77', status=77)
        self.assertEqual(os.listdir(self.traces), [])
        text = self.run_in(self.project, wrapper, self.build / 'heap_clean', 'x', status=1)
        self.assertIn("ttdcheck: see 'ttdanalyze ", text)
        shutil.rmtree(self.traces)
        self.run_in(self.project, wrapper, self.build / 'nothing', status=127)
        self.assertEqual(os.listdir(self.traces), [])
        self.environment['TTDCHECK_FAIL_ON'] = 'errors'
        self.run_in(self.project, wrapper, self.build / 'heap_leaks')
        self.run_in(self.project, wrapper, status=NOT_RECORDED)


if __name__ == '__main__':
    unittest.main()
