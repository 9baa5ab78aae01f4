#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the cost of recording PostgreSQL if each transaction has a connection of its own, and so a
process that is forked and ends, with the snapshot at its end and without it. Prints a report.

In each round the native server and the recorded ones run `pgbench -C -S` one after the other, so that
a busy machine disturbs them alike. Figures are medians of the rounds. Beside the transactions a
second stands the processor time of each, of the server with all its processes and the recorder: that
hardly depends on what else runs. Everything lies in memory: on a disk, the system takes longer to
create a file the more files were deleted in the last minutes.
"""

import argparse
import glob
import json
import os
import pathlib
import pwd
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from record import print_machine

# Processes that wait for their snapshots count as clients.
SETTINGS = """
listen_addresses = ''
max_connections = 1000
autovacuum = off
checkpoint_timeout = 1h
"""
USER = 'postgres'


def programs():
    """Returns the directory of the newest PostgreSQL."""
    found = sorted(glob.glob('/usr/lib/postgresql/*/bin/pgbench')) or \
        [path for path in [shutil.which('pgbench')] if path]
    if not found:
        raise SystemExit('no pgbench: install postgresql')
    return pathlib.Path(os.path.realpath(found[-1])).parent


def public_recorder(build, directory):
    """Returns a copy of the recorder that the server's user can execute, and its environment."""
    copies = directory / 'recorder'
    (copies / 'preload').mkdir(parents=True)
    recorder = build / 'recorder' / 'ttdrecord'
    libraries = re.findall(r'=> (/\S*libttdtrace\S*) ', subprocess.run(
        ['ldd', recorder], capture_output=True, text=True, check=True).stdout)
    for path in [recorder, *libraries]:
        shutil.copy(path, copies / os.path.basename(path))
    shutil.copy(build / 'recorder' / 'preload' / 'libttdpreload.so', copies / 'preload')
    subprocess.run(['chmod', '-R', 'a+rX', copies], check=True)
    return copies / 'ttdrecord', dict(os.environ, LD_LIBRARY_PATH=str(copies))


class Server:
    """PostgreSQL in a directory, run by a user who is not root."""

    def __init__(self, directory, build):
        self.programs = programs()
        self.directory = directory
        self.recorder, self.environment = public_recorder(build, directory)
        self.user = {'user': USER, 'group': USER, 'extra_groups': []} if os.geteuid() == 0 else {}
        self.name = USER if self.user else pwd.getpwuid(os.geteuid()).pw_name
        if self.user:
            directory.chmod(0o755)
            for name in ('data', 'run'):
                (directory / name).mkdir()
                shutil.chown(directory / name, USER, USER)
        else:
            (directory / 'run').mkdir()
        self.run('initdb', '-D', directory / 'data', '-A', 'trust')
        with open(directory / 'data' / 'postgresql.conf', 'a', encoding='utf-8') as settings:
            settings.write(f"{SETTINGS}unix_socket_directories = '{directory / 'run'}'\n")
        with self.started([]):
            self.client('pgbench', '-i', '-q')

    def run(self, program, *arguments):
        return subprocess.run([self.programs / program, *map(str, arguments)], check=True,
                              cwd='/', capture_output=True, text=True, **self.user).stdout

    def client(self, program, *arguments):
        return self.run(program, '-h', self.directory / 'run', '-U', self.name, *arguments,
                        'postgres')

    def started(self, prefix):
        return Running(self, prefix)


class Running:
    """A server from its start to its end; `seconds` is the processor time that it then has taken."""

    def __init__(self, server, prefix):
        self.server, self.prefix = server, prefix
        self.seconds = 0

    def __enter__(self):
        server = self.server
        self.process = subprocess.Popen(
            [*self.prefix, server.programs / 'postgres', '-D', server.directory / 'data'], cwd='/',
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=server.environment,
            **server.user)
        while True:
            ready = subprocess.run([server.programs / 'pg_isready', '-q', '-h',
                                    server.directory / 'run'], check=False)
            if ready.returncode == 0:
                return self
            if self.process.poll() is not None:
                raise SystemExit('the server did not start')
            time.sleep(0.05)

    def __exit__(self, *_):
        pid = int((self.server.directory / 'data' / 'postmaster.pid').read_text().split()[0])
        # Smart: waits for processes that still run, such as those in their snapshots.
        os.kill(pid, signal.SIGTERM)
        _, _, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = 0
        self.seconds = usage.ru_utime + usage.ru_stime


def measure(server, prefix, options):
    """Returns transactions a second, and milliseconds of the processor for each."""
    with server.started(prefix) as running:
        said = server.client('pgbench', '-n', '-C', '-S', '-c', options.clients, '-t',
                             options.transactions // options.clients)
    done, wanted = map(int, re.search(r'processed: (\d+)/(\d+)', said).groups())
    if done != wanted:
        raise SystemExit(f'{done} of {wanted} transactions were done:\n{said}')
    rate = float(re.search(r'tps = ([\d.]+)', said).group(1))
    return rate, running.seconds / done * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', type=pathlib.Path, default='build',
                        help='the build directory (release) to measure')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--clients', type=int, default=2)
    parser.add_argument('--transactions', type=int, default=1000)
    parser.add_argument('--json', action='store_true', help='machine-readable results')
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    if not options.json:
        print_machine(f'median of {options.rounds} rounds')
    memory = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as temporary:
        server = Server(pathlib.Path(temporary), options.build.resolve())
        results = {'native': [], '--no-snapshot': [], 'snapshot': []}
        for _ in range(options.rounds):
            for name, column in results.items():
                traces = pathlib.Path(tempfile.mkdtemp(dir=server.directory))
                if server.user:
                    shutil.chown(traces, USER, USER)
                recorded = [server.recorder, '-q', '-o', traces / 'trace.bin',
                            *(['--no-snapshot'] if name == '--no-snapshot' else []), '--']
                column.append(measure(server, recorded if name != 'native' else [], options))
    medians = {name: [statistics.median(column) for column in zip(*rounds)]
               for name, rounds in results.items()}
    if options.json:
        json.dump(medians, sys.stdout, indent=2)
        return
    print(f'\npgbench -C -S, {options.clients} clients, {options.transactions} transactions\n')
    print('                  tps   of native   processor, ms each')
    for name, (rate, cost) in medians.items():
        print(f'  {name:13s}{rate:7.1f}{rate / medians["native"][0]:11.2f}{cost:14.2f}')


if __name__ == '__main__':
    main()
