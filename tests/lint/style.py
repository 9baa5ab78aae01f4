#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Formatting, and the few rules that no compiler checks. Exits 1 and says where if one is broken."""

import pathlib
import re
import subprocess
import sys

CODE = {'.c', '.h', '.cpp'}
SCRIPTS = {'.py', '.sh', '.build'}
# The library takes memory from the caller's table only, and says nothing.
LIBRARY_BANS = re.compile(
    r'\b(malloc|calloc|realloc|free|printf|fprintf|puts|exit|abort)\s*\(')
LIBRARY_EXEMPT = {'libtrace/src/base/memory.c'}
# Three statements in a row that write text: say() takes their place (report/sections/say.h).
WRITES = re.compile(r'(?:^[ \t]+(?:out_(?!bar|format|init|flush|write)\w+|report_count|escape_text)'
                    r'\((?:[^;"\']|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])+\')*;\n){3}', re.MULTILINE)
COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)

# A pointer in a condition stands by itself, p or !p; != NULL makes a value of a comparison.
NULL_TESTS = re.compile(r'== NULL\b|!= NULL\s*(?:&&|\|\||\?)|\b(?:if|while) \([^;{}()]*!= NULL\)')


def blank(match):
    return re.sub(r'[^\n]', ' ', match[0])


def check_null_tests(source, code):
    for found in NULL_TESTS.finditer(code):
        yield f'{source}:{code.count(chr(10), 0, found.start()) + 1}: a pointer is tested by p or !p'


def check_bans(source, code):
    if not source.startswith('libtrace/src/') or source in LIBRARY_EXEMPT:
        return
    for number, line in enumerate(code.splitlines(), 1):
        found = LIBRARY_BANS.search(line)
        if found:
            yield f'{source}:{number}: the library must not call {found[1]}'


def check_writes(source, text):
    if source.startswith('analyzer/report/') and '/writers/' not in source:
        for match in WRITES.finditer(text):
            yield f'{source}:{text.count(chr(10), 0, match.start()) + 1}: say() writes this at once'


def check_text(source, text):
    if 'SPDX-License-Identifier: MIT' not in '\n'.join(text.splitlines()[:3]):
        yield f'{source}:1: no SPDX line'
    for number, line in enumerate(text.splitlines(), 1):
        if line != line.rstrip():
            yield f'{source}:{number}: blank at the end of the line'
    if text and not text.endswith('\n'):
        yield f'{source}: no newline at the end'


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    clang_format = sys.argv[2]
    problems = []
    code = []
    for part in ('libtrace', 'common', 'analyzer', 'recorder', 'bench', 'tests', 'fuzz', 'tools'):
        for path in sorted((root / part).rglob('*')):
            if not path.is_file() or path.suffix not in CODE | SCRIPTS:
                continue
            source = str(path.relative_to(root))
            text = path.read_text()
            problems += check_text(source, text)
            if path.suffix in CODE:
                code.append(str(path))
                bare = COMMENT_OR_STRING.sub(blank, text)
                problems += check_bans(source, bare)
                problems += check_null_tests(source, bare)
                problems += check_writes(source, text)
    formatted = subprocess.run([clang_format, '--dry-run', '-Werror', '--style=file', *code],
                               capture_output=True, text=True)
    problems += [line for line in formatted.stderr.splitlines() if 'error:' in line]
    print(*problems, sep='\n')
    print(f'{len(code)} files checked, {len(problems)} problems')
    return 1 if problems or not code else 0


if __name__ == '__main__':
    sys.exit(main())
