# SPDX-License-Identifier: MIT
"""The data of a page, read without a browser."""

import itertools
import json
import re
import zlib

ELEMENT = '<script type="text/plain" id="{}">([^<]*)</script>'

# Digits of packed data: two stand for 13 bits.
RADIX = 91
BITS = 13


def unpack(text):
    """The data that an element has packed: their size, a space, digits and raw deflate."""
    size, digits = text.split(" ", 1)
    values = [ord("<" if digit == "!" else digit) - ord("#") for digit in digits]
    pairs = [low + RADIX * high for low, high in zip(values[::2], values[1::2])]
    # Eight pairs are whole bytes.
    data = b"".join(
        sum(pair << (BITS * i) for i, pair in enumerate(pairs[at:at + 8])).to_bytes(BITS, "little")
        for at in range(0, len(pairs), 8))
    if any(data[int(size):]) or len(data) < int(size):
        raise ValueError(f"{len(data)} bytes are packed, not {size}")
    return zlib.decompress(data[:int(size)], -15)


def element_of(path, name):
    """The data in an element of a page; None if there is no such element."""
    with open(path, encoding="utf-8") as file:
        found = re.search(ELEMENT.format(name), file.read())
    return unpack(found[1]) if found else None


def sums(differences):
    return list(itertools.accumulate(map(int, differences)))


def parts_of(path, name="data"):
    """The parts of an element of a page by name: JSON, and a list of it for marks."""
    raw = element_of(path, name).decode()
    parts = {}
    for name, body in re.findall(r"^#(\w+)\n(.*?)(?=^#|\Z)", raw, re.MULTILINE | re.DOTALL):
        parts[name] = ([json.loads(line) for line in body.splitlines()] if name == "marks"
                       else json.loads(body))
    return parts


def apply(live, changes):
    """Adds changes to {key: (blocks, bytes)}, which has no key of nothing."""
    for key, blocks, size in changes:
        old = live.get(key, (0, 0))
        live[key] = (old[0] + blocks, old[1] + size)
        if live[key] == (0, 0):
            del live[key]


class Heap:
    """The part `heap`: ticks, and live blocks and bytes by stack, thread, heap or size."""

    def __init__(self, part):
        ticks = part["ticks"]
        self.part = part
        self.position = ticks["position"]
        self.bytes, self.blocks, self.event = (sums(ticks[name])
                                               for name in ("bytes", "blocks", "event"))
        self.peak = [end + int(above) for end, above in zip(self.bytes, ticks["peak"])]
        self.allocations, self.allocated, self.releases = (
            list(map(int, ticks[name])) for name in ("allocations", "allocated", "releases"))
        self.stacks = sums(part["sites"]["stack"])

    def changes(self, name):
        """For each tick a list of (key, blocks, bytes): the changes of the live blocks."""
        series = self.part["series"][name]
        keys = sums(series["keys"])
        if name == "stack":
            keys = [self.stacks[site] for site in keys]
        changes = iter(zip([keys[record] for record in sums(series["record"])],
                           map(int, series["blocks"]), map(int, series["bytes"])))
        return [list(itertools.islice(changes, count))
                for count in series["counts"] or [0] * len(self.position)]

    def states(self, name):
        """At each tick {key: (blocks, bytes)} of the live blocks."""
        live, result = {}, []
        for changes in self.changes(name):
            apply(live, changes)
            result.append(live.copy())
        return result

    def state(self, name, tick):
        """The state of states() at one tick; -1 is the last one."""
        changes = self.changes(name)
        live = {}
        apply(live, itertools.chain.from_iterable(changes[:len(changes) + tick + 1 if tick < 0
                                                          else tick + 1]))
        return live

    def at_peak(self):
        """{stack: (blocks, bytes)} of what was live at the peak."""
        part = self.part["at_peak"]
        live = self.state("stack", part["tick"]) if self.stacks else {}
        apply(live, ((self.stacks[site], int(blocks), int(size)) for site, blocks, size in
                     zip(sums(part["site"]), part["blocks"], part["bytes"])))
        return live


class Calls:
    """The part `calls`: what stacks are, by their numbers."""

    def __init__(self, part):
        self.part = part

    def stack(self, number):
        """The frames of a stack as other commands write them, without addresses."""
        strings, frames, nodes = (self.part[name] for name in ("strings", "frames", "nodes"))
        found = []
        node = number - 1
        while node >= 0:
            frame = nodes["frame"][node]
            found.append({
                "function": strings[frames["function"][frame]] or None,
                "file": strings[frames["file"][frame]] or None,
                "line": frames["line"][frame] or None,
                "module": strings[frames["module"][frame]] or None,
                "inlined": bool(frames["flags"][frame] & 1)})
            up = nodes["up"][node]
            node = node - up if up else -1
        return found

    def expand(self, value):
        """JSON with stacks as their frames."""
        if isinstance(value, list):
            return [self.expand(item) for item in value]
        if not isinstance(value, dict):
            return value
        return {key: self.stack(item) if key == "stack" and isinstance(item, int)
                else self.expand(item) for key, item in value.items()}


def without_addresses(value):
    """JSON of a command without what a page leaves out of frames."""
    if isinstance(value, list):
        return [without_addresses(item) for item in value]
    if not isinstance(value, dict):
        return value
    is_frame = "inlined" in value
    return {key: without_addresses(item) for key, item in value.items()
            if not (is_frame and key in ("offset", "address"))}
