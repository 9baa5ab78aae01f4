#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A second reader of the format, written from spec/format.md alone; Python's library only.

ttdtrace_reader.py [-t] FILE: prints a line per record, and how the reading ended. -t checks all, goes on
after damage, and prints the losses that are made of it.
"""

import struct
import sys

import events
import lz4block
from columns import INVALID, MASK, Corrupt, require
from records import READERS, loss_line
from xxh3 import xxh3

MAGIC = bytes.fromhex('8954544448 0D0A1A')
HEADER = struct.Struct('<8sHHBBHIIQQQQIIQQQQQQ')
PAYLOAD_MAX = 16 << 20
ITEMS_MAX = 65536
TRACE, EVENTS, INDEX, END, KINDS = 1, 8, 15, 16, 28
CRITICAL = (TRACE, EVENTS)
MAY_BE_EMPTY = (11, 13)


class Stop(Exception):
    """Reading ends: a status, and where."""


class Header:
    def __init__(self, data, offset):
        (magic, self.major, self.kind, self.codec, self.flags, self.minor, self.stored_size,
         self.raw_size, self.trace_id, self.number, self.offset, self.first_record, self.record_count,
         self.reserved, first, first_steps, last, last_steps, self.payload_hash,
         header_hash) = HEADER.unpack_from(data, offset)
        require(magic == MAGIC, 'magic')
        require(xxh3(data[offset:offset + 104]) == header_hash, 'header hash')
        self.first_position = first, first_steps
        self.last_position = last, last_steps
        if self.major != 1:
            raise Stop('unsupported', offset)
        self.check()
        self.size = (HEADER.size + self.stored_size + 7) // 8 * 8

    def check(self):
        require(self.reserved == 0 and self.flags <= 1 and self.kind and self.trace_id, 'header')
        require(self.kind > KINDS or self.flags == (self.kind in CRITICAL), 'critical flag')
        require(self.offset % 8 == 0, 'offset')
        require(self.first_position[0] != INVALID and self.last_position[0] != INVALID, 'position')
        require(self.first_position <= self.last_position, 'positions')
        require(self.first_record + self.record_count <= MASK, 'first_record')
        require(self.stored_size <= PAYLOAD_MAX and self.raw_size <= PAYLOAD_MAX, 'size')
        require(self.codec != 0 or self.stored_size == self.raw_size, 'raw size')
        require(self.codec != 1 or self.raw_size <= 255 * self.stored_size + 64, 'raw size')
        require(self.record_count <= min(ITEMS_MAX, self.raw_size), 'items')


class Reader:
    def __init__(self, data, tolerant=False):
        self.data = data
        self.tolerant = tolerant
        self.offset = 0
        self.number = 0
        self.event = 0
        self.position = (0, 0)
        self.trace_id = None
        self.unit = 0
        self.recovered = False
        self.ended = False
        self.closed = False
        self.gap = None

    def header(self, offset):
        """The header at an offset, or Corrupt, or Stop."""
        left = len(self.data) - offset
        if left < HEADER.size:
            part = self.data[offset:offset + len(MAGIC)]
            require(part == MAGIC[:len(part)], 'magic')
            raise Stop('truncated', offset)
        header = Header(self.data, offset)
        require(self.trace_id in (None, header.trace_id), 'trace_id')
        require(header.offset == offset, 'offset')
        if header.size > left:
            raise Stop('truncated', offset)
        return header

    def check_order(self, header):
        """Corrupt if something is missing before the chunk, or it is not to be used."""
        require(not self.ended, 'behind End')
        require(header.number == self.number, 'number')
        require(header.number or header.kind == TRACE, 'first chunk')
        if header.kind == EVENTS:
            require(header.first_record >= self.event, 'events go back')
            require(header.first_record == self.event or self.recovered or self.gap, 'events missing')
            require(header.first_position >= self.position, 'position goes back')

    def is_usable(self, header):
        """Whether all that is wrong with the order is something missing before the chunk."""
        return not self.ended and header.number >= self.number and (
            header.kind != EVENTS or (header.first_record >= self.event and
                                      header.first_position >= self.position))

    def check_stored(self, header):
        """The stored payload."""
        begin = header.offset + HEADER.size
        stored = self.data[begin:begin + header.stored_size]
        padding = self.data[begin + header.stored_size:header.offset + header.size]
        require(xxh3(stored) == header.payload_hash and not any(padding), 'payload hash')
        return stored

    def payload(self, header):
        stored = self.check_stored(header)
        require(header.record_count or header.kind in MAY_BE_EMPTY, 'no items')
        if header.kind in (TRACE, END):
            require(header.codec == 0 and header.record_count == 1 and header.first_record == 0, 'fixed')
        require(header.kind != TRACE or header.number == 0, 'second trace chunk')
        if header.kind in (2, 3, 7):
            require(header.first_record >= 1 and header.first_record + header.record_count <= 1 << 32, 'ids')
        if header.codec == 0:
            return stored
        if header.codec != 1:
            raise Stop('unsupported', header.offset)
        try:
            return lz4block.decompress(stored, header.raw_size)
        except ValueError as error:
            raise Corrupt('LZ4') from error

    def lines(self, header):
        if header.kind > KINDS:
            if header.flags & 1:
                raise Stop('unsupported', header.offset)
            if self.tolerant:
                self.check_stored(header)
            return []
        if header.kind == INDEX:
            if self.tolerant:
                self.payload(header)
            return []
        payload = self.payload(header)
        if header.kind != EVENTS:
            return READERS[header.kind](header, payload)
        found = events.Chunk(payload, header.first_record, header.record_count, self.unit).read()
        require(events.effect_position(found[0]) == header.first_position, 'first position')
        require(events.effect_position(found[-1]) == header.last_position, 'last position')
        return [events.line(event) for event in found]

    def resynchronise(self, offset):
        """The offset of the next good header behind one; None if there is none."""
        for offset in range((offset + 8) // 8 * 8, len(self.data) - HEADER.size + 1, 8):
            if self.data[offset:offset + len(MAGIC)] != MAGIC:
                continue
            try:
                header = Header(self.data, offset)
            except (Corrupt, Stop):
                continue
            if header.offset == offset and header.number >= self.number and \
                    self.trace_id in (None, header.trace_id):
                return offset
        return None

    def accept(self, header):
        """Takes note of an intact chunk."""
        if header.kind == EVENTS:
            self.event = header.first_record + header.record_count
            self.position = header.last_position
        if header.kind == 1 and header.number == 0 and header.offset == 0:
            self.unit = header.unit
            self.recovered = bool(header.trace_flags & 4)

    def first(self):
        if self.data[:len(MAGIC)] != MAGIC and not self.tolerant:
            raise Stop('not a trace', 0)
        if len(self.data) < len(MAGIC):
            raise Stop('not a trace', 0)
        try:
            header = self.header(0)
            require(header.number == 0 and header.kind == 1, 'first chunk')
            self.lines(header)
            self.trace_id = header.trace_id
            return
        except Corrupt as error:
            if not self.tolerant:
                raise Stop('corrupt', 0) from error
            found = self.resynchronise(-8)
        except Stop as stop:
            found = self.resynchronise(0)
            if not self.tolerant or stop.args[0] != 'truncated' or found is None:
                raise
        if found is None:
            raise Stop('corrupt' if self.data[:len(MAGIC)] == MAGIC else 'not a trace', 0)
        self.trace_id = Header(self.data, found).trace_id

    def step(self):
        """The lines of the chunk at the offset; moves on."""
        header = self.header(self.offset)
        self.check_order(header)
        lines = self.lines(header)
        if header.kind == END:
            require(header.totals == (self.event, header.number + 1), 'totals')
        self.accept(header)
        self.offset += header.size
        self.number = header.number + 1
        if header.kind == END:
            self.last_lines = lines
            raise Stop('end' if self.offset == len(self.data) else 'corrupt', self.offset)
        return lines

    def read_strictly(self):
        lines = []
        while self.offset < len(self.data):
            try:
                lines += self.step()
            except Corrupt:
                raise Stop('corrupt', self.offset, lines) from None
            except Stop as stop:
                raise Stop(*stop.args, lines + self.last_lines) from None
        return lines

    def damage(self, is_endless=False):
        """Opens a gap, or joins the one that is open."""
        event, last_good, was_endless = self.gap or (self.event, self.position, False)
        self.gap = event, last_good, was_endless or is_endless

    def lose(self, event, first_good=(INVALID, INVALID)):
        """The loss that the gap has come to; `event` is the one behind it, or None."""
        begin, last_good, is_endless = self.gap
        self.gap = None
        known = event is not None and event >= begin and not is_endless
        return [loss_line(4, 0, event - begin if known else MASK, last_good, first_good)]

    def find(self):
        """The next chunk that can be used; None at the end of the file. Stop as header()."""
        while self.offset < len(self.data):
            try:
                header = self.header(self.offset)
            except Corrupt:
                self.damage()
                found = self.resynchronise(self.offset)
            except Stop as stop:
                found = self.resynchronise(self.offset)
                if self.ended:
                    self.damage()
                elif stop.args[0] != 'truncated' or found is None:
                    raise
                else:
                    self.damage()
            else:
                try:
                    self.check_order(header)
                    return header
                except Corrupt:
                    self.damage(is_endless=self.ended)
                if self.is_usable(header):
                    return header
                self.offset += header.size
                continue
            if found is None:
                return None
            self.offset = found
        return None

    def use(self, header):
        """The lines of a chunk that can be used, and of the losses before it."""
        event, position = self.event, self.position
        self.offset = header.offset + header.size
        self.number = header.number + 1
        try:
            lines = self.lines(header)
        except Corrupt:
            self.damage()
            if header.kind == EVENTS:
                self.event = header.first_record + header.record_count
                self.position = header.last_position
            return []
        except Stop as stop:
            self.event, self.position = event, position
            raise Stop(*stop.args, []) from None
        lost = []
        if header.kind == EVENTS and self.gap:
            lost = self.lose(header.first_record, header.first_position)
        if header.kind == END:
            self.ended = True
            self.closed = self.offset == len(self.data)
            if header.totals != (self.event, header.number + 1):
                self.damage()
            lost = self.lose(header.totals[0]) if self.gap else []
        self.accept(header)
        return lost + lines

    def read_on(self):
        """All lines of what is good, and of the losses between."""
        lines = []
        status = 'end'
        try:
            while (header := self.find()):
                lines += self.use(header)
        except Stop as stop:
            status = stop.args[0]
            lines += stop.args[2] if len(stop.args) > 2 else []
            if status == 'unsupported':
                self.damage()
        if self.gap:
            lines += self.lose(self.event if self.ended else None)
        raise Stop(status, self.offset, lines)

    def read(self):
        """All lines, and the status and offset with which reading ended."""
        self.last_lines = []
        try:
            self.first()
            if self.tolerant:
                self.read_on()
            return self.read_strictly(), 'end', self.offset
        except Stop as stop:
            status, offset, *lines = stop.args
            return lines[0] if lines else [], status, offset


def main():
    tolerant = sys.argv[1] == '-t'
    with open(sys.argv[-1], 'rb') as file:
        lines, status, offset = Reader(file.read(), tolerant).read()
    for line in lines:
        print(line)
    print('=', status, *([offset] if status not in ('end', 'not a trace') else []))


if __name__ == '__main__':
    main()
