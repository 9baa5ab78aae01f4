# SPDX-License-Identifier: MIT
"""Payloads of snapshots and their parts, as lines: spec, "Snapshots"."""

from columns import MASK, Cursor, at, require, rotl3, rows, unzigzag

SIGNED_MAX = 0x7FFFFFFF


def signed(value):
    return value - (1 << 64) if value >> 63 else value


@rows
def snapshots(cursor):
    number, position = cursor.id(), cursor.valid_position()
    wall, held = cursor.varint(), cursor.varint()
    contents, reason, flags = cursor.varint(7), cursor.varint(SIGNED_MAX), cursor.varint(7)
    require(number and contents, 'snapshot')
    return (f'snapshot number={number:x} at={at(position)} wall={wall:x} held={held:x} '
            f'contents={contents:x} reason={reason:x} flags={flags:x} '
            f'missing={cursor.varint():x} thread={cursor.id():x} '
            f'regions={cursor.varint():x} references={cursor.varint():x}')


def regions(header, payload):
    cursor = Cursor(payload)
    snapshot, first = cursor.u32(), cursor.u32()
    require(snapshot and first and first + header.record_count <= 1 << 32, 'regions')
    lines = [f'regions snapshot={snapshot:x} first={first:x}']
    end = 0
    for _ in range(header.record_count):
        kind = cursor.varint(7)
        begin = (end + unzigzag(cursor.varint())) & MASK
        size = cursor.varint()
        require(kind and size and begin + size <= MASK + 1, 'region')
        require(kind != 4 or begin == 0, 'registers')
        lines.append(f'region kind={kind:x} begin={begin:x} size={size:x} '
                     f'thread={cursor.id():x} module={cursor.id():x} name={cursor.id():x}')
        end = begin + size
    cursor.finish()
    return lines


def references(header, payload):
    cursor = Cursor(payload)
    snapshot = cursor.u32()
    require(snapshot and cursor.u32() == 0, 'references')
    columns = cursor.columns(3)
    lines = [f'references snapshot={snapshot:x}']
    region = offset = value = 0
    for _ in range(header.record_count):
        further = columns[0].varint()
        distance = rotl3(columns[1].varint())
        value = (value + unzigzag(columns[2].varint())) & MASK
        if further or region == 0:
            region += further
            offset = distance
        else:
            last, offset = offset, (offset + 8 + distance) & MASK
            require(offset > last, 'order')
        require(1 <= region < 1 << 32 and value, 'reference')
        lines.append(f'reference region={region:x} offset={offset:x} value={rotl3(value):x}')
    for column in columns:
        column.finish()
    return lines


def packed_references(header, payload):
    cursor = Cursor(payload)
    snapshot = cursor.u32()
    require(snapshot and cursor.u32() == 0, 'references')
    runs, offsets, values, low = cursor.columns(4)
    lines = [f'references snapshot={snapshot:x}']
    region = high = left = 0
    for _ in range(header.record_count):
        if left == 0:
            further, left = runs.varint(), runs.varint()
            region += further
            require(further and left and region < 1 << 32, 'run of references')
            offset = rotl3(offsets.varint())
        else:
            last, offset = offset, (offset + 8 + rotl3(offsets.varint())) & MASK
            require(offset > last, 'order')
        left -= 1
        entry = values.varint()
        high = (high + unzigzag(entry >> 1)) & MASK
        bits = low.u8() if entry & 1 else 0
        require(high < 1 << 61 and bits < 8 and bool(bits) == bool(entry & 1), 'value')
        require(high or bits, 'value')
        lines.append(f'reference region={region:x} offset={offset:x} value={8 * high + bits:x}')
    require(left == 0, 'run of references')
    for column in (runs, offsets, values, low):
        column.finish()
    return lines


def variables(header, payload):
    cursor = Cursor(payload)
    offset = 0
    lines = []
    for _ in range(header.record_count):
        module = cursor.id()
        require(module, 'module')
        offset = (offset + unzigzag(cursor.varint())) & MASK
        lines.append(f'variable module={module:x} offset={offset:x} size={cursor.varint():x} '
                     f'name={cursor.id():x}')
    cursor.finish()
    return lines


@rows
def frames(cursor):
    snapshot = cursor.id()
    require(snapshot, 'snapshot')
    line = f'frames snapshot={snapshot:x} thread={cursor.id():x} stack={cursor.id():x}'
    address = 0
    for _ in range(cursor.varint(4096)):
        address = (address + unzigzag(cursor.varint())) & MASK
        line += f' {address:x}'
    return line


def classes(header, payload):
    cursor = Cursor(payload)
    snapshot = cursor.u32()
    require(snapshot and cursor.u32() == 0, 'classes')
    lines = [f'classes snapshot={snapshot:x}']
    address = 0
    for _ in range(header.record_count):
        address = (address + unzigzag(cursor.varint())) & MASK
        lines.append(f'class address={address:x} name={cursor.id():x}')
    cursor.finish()
    return lines


def block_headers(header, payload):
    cursor = Cursor(payload)
    snapshot, flags, address = cursor.u32(), cursor.u32(), cursor.u64()
    require(snapshot and flags <= 7 and flags & 5 != 4, 'block headers')
    lines = [f'headers snapshot={snapshot:x} flags={flags:x} begin={address:x}']
    for left in range(header.record_count, 0, -1):
        value = cursor.varint()
        lines.append(f'header {value:x}')
        size = value & ~15
        require(left == 1 or (size and address + size <= MASK), 'header')
        address += size
    cursor.finish()
    return lines


@rows
def fatal_signals(cursor):
    position, wall = cursor.valid_position(), cursor.varint()
    thread, stack, signal = cursor.id(), cursor.id(), cursor.varint(SIGNED_MAX)
    require(signal, 'signal')
    line = (f'signal at={at(position)} wall={wall:x} thread={thread:x} stack={stack:x} '
            f'signal={signal:x} code={signed(unzigzag(cursor.varint()))} '
            f'address={cursor.varint():x} snapshot={cursor.id():x}')
    for _ in range(cursor.varint(64)):
        line += f' {cursor.id():x}:{cursor.varint():x}'
    return line


READERS = {19: snapshots, 20: regions, 21: references, 22: variables, 23: frames, 24: classes,
           25: fatal_signals, 27: packed_references, 28: block_headers}
