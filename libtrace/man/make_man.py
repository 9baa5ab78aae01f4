#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes manual pages of section 3 of the contracts in the public headers: one for each function, and
one for each header, with its types.

make_man.py --list HEADER...            prints the names of all pages
make_man.py DIRECTORY VERSION HEADER... writes them
"""

import pathlib
import re
import sys

SPEC = 'format.md'
DATE = 'November 22, 2026'
NAME_MAX = 75


class Function:
    def __init__(self, header, comment, declaration, group):
        self.header = header
        self.prototype = ' '.join(declaration.replace('TTD_EXPORT', '').split())
        match = re.fullmatch(r'(?:static inline )?(.*?[ *])(\w+)\((.*)\)', self.prototype)
        self.type, self.name = match[1].strip(), match[2]
        self.arguments = re.findall(r'[^,]+', match[3])
        self.text, self.parameters, self.returns = split(comment)
        self.group = ''
        if not self.returns and self.type != 'void':
            self.returns = self.inferred(group)
        elif self.returns.startswith('as above'):
            self.returns = self.of_group(group) + self.returns[len('as above'):].replace('; ', ' ')

    def inferred(self, group):
        """What the function returns, if its comment has no @return."""
        told = [sentence for sentence in sentences(self.text)
                if re.search(r'\b[Rr]eturns?\b|[Ss]tatuses', sentence)]
        if told:
            return ' '.join(told)
        if self.type == 'enum ttd_status' and group:
            return self.of_group(group)
        return self.text

    def of_group(self, group):
        """Takes what all functions of a group return; the rest goes into the description."""
        told = [sentence for sentence in sentences(group)
                if re.search(r'\breturn\b|TTD_OK', sentence)]
        self.group = ' '.join(sentence for sentence in sentences(group)[1:]
                              if sentence not in told)
        return re.sub(r'^All return ', '', ' '.join(told))


def sentences(text):
    return re.split(r'(?<=[.;:]) (?=[A-Z])', ' '.join(text.split()))


def clean(comment):
    """The text of a comment, without its stars."""
    lines = [re.sub(r'^\s*\*? ?', '', line) for line in comment.strip('/* \n').split('\n')]
    return '\n'.join(line.rstrip() for line in lines).strip(' */\n')


def split(comment):
    """Text, parameters with their meaning, and what is returned."""
    text, *tags = re.split(r'(?m)^@', clean(comment))
    parameters, returns = [], ''
    for tag in tags:
        kind, _, rest = tag.partition(' ')
        words = ' '.join(rest.split())
        if kind == 'return':
            returns = words
        else:
            parameters.append(words.partition(' ')[::2])
    return text.strip(), parameters, returns


def parse(path):
    """What a header says of itself, its source without functions, and its functions."""
    source = path.read_text()
    body = re.split(r'(?m)^#define TTDTRACE_\w+_H\n', source)[1]
    body = re.sub(r'(?s)/\* Visibility.*?(?=\nTTD_BEGIN_DECLS\n)', '', body)
    body = re.sub(r'(?m)^(TTD_(BEGIN|END)_DECLS|#include .*)\n', '', body)
    body = re.sub(r'#endif\n$', '', body)
    about = re.search(r'(?s)\n/\*\*(.*?)\*/', source)[1]
    functions, group, types = [], '', []
    pattern = re.compile(
        r'(?s)(?P<doc>/\*\*(?:(?!\*/).)*\*/\n)?(?:(?P<declaration>TTD_EXPORT [^;{]*\))(?:;)|'
        r'(?P<inline>static inline [^;{]*\))\n\{.*?\n\}\n)|(?P<group>\n/\*(?!\*).*?\*/\n\n)')
    end = 0
    for match in pattern.finditer(body):
        types.append(body[end:match.start()])
        end = match.end()
        if match['group']:
            group = clean(match['group'])
            continue
        functions.append(Function(path.name, match['doc'] or '',
                                  match['declaration'] or match['inline'], group))
    types.append(body[end:])
    return clean(about), re.sub(r'\n{3,}', '\n\n', ''.join(types)).strip(), functions


# ---- mdoc ----

def characters(text):
    """Backslashes, minus signs and what is not ASCII."""
    text = text.replace('\\', r'\e').replace('-', r'\-')
    return ''.join(c if c.isascii() else f'\\[u{ord(c):04X}]' for c in text)


def escape(text):
    text = characters(text)
    text = re.sub(r'`([^`]*)`', r'\\fI\1\\fR', text)
    text = re.sub(r'\b(ttd_\w+\(\))', r'\\fB\1\\fR', text)
    text = re.sub(r'\b(TTD_[A-Z0-9_]+)\b', r'\\fB\1\\fR', text)
    return '\n'.join(r'\&' + line if line[:1] in '.\'' else line for line in text.split('\n'))


def paragraphs(text):
    """Paragraphs; one that is indented by four is a program."""
    return '\n.Pp\n'.join(literal(part) if part.startswith('    ') else escape(' '.join(part.split()))
                          for part in re.split(r'\n\n', text))


def literal(text):
    return '.Bd -literal\n' + '\n'.join(
        r'\&' + line if line[:1] in '.\'' else line
        for line in characters(text).split('\n')) + '\n.Ed'


def short(text):
    """The first sentence, for the list of manual pages: a phrase in lower case."""
    phrase = re.split(r'[.;:](?: |$)', ' '.join(text.split()))[0].replace('`', '')
    if len(phrase) > NAME_MAX:
        phrase = phrase[:NAME_MAX].rsplit(',' if ',' in phrase[:NAME_MAX] else ' ', 1)[0]
    first = phrase.split(' ')[0]
    return phrase if first.isupper() and len(first) > 1 else phrase[:1].lower() + phrase[1:]


def page(title, version, name, what, parts):
    lines = ['.\\" SPDX-License-Identifier: MIT', '.\\" Made from the headers by make_man.py.',
             f'.Dd {DATE}\n.Dt {title.upper()} 3\n.Os ttdtrace {version}',
             f'.Sh NAME\n.Nm {name}\n.Nd {escape(what)}']
    for heading, text in parts:
        if text:
            lines.append(f'.Sh {heading}\n{text}')
    return '\n'.join(lines) + '\n'


def see_also(names):
    return '\n'.join(f'.Xr {name} 3 ,' for name in names)[:-2]


def header_page(path):
    return path.stem if path.stem in ('ttdtrace', 'ttdheap') else 'ttdtrace_' + path.stem


def threads_of(about):
    """What a header says of threads, which holds for all its functions."""
    told = [part for part in re.split(r'\n\n', about) if part.startswith('Threads: ')]
    text = ' '.join(' '.join(told).removeprefix('Threads: ').split())
    return escape(text[:1].upper() + text[1:]) if text else ''


def function_page(function, path, about, siblings, version):
    arguments = '\n'.join(f'.Fa "{argument.strip()}"' for argument in function.arguments)
    synopsis = (f'.In ttdtrace/{path.name}\n.Ft "{function.type}"\n'
                f'.Fo {function.name}\n{arguments}\n.Fc')
    description = paragraphs(function.text)
    if function.parameters:
        items = '\n'.join(f'.It Fa {name}\n{escape(text.strip())}'
                          for name, text in function.parameters)
        description += f'\n.Bl -tag -width Ds\n{items}\n.El'
    if function.group:
        description += '\n.Pp\n' + paragraphs(function.group)
    around = [header_page(path)] + [other.name for other in siblings if other is not function]
    returns = paragraphs(function.returns) if function.type != 'void' else ''
    return page(function.name, version, function.name, short(function.text), [
        ('SYNOPSIS', synopsis), ('DESCRIPTION', description), ('RETURN VALUE', returns),
        ('THREADS', threads_of(about)),
        ('SEE ALSO', see_also(around))])


def all_headers(path, headers):
    return [header_page(header) for header in headers if header != path]


def included_by(path):
    """The names of the headers of the folder that a header includes, directly or not."""
    found, left = set(), [path.name]
    while left:
        text = (path.parent / left.pop()).read_text()
        names = set(re.findall(r'#include <ttdtrace/(\w+\.h)>', text)) - found
        found |= names
        left += names
    return found


def page_of_header(path, about, types, functions, headers, version):
    synopsis = f'.In ttdtrace/{path.name}'
    see = [function.name for function in functions] or all_headers(path, headers)
    name = header_page(path)
    if name == 'ttdtrace':
        others = sorted({header.name for header in headers} - {path.name} - included_by(path))
        about = ('Reading and writing heap traces. This header includes all others but '
                 f'{", ".join(others[:-1])} and {others[-1]}. '
                 'The package of pkg-config is ttdtrace. The format is described in ' + SPEC +
                 ', which is installed with the documentation.')
        types = ''
    return page(name, version, name, short(about), [
        ('SYNOPSIS', synopsis), ('DESCRIPTION', paragraphs(about)),
        ('TYPES AND CONSTANTS', literal(types) if types else ''), ('SEE ALSO', see_also(see))])


def make(headers, version):
    """All pages, by name."""
    pages = {}
    for path in headers:
        about, types, functions = parse(path)
        pages[header_page(path)] = page_of_header(path, about, types, functions, headers, version)
        for function in functions:
            pages[function.name] = function_page(function, path, about, functions, version)
    return pages


def main():
    if sys.argv[1] == '--list':
        print(*(name + '.3' for name in make(list(map(pathlib.Path, sys.argv[2:])), '')), sep='\n')
        return
    directory, version, *headers = sys.argv[1:]
    for name, text in make(list(map(pathlib.Path, headers)), version).items():
        (pathlib.Path(directory) / f'{name}.3').write_text(text)


if __name__ == '__main__':
    main()
