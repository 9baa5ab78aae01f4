# SPDX-License-Identifier: MIT
"""Makes a C source of the engine of exact pages."""

import pathlib
import sys


def as_c(name, data):
    rows = [','.join(map(str, data[i:i + 24])) for i in range(0, len(data), 24)]
    return f'static const unsigned char {name}[] = {{\n' + ',\n'.join(rows) + '};\n'


def main():
    engine, output = map(pathlib.Path, sys.argv[1:])
    output.write_text(
        '/* Made by viewer/embed.py. */\n#include "cli/page/page.h"\n\n' +
        as_c('engine', engine.read_bytes()) +
        'const struct page_engine page_engine = {engine, sizeof engine};\n', encoding='utf-8')


if __name__ == '__main__':
    main()
