# SPDX-License-Identifier: MIT
"""The records of a trace that snapshots consist of, as the second reader of the format has them."""

import os
import pathlib
import subprocess
import sys

from support import PATIENCE, analyze

READER = pathlib.Path(os.environ['SOURCES']).parent.parent / 'reader/ttdtrace_reader.py'
MODULE, TLS = 2, 5
THREAD_LOCAL = 1 << 63


class Fields(dict):
    """The fields of a record: numbers."""
    __getattr__ = dict.__getitem__


def fields(words):
    pairs = (word.partition('=') for word in words)
    return Fields({key: int(value, 16) for key, _, value in pairs
                   if value and all(digit in '0123456789abcdef' for digit in value)})


class Records:
    def __init__(self, trace):
        result = subprocess.run([sys.executable, '-B', READER, trace], capture_output=True,
                                text=True, timeout=PATIENCE, check=True)
        self.strings = {0: ''}
        self.modules = {}
        self.kinds = {kind: [] for kind in ('snapshot', 'region', 'reference', 'variable', 'class')}
        for line in result.stdout.splitlines():
            kind, *words = line.split()
            if kind == 'string':
                number, text = (word.partition('=')[2] for word in words)
                self.strings[int(number, 16)] = bytes.fromhex(text).decode() if text != '-' else ''
            elif kind == 'module' and 'action=1' in words:
                module = fields(words)
                self.modules[module.id] = module
            elif kind in self.kinds:
                self.kinds[kind].append(fields(words))
        self.blocks = {event['size']: int(event['address'], 16)
                       for event in analyze('events', trace) if event.get('address')}

    def words_to(self, size):
        """The words that hold the address of the block of this size: regions and offsets."""
        return [(self.kinds['region'][word.region - 1], word.offset)
                for word in self.kinds['reference'] if word.value == self.blocks[size]]

    def variables_at(self, region, offset):
        """Names of the variables that hold a word of a module's data, each with the offset there."""
        offset += region.begin - self.modules[region.module].bias if region.kind == MODULE else THREAD_LOCAL
        return [(self.strings[variable.name], offset - variable.offset)
                for variable in self.kinds['variable']
                if variable.module == region.module and
                0 <= offset - variable.offset < variable.size]

    def class_at(self, size):
        """The name of the class that the block of this size begins with: '' without RTTI, None if it
        begins with none."""
        classes = {found.address: self.strings[found.name] for found in self.kinds['class']}
        at = self.blocks[size]
        for word in self.kinds['reference']:
            if self.kinds['region'][word.region - 1].begin + word.offset == at:
                return classes.get(word.value)
        return None
