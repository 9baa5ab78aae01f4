#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the time that recording adds to each of many short children, with the snapshot at their end and
without it; with --base also beside another build of the recorder, such as one of an older commit.
Prints a report.

Every figure is the median of the rounds. In each round the native program and all recordings run
one after the other, so that a busy machine disturbs them alike. Processor time is that of the
program, its children and the recorder together. Traces are removed at the end only, since some file
systems take longer to create a file where many were just removed; TMPDIR=/dev/shm leaves the file
system out.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from record import print_machine
from usage import usage_of

HERE = pathlib.Path(__file__).resolve().parent
FILES = 40


def loop(count, child):
    return ['sh', '-c', f'i=0; while [ $i -lt {count} ]; do {child}; i=$((i+1)); done']


def make_build(directory):
    """Writes the sources of a build. Returns the command that builds them."""
    directory.mkdir()
    for i in range(FILES):
        (directory / f'f{i}.c').write_text(f'int f{i}(int x) {{ return x + {i}; }}\n')
    objects = ' '.join(f'f{i}.o' for i in range(FILES))
    (directory / 'Makefile').write_text(f'all: {objects}\n%.o: %.c\n\tgcc -O1 -c -o $@ $<\n')
    return ['make', '-B', '-s', '-j2', '-C', directory]


def make_library(directory):
    """Returns how many files libtrace has, and the command that compiles them."""
    directory.mkdir()
    sources = sorted(path for path in (HERE.parent / 'libtrace' / 'src').rglob('*.c')
                     if 'windows' not in path.name)
    include = ' '.join(f'-I{HERE.parent / "libtrace" / part}' for part in ('include', 'src'))
    rules = [f'{i}.o: {source}\n\tgcc -O2 {include} -c -o $@ $<\n'
             for i, source in enumerate(sources)]
    objects = ' '.join(f'{i}.o' for i in range(len(sources)))
    (directory / 'Makefile').write_text(f'all: {objects}\n' + ''.join(rules))
    return len(sources), ['make', '-B', '-s', '-j2', '-C', directory]


def workloads(directory):
    """Returns by name how many children a command line starts, and the command line."""
    files, library = make_library(directory / 'library')
    return {
        'true': (1000, loop(1000, '/bin/true')),
        'ls': (200, loop(200, '/bin/ls /')),
        'sh': (200, loop(200, '/bin/sh -c "x=1; y=$x"')),
        'make': (3 * FILES, make_build(directory / 'build')),
        'library': (3 * files, library),
    }


def run(command):
    """Returns the seconds of wall time, and of all processors."""
    return usage_of(command, stderr=subprocess.DEVNULL)[:2]


def recorders(options):
    """Returns by name the command lines that record the program behind them."""
    recorder = options.build.resolve() / 'recorder' / 'ttdrecord'
    result = {'ttdrecord': [recorder, '-q'], '--no-snapshot': [recorder, '-q', '--no-snapshot']}
    if options.base is not None:
        result['base'] = [options.base.resolve() / 'recorder' / 'ttdrecord', '-q']
    return result


def measure(command, recorded_by, rounds, directory):
    """Returns the medians of wall and processor time, by name."""
    times = {name: [] for name in ('native', *recorded_by)}
    for _ in range(rounds):
        times['native'].append(run(command))
        for name, recorder in recorded_by.items():
            traces = pathlib.Path(tempfile.mkdtemp(dir=directory))
            times[name].append(run([*recorder, '-q', '-o', traces / 'trace.bin', '--', *command]))
    return {name: [statistics.median(column) for column in zip(*pairs)]
            for name, pairs in times.items()}


def added(result, name):
    """Returns the milliseconds of wall and processor time that recording adds to a child."""
    return [(with_it - without) / result['children'] * 1e3
            for with_it, without in zip(result['seconds'][name], result['seconds']['native'])]


def report(name, result):
    native = [seconds / result['children'] * 1e3 for seconds in result['seconds']['native']]
    print(f"\n{name}: {result['children']} children; milliseconds of each, wall and processor")
    print(f'  native         {native[0]:7.2f} {native[1]:7.2f}')
    for recorder in result['seconds']:
        if recorder == 'native':
            continue
        wall, processor = added(result, recorder)
        line = f'  {recorder:14s}+{wall:6.2f} +{processor:6.2f}'
        if 'base' in result['seconds'] and recorder != 'base':
            base = added(result, 'base')
            line += f'    {wall / base[0]:.2f} and {processor / base[1]:.2f} of what the base adds'
        print(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', type=pathlib.Path, default='build',
                        help='the build directory (release) to measure')
    parser.add_argument('--base', type=pathlib.Path, help='another build, to compare with')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--json', action='store_true', help='machine-readable results')
    parser.add_argument('names', nargs='*', metavar='WORKLOAD', help='true, ls, sh, make, library; or all')
    options = parser.parse_args()
    if not options.json:
        print_machine(f'median of {options.rounds} rounds')
    results = {}
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(temporary)
        for name, (children, command) in workloads(directory).items():
            if options.names and name not in options.names:
                continue
            seconds = measure(command, recorders(options), options.rounds, directory)
            results[name] = {'children': children, 'seconds': seconds}
            if not options.json:
                report(name, results[name])
                sys.stdout.flush()
    if options.json:
        json.dump(results, sys.stdout, indent=2)


if __name__ == '__main__':
    main()
