#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every public function has a manual page that says what it does, with what, what it returns and
which threads may call it; each status that its source names is on the page; groff reads all pages
without a warning.

manual.py ROOT DIRECTORIES [GROFF]: libtrace's pages are in the first of the DIRECTORIES, libttdheap's
pages in the second one, behind a comma, if there is one
"""

import pathlib
import re
import shutil
import subprocess
import sys

problems = []

# Statuses that a function returns, which are not also names of something else.
ALL = {'TTD_END'} | {'TTD_ERROR_' + name for name in (
    'NOT_A_TRACE', 'CORRUPT', 'TRUNCATED', 'UNSUPPORTED', 'LIMIT', 'NO_MEMORY', 'IO', 'ARGUMENT',
    'MISUSE', 'CANCELLED')}


# By library: its public headers, and its sources.
LIBRARIES = (('libtrace/include', 'libtrace/src'), ('analyzer/library/include', 'analyzer/library'))


def public_functions(headers):
    """By name: the type of each function that a public header declares or defines."""
    found = {}
    for path in headers.rglob('*.h'):
        text = re.sub(r'(?s)/\*.*?\*/', '', path.read_text())
        for kind, name in re.findall(
                r'(?m)^(?:TTD_EXPORT|static inline) ([^(;]*?)\b(\w+)\(', text):
            found[name] = kind.strip(), path.name
    return found


def statuses(sources):
    """By name of a function in the sources: the statuses that its body names."""
    found = {}
    for path in sources.rglob('*.c'):
        for name, body in re.findall(r'(?ms)^enum ttd_status (ttd(?:heap)?_\w+)\([^;{]*?\)\n\{(.*?)^\}',
                                     path.read_text()):
            found[name] = set(re.findall(r'(?<![=!]= )\bTTD_(?:END|ERROR_[A-Z_]+)\b', body)) & ALL
    return found


def check_statuses(name, named, pages):
    """Each status is on the page, or on the one that the page refers to."""
    text = sections(pages[name]).get('RETURN VALUE', '')
    for other in re.findall(r'as (?:\\fB)?(ttd(?:heap)?_\w+)\(\)', text):
        text += sections(pages[other]).get('RETURN VALUE', '')
    for status in sorted(named - set(re.findall(r'TTD_[A-Z_]+', text))):
        problems.append(f'{name}: may return {status}, which its page does not say')


def sections(text):
    """By heading: the text below it."""
    parts = re.split(r'(?m)^\.Sh (.*)\n', text)
    return dict(zip(parts[1::2], parts[2::2]))


def check(name, kind, header, page):
    found = sections(page)
    wanted = ['NAME', 'SYNOPSIS', 'DESCRIPTION', 'THREADS', 'SEE ALSO']
    if kind != 'void':
        wanted.append('RETURN VALUE')
    for heading in wanted:
        if not found.get(heading, '').strip():
            problems.append(f'{name}: no {heading}')
    if f'.In ttdtrace/{header}' not in page or f'.Fo {name}' not in page:
        problems.append(f'{name}: not its synopsis')
    if kind == 'enum ttd_status' and 'TTD_OK' not in found.get('RETURN VALUE', '') and \
            not re.search(r'[Ss]tatuses as|as .*ttd(?:heap)?_\w+\(\)', found.get('RETURN VALUE', '')):
        problems.append(f'{name}: what is returned when all is well?')
    if not re.search(r'(?m)^\.Nd \S.{5,}$', page):
        problems.append(f'{name}: no purpose')


def check_links(pages):
    for name, text in pages.items():
        for other in re.findall(r'(?m)^\.Xr (\S+) 3', text):
            if other not in pages:
                problems.append(f'{name}: refers to {other}(3), which is not there')


def check_width(groff, path):
    """Rendered at 80 columns no line is longer, and no cell of a table has a word a line."""
    text = subprocess.run([groff, '-mandoc', '-Tutf8', '-P-cbou', '-rLL=78n', path], check=True,
                          capture_output=True, text=True).stdout
    lines = text.splitlines()
    problems.extend(f'{path.name}: over 80 columns: {line}' for line in lines if len(line) > 80)
    narrow = [len(line) - len(line.lstrip()) > 40 and len(line.split()) == 1 for line in lines]
    problems.extend(f'{path.name}: a word a line: {" ".join(map(str.strip, lines[i:i + 3]))}'
                    for i in range(len(lines) - 2) if all(narrow[i:i + 3]))


def check_headers(include, page):
    """The page of ttdtrace.h names the headers that it does not include, and no others."""
    if not shutil.which('cc'):
        return
    made = subprocess.run(['cc', '-M', '-I', include, include / 'ttdtrace/ttdtrace.h'], check=True,
                          capture_output=True, text=True).stdout
    headers = {path.name for path in (include / 'ttdtrace').glob('*.h')}
    outside = headers - set(re.findall(r'ttdtrace/(\w+\.h)', made))
    named = set(re.findall(r'\w+\.h\b', sections(page)['DESCRIPTION']))
    if named != outside:
        problems.append(f'ttdtrace: does not include {outside}, and its page says {named}')


def main():
    root, directories, *groff = sys.argv[1:]
    paths, functions, named = [], {}, {}
    for directory, (headers, sources) in zip(directories.split(','), LIBRARIES):
        paths.extend(pathlib.Path(directory).glob('*.3'))
        functions.update(public_functions(pathlib.Path(root) / headers))
        named.update(statuses(pathlib.Path(root) / sources))
    pages = {path.stem: path.read_text() for path in paths}
    for name, (kind, header) in functions.items():
        if name in pages:
            check(name, kind, header, pages[name])
            check_statuses(name, named.get(name, set()), pages)
        else:
            problems.append(f'{name}: no manual page')
    check_links(pages)
    check_headers(pathlib.Path(root) / LIBRARIES[0][0], pages['ttdtrace'])
    if groff:
        told = subprocess.run(
            [groff[0], '-mandoc', '-Tutf8', '-ww', '-z', *map(str, paths)],
            capture_output=True, text=True).stderr
        problems.extend(told.splitlines())
        for manual in ('analyzer/ttdanalyze.1', 'analyzer/ttdtrace.7', 'recorder/ttdrecord.1'):
            check_width(groff[0], pathlib.Path(root) / manual)
    print(*problems, sep='\n')
    print(f'{len(functions)} functions, {len(pages)} pages, {len(problems)} problems')
    return 1 if problems or len(functions) < 50 else 0


if __name__ == '__main__':
    sys.exit(main())
