#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures how fast any position of a trace is reached, and how fast a command goes through a whole
trace. Prints a report.

One trace is generated, one is recorded of a real program: Python, with malloc for its own objects.
All times are wall time of the whole command, with the trace in the page cache.
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

import record
from usage import usage_of

POSITIONS = 21

# Commands without and with an index, by options. At the end of a trace `leaks` uses none.
PLAIN = {'plain': ['--no-index']}
BOTH = PLAIN | {'indexed': []}
HOWS = {'leaks': PLAIN, 'peak': BOTH, 'diff': BOTH}


def rate(events, runs):
    """Returns events a second, for the median time of results of usage_of()."""
    return events / statistics.median(seconds for seconds, *_ in runs)


def largest(runs):
    return max(usage.resident for usage in runs)


def measure_states(analyzer, trace):
    """Returns the wall times of going to random positions, and the largest resident size."""
    runs = []
    for _ in range(POSITIONS):
        position = f'{random.uniform(0, 100):.4f}%'
        runs.append(usage_of([analyzer, 'state', '--at', position, '--format', 'json', trace]))
    return [seconds for seconds, *_ in runs], largest(runs)


def travel(name, analyzer, trace, rounds):
    info = json.loads(subprocess.check_output([analyzer, 'info', '--format', 'json', trace]))
    events = info['events']
    peak = json.loads(subprocess.check_output([analyzer, 'peak', '--no-index', '--format', 'json',
                                               trace]))
    result = {'trace': name, 'events': events, 'trace_bytes': info['file_bytes'],
              'peak_blocks': peak['live_blocks']}
    runs = [usage_of([analyzer, 'index', trace]) for _ in range(rounds)]
    result |= {'index_events_per_second': rate(events, runs), 'index_resident': largest(runs),
               'index_bytes': pathlib.Path(f'{trace}.idx').stat().st_size}
    times, resident = measure_states(analyzer, trace)
    result |= {'state_median': statistics.median(times), 'state_worst': max(times),
               'state_resident': resident}
    for command in (['leaks'], ['peak'], ['diff', '--from', '25%', '--to', '75%']):
        for how, options in HOWS[command[0]].items():
            runs = [usage_of([analyzer, *command, *options, '--no-pager', trace])
                    for _ in range(rounds)]
            result[f'{command[0]}_{how}_events_per_second'] = rate(events, runs)
            result[f'{command[0]}_{how}_resident'] = largest(runs)
    page = pathlib.Path(f'{trace}.html')
    runs = [usage_of([analyzer, 'report', '-o', page, trace]) for _ in range(rounds)]
    result |= {'report_events_per_second': rate(events, runs), 'report_resident': largest(runs),
               'report_bytes': page.stat().st_size}
    page.unlink()
    return result


def report(result):
    print(f"\n{result['trace']}: {result['events']:,} events, {result['trace_bytes'] / 1e6:.0f} MB, "
          f"up to {result['peak_blocks']:,} live blocks")
    print(f"  index   {result['index_events_per_second'] / 1e6:6.1f} M events/s, "
          f"{result['index_bytes'] / 1e6:.0f} MB, {result['index_resident'] / 1e6:.0f} MB resident")
    print(f"  state   {result['state_median'] * 1e3:6.0f} ms at the median, "
          f"{result['state_worst'] * 1e3:.0f} ms at worst, of {POSITIONS} positions; "
          f"{result['state_resident'] / 1e6:.0f} MB resident")
    for command, hows in HOWS.items():
        rates = {how: result[f'{command}_{how}_events_per_second'] / 1e6 for how in hows}
        with_index = f", with the index {rates['indexed']:.1f} M" if 'indexed' in rates else ''
        resident = max(result[f'{command}_{how}_resident'] for how in hows)
        print(f"  {command:7} {rates['plain']:6.1f} M events/s{with_index}, "
              f'{resident / 1e6:.0f} MB resident')
    print(f"  report  {result['report_events_per_second'] / 1e6:6.1f} M events/s, "
          f"a page of {result['report_bytes'] / 1e3:.0f} kB, "
          f"{result['report_resident'] / 1e6:.0f} MB resident")


def traces(build, directory, options):
    """Makes the traces, one after the other, because they are large."""
    generated = directory / 'generated.bin'
    subprocess.run([build / 'bench' / 'generate', str(options.events), str(options.live),
                    generated], check=True)
    yield 'generated', generated
    generated.unlink()
    recorded = directory / 'python.bin'
    subprocess.run([build / 'recorder' / 'ttdrecord', '--no-children', '-q', '-o', recorded, '--',
                    '/usr/bin/python3', record.WORKLOADS / 'documents.py', '240'], check=True,
                   stdout=subprocess.DEVNULL, env=dict(os.environ, PYTHONMALLOC='malloc'))
    yield 'python3, JSON documents', recorded


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', default='build', help='the build directory (release) to measure')
    parser.add_argument('--events', type=int, default=100000000, help='events of the generated trace')
    parser.add_argument('--live', type=int, default=1000000, help='live blocks of the generated trace')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--json', action='store_true', help='machine-readable results')
    options = parser.parse_args()
    build = pathlib.Path(options.build).resolve()
    random.seed(1)
    if not options.json:
        record.print_machine(f'median of {options.rounds} rounds')
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        for name, trace in traces(build, pathlib.Path(temporary), options):
            results.append(travel(name, build / 'analyzer' / 'ttdanalyze', trace, options.rounds))
            if not options.json:
                report(results[-1])
                sys.stdout.flush()
    if options.json:
        json.dump(results, sys.stdout, indent=2)


if __name__ == '__main__':
    main()
