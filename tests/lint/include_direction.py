#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who may include whom. Prints each include that goes the wrong way; exits 1 if there is one."""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')

# The shared memory of a recording: all that the recorded program and the collector have in common.
CHANNEL = [f'recorder/channel{part}.h' for part in ('', '_pool', '_record', '_view')]

# The codecs: what several kinds of chunks share, the frame of a chunk, then each kind by itself.
CODEC = ['libtrace/src/base', 'libtrace/src/layout.h', 'libtrace/src/codec/*']

# Headers that stand alone, for all parts of both programs.
EVERYWHERE = ['common/search.h']

# Parts of the analyzer that many others may include.
BELOW_CONTENTS = ('reach', 'graph', 'travel', 'heap', 'base')
ANALYSES = ('analyses', 'contents', *BELOW_CONTENTS)
SECTIONS = ('report/sections', 'report/writers', 'view', 'symbols')

# A part of the tree and the parts that its quoted includes may lead to; with /*, only the files
# directly in that folder. Public headers are included as <ttdtrace/...>, which everyone may.
ALLOWED = {
    'libtrace/src/base': ['libtrace/src/base', 'libtrace/src/layout.h'],
    'libtrace/src/io': ['libtrace/src/base', 'libtrace/src/io'],
    'libtrace/src/codec': CODEC,
    **{'libtrace/src/codec/' + part: CODEC + ['libtrace/src/codec/' + other
                                              for other in (part, *below)]
       for part, *below in (
           ('chunk',), ('events', 'chunk'), ('stacks',), ('heap_state',), ('snapshots',),
       )},
    'libtrace/src/write': ['libtrace/src/base', 'libtrace/src/codec', 'libtrace/src/write',
                           'libtrace/src/layout.h'],
    'libtrace/src/read': ['libtrace/src/base', 'libtrace/src/codec', 'libtrace/src/read',
                          'libtrace/src/layout.h'],
    'libtrace/src/amend': ['libtrace/src/base', 'libtrace/src/codec', 'libtrace/src/read',
                           'libtrace/src/write', 'libtrace/src/layout.h'],
    'libtrace/include': [],
    'common': ['common'],
    **{'analyzer/' + part: ['analyzer/' + other for other in (part, *below)] for part, *below in (
        ('base',),
        ('graph', 'base'),
        ('heap', 'base'),
        ('travel', 'heap', 'base'),
        ('reach', 'graph', 'travel', 'heap', 'base'),
        ('contents', 'reach', 'graph', 'travel', 'heap', 'base'),
        ('analyses/state', 'travel', 'heap', 'base'),
        ('analyses/activity', 'travel', 'heap', 'base'),
        ('analyses/errors', 'analyses/state', *BELOW_CONTENTS),
        ('analyses/reachability', 'analyses/state', *BELOW_CONTENTS),
        ('analyses/memory', 'analyses/state', 'contents', *BELOW_CONTENTS),
        ('analyses/trace', 'travel', 'heap', 'base'),
        ('analyses/chronicle', 'analyses/activity', 'analyses/state', 'travel', 'heap', 'base'),
        ('engine', 'library/handle.h', 'analyses/chronicle', 'analyses/activity', 'analyses/state', 'travel', 'heap',
         'base'),
        ('import', 'base'),
        ('remake', 'travel', 'heap', 'base'),
        ('symbols', 'base'),
        ('view', 'symbols', 'analyses/errors', 'analyses/state', *BELOW_CONTENTS),
        ('library', 'view', 'symbols', 'analyses/activity', 'analyses/reachability',
         'analyses/errors', 'analyses/state', *BELOW_CONTENTS),
        ('report/sections', 'report/writers', 'view', 'symbols', 'analyses/reachability',
         'analyses/errors', 'analyses/state', *BELOW_CONTENTS),
        ('report/reachability', *SECTIONS, 'analyses/reachability', 'analyses/state',
         *BELOW_CONTENTS),
        ('report/state', 'report/reachability', *SECTIONS, 'analyses/state', *BELOW_CONTENTS),
        ('report/activity', *SECTIONS, 'analyses/activity', *BELOW_CONTENTS),
        ('report/errors', *SECTIONS, 'analyses/errors', *BELOW_CONTENTS),
        ('report/memory', 'report/reachability', *SECTIONS, 'analyses/memory',
         'analyses/reachability', *BELOW_CONTENTS),
        ('report/trace', *SECTIONS, 'analyses/trace', *BELOW_CONTENTS),
        ('report/export', *SECTIONS, 'analyses/activity', 'analyses/reachability',
         *BELOW_CONTENTS),
        ('report/page', *SECTIONS, 'analyses/activity', 'analyses/reachability',
         *BELOW_CONTENTS),
        ('report', 'view', 'symbols', *ANALYSES),
        ('query', 'cli', 'report', 'view', 'symbols', *ANALYSES),
        ('commands', 'import', 'remake', 'query', 'cli', 'report', 'view', 'symbols', *ANALYSES),
    )},
    **{'analyzer/cli/' + part: ['analyzer/' + other for other in (
        *('cli/' + folder for folder in (part, *below)), 'report', 'view', 'symbols', *ANALYSES,
    )] + ['common'] for part, *below in (
        ('process',),
        ('traces', 'process'),
        ('options', 'traces', 'process'),
        ('session', 'options', 'traces', 'process'),
        ('page', 'session', 'options', 'traces', 'process'),
    )},
    'analyzer': ['analyzer', 'common'],
    'analyzer/report/writers': ['analyzer/report/writers', 'common'],
    'recorder/preload/system': ['recorder/preload/system', 'recorder/dwarf', *CHANNEL,
                                'recorder/allocator_names.h'],
    **{'recorder/preload/' + part: ['recorder/preload/' + other for other in (part, *below)]
                                   + ['recorder/dwarf', *CHANNEL] for part, *below in (
        ('unwind', 'system'),
        ('channel', 'system'),
        ('end', 'threads', 'channel', 'unwind', 'system'),
    )},
    'recorder/preload/threads': [
        *('recorder/preload/' + part for part in ('threads', 'channel', 'unwind', 'system')),
        'recorder/dwarf', *CHANNEL, 'recorder/attached.h'],
    'recorder/preload/attached': ['recorder/preload', 'recorder/dwarf', *CHANNEL,
                                  'recorder/attached.h'],
    'recorder/preload/process': [
        *('recorder/preload/' + part
          for part in ('process', 'end', 'threads', 'channel', 'unwind', 'system')),
        'recorder/dwarf', *CHANNEL, 'recorder/loader.h'],
    'recorder/arm': ['recorder/arm', *CHANNEL],
    'recorder/session': ['recorder/session', 'recorder/arm',
                         'recorder/arrays.h', 'recorder/subcommands.h', 'recorder/control.h',
                         'recorder/launch.h', 'recorder/messages.h',
                         'recorder/options.h',
                         'common'],
    'recorder/dwarf': ['recorder/dwarf'],
    'recorder/patch': ['recorder/patch'],
    'recorder/attach': ['recorder/attach', 'recorder/snapshot', 'recorder/patch', *CHANNEL,
                        'recorder/allocator_names.h', 'recorder/arrays.h', 'recorder/attached.h',
                        'recorder/messages.h',
                        'recorder/quiet_thread.h'],
    'recorder/preload/hooks': ['recorder/preload', 'recorder/dwarf', 'recorder/patch', *CHANNEL,
                               'recorder/allocator_names.h'],
    'recorder/symbolize': ['recorder/symbolize', 'recorder/arrays.h'],
    **{'recorder/symbolize/' + part: [
        'recorder/arrays.h', *('recorder/symbolize/' + other for other in ('*', part, *below)),
    ] for part, *below in (
        ('image',),
        ('dwarf', 'image'),
        ('wire',),
        ('names', 'wire', 'dwarf', 'image'),
        ('process', 'names', 'wire'),
        ('cache', 'process'),
    )},
    'recorder/snapshot': ['recorder/snapshot', *CHANNEL, 'recorder/arrays.h',
                          'recorder/quiet_thread.h'],
    'recorder/snapshot/stacks': [
        'recorder/dwarf', *CHANNEL,
        *('recorder/snapshot/' + folder for folder in ('*', 'stacks', 'layout')),
    ],
    **{'recorder/snapshot/' + part: [
        *CHANNEL, 'recorder/arrays.h',
        *('recorder/snapshot/' + other for other in ('*', part, *below)),
    ] for part, *below in (
        ('layout',),
        ('stop',),
        ('pages', 'layout'),
        ('search', 'layout'),
    )},
    'recorder/collect/channel': ['recorder/collect/channel', *CHANNEL],
    'recorder/collect/trace': ['recorder/collect/trace', 'recorder/collect/channel',
                               'recorder/snapshot', 'recorder/symbolize', 'recorder/arrays.h',
                               'recorder/quiet_thread.h', 'recorder/messages.h', 'common',
                               'recorder/allocator_names.h'],
    'recorder/collect/process': ['recorder/collect/process', 'recorder/collect/trace',
                                 'recorder/collect/channel', 'recorder/snapshot',
                                 'recorder/arrays.h', 'recorder/control.h', *CHANNEL],
    'recorder/collect': ['recorder/collect', 'recorder/attach/known_blocks.h', 'recorder/snapshot', 'recorder/symbolize', *CHANNEL,
                         'recorder/control.h', 'recorder/messages.h', 'common'],
    'recorder/later': ['recorder/later', 'recorder/symbolize', 'recorder/collect/trace',
                       'recorder/arrays.h', 'recorder/messages.h', 'common'],
    'recorder': ['recorder', 'common'],
    'bench': ['bench', 'analyzer/graph'],
    'tests': ['tests', 'libtrace/src', 'analyzer', 'recorder'],
    # One target a property, whatever the part that has it: each may look inside.
    'fuzz': ['fuzz', 'tests/support', 'libtrace/src', 'analyzer', 'recorder'],
}


