# SPDX-License-Identifier: MIT
"""Blocks that a reallocation is moving when a snapshot is taken: the program still has all that
they point at."""

import support
from snapshot_support import (HEAP, HEAP_BEGIN, HEAP_SIZE, IN_BSS, MODULE, SnapshotCase,
                              SnapshotScript)

ARRAY, NEW, CHILD, OTHER, LOST, THIRD = range(0x20000, 0x26000, 0x1000)


class InFlight(SnapshotCase):
    def setUp(self):
        super().setUp()
        self.script = SnapshotScript().basics()
        self.script.alloc(ARRAY, 80)
        self.script.alloc(CHILD, 1)
        self.script.alloc(LOST, 2)

    def moving(self, *words, base=ARRAY, address=NEW, size=160, regions=None, **fields):
        """A snapshot at 7:0 or later, in the middle of a reallocation by thread 1."""
        at = max(7, self.script.clock // 4 + 2)
        self.script.realloc(base, address, size, start=f"{at - 1}:0", end=f"{at + 1}:0", **fields)
        self.script.snapshot(*words, position=f"{at}:0", regions=regions)
        self.script.clock = 4 * (at + 2)
        return f"{at}:0"

    def found(self, at):
        return self.classes(self.script.close(), "--at", at)

    def test_old_memory(self):
        """It is not copied yet. The call alone holds the block: its variable is a register."""
        at = self.moving((ARRAY, CHILD))
        self.assertEqual(self.found(at), {"still_reachable": (1, 1), "definitely_lost": (1, 2)})
        self.assertTrue(self.json_of("leaks", self.path("trace.ttd"), "--at", at)["certain"])

    def test_new_memory(self):
        """It is mapped elsewhere, and nothing points at the new block yet."""
        at = self.moving((NEW + 72, CHILD))
        self.assertEqual(self.found(at), {"still_reachable": (1, 1), "definitely_lost": (1, 2)})

    def test_in_place(self):
        at = self.moving((ARRAY + 72, CHILD), (IN_BSS, 0, ARRAY), address=ARRAY)
        self.assertEqual(self.found(at), {"still_reachable": (1, 1), "definitely_lost": (1, 2)})

    def test_what_is_not_the_programs(self):
        """Words behind what both blocks have were not written by the program, or given up."""
        for name, base, address, size, word in (("grows", ARRAY, NEW, 160, NEW + 80),
                                                ("grows in place", ARRAY, ARRAY, 160, ARRAY + 80),
                                                ("shrinks", ARRAY, NEW, 8, NEW + 8),
                                                ("shrinks in place", ARRAY, ARRAY, 8, ARRAY + 8)):
            with self.subTest(name):
                self.setUp()
                at = self.moving((word, CHILD), base=base, address=address, size=size)
                self.assertNotIn("still_reachable", self.found(at))

    def test_old_memory_is_anothers(self):
        """The old block was released within the call, and another thread has its memory."""
        at = f"{self.script.clock // 4 + 3}:0"
        before = f"{self.script.clock // 4 + 2}:0"
        self.script.realloc(ARRAY, NEW, 160, start=f"{self.script.clock // 4 + 1}:0", end="20:0")
        self.script.event("Alloc", address=ARRAY + 16, size=40, stack=3, api=1, thread=2,
                          start=before, end=before[:-1] + "1")
        self.script.snapshot((NEW, CHILD), (ARRAY + 16, LOST), (IN_BSS, 0, ARRAY), position=at)
        self.assertEqual(self.found(at), {"still_reachable": (1, 1), "definitely_lost": (1, 40),
                                          "indirectly_lost": (1, 2)})

    def test_new_memory_is_anothers(self):
        """Another block is still where the new one will be."""
        self.script.alloc(NEW + 32, 48)
        at = self.moving((ARRAY, CHILD), (NEW + 32, LOST))
        self.assertEqual(self.found(at), {"still_reachable": (1, 1), "definitely_lost": (1, 48),
                                          "indirectly_lost": (1, 2)})

    def test_two_calls_at_once(self):
        """One takes what the other gives up."""
        self.script.alloc(OTHER, 160)
        at = self.script.clock // 4 + 3
        self.script.realloc(ARRAY, OTHER, 200, start=f"{at - 2}:0", end=f"{at + 3}:0")
        self.script.realloc(OTHER, THIRD, 240, start=f"{at - 1}:0", end=f"{at + 1}:0", thread=2)
        self.script.snapshot((OTHER + 8, CHILD), (THIRD, LOST), position=f"{at}:0")
        self.assertEqual(self.found(f"{at}:0"), {"still_reachable": (2, 3)})

    def test_unknown_thread(self):
        """Nothing tells what the thread holds: then nothing is certain."""
        at = self.moving((ARRAY, CHILD), regions=[(HEAP, HEAP_BEGIN, HEAP_SIZE),
                                                  (MODULE, 0x600000000, 0x1000, 0, 1, ".bss")])
        self.script.close()
        self.assertFalse(self.json_of("leaks", self.write(self.script), "--at", at)["certain"])

    def test_released_in_flight(self):
        """A block that is being released holds nothing."""
        at = self.script.clock // 4 + 2
        self.script.free(ARRAY, start=f"{at - 1}:0", end=f"{at + 1}:0")
        self.script.snapshot((ARRAY, CHILD), (IN_BSS, 0, ARRAY), position=f"{at}:0")
        self.assertEqual(self.found(f"{at}:0"), {"definitely_lost": (2, 3)})

    def test_lasts(self):
        """The replay goes on as if nothing had been live in between."""
        self.moving((ARRAY, CHILD), (IN_BSS, 0, ARRAY))
        self.script.free(NEW)
        path = self.write(self.script.close())
        self.assertEqual(self.json_of("leaks", path)["classes"]["still_reachable"]["blocks"], 1)
        self.assertIn("2 blocks", self.run_ok("state", path).text)

    def test_other_reports(self):
        at = self.moving((ARRAY, CHILD), (NEW, CHILD), (IN_BSS, 0, ARRAY))
        path = self.write(self.script.close())
        held = self.json_of("retained", path, "--at", at)
        self.assertEqual(held["unheld_blocks"], 1)  # the lost one
        text = self.run_ok("referrers", "--at", at, path, "--address", f"0x{NEW:x}").text
        self.assertIn(f"being reallocated from 0x{ARRAY:x}", text)
        line = self.json_of("referrers", path, "--at", at, "--address", f"0x{NEW:x}")["referrers"][0]
        self.assertEqual((line["block"]["address"], line["offset"]), (f"0x{ARRAY:x}", None))
        row = self.run_ok("referrers", "--format", "csv", "--at", at, path, "--address", f"0x{NEW:x}").csv[0]
        self.assertEqual(row["offset"], "")


if __name__ == "__main__":
    support.main()
