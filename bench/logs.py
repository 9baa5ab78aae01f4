# SPDX-License-Identifier: MIT
"""Logs of other recorders, in the formats that `import` reads, of the same calls: allocations and
releases in random order, with a thousand live blocks."""

import random

WINDBG_HEADER = """\
0:0:000> dx -g @$cursession.TTD.Data.Heap()
=======
= = Action = Heap = Address = Size = Flags = (+) TimeStart = (+) TimeEnd = Result =
=======
"""
XPERF_HEADER = """\
BeginHeader
 HeapAlloc, TimeStamp, Process Name ( PID), ThreadID, HeapHandle, Size, Address, SourceId
  HeapFree, TimeStamp, Process Name ( PID), ThreadID, HeapHandle, FreeAddress, SourceId
EndHeader
"""
HEAPTRACK_HEADER = """\
v 10400 3
x 8 /bin/pro
X ./pro
I 1000 5e2921
m 1 -
m 1 x 5595d7c52000 0 1000 1000 2000
"""


def calls(count):
    """The number of each call, its address, and its size; no size for a release."""
    chance, live = random.Random(1), []
    for number in range(count):
        if len(live) > 1000:
            yield number, live.pop(chance.randrange(len(live))), None
        else:
            live.append(0x100000 + 64 * number)
            yield number, live[-1], chance.randrange(1, 64)


def mtrace(count):
    yield '= Start\n'
    for number, address, size in calls(count):
        call = f'+ {address:#x} {size:#x}' if size else f'- {address:#x}'
        yield f'@ prog:[{number % 99 * 16:#x}] {call}\n'


def heaptrack(count):
    yield HEAPTRACK_HEADER
    for stack in range(99):
        yield f't {0x5595d7c52000 + 16 * stack:x} {stack:x}\n'
    for number, address, size in calls(count):
        yield f'+ {size:x} {number % 99 + 1:x} {address:x}\n' if size else f'- {address:x}\n'


def lttng(count):
    for number, address, size in calls(count):
        call, fields = ('malloc', f'size = {size}, ') if size else ('free', '')
        yield (f'[10:00:{number // 1000000:02}.{number % 1000000:06}000] (+0.000001000) host '
               f'lttng_ust_libc:{call}: {{ cpu_id = 0 }}, {{ vpid = 7633, vtid = {7633 + number % 3} }}, '
               f'{{ {fields}ptr = {address:#X} }}\n'.replace('0X', '0x'))


def windbg(count):
    yield WINDBG_HEADER
    for number, address, size in calls(count):
        action, bytes_, result = ('Alloc', f'{size:#x}', '') if size else ('Free', '', '0x1')
        yield (f'= [{number:#x}] : [object Object]  - {action:7} - 0xaf0000 - {address:#x} - {bytes_:4} '
               f'- 0x0   - {number + 1:X}:1      - {number + 1:X}:4      - {result:6} =\n')


def xperf(count):
    yield XPERF_HEADER
    for number, address, size in calls(count):
        call, fields = ('HeapAlloc', f'{size}, ') if size else ('HeapFree', '')
        yield (f'{call:>10}, {number:10}, note (1).exe (4711), {number % 3 + 815:10}, 0x1f0000, '
               f'{fields}{address:#x}, 1\n')


FORMATS = (heaptrack, mtrace, lttng, xperf, windbg)
