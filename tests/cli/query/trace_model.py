# SPDX-License-Identifier: MIT
"""A model of the tables of `query`, computed from the file by the second reader (tests/reader), which
was written from the specification alone."""

import bisect
import collections
import os
import re
import sys


SOURCE = os.environ["TTD_SOURCE"]
sys.path.insert(0, os.path.join(SOURCE, "tests", "reader"))
import ttdtrace_reader  # pylint: disable=wrong-import-position

MASK = 2**64 - 1
ACTIONS = dict(enumerate("Alloc ReAlloc Free Create Protect Lock Unlock Destroy".split(), 1))
LOSSES = {0: "unknown", 1: "overflow", 2: "reentrant", 3: "not recording", 4: "damage", 5: "late",
          6: "limit"}
KEPT_BY_RUNTIMES = 3
IN_HEAP = 1
# Functions of the C library's loader that allocate what a thread keeps.
THREAD_STORAGE = ("_dl_allocate_tls", "__GI__dl_allocate_tls", "allocate_dtv", "_dl_resize_dtv",
                  "allocate_dtv_entry", "tls_get_addr_tail", "__tls_get_addr")
# Samples of the process's memory, which are no marks.
MEMORY = b"ttdtrace.memory\0"


def api_names():
    """The names of the specification's table."""
    with open(os.path.join(SOURCE, "spec", "format.md"), encoding="utf-8") as file:
        table = file.read().split("\n## APIs\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines()]
    return {int(row[i]): row[i + 1].replace("\\", "") for row in rows for i in (1, 4)
            if len(row) > 5 and row[i].isdigit()}


def place(text):
    """A position of a line as a pair; None for the invalid one."""
    sequence, steps = (int(part, 16) for part in text.split(":"))
    return None if sequence == MASK else (sequence, steps)


def spell(at):
    return None if at is None else f"{at[0]:X}:{at[1]:X}"


def address(value, has=True):
    return f"0x{value:x}" if has else None


def known(value):
    return None if value == MASK else value


def line_fields(line):
    """The word of a line, and its members: numbers, positions and texts."""
    word, *parts = line.split()
    fields = {}
    for part in parts:
        key, sign, value = part.partition("=")
        if sign:
            fields[key] = value
    return word, fields


class Block:
    """A block from the effect that acquired it to the effect that released it."""

    def __init__(self, event, allocated):
        self.event = event
        self.allocated = allocated
        self.released = None
        self.released_by = None
        self.is_destroyed = False

    def end(self, at, event, is_destroyed=False):
        self.released = at
        self.released_by = event
        self.is_destroyed = is_destroyed

    def lives(self, at):
        return self.allocated <= at and (self.released is None or self.released > at)


class Effect:
    def __init__(self, at, order, event, what):
        self.at, self.order, self.event, self.what = at, order, event, what


class Trace:
    """The second reader's findings in a trace, and the heap that follows from them."""

    def __init__(self, path):
        with open(path, "rb") as file:
            lines, self.status, _ = ttdtrace_reader.Reader(file.read(), tolerant=True).read()
        self.found = collections.defaultdict(list)
        self.kept = {}
        self.references = collections.defaultdict(list)
        self.regions = collections.defaultdict(list)
        self.strings = {0: None}
        self.section = None
        for line in lines:
            self.take(line)
        names = api_names()
        self.heaps = {int(h["id"], 16): int(h["handle"], 16) for h in self.found["heap"]}
        self.parents = {int(h["heap"], 16) for h in self.found["parent"]}
        self.has_times = any(int(t["unit"], 16) not in (0, MASK) for t in self.found["trace"])
        self.events = [self.event(fields, names) for fields in self.found["event"]]
        self.stacks = {int(s["id"], 16): (int(s["parent"], 16), int(s["module"], 16),
                                          int(s["offset"], 16)) for s in self.found["stack"]}
        self.symbols = {(int(s["module"], 16), int(s["offset"], 16)): s["names"]
                        for s in self.found["symbol"]}
        self.blocks, self.effects, self.unknown_releases = [], [], []
        self.replay()

    def take(self, line):
        word, fields = line_fields(line)
        if word == "symbol":
            fields["names"] = [int(part.split(",")[0], 16) for part in line.split()[3:]]
        if word in ("blocks", "regions", "references"):
            self.section = fields
        if word == "string":
            text = fields["text"]
            self.strings.setdefault(int(fields["id"], 16),
                                    "" if text == "-" else bytes.fromhex(text).decode(errors="replace"))
        elif word == "block" and int(self.section["list"], 16) == KEPT_BY_RUNTIMES:
            self.kept[int(fields["address"], 16)] = fields
        elif word == "region":
            self.regions[int(self.section["snapshot"], 16)].append(fields)
        elif word == "reference":
            self.references[int(self.section["snapshot"], 16)].append(
                (int(fields["region"], 16), int(fields["offset"], 16), int(fields["value"], 16)))
        else:
            self.found[word].append(fields)

    def event(self, fields, names):
        event = {key: int(value, 16) for key, value in fields.items()
                 if key not in ("start", "end", "parameters")}
        event.update(start=place(fields["start"]), end=place(fields["end"]),
                     name=ACTIONS[event["action"]])
        event["api_name"] = names[event["api"]]
        takes_end = event["name"] in ("Alloc", "Create") and event["end"] is not None
        event["at"] = event["end"] if takes_end else event["start"]
        return event

    # The heap.

    def list_effects(self):
        for event in self.events:
            name, number, done = event["name"], event["n"], event["result"] != 0
            if name == "Alloc" and event["address"]:
                yield Effect(event["at"], (1, number, 1), event, "acquire")
            elif name == "Free" and event["base"] and (done or event["end"] is None):
                yield Effect(event["start"], (1, number, 0), event, "release")
            elif name == "Destroy" and (done or event["end"] is None):
                yield Effect(event["start"], (1, number, 0), event, "destroy")
            elif name == "ReAlloc":
                # One that failed or never returned leaves its block as it is.
                if event["base"] and done:
                    yield Effect(event["start"], (1, number, 0), event, "release")
                if event["address"]:
                    first = 1 if event["start"] == event["end"] else 0
                    yield Effect(event["end"], (first, number, 1), event, "acquire")

    @staticmethod
    def own(live, heap):
        """The live block at an address that an event of the heap means: spec, Blocks and heaps."""
        for block in live:
            if block.event["heap"] == heap:
                return block
        if heap == 0:
            return max(live, key=lambda block: block.event["n"], default=None)
        return next((block for block in live if block.event["heap"] == 0), None)

    def apply(self, live, effect):
        event, heap = effect.event, effect.event["heap"]
        if effect.what == "destroy":
            for at in live.values():
                for block in [block for block in at if block.event["heap"] == heap]:
                    block.end(effect.at, event, True)
                    at.remove(block)
            return
        at = live[event["address" if effect.what == "acquire" else "base"]]
        block = self.own(at, heap)
        if effect.what == "release" and block is None:
            self.unknown_releases.append(event)
        if block is None and effect.what == "acquire" and len(at) == 16:
            block = min(at, key=lambda block: block.event["n"])
        if block is not None:
            block.end(effect.at, event)
            at.remove(block)
        if effect.what == "acquire":
            at.append(Block(event, effect.at))
            self.blocks.append(at[-1])

    def replay(self):
        """Applies all effects, and keeps the sums behind each of them."""
        live = collections.defaultdict(list)
        self.effects = sorted(self.list_effects(), key=lambda effect: (effect.at, effect.order))
        for effect in self.effects:
            self.apply(live, effect)
        changes = collections.Counter()
        for block in self.blocks:
            if block.event["heap"] not in self.parents:
                changes[block.allocated, "bytes"] += block.event["size"]
                changes[block.allocated, "blocks"] += 1
                if block.released is not None:
                    changes[block.released, "bytes"] -= block.event["size"]
                    changes[block.released, "blocks"] -= 1
        self.moments, self.sums, size, count = [], [], 0, 0
        for at in sorted({at for at, _ in changes}):
            size += changes[at, "bytes"]
            count += changes[at, "blocks"]
            self.moments.append(at)
            self.sums.append((size, count))

    def live(self, at):
        """The live blocks at a position, by address."""
        blocks = [block for block in self.blocks if block.lives(at)]
        return sorted(blocks, key=lambda block: (block.event["address"], block.event["heap"]))

    def sums_at(self, at):
        """Live bytes and blocks of heaps without a parent."""
        index = bisect.bisect_right(self.moments, at)
        return self.sums[index - 1] if index else (0, 0)

    def is_kept(self, block):
        """Whether the runtimes keep the block until the end, or for a thread."""
        names = {self.strings[name] for frame in self.stack_of(block.event["stack"])
                 for name in self.symbols.get(frame, ())}
        return block.event["address"] in self.kept and block.released is None or \
            bool(names & set(THREAD_STORAGE))

    def by_stack(self, blocks):
        """Number, bytes and first and last position of blocks by the stack that allocated them."""
        found = {}
        for block in blocks:
            count, size, first, last = found.get(block.event["stack"],
                                                 (0, 0, block.allocated, block.allocated))
            found[block.event["stack"]] = (count + 1, size + block.event["size"],
                                           min(first, block.allocated), max(last, block.allocated))
        return found

    def last_moment(self):
        return max((effect.at for effect in self.effects), default=(0, 0))

    # Rows of tables, as a query's JSON has them.

    def event_row(self, event):
        name = event["name"]
        allocates, releases = name in ("Alloc", "ReAlloc"), name in ("Free", "ReAlloc")
        return {
            "number": event["n"], "position": spell(event["at"]), "action": name,
            "api": event["api_name"], "heap": address(self.heaps.get(event["heap"], 0)),
            "heap_id": event["heap"], "address": address(event["address"], allocates),
            "previous_address": address(event["base"], name == "ReAlloc"),
            "base_address": address(event["base"], releases),
            "size": event["size"] if allocates or (name == "Free" and event["size"]) else None,
            "flags": address(event["flags"]), "result": event["result"],
            "time_start": spell(event["start"]), "time_end": spell(event["end"]),
            "wall_time_ns": event["wall"] if self.has_times else None, "thread": event["thread"],
            "stack_id": event["stack"]}

    @staticmethod
    def live_row(block):
        event = block.event
        return {"address": address(event["address"]), "size": event["size"],
                "allocated": spell(block.allocated), "number": event["n"], "heap_id": event["heap"],
                "thread": event["thread"], "stack_id": event["stack"]}

    @staticmethod
    def block_row(block):
        event, by = block.event, block.released_by
        is_realloc = event["name"] == "ReAlloc" and event["base"] != 0
        return {"address": address(event["address"]), "size": event["size"],
                "allocated": spell(block.allocated), "thread": event["thread"],
                "released": spell(block.released), "released_thread": by and by["thread"],
                "previous_address": address(event["base"], is_realloc)}

    def thread_rows(self):
        rows = []
        for number in sorted({event["thread"] for event in self.events}):
            begun = next((t for t in self.found["thread"] if int(t["id"], 16) == number and
                          t["action"] == "1"), None)
            ended = next((t for t in self.found["thread"] if int(t["id"], 16) == number and
                          t["action"] == "2"), None)
            own = [event["name"] for event in self.events if event["thread"] == number]
            names = [self.strings[int(t["name"], 16)] for t in (begun, ended)
                     if t and int(t["name"], 16)]
            rows.append({"thread": number, "os_id": int(begun["os"], 16) if begun else None,
                         "name": names[-1] if names else None,
                         "begun": spell(place(begun["at"])) if begun else None,
                         "ended": spell(place(ended["at"])) if ended else None,
                         "events": len(own), "allocs": own.count("Alloc"),
                         "frees": own.count("Free"), "reallocs": own.count("ReAlloc")})
        return rows

    def module_rows(self):
        rows = []
        for module in self.found["module"]:
            if module["action"] != "1":
                continue
            gone = [m for m in self.found["module"] if m["action"] == "2" and m["id"] == module["id"]]
            rows.append({"module": int(module["id"], 16), "path": self.strings[int(module["path"], 16)],
                         "build_id": "" if module["build"] == "-" else module["build"],
                         "begin": "0x" + module["begin"], "end": "0x" + module["end"],
                         "bias": "0x" + module["bias"], "loaded": spell(place(module["at"])),
                         "unloaded": spell(place(gone[0]["at"])) if gone else None})
        return rows

    def loss_rows(self):
        """Losses; what may be behind the last chunk of a trace that was cut off is one."""
        rows = [{"thread": int(loss["thread"], 16), "events": known(int(loss["count"], 16)),
                 "last_good": spell(place(loss["last"])), "first_good": spell(place(loss["first"]))}
                for loss in self.found["loss"]]
        if not self.found["end"]:
            rows.append({"thread": 0, "events": None, "last_good": spell(self.events[-1]["at"]),
                         "first_good": None})
        return rows

    def mark_rows(self):
        return [{"position": spell(place(mark["at"])), "thread": int(mark["thread"], 16)}
                for mark in self.found["user"] if bytes.fromhex(mark["client"]) != MEMORY]

    def snapshot_rows(self):
        return [{"number": int(s["number"], 16), "position": spell(place(s["at"])),
                 "wall_time_ns": known(int(s["wall"], 16)), "held_ns": int(s["held"], 16),
                 "missing_bytes": int(s["missing"], 16),
                 "references": len(self.references[int(s["number"], 16)])}
                for s in self.found["snapshot"]]

    def stack_of(self, stack):
        """The modules and offsets of a stack's frames, the innermost first."""
        frames = []
        while stack:
            stack, module, offset = self.stacks[stack]
            frames.append((module, offset))
        return frames

    def references_of_blocks(self):
        """Holder, offset, target and whether it is interior, of all words in live blocks that point
        into one, by the last snapshot; and the targets of words of modules, stacks and the like."""
        snapshot = self.found["snapshot"][-1]
        number, at = int(snapshot["number"], 16), place(snapshot["at"])
        blocks = self.live(at)
        starts = [block.event["address"] for block in blocks]

        def find(value):
            index = bisect.bisect_right(starts, value) - 1
            return blocks[index].event if index >= 0 and \
                value < starts[index] + max(blocks[index].event["size"], 1) else None

        held, roots = collections.Counter(), collections.Counter()
        for region, offset, value in self.references[number]:
            target = find(value)
            region = self.regions[number][region - 1]
            at = int(region["begin"], 16) + offset
            if target is None:
                continue
            if int(region["kind"], 16) != IN_HEAP:
                roots[address(target["address"])] += 1
                continue
            holder = find(at)
            if holder is not None and at + 8 <= holder["address"] + holder["size"]:
                held[address(holder["address"]), at - holder["address"], address(target["address"]),
                     value != target["address"]] += 1
        return held, roots


def positions_between(trace, count):
    """Some positions of effects, and what lies before and behind all."""
    found = sorted({effect.at for effect in trace.effects})
    some = found[::max(len(found) // count, 1)]
    return [(0, 0), *some, (1 << 40, 0)]


