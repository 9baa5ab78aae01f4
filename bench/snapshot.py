#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the snapshot of references at the end of a program: the time of a recording
with it and without, how long the program is held, and how fast `ttdanalyze leaks` classifies by it.
With --memcheck also how long memcheck takes for the same program and question. Then takes snapshots
of programs with large heaps that go on. Prints a report.

Each figure is the median of the rounds. In each round the recordings run one after the other, so
that a busy machine disturbs them alike.
"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import large_heap
from usage import usage_of

HERE = pathlib.Path(__file__).resolve().parent
WORKLOADS = HERE / 'workloads'
KEYS = 1000000
BLOCKS = 1000000
LARGE = (1000, 4000)  # megabytes


def workloads(directory):
    """Command lines by name."""
    result = {
        'python3, JSON documents': ['/usr/bin/python3', WORKLOADS / 'documents.py'],
        'clang++, large headers': ['clang++', '-std=c++17', '-c', '-o', directory / 'object.o',
                                   WORKLOADS / 'headers.cpp'],
    }
    entries = directory / 'entries'
    subprocess.run(['cc', '-O2', '-o', entries, WORKLOADS / 'entries.c'], check=True)
    result[f'{BLOCKS:,} blocks'] = [entries, str(BLOCKS)]
    if shutil.which('redis-server'):
        result[f'redis, {KEYS:,} keys'] = [WORKLOADS / 'redis.sh', directory, str(KEYS)]
    return result


def run(command):
    """Wall time in seconds."""
    begin = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env=dict(os.environ, PYTHONMALLOC='malloc'))
    return time.monotonic() - begin


def largest_trace(directory):
    """The trace of the workload's program itself, which may be a child."""
    return max(directory.glob('trace.bin*'), key=lambda path: path.stat().st_size)


def record(tools, command, directory, *options):
    for old in directory.glob('trace.bin*'):
        old.unlink()
    return run([tools['ttdrecord'], '-q', *options, '-o', directory / 'trace.bin', '--', *command])


def ask(tools, *question):
    return json.loads(subprocess.check_output([tools['ttdanalyze'], *question]))


def reading(tools, trace, *options):
    """Seconds and bytes resident of a report."""
    usage = usage_of([tools['ttdanalyze'], 'leaks', *options, trace])
    return usage.processor, usage.resident


def measure(name, command, tools, rounds, directory):
    times = {'native': [], 'without': [], 'with': []}
    held, sizes = [], {}
    for _ in range(rounds):
        times['native'].append(run(command))
        times['without'].append(record(tools, command, directory, '--no-snapshot'))
        sizes['without'] = largest_trace(directory).stat().st_size
        times['with'].append(record(tools, command, directory))
        trace = largest_trace(directory)
        sizes['with'] = trace.stat().st_size
        snapshots = ask(tools, 'snapshots', '--format', 'json', trace)['snapshots']
        held.append(snapshots[-1]['held_ns'] / 1e9)
    classes = ask(tools, 'leaks', '--format', 'json', '--limit', '1', trace)
    readings = [reading(tools, trace) for _ in range(rounds)]
    result = {'workload': name, 'sizes': sizes, 'held': statistics.median(held),
              'seconds': {key: statistics.median(value) for key, value in times.items()},
              'snapshot': classes['snapshot'], 'classes': classes['classes'],
              'leaks_seconds': statistics.median(seconds for seconds, _ in readings),
              'leaks_resident': max(size for _, size in readings)}
    if tools['valgrind']:
        result['memcheck_seconds'] = run([tools['valgrind'], '--quiet', '--leak-check=full',
                                          '--trace-children=yes', *command])
    return result


def report(result):
    seconds, sizes = result['seconds'], result['sizes']
    added = seconds['with'] / seconds['without'] - 1
    print(f"\n{result['workload']}")
    print(f"  native                {seconds['native']:7.2f} s")
    print(f"  ttdrecord, without    {seconds['without']:7.2f} s   {sizes['without'] / 1e6:.1f} MB")
    print(f"  ttdrecord             {seconds['with']:7.2f} s   {sizes['with'] / 1e6:.1f} MB; the "
          f"snapshot adds {added:+.1%}, and holds the program for {result['held'] * 1e3:.0f} ms")
    print(f"  ttdanalyze leaks      {result['leaks_seconds']:7.2f} s on one core, "
          f"{result['leaks_resident'] / 1e6:.0f} MB resident")
    if 'memcheck_seconds' in result:
        print(f"  memcheck              {result['memcheck_seconds']:7.2f} s")
    for name, amount in result['classes'].items():
        if amount['blocks']:
            print(f"    {name.replace('_', ' '):28} {amount['blocks']:12,} blocks "
                  f"{amount['bytes']:15,} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', default='build', type=pathlib.Path)
    parser.add_argument('--rounds', default=5, type=int)
    parser.add_argument('--memcheck', action='store_true')
    parser.add_argument('--only', help='workloads whose name has this text')
    options = parser.parse_args()
    build = options.build.resolve()
    tools = {'ttdrecord': build / 'recorder/ttdrecord', 'ttdanalyze': build / 'analyzer/ttdanalyze',
             'valgrind': shutil.which('valgrind') if options.memcheck else None}
    for name in ('ttdrecord', 'ttdanalyze'):
        if not tools[name].exists():
            sys.exit(f'{tools[name]} does not exist: see --build')
    print(f'{platform.system()} {platform.release()}, {os.cpu_count()} processors; median of '
          f'{options.rounds} rounds')
    with tempfile.TemporaryDirectory(dir='/dev/shm') as directory:
        directory = pathlib.Path(directory)
        for name, command in workloads(directory).items():
            if not options.only or options.only in name:
                report(measure(name, command, tools, options.rounds, directory))
        for megabytes in LARGE:
            if not options.only or options.only in f'large heap, {megabytes} MB':
                large_heap.report(tools, directory, megabytes)


if __name__ == '__main__':
    main()
