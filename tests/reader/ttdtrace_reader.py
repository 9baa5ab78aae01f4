#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A second reader of the format, written from spec/format.md alone; Python's library only.

ttdtrace_reader.py [-t] FILE: prints a line per record, and how the reading ended. -t goes on after
damage.
"""

import struct
import sys

import events
import lz4block
from columns import INVALID, MASK, Corrupt, require
from records import READERS
from xxh3 import xxh3

MAGIC = bytes.fromhex('8954544448 0D0A1A')
HEADER = struct.Struct('<8sHHBBHIIQQQQIIQQQQQQ')
PAYLOAD_MAX = 16 << 20
ITEMS_MAX = 65536
TRACE, EVENTS, INDEX, END, KINDS = 1, 8, 15, 16, 16
CRITICAL = (TRACE, EVENTS)
MAY_BE_EMPTY = (11, 13)


class Stop(Exception):
    """Reading ends: a status, and where."""


class Header:
    def __init__(self, data, offset):
        (magic, self.major, self.kind, self.codec, self.flags, self.minor, self.stored_size,
         self.raw_size, self.trace_id, self.number, self.offset, self.first_item, self.item_count,
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
        require(self.first_item + self.item_count <= MASK, 'first_item')
        require(self.stored_size <= PAYLOAD_MAX and self.raw_size <= PAYLOAD_MAX, 'size')
        require(self.codec != 0 or self.stored_size == self.raw_size, 'raw size')
        require(self.codec != 1 or self.raw_size <= 255 * self.stored_size + 64, 'raw size')
        require(self.item_count <= min(ITEMS_MAX, self.raw_size), 'items')


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
        self.damaged = False

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
        """Whether the chunk is to be used; Corrupt if that is damage in any case."""
        require(header.number >= self.number, 'number goes back')
        if header.kind == EVENTS:
            require(header.first_item >= self.event, 'events go back')
            require(header.first_position >= self.position, 'position goes back')
        whole = header.number == self.number
        if header.kind == EVENTS and not self.recovered and not self.damaged:
            whole = whole and header.first_item == self.event
        require(whole or self.tolerant, 'something is missing')
        self.damaged |= not whole

    def payload(self, header):
        begin = header.offset + HEADER.size
        stored = self.data[begin:begin + header.stored_size]
        padding = self.data[begin + header.stored_size:header.offset + header.size]
        require(xxh3(stored) == header.payload_hash and not any(padding), 'payload hash')
        require(header.item_count or header.kind in MAY_BE_EMPTY, 'no items')
        if header.kind in (TRACE, END):
            require(header.codec == 0 and header.item_count == 1 and header.first_item == 0, 'fixed')
        require(header.kind != TRACE or header.number == 0, 'second trace chunk')
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
            return []
        if header.kind == INDEX:
            return []
        payload = self.payload(header)
        if header.kind != EVENTS:
            return READERS[header.kind](header, payload)
        found = events.Chunk(payload, header.first_item, header.item_count, self.unit).read()
        require(events.effect_position(found[0]) == header.first_position, 'first position')
        require(events.effect_position(found[-1]) == header.last_position, 'last position')
        return [events.line(event) for event in found]

    def resynchronise(self):
        """Goes to the next good header; Stop if there is none."""
        self.damaged = True
        for offset in range((self.offset + 8) // 8 * 8, len(self.data) - HEADER.size + 1, 8):
            if self.data[offset:offset + len(MAGIC)] != MAGIC:
                continue
            try:
                header = Header(self.data, offset)
            except (Corrupt, Stop):
                continue
            if header.offset == offset and header.number >= self.number and \
                    self.trace_id in (None, header.trace_id):
                self.trace_id = header.trace_id
                self.offset = offset
                return
        raise Stop('not a trace' if self.trace_id is None else 'end', 0)

    def accept(self, header):
        """Takes note of an intact chunk."""
        if header.kind == EVENTS:
            self.event = header.first_item + header.item_count
            self.position = header.last_position
            self.damaged = False
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
        except Corrupt as error:
            if not self.tolerant:
                raise Stop('corrupt', 0) from error
            self.offset = -8
            self.resynchronise()

    def step(self):
        """The lines of the chunk at the offset; moves on."""
        header = self.header(self.offset)
        try:
            self.check_order(header)
            lines = self.lines(header)
            if header.kind == END and not self.damaged and not self.tolerant:
                require(header.totals == (self.event, header.number + 1), 'totals')
        except Corrupt:
            if not self.tolerant:
                raise
            self.damaged = True
            self.offset += header.size
            self.number = max(self.number, header.number + 1)
            return []
        self.accept(header)
        self.offset += header.size
        self.number = header.number + 1
        if header.kind == END and (self.tolerant or self.offset == len(self.data)):
            self.last_lines = lines
            raise Stop('end', self.offset)
        if header.kind == END:
            self.last_lines = lines
            raise Stop('corrupt', self.offset)
        return lines

    def read(self):
        """All lines, and the status and offset with which reading ended."""
        lines = []
        self.last_lines = []
        try:
            self.first()
            while self.offset < len(self.data):
                try:
                    lines += self.step()
                except Corrupt:
                    if not self.tolerant:
                        raise Stop('corrupt', self.offset) from None
                    self.resynchronise()
            return lines, 'end', self.offset
        except Stop as stop:
            return lines + self.last_lines, *stop.args


def main():
    tolerant = sys.argv[1] == '-t'
    with open(sys.argv[-1], 'rb') as file:
        lines, status, offset = Reader(file.read(), tolerant).read()
    for line in lines:
        print(line)
    print('=', status, *([offset] if status not in ('end', 'not a trace') else []))


if __name__ == '__main__':
    main()
