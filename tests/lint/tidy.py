#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs clang-tidy with the repository's .clang-tidy over every C file that a build compiles, except
tests. Exits 1 if it finds anything, or if a suppression does not say which check it is for."""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

# clang-tidy parses with clang, which does not know every option of another compiler.
PARSED = re.compile(r'-[IDU].|-std=|-isystem')
# Nothing that is included is made by the build for one target.
PRIVATE = re.compile(r'-I.*\.p$')
# Warnings of the compiler that .clang-tidy takes as checks.
WARNINGS = '-Wreserved-identifier', '-Wreserved-macro-identifier'
BARE_SUPPRESSION = re.compile(r'NOLINT(NEXTLINE|BEGIN|END)?(?!\w|\([\w.,-]+\))')


# Files for one process: its start and the system's headers are a third of the time
# of a file by itself.
BATCH = 16


def compiled_files(root, build):
    """The path of each file, with the options of the first target that compiles it."""
    options = {}
    for entry in json.loads((build / 'compile_commands.json').read_text()):
        path = pathlib.Path(os.path.normpath(build / entry['file']))
        if path.suffix == '.c' and path.is_relative_to(root) and \
                path.relative_to(root).parts[0] != 'tests':
            arguments = [a for a in shlex.split(entry['command'])
                         if PARSED.match(a) and not PRIVATE.match(a)]
            options.setdefault(path, arguments)
    return options


def batches(files):
    """Lists of files with the same options, and these options."""
    alike = {}
    for path, arguments in files.items():
        alike.setdefault(tuple(arguments), []).append(path)
    for arguments, paths in alike.items():
        for begin in range(0, len(paths), BATCH):
            yield paths[begin:begin + BATCH], arguments


def findings(clang_tidy, root, build, paths, arguments):
    """The findings of clang-tidy in some files. Empty if they are clean."""
    result = subprocess.run([clang_tidy, '--quiet', *map(str, paths), '--', *arguments, *WARNINGS],
                            cwd=build, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if result.returncode == 0:
        return ''
    return (result.stdout or result.stderr).replace(f'{root}/', '')


def bare_suppressions(root):
    for path in sorted(root.rglob('*.[ch]')):
        source = path.relative_to(root)
        if source.parts[0].startswith('build'):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if BARE_SUPPRESSION.search(line):
                yield f'{source}:{number}: NOLINT does not name its check'


def main():
    root, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    files = compiled_files(root, build)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda batch: findings(sys.argv[3], root, build, *batch),
                                batches(files)))
    problems = [text for text in results if text] + list(bare_suppressions(root))
    print(*problems, sep='\n')
    print(f'{len(files)} files checked, findings in {len(problems)} parts')
    return 1 if problems or not files else 0


if __name__ == '__main__':
    sys.exit(main())
