#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The library and the second reader say the same of every file: vectors, generated traces, and both
with damage. test_reader.py VECTORS MAKE_TRACE DUMPTRACE"""

import pathlib
import random
import subprocess
import sys
import tempfile

from ttdtrace_reader import Reader

GENERATED = 12
DAMAGED = 250


def dump(program, paths, tolerant):
    """The library's answer, per file: lines and how it ended."""
    command = [program, *(['-t'] if tolerant else []), *paths, '/dev/null']
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    results = {}
    for part in output.split('# ')[1:]:
        path, *lines = part.splitlines()
        results[path] = lines[:-1], lines[-1]
    return results


def compare(path, library, tolerant):
    """The first difference; None without one."""
    lines, status, offset = Reader(path.read_bytes(), tolerant).read()
    ending = f'= {status}' + (f' {offset}' if status not in ('end', 'not a trace') else '')
    theirs, their_ending = library
    if tolerant:
        ending, their_ending = ending.split()[1], their_ending.split()[1]
    # The library gives events of a chunk before it knows that a later one is wrong.
    more = theirs[len(lines):]
    if ending != their_ending:
        return f'{ending} but {their_ending}'
    for mine, their in zip(lines, theirs):
        if mine != their:
            return f'{mine}\n but {their}'
    if len(theirs) < len(lines) or (more and (tolerant or 'corrupt' not in ending or
                                              not all(s.startswith('event ') for s in more))):
        return f'{len(lines)} records but {len(theirs)}'
    return None


def damaged(paths, directory):
    """Copies with a few bytes changed, a piece cut out, or the end missing."""
    chance = random.Random(1)
    for number in range(DAMAGED):
        data = bytearray(chance.choice(paths).read_bytes())
        if not data:
            continue
        kind = number % 3
        if kind == 0:
            for _ in range(chance.randrange(1, 4)):
                data[chance.randrange(len(data))] ^= chance.randrange(1, 256)
        elif kind == 1:
            begin = chance.randrange(len(data))
            del data[begin:begin + 8 * chance.randrange(1, 40)]
        else:
            del data[chance.randrange(len(data)):]
        path = directory / f'damaged-{number}.trace'
        path.write_bytes(data)
        yield path


def main():
    vectors, make_trace, dumptrace = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        paths = sorted(pathlib.Path(vectors).glob('*.trace'))
        for seed in range(GENERATED):
            path = directory / f'generated-{seed}.trace'
            subprocess.run([make_trace, str(seed), path], check=True)
            paths.append(path)
        good = [path for path in paths if not path.name.startswith('bad')]
        paths += damaged(good, directory)
        problems = 0
        for tolerant in (False, True):
            library = dump(dumptrace, [str(path) for path in paths], tolerant)
            for path in paths:
                problem = compare(path, library[str(path)], tolerant)
                if problem:
                    problems += 1
                    print(f'{path.name}{" tolerant" if tolerant else ""}: {problem}')
        print(f'{2 * len(paths)} readings, {problems} different')
        return 1 if problems or len(paths) < 100 else 0


if __name__ == '__main__':
    sys.exit(main())
