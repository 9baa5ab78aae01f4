# SPDX-License-Identifier: MIT
"""The report of `errors` on the signal that a program died of, and on the blocks it met."""

import csv
import io
import signal
import subprocess
import unittest

from support import ANALYZER, Recording, analyze, program

LARGE, OFFSET, SMALL = 16 << 20, 4096, 40


def names(call):
    return [frame['function'] for frame in call['stack']]


class FatalBlocks(Recording):
    def die(self, way, number):
        result = self.record(program('stray'), way)
        self.assertEqual(result.returncode, -number)
        found = analyze('errors', self.trace)
        fatal = found['fatal_signal']
        self.assertEqual((fatal['signal'], fatal['snapshot']['reason'], found['certain']),
                         (number, 'signal', True))
        self.assertEqual(analyze('info', self.trace)['fatal_signal']['name'], fatal['name'])
        return found, fatal

    def test_use_after_free(self):
        found, fatal = self.die('unmapped', signal.SIGSEGV)
        self.assertEqual((fatal['name'], fatal['reason'], names(fatal)[:2], found['findings']),
                         ('SIGSEGV', 'address not mapped', ['use', 'main'], []))
        fault = fatal['fault']
        self.assertEqual((fault['where'], fault['certain'], fault['block']['size'],
                          fault['block']['offset']), ('released', True, LARGE, OFFSET))
        self.assertEqual(int(fatal['address'], 16), int(fault['block']['address'], 16) + OFFSET)
        self.assertEqual((names(fault['allocated'])[0], names(fault['released'])[0]),
                         ('make', 'drop'))

    def test_release_of_a_variable(self):
        """Also if no register has its address any more."""
        self.record(program('stray'), 'variable')
        released, = [finding for finding in analyze('errors', self.trace)['findings']
                     if finding['kind'] == 'invalid-free']
        self.assertEqual(released['place']['label'], 'stray .bss: table+0x40')
        rows = subprocess.run([ANALYZER, 'errors', '-f', 'csv', str(self.trace)],
                              capture_output=True, text=True, check=True).stdout
        self.assertEqual([row['place'] for row in csv.DictReader(io.StringIO(rows))
                          if row['kind'] == 'invalid-free'], ['stray .bss: table+0x40'])

    def test_release_that_the_process_survives(self):
        self.assertEqual(self.record(program('stray'), 'disguised').returncode, 0)
        released, = analyze('errors', self.trace)['findings']
        self.assertEqual((released['kind'], released['place']['label']),
                         ('invalid-free', 'stray .data: disguised+0x10'))

    def test_stray_pointer(self):
        """The processor does not tell such an address, but a register holds the block."""
        _, fatal = self.die('poisoned', signal.SIGSEGV)
        self.assertEqual((fatal['reason'], fatal['fault'], names(fatal)[0]),
                         ('sent by the kernel', None, 'follow'))
        held = {(register['block']['size'], names(register['allocated'])[0])
                for register in fatal['registers'] if register['where'] == 'live'}
        self.assertIn((SMALL, 'make'), held)

    def test_abort_in_free(self):
        found, fatal = self.die('overrun', signal.SIGABRT)
        self.assertEqual((fatal['name'], fatal['reason'], fatal['fault']),
                         ('SIGABRT', 'sent by raise or tgkill', None))
        self.assertIn('drop', names(fatal))
        damage, finding = found['findings']
        self.assertEqual(damage['kind'], 'heap-damage')
        self.assertEqual((finding['kind'], finding['signal']), ('died-in-call', signal.SIGABRT))


if __name__ == '__main__':
    unittest.main()
