#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures `query`: counts and sums over events, the tables `sites` and `live` beside the commands that
print the same, ten thousand events by position in the middle of the trace, rows in each form, and
`import`. SQLite reads the same events from a file, which `query -o FILE.db` made, and DuckDB from its
own memory, if the npm package is installed. Prints a report.

Times are processor time of all threads, and the time of the clock, medians of the rounds. Everything
runs once in each round, one after the other, so that a busy machine disturbs all alike.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile

import logs
from usage import usage_of

COUNT = 'SELECT count(*) FROM {}'
FREES = "SELECT count(*) FROM {} WHERE action = 'Free'"
SUM = 'SELECT sum(size) FROM {}'
ACTIONS = 'SELECT action, sum(size) FROM {} GROUP BY action'
QUESTIONS = {'count': COUNT, 'count of releases': FREES, 'sum of sizes': SUM,
             'sum by action': ACTIONS}
DUCKDB = r'''
const {DuckDBInstance} = require(process.argv[1]);
(async () => {
    const database = await (await DuckDBInstance.create(":memory:")).connect();
    const timed = async sql => {
        const begin = process.hrtime.bigint();
        await (await database.runAndReadAll(sql)).getRows();
        return Number(process.hrtime.bigint() - begin) / 1e9;
    };
    const result = [await timed(`CREATE TABLE result AS FROM read_csv('${process.argv[2]}')`)];
    for (const sql of process.argv.slice(3)) result.push(await timed(sql));
    console.log(JSON.stringify(result));
})();
'''


def commands(analyzer, trace, folder, options):
    """Each measurement: a command, and how many events or rows it has; 0 without a speed."""
    found = {name: ([analyzer, 'query', sql.format('events'), trace], options.events)
             for name, sql in QUESTIONS.items()}
    begin = "SELECT number, address FROM events WHERE position >= pos('50%') LIMIT 10000"
    found.update({
        '10,000 by position': ([analyzer, 'query', begin, trace], 0),
        'hot': ([analyzer, 'hot', '--no-index', '--limit', '0', '-f', 'csv', trace],
                options.events),
        'sites': ([analyzer, 'query', '--no-index', '-f', 'csv', 'SELECT * FROM sites', trace],
                  options.events),
        'state --at 50%': ([analyzer, 'state', '--no-index', '--at', '50%', '--blocks', '-f', 'json',
                            trace], options.events // 2),
        "live('50%')": ([analyzer, 'query', '--no-index', '-f', 'json',
                         "SELECT * FROM live('50%')", trace], options.events // 2),
    })
    for end in ('jsonl', 'csv', 'db'):
        form = ['-f', 'csv'] if end == 'csv' else []
        found['rows as ' + end] = ([analyzer, 'query', *form, '-o',
                                    os.path.join(folder, 'events.' + end), 'SELECT * FROM events',
                                    trace], options.events)
    for form in logs.FORMATS:
        log = os.path.join(folder, form.__name__)
        with open(log, 'w', encoding='ascii') as file:
            file.writelines(form(options.lines))
        found['import ' + form.__name__] = ([analyzer, 'import', '-o', '/dev/null',
                                             form.__name__, log], options.lines)
    for name, sql in QUESTIONS.items():
        found['sqlite3: ' + name] = (['sqlite3', os.path.join(folder, 'events.db'),
                                      sql.format('result')], options.events)
    return found


def duckdb_times(folder):
    """Seconds to load the events from CSV, and of each question; empty without DuckDB."""
    npm = shutil.which('npm')
    root = npm and subprocess.run([npm, 'root', '-g'], capture_output=True, text=True,
                                  check=False).stdout.strip()
    package = pathlib.Path(root or '/nonexistent') / '@duckdb/node-api'
    if not package.is_dir():
        return {}
    result = subprocess.run(['node', '-e', DUCKDB, str(package), os.path.join(folder, 'events.csv'),
                             *(sql.format('result') for sql in QUESTIONS.values())],
                            capture_output=True, text=True, check=True)
    return dict(zip(('duckdb: loading', *('duckdb: ' + name for name in QUESTIONS)),
                    json.loads(result.stdout)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--build', default='build', type=pathlib.Path)
    parser.add_argument('--rounds', default=3, type=int)
    parser.add_argument('--events', default=5000000, type=int)
    parser.add_argument('--lines', default=1000000, type=int, help='of the imported log')
    parser.add_argument('--json', action='store_true')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, 'generated.ttd')
        subprocess.run([options.build / 'bench/generate', str(options.events), '100000', trace],
                       check=True)
        measured = commands(options.build / 'analyzer/ttdanalyze', trace, folder, options)
        runs = {name: [] for name in measured}
        for _ in range(options.rounds):
            for name, (command, _) in measured.items():
                runs[name].append(usage_of(command))
        result = {}
        for name, (_, count) in measured.items():
            passed, busy, resident = (statistics.median(values) for values in zip(*runs[name]))
            result[name] = {'processor_seconds': busy, 'seconds': passed, 'resident_bytes': resident,
                            'per_second': round(count / passed) if count else None}
        result.update((name, {'processor_seconds': None, 'seconds': seconds, 'resident_bytes': None,
                              'per_second': round(options.events / seconds)})
                      for name, seconds in duckdb_times(folder).items())
    if options.json:
        print(json.dumps(result, indent=2))
        return
    print(f'{"":28}{"CPU s":>8}{"s":>8}{"M/s":>8}{"MB":>7}')
    for name, numbers in result.items():
        print(f'{name:28}' + ''.join(
            f'{"" if value is None else format(value / scale, form):>{width}}'
            for value, scale, form, width in (
                (numbers['processor_seconds'], 1, '.2f', 8), (numbers['seconds'], 1, '.3f', 8),
                (numbers['per_second'], 1e6, '.2f', 8), (numbers['resident_bytes'], 1e6, '.0f', 7))))


if __name__ == '__main__':
    main()
