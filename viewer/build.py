# SPDX-License-Identifier: MIT
"""Joins the page's styles and modules into one HTML text, split where its data belong, as C.

Modules are joined in the order given: each imports only from those before it, and no two declare
the same name at their top level.
"""

import base64
import hashlib
import pathlib
import re
import sys

IMPORT = re.compile(r"^import\s[^;]*?from\s+'\./([a-z_]+)\.js';\n", re.MULTILINE)
DECLARED = re.compile(r'^(?:export )?(?:async )?(?:function\*?|class|const|let) (\w+)',
                      re.MULTILINE)
COMMENT = re.compile(r'^// SPDX.*\n', re.MULTILINE)


def fail(text):
    sys.exit(f'build.py: {text}')


def join_modules(paths):
    """The text of a script that has all modules in it."""
    before, names, parts = set(), {}, []
    for path in paths:
        text = path.read_text(encoding='utf-8')
        for name in IMPORT.findall(text):
            if name not in before:
                fail(f'{path.name} imports {name}.js, which does not come before it')
        for name in DECLARED.findall(text):
            if name in names:
                fail(f'{path.name} declares {name}, as does {names[name]}')
            names[name] = path.name
        before.add(path.stem)
        text = COMMENT.sub('', IMPORT.sub('', text))
        parts.append(re.sub(r'^export ', '', text, flags=re.MULTILINE).strip())
    script = '\n' + '\n\n'.join(parts) + '\n'
    if '</script' in script or re.search(r'^import ', script, re.MULTILINE):
        fail('a module has what no inline script may have')
    return script


def hash_of(text):
    digest = hashlib.sha256(text.encode('utf-8')).digest()
    return "'sha256-" + base64.b64encode(digest).decode() + "'"


def as_c(name, text):
    data = text.encode('utf-8')
    rows = [','.join(map(str, data[i:i + 24])) for i in range(0, len(data), 24)]
    return f'static const unsigned char {name}[] = {{\n' + ',\n'.join(rows) + '};\n'


def main():
    page, style, *modules, output = map(pathlib.Path, sys.argv[1:])
    css = '\n' + style.read_text(encoding='utf-8')
    script = join_modules(modules)
    policy = f"default-src 'none'; script-src {hash_of(script)}; style-src {hash_of(css)}"
    text = page.read_text(encoding='utf-8')
    for name, value in (('policy', policy), ('style', css), ('script', script)):
        if text.count('@' + name + '@') != 1:
            fail(f'{page.name} must have @{name}@ once')
        before, after = text.split('@' + name + '@')
        text = before + value + after
    begin, end = text.split('@data@')
    output.write_text(
        '/* Made by viewer/build.py. */\n#include "cli/page/page.h"\n\n' +
        as_c('begin', begin) + as_c('end', end) +
        'const struct page_frame_text page_frame_text = {begin, sizeof begin, end, sizeof end};\n',
        encoding='utf-8')


main()
