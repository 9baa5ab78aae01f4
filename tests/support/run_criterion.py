#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a program of Criterion's tests: run_criterion.py PROGRAM [OPTION...]. In a cross build the
program runs under its exe wrapper, which Meson names in the environment.

Criterion counts neither an assertion that fails after its test, where fixtures look for memory that
is left allocated, nor a process that dies there, as with a sanitizer's report at its exit. It prints
a line for both; here such a line is a failure, and so is a filter that no test matches.
"""

import os
import shlex
import subprocess
import sys

UNCOUNTED = ('Assertion Failed', 'crashed during its setup or teardown', 'Synthesis: Tested: 0 |')


def main():
    wrapper = shlex.split(os.environ.get('MESON_EXE_WRAPPER', ''))
    run = subprocess.run(wrapper + sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         encoding='utf-8', errors='replace', check=False)
    print(run.stdout, end='')
    is_uncounted = any(words in run.stdout for words in UNCOUNTED)
    return run.returncode or int(is_uncounted)


if __name__ == '__main__':
    sys.exit(main())
