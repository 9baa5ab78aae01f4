#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""load.py DIRECTORY < DIGESTS: makes the rows of both tables of digests, one JSON object a line, in
DIRECTORY/traces.json and DIRECTORY/sites.json. A trace that occurs twice has the rows of its first
digest. README.md says how a database reads them."""

import json
import pathlib
import sys

SUMS = ('allocations', 'allocated_bytes', 'temporary', 'temporary_bytes', 'live_blocks',
        'live_bytes', 'lost_blocks', 'lost_bytes', 'possibly_lost_blocks', 'possibly_lost_bytes')
# Unknown texts are empty. Unknown numbers are null.
TEXTS = ('trace_id', 'parent_trace_id', 'group', 'architecture', 'host', 'system', 'writer',
         'command', 'program', 'build_id', 'end_reason')
NUMBERS = ('process_id', 'file_bytes', 'events', 'lost_events', 'threads', 'last_wall_time_ns',
           'end_code', *SUMS, 'peak_blocks', 'peak_bytes', 'reallocs', 'moved', 'copied_bytes',
           'errors')


def number(value):
    """Numbers of 2^53 and more are strings in a digest."""
    return value if value is None else int(value)


def trace_row(digest):
    row = {name: digest[name] or '' for name in TEXTS}
    row['start_time'] = (digest['start_time'] or '1970-01-01T00:00:00Z')[:19].replace('T', ' ')
    row['certain'] = int(digest['certain'])
    row['reasons'] = digest['reasons']
    row.update((name, number(digest[name])) for name in NUMBERS)
    return row


def site_rows(digest):
    """The sites that are listed; and one without a fingerprint for all others."""
    others = {'fingerprint': None, 'function': None, 'module': None, **digest['others']}
    for site in [*digest['sites'], *([others] if others['sites'] else [])]:
        row = {'trace_id': digest['trace_id']}
        row.update((name, site[name] or '') for name in ('fingerprint', 'function', 'module'))
        row.update((name, number(site[name])) for name in SUMS)
        yield row


def main():
    directory = pathlib.Path(sys.argv[1])
    seen = set()
    with open(directory / 'traces.json', 'w', encoding='utf-8') as traces, \
            open(directory / 'sites.json', 'w', encoding='utf-8') as sites:
        for line in sys.stdin:
            digest = json.loads(line)
            if digest['digest'] != 1:
                sys.exit(f'load.py: version {digest["digest"]} of digests is unknown')
            if digest['trace_id'] in seen:
                continue
            seen.add(digest['trace_id'])
            print(json.dumps(trace_row(digest)), file=traces)
            for row in site_rows(digest):
                print(json.dumps(row), file=sites)


if __name__ == '__main__':
    main()
