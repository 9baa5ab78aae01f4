# SPDX-License-Identifier: MIT
"""Joins the page's styles and modules into one HTML text, split where the program puts its
data, as C.

Modules are joined in the order given: each imports only from those before it, and no two declare
the same name at their top level.
"""

import base64
import hashlib
import json
import pathlib
import re
import sys

from embed import as_c

IMPORT = re.compile(r"^import\s[^;]*?from\s+'\./([a-z_]+)\.js';\n", re.MULTILINE)
DECLARED = re.compile(r'^(?:export )?(?:async )?(?:function\*?|class|const|let) (\w+)',
                      re.MULTILINE)
# The module that runs in a worker.
WORKER = 'worker'
# The places in the page, in order, at which the program puts something in.
PLACES = ('policy_more', 'data')
SPLIT = '\0'
COMMENT = re.compile(r'^\s*(?://.*|/\*(?:[^*]|\*(?!/))*\*/)\n', re.MULTILINE)
INDENT = re.compile(r'^\s+', re.MULTILINE)
# A token of a script, after which spaces may follow. Templates are found by template_end().
TOKEN = re.compile(r"""(?P<space>\s+)|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<text>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
|(?P<word>[\w$]+)|(?P<sign>.)""".replace('\n', ''), re.DOTALL)
REGEX = re.compile(r'/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*')
# Signs around which a new line ends no statement.
NO_END_BEFORE = set('}]),.?:&|=+*<>%')
NO_END_AFTER = set('{[(,;?:&|=+-*<>!%/')


def fail(text):
    sys.exit(f'build.py: {text}')


def slim(text):
    """Leaves out what only readers of the sources need: lines of comments, and indentation."""
    return INDENT.sub('', COMMENT.sub('', text))


def template_end(text, at):
    """Where a template that begins at a backquote ends."""
    at += 1
    while text[at] != '`':
        if text.startswith('${', at):
            at = placed_end(text, at)
        else:
            at += 2 if text[at] == '\\' else 1
    return at + 1


def placed_end(text, at):
    """Where what is put into a template ends, which begins at a dollar sign."""
    at, depth = at + 2, 1
    while depth:
        if text[at] == '`':
            at = template_end(text, at)
            continue
        depth += {'{': 1, '}': -1}.get(text[at], 0)
        at += 1
    return at


def tokens(text):
    """The tokens of a script, without comments: each with the white space before it."""
    at, space, last = 0, '', ''
    while at < len(text):
        found = TOKEN.match(text, at)
        end = found.end()
        if found['space'] or found['comment']:
            space += found['space'] or ' '
            at = end
            continue
        if text[at] == '`':
            end = template_end(text, at)
        elif text[at] == '/' and (last == 'return' or last[-1:] in NO_END_AFTER | {''}):
            end = REGEX.match(text, at).end()
        yield space, text[at:end]
        space, last, at = '', text[at:end], end


def squeeze_template(text):
    """The same of what is put into a template."""
    parts, at = [], 0
    while (begin := text.find('${', at)) >= 0:
        end = placed_end(text, begin)
        parts += text[at:begin + 2], squeeze(text[begin + 2:end - 1]), '}'
        at = end
    return ''.join(parts) + text[at:]


def squeeze(text):
    """Leaves out spaces and lines that a script does not need."""
    # For each open bracket, whether the statement in it declares variables: the next one that does
    # may go on with it.
    parts, last, declares = [], '', [False]
    for space, token in tokens(text):
        is_end = '\n' in space and last[-1:] not in NO_END_AFTER and token[0] not in NO_END_BEFORE
        is_joined = re.match(r'[\w$][\w$]|\+\+|--|//', last[-1:] + token[0])
        if is_end:
            parts.append('\n')
        elif space and is_joined:
            parts.append(' ')
        elif (token == '}' and last == ';') or (token in ')]}' and last == ','):
            parts.pop()
        if token == '.' and last == '0':
            parts.pop()
        # Nothing is assigned to a constant, so it may as well be a variable, whose word is shorter.
        token = 'let' if token == 'const' else token
        if token == 'let' and last == ';' and declares[-1]:
            parts[-1:] = ','
            last = ','
            continue
        if last in ('', ';', '{', '}') or is_end:
            declares[-1] = token == 'let'
        if token in ('(', '[', '{'):
            declares.append(False)
        elif token in (')', ']', '}') and len(declares) > 1:
            declares.pop()
        parts.append(squeeze_template(token) if token[0] == '`' else token)
        last = token
    return ''.join(parts)


def squeeze_styles(text):
    """The same of styles."""
    return re.sub(r'\s*([{};,>])\s*|(?<=:)\s+', r'\1', re.sub(r'\s+', ' ', text)).replace(';}', '}')


def join_modules(paths):
    """The text of a script that has all modules in it. The worker is a script of its own: a module
    has its text as a constant."""
    before, names, parts = {}, {}, []
    for path in paths:
        text = path.read_text(encoding='utf-8')
        imported = IMPORT.findall(text)
        for name in imported:
            if name not in before:
                fail(f'{path.name} imports {name}.js, which does not come before it')
        before[path.stem] = path
        if path.stem == WORKER:
            modules = [before[name].read_text(encoding='utf-8') for name in imported]
            worker = as_script([bare(module) for module in (*modules, text)])
            text = f'const {WORKER.upper()} = {json.dumps(worker)};'
        for name in DECLARED.findall(text):
            if name in names:
                fail(f'{path.name} declares {name}, as does {names[name]}')
            names[name] = path.name
        parts.append(bare(text))
    return as_script(parts)


def bare(text):
    """A module without what only joins it to others."""
    return squeeze(re.sub(r'^export ', '', slim(IMPORT.sub('', text)), flags=re.MULTILINE).strip())


def as_script(parts):
    script = '\n' + '\n'.join(parts) + '\n'
    if '</script' in script or re.search(r'^import ', script, re.MULTILINE):
        fail('a module has what no inline script may have')
    return script


def hash_of(text):
    digest = hashlib.sha256(text.encode('utf-8')).digest()
    return "'sha256-" + base64.b64encode(digest).decode() + "'"


def replace(page, text, name, value):
    if text.count('@' + name + '@') != 1:
        fail(f'{page.name} must have @{name}@ once')
    before, after = text.split('@' + name + '@')
    return before + value + after


def main():
    page, style, *modules, output = map(pathlib.Path, sys.argv[1:])
    css = '\n' + squeeze_styles(slim(style.read_text(encoding='utf-8')))
    script = join_modules(modules)
    policy = f"default-src 'none'; style-src {hash_of(css)}; script-src {hash_of(script)}"
    text = page.read_text(encoding='utf-8')
    for name, value in (('policy', policy), ('style', css), ('script', script)):
        text = replace(page, text, name, value)
    for name in PLACES:
        text = replace(page, text, name, SPLIT)
    pieces = text.split(SPLIT)
    names = [f'piece_{i}' for i in range(len(pieces))]
    output.write_text(
        '/* Made by viewer/build.py. */\n#include "cli/page/page.h"\n\n' +
        ''.join(as_c(name, piece.encode('utf-8')) for name, piece in zip(names, pieces)) +
        'const struct page_piece page_frame[PAGE_PIECES] = {' +
        ', '.join(f'{{{name}, sizeof {name}}}' for name in names) + '};\n', encoding='utf-8')


main()
