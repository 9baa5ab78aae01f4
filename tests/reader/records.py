# SPDX-License-Identifier: MIT
"""Payloads of all kinds but events, as lines: spec, "Definitions", "Records", "Trace, Index, End"."""

import snapshots
from columns import MASK, Cursor, at, check_maybe_invalid, require, rotl4, rows, unzigzag

ID_MAX = 0xFFFFFFFF


def text(data):
    return data.hex() or '-'


def ids(header):
    require(header.first_record >= 1 and header.first_record + header.record_count - 1 <= ID_MAX, 'ids')
    return range(header.first_record, header.first_record + header.record_count)


def strings(header, payload):
    cursor = Cursor(payload)
    lines = [f'string id={number:x} text={text(cursor.string())}' for number in ids(header)]
    cursor.finish()
    return lines


def stacks(header, payload):
    columns = Cursor(payload).columns(4)
    parents, frames, modules, offsets = columns
    table = []
    offset = 0
    lines = []
    for number in ids(header):
        back = parents.varint()
        require(back < number, 'parent')
        parent = number - back if back else 0
        ref = frames.varint()
        require(ref <= len(table), 'frame')
        if ref == 0:
            offset = (offset + unzigzag(offsets.varint())) & MASK
            table.append((modules.id(), offset))
        module, place = table[ref - 1]
        lines.append(f'stack id={number:x} parent={parent:x} module={module:x} offset={place:x}')
    for column in columns:
        column.finish()
    return lines


@rows
def modules(cursor):
    action = cursor.varint()
    number = cursor.id()
    require(action in (1, 2) and number, 'module')
    line = f'module action={action:x} id={number:x} at={at(cursor.valid_position())}'
    if action == 1:
        path, bias, begin, end = cursor.id(), cursor.varint(), cursor.varint(), cursor.varint()
        require(begin <= end, 'range')
        build = cursor.bytes(cursor.varint(64))
        line += f' path={path:x} bias={bias:x} begin={begin:x} end={end:x} build={text(build)}'
    return line


def symbols(header, payload):
    cursor = Cursor(payload)
    offset = 0
    lines = []
    for _ in range(header.record_count):
        module = cursor.id()
        offset = (offset + unzigzag(cursor.varint())) & MASK
        line = f'symbol module={module:x} offset={offset:x}'
        for _ in range(cursor.varint(1024)):
            line += f' {cursor.id():x},{cursor.id():x},{cursor.varint(ID_MAX):x}'
        lines.append(line)
    cursor.finish()
    return lines


@rows
def threads(cursor):
    action = cursor.varint()
    number = cursor.id()
    require(action in (1, 2) and number, 'thread')
    line = f'thread action={action:x} id={number:x} at={at(cursor.valid_position())}'
    if action == 1:
        line += f' os={cursor.varint():x}'
    return line + f' name={cursor.id():x}'


def heaps(header, payload):
    cursor = Cursor(payload)
    lines = [f'heap id={number:x} handle={cursor.varint():x} name={cursor.id():x}'
             for number in ids(header)]
    cursor.finish()
    return lines


@rows
def heap_parents(cursor):
    heap, parent = cursor.id(), cursor.id()
    require(0 < parent < heap, 'parent of a heap')
    return f'parent heap={heap:x} parent={parent:x}'


@rows
def user_events(cursor):
    client = cursor.bytes(16)
    position = cursor.valid_position()
    wall, thread, flags = cursor.varint(), cursor.id(), cursor.varint(1)
    return (f'user client={text(client)} at={at(position)} wall={wall:x} thread={thread:x} '
            f'flags={flags:x} data={text(cursor.string())}')


@rows
def losses(cursor):
    reason, thread = cursor.varint(0x7FFFFFFF), cursor.id()
    count = (cursor.varint() - 1) & MASK
    last, first = cursor.valid_position(), cursor.position()
    check_maybe_invalid(first)
    require(last <= first, 'range')
    return loss_line(reason, thread, count, last, first)


def loss_line(reason, thread, count, last, first):
    return (f'loss reason={reason:x} thread={thread:x} count={count:x} last={at(last)} '
            f'first={at(first)}')


def live_blocks(header, payload):
    cursor = Cursor(payload)
    kind, number, flags, reserved = (cursor.u32() for _ in range(4))
    require(1 <= kind <= 3 and number and flags <= 1 and reserved == 0, 'list of blocks')
    position = cursor.fixed_valid_position()
    columns = cursor.columns(9)
    last = [0, 0, MASK, 0, 0, 0, 0, 0]
    lines = [f'blocks list={kind:x} id={number:x} last={flags:x} at={at(position)}']
    before = 0, 0
    for _ in range(header.record_count):
        for i in (0, 2, 3, 4, 7):
            last[i] = (last[i] + unzigzag(columns[i].varint())) & MASK
        size, thread, heap = columns[1].varint(), columns[5].id(), columns[6].id()
        require(rotl4(last[0]) and (rotl4(last[0]), heap) > before, 'order of blocks')
        address = rotl4(last[0])
        before = address, heap
        require(last[7] <= ID_MAX and last[3] != MASK, 'stack or position')
        lines.append(f'block address={address:x} size={size:x} event={last[2]:x} '
                     f'at={at((last[3], last[4]))} thread={thread:x} heap={heap:x} '
                     f'stack={last[7]:x} api={columns[8].u8():x}')
    for column in columns:
        column.finish()
    return lines


