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


def plain_loop(pid):
    """Bytes a second at which a loop of process_vm_readv() alone reads the memory of a process: the
    limit of the machine."""
    read = ctypes.CDLL(None, use_errno=True).process_vm_readv
    read.restype = ctypes.c_ssize_t
    read.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p,
                     ctypes.c_ulong, ctypes.c_ulong]
    buffer = ctypes.create_string_buffer(PIECE)
    here, there = Range(ctypes.addressof(buffer), PIECE), Range(0, PIECE)
    maps = pathlib.Path(f'/proc/{pid}/maps').read_text()
    spans = [(int(begin, 16), int(end, 16))
             for begin, end in re.findall(r'^(\w+)-(\w+) rw-p .* 0 +(?:\[heap\])?$', maps, re.M)]
    done, begin = 0, time.monotonic()
    for low, high in spans:
        for there.base in range(low, high, PIECE):
            there.size = min(PIECE, high - there.base)
            done += max(0, read(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0))
    return done / (time.monotonic() - begin)


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


def measure(tools, directory, megabytes, kind):
    """Two snapshots of a heap that does not change."""
    recorder, pid = start(tools, directory, megabytes, kind)
    seconds = []
    for _ in range(2):
        begin = time.monotonic()
        subprocess.run([tools['ttdrecord'], 'snapshot', str(pid)], check=True,
                       stdout=subprocess.DEVNULL)
        seconds.append(time.monotonic() - begin)
    resident, limit = peak(recorder.pid), plain_loop(pid)
    recorder.communicate()
    found = json.loads(subprocess.check_output(
        [tools['ttdanalyze'], 'snapshots', '--format', 'json', directory / 'large.bin']))
    (directory / 'large.bin').unlink()
    return {'seconds': seconds, 'collector': resident, 'limit': limit,
            'snapshots': found['snapshots']}


def report(tools, directory, megabytes):
    print(f'\nheap of {megabytes:,} MB, {megabytes * 16:,} blocks, asked for from outside')
    for kind in ('references', 'memory'):
        result = measure(tools, directory, megabytes, kind)
        if kind == 'references':
            print(f"  process_vm_readv alone {result['limit'] / 1e9:6.2f} GB/s")
        for number, seconds in enumerate(result['seconds']):
            snapshot = result['snapshots'][number]
            print(f"  {kind:10} {number + 1} {seconds:13.2f} s, "
                  f"{megabytes * 1048576 / seconds / 1e9:.2f} GB/s; the program is held for "
                  f"{snapshot['held_ns'] / 1e6:.0f} ms{', and copied' * snapshot['copied']}"
                  f"{', INCOMPLETE' * (not snapshot['complete'])}; "
                  f"{snapshot['stored_bytes']:,} bytes")
        print(f"  collector at most {result['collector'] / 1e6:11.0f} MB resident")
