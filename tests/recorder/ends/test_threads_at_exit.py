# SPDX-License-Identifier: MIT
"""Blocks of the C library for threads that still run at the exit are no leaks, in any command."""

import unittest

from support import Recording, analyze, program

THREADS, LEAK = 6, 100


class ThreadsAtExit(Recording):
    def setUp(self):
        super().setUp()
        self.assertEqual(self.record(program('running_threads')).returncode, 0)

    def test_leaks(self):
        found = analyze('leaks', self.trace, '--show-runtime')
        self.assertEqual((found['total_blocks'], found['total_bytes']), (1, LEAK))
        self.assertEqual(found['runtime_blocks'], THREADS)
        functions = {f['function'] for g in found['runtime_groups'] for f in g['stack']}
        self.assertTrue(any('_dl_allocate_tls' in (f or '') for f in functions), functions)

    def test_other_commands_agree(self):
        for command, blocks in (('state', 'live_blocks'), ('peak', 'live_blocks')):
            found = analyze(command, self.trace)
            self.assertEqual((found[blocks], found['runtime_blocks']), (1, THREADS), command)
        self.assertEqual(analyze('diff', self.trace)['aifo']['blocks'], 1)


if __name__ == '__main__':
    unittest.main()
