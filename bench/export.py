#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures how fast `export` and `query` write each format, in events a second of processor time,
beside `verify`, which reads the same trace and writes nothing. Prints a report.

The trace is generated: see travel.py. Each format is written in each round, one after the other, so
that a busy machine disturbs all alike.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

from usage import usage_of

FORMATS = ('folded', 'svg', 'pprof', 'speedscope', 'firefox', 'callgrind', 'massif', 'heaptrack',
           'chrome', 'csv', 'jsonl', 'sqlite')

# Rows of a table of `query`, by the end of the file's name.
TABLES = {'events.jsonl': 'SELECT * FROM events', 'events.csv': 'SELECT * FROM events',
          'events.db': 'SELECT * FROM events'}


def commands(analyzer, trace, folder):
    """The command that writes each format, and the file that it writes."""
    found = {'verify': ([analyzer, 'verify', trace], None)}
    for name in FORMATS:
        output = os.path.join(folder, name)
        found[name] = [analyzer, 'export', '--no-index', '-o', output, name, trace], output
    for name, sql in TABLES.items():
        output = os.path.join(folder, name)
        form = ['-f', 'csv'] if name.endswith('.csv') else []
        found[name] = [analyzer, 'query', *form, '-o', output, sql, trace], output
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', default='build', type=pathlib.Path)
    parser.add_argument('--rounds', default=3, type=int)
    parser.add_argument('--events', default=5000000, type=int)
    parser.add_argument('--json', action='store_true')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, 'generated.ttd')
        subprocess.run([options.build / 'bench/generate', str(options.events), '100000', trace],
                       check=True)
        measured = commands(options.build / 'analyzer/ttdanalyze', trace, folder)
        runs = {name: [] for name in measured}
        for _ in range(options.rounds):
            for name, (command, output) in measured.items():
                # Replacing a file of a gigabyte takes longer than writing one.
                if output and os.path.exists(output):
                    os.unlink(output)
                runs[name].append(usage_of(command))
        result = {}
        for name, (_, output) in measured.items():
            seconds = statistics.median(usage.processor for usage in runs[name])
            result[name] = {'events_per_second': round(options.events / seconds),
                            'resident_bytes': max(usage.resident for usage in runs[name]),
                            'file_bytes': os.path.getsize(output) if output else 0}
    if options.json:
        print(json.dumps(result, indent=2))
        return
    print(f'{"":14}{"M events/s":>12}{"MB resident":>13}{"MB written":>12}')
    for name, numbers in result.items():
        print(f'{name:14}{numbers["events_per_second"] / 1e6:12.2f}'
              f'{numbers["resident_bytes"] / 1e6:13.0f}{numbers["file_bytes"] / 1e6:12.1f}')


if __name__ == '__main__':
    main()
