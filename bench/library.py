#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures libttdheap beside ttdanalyze, and how fast Python goes through calls and
columns. Prints a report.

The trace is the one that travel.py generates. Instructions are callgrind's, so that other work of the
machine does not matter; rates are by processor time, the best of some rounds. It needs python3-numpy and a release build
with -Dbench=enabled; run it with the python that has the package's modules: /usr/bin/python3.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

# A question, as the test program heapdump takes it and as a command. Both print the answer as JSON.
QUESTIONS = [
    (['go/50%', 'groups/function'], ['state', '--at', '50%', '--by', 'function', '--limit', '0']),
    (['leaks/stack'], ['leaks', '--show', 'all', '--limit', '0']),
    (['diff/function/25%/75%'], ['diff', '--from', '25%', '--to', '75%', '--by', 'function',
                                 '--limit', '0']),
    (['errors'], ['errors']),
    (['moves'], ['moves']),
]
ROUNDS = 5


def instructions(command):
    """Instructions of a command."""
    made = subprocess.run(['valgrind', '--tool=callgrind', '--callgrind-out-file=/dev/null', *command],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    found = re.search(r'Collected : (\d+)', made.stderr)
    if not found:
        raise SystemExit(f'{command} failed: {made.stderr}')
    return int(found[1])


def best(function):
    """The least processor time of a function, in seconds, and its result."""
    shortest = None
    for _ in range(ROUNDS):
        begin = time.process_time()
        result = function()
        seconds = time.process_time() - begin
        shortest = seconds if shortest is None else min(shortest, seconds)
    return shortest, result


def report_instructions(build, trace):
    print('Instructions, millions:            libttdheap  ttdanalyze  ratio')
    for question, command in QUESTIONS:
        library = instructions([build / 'tests/cli/heapdump', trace, *question])
        program = instructions([build / 'analyzer/ttdanalyze', *command, '--no-index', '--format',
                                'json', trace])
        print(f'  {" ".join(question):32} {library / 1e6:10.1f}  {program / 1e6:10.1f}  '
              f'{library / program:5.2f}')


def report_python(build, trace):
    sys.path.insert(0, str(build / 'python'))
    import numpy
    import ttdtrace

    with ttdtrace.open(trace) as heap:
        def go_through(batch):
            count = size = 0
            for calls in heap.calls(batch=batch):
                count += len(calls)
                size += int(numpy.asarray(calls.column('size')).sum())
            return count, size

        for batch in (1 << 14, 1 << 16, 1 << 18):
            seconds, (count, _) = best(lambda: go_through(batch))
            print(f'Python, {count} calls in batches of {batch}, sizes added up: '
                  f'{count / seconds / 1e6:.1f} M calls/s')
        calls = next(heap.calls(batch=1 << 20))
        seconds, found = best(lambda: int(numpy.asarray(calls.column('size')).sum()))
        copy = numpy.array(calls)
        plain, expected = best(lambda: int(copy['size'].sum()))
        assert found == expected
        print(f'Python, a column of {len(calls)} records: {len(calls) / seconds / 1e6:.0f} M values/s; '
              f'of NumPy\'s own copy: {len(calls) / plain / 1e6:.0f} M values/s')


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', type=pathlib.Path, required=True)
    parser.add_argument('--events', type=int, default=1000000)
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, 'generated.ttd')
        subprocess.run([build / 'bench/generate', str(arguments.events), '10000', trace], check=True,
                       stdout=subprocess.DEVNULL)
        model = re.search(r'model name\s*: (.*)', pathlib.Path('/proc/cpuinfo').read_text())
        print(f'{model[1] if model else "unknown processor"}, {os.cpu_count()} processors; '
              f'{arguments.events} events')
        report_instructions(build, trace)
        report_python(build, trace)


if __name__ == '__main__':
    main()
