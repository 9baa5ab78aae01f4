# SPDX-License-Identifier: MIT
"""The table's answers for each case, against those of the recorder and of its referees.

The judges are `us` (ttdrecord and ttdanalyze), memcheck and LeakSanitizer. What the table leaves
open for both is compared between us and memcheck. memcheck takes a second or more for a case, so
all of it runs on demand only: `meson compile referees`.
"""

import argparse
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys

from answers import (ENVIRONMENT, LEVELS, PATIENCE, all_lost, difference, equal_environments, is_as,
                     is_open, lsan, memcheck, parse_table, recorded, text_of)

HERE = pathlib.Path(__file__).resolve().parent
SKIP = 77


def library_of_lsan():
    """The runtime that can be preloaded into any program, or None."""
    name = 'liblsan.so'
    found = subprocess.run(['gcc', f'-print-file-name={name}'], capture_output=True, text=True,
                           timeout=PATIENCE, check=False).stdout.strip()
    return found if found not in ('', name) else None


def find_judges(programs, wanted):
    """Functions that answer for a case at a level, by the name that the table has for them."""
    def command(case, level):
        return [programs / f'{case.program}-{level}', case.name.removesuffix('_child')]

    found = {}
    has_memcheck = 'memcheck' in wanted and shutil.which('valgrind')
    added = equal_environments(os.environ) if 'us' in wanted and has_memcheck else {}
    environments = {judge: {**ENVIRONMENT, **added.get(judge, {})} for judge in wanted}
    if 'us' in wanted:
        found['us'] = lambda case, level: recorded(
            command(case, level), os.environ, environments['us'], is_child=case.is_child)
    if has_memcheck:
        found['memcheck'] = lambda case, level: memcheck(
            command(case, level), environments['memcheck'], is_child=case.is_child)
    library = library_of_lsan() if 'lsan' in wanted and shutil.which('gcc') else None
    if library:
        found['lsan'] = lambda case, level: lsan(command(case, level), library)
    return found


class Trial:
    """The answers of the judges, found in parallel."""

    def __init__(self, cases, judges, pool):
        self.cases, self.judges, self.pool, self.answers = cases, judges, pool, {}

    def ask(self, judge, case, level):
        key = (judge, case.program, case.name, level)
        if key not in self.answers:
            self.answers[key] = self.pool.submit(self.judges[judge], case, level)
        return self.answers[key]

    def ask_all(self, judge, case, level):
        """Begins to find what answer_of() returns."""
        for asked in (case, self.base_of(case)):
            if asked is not None:
                self.ask(judge, asked, level)

    def base_of(self, case):
        return self.cases[case.program, case.base] if case.base else None

    def answer_of(self, judge, case, level):
        pairs = self.ask(judge, case, level).result()
        base = self.base_of(case)
        return difference(pairs, self.ask(judge, base, level).result()) if base else pairs

    def fault(self, judge, case, level):
        """The fault of an answer; None without one."""
        expected = case.answer_of(judge)
        if judge == 'lsan':
            expected = all_lost(expected)
        pairs = self.answer_of(judge, case, level)
        if not is_as(pairs, expected):
            return f'expected: {text_of(expected):30}  is: {text_of(pairs)}'
        if judge == 'us' and 'memcheck' in self.judges and 'memcheck' not in case.expected:
            referee = self.answer_of('memcheck', case, level)
            if not is_as(pairs, referee):
                return f'memcheck: {text_of(referee):30}  us: {text_of(pairs)}'
        return None

    def judge(self, judge, case, level):
        try:
            found = self.fault(judge, case, level)
        except (AssertionError, OSError, subprocess.TimeoutExpired, ValueError) as problem:
            found = str(problem)
        if found is not None:
            print(f'{judge:9} {case!s:40} -{level}  {found}', flush=True)
        return found is None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--programs', type=pathlib.Path,
                        default=os.environ.get('REACH_PROGRAMS', '.'))
    parser.add_argument('--judges', default='us,memcheck,lsan')
    parser.add_argument('cases', nargs='*', metavar='PROGRAM[/NAME]')
    arguments = parser.parse_args()
    cases = parse_table(HERE / 'table.txt')
    judges = find_judges(arguments.programs, arguments.judges.split(','))
    if not judges:
        return SKIP
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        trial = Trial(cases, judges, pool)
        rounds = [(judge, case, level) for case in cases.values() for level in LEVELS
                  for judge in judges
                  if not is_open(case.answer_of(judge)) and
                  (not arguments.cases or case.program in arguments.cases or
                   f'{case.program}/{case.name}' in arguments.cases)]
        for round_of in rounds:
            trial.ask_all(*round_of)
        right = [trial.judge(*round_of) for round_of in rounds]
    print(f'{len(right)} answers of {", ".join(judges)}, {right.count(False)} wrong')
    return 0 if right and all(right) else 1


if __name__ == '__main__':
    sys.exit(main())
