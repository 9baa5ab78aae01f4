# SPDX-License-Identifier: MIT
"""ttdanalyze leaks of a trace with snapshots: which words hold a block, and how firmly."""

import itertools

import support
from snapshot_support import (HEAP, HEAP_BEGIN, HEAP_SIZE, IN_BSS, IN_OTHER_STACK, IN_REGISTERS,
                              IN_STACK, IN_TLS, MODULE, SnapshotCase, SnapshotScript)

A, B, C, D, E, F, G = range(0x20000, 0x27000, 0x1000)
CALLOC, NEW, NEW_ARRAY, MI_CALLOC_ALIGNED = 2, 16, 20, 70


class Holders(SnapshotCase):
    """The holders of a block that is still reachable."""

    def test_stack_and_registers(self):
        script = SnapshotScript().basics()
        for address, size in ((A, 1), (B, 2), (C, 4), (D, 8), (E, 16), (F, 32)):
            script.alloc(address, size)
        script.snapshot((IN_STACK, 0, A), (IN_REGISTERS, 40, B), (IN_OTHER_STACK, 0, C),
                        (IN_TLS, 0, D), (IN_STACK, 8, E), (IN_BSS, 0, E), (IN_STACK, 16, F + 4))
        sums = self.classes(script.close())
        self.assertEqual(sums, {"still_reachable": (5, 31), "held_by_stack": (2, 3),
                                "possibly_lost": (1, 32)})
        found = self.json_of("leaks", self.path("trace.ttd"), "--show", "reachable")
        self.assertEqual([(g.get("held_by"), g["bytes"]) for g in found["groups"]],
                         [("stack", 3), (None, 28)])
        self.assertIn("Held only by an ending stack or a register (--show stack): 2 blocks, 3 bytes\n",
                      self.run_ok("leaks", self.path("trace.ttd")).text)

    def test_running(self):
        """While the program runs, its stacks hold what they point at."""
        script = SnapshotScript().basics()
        script.alloc(A, 1)
        script.snapshot((IN_STACK, 0, A), reason=1, thread=0)
        self.assertEqual(self.classes(script.close()), {"still_reachable": (1, 1)})

    def test_outside_of_blocks(self):
        """A block of 12 bytes has one word. Behind it, a word may be the program's."""
        script = SnapshotScript().basics()
        script.alloc(A, 12)
        for address in (B, C, D):
            script.alloc(address, 8)
        script.snapshot((IN_BSS, 0, A), (A, B), (A + 8, C), (A + 16, D))
        self.assertEqual(self.classes(script.close()), {"still_reachable": (2, 20),
                                                        "definitely_lost": (1, 8),
                                                        "possibly_lost": (1, 8)})

    numbers = itertools.count()

    def outside(self, *words, regions=None, beside=None):
        """B is older than the release of memory at A and at D, and C is younger; so is the block
        beside these."""
        script = SnapshotScript().basics()
        script.alloc(B, 32)
        for address in (A, D):
            script.alloc(address, 64)
            script.free(address)
        script.alloc(C, 16)
        if beside:
            script.alloc(beside, 64)
        return self.classes(script.snapshot(*words, regions=regions).close(),
                            name=f"{next(self.numbers)}.ttd")

    def test_relics(self):
        lost, doubtful = {"definitely_lost": (2, 48)}, "possibly_lost"
        self.assertEqual(self.outside(), lost)
        self.assertEqual(self.outside((A + 8, B)), lost)
        self.assertEqual(self.outside((A + 8, B), (D + 8, C)),
                         {"definitely_lost": (1, 32), doubtful: (1, 16)})
        self.assertEqual(self.outside((A - 8, B)), {"definitely_lost": (1, 16), doubtful: (1, 32)})
        self.assertEqual(self.outside((A + 8, B), (A + 64, C), (IN_BSS, 0, B)),
                         {"still_reachable": (1, 32), doubtful: (1, 16)})

    def test_released_before_the_target(self):
        """Where a block was, and the memory is certainly the allocator's still, a word holds
        nothing, however old: in a heap of a known allocator, and in a page with another block."""
        whole = [(HEAP, A, 0x10000), (HEAP, A, 0x10000, 0, 1)]
        doubtful = {"definitely_lost": (1, 32), "possibly_lost": (1, 16)}
        lost = {"definitely_lost": (2, 48)}
        self.assertEqual(self.outside((1, D - A + 8, C), regions=whole[:1]), doubtful)
        self.assertEqual(self.outside((1, D - A + 8, C), regions=whole[1:]), lost)
        # Never a block: the program may have it.
        self.assertEqual(self.outside((1, D - A + 64, C), regions=whole[1:]), doubtful)
        for beside, expected in ((D + 0x800, lost), (D - 64, doubtful), (D + 0x1000, doubtful)):
            self.assertEqual(self.outside((1, D - A + 8, C), (1, D - A + 0x2000, beside),
                                          beside=beside, regions=whole[:1]),
                             {**expected, "possibly_lost": (expected.get(
                                 "possibly_lost", (0, 0))[0] + 1, expected.get(
                                     "possibly_lost", (0, 0))[1] + 64)}, hex(beside))

    def test_memory_behind(self):
        """An allocator has addresses of free memory, which may begin in a block's last word."""
        lost = {"definitely_lost": (2, 48)}
        self.assertEqual(self.outside((A - 8, B + 24)), lost)
        self.assertEqual(self.outside((A - 8, B + 16)),
                         {"definitely_lost": (1, 16), "possibly_lost": (1, 32)})

    def test_memory_given_back(self):
        """Where no block is any more, what was a heap may be the program's."""
        regions = [(HEAP, A, D - A), (HEAP, D, 0x1000)]
        self.assertEqual(self.outside((1, 8, B), regions=regions), {"definitely_lost": (2, 48)})
        self.assertEqual(self.outside((2, 8, B), regions=regions),
                         {"definitely_lost": (1, 16), "possibly_lost": (1, 32)})

    def stale(self, born_first, *roots, **fields):
        """B hangs by a word of A, in memory that another block had before."""
        script = SnapshotScript().basics()
        if born_first:
            script.alloc(B, 8)
        script.alloc(A, 64)
        script.free(A)
        if not born_first:
            script.alloc(B, 8)
        script.event("Alloc", address=A - 16, size=128, stack=2, **{"api": 1, **fields})
        return script.snapshot((IN_BSS, 0, A - 16), (A + 8, B), *roots).close()

    def test_stale(self):
        stale = {"still_reachable": (2, 136), "held_by_stale": (1, 8)}
        self.assertEqual(self.classes(self.stale(True), name="1"), stale)
        self.assertEqual(self.classes(self.stale(False), name="2"), {"still_reachable": (2, 136)})
        self.assertEqual(self.classes(self.stale(True, api=CALLOC), name="3"),
                         {"still_reachable": (2, 136)})
        self.assertEqual(self.classes(self.stale(True, (IN_STACK, 0, B)), name="4"),
                         {"still_reachable": (2, 136), "held_by_stack": (1, 8)})
        self.assertIn("Held only by possibly stale words (--show stale to list): "
                      "1 block, 8 bytes\n", self.run_ok("leaks", self.path("1")).text)

    def test_not_stale(self):
        """Memory that nobody had before; a word before and behind the freed block; and a block
        that another word holds as well."""
        for word, freed, root in ((A + 8, None, False), (A + 64, A, False), (A - 16, A, False),
                                  (A + 8, A, True)):
            script = SnapshotScript().basics()
            script.alloc(B, 8)
            if freed:
                script.alloc(freed, 64)
                script.free(freed)
            script.alloc(A - 16, 128)
            roots = [(IN_BSS, 8, B)] if root else []
            script.snapshot((IN_BSS, 0, A - 16), (word, B), *roots)
            self.assertEqual(self.classes(script.close(), name=f"{word}{root}"),
                             {"still_reachable": (2, 136)})

    def test_stale_of_several(self):
        """Of many owners of the memory the last one counts, whichever part of it that had."""
        script = SnapshotScript().basics()
        script.alloc(A, 1024)
        script.free(A)
        held = [0x40000 + i * 16 for i in range(8)]
        for address in held[:4]:
            script.alloc(address, 8)
        script.alloc(A, 32)          # may have had pointers to the first four
        script.free(A)
        for address in held[4:]:
            script.alloc(address, 8)
        script.alloc(A, 64)
        words = [(A + i * 8, address) for i, address in enumerate(held)]
        script.snapshot((IN_BSS, 0, A), *words)
        self.assertEqual(self.classes(script.close()), {"still_reachable": (9, 128),
                                                        "held_by_stale": (4, 32)})

    def recycled_target(self, target_first, *between, **fields):
        """A word of A points at B, at the address of an earlier block. The memory of A was another
        block's when that was live."""
        script = SnapshotScript().basics()
        script.alloc(A - 16, 128)
        script.alloc(B - 8, 16)
        for address in between or (B - 8, A - 16):
            script.free(address)
        holder = {"address": A, "size": 64, "stack": 2, "api": 1, **fields}
        if target_first:
            script.alloc(B, 8)
            script.event("Alloc", **holder)
        else:
            script.event("Alloc", **holder)
            script.alloc(B, 8)
        return script.snapshot((IN_BSS, 0, A), (A + 8, B)).close()

    def test_recycled_target(self):
        """Whichever was allocated first, released first."""
        for i, (first, *order) in enumerate(((True,), (False,), (True, A - 16, B - 8),
                                             (False, A - 16, B - 8))):
            self.assertEqual(self.classes(self.recycled_target(first, *order), name=f"{i}"),
                             {"still_reachable": (2, 72), "held_by_stale": (1, 8)}, i)
        for i, api in enumerate((CALLOC, MI_CALLOC_ALIGNED)):
            self.assertEqual(self.classes(self.recycled_target(True, api=api), name=f"api{i}"),
                             {"still_reachable": (2, 72)})

    def test_new_target(self):
        """The earlier block was allocated when the memory of the holder had been released, and it
        began behind the address."""
        for earlier in ((B, 8), (B + 8, 16)):
            script = SnapshotScript().basics()
            if earlier[0] == B:
                script.alloc(A, 64)
                script.free(A)
                script.alloc(*earlier)
                script.free(B)
            else:
                script.alloc(A, 64)
                script.alloc(*earlier)
                script.free(earlier[0])
                script.free(A)
            script.alloc(A, 64)
            script.alloc(B, 8)
            script.snapshot((IN_BSS, 0, A), (A + 8, B))
            self.assertEqual(self.classes(script.close(), name=f"{earlier[0]}"),
                             {"still_reachable": (2, 72)})

    def links(self, *values, first=A + 16, size=64, module=1, api=1):
        """Block A in memory of the C library, with words where that has links while it is free; B
        ends in the first word of the header of A."""
        script = SnapshotScript().basics()
        script.alloc(A - 32, 24)
        script.event("Alloc", address=A, size=size, stack=2, api=api)
        words = [(first + 8 * i, value) for i, value in enumerate(values)]
        script.snapshot((IN_BSS, 0, A), *words, regions=[
            (HEAP, HEAP_BEGIN, HEAP_SIZE, 0, module), (MODULE, 0x600000000, 0x1000, 0, 1, ".bss")])
        return self.classes(script.close(), name=f"{next(self.numbers)}")

    def test_links_of_free_memory(self):
        """Two links to the own header are no pointers to the block before."""
        own = A - 16
        held = {"still_reachable": (1, 64)}
        self.assertEqual(self.links(own, own), {**held, "definitely_lost": (1, 24)})
        self.assertEqual(self.links(own, own, own),
                         {**held, "possibly_lost": (1, 24)})
        for different in (self.links(own), self.links(own, own - 8), self.links(own, own, first=A),
                          self.links(own, own, first=A + 24), self.links(own, own, module=0),
                          self.links(own, own, api=CALLOC), self.links(own - 8, own - 8)):
            self.assertEqual(different, {**held, "possibly_lost": (1, 24)})
        self.assertEqual(self.links(own, own - 16), {"still_reachable": (2, 88)})
        self.assertEqual(self.links(own, size=24),
                         {"still_reachable": (1, 24), "possibly_lost": (1, 24)})

    def test_realloc(self):
        """Words copied by realloc() are not stale; behind them there may be old ones."""
        script = SnapshotScript().basics()
        script.alloc(B, 8)
        script.alloc(C, 8)
        script.alloc(A, 64)
        script.free(A)
        script.alloc(D, 32)
        script.realloc(D, A, 64)
        script.snapshot((IN_BSS, 0, A), (A + 8, B), (A + 40, C))
        self.assertEqual(self.classes(script.close()), {"still_reachable": (3, 80),
                                                        "held_by_stale": (1, 8)})

    def grown(self, *sizes, name, api=1, reuses=True):
        """An array in memory that another block had when B and C were there, and that grows."""
        script = SnapshotScript().basics()
        script.alloc(B, 8)
        script.alloc(C, 8)
        script.alloc(A, 64)
        if reuses:
            script.free(A)
        array = A if reuses else D
        script.event("Alloc", address=array, size=sizes[0], stack=2, api=api)
        for i, size in enumerate(sizes[1:]):
            place = 0x80000 + i * 0x1000
            script.realloc(array, place, size)
            array = place
        script.snapshot((IN_BSS, 0, array), (array + 8, B), (array + 40, C))
        classes = self.classes(script.close(), name=name)
        return {key: blocks for key, (blocks, _) in classes.items()}

    def test_realloc_of_old_words(self):
        """Words copied by realloc() are as old as they were in the block before."""
        old, one, none = ({"still_reachable": 3, "held_by_stale": 2},
                          {"still_reachable": 3, "held_by_stale": 1},
                          {"still_reachable": 3})
        self.assertEqual(self.grown(64, 128, name="a"), old)
        self.assertEqual(self.grown(64, 128, 256, 512, name="b"), old)
        self.assertEqual(self.grown(32, 128, name="c"), one)
        self.assertEqual(self.grown(64, 32, 128, name="d"), one)
        self.assertEqual(self.grown(64, 128, 256, api=CALLOC, name="e"), none)
        self.assertEqual(self.grown(64, 128, reuses=False, name="f"),
                         {"still_reachable": 3, "definitely_lost": 1})
        # Reallocations before the last ones are dropped: then all counts as written.
        self.assertEqual(self.grown(*[64] * 33, name="g"), old)
        self.assertEqual(self.grown(*[64] * 34, name="h"), none)


if __name__ == "__main__":
    support.main()
