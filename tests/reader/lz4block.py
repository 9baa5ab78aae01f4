# SPDX-License-Identifier: MIT
"""Decompression of one LZ4 block, in plain Python."""


MATCH_BEFORE_END = 12
LITERALS_AT_END = 5


def length(data, at, value):
    if value == 15:
        while True:
            byte = data[at]
            at += 1
            value += byte
            if byte != 255:
                break
    return value, at


def decompress(data, size):
    """The `size` bytes that the block stands for; ValueError if it is not a block of so many."""
    out = bytearray()
    at = 0
    try:
        while True:
            token = data[at]
            count, at = length(data, at + 1, token >> 4)
            if at + count > len(data):
                raise ValueError('literals')
            out += data[at:at + count]
            at += count
            if at == len(data):
                break
            if len(out) + MATCH_BEFORE_END > size:
                raise ValueError('begin of the last match')
            back = data[at] | data[at + 1] << 8
            count, at = length(data, at + 2, token & 15)
            if back == 0 or back > len(out) or len(out) > size:
                raise ValueError('match')
            for _ in range(count + 4):
                out.append(out[-back])
            if len(out) + LITERALS_AT_END > size:
                raise ValueError('end of the last match')
    except IndexError as error:
        raise ValueError('end') from error
    if len(out) != size:
        raise ValueError('size')
    return bytes(out)