def check_page_size(size):
    require(512 <= size <= 65536 and size & (size - 1) == 0, 'page size')


def pages(header, payload):
    cursor = Cursor(payload)
    size = cursor.u32()
    check_page_size(size)
    require(cursor.u32() == 0 and header.first_record >= 3, 'pages')
    lines = [f'page id={header.first_record + i:x} data={text(cursor.bytes(size))}'
             for i in range(header.record_count)]
    cursor.finish()
    return lines


def memory_map(header, payload):
    cursor = Cursor(payload)
    snapshot, flags = cursor.u32(), cursor.u32()
    position = cursor.fixed_valid_position()
    size = cursor.u32()
    check_page_size(size)
    require(snapshot and flags <= 1 and cursor.u32() == 0, 'memory map')
    lines = [f'map snapshot={snapshot:x} last={flags:x} page_size={size:x} at={at(position)}']
    page = 0
    for _ in range(header.record_count):
        page += cursor.varint()
        count, protection, first = cursor.varint(), cursor.varint(), cursor.varint()
        require(count and (page + count) * size <= MASK + 1 and protection <= 15, 'run')
        require(first < 3 or first + count <= MASK, 'page')
        lines.append(f'run address={page * size:x} pages={count:x} protection={protection:x} '
                     f'page={first:x}')
        page += count
    cursor.finish()
    return lines


@rows
def metadata(cursor):
    key = cursor.string()
    return f'metadata key={text(key)} value={text(cursor.string())}'


@rows
def states(cursor):
    form, position, blocks = cursor.varint(3), cursor.valid_position(), cursor.varint()
    require(form, 'form')
    line = f'state form={form:x} at={at(position)} blocks={blocks:x}'
    if form == 3:
        return line + f' bytes={cursor.varint():x},{cursor.varint():x}'
    counts = [cursor.varint() for _ in range(15)]
    require(max(counts[4:6]) <= counts[1], 'counts')
    line += ' counts=' + ','.join(f'{count:x}' for count in counts)
    if form == 1:
        return line
    sums, end = cursor.varint(), cursor.position()
    check_maybe_invalid(end)
    require(position <= end, 'end')
    return line + f' sums={sums:x} end={at(end)}'


@rows
def sums(cursor):
    table, key, api = cursor.varint(3), cursor.varint(ID_MAX), cursor.u8()
    blocks, size = cursor.varint(), cursor.varint()
    require(blocks and (table != 3 or key <= 64), 'sum')
    line = f'sum table={table:x} key={key:x} api={api:x} blocks={blocks:x} bytes={size:x}'
    if table:
        return line
    first, last = cursor.valid_position(), cursor.valid_position()
    require(first <= last, 'positions')
    return line + f' first={at(first)} last={at(last)}'


def trace(header, payload):
    cursor = Cursor(payload)
    group = cursor.bytes(16)
    parent, position = cursor.u64(), cursor.fixed_position()
    start = int.from_bytes(cursor.bytes(8), 'little', signed=True)
    unit, process, of = cursor.u64(), cursor.u64(), cursor.u64()
    check_maybe_invalid(position)
    flags, architecture, pointer, reserved = (cursor.u32() for _ in range(4))
    source, size, hashed = (cursor.u64() for _ in range(3))
    cursor.finish()
    require((unit or flags & 4) and pointer in (4, 8) and flags <= 15 and reserved == 0, 'trace')
    header.unit, header.trace_flags = unit, flags
    return [f'trace id={header.trace_id:x} group={text(group)} parent={parent:x} '
            f'at={at(position)} start={start} unit={unit:x} process={process:x} of={of:x} '
            f'flags={flags:x} architecture={architecture:x} pointer={pointer:x} '
            f'source={source:x} size={size:x} hash={hashed:x}']


def end(header, payload):
    cursor = Cursor(payload)
    reason, code = cursor.u32(), cursor.u32()
    wall, events, lost, chunks, index = (cursor.u64() for _ in range(5))
    cursor.finish()
    require(reason < 1 << 31 and events != MASK, 'reason')
    header.totals = events, chunks
    return [f'end reason={reason:x} code={code:x} wall={wall:x} events={events:x} lost={lost:x} '
            f'chunks={chunks:x} index={index:x}']


READERS = {**snapshots.READERS, 1: trace, 2: strings, 3: stacks, 4: modules, 5: symbols, 6: threads, 7: heaps,
           9: user_events, 10: losses, 11: live_blocks, 12: pages, 13: memory_map, 14: metadata,
           16: end, 17: states, 18: sums, 26: heap_parents}
