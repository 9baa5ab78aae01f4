# SPDX-License-Identifier: MIT
"""The answers of table.txt, and how ttdanalyze, memcheck and LeakSanitizer answer for a case."""

import json
import os
import pathlib
import re
import subprocess
import tempfile

# Parts of what is still reachable.
SHADES = ('held_by_stack', 'held_by_stale')
CLASSES = ('definitely_lost', 'indirectly_lost', 'possibly_lost', 'still_reachable')
LEVELS = ('O0', 'O2')
PATIENCE = int(os.environ.get('PATIENCE', 120))
# Both tools add variables to the environment, which blocks of the C library depend on.
ENVIRONMENT = {'PATH': os.environ['PATH']}


class Case:
    """One line of the table, and those below it."""

    def __init__(self, program, name, expected, base):
        self.program, self.name, self.base = program, name, base
        self.is_child = name.endswith('_child')
        self.expected = {'us': expected}
        self.shades = dict.fromkeys(SHADES, (0, 0))
        self.reasons = {}

    def __str__(self):
        return f'{self.program} {self.name}'

    def answer_of(self, tool):
        """Pairs of blocks and bytes, each None where anything is right: the four classes, and our
        shades."""
        pairs = self.expected.get(tool, self.expected['us'])
        return pairs + list(self.shades.values()) if tool == 'us' else pairs


def parse_pair(text):
    if text == '-':
        return (0, 0)
    return tuple(None if part == '*' else int(part) for part in text.split('/')) \
        if '/' in text else (None, None)


def parse_table(path):
    """Returns the cases by program and name, in the order of the file."""
    cases, program, case, tool = {}, None, None, None
    for number, line in enumerate(path.read_text(encoding='utf-8').splitlines(), 1):
        indent, words = len(line) - len(line.lstrip()), line.split()
        if not words or line.startswith('#'):
            continue
        if indent == 0:
            (program,) = words
        elif indent == 2:
            name, pairs, rest = words[0], words[1:5], words[5:]
            assert len(pairs) == 4 and rest[:1] in ([], ['after']), f'line {number}'
            case = Case(program, name, [parse_pair(pair) for pair in pairs], (*rest, None, None)[1])
            cases[program, name] = case
        elif words[0] in SHADES:
            case.shades[words[0]] = parse_pair(words[1])
        elif words[0] == '#':
            case.reasons[tool] = case.reasons.get(tool, '') + ' '.join(words[1:]) + ' '
        else:
            tool, pairs = words[0], words[1:]
            assert indent == 4 and len(pairs) == 4, f'line {number}'
            case.expected[tool] = [parse_pair(pair) for pair in pairs]
    for case in cases.values():
        assert case.base is None or (case.program, case.base) in cases, f'{case}: no {case.base}'
        assert set(case.reasons) == set(case.expected) - {'us'}, f'{case}: no reason'
    return cases


def difference(pairs, base):
    return [(blocks - base_blocks, size - base_size)
            for (blocks, size), (base_blocks, base_size) in zip(pairs, base)]


def is_as(pairs, expected):
    return all(value == wanted or wanted is None
               for pair, wanted_pair in zip(pairs, expected)
               for value, wanted in zip(pair, wanted_pair))


def is_open(expected):
    """Any answer is right, so there is no use in asking."""
    return expected[:4] == 4 * [(None, None)]


def text_of(pairs):
    """As in the table."""
    return '  '.join('-' if tuple(pair) == (0, 0) else
                     '/'.join('*' if value is None else str(value) for value in pair)
                     for pair in pairs)


def variables(command):
    """The environment that a program sees."""
    output = subprocess.run([*command, 'env', '-0'], env=ENVIRONMENT, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, timeout=PATIENCE, check=True, text=True)
    return dict(line.split('=', 1) for line in output.stdout.split('\0') if line)


def equal_environments(tools):
    """Variables for each tool, so that programs see as many of the same lengths.

    Both preload a library. The shorter list of them gets empty names, which the loader passes over:
    any library there would come before the allocator that a program is linked to.
    """
    found = {'us': variables([tools['TTDRECORD'], '-q', '-o', '/dev/null', '--']),
             'memcheck': variables(['valgrind', '-q'])}
    added = {}
    for tool, other in (('us', 'memcheck'), ('memcheck', 'us')):
        added[tool] = {name: value for name, value in found[other].items()
                       if name not in found[tool]}
        missing = len(found[other]['LD_PRELOAD']) - len(found[tool]['LD_PRELOAD'])
        if missing > 0:
            added[tool]['LD_PRELOAD'] = ':' * (missing - 1)
    return added


