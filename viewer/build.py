# SPDX-License-Identifier: MIT
"""Joins the page's styles and modules into one HTML text, split where the program puts its
data, as C.

Modules are joined in the order given: each imports only from those before it, and no two declare
the same name at their top level. The page has the styles and the joined script packed like its data,
a third of their size; the loader, a short script in front of them, unpacks them and runs it.
"""

import base64
import hashlib
import json
import pathlib
import re
import sys
import zlib

from embed import as_c

IMPORT = re.compile(r"^import\s[^;]*?from\s+'\./([a-z_]+)\.js';\n", re.MULTILINE)
DECLARED = re.compile(r'^(?:export )?(?:async )?(?:function\*?|class|const|let) (\w+)',
                      re.MULTILINE)
# The module that runs in a worker, and the module that runs first.
WORKER, LOADER = 'worker', 'loader'
# The places in the page, in order, at which the program puts something in.
PLACES = ('policy_more', 'data')
SPLIT = '\0'
# Separator of styles and script, as the loader has it.
BETWEEN = '\f'
COMMENT = re.compile(r'^\s*(?://.*|/\*(?:[^*]|\*(?!/))*\*/)\n', re.MULTILINE)
INDENT = re.compile(r'^\s+', re.MULTILINE)
# Digits of packed data, as pairs.js reads them.
RADIX, BITS, FIRST = 91, 13, ord('#')


def fail(text):
    sys.exit(f'build.py: {text}')


def slim(text):
    """Leaves out lines of comments, and indentation."""
    return INDENT.sub('', COMMENT.sub('', text))


def squeeze_styles(text):
    """Leaves out spaces that styles do not need."""
    return re.sub(r'\s*([{};,>])\s*|(?<=:)\s+', r'\1', re.sub(r'\s+', ' ', text)).replace(';}', '}')


def join_modules(paths):
    """The texts of two scripts: the loader with the modules that it imports, whose functions all
    scripts of a page can call, and one that has the other modules. The worker is a script of its
    own: a module has its text as a constant."""
    before, names, loader = {}, {}, []
    for path in paths:
        text = path.read_text(encoding='utf-8')
        imported = IMPORT.findall(text)
        for name in imported:
            if name not in before:
                fail(f'{path.name} imports {name}.js, which does not come before it')
        if path.stem == WORKER:
            worker = as_script([*(before[name] for name in imported), bare(text)])
            text = f'const {WORKER.upper()} = {json.dumps(worker)};'
        elif path.stem == LOADER:
            loader = [*imported, LOADER]
        for name in DECLARED.findall(text):
            if name in names:
                fail(f'{path.name} declares {name}, as does {names[name]}')
            names[name] = path.name
        before[path.stem] = bare(text)
    return (as_script([before[name] for name in loader]),
            as_script([text for name, text in before.items() if name not in loader]))


def bare(text):
    """A module without its imports and exports."""
    return re.sub(r'^export ', '', slim(IMPORT.sub('', text)), flags=re.MULTILINE).strip()


def pack(text):
    """A text as the program packs data (page_write_packed())."""
    packer = zlib.compressobj(9, wbits=-15)
    data = packer.compress(text.encode('utf-8')) + packer.flush()
    bits = int.from_bytes(data, 'little')
    digits = [str(len(data)) + ' ']
    for at in range(0, 8 * len(data), BITS):
        pair = bits >> at & (1 << BITS) - 1
        digits += chr(FIRST + pair % RADIX), chr(FIRST + pair // RADIX)
    return ''.join(digits).replace('<', '!')


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
    loader, script = join_modules(modules)
    policy = (f"default-src 'none'; style-src {hash_of(css)}; "
              f"script-src {hash_of(loader)} {hash_of(script)}")
    text = page.read_text(encoding='utf-8')
    values = {**dict.fromkeys(PLACES, SPLIT), 'policy': policy, 'loader': loader,
              'packed': pack(css + BETWEEN + script)}
    for name, value in values.items():
        text = replace(page, text, name, value)
    pieces = text.split(SPLIT)
    names = [f'piece_{i}' for i in range(len(pieces))]
    output.write_text(
        '/* Made by viewer/build.py. */\n#include "cli/page/page.h"\n\n' +
        ''.join(as_c(name, piece.encode('utf-8')) for name, piece in zip(names, pieces)) +
        'const struct page_piece page_frame[PAGE_PIECES] = {' +
        ', '.join(f'{{{name}, sizeof {name}}}' for name in names) + '};\n', encoding='utf-8')


main()
