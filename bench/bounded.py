#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the cost of recordings with the options for recording less. Prints a table.

In each round the native program, and the program recorded with each option, run one after the
other, so that a busy machine disturbs all alike; and so does the same program with next to nothing
to do. Columns are medians of the rounds, of processor time:

    program  the program's, beside its native time
    work     the same without the start: of what the program does once it has begun
    start    milliseconds that the recording adds to the program that has nothing to do
    all      of all processes, the recorder's as well, beside the native time of the program
    added    of all processes, the time added, as a part of what full recording adds
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile

from record import WORKLOADS, workloads

OPTIONS = [
    [],
    ['--no-stacks'],
    ['--blocks-only'],
    ['--only-above', '4096'],
    ['--sample', '64K'],
    ['--sample', '512K'],
    ['--max-size', '1'],
]


def starts(directory):
    """Returns command lines by name: the workloads with nothing to do."""
    idle, empty = directory / 'idle', directory / 'empty.cpp'
    subprocess.run(['cc', '-O2', '-pthread', '-DROUNDS=0', '-o', idle, WORKLOADS / 'stress.c'],
                   check=True)
    empty.write_text('int main() {}\n')
    return {
        'python3, JSON documents': ['/usr/bin/python3', WORKLOADS / 'documents.py', '0'],
        'clang++, large headers': ['clang++', '-std=c++17', '-c', '-o', directory / 'object.o',
                                   empty],
        'two-thread stress': [idle],
    }


def longer(commands, directory, times):
    """Has the workloads that can do so do their work so many times."""
    stress = directory / 'longer'
    subprocess.run(['cc', '-O2', '-pthread', f'-DROUNDS={3000000 * times}', '-o', stress,
                    WORKLOADS / 'stress.c'], check=True)
    return {**commands, 'two-thread stress': [stress],
            'python3, JSON documents': [*commands['python3, JSON documents'], str(60 * times)]}


def processor_times(recorder, command):
    """Returns the processor time of the program, as the shell has it that starts it, and of all
    processes."""
    script = ['bash', '-c', '"$0" "$@" > /dev/null 2>&1; times']
    with subprocess.Popen([*recorder, *script, *map(str, command)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          env=dict(os.environ, PYTHONMALLOC='malloc')) as process:
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f'{command} failed')
    words = [word.split('m') for word in output.splitlines()[-1].split()]
    program = sum(60 * int(minutes) + float(seconds.rstrip('s')) for minutes, seconds in words)
    return program, usage.ru_utime + usage.ru_stime


def traces(trace):
    return trace.parent.glob(trace.name + '*')


def measure(recorder, command, trace, rounds):
    """Returns the times of native runs, those with each option, and the sizes of the traces."""
    native, recorded, sizes = [], [[] for _ in OPTIONS], [0] * len(OPTIONS)
    for _ in range(rounds):
        native.append(processor_times([], command))
        for i, options in enumerate(OPTIONS):
            recorded[i].append(processor_times(
                [recorder, '-q', '--no-snapshot', '-o', trace, *options, '--'], command))
            sizes[i] = sum(file.stat().st_size for file in traces(trace))
            for file in traces(trace):
                file.unlink()
    return native, recorded, sizes


def median(times, which):
    return statistics.median(time[which] for time in times)


def report(name, whole, start):
    program, everything = 0, 1
    native, recorded, sizes = whole
    base, base_start = median(native, program), median(start[0], program)
    full = median(recorded[0], everything) - median(native, everything)
    print(f'{name}: {base:.2f} s of processor time, {base_start:.3f} s to start\n')
    print(f'    {"":20}  program   work  start    all  added         bytes')
    for i, options in enumerate(OPTIONS):
        of_program, of_start = median(recorded[i], program), median(start[1][i], program)
        of_all = median(recorded[i], everything)
        print(f'    {" ".join(options) or "all":20}  {of_program / base:7.2f} '
              f'{(of_program - of_start) / (base - base_start):6.2f} '
              f'{1000 * (of_start - base_start):6.1f} {of_all / base:6.2f} '
              f'{(of_all - median(native, everything)) / full:6.2f} {sizes[i]:13,}')
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', default='build', type=pathlib.Path)
    parser.add_argument('--rounds', default=5, type=int)
    parser.add_argument('--times', default=1, type=int,
                        help='have Python and the two threads do their work so many times')
    arguments = parser.parse_args()
    recorder = arguments.build / 'recorder' / 'ttdrecord'
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch)
        commands, idle = workloads(directory), starts(directory)
        if arguments.times > 1:
            commands = longer(commands, directory, arguments.times)
        for name, command in commands.items():
            start = measure(recorder, idle[name], directory / 'trace.bin', arguments.rounds)
            whole = measure(recorder, command, directory / 'trace.bin', arguments.rounds)
            report(name, whole, start)


if __name__ == '__main__':
    main()
