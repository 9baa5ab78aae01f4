# SPDX-License-Identifier: MIT
"""Traces with islands of recording."""

import random

from support import Script

CLIENT = "a-client-comes-1"
GUID = CLIENT.encode().hex()
STARTED, STOPPED = 1, 2
# Of stacks: the one of calls in islands of activity 7, and those of other calls.
WANTED, OTHERS = 2, (1, 3)


def mark(script, thread, kind, activity=0):
    numbers = "".join(f"%{byte:02x}" for byte in activity.to_bytes(8, "little"))
    script.add("user", position=script.tick(), thread=thread, client="ttdtrace.thread%00",
               data=f"%{kind:02x}{7 * '%00'}{CLIENT}{numbers}{24 * '%00'}")


def random_islands(seed, length=300):
    """Random calls of two threads, whose stack is WANTED if they are in activity 7."""
    choice = random.Random(seed)
    script, live, heaps = Script().basics(), {}, 0
    activities = {1: 0, 2: 0}
    script.add("heap", name="pool", handle=0x10000, parent=1)
    for i in range(length):
        thread = choice.choice((1, 2))
        stack = WANTED if activities[thread] == 7 else choice.choice(OTHERS)
        fields = {"thread": thread, "stack": stack, "wall": 10 * i}
        kind = choice.choice("aaaaaarrrfffffism") if i else "s"
        address = choice.choice(list(live)) if live else None
        heap = choice.choice((1, 1, 2, 3))
        if kind == "a":
            live[0x100000 + 0x1000 * i] = heap
            script.alloc(0x100000 + 0x1000 * i, choice.randrange(1, 900), heap=heap, **fields)
        elif kind == "r" and address:
            moved = choice.choice((address, 0x100000 + 0x1000 * i))
            script.realloc(address, moved, choice.randrange(1, 900), heap=live[address],
                           **fields)
            live[moved] = live.pop(address)
        elif kind == "f" and address:
            script.free(address, heap=live.pop(address), **fields)
        elif kind == "m":
            script.free(0x50, heap=1, **fields)
        elif kind in "is":
            activities[thread] = choice.choice((7, 7, 8)) if kind == "s" else 0
            mark(script, thread, STARTED if kind == "s" else STOPPED, activities[thread])
    return script
