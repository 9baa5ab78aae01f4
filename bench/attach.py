#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures for how long a process stands still when the recorder is attached to it, with one thread
and with a thousand, and whether attaching and detaching again and again leaves anything: mappings
and private memory. Prints a report.

The time is that which `ttdrecord attach` says: in which all threads were stopped.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import tempfile

# Threads that allocate, and say so from time to time.
PROGRAM = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *work(void *unused)
{
    for (;;) {
        for (int i = 0; i < 100; i++) {
            void *volatile block = malloc(100);
            free(block);
        }
        usleep(20000);
    }
    return unused;
}
int main(int argc, char **argv)
{
    for (int i = 1; i < atoi(argv[argc - 1]); i++)
        pthread_create(&(pthread_t){0}, NULL, work, NULL);
    puts("ready");
    fflush(stdout);
    work(NULL);
}
"""


def attach_once(recorder, trace, pid):
    """Milliseconds for which the process stood still."""
    process = subprocess.Popen([recorder, 'attach', '--no-snapshot', '-o', trace, str(pid)],
                               stderr=subprocess.PIPE, text=True)
    line = process.stderr.readline()
    stopped = re.search(r'stopped for ([\d.]+) ms', line)
    if stopped is None:
        process.communicate()
        raise SystemExit(line)
    subprocess.run([recorder, 'detach', str(pid)], check=True, stdout=subprocess.DEVNULL)
    process.communicate()
    return float(stopped[1])


def memory(pid):
    """Mappings, and kilobytes of private memory that is the process's own."""
    text = pathlib.Path(f'/proc/{pid}/smaps').read_text()
    dirty = re.findall(r'^Private_Dirty: +(\d+)', text, re.MULTILINE)
    return len(dirty), sum(map(int, dirty))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', type=pathlib.Path, required=True)
    parser.add_argument('--cycles', type=int, default=100)
    parser.add_argument('--threads', type=int, nargs='+', default=[1, 10, 1000])
    options = parser.parse_args()
    recorder = options.build / 'recorder' / 'ttdrecord'
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory)
        (path / 'program.c').write_text(PROGRAM)
        subprocess.run(['cc', '-O2', '-pthread', '-o', path / 'program', path / 'program.c'],
                       check=True)
        print(f'{os.cpu_count()} processors, {options.cycles} cycles of attach and detach\n\n'
              '| threads | stopped, median | worst | mappings, private kB: before | after |\n'
              '| ---: | ---: | ---: | ---: | ---: |')
        for threads in options.threads:
            program = subprocess.Popen([path / 'program', str(threads)], stdout=subprocess.PIPE)
            program.stdout.readline()
            attach_once(recorder, path / 'trace', program.pid)  # the allocator's own growth
            before = memory(program.pid)
            times = [attach_once(recorder, path / 'trace', program.pid)
                     for _ in range(options.cycles)]
            after = memory(program.pid)
            program.kill()
            program.communicate()
            print(f'| {threads:,} | {statistics.median(times):.1f} ms | {max(times):.1f} ms | '
                  f'{before[0]}, {before[1]:,} | {after[0]}, {after[1]:,} |', flush=True)


if __name__ == '__main__':
    main()
