# SPDX-License-Identifier: MIT
"""Random heaps, and the classes of their blocks, found in the plainest way."""

import random

from snapshot_support import (HEAP_BEGIN, IN_BSS, IN_HEAP, IN_OTHER_STACK, IN_REGISTERS, IN_STACK,
                              SnapshotScript)

MALLOC, CALLOC, REALLOC, NEW_ARRAY = 1, 2, 3, 20
WORD = 8
PAGE = 4096


class Block:
    def __init__(self, born, address, size, stack, api):
        self.born, self.address, self.size = born, address, size
        self.stack, self.api = stack, api
        self.ages = []  # by word: when its memory was last released before it was a block's

    def has(self, address):
        return self.address <= address < self.address + max(self.size, 1)


class Heap:
    """Blocks in a small memory, so that it is used again and again."""

    def __init__(self, seed, blocks):
        self.random = random.Random(seed)
        self.inherits = seed % 3 == 0  # with blocks that the trace does not list
        self.script = SnapshotScript(flags=2 * self.inherits).basics()
        self.covered = set()  # addresses of words that a block was ever over
        self.live = []
        self.released = {}  # by address of a word: when a block there was last released
        self.first_born = {}  # by address: when a block there was first allocated
        self.now = 0
        self.span = blocks * 64

    def is_free(self, address, size):
        return not any(b.address < address + max(size, 16) and
                       address < b.address + max(b.size, 16) for b in self.live)

    def place(self):
        size = self.random.choice((0, 8, 12, 24, 40, 64, 200))
        for _ in range(50):
            address = HEAP_BEGIN + 16 * self.random.randrange(self.span // 16)
            if self.is_free(address, size):
                return address, size
        return None, size

    def acquire(self, block, old=None):
        self.live.append(block)
        for offset in range(0, block.size, WORD):
            is_copied = old and offset < min(block.size, old.size)
            is_cleared = block.api == CALLOC
            block.ages.append(old.ages[offset // WORD] if is_copied else 0 if is_cleared else
                              self.released.get(block.address + offset, 0))
        self.covered |= set(range(block.address, block.address + block.size, WORD))
        for address in range(block.address, block.address + max(block.size, 1), 16):
            self.first_born.setdefault(address, block.born)

    def release(self, block):
        self.live.remove(block)
        for word in range(block.address, block.address + block.size, WORD):
            self.released[word] = self.now

    def step(self):
        self.now += 1
        choice = self.random.random()
        address, size = self.place()
        stack = self.random.choice((2, 2, 3, 4))
        if address and (choice < 0.55 or not self.live):
            api = self.random.choice((MALLOC, MALLOC, CALLOC, NEW_ARRAY))
            self.script.event("Alloc", address=address, size=size, stack=stack, api=api)
            self.acquire(Block(self.now, address, size, stack, api))
        elif address and choice < 0.65:
            old = self.random.choice(self.live)
            in_place = self.random.random() < 0.5 and size <= old.size
            address = old.address if in_place else address
            self.release(old)
            self.script.realloc(old.address, address, size, stack=stack)
            self.now += 1
            self.acquire(Block(self.now, address, size, stack, REALLOC), old)
        elif self.live:
            block = self.random.choice(self.live)
            self.release(block)
            self.script.free(block.address)

    def words(self, count):
        """Random words: most of them in blocks, and most point at blocks."""
        words = {}
        for _ in range(count):
            block = self.random.choice(self.live)
            value = block.address + self.random.choice((0, 0, 0, 0, 8, 16, block.size, 3))
            if self.random.random() < 0.06:
                region = self.random.choice((IN_BSS, IN_STACK, IN_REGISTERS, IN_OTHER_STACK))
                words[region, 8 * self.random.randrange(17)] = value
            else:
                source = self.random.choice(self.live)
                words[IN_HEAP, source.address - HEAP_BEGIN +
                      8 * self.random.randrange(source.size // 8 + 2)] = value
        return [(region, offset, value) for (region, offset), value in words.items()]


class Graph:
    """Edges (source, target, interior, stale), roots (target, interior, weak)."""

    def __init__(self, heap, words, takes_doubtful=True):
        self.heap = heap
        self.blocks = heap.live
        self.edges, self.roots = [], []
        pointers = []
        for region, offset, value in words:
            target = self.target_of(value)
            if not target:
                continue
            if region != IN_HEAP:
                pointers.append((None, None, target, value - target.address,
                                 region in (IN_STACK, IN_REGISTERS)))
                continue
            word = HEAP_BEGIN + offset
            source = self.at(word)
            if source and word + WORD <= source.address + source.size:
                pointers.append((source, word, target, value - target.address, False))
            elif heap.inherits and word not in heap.covered:
                pointers.append((None, None, target, value - target.address, False))
            elif takes_doubtful and self.is_doubtful(source, word, target, value):
                self.roots.append((target, True, False))
        headers = self.headers(pointers)
        for source, word, target, offset, weak in pointers:
            owns = offset == 0 or headers.get(target.stack) == offset or \
                (offset in (8, 16) and target.api == NEW_ARRAY)
            if source:
                self.edges.append((source, target, not owns, self.is_stale(source, word, target)))
            else:
                self.roots.append((target, not owns, weak))

    def at(self, address):
        return next((block for block in self.blocks if block.has(address)), None)

    def target_of(self, value):
        """Also an array of no elements, behind its number of them."""
        target, before = self.at(value), self.at(value - 1)
        if not target and before and (before.api, before.size) == (NEW_ARRAY, WORD):
            return before
        return target

    def headers(self, pointers):
        """The offset at which nine of ten blocks of a stack are pointed at."""
        found = {}
        for stack in {block.stack for block in self.blocks}:
            count = sum(block.stack == stack for block in self.blocks)
            pairs = {(target, offset) for _, _, target, offset, _ in pointers
                     if target.stack == stack and offset}
            for offset in {offset for _, offset in pairs}:
                if count >= 10 and 10 * sum(o == offset for _, o in pairs) >= 9 * count:
                    found[stack] = offset
        return found

    def is_stale(self, source, word, target):
        return self.heap.first_born[target.address] < source.ages[(word - source.address) // WORD]

    def is_doubtful(self, source, word, target, value):
        """A word of the heap outside of blocks that may be the program's: no relic, nor where an
        allocator has the memory behind a block begin, nor where a block was, in a page that has
        others still."""
        is_behind = value != target.address and 0 < target.address + target.size - value <= WORD
        released = self.heap.released.get(word, 0)
        return not (self.heap.inherits or source or is_behind or released > target.born or
                    (released and self.has_block_in_page(word)))

    def has_block_in_page(self, word):
        page = word // PAGE
        return any(block.address // PAGE <= page <=
                   (block.address + max(block.size, 1) - 1) // PAGE for block in self.blocks)

    def mark(self, interior, weak, stale):
        reached = {t for t, i, w in self.roots if (interior or not i) and (weak or not w)}
        while True:
            more = {t for s, t, i, old in self.edges if s in reached and t not in reached and
                    (interior or not i) and (stale or not old)}
            if not more:
                return reached
            reached |= more

    def leads(self, start):
        reached, rest = set(), [start]
        while rest:
            node = rest.pop()
            for source, target, _, _ in self.edges:
                if source is node and target not in reached:
                    reached.add(target)
                    rest.append(target)
        return reached

    def classes(self):
        starts = self.mark(False, True, True)
        any_way = self.mark(True, True, True)
        held = self.mark(False, False, False)
        weakly = self.mark(False, True, False)
        lost = [block for block in self.blocks if block not in any_way]
        below = {block: self.leads(block) for block in lost}
        definite = [block for block in lost
                    if all(other in below[block] and other.address >= block.address
                           for other in lost if other is not block and block in below[other])]
        sums = {"definitely_lost": definite,
                "indirectly_lost": [block for block in lost if block not in definite],
                "possibly_lost": any_way - starts, "still_reachable": starts,
                "held_by_stack": weakly - held, "held_by_stale": starts - weakly - held}
        return {name: (len(blocks), sum(block.size for block in blocks))
                for name, blocks in sums.items() if blocks}