def numbers(texts):
    return [int(text.replace(',', '')) for text in texts]


def read_classes(trace, tools, *options):
    """Returns the report about a trace, and the four classes and the shades that it has."""
    found = subprocess.run([tools['TTDANALYZE'], 'leaks', '--format', 'json', *options, trace],
                           capture_output=True, text=True, timeout=PATIENCE, check=False)
    leaks = json.loads(found.stdout) if found.stdout else {}
    snapshot, classes = leaks.get('snapshot'), leaks.get('classes')
    if classes is None or not leaks['certain'] or not snapshot['complete']:
        raise AssertionError(f'no certain classes: {leaks.get("reasons")} {snapshot} '
                             f'{found.stderr}')
    pairs = [(classes[name]['blocks'], classes[name]['bytes']) for name in CLASSES + SHADES]
    # To memcheck what the runtimes keep is reachable like anything else.
    pairs[3] = (pairs[3][0] + leaks['runtime_blocks'], pairs[3][1] + leaks['runtime_bytes'])
    return leaks, pairs


def recorded(command, tools, environment=ENVIRONMENT, is_child=False, **others):
    """The classes and shades by ttdanalyze's account; of the process that the command forks if is_child."""
    with tempfile.TemporaryDirectory() as directory:
        trace = pathlib.Path(directory) / 'trace.bin'
        result = subprocess.run([tools['TTDRECORD'], '-q', '-o', trace, '--', *command],
                                env=environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                errors='replace', timeout=PATIENCE, check=False, **others)
        if is_child:
            (trace,) = set(trace.parent.iterdir()) - {trace}
        try:
            return read_classes(trace, tools, '--limit', '1')[1]
        except AssertionError as problem:
            raise AssertionError(f'{problem}{result.stderr}') from problem


def memcheck(command, environment=ENVIRONMENT, is_child=False, **others):
    """The four classes by memcheck's account; of the process that the command forks if is_child."""
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(['valgrind', '--leak-check=full', '--show-leak-kinds=all',
                        '--run-libc-freeres=no', '--run-cxx-freeres=no', '--default-suppressions=no',
                        f'--log-file={directory}/%p', *map(str, command)],
                       env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=PATIENCE, check=False, **others)
        # Of several, the first to end is the child.
        logs = sorted(pathlib.Path(directory).iterdir(), key=lambda log: log.stat().st_mtime_ns)
        return parse_log(logs[0 if is_child else -1].read_text(encoding='utf-8',
                                                               errors='replace'))


def parse_log(text):
    """The four classes that a log of memcheck has."""
    if 'All heap blocks were freed' in text:
        return [(0, 0)] * 4
    pairs = []
    for name in CLASSES:
        found = re.search(name.replace('_', ' ') + r': ([\d,]+) bytes in ([\d,]+) blocks', text)
        if found is None:
            raise AssertionError(f'memcheck says nothing: {text}')
        size, blocks = numbers(found.groups())
        pairs.append((blocks, size))
    return pairs


def lsan(command, library, environment=ENVIRONMENT, **others):
    """The losses by LeakSanitizer's account, as if all were definite."""
    result = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=PATIENCE,
                            env={**environment, 'LD_PRELOAD': library}, check=False, text=True,
                            errors='replace', **others)
    if 'has encountered a fatal error' in result.stderr:
        raise AssertionError(f'LeakSanitizer does not work here: {command}\n{result.stderr}')
    found = re.search(r'SUMMARY: LeakSanitizer: (\d+) byte\(s\) leaked in (\d+) allocation',
                      result.stderr)
    size, blocks = numbers(found.groups()) if found else (0, 0)
    return [(blocks, size), *3 * [(0, 0)]]


def all_lost(pairs):
    """The same of an answer in four classes."""
    counts = [None if None in column else sum(column) for column in zip(*pairs[:2])]
    return [tuple(counts), *3 * [(0, 0)]]
