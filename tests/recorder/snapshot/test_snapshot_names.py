# SPDX-License-Identifier: MIT
"""Names in a snapshot: the variables that hold blocks, and the classes of objects."""

import collections
import os
import shutil
import subprocess
import unittest

from snapshots import MODULE, TLS, Records
from support import ANALYZER, PATIENCE, Recording, analyze, program

# By the size of a block: where the word is that holds it.
ROOTS = {1001: (MODULE, 'roots', 'global_root', 0),
         1002: (MODULE, 'roots', 'own_roots', 16),
         1003: (MODULE, 'roots', 'record_root', 8),
         1004: (TLS, 'roots', 'thread_root', 0),
         1006: (TLS, 'roots', 'own_thread_roots', 8),
         1007: (MODULE, 'libroots_library.so', 'library_roots', 88)}
IN_FUNCTION = 1005
# By the size of a block, its class.
CLASSES = {2008: '6Simple',
           2120: '8Multiple',
           2216: '7Virtual',
           2312: 'N12_GLOBAL__N_16HiddenE',
           2504: '6FilledILm2500EE',
           2800: '11FromLibrary'}
NO_CLASS = 3000


class Names(Recording):
    def record_copy(self, name, library, *, is_stripped):
        """Records a program that loads a library."""
        copies = []
        for file in (name, library):
            copies.append(str(self.directory / file))
            shutil.copy(program(file), copies[-1])
            if is_stripped:
                subprocess.run(['strip', copies[-1]], check=True)
        result = self.record(*copies)
        self.assertEqual((result.returncode, result.stderr), (0, b''))
        return Records(self.trace)


class Roots(Names):
    def place(self, records, size):
        """The kind, the module and the variables of the only word of a module that holds a block."""
        words = [(region, offset) for region, offset in records.words_to(size) if region.module]
        self.assertEqual(len(words), 1, size)
        (region, offset), = words
        path = records.strings[records.modules[region.module].path]
        return region, os.path.basename(path), records.variables_at(region, offset)

    def test_variables_name_roots(self):
        records = self.record_copy('roots', 'libroots_library.so', is_stripped=False)
        for size, (kind, module, name, offset) in ROOTS.items():
            with self.subTest(size=size):
                region, found, variables = self.place(records, size)
                self.assertEqual((region.kind, found, variables), (kind, module, [(name, offset)]))
        _, _, ((name, offset),) = self.place(records, IN_FUNCTION)
        self.assertEqual(name, 'keep_in_function()::kept')
        self.assertEqual(offset, 0)

    def test_referrers_say_these_names(self):
        records = self.record_copy('roots', 'libroots_library.so', is_stripped=False)
        labels = {1002: 'roots .bss: own_roots+0x10', 1004: 'roots TLS of thread 1: thread_root',
                  1006: 'roots TLS of thread 1: own_thread_roots+0x8'}
        for size, label in labels.items():
            text = subprocess.run([ANALYZER, 'referrers', '--address', hex(records.blocks[size]),
                                   str(self.trace)], capture_output=True, text=True,
                                  timeout=PATIENCE).stdout
            self.assertIn(label,
                          [line.strip().split(', word at ')[0] for line in text.splitlines()])

    def test_modules_and_sections_name_roots_of_stripped_programs(self):
        records = self.record_copy('roots', 'libroots_library.so', is_stripped=True)
        for size, (kind, module, _, _) in ROOTS.items():
            with self.subTest(size=size):
                region, found, variables = self.place(records, size)
                self.assertEqual((region.kind, found), (kind, module))
                if kind == MODULE:
                    self.assertEqual((records.strings[region.name], variables), ('.bss', []))

    def test_a_variable_is_named_once(self):
        records = self.record_copy('roots', 'libroots_library.so', is_stripped=False)
        places = [(variable.module, variable.offset) for variable in records.kinds['variable']]
        self.assertEqual(len(places), len(set(places)))


class Classes(Names):
    def assert_classes(self, records, expected):
        self.assertEqual({size: records.class_at(size) for size in expected}, expected)
        self.assertIsNone(records.class_at(NO_CLASS))
        addresses = [found.address for found in records.kinds['class']]
        self.assertEqual(addresses, sorted(set(addresses)))

    def test_classes_name_objects(self):
        records = self.record_copy('objects', 'libobjects_library.so', is_stripped=False)
        self.assert_classes(records, CLASSES)

    def test_classes_name_objects_of_stripped_programs(self):
        records = self.record_copy('objects', 'libobjects_library.so', is_stripped=True)
        self.assert_classes(records, CLASSES)

    def test_reports_group_by_class(self):
        self.record_copy('objects', 'libobjects_library.so', is_stripped=True)
        expected = {'Simple': 2008, 'Multiple': 2120, 'Virtual': 2216,
                    '(anonymous namespace)::Hidden': 2312, 'Filled<2500ul>': 2504,
                    'FromLibrary': 2800}
        for command in ('leaks', 'state', 'diff'):
            found = analyze(command, self.trace, '--by', 'class', '--limit', '0')
            groups = found['aifo']['groups'] if command == 'diff' else found['groups']
            sums = collections.Counter()
            for group in groups:    # of leaks one for each kind
                sums[group['class_name']] += group['bytes']
            self.assertGreaterEqual(sums.pop(None), NO_CLASS, command)
            self.assertEqual(sums, expected, command)

    def test_tables_tell_objects_without_type_info(self):
        records = self.record_copy('objects_without_rtti', 'libobjects_library.so',
                                   is_stripped=True)
        own = {size: '' for size in CLASSES}
        self.assert_classes(records, {**own, 2800: CLASSES[2800]})


if __name__ == '__main__':
    unittest.main()
