# SPDX-License-Identifier: MIT
"""Shells complete commands and options of ttdrecord, and the values of some options."""
import os
import re
import shutil
import subprocess
import unittest

from support import PATIENCE, RECORDER

ASK = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); ' \
      '_ttdrecord; printf "%s\\n" "${COMPREPLY[@]}"'
# The table of options is tested by the help text.
HELP = subprocess.run([RECORDER, '--help'], capture_output=True, text=True, check=True).stdout
OPTIONS = set(re.findall(r'(?m)^  +(?:-\w, )?(--[a-z-]+)', HELP))
COMMANDS = {word for words in re.findall(r'(?m)^  or:  ttdrecord ([a-z|]+)', HELP)
            for word in words.split('|')}
LISTS = {'--fail-on': ['leaks', 'errors', 'leaks,errors'], '--when-full': ['wait', 'lose'],
         '--stacks': ['alloc', 'realloc', 'free', 'all', 'none'],
         '--snapshot': ['references', 'blocks', 'memory'],
         '--snapshot-at-exit': ['references', 'blocks', 'memory', 'none']}


def script(shell):
    return os.environ[f'RECORD_COMPLETION_{shell.upper()}']


class RecordCompletion(unittest.TestCase):
    def ask(self, *words):
        found = subprocess.run(['bash', '--norc', '-c', ASK, 'bash', script('bash'), 'ttdrecord',
                                *words], capture_output=True, text=True, check=True,
                               timeout=PATIENCE)
        self.assertEqual(found.stderr, '')
        return found.stdout.split()

    def test_options(self):
        self.assertGreater(len(OPTIONS), 15)
        self.assertEqual(set(self.ask('--')), OPTIONS)
        self.assertEqual(self.ask('--fail'), ['--fail-on'])
        self.assertEqual(set(self.ask('attach', '--')), OPTIONS)
        self.assertEqual(set(self.ask('-q', '--output', 'x', '--sna')),
                         {option for option in OPTIONS if option.startswith('--sna')})

    def test_commands(self):
        self.assertGreater(len(COMMANDS), 10)
        found = self.ask('')
        self.assertLessEqual(COMMANDS, set(found))
        self.assertIn('session', self.ask('sess'))
        self.assertIn('cat', self.ask('ca'))
        self.assertIn('cat', self.ask('--', 'ca'))
        self.assertNotIn('attach', self.ask('-q', 'att'))
        words = re.search(r'ttdrecord session ([a-z|]+)', HELP)[1].split('|')
        self.assertEqual(self.ask('session', ''), words)

    def test_help(self):
        """Each command has one, within 80 columns; so have the commands of sessions."""
        words = re.search(r'ttdrecord session ([a-z|]+)', HELP)[1].split('|')
        asked = [[], *([name] for name in sorted(COMMANDS)),
                 *(['session', word] for word in words), ['session', 'start', 'web']]
        for command in asked:
            for option in '--help', '-h':
                said = subprocess.run([RECORDER, *command, option], capture_output=True, text=True,
                                      timeout=PATIENCE)
                self.assertEqual((said.returncode, said.stderr), (0, ''), command)
                usage = ' '.join(command[:1]) if command != ['attach'] else ''
                self.assertTrue(said.stdout.startswith(f'Usage: ttdrecord {usage}'), command)
                badly_filled = re.findall(r'(?m)^(?:.{81,}|.{1,9})$', said.stdout)
                self.assertEqual(badly_filled, [], command)
        for word in words:
            self.assertRegex(said.stdout, rf'(?m)^  (\w+\|)*{word}\b')

    def test_commands_without_their_arguments(self):
        """There is no such program; the user may have meant the command."""
        for words, usage in ((['detach'], 'detach PID'), (['detach', 'name'], 'detach PID'),
                             (['snapshots', '1'], 'snapshots PID --every SECONDS|off')):
            said = subprocess.run([RECORDER, *words], capture_output=True, text=True,
                                  timeout=PATIENCE, env={**os.environ, 'PATH': ''})
            self.assertEqual((said.returncode, said.stderr),
                             (127, f"ttdrecord: cannot find '{words[0]}' in PATH\n"
                                   f"ttdrecord: did you mean 'ttdrecord {usage}'?\n"))

    def test_values(self):
        for option, values in LISTS.items():
            self.assertEqual(self.ask(option, ''), values)
            self.assertEqual(self.ask(option, '=', values[0][:2]),
                             [value for value in values if value.startswith(values[0][:2])])
            for value in values:
                refused = subprocess.run([RECORDER, f'{option}={value}'], capture_output=True,
                                         text=True, timeout=PATIENCE).stderr
                self.assertIn('no program given', refused)
        self.assertEqual(self.ask('--keep', ''), [])

    def test_options_of_the_program_are_its_own(self):
        for words in (('cat', '--'), ('-q', 'cat', '--'), ('--', 'cat', '--'),
                      ('--fail-on', 'leaks', 'cat', '--'), ('--fail-on', '=', 'leaks', 'cat', '--'),
                      ('status', '--')):
            self.assertEqual(self.ask(*words), [], words)

    def check_syntax(self, shell, option):
        if not shutil.which(shell):
            self.skipTest(f'{shell} is not installed')
        subprocess.run([shell, option, script(shell)], check=True)
        with open(script(shell), encoding='utf-8') as file:
            text = file.read()
        for word in [*COMMANDS, *(option[2:] for option in OPTIONS)]:
            self.assertRegex(text, rf'\b{word}\b')

    def test_zsh(self):
        self.check_syntax('zsh', '-n')

    def test_fish(self):
        """It is asked as a user asks."""
        self.check_syntax('fish', '--no-execute')
        found = subprocess.run(['fish', '--no-config', '-c', f'source {script("fish")}; complete '
                                '-C "ttdrecord --fail-on "; complete -C "ttdrecord --fail"'],
                               capture_output=True, text=True, timeout=PATIENCE,
                               env=dict(os.environ, HOME='/nonexistent'))
        self.assertEqual([line.split('\t')[0] for line in found.stdout.splitlines()],
                         sorted(LISTS['--fail-on']) + ['--fail-on'])


if __name__ == '__main__':
    unittest.main()
