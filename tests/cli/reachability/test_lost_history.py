# SPDX-License-Identifier: MIT
"""ttdanalyze history tells when blocks were lost: by hand, and against the plainest search."""

import support
from json_doc import documented
from leak_graph import Graph, Heap, REALLOC
from snapshot_support import HEAP_BEGIN, IN_BSS, IN_HEAP, SnapshotCase, SnapshotScript

A, B, C, D = range(0x20000, 0x24000, 0x1000)


def spell(clock):
    return f"{clock // 4:X}:{clock % 4:X}"


class TimedHeap(Heap):
    """Notes when blocks were allocated and released, and what each snapshot shows of them."""

    def __init__(self, seed, blocks):
        super().__init__(seed, blocks)
        self.allocated, self.freed = {}, {}
        self.leaving = None
        self.words_now = []
        # (position, blocks, those held, holders by block, those held for certain)
        self.snapshots = []

    def acquire(self, block, old=None):
        super().acquire(block, old)
        self.allocated[block] = self.script.clock
        if block.api == REALLOC:
            del self.freed[self.leaving]

    def release(self, block):
        super().release(block)
        self.freed[block] = self.script.clock + 1
        self.leaving = block

    def is_kept(self, word):
        """Whether a word stays from one snapshot to the next."""
        region, offset, value = word
        alive = (any(b.has(value) for b in self.live) and
                 (region != IN_HEAP or any(b.has(HEAP_BEGIN + offset) for b in self.live)))
        return alive and self.random.random() < 0.5

    def snapshot(self):
        words = {word[:2]: word for word in filter(self.is_kept, self.words_now)}
        if len(self.snapshots) < 3:
            words.update({word[:2]: word for word in self.words(len(self.live) // 2)})
            rooted = self.random.sample(self.live, len(self.live) // 3)
            words.update({(IN_BSS, 8 * i): (IN_BSS, 8 * i, block.address)
                          for i, block in enumerate(rooted)})
        self.words_now = list(words.values())
        with_doubtful = Graph(self, self.words_now)
        held = with_doubtful.mark(True, True, True)
        by_starts = with_doubtful.mark(False, True, True)
        graph = Graph(self, self.words_now, takes_doubtful=False)
        certain = graph.mark(False, True, False) | (graph.mark(True, True, False) - by_starts)
        holders = {}
        for source, target, _, _ in graph.edges:
            if source in held and source is not target:
                holders.setdefault(target, set()).add(source)
        for target, _, _ in graph.roots:
            holders.setdefault(target, set()).update((None, "several"))
        self.script.snapshot(*self.words_now)
        self.snapshots.append((self.script.clock, set(self.live), held, holders, certain))

    def when(self, block):
        """Positions after which and at which it was lost, and of the release of its only holder;
        nothing if the last snapshot does not say that it is lost."""
        *earlier, (last, blocks, held, _, _) = self.snapshots
        if block not in blocks or block in held:
            return None
        before = last
        for position, blocks, held, holders, certain in reversed(earlier):
            if block not in blocks:
                break
            if block in certain:
                only = holders[block] if len(holders[block]) == 1 else {None}
                freed = self.freed.get(only.pop())
                return (spell(position), spell(before),
                        spell(freed) if freed and freed <= before else None)
            if block not in held:
                before = position
        return spell(self.allocated[block]), spell(before), None


class Oracle(SnapshotCase):
    def test_random(self):
        seen = {"held": 0, "lost": 0, "after a snapshot": 0, "by a release": 0}
        for seed in range(100):
            heap = TimedHeap(seed, 8 + seed)
            for _ in range(4):
                for _ in range(20):
                    heap.step()
                if heap.live:
                    heap.snapshot()
            heap.step()
            if not heap.snapshots:
                continue
            found = self.json_of("history", self.write(heap.script.close(), f"{seed}"),
                                 "--address", HEAP_BEGIN, "--size", heap.span + 256,
                                 "--limit", "100000")["blocks"]
            live = {int(b["address"], 16): b for b in found if not b["released"]}
            self.assertEqual(set(live), {block.address for block in heap.live})
            for block in heap.live:
                row = live[block.address]
                expected = heap.when(block)
                self.assertEqual(("lost_after" in row) and (
                    row["lost_after"], row["lost_before"], row["holder_released"]),
                                 expected or False, (seed, row))
                seen["lost" if expected else "held"] += 1
                positions = {spell(position) for position, *_ in heap.snapshots}
                seen["after a snapshot"] += bool(expected and expected[0] in positions)
                seen["by a release"] += bool(expected and expected[2])
            self.assertFalse([b for b in found if b["released"] and "lost_after" in b])
        self.assertGreater(min(seen.values()), 15, seen)


class Small(SnapshotCase):
    def trace(self):
        """A held B, which holds C; D is held."""
        script = SnapshotScript().basics()
        for address, size in ((A, 64), (B, 32), (C, 16), (D, 8)):
            script.alloc(address, size)
        script.snapshot((IN_BSS, 0, A), (A, B), (B, C), (IN_BSS, 8, D))     # at 3:0
        script.free(A)                                                       # at 3:1
        script.snapshot((B, C), (IN_BSS, 8, D))                              # at 4:0
        return self.write(script.close())

    def test_text(self):
        path = self.trace()
        text = self.run_ok("history", "--address", B, path).text
        self.assertTrue(text.endswith(
            "  never released\n  lost after 3:0, at 4:0 at the latest; the only block that held it "
            "was released at 3:1 by main (main.c:10) in demo\n"), text)
        text = self.run_ok("history", "--address", C, path).text
        self.assertTrue(text.endswith("  lost after 3:0, at 4:0 at the latest\n"), text)
        for address in (A, D):
            self.assertNotIn("lost", self.run_ok("history", "--address", address, path).text)

    def test_csv(self):
        path = self.trace()
        for address, expected in ((A, ["", "", ""]), (B, ["3:0", "4:0", "3:1"]),
                                  (C, ["3:0", "4:0", ""])):
            row, = self.run_ok("history", "-f", "csv", "--address", address, path).csv
            self.assertEqual([row[name] for name in ("lost_after", "lost_before",
                                                     "holder_released")], expected)
        row, = self.run_ok("leaks", "-f", "csv", path).csv
        self.assertEqual([row[name] for name in ("lost_after", "lost_before", "first_release",
                                                 "last_release")], ["3:0", "4:0", "3:1", "3:1"])

    def test_one_snapshot(self):
        """It was lost between its allocation and the snapshot."""
        script = SnapshotScript().basics()
        script.alloc(A, 64)                                                  # at 0:2
        script.snapshot(flags=0)
        found = self.json_of("history", self.write(script.close()), "--address", A)
        tables = documented()
        self.assertEqual(list(found["blocks"][0]), tables["history.blocks"] + tables["history.lost"])
        self.assertEqual([found["blocks"][0][name] for name in tables["history.lost"]],
                         ["0:2", "1:0", None, None])
        self.assertIn("threads ran on while snapshot 1", found["reasons"][0])

    def test_runtime(self):
        """A block that a runtime keeps is not lost."""
        script = SnapshotScript().basics()
        script.alloc(A, 8)
        script.snapshot()
        script.add("blocks", list=3, position="8:0", blocks=f"0x{A:x}:8:0")
        self.assertNotIn("lost_after", self.json_of("history", self.write(script.close()),
                                                    "--address", A)["blocks"][0])


if __name__ == "__main__":
    support.main()
