# SPDX-License-Identifier: MIT
"""ttdanalyze leaks of random traces, against classes found in the plainest way."""

import support
from leak_graph import Graph, Heap
from snapshot_support import SnapshotCase


class Random(SnapshotCase):
    def test_random(self):
        seen = {}
        for seed in range(60):
            heap = Heap(seed, 10 + seed)
            for _ in range(40 + 4 * seed):
                heap.step()
            if not heap.live:
                continue
            words = heap.words(len(heap.live) * (1 + seed % 3))
            heap.script.snapshot(*words)
            expected = Graph(heap, words).classes()
            self.assertEqual(self.classes(heap.script.close(), name=f"{seed}"), expected, seed)
            for name, (blocks, _) in expected.items():
                seen[name] = seen.get(name, 0) + blocks
        self.assertEqual(len(seen), 6, seen)
        self.assertGreater(min(seen.values()), 10, seen)


if __name__ == "__main__":
    support.main()
