# SPDX-License-Identifier: MIT
"""Snapshots of a program with a large heap that goes on: a part of snapshot.py."""

import ctypes
import json
import os
import pathlib
import re
import subprocess
import time

WORKLOAD = pathlib.Path(__file__).resolve().parent / 'workloads/hoard.py'
PIECE = 1 << 20


class Range(ctypes.Structure):
    _fields_ = [('base', ctypes.c_void_p), ('size', ctypes.c_size_t)]


def spans_of(pid):
    """The ranges of memory that a process may write, without files and stacks."""
    maps = pathlib.Path(f'/proc/{pid}/maps').read_text()
    return [(int(begin, 16), int(end, 16))
            for begin, end in re.findall(r'^(\w+)-(\w+) rw-p .* 0 +(?:\[heap\])?$', maps, re.M)]


def rate_of(spans, read):
    """Bytes a second of processor time at which a loop reads ranges of memory piece by piece."""
    done, begin = 0, time.process_time()
    for low, high in spans:
        for address in range(low, high, PIECE):
            done += max(0, read(address, min(PIECE, high - address)))
    return done / (time.process_time() - begin)


def plain_loop(pid):
    """The rate of a loop of process_vm_readv() alone over the memory of a process: the limit of the
    machine, and of snapshots of a process that is held."""
    call = ctypes.CDLL(None, use_errno=True).process_vm_readv
    call.restype = ctypes.c_ssize_t
    call.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p,
                     ctypes.c_ulong, ctypes.c_ulong]
    buffer = ctypes.create_string_buffer(PIECE)
    here, there = Range(ctypes.addressof(buffer), PIECE), Range(0, PIECE)

    def read(address, size):
        there.base, there.size = address, size
        return call(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)

    return rate_of(spans_of(pid), read)


def file_loop(pid):
    """The rate of a loop that reads the file of the memory, as the recorder reads a copy of a
    process: it is the limit of snapshots of a copy."""
    buffer = bytearray(PIECE)
    with open(f'/proc/{pid}/mem', 'rb', buffering=0) as file:
        return rate_of(spans_of(pid), lambda address, size: os.preadv(
            file.fileno(), [memoryview(buffer)[:size]], address))


def start(tools, directory, megabytes, kind):
    recorder = subprocess.Popen(
        [tools['ttdrecord'], '-q', f'--snapshot={kind}', '--snapshot-at-exit=none', '-o',
         directory / 'large.bin', '--', '/usr/bin/python3', WORKLOAD, str(megabytes)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env=dict(os.environ, PYTHONMALLOC='malloc'))
    recorder.stdout.readline()
    children = pathlib.Path(f'/proc/{recorder.pid}/task/{recorder.pid}/children').read_text()
    for child in children.split():
        if pathlib.Path(f'/proc/{child}/comm').read_text() == 'python3\n':
            return recorder, int(child)
    raise SystemExit('the program did not start')


def peak(pid):
    return int(re.search(r'VmHWM:\s*(\d+)',
                         pathlib.Path(f'/proc/{pid}/status').read_text())[1]) << 10


def processor_time(pid):
    """Seconds that a process has run, also in the system."""
    fields = pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def measure(tools, directory, megabytes, kind):
    """Two snapshots of a heap that does not change."""
    recorder, pid = start(tools, directory, megabytes, kind)
    seconds, busy = [], []
    for _ in range(2):
        begin, busy_before = time.monotonic(), processor_time(recorder.pid)
        subprocess.run([tools['ttdrecord'], 'snapshot', str(pid)], check=True,
                       stdout=subprocess.DEVNULL)
        seconds.append(time.monotonic() - begin)
        busy.append(processor_time(recorder.pid) - busy_before)
    resident, limits = peak(recorder.pid), (plain_loop(pid), file_loop(pid))
    recorder.communicate()
    found = json.loads(subprocess.check_output(
        [tools['ttdanalyze'], 'snapshots', '--format', 'json', directory / 'large.bin']))
    (directory / 'large.bin').unlink()
    return {'seconds': seconds, 'busy': busy, 'collector': resident, 'limits': limits,
            'snapshots': found['snapshots']}


def rate_beside(result, number, size):
    """The rate of all that the collector does for a snapshot beside reading."""
    reading = size / result['limits'][result['snapshots'][number]['copied']]
    return size / max(result['busy'][number] - reading, 1e-2)


def report(tools, directory, megabytes):
    print(f'\nheap of {megabytes:,} MB, {megabytes * 16:,} blocks, asked for from outside')
    for kind in ('references', 'memory'):
        result = measure(tools, directory, megabytes, kind)
        size = megabytes * 1048576
        if kind == 'references':
            held, copied = result['limits']
            print(f'  process_vm_readv alone {held / 1e9:6.2f} GB/s')
            print(f'  /proc/PID/mem alone {copied / 1e9:9.2f} GB/s: so a copy is read')
        for number, seconds in enumerate(result['seconds']):
            snapshot = result['snapshots'][number]
            print(f"  {kind:10} {number + 1} {seconds:13.2f} s, "
                  f"{size / seconds / 1e9:.2f} GB/s; of the collector's processor time "
                  f"{size / result['busy'][number] / 1e9:.2f} GB/s, without the reading "
                  f"{rate_beside(result, number, size) / 1e9:.2f}; the program is held for "
                  f"{snapshot['held_ns'] / 1e6:.0f} ms{', and copied' * snapshot['copied']}"
                  f"{', INCOMPLETE' * (not snapshot['complete'])}; "
                  f"{snapshot['stored_bytes']:,} bytes")
        print(f"  collector at most {result['collector'] / 1e6:11.0f} MB resident")
