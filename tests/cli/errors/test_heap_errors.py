# SPDX-License-Identifier: MIT
"""ttdanalyze errors: calls that conflict with the destruction, protection or lock of a heap"""

import random

import support
from error_support import ErrorCase
from support import Script


class HeapErrors(ErrorCase):
    def test_heaps(self):
        script = Script().basics()
        script.event("Create", heap=2, stack=1)
        script.alloc(0x1000, 24, heap=2)
        script.alloc(0x2000, 24, heap=1)
        script.free(0x2000, heap=2, stack=3)
        script.event("Protect", heap=2, read_only=1, stack=4)
        script.alloc(0x3000, 24, heap=2)
        script.event("Protect", heap=2, read_only=0, stack=4)
        script.alloc(0x4000, 24, heap=2)
        script.event("Destroy", heap=2, stack=3)
        script.free(0x1000, heap=2)
        script.event("Lock", heap=2, stack=2)
        script.event("Create", heap=2, stack=1)
        script.alloc(0x1000, 24, heap=2)
        found = self.findings(script)["findings"]
        self.assertEqual([f["kind"] for f in found],
                         ["wrong-heap", "use-of-read-only-heap", "use-of-destroyed-heap",
                          "use-of-destroyed-heap"])
        self.assertEqual((found[0]["heap_id"], found[0]["block"]["heap_id"]), (2, 1))
        self.assertEqual([(f["conflict"]["action"], f["conflict"]["stack_id"])
                          for f in found[1:]], [("Protect", 4), ("Destroy", 3), ("Destroy", 3)])
        self.assertIn("  heap destroyed by ", self.run_ok("errors", self.path("trace.ttd")).text)

    def test_released_by_another_heap_before(self):
        """Also where a live block of the first heap has the address inside."""
        script = Script().basics()
        script.alloc(0x2000, 24, heap=1, stack=2)
        script.free(0x2000, heap=1, stack=3)
        script.free(0x2000, heap=2, stack=4)
        script.alloc(0x3000, 24, heap=1, stack=2)
        script.free(0x3000, heap=1, stack=3)
        script.alloc(0x2ff8, 64, heap=1, stack=2)
        script.free(0x3000, heap=2, stack=1)
        found = self.findings(script)["findings"]
        self.assertEqual([(f["kind"], f["heap_id"], f["block"]["heap_id"],
                           f["released"]["stack_id"], f["certain"]) for f in found],
                         [("double-free", 2, 1, 3, True)] * 2)

    def test_call_under_way_when_the_heap_ends(self):
        script = Script().basics()
        script.event("Destroy", heap=2, start="2:0", end="2:1")
        script.alloc(0x1000, 1, heap=2, start="1:0", end="3:0", thread=2)
        self.assertEqual(self.kinds(script), [])

    def test_locks(self):
        script = Script().basics()
        script.event("Lock", heap=2, stack=2)
        script.event("Lock", heap=2, stack=3)
        script.event("Unlock", heap=2, stack=2)
        script.event("Unlock", heap=2, stack=2)
        script.event("Unlock", heap=2, stack=3)             # one too many
        script.event("Lock", heap=2, stack=2)
        script.event("Unlock", heap=2, stack=4, thread=2)   # by another thread
        found = self.findings(script)["findings"]
        self.assertEqual([(f["kind"], f["action"], f["stack_id"], f["thread"],
                           f["conflict"] and f["conflict"]["thread"]) for f in found],
                         [("unbalanced-lock", "Unlock", 3, 1, None),
                          ("unbalanced-lock", "Unlock", 4, 2, 1),
                          ("unbalanced-lock", "Lock", 2, 1, None)])
        self.assertIsNone(found[0]["address"])
        self.assertIn("still locked when the program exited",
                      self.run_ok("errors", self.path("trace.ttd")).text)

    def test_oldest_lock(self):
        """An Unlock of a thread without a lock is shown with the oldest one there is."""
        chance = random.Random(4)
        script = Script().basics()
        for number in range(30):
            script.add("thread", os=2000 + number)
        for number in range(600):
            script.add("stack", parent=1, module=1, offset=0x1000 + number)
        held, expected = {1: [], 2: []}, []
        for _ in range(600):
            heap, thread = chance.choice((1, 2)), chance.randrange(1, 25)
            choice = chance.random()
            if choice < 0.01:
                script.event("Destroy", heap=heap)
                script.event("Create", heap=heap)
                held[heap] = []
            elif choice < 0.5 and thread not in held[heap]:
                script.event("Lock", heap=heap, thread=thread)
                held[heap].append(thread)
            elif thread in held[heap]:
                script.event("Unlock", heap=heap, thread=thread)
                held[heap].remove(thread)
            else:
                script.event("Unlock", heap=heap, thread=thread, stack=10 + len(expected))
                expected.append((thread, held[heap][0] if held[heap] else None))
        found = self.findings(script, "--limit", "0")["findings"]
        self.assertEqual([(f["thread"], f["conflict"] and f["conflict"]["thread"])
                          for f in found if f["action"] == "Unlock"], expected)
        self.assertGreater(len(expected), 100)

    def test_locks_end_with_their_heap(self):
        script = Script().basics()
        script.event("Lock", heap=2, stack=2)
        script.event("Destroy", heap=2)
        script.event("Create", heap=2)
        script.event("Unlock", heap=2, stack=3)
        found = self.findings(script)["findings"]
        self.assertEqual([(f["kind"], f["action"], f["conflict"]) for f in found],
                         [("unbalanced-lock", "Unlock", None)])

    def test_locks_of_a_program_that_was_killed(self):
        script = Script().basics()
        script.event("Lock", heap=2, stack=2)
        path = self.write(script.close(reason=2))
        self.assertEqual(self.json_of("errors", path)["findings"], [])


if __name__ == "__main__":
    support.main()
