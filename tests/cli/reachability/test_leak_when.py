# SPDX-License-Identifier: MIT
"""ttdanalyze leaks of a trace with snapshots: when blocks were lost."""

import support
from snapshot_support import IN_BSS, SnapshotCase, SnapshotScript

A, B, C, D, E, F, G = range(0x20000, 0x27000, 0x1000)


class When(SnapshotCase):
    """When blocks were lost."""

    def when(self, script, name="trace.ttd"):
        path = self.write(script.close(), name)
        groups = self.json_of("leaks", path, "--show", "definite")["groups"]
        return [(g["bytes"], g.get("lost_after"), g.get("lost_before"), g.get("holders_released"),
                 g.get("first_release")) for g in groups]

    def three(self):
        """A holds B, which holds C, at 2:0 and 3:0."""
        script = SnapshotScript().basics()
        for address, size, stack in ((A, 64, 2), (B, 32, 3), (C, 16, 4)):
            script.alloc(address, size, stack=stack)
        script.snapshot((IN_BSS, 0, A), (A, B), (B, C))          # at 2:0
        return script.snapshot((IN_BSS, 0, A), (A, B), (B, C))   # at 3:0

    def test_release(self):
        script = self.three()
        script.free(A)                                           # at 3:1
        script.snapshot()                                        # at 4:0
        self.assertEqual(self.when(script), [(32, "3:0", "4:0", 1, "3:1"),
                                             (16, "3:0", "4:0", 0, None)])
        text = self.run_ok("leaks", self.path("trace.ttd")).text
        self.assertIn("    lost after 3:0, at 4:0 at the latest; the only block that held it was "
                      "released at 3:1 by main (main.c:10) in demo\n", text)
        self.assertIn("    lost after 3:0, at 4:0 at the latest\n", text)

    def test_overwritten(self):
        """Nothing was released that held it; later snapshots say nothing new."""
        script = self.three()
        script.snapshot((IN_BSS, 0, A))                          # at 4:0
        script.free(A)
        script.snapshot()                                        # at 5:0
        self.assertEqual(self.when(script, "1"), [(32, "3:0", "4:0", 0, None),
                                                  (16, "3:0", "4:0", 0, None)])

    def test_doubtful_snapshots(self):
        """By a snapshot in which something may be missing, or of different moments, nothing was
        lost yet."""
        for number, fields in enumerate(({"flags": 0}, {"flags": 3}, {"missing": 4096})):
            script = self.three()
            script.snapshot((IN_BSS, 0, A), **fields)            # at 4:0
            script.snapshot((IN_BSS, 0, A))                      # at 5:0
            self.assertEqual(self.when(script, f"doubtful-{number}"),
                             [(32, "3:0", "5:0", 0, None), (16, "3:0", "5:0", 0, None)])

    def test_doubtful_words(self):
        """A snapshot in which only a word that may be none of the program's holds a block does not
        tell: it may have been lost before, or after."""
        for number, words in enumerate(([(B - 8, B)], [(B - 8, A), (A, B)])):
            script = self.three()
            script.snapshot((IN_BSS, 0, A), *words)              # at 4:0
            script.snapshot((IN_BSS, 0, A))                      # at 5:0
            self.assertEqual(self.when(script, f"word-{number}")[0],
                             (32, "3:0", "5:0", 0, None) if number == 0 else
                             (32, "4:0", "5:0", 0, None))

    def test_words_perhaps_older(self):
        script = SnapshotScript().basics()
        script.alloc(A, 64)
        script.alloc(B, 32, stack=3)
        script.snapshot((IN_BSS, 0, A), (A, B))                  # at 2:0
        script.free(A)
        script.alloc(A, 64)                                      # has what it had before
        script.snapshot((IN_BSS, 0, A), (A, B))                  # at 4:0
        script.snapshot((IN_BSS, 0, A))                          # at 5:0
        self.assertEqual(self.when(script)[0][:3], (32, "2:0", "5:0"))

    def test_several(self):
        """A group of blocks that were held by a block each."""
        script = SnapshotScript().basics()
        for address in (A, B):
            script.alloc(address, 8, stack=3)
        for address in (C, D, E):
            script.alloc(address, 8)
        script.snapshot((IN_BSS, 0, A), (IN_BSS, 8, B), (A, C), (B, D), (IN_BSS, 16, E))
        script.free(A)                                           # at 3:1
        script.free(B)                                           # at 3:3
        script.snapshot()
        self.assertEqual(self.when(script), [(24, "3:0", "5:0", 2, "3:1")])
        self.assertIn("    lost after 3:0, at 5:0 at the latest; the only blocks that held 2 of them "
                      "were released from 3:1 to 3:3 by main (main.c:10) in demo\n",
                      self.run_ok("leaks", self.path("trace.ttd")).text)

    def test_who_released(self):
        """Two functions released the holders: the first of them is named, also where a view joins
        the groups of different stacks."""
        script = SnapshotScript().basics()
        for address in (A, B):
            script.alloc(address, 8, stack=3)
        script.alloc(C, 8, stack=2)
        script.alloc(D, 8, stack=3)
        script.snapshot((IN_BSS, 0, A), (IN_BSS, 8, B), (A, C), (B, D))
        script.free(B, stack=2)                                  # at 3:1
        script.free(A, stack=1)                                  # at 3:3
        script.snapshot()
        path = self.write(script.close())
        for by, last in (("stack", " was released at {} by {}\n"),
                         ("heap", "s that held 2 of them were released from 3:1 to 3:3, the first "
                                  "by g(int) (g.h:5) in demo (inlined)\n")):
            text = self.run_ok("leaks", "--by", by, path).text
            ends = [last] if by == "heap" else [
                last.format("3:1", "g(int) (g.h:5) in demo (inlined)"),
                last.format("3:3", "main (main.c:10) in demo")]
            for end in ends:
                self.assertIn(end, text)
        groups = self.json_of("leaks", path)["groups"]
        self.assertEqual({g["first_release"]: g["release_stack"][0]["function"] for g in groups},
                         {"3:1": "g(int)", "3:3": "main"})
        found = self.json_of("history", path, "--address", D)["blocks"][0]
        self.assertEqual((found["holder_released"], found["release_stack"][0]["function"]),
                         ("3:1", "g(int)"))

    def test_two_holders(self):
        script = SnapshotScript().basics()
        for address in (A, B, C):
            script.alloc(address, 64, stack=address >> 12 & 3 or 3)
        script.snapshot((IN_BSS, 0, A), (IN_BSS, 8, B), (A, C), (B, C))
        script.free(A)
        script.free(B)
        script.snapshot()
        self.assertEqual(self.when(script), [(64, "2:0", "4:0", 0, None)])

    def test_moved(self):
        """realloc() takes along what a block holds."""
        script = SnapshotScript().basics()
        script.alloc(A, 64)
        script.alloc(B, 32, stack=3)
        script.snapshot((IN_BSS, 0, A), (A, B))
        script.realloc(A, C, 128)
        script.snapshot((IN_BSS, 0, C))
        self.assertEqual(self.when(script), [(32, "2:0", "3:0", 0, None)])

    def test_never_held(self):
        """Lost in each snapshot, or allocated after the last in which it could be held."""
        script = SnapshotScript().basics()
        script.alloc(A, 64)
        script.snapshot()                                        # at 1:0
        script.alloc(B, 32, stack=3)                             # at 1:2
        script.snapshot()                                        # at 2:0
        self.assertEqual(self.when(script), [(64, "0:2", "1:0", 0, None),
                                             (32, "1:2", "2:0", 0, None)])

    def test_many(self):
        """Of a hundred snapshots some are looked at; what they tell is true."""
        script = SnapshotScript().basics()
        script.alloc(A, 64)
        for i in range(100):
            script.snapshot(*([(IN_BSS, 0, A)] if i < 50 else []))
        (_, after, before, _, _), = self.when(script)
        self.assertLessEqual(int(after.split(":")[0], 16), 50)
        self.assertGreater(int(after.split(":")[0], 16), 40)
        self.assertGreater(int(before.split(":")[0], 16), 50)
        self.assertLess(int(before.split(":")[0], 16), 60)

    def test_one(self):
        script = SnapshotScript().basics()
        script.alloc(A, 64)
        self.assertEqual(self.when(script.snapshot()), [(64, None, None, None, None)])


if __name__ == "__main__":
    support.main()
