#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures for how long a process stands still when the recorder is attached to it and detached, with
one thread and with a thousand, and whether attaching and detaching again and again leaves anything:
mappings and private memory. Prints a report.

`ttdrecord attach` prints the time in which all threads were stopped. For detaching, a thread of the
program that wakes up each 100 microseconds notes how late it woke at worst.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import tempfile

# Threads that allocate, and a first one that measures how late it wakes up.
PROGRAM = """
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
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
static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}
int main(int argc, char **argv)
{
    int file = open(argv[1], O_RDWR);
    volatile uint64_t *worst = mmap(NULL, sizeof *worst, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (int i = 1; i < atoi(argv[2]); i++)
        pthread_create(&(pthread_t){0}, NULL, work, NULL);
    puts("ready");
    fflush(stdout);
    for (uint64_t begin = now();;) {
        void *volatile block = malloc(100);
        free(block);
        usleep(100);
        uint64_t end = now();
        if (end - begin > *worst)
            *worst = end - begin;
        begin = end;
    }
}
"""


def attach_once(recorder, trace, pid, worst):
    """Milliseconds for which the process stood still: when the recorder was attached, and detached.
    """
    process = subprocess.Popen([recorder, 'attach', '--no-snapshot', '-o', trace, str(pid)],
                               stderr=subprocess.PIPE, text=True)
    line = process.stderr.readline()
    stopped = re.search(r'stopped for ([\d.]+) ms', line)
    if stopped is None:
        process.communicate()
        raise SystemExit(line)
    with worst.open('r+b') as file:  # the program has it mapped
        file.write(bytes(8))
    subprocess.run([recorder, 'detach', str(pid)], check=True, stdout=subprocess.DEVNULL)
    process.communicate()
    return float(stopped[1]), int.from_bytes(worst.read_bytes(), 'little') / 1e6


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
              '| threads | attach: stopped, median | worst | detach: median | worst | '
              'mappings, private kB: before | after |\n'
              '| ---: | ---: | ---: | ---: | ---: | ---: | ---: |')
        worst = path / 'worst'
        worst.write_bytes(bytes(8))
        for threads in options.threads:
            program = subprocess.Popen([path / 'program', worst, str(threads)],
                                       stdout=subprocess.PIPE)
            program.stdout.readline()
            # The allocator grows in the first cycle.
            attach_once(recorder, path / 'trace', program.pid, worst)
            before = memory(program.pid)
            attached, detached = zip(*(attach_once(recorder, path / 'trace', program.pid, worst)
                                       for _ in range(options.cycles)))
            after = memory(program.pid)
            program.kill()
            program.communicate()
            print(f'| {threads:,} | {statistics.median(attached):.1f} ms | {max(attached):.1f} ms | '
                  f'{statistics.median(detached):.1f} ms | {max(detached):.1f} ms | '
                  f'{before[0]}, {before[1]:,} | {after[0]}, {after[1]:,} |', flush=True)


if __name__ == '__main__':
    main()
