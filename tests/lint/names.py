#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Names in the product: a stack, a profile or a list of files must say by them where one is. No
static function shares its name with a function of another file, and no two files share theirs.
Exits 1 and lists those that do."""

import collections
import pathlib
import re
import sys

PRODUCT = ('libtrace', 'common', 'analyzer', 'recorder')
COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
DIRECTIVE = re.compile(r'^[ \t]*#(?:\\\n|[^\n])*', re.MULTILINE)
ATTRIBUTE = re.compile(r'__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)\s*')
# What begins in the first column, up to the bracket of its parameters, and the body behind them.
FUNCTION = re.compile(r'^(?P<words>[A-Za-z_][^;{}()=]*?)(?P<name>\w+)\('
                      r'(?:[^(){};]|\((?:[^(){};]|\([^(){};]*\))*\))*\)\s*\{', re.MULTILINE)


def functions(text):
    """Yields the name of each function that a file defines, and whether it is static."""
    code = ATTRIBUTE.sub('', DIRECTIVE.sub('', COMMENT_OR_STRING.sub('', text)))
    for match in FUNCTION.finditer(code):
        yield match['name'], match['words'].startswith('static')


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    users, statics, files = collections.defaultdict(set), set(), collections.defaultdict(set)
    for part in PRODUCT:
        for path in sorted((root / part).rglob('*.[ch]')):
            source = str(path.relative_to(root))
            files[path.name].add(source)
            for name, is_static in functions(path.read_text()):
                users[name].add(source)
                if is_static:
                    statics.add((name, source))
    problems = [f'{source}: {name}() is also in {", ".join(sorted(users[name] - {source}))}'
                for name, source in sorted(statics)
                if len(users[name]) > 1]
    problems += [f'{", ".join(sorted(sources))}: files of one name'
                 for sources in files.values() if len(sources) > 1]
    print(*problems, sep='\n')
    print(f'{len(statics)} static functions checked, {len(problems)} names are shared')
    return 1 if problems or not statics else 0


if __name__ == '__main__':
    sys.exit(main())
