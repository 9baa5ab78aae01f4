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


class Program:
    """Calls of a program with three threads, in chunks of a few events: at the same addresses of
    several heaps, which may be destroyed; reallocations overlap other calls. Half of the programs
    make errors."""

    def __init__(self, chance):
        self.chance = chance
        self.clock = 0
        self.events = []  # with their effect positions
        self.live = {}  # by heap and address: the clock when the call that acquired it has ended
        self.places = [0x1000 * (i + 1) + chance.choice([0, 0, 0, 3, 8])
                       for i in range(chance.choice([4, 12, 40]))]
        self.heaps = range(1, 1 + chance.choice([1, 1, 2, 3]))
        self.errors = chance.choice([0, 0.03])

    def write(self, action, heap, order=0, **fields):
        fields.setdefault("end", f"{self.clock:X}:1")
        event = {"heap": heap, "thread": self.chance.randrange(1, 4),
                 "stack": self.chance.randrange(1, 5), "start": f"{self.clock:X}:0",
                 "wall": 100 * (self.clock // 7), **fields}
        self.events.append(((self.clock, order), action, event))

    def alloc(self, heap, address):
        self.live[heap, address] = self.clock
        self.write("Alloc", heap, 1, address=address, size=self.chance.randrange(1, 99))

    def free(self, heap, address):
        self.live.pop((heap, address), None)
        ending = {"end": "never", "result": 0} if self.chance.random() < self.errors else {}
        self.write("Free", heap, base=address, **ending)

    def realloc(self, heap, base, address):
        later = self.clock + self.chance.choice([0, 0, 1, 4, 9, 20])
        self.live.pop((heap, base), None)
        self.live[heap, address] = later
        self.write("ReAlloc", heap, base=base, address=address, end=f"{later:X}:7",
                   size=self.chance.randrange(1, 99))

    def destroy(self, heap):
        self.live = {block: end for block, end in self.live.items() if block[0] != heap}
        self.write("Destroy", heap)

    def step(self):
        chance = self.chance
        self.clock += 2
        heap, choice = chance.choice(self.heaps), chance.random()
        is_wrong = chance.random() < self.errors
        live = [address for (other, address), end in self.live.items()
                if other == heap and (end < self.clock or is_wrong)]
        free = [address for address in self.places if (heap, address) not in self.live]
        if choice < 0.5 and free:
            self.alloc(heap, chance.choice(free))
        elif choice < 0.75 and (live or is_wrong):
            self.free(heap, chance.choice(self.places if is_wrong else live))
        elif choice < 0.95 and free:
            base = chance.choice(live) if live and chance.random() < 0.9 else 0
            self.realloc(heap, base, chance.choice(free + [base] * (base != 0)))
        elif choice > 0.97:
            self.destroy(heap)


def program_script(chance, count=60):
    """The calls of a program, in a trace that is not closed."""
    program = Program(chance)
    for _ in range(chance.randrange(5, count)):
        program.step()
    script = Script(events_per_chunk=chance.randrange(2, 6)).basics()
    script.add("thread", os=1002, position="0:0")
    script.add("heap", name="third")
    for _, action, event in sorted(program.events, key=lambda event: event[0]):
        script.event(action, **event)
    return script
