#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts the instructions that the unwinder executes for each capture of a stack, by callgrind.

To measure the gain of a part of the unwinder, take it out, build, and run this again.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

WORKLOADS = pathlib.Path(__file__).resolve().parent / 'workloads'
CHECK = 'tests/recorder/unwind/libunwind_check.so'
PERL = 'my %h; $h{$_} = "x$_" for 1..800; my @k = sort keys %h; eval { die } for @k;'
SQL = 'create table t(a); insert into t values (hex(randomblob(20))); select * from t;'


def compiled(source, directory, *flags):
    program = directory / source.stem
    subprocess.run(['cc', '-O2', '-g', '-fno-builtin', '-pthread', *flags, '-o', program, source],
                   check=True)
    return program


def workloads(directory):
    """Returns command lines by name: programs, then kinds of frames that are less common."""
    stress = compiled(WORKLOADS / 'stress.c', directory, '-DROUNDS=30000')
    frames = compiled(WORKLOADS / 'frames.c', directory)
    source = directory / 'stress.i'
    subprocess.run(['cc', '-E', '-o', source, WORKLOADS / 'stress.c'], check=True)
    compiler = subprocess.run(['gcc', '-print-prog-name=cc1'], check=True, capture_output=True,
                              text=True).stdout.strip()
    return {
        'stress': [stress],
        'perl': ['perl', '-e', PERL],
        'sqlite3': ['sqlite3', ':memory:', SQL],
        'cc1': [compiler, '-quiet', '-O1', '-o', os.devnull, source],
        'python': ['/usr/bin/python3', WORKLOADS / 'documents.py', '1'],
        **{kind: [frames, kind] for kind in ('realigned', 'registers', 'unknown', 'elsewhere')},
    }


def instructions_per_capture(library, command, directory):
    report = directory / 'report'
    report.unlink(missing_ok=True)
    environment = dict(os.environ, LD_PRELOAD=library, UNWIND_CHECK='0', UNWIND_REPORT=report,
                       PYTHONMALLOC='malloc', PYTHONHASHSEED='0', PERL_HASH_SEED='0')
    counted = subprocess.run(
        ['valgrind', '--tool=callgrind', f'--callgrind-out-file={os.devnull}',
         '--toggle-collect=unwinder_capture', *command],
        env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    instructions = int(re.search(r'Collected : (\d+)', counted.stderr)[1])
    captures = int(re.search(r'events (\d+)', report.read_text())[1])
    return instructions / captures, captures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', type=pathlib.Path, required=True, help='the build directory')
    parser.add_argument('workload', nargs='*', help='only these workloads')
    options = parser.parse_args()
    library = (options.build / CHECK).resolve()
    if not library.is_file() or not shutil.which('valgrind'):
        raise SystemExit(f'needs valgrind and {library}')
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        for workload, command in workloads(directory).items():
            if options.workload and workload not in options.workload:
                continue
            cost, captures = instructions_per_capture(library, command, directory)
            print(f'{workload:<10} {cost:9.1f} instructions per capture, {captures} captures')


if __name__ == '__main__':
    main()
