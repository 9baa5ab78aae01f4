# SPDX-License-Identifier: MIT
"""Modules and programs that look for malloc elsewhere than where the recorder stands."""

import unittest

from support import Recording, analyze, program


class DeepBinding(Recording):
    def check(self, mode):
        result = self.record(program('deepbind'), program('libdeepbound.so'), mode)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(analyze('errors', self.trace)['findings'], [])
        self.assert_sound()
        events = analyze('events', self.trace)
        sizes = [event['size'] for event in events if event['action'] in ('Alloc', 'ReAlloc')]
        self.assertEqual((sizes.count(50), sizes.count(100)), (2000, 4000))
        groups = {group['bytes']: group['stack'][0]['function']
                  for group in analyze('leaks', self.trace, '--limit', '0')['groups']}
        self.assertEqual(groups[111], 'make')

    def test_at_once(self):
        self.check('now')

    def test_lazily(self):
        self.check('lazy')


if __name__ == '__main__':
    unittest.main()