def part_of(path):
    parts = [part for part in ALLOWED if path.is_relative_to(part)]
    return max(parts, key=len, default=None)


def may_include(target, allowed):
    return any(target.parent == pathlib.PurePath(path[:-2]) if path.endswith('/*')
               else target.is_relative_to(path) for path in allowed)


def resolve(root, source, name):
    """The included file, relative to the root: beside the source, or below its part's root."""
    for base in (source.parent, *source.parents):
        candidate = (root / base / name).resolve()
        if candidate.is_file() and candidate.is_relative_to(root):
            return candidate.relative_to(root)
    for base in ('libtrace/src', 'analyzer', 'recorder', 'tests'):
        candidate = (root / base / name).resolve()
        if candidate.is_file():
            return candidate.relative_to(root)
    return None


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    checked = wrong = 0
    for part in ('libtrace', 'common', 'analyzer', 'recorder', 'bench', 'tests', 'fuzz'):
        for path in sorted((root / part).rglob('*.[ch]')):
            source = path.relative_to(root)
            allowed = ALLOWED.get(part_of(source))
            if allowed is not None and part != 'libtrace':
                allowed = allowed + EVERYWHERE
            for number, line in enumerate(path.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                if not match or allowed is None:
                    continue
                checked += 1
                target = resolve(root, source, match[1])
                if target is None or not may_include(target, allowed):
                    print(f'{source}:{number}: {part_of(source)} must not include {match[1]}')
                    wrong += 1
    print(f'{checked} includes checked, {wrong} wrong')
    return 1 if wrong or not checked else 0


if __name__ == '__main__':
    sys.exit(main())
