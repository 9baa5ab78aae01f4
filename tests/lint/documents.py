#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The documents for people agree with the tree: the README's programs compile, links lead somewhere,
files that are named exist, options that are named are in a manual, the layout has every folder.

documents.py ROOT COMPILER...
"""

import os
import pathlib
import re
import subprocess
import sys

DOCUMENTS = ('README.md', 'CONTRIBUTING.md', 'DESIGN.md', 'bench/README.md',
             'tests/cli/trace/passes.md')
# Folders that the layout lists with every folder in them.
LISTED_WHOLE = ('libtrace/src', 'libtrace/src/codec', 'analyzer', 'recorder', 'recorder/collect',
                'recorder/preload')
FLAGS = ('-x', 'c', '-std=c11', '-Wall', '-Wextra', '-Werror', '-fsyntax-only')

problems = []


def project_files(root):
    """Every file of the project, relative to its root: none of a build or of git."""
    found = set()
    for top in root.iterdir():
        builds = [*top.glob('meson-info'), *top.glob('*/meson-info')]
        if top.name.startswith('.') or builds:
            continue
        paths = top.rglob('*') if top.is_dir() else [top]
        found |= {str(path.relative_to(root)) for path in paths
                  if path.is_file() and path.parent.name != '__pycache__'}
    return found


def folders_of(files):
    return {str(parent) for name in files for parent in pathlib.PurePath(name).parents}


def check_programs(root, compiler, text):
    """Each C program in the README compiles by itself, without a warning."""
    programs = re.findall(r'```c\n(.*?)```', text, re.DOTALL)
    for number, program in enumerate(programs, 1):
        compiled = subprocess.run([*compiler, *FLAGS, '-I', root / 'libtrace/include',
                                   '-I', root / 'analyzer/library/include', '-'],
                                  input=program, capture_output=True, text=True)
        if compiled.returncode != 0:
            problems.append(f'README.md: program {number}: {compiled.stderr.strip()}')
    return len(programs)


def anchors(text):
    """Targets of links into a document: its headings, as a browser spells them."""
    headings = re.findall(r'(?m)^#+ (.*)$', text)
    return {re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-') for heading in headings}


def check_links(root, name, text):
    for target in re.findall(r'(?<!\\\[)\]\(([^)\s]+)\)', text):
        path, _, anchor = target.partition('#')
        if '://' in target:
            continue
        document = (root / name).parent / path if path else root / name
        if not document.exists():
            problems.append(f'{name}: no file {target}')
        elif anchor and anchor not in anchors(document.read_text()):
            problems.append(f'{name}: no heading {target}')


def check_names(name, text, files, folders):
    """Names in backquotes that look like those of files are those of files: whole, or their ends."""
    prose = re.sub(r'(?s)```.*?```', '', text)
    for word in re.findall(r'`([\w./*<>-]+)`', prose):
        is_folder = word.endswith('/')
        if not is_folder and not re.search(r'\w\.(?:c|h|py|md|1)$', word) or set(word) & set('*<>'):
            continue
        wanted = word.rstrip('/')
        where = folders if is_folder else files
        if not any(each == wanted or each.endswith('/' + wanted) for each in where):
            problems.append(f'{name}: there is no {word}')


def check_scripts(root, name, text):
    """Commands in a document, such as "bench/record.py --build build", can be run."""
    for script in re.findall(r'(?m)^    ((?:bench|tools)/\S+)', text):
        if not os.access(root / script, os.X_OK):
            problems.append(f'{name}: {script} cannot be run')


def check_layout(text, folders):
    """The tree that CONTRIBUTING shows has folders that exist, and all that are worth a line."""
    block = re.search(r'(?s)## Layout\n.*?```\n(.*?)```', text)
    if not block:
        problems.append('CONTRIBUTING.md: no layout')
        return
    listed = set()
    above = {}  # the last path at each indentation
    for line in block[1].splitlines():
        entry = re.match(r'( *)([\w./-]+/) ', line)
        if not entry:
            continue
        indentation = len(entry[1])
        parents = [above[column] for column in sorted(above) if column < indentation]
        path = '/'.join([*parents[-1:], entry[2].rstrip('/')])
        above = {column: above[column] for column in above if column < indentation}
        above[indentation] = path
        listed.add(path)
        if path not in folders:
            problems.append(f'CONTRIBUTING.md: the layout has {path}, which is not there')
    for folder in folders:
        parent = str(pathlib.PurePath(folder).parent)
        is_worth = folder != '.' and (parent == '.' or parent in LISTED_WHOLE)
        if is_worth and not folder.startswith('.') and not any(
                each == folder or each.startswith(folder + '/') for each in listed):
            problems.append(f'CONTRIBUTING.md: the layout lacks {folder}')


def check_options(root, name, text):
    """Options in running text are in the manual of a program, or of a script that has them."""
    manuals = ''.join((root / path).read_text() for path in
                      ('analyzer/ttdanalyze.1', 'recorder/ttdrecord.1')).replace('\\-', '-')
    known = {'-' + option for option in re.findall(r'Fl (?:\w , Fl )?(-[\w-]+)', manuals)}
    for path in [*(root / 'bench').glob('*.py'), *(root / 'tools').iterdir()]:
        known |= set(re.findall(r'--[\w-]+', path.read_text()))
    for option in re.findall(r'ttdanalyze[^`\n]* (--[a-z-]+)|`(--[a-z-]+)', text):
        if not set(option) & known:
            problems.append(f'{name}: no manual has {option[0] or option[1]}')


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    files = project_files(root)
    folders = folders_of(files)
    texts = {name: (root / name).read_text() for name in DOCUMENTS if (root / name).exists()}
    for path in sorted((root / 'spec').glob('*.md')):
        check_links(root, str(path.relative_to(root)), path.read_text())
    for name, text in texts.items():
        check_links(root, name, text)
        check_names(name, text, files, folders)
        check_options(root, name, text)
        check_scripts(root, name, text)
    check_layout(texts['CONTRIBUTING.md'], folders)
    programs = check_programs(root, sys.argv[2:], texts['README.md'])
    print(*problems, sep='\n')
    print(f'{len(texts)} documents, {programs} programs, {len(problems)} problems')
    return 1 if problems or not programs else 0


if __name__ == '__main__':
    sys.exit(main())
