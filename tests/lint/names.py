#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Names in the product: a stack, a profile or a list of files must say by them where one is. No
static function shares its name with a function of another file, and no two files share theirs. The
name of a static function has a word of the file or of its folder, or, in a header, of a type there;
or its first word is a command that the file defines, or begins names of this file only. Exits 1 and
lists the names that do not."""

import collections
import pathlib
import re
import sys

PRODUCT = ('libtrace', 'common', 'analyzer', 'recorder')
COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
DIRECTIVE = re.compile(r'^[ \t]*#(?:\\\n|[^\n])*', re.MULTILINE)
ATTRIBUTE = re.compile(r'__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)\s*')
# Text from the first column, up to the bracket of its parameters, and the body behind them.
FUNCTION = re.compile(r'^(?P<words>[A-Za-z_][^;{}()=]*?)(?P<name>\w+)\('
                      r'(?:[^(){};]|\((?:[^(){};]|\([^(){};]*\))*\))*\)\s*\{', re.MULTILINE)


# A type that a header defines or declares.
TYPE = re.compile(r'^(?:struct|union|enum) (\w+)(?: \{|;)', re.MULTILINE)
# Of inline functions in headers: the beginnings of the names of both libraries, and other
# libraries' functions, which a header takes the place of.
PREFIXED = re.compile(r'ttd_|heap_|LZ4_|pthread_')
# Hooks begin and end with these, which are declared beside the thread's part of their work.
ELSEWHERE = {'target_enter', 'target_leave'}


def functions(text):
    """Yields the name of each function that a file defines, and whether it is static."""
    code = ATTRIBUTE.sub('', DIRECTIVE.sub('', COMMENT_OR_STRING.sub('', text)))
    for match in FUNCTION.finditer(code):
        yield match['name'], match['words'].startswith('static')


def without_plural(word):
    """Returns the word as it is compared, such that "category" and "categories" are one."""
    return re.sub(r'(?:ies|(?<![aeo])y)$', 'i', word.rstrip('s') if word[-3:] != 'ies' else word)


def words(name):
    return [without_plural(word) for word in re.split(r'[_.]', name)]


def own_words(path):
    """Returns the words of a file, of its folder, of the commands that it defines, and, in a
    header, of its types."""
    own = {word for part in (path.stem, path.parent.name) for word in words(part)}
    if path.suffix == '.h':
        own.update(word for tag in TYPE.findall(path.read_text()) for word in words(tag))
    if path.name.startswith('cmd_'):
        own.update(map(without_plural, re.findall(r'^ +\.name = "(\w+)",$', path.read_text(),
                                                  re.MULTILINE)))
    return own


def without_module(root, statics):
    """Yields a problem for each static function whose name does not say in which file it is."""
    beginners = collections.defaultdict(collections.Counter)
    own = {source: own_words(root / source) for _, source in statics}
    for name, source in statics:
        beginners[words(name)[0]][source] += 1
    for name, source in sorted(statics):
        sharers = beginners[words(name)[0]]
        is_alone = len(sharers) == 1 and sharers[source] > 1
        is_other = source.endswith('.h') and (PREFIXED.match(name) or name in ELSEWHERE)
        if own[source].isdisjoint(words(name)) and not is_alone and not is_other:
            yield f'{source}: the name {name}() lacks a word of its file'


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
    problems += without_module(root, statics)
    print(*problems, sep='\n')
    print(f'{len(statics)} static functions checked, {len(problems)} problems')
    return 1 if problems or not statics else 0


if __name__ == '__main__':
    sys.exit(main())
