#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures what commands cost beside `leaks`, for traces with a snapshot and without it. Prints a
report.

In each round all commands run one after the other, so that a busy machine disturbs them alike. Each
figure is a median of the rounds: processor time, wall time and the largest resident size, the first
two divided by those of `leaks` as well.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile

import record
from usage import Usage, usage_of

COMMANDS = ('leaks', 'summary', 'timeline', 'peak', 'hot', 'moves', 'temporary', 'lifetimes')
WORKLOADS = ('python3, JSON documents', 'clang++, large headers')


def measure(analyzer, trace, rounds):
    """Returns the median usage by command."""
    usages = {command: [] for command in COMMANDS}
    for _ in range(rounds):
        for command, found in usages.items():
            found.append(usage_of([analyzer, command, '--no-index', '--no-pager', trace]))
    return {command: Usage(*map(statistics.median, zip(*found)))
            for command, found in usages.items()}


def report(name, usages):
    leaks = usages['leaks']
    print(f'\n{name}')
    for command, usage in usages.items():
        print(f'  {command:10} {usage.processor * 1e3:6.0f} ms of processors, x '
              f'{usage.processor / leaks.processor:4.2f}; {usage.seconds * 1e3:6.0f} ms, x '
              f'{usage.seconds / leaks.seconds:4.2f}; {usage.resident / 1e6:4.0f} MB')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', type=pathlib.Path, default='build',
                        help='the build directory (release) to measure')
    parser.add_argument('--rounds', type=int, default=9)
    options = parser.parse_args()
    build = options.build.resolve()
    record.print_machine(f'medians of {options.rounds} rounds')
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(temporary)
        commands = record.workloads(directory)
        trace = directory / 'trace.bin'
        for name in WORKLOADS:
            for way, arguments in ('without a snapshot', ['--no-snapshot']), ('with one', []):
                subprocess.run([build / 'recorder' / 'ttdrecord', '--no-children', '-q', *arguments,
                                '-o', trace, '--', *commands[name]], check=True,
                               stdout=subprocess.DEVNULL,
                               env=dict(os.environ, PYTHONMALLOC='malloc'))
                report(f'{name}, {way}',
                       measure(build / 'analyzer' / 'ttdanalyze', trace, options.rounds))


if __name__ == '__main__':
    main()
