#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""generate.py COUNT [SITES]: writes invented digests, the same at each call: three programs on two
hundred hosts, four builds of each, and in the newest build call sites that did not lose memory
before."""

import datetime
import hashlib
import json
import random
import sys

PROGRAMS = ('server', 'worker', 'tool')
BUILDS, HOSTS, KNOWN_SITES = 4, 200, 300
FIRST = datetime.datetime(2026, 1, 1)
SUMS = ('allocations', 'allocated_bytes', 'temporary', 'temporary_bytes', 'live_blocks',
        'live_bytes', 'lost_blocks', 'lost_bytes', 'possibly_lost_blocks', 'possibly_lost_bytes')
REASONS = ('events were lost', 'the trace was not closed', 'only chosen blocks were recorded')


def digits(*parts):
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def site_sums(chance, is_leaking, has_snapshot):
    allocations = chance.randrange(1, 5000)
    size = 1 << chance.randrange(4, 16)
    live = allocations // chance.choice((2, 20, 1000, 5000))
    lost = min(live, chance.randrange(100)) if is_leaking else 0
    temporary = (allocations - live) // chance.choice((1, 2, 50))
    possible = (live - lost) // 50
    sums = (allocations, allocations * size, temporary, temporary * size, live, live * size,
            lost, lost * size, possible, possible * size)
    return dict(zip(SUMS, sums if has_snapshot else sums[:6] + (None,) * 4))


def add_up(records):
    return {name: None if any(record[name] is None for record in records)
            else sum(record[name] for record in records) for name in SUMS}


def digest(number, count, site_count):
    chance = random.Random(number)
    program = chance.choice(PROGRAMS)
    build = number * BUILDS // count
    is_killed = chance.random() < 0.03
    has_snapshot = not is_killed
    reasons = [reason for reason in REASONS if chance.random() < 0.05]
    known = chance.sample(range(KNOWN_SITES), site_count)
    sites = [{'fingerprint': digits(program, site), 'function': f'{program}::f{site % 97}',
              'module': program,
              **site_sums(chance, site % 31 == 0 or (site % 23 == 0 and build == BUILDS - 1),
                          has_snapshot)}
             for site in known]
    others = {'sites': chance.randrange(1000), **site_sums(chance, False, has_snapshot)}
    sums = add_up([*sites, others])
    start = FIRST + datetime.timedelta(minutes=number)
    return {'digest': 1, 'analyzer': '0.1.0', 'trace_id': f'0x{digits("trace", number)[:16]}',
            'parent_trace_id': None, 'group': digits('group', number),
            'start_time': start.strftime('%Y-%m-%dT%H:%M:%SZ'),
            'process_id': chance.randrange(2, 4194304), 'architecture': 'x86_64',
            'host': f'host{chance.randrange(HOSTS)}', 'system': 'Linux 6.1.0 x86_64',
            'writer': 'ttdrecord 0.1.0', 'command': f'/usr/bin/{program} --id {number}',
            'program': program, 'build_id': digits(program, 'build', build) + '00000000',
            'file_bytes': chance.randrange(1 << 30), 'events': sums['allocations'] * 2,
            'lost_events': chance.randrange(1, 1000) if 'events were lost' in reasons else 0,
            'lost_events_exact': True, 'threads': chance.randrange(1, 65),
            'last_wall_time_ns': chance.randrange(1, 3600 * 10**9),
            'end_reason': 'killed' if is_killed else 'exited',
            'end_code': 9 if is_killed else int(chance.random() < 0.02), 'certain': not reasons,
            'reasons': reasons, **sums, 'peak_blocks': sums['live_blocks'] * 2,
            'peak_bytes': sums['live_bytes'] * 2, 'reallocs': chance.randrange(10**6),
            'moved': chance.randrange(10**5), 'copied_bytes': chance.randrange(10**10),
            'errors': int(chance.random() < 0.01) * chance.randrange(1, 5), 'sites': sites,
            'others': others}


def main():
    count = int(sys.argv[1])
    sites = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    for number in range(count):
        print(json.dumps(digest(number, count, sites)))


if __name__ == '__main__':
    main()
