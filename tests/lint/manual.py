#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every public function has a manual page that says what it does, with what, and what it returns;
groff reads all pages without a warning.

manual.py ROOT DIRECTORY [GROFF]: the pages are in DIRECTORY
"""

import pathlib
import re
import subprocess
import sys

problems = []


def public_functions(root):
    """By name: the type of each function that a public header declares or defines."""
    found = {}
    for path in (root / 'libtrace/include').rglob('*.h'):
        text = re.sub(r'(?s)/\*.*?\*/', '', path.read_text())
        for kind, name in re.findall(
                r'(?m)^(?:TTD_EXPORT|static inline) ([^(;]*?)\b(\w+)\(', text):
            found[name] = kind.strip(), path.name
    return found


def sections(text):
    """By heading: the text below it."""
    parts = re.split(r'(?m)^\.Sh (.*)\n', text)
    return dict(zip(parts[1::2], parts[2::2]))


def check(name, kind, header, page):
    found = sections(page)
    wanted = ['NAME', 'SYNOPSIS', 'DESCRIPTION', 'SEE ALSO']
    if kind != 'void':
        wanted.append('RETURN VALUE')
    for heading in wanted:
        if not found.get(heading, '').strip():
            problems.append(f'{name}: no {heading}')
    if f'.In ttdtrace/{header}' not in page or f'.Fo {name}' not in page:
        problems.append(f'{name}: not its synopsis')
    if kind == 'enum ttd_status' and 'TTD_OK' not in found.get('RETURN VALUE', '') and \
            not re.search(r'[Ss]tatuses as|as .*ttd_\w+\(\)', found.get('RETURN VALUE', '')):
        problems.append(f'{name}: what is returned when all is well?')
    if not re.search(r'(?m)^\.Nd \S.{5,}$', page):
        problems.append(f'{name}: no purpose')


def check_links(pages):
    for name, text in pages.items():
        for other in re.findall(r'(?m)^\.Xr (\S+) 3', text):
            if other not in pages:
                problems.append(f'{name}: refers to {other}(3), which is not there')


def main():
    root, directory, *groff = sys.argv[1:]
    pages = {path.stem: path.read_text() for path in pathlib.Path(directory).glob('*.3')}
    functions = public_functions(pathlib.Path(root))
    for name, (kind, header) in functions.items():
        if name in pages:
            check(name, kind, header, pages[name])
        else:
            problems.append(f'{name}: no manual page')
    check_links(pages)
    if groff:
        told = subprocess.run(
            [groff[0], '-mandoc', '-Tutf8', '-ww', '-z', *map(str, pathlib.Path(directory).glob('*.3'))],
            capture_output=True, text=True).stderr
        problems.extend(told.splitlines())
    print(*problems, sep='\n')
    print(f'{len(functions)} functions, {len(pages)} pages, {len(problems)} problems')
    return 1 if problems or len(functions) < 50 else 0


if __name__ == '__main__':
    sys.exit(main())
