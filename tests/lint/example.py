#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The bytes that the documents of the format show are those of the published files. A fenced block
is marked with the name of a vector, and shows bytes of the file; with an offset after the name, what
the payload of the chunk there decompresses to; with "dump", what the second reader reads.

example.py ROOT
"""

import pathlib
import re
import sys

problems = []


def fail(where, text):
    problems.append(f'{where}: {text}')


def parse(line):
    """Offset, bytes and whether more are left out: "0E8  01 00…  text"."""
    offset, *words = line.split()
    found = bytearray()
    for word in words:
        if not re.fullmatch(r'[0-9A-F]{2}…?|…', word):
            break
        if word != '…':
            found.append(int(word[:2], 16))
        if word.endswith('…'):
            return int(offset, 16), bytes(found), word
    return int(offset, 16), bytes(found), None


def compare(where, lines, data, begin):
    """Compares lines with data, which they show without a gap from `begin` on. Returns the end."""
    parsed = [parse(line) for line in lines]
    expected = begin
    for i, (offset, shown, more) in enumerate(parsed):
        if expected not in (None, offset):
            fail(where, f'{lines[i]!r} should be at {expected:X}')
        end = offset + len(shown)
        if data[offset:end] != shown or not (shown or more):
            fail(where, f'{lines[i]!r}, but there is {data[offset:end].hex(" ").upper()}')
        expected = end
        if more:
            expected = parsed[i + 1][0] if i + 1 < len(parsed) else len(data)
        if more == '00…' and any(data[end:expected]):
            fail(where, f'{lines[i]!r}, but not all is 0')
    return expected


def payload(reader, data, offset):
    """The decompressed payload of the chunk at an offset."""
    header = reader.Header(data, offset)
    return reader.Reader(data).payload(header)


def check(root, document, reader):
    """Checks all blocks of a document. Returns how far the bytes of each file are shown."""
    text = (root / document).read_text()
    ends = {}
    count = 0
    for name, rest, body in re.findall(r'(?m)^```(good-\S+)(.*)\n((?:(?!```).*\n)*)', text):
        data = (root / f'tests/vectors/{name}.trace').read_bytes()
        where = f'{document}: {name}{rest}'
        lines = body.splitlines()
        count += len(lines)
        if rest.strip() == 'dump':
            found, status, _ = reader.Reader(data).read()
            if lines != found or status != 'end':
                fail(where, 'the reader says something else')
        elif rest:
            raw = payload(reader, data, int(rest, 16))
            if compare(where, lines, raw, 0) != len(raw):
                fail(where, 'not to the end')
        else:
            ends[name] = compare(where, lines, data, ends.get(name))
    return ends, count


def main():
    root = pathlib.Path(sys.argv[1])
    sys.path.insert(0, str(root / 'tests/reader'))
    import ttdtrace_reader as reader
    _, first = check(root, 'spec/format.md', reader)
    ends, count = check(root, 'spec/example.md', reader)
    size = (root / 'tests/vectors/good-example.trace').stat().st_size
    if ends != {'good-example': size}:
        fail('spec/example.md', f'shown up to {ends}, of {size}')
    print(*problems, sep='\n')
    print(f'{first + count} lines, {len(problems)} problems')
    return 1 if problems or first < 30 else 0


if __name__ == '__main__':
    sys.exit(main())
