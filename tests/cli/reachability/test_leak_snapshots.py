# SPDX-License-Identifier: MIT
"""ttdanalyze leaks of a trace with snapshots: which snapshot tells, of what, and how certainly."""

import os
import resource

import support
from snapshot_support import (ANONYMOUS, FILE, HEAP, HEAP_BEGIN, HEAP_SIZE, IN_BSS, IN_HEAP,
                              IN_REGISTERS, INCOMPLETE, SnapshotCase, SnapshotScript)
from support import run

A, B, C, D, E, F, G = range(0x20000, 0x27000, 0x1000)


class Positions(SnapshotCase):
    """Which snapshot tells, and of what."""

    def two(self):
        script = SnapshotScript().basics()
        script.alloc(A, 1)                                # held at first, then lost
        script.alloc(B, 2)                                # held
        script.alloc(C, 4)                                # released between the snapshots
        script.snapshot((IN_BSS, 0, A), (IN_BSS, 8, B), reason=2)     # at 2:0
        script.free(C)
        script.alloc(D, 8)                                # lost
        script.snapshot((IN_BSS, 8, B), reason=4)         # at 4:0
        script.alloc(E, 16)
        return script

    def test_newest(self):
        self.assertEqual(self.classes(self.two().close()), {
            "still_reachable": (1, 2), "definitely_lost": (2, 9), "not_seen": (1, 16)})
        path = self.path("trace.ttd")
        self.assertIn("Allocated after the snapshot, not known (--show all to list): 1 block, 16 bytes\n",
                      self.run_ok("leaks", path).text)

    def test_at(self):
        script = self.two().close()
        self.assertEqual(self.classes(script, "--at", "2:0"),
                         {"still_reachable": (2, 3), "definitely_lost": (1, 4)})
        self.assertEqual(self.classes(script, "--at", "3:2", name="later"),
                         {"still_reachable": (2, 3), "not_seen": (1, 8)})
        found = self.json_of("leaks", self.path("trace.ttd"), "--at", "3:2")
        self.assertEqual((found["snapshot"]["number"], found["snapshot"]["reason"]),
                         (1, "interval"))
        text = self.run_ok("leaks", "--at", "3:2", self.path("trace.ttd")).text
        self.assertIn("By snapshot 1 at 2:0, at an interval\n", text)

    def test_none(self):
        path = self.write(self.two().close())
        found = self.json_of("leaks", path, "--at", "1:3")
        self.assertIsNone(found["snapshot"])
        self.assertIsNone(found["classes"])
        self.assertEqual([(g.get("class"), g["bytes"]) for g in found["groups"]], [(None, 7)])
        text = self.run_ok("leaks", "--at", "1:3", path).text
        self.assertIn("What is lost and what is still reachable is not known.\n"
                      "The trace has no snapshot of references at this position or before.\n", text)
        self.assertIn("--max-size was reached, or --no-snapshot is given;", text)
        self.assertIn("unless it ends by SIGKILL or by a\nsystem call of its own", text)
        self.assertIn("Live at 1:2: 3 blocks, 7 bytes, from 1 stack\n", text)
        self.assertEqual(run("leaks", "--at", "1:3", "--error-exitcode", "9", path).status, 9)

    def test_none_of_a_program_that_was_killed(self):
        script = SnapshotScript().basics()
        script.alloc(A, 1)
        path = self.write(script.close(reason=2, code=9))
        self.assertIn("SIGKILL leaves no time for one at the end: ttdrecord --snapshot-every=",
                      self.run_ok("leaks", path).text)

    def test_blocks_only(self):
        """A snapshot of blocks has no references, and one without a record is not complete."""
        script = SnapshotScript().basics()
        script.alloc(A, 1)
        script.add("snapshot", number=1, position="2:0", contents=1)
        script.add("regions", snapshot=2, regions="2:0x600000000:4096")
        script.add("references", snapshot=2, words=f"1:0:{A}")
        self.assertIsNone(self.json_of("leaks", self.write(script.close()))["snapshot"])

    def test_runtime(self):
        """A block that a runtime keeps is in no class, and is not lost."""
        script = SnapshotScript().basics()
        script.alloc(A, 8)
        script.alloc(B, 2)
        script.snapshot((A, B))
        script.add("blocks", list=3, position="8:0", blocks=f"0x{A:x}:8:0")
        found = self.json_of("leaks", self.write(script.close()))
        self.assertEqual(found["runtime_blocks"], 1)
        self.assertEqual(found["classes"]["definitely_lost"]["blocks"], 0)
        self.assertEqual(found["classes"]["indirectly_lost"]["blocks"], 1)


