# SPDX-License-Identifier: MIT
"""Bytes in order: spec, "Notation"."""

MASK = (1 << 64) - 1
INVALID = MASK
STRING_MAX = 65536


class Corrupt(Exception):
    """A chunk is not as the document says."""


def require(holds, what):
    if not holds:
        raise Corrupt(what)


def unzigzag(value):
    return (value >> 1 ^ -(value & 1)) & MASK


def swap(value, predicted):
    if value == predicted:
        return 0
    return predicted if value == 0 else value


def rotl4(value):
    return (value << 4 | value >> 60) & MASK


def rotl3(value):
    return (value << 3 | value >> 61) & MASK


def check_maybe_invalid(position):
    """The invalid position has one form."""
    require(position[0] != INVALID or position[1] == INVALID, 'invalid position')


class Cursor:
    def __init__(self, data):
        self.data = data
        self.at = 0

    def left(self):
        return len(self.data) - self.at

    def bytes(self, count):
        require(count <= self.left(), 'payload too short')
        self.at += count
        return self.data[self.at - count:self.at]

    def fixed(self, size):
        return int.from_bytes(self.bytes(size), 'little')

    def u8(self):
        return self.fixed(1)

    def u32(self):
        return self.fixed(4)

    def u64(self):
        return self.fixed(8)

    def varint(self, most=MASK):
        value = 0
        for i in range(10):
            byte = self.u8()
            require(i < 9 or byte < 2, 'varint too large')
            value |= (byte & 0x7F) << 7 * i
            if byte < 0x80:
                require(byte or i == 0, 'overlong varint')
                require(value <= most, 'number too large')
                return value
        raise Corrupt('varint too long')

    def id(self):
        return self.varint(0xFFFFFFFF)

    def position(self):
        sequence = self.varint()
        return sequence, self.varint()

    def valid_position(self):
        position = self.position()
        require(position[0] != INVALID, 'invalid position')
        return position

    def fixed_position(self):
        sequence = self.u64()
        return sequence, self.u64()

    def fixed_valid_position(self):
        position = self.fixed_position()
        require(position[0] != INVALID, 'invalid position')
        return position

    def string(self):
        return self.bytes(self.varint(STRING_MAX))

    def columns(self, count):
        """Splits the rest, which begins with the sizes of `count` columns."""
        sizes = [self.u32() for _ in range(count)]
        require(sum(sizes) == self.left(), 'sizes of columns')
        return [Cursor(self.bytes(size)) for size in sizes]

    def finish(self):
        require(self.left() == 0, 'bytes left over')


def at(position):
    return f'{position[0]:x}:{position[1]:x}'


def rows(function):
    """A reader of records that stand one after the other."""
    def read(header, payload):
        cursor = Cursor(payload)
        lines = [function(cursor) for _ in range(header.record_count)]
        cursor.finish()
        return lines
    return read
