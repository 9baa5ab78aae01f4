#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the cost of recordings with the options for recording less. Prints a table.

In each round the native program, and the program recorded with each option, run one after the
other, so that a busy machine disturbs all alike. Times are of the program's processor time, without
the recorder's; medians of the rounds.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile

from record import workloads

OPTIONS = [
    [],
    ['--no-stacks'],
    ['--blocks-only'],
    ['--only-above', '4096'],
    ['--sample', '64K'],
    ['--sample', '512K'],
    ['--max-size', '1'],
]


def program_time(recorder, command):
    """The processor time of the program, as the shell has it that starts it."""
    script = ['bash', '-c', '"$0" "$@" > /dev/null 2>&1; times']
    result = subprocess.run([*recorder, *script, *map(str, command)], check=True, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            env=dict(os.environ, PYTHONMALLOC='malloc'))
    times = [time.split('m') for time in result.stdout.splitlines()[-1].split()]
    return sum(60 * int(minutes) + float(seconds.rstrip('s')) for minutes, seconds in times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', default='build', type=pathlib.Path)
    parser.add_argument('--rounds', default=5, type=int)
    arguments = parser.parse_args()
    recorder = arguments.build / 'recorder' / 'ttdrecord'
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch)
        trace = directory / 'trace.bin'
        for name, command in workloads(directory).items():
            native, recorded, sizes = [], [[] for _ in OPTIONS], [0] * len(OPTIONS)
            for _ in range(arguments.rounds):
                native.append(program_time([], command))
                for i, options in enumerate(OPTIONS):
                    recorded[i].append(program_time(
                        [recorder, '-q', '--no-snapshot', '-o', trace, *options, '--'], command))
                    sizes[i] = sum(file.stat().st_size for file in directory.glob('trace.bin*'))
                    for file in directory.glob('trace.bin*'):
                        file.unlink()
            base = statistics.median(native)
            print(f'{name}: {base:.2f} s of processor time\n')
            for i, options in enumerate(OPTIONS):
                ratio = statistics.median(recorded[i]) / base
                print(f'    {" ".join(options) or "all":20}  {ratio:5.2f}  {sizes[i]:12,} bytes')
            print()


if __name__ == '__main__':
    main()
