# SPDX-License-Identifier: MIT
"""How our account of a real program differs from memcheck's, and why."""

import os

SC_SIGSTKSZ = 250  # a name that Python does not know
SIGSTKSZ = 8192    # in valgrind


def total(pairs):
    return tuple(map(sum, zip(*pairs)))


def are_near(ours, theirs):
    """Within two in a hundred."""
    return all(abs(one - other) <= max(one, other) / 50 for one, other in zip(ours, theirs))


def same_lost(ours, theirs):
    return ours[:2] == theirs[:2] and total(ours) == total(theirs)


def by_chance(ours, theirs):
    return same_lost(ours, theirs) and are_near(ours[2][1:], theirs[2][1:])


def fewer_possibly(ours, theirs):
    return same_lost(ours, theirs) and ours[2] < theirs[2]


def more_possibly(ours, theirs):
    return same_lost(ours, theirs) and ours[2] > theirs[2]


def signal_stack(ours, theirs):
    blocks, size = ours[3]
    more = os.sysconf(SC_SIGSTKSZ) - SIGSTKSZ
    return [*ours[:3], (blocks, size - more)] == theirs


def longer_integers(ours, theirs):
    """Two digits of 30 bits instead of one."""
    return fewer_possibly([*ours[:3], (ours[3][0], ours[3][1] - 16)], theirs)


def near_but_possibly(ours, theirs):
    return ours[:2] == theirs[:2] and are_near(total(ours), total(theirs)) and \
        ours[2] < theirs[2]


def near_and_more_possibly(ours, theirs):
    return are_near(ours[3], theirs[3]) and are_near(total(ours), total(theirs)) and \
        ours[0] <= theirs[0] and ours[1] <= theirs[1]


def less_lost(ours, theirs):
    return total(ours) == total(theirs) and ours[:2] <= theirs[:2] and ours[2] == theirs[2]


def reached_by_stale(ours, theirs):
    """Fewer lost at all, or more that hang below others."""
    return ours[0] < theirs[0] and total(ours[:2]) <= total(theirs[:2]) and \
        are_near(total(ours), total(theirs)) and ours[2] <= theirs[2]


def by_threads_and_more_possibly(ours, theirs):
    return abs(ours[0][0] - theirs[0][0]) <= 2 and are_near(total(ours), total(theirs)) and \
        ours[2] > theirs[2]


HEADERS = ('pointers at the offset at which those to nine of ten blocks of a call site are own the '
           'block, which memcheck calls possibly lost')
STACK = ('the stack for signals has room for all registers of the processor, of which valgrind has '
         'fewer')
STALE = ('blocks that were given out again have pointers left there by those before, which memcheck '
         'knows were not written since: we say of blocks that only these hold that they are held by '
         'words that may be older. NAME-overwritten has no such words, and as much lost')
LIBRARY = ('the C library points behind the start of what it has for threads and modules, which '
           'memcheck calls possibly lost')
# How answers differ, and why.
REASONS = {
    'nginx': (less_lost, 'its list of epoll events lies in memory that was released before, and has '
              'old pointers there: by chance to the address of its connections. memcheck never '
              'gives out the same memory soon, and knows that these bytes were not written'),
    'lua': (by_chance, 'its hash tables depend on an address and the time: from run to run, some '
            'more or fewer of the texts that it will collect have a pointer into them alone'),
    'sqlite3-error': (more_possibly, 'it has the size of a block before the data, which memcheck '
                      'sees (its heuristic length64); a snapshot of references has no contents'),
    'redis-server': (near_but_possibly, HEADERS + '; what it does in its timer differs from run to '
                     'run'),
    'python3': (longer_integers, HEADERS + '; four numbers are addresses, which are low in '
                'valgrind, and shorter'),
    'ruby': (near_and_more_possibly, 'in released memory it has pointers older than the blocks at '
             'these addresses, so that they are possibly lost. At its end it unmaps only half the '
             'pages of its objects, those at low addresses: so both have to give it addresses in '
             'the same order'),
    'vim': (signal_stack, STACK),
    'gdb': (reached_by_stale, STALE),
    'gdb-overwritten': (near_but_possibly, LIBRARY + '; ' + STACK),
    'octave': (reached_by_stale, STALE),
    'octave-overwritten': (near_but_possibly, LIBRARY),
    'sbcl': (near_but_possibly, LIBRARY + '; its memory begins at another address in valgrind, and '
             'has a page less'),
    'convert': (near_but_possibly, LIBRARY + '; GLib has larger tables in valgrind'),
    'dot': (by_threads_and_more_possibly, 'GLib points behind the start of types and of objects with '
            'private data, and tells valgrind that these are blocks of their own. Threads look for '
            'fonts until the end'),
    'clang': (signal_stack, STACK),
}


def judge(program, ours, theirs):
    """How the answers of both differ; ends in `?` if it is not known why."""
    if ours == theirs:
        return 'equal'
    explains, reason = REASONS.get(program, (None, ''))
    return f'differs: {reason if explains and explains(ours, theirs) else "?"}'
