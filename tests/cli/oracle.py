# SPDX-License-Identifier: MIT
"""Random traces, and a model of the heap that reads what `events --format json` prints."""

from support import Script

NEVER = (1 << 65, 0)


def position(text):
    """A position as a pair that compares; what never happened comes last."""
    if text is None:
        return NEVER
    sequence, steps = text.split(":")
    return int(sequence, 16), int(steps, 16)


def spell(place):
    return None if place == NEVER else f"{place[0]:X}:{place[1]:X}"


def random_script(chance, count=30):
    """Calls of all kinds by two threads that overlap, fail, never return and use addresses again."""
    events = []
    for _ in range(count):
        start = chance.randrange(60)
        end = None if chance.random() < 0.1 else start + chance.randrange(10)
        action = chance.choice(["Alloc"] * 4 + ["Free"] * 3 + ["ReAlloc"] * 3 + ["Destroy"])
        event = {"action": action, "thread": chance.choice([1, 2]),
                 "result": int(end is not None and chance.random() < 0.9),
                 "heap": chance.choice([1, 1, 2]), "stack": chance.randrange(5), "wall": start * 10}
        if action in ("Free", "ReAlloc"):
            event["base"] = chance.choice([0, 1, 2, 3, 4]) * 0x1000
        if action in ("Alloc", "ReAlloc"):
            event["size"] = chance.randrange(0, 5000)
            event["address"] = chance.choice([0, 1, 2, 3, 4]) * 0x1000 * event["result"]
        if action == "Alloc" and not event["address"]:
            event["result"] = 0
        effect = end if action == "Alloc" and end is not None else start
        event["start"] = f"{start // 4:X}:{start % 4:X}"
        event["end"] = "never" if end is None else f"{end // 4:X}:{end % 4:X}"
        events.append((effect, event))
    script = Script(events_per_chunk=7).basics()
    wall = 0
    for _, event in sorted(events, key=lambda pair: pair[0]):
        wall = event["wall"] = max(wall, event["wall"])
        script.event(**event)
    return script.close()


def effects(rows):
    """(position, order, row, what) of all that calls do, in the order in which it happens."""
    found = []
    for row in rows:
        start, end = position(row["time_start"]), position(row["time_end"])
        number, action, returned = row["number"], row["action"], row["time_end"] is not None
        done = bool(row["result"])
        if action == "Alloc" and done and row["address"] != "0x0":
            found.append((end, (1, number, 1), row, "acquire"))
        if action == "Free" and (done or not returned) and row["base_address"] != "0x0":
            found.append((start, (1, number, 0), row, "release"))
        if action == "Destroy" and (done or not returned):
            found.append((start, (1, number, 0), row, "destroy"))
        if action == "ReAlloc" and done and row["base_address"] != "0x0":
            found.append((start, (1, number, 0), row, "release"))
        if action == "ReAlloc" and done and row["address"] != "0x0":
            found.append((end, (1 if start == end else 0, number, 1), row, "acquire"))
    return sorted(found, key=lambda effect: effect[:2])


class Owner:
    """A block from its allocation to its release."""

    def __init__(self, row, allocated):
        self.row = row
        self.address = int(row["address"], 16)
        self.size = row["size"]
        self.allocated = allocated
        self.released = NEVER
        self.by = None

    def end(self, at, row):
        self.released = at
        self.by = row

    def covers(self, first, last):
        return self.address <= last and self.address + max(self.size, 1) > first

    def live(self, at):
        return self.allocated <= at < self.released


def owners(rows):
    """All blocks in order of acquisition."""
    live, found = {}, []
    for at, _, row, what in effects(rows):
        heap = row["heap_id"]
        if what == "destroy":
            for key in [key for key in live if key[0] == heap]:
                live.pop(key).end(at, row)
            continue
        key = heap, int(row["address" if what == "acquire" else "base_address"], 16)
        if key in live:
            live.pop(key).end(at, row)
        if what == "acquire":
            live[key] = Owner(row, at)
            found.append(live[key])
    return found


def positions(rows):
    """Every position at which anything happens, and some between."""
    found = {(0, 0), (1 << 40, 0)}
    for at, *_ in effects(rows):
        found |= {at, (at[0], at[1] + 1)}
    return sorted(found)


def sums(blocks, key):
    """Number and bytes of blocks by key."""
    result = {}
    for block in blocks:
        count, size = result.get(key(block), (0, 0))
        result[key(block)] = (count + 1, size + block.size)
    return result
