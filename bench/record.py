#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the cost of recording, beside heaptrack, and how fast the traces are read. Prints a report.

Every figure is the median of the rounds. In each round the native program, ttdrecord and heaptrack
run one after the other, so that a busy machine disturbs all three alike. Traces are read several
times a round: a reading is short, and the first one waits for the system to provide memory.
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

from usage import usage_of

HERE = pathlib.Path(__file__).resolve().parent
WORKLOADS = HERE / 'workloads'


# Readings of each trace in a round.
READINGS = 3


def workloads(directory):
    """Returns command lines by name."""
    stress = directory / 'stress'
    subprocess.run(['cc', '-O2', '-pthread', '-o', stress, WORKLOADS / 'stress.c'], check=True)
    return {
        'python3, JSON documents': ['/usr/bin/python3', WORKLOADS / 'documents.py'],
        'clang++, large headers': ['clang++', '-std=c++17', '-c', '-o', directory / 'object.o',
                                   WORKLOADS / 'headers.cpp'],
        'two-thread stress': [stress],
    }


def run(command):
    """Returns the wall time in seconds."""
    begin = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env=dict(os.environ, PYTHONMALLOC='malloc'))
    return time.monotonic() - begin


def user_time(command):
    """Returns the processor time in seconds on one core, and the largest resident size in bytes."""
    core = [min(os.sched_getaffinity(0))]
    usage = usage_of(command, stderr=subprocess.DEVNULL,
                     preexec_fn=lambda: os.sched_setaffinity(0, core))
    return usage.processor, usage.resident


def heaptrack_file(stem):
    return next(path for path in stem.parent.glob(stem.name + '*') if path.is_file())


def measure(name, command, tools, rounds, directory):
    trace, peer = directory / 'trace.bin', directory / 'heaptrack'
    # Without the summary at the end, which analyses the trace; the peer has none.
    recorder = [tools['ttdrecord'], '-q']
    times = {'native': [], 'no_snapshot': [], 'ttdrecord': [], 'heaptrack': []}
    for _ in range(rounds):
        times['native'].append(run(command))
        times['no_snapshot'].append(run([*recorder, '--no-snapshot', '-o', trace, '--', *command]))
        times['ttdrecord'].append(run([*recorder, '-o', trace, '--', *command]))
        if tools['heaptrack']:
            for old in directory.glob('heaptrack*'):
                old.unlink()
            times['heaptrack'].append(run([tools['heaptrack'], '-o', peer, *command]))
    info = json.loads(subprocess.check_output([tools['ttdanalyze'], 'info', '--format', 'json',
                                               trace]))
    seconds = {key: statistics.median(value) for key, value in times.items() if value}
    result = {'workload': name, 'events': info['events'], 'lost': info['lost_events'],
              'seconds': seconds, 'bytes_per_event': info['file_bytes'] / info['events']}
    leaks = [user_time([tools['ttdanalyze'], 'leaks', '--no-pager', trace])
             for _ in range(rounds * READINGS)]
    result['leaks_events_per_second'] = info['events'] / statistics.median(s for s, _ in leaks)
    result['leaks_resident'] = max(size for _, size in leaks)
    if tools['heaptrack_print']:
        print_times = [user_time([tools['heaptrack_print'], '-f', heaptrack_file(peer)])[0]
                       for _ in range(rounds * READINGS)]
        result['heaptrack_print_events_per_second'] = (info['events'] /
                                                       statistics.median(print_times))
    return result


BUILD_FILES = 40


def measure_build(tools, rounds, directory):
    """Records many short processes. heaptrack does not follow them, so there is no peer."""
    sources = directory / 'build'
    sources.mkdir()
    for i in range(BUILD_FILES):
        (sources / f'f{i}.c').write_text(f'int f{i}(int x) {{ return x + {i}; }}\n')
    objects = ' '.join(f'f{i}.o' for i in range(BUILD_FILES))
    (sources / 'Makefile').write_text(f'all: {objects}\n%.o: %.c\n\tgcc -O1 -c -o $@ $<\n')
    command = ['make', '-B', '-s', '-j2', '-C', sources]
    times = {'native': [], 'ttdrecord': []}
    for _ in range(rounds):
        for old in directory.glob('build.bin*'):
            old.unlink()
        times['native'].append(run(command))
        times['ttdrecord'].append(run([tools['ttdrecord'], '-q', '-o', directory / 'build.bin', '--',
                                       *command]))
    return {'workload': f'make of {BUILD_FILES} files',
            'processes': len(list(directory.glob('build.bin*'))),
            'seconds': {key: statistics.median(value) for key, value in times.items()}}


def report_build(result):
    native, ours = result['seconds']['native'], result['seconds']['ttdrecord']
    print(f"\n{result['workload']}: {result['processes']} processes")
    print(f'  native             {native:7.2f} s')
    print(f'  ttdrecord          {ours:7.2f} s   + {ours - native:.2f} s, '
          f"{(ours - native) / result['processes'] * 1e3:.0f} ms a process")


def report(result):
    seconds = result['seconds']
    native, ours, without = (seconds[key] for key in ('native', 'ttdrecord', 'no_snapshot'))
    print(f"\n{result['workload']}: {result['events']:,} events, {result['lost']} lost")
    print(f'  native             {native:7.2f} s')
    print(f'  ttdrecord          {ours:7.2f} s   + {ours - native:.2f} s, '
          f"{(ours - native) / result['events'] * 1e9:.0f} ns an event")
    print(f'  --no-snapshot      {without:7.2f} s   + {without - native:.2f} s')
    if 'heaptrack' in seconds:
        peer = seconds['heaptrack']
        print(f'  heaptrack          {peer:7.2f} s   + {peer - native:.2f} s; ttdrecord adds '
              f'{(ours - native) / (peer - native):.2f} of that, '
              f'{(without - native) / (peer - native):.2f} with --no-snapshot')
    print(f"  trace              {result['bytes_per_event']:7.2f} bytes an event")
    print(f"  ttdanalyze leaks   {result['leaks_events_per_second'] / 1e6:7.1f} M events/s on one core, "
          f"{result['leaks_resident'] / 1e6:.0f} MB resident")
    if 'heaptrack_print_events_per_second' in result:
        print(f"  heaptrack_print    {result['heaptrack_print_events_per_second'] / 1e6:7.1f} "
              'M events/s')


def processor():
    for line in pathlib.Path('/proc/cpuinfo').read_text().splitlines():
        if line.startswith('model name'):
            return line.split(':', 1)[1].strip()
    return platform.processor()


def print_machine(method):
    print(f'{processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, '
          f'load {os.getloadavg()[0]:.1f}; {method}')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', default='build', help='the build directory (release) to measure')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--json', action='store_true', help='machine-readable results')
    options = parser.parse_args()
    build = pathlib.Path(options.build).resolve()
    tools = {
        'ttdrecord': build / 'recorder' / 'ttdrecord',
        'ttdanalyze': build / 'analyzer' / 'ttdanalyze',
        'heaptrack': shutil.which('heaptrack'),
        'heaptrack_print': shutil.which('heaptrack_print'),
    }
    if not options.json:
        print_machine(f'median of {options.rounds} rounds')
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(temporary)
        for name, command in workloads(directory).items():
            results.append(measure(name, command, tools, options.rounds, directory))
            if not options.json:
                report(results[-1])
                sys.stdout.flush()
        results.append(measure_build(tools, options.rounds, directory))
        if not options.json:
            report_build(results[-1])
    if options.json:
        json.dump(results, sys.stdout, indent=2)


if __name__ == '__main__':
    main()