class Ranges(SnapshotCase):
    """The lost blocks of those that a range has added."""

    def trace(self):
        script = SnapshotScript().basics()
        script.alloc(A, 1)                               # before the range
        script.alloc(B, 2, stack=3)                      # lost, at 1:0
        script.alloc(C, 4)                               # freed later
        script.alloc(D, 8)                               # freed within
        script.free(D)
        script.alloc(E, 16)                              # held, at 3:0
        script.alloc(F, 32)                              # after the range, at 3:2
        script.free(C)
        script.snapshot((IN_BSS, 0, E))
        script.alloc(G, 64)
        return self.write(script.close())

    def test_range(self):
        path = self.trace()
        found = self.json_of("diff", path, "--from", "0:3", "--to", "3:1")
        self.assertEqual(found["aifo"]["bytes"], 22)
        self.assertEqual({name: of["bytes"] for name, of in found["classes"].items()
                          if of["bytes"]}, {"definitely_lost": 2, "still_reachable": 16})
        self.assertEqual(found["snapshot"]["number"], 1)
        text = self.run_ok("diff", "--from", "0:3", "--to", "3:1", path).text
        self.assertIn("not freed in it: 3 blocks, 22 bytes\n"
                      "    Of these, by snapshot 1 at 5:0, when the program ended:\n"
                      "    1 block, 2 bytes definitely lost\n"
                      "    1 block, 16 bytes still reachable\n", text)

    def test_to_the_end(self):
        found = self.json_of("diff", self.trace(), "--from", "0:3")
        self.assertEqual({name: of["bytes"] for name, of in found["classes"].items()
                          if of["bytes"]},
                         {"definitely_lost": 34, "still_reachable": 16, "not_seen": 64})
        found = self.json_of("diff", self.path("trace.ttd"), "--exclude", "f::run")
        self.assertEqual({name: of["bytes"] for name, of in found["classes"].items()
                          if of["bytes"]}, {"definitely_lost": 2})

    def test_none(self):
        script = SnapshotScript().basics()
        script.alloc(A, 1)
        found = self.json_of("diff", self.write(script.close()))
        self.assertEqual((found["snapshot"], found["classes"]), (None, None))


class Doubt(SnapshotCase):
    """A snapshot that may tell less than there was."""

    def reasons(self, name, *words, **fields):
        script = SnapshotScript().basics()
        script.alloc(A, 1)
        path = self.write(script.snapshot(*words, **fields).close(), name)
        found = self.json_of("leaks", path)
        self.assertIs(found["certain"], not found["reasons"])
        text = self.run_ok("leaks", path).text
        rows = self.run_ok("leaks", "-f", "csv", "--show", "all", path).csv
        for command in "summary", "digest":
            self.assertEqual(self.json_of(command, path)["certain"], found["certain"], command)
        summary = self.run_ok("summary", path).text
        for reason in found["reasons"]:
            self.assertIn(f"Uncertain: {reason}", text)
            self.assertIn(f"Uncertain: {reason}", summary)
            self.assertEqual({row["certain"] for row in rows}, {"false"})
        return found["reasons"]

    def test_reasons(self):
        self.assertEqual(self.reasons("1"), [])
        self.assertEqual(self.reasons("2", flags=0), [
            "threads ran on while snapshot 1 was taken: a pointer that moved may be missing"])
        self.assertEqual(self.reasons("3", flags=1 + INCOMPLETE, missing=4096), [
            "snapshot 1 is not complete: 4096 bytes of memory were not searched for pointers"])

    def test_misplaced(self):
        """References behind the end of a region."""
        self.assertEqual(self.reasons("4", (IN_BSS, 4096 - 8, A), (IN_BSS, 4096 - 7, A),
                                      (IN_REGISTERS, 17 * 8, A)), [
            "2 references of snapshot 1 lie in no memory that it has searched"])

    def test_disorder(self):
        """Regions in any order, overlapping ones, and a root in a block."""
        script = SnapshotScript().basics()
        for address, size in ((A, 64), (B, 64), (C, 64), (D, 64)):
            script.alloc(address, size)
        script.snapshot((1, 0, D), (1, 8, A), (2, 0, B), (3, 0, A), (4, 0, C), (4, 8, A),
                        regions=[(HEAP, C, 64), (HEAP, A, 64), (FILE, B, 4096),
                                 (ANONYMOUS, A, 4096)])
        # C leads to D and A, A to B and C, B to A; no root is left.
        found = self.json_of("leaks", self.write(script.close()))
        self.assertEqual([(g["class"], g["total_blocks"]) for g in found["groups"]],
                         [("definitely_lost", 4)])

    def large(self):
        """A lost chain of 50,000 blocks, each of which also points at the same block."""
        script = SnapshotScript().basics()
        blocks = [0x100000 + 32 * i for i in range(50000)]
        for address in blocks:
            script.alloc(address, 24)
        words = [(IN_HEAP, address - HEAP_BEGIN + 8 * i, (following, A)[i])
                 for address, following in zip(blocks, blocks[1:]) for i in (0, 1)]
        script.alloc(A, 8)
        position = f"{script.clock // 4 + 1:X}:0"
        script.add("regions", regions=f"1:{HEAP_BEGIN}:{HEAP_SIZE}")
        for i in range(0, len(words), 20000):
            script.add("references", words=",".join(f"{r}:{o}:{v}" for r, o, v in
                                                    words[i:i + 20000]))
        return self.write(script.add("snapshot", position=position).close())

    def test_large(self):
        """No recursion, and no more memory than is allowed."""
        path = self.large()
        limit = (512 << 10, resource.RLIM_INFINITY)
        result = run("leaks", "-f", "json", path,
                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, limit))
        self.assertEqual(result.status, 0, result.errors)
        group, = result.json["groups"]
        self.assertEqual((group["blocks"], group["total_blocks"]), (1, 50001))
        # Sanitizers need no memory that can be limited.
        if os.environ["SANITIZE"] == "none":
            result = run("leaks", "--max-memory", "9M", path)
            self.assertEqual(result.status, support.INTERNAL, result.errors)
            self.assertIn("memory", result.errors)

    def test_nothing(self):
        script = SnapshotScript().basics()
        script.snapshot((IN_BSS, 0, A), (IN_HEAP, 0, A))
        path = self.write(script.close())
        self.assertIn("Nothing is definitely lost\nBy snapshot 1", self.run_ok("leaks", path).text)


if __name__ == "__main__":
    support.main()
