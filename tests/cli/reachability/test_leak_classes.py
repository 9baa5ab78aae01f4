# SPDX-License-Identifier: MIT
"""ttdanalyze leaks of a trace with snapshots: what is lost, and what is still reachable."""

import itertools
import os
import resource

import support
from json_doc import documented
from snapshot_support import (ANONYMOUS, FILE, HEAP, HEAP_BEGIN, HEAP_SIZE, IN_BSS, IN_HEAP,
                              IN_OTHER_STACK, IN_REGISTERS, IN_STACK, IN_TLS, INCOMPLETE,
                              SnapshotCase, SnapshotScript)
from support import run

A, B, C, D, E, F, G = range(0x20000, 0x27000, 0x1000)
CALLOC, NEW, NEW_ARRAY = 2, 16, 20


class Classes(SnapshotCase):
    def small(self):
        """One of each."""
        script = SnapshotScript().basics()
        script.alloc(A, 100)            # held by a variable
        script.alloc(B, 50, stack=3)    # held by A
        script.alloc(C, 30, stack=4)    # lost
        script.alloc(D, 1000, stack=3)  # held by C
        script.alloc(E, 16, stack=3)    # held by a pointer to its middle
        script.alloc(F, 10, stack=3)    # pointed at behind its end, which is lost
        script.snapshot((IN_BSS, 0, A), (A + 8, B), (C, D), (IN_BSS, 8, E + 8),
                        (IN_BSS, 16, F + 10))
        return script

    def test_sums(self):
        self.assertEqual(self.classes(self.small().close()), {
            "definitely_lost": (2, 40), "indirectly_lost": (1, 1000), "possibly_lost": (1, 16),
            "still_reachable": (2, 150)})

    def test_groups(self):
        found = self.json_of("leaks", self.write(self.small().close()))
        self.assertEqual([(g["class"], g["blocks"], g["bytes"], g["stack_id"],
                           g.get("total_blocks"), g.get("total_bytes")) for g in found["groups"]],
                         [("definitely_lost", 1, 30, 4, 2, 1030),
                          ("definitely_lost", 1, 10, 3, 1, 10),
                          ("possibly_lost", 1, 16, 3, None, None)])
        self.assertEqual(found["snapshot"], {"number": 1, "position": "4:0", "reason": "exit",
                                             "stopped": True, "complete": True})
        self.assertEqual((found["total_blocks"], found["total_bytes"]), (6, 1206))
        self.assertEqual(found["total_groups"], 3)
        self.assertIs(found["certain"], True)

    def test_documented(self):
        tables = documented()
        script = self.small()
        script.alloc(G, 7)
        script.snapshot((IN_STACK, 0, A), (A + 8, B))
        script.free(A)
        script.snapshot((IN_STACK, 0, G), (C, D))
        found = self.json_of("leaks", self.write(script.close()), "--show", "all")
        self.assertEqual(list(found["snapshot"]), tables["leaks.snapshot"])
        self.assertEqual(list(found["classes"]), tables["leaks.classes"])
        members = {name for group in found["groups"] for name in group}
        self.assertEqual(members, {*tables["leaks.class"], *tables["leaks.groups"]})

    def test_text(self):
        text = self.run_ok("leaks", self.write(self.small().close())).text
        head, *groups = text.split("\n\n")
        self.assertEqual(head.splitlines(), [
            "Definitely lost: 2 blocks, 40 bytes, from 2 stacks",
            "Indirectly lost, held by these: 1 block, 1,000 bytes",
            "Possibly lost, held by doubtful pointers: 1 block, 16 bytes",
            "Still reachable (--show reachable to list): 2 blocks, 150 bytes",
            "By snapshot 1 at 4:0, when the program ended"])
        self.assertEqual([group.splitlines()[0] for group in groups], [
            "30 bytes in 1 block definitely lost, 1,030 bytes in 2 blocks with what hangs below, "
            "allocated at 1:2",
            "10 bytes in 1 block definitely lost, allocated at 3:0",
            "16 bytes in 1 block possibly lost, allocated at 2:2"])

    def test_csv(self):
        rows = self.run_ok("leaks", "-f", "csv", self.write(self.small().close())).csv
        self.assertEqual([(r["kind"], r["class"], r["bytes"], r["total_bytes"]) for r in rows],
                         [("leak", "definitely_lost", "30", "1030"),
                          ("leak", "definitely_lost", "10", "10"),
                          ("leak", "possibly_lost", "16", "")])

    def test_show(self):
        path = self.write(self.small().close())
        for kinds, expected in (("definite", [30, 10]), ("indirect", [1000]), ("possible", [16]),
                                ("reachable", [100, 50]), ("possible,definite", [30, 10, 16]),
                                ("all", [30, 10, 16, 1000, 100, 50])):
            found = self.json_of("leaks", path, "--show", kinds)
            self.assertEqual([g["bytes"] for g in found["groups"]], expected, kinds)
        for wrong in ("", "definite,", "lost", "definit", "definite,,possible"):
            self.assertEqual(run("leaks", "--show", wrong, path).status, support.USAGE, wrong)

    def test_error_exitcode(self):
        path = self.write(self.small().close())
        script = SnapshotScript().basics()
        script.alloc(A, 100)
        held = self.write(script.snapshot((IN_BSS, 0, A)).close(), "held")
        script = SnapshotScript().basics()
        script.alloc(A, 100)
        possible = self.write(script.snapshot((IN_BSS, 0, A + 8)).close(), "possible")
        for trace, kinds, status in ((path, None, 9), (held, None, 0), (possible, None, 9),
                                     (possible, "definite", 0), (held, "reachable", 9),
                                     (held, "all", 9), (path, "reachable,indirect", 9)):
            arguments = ["--errors-for", kinds] if kinds else []
            self.assertEqual(run("leaks", "--error-exitcode", "9", *arguments, trace).status,
                             status, (trace, kinds))
        self.assertIn("Nothing is definitely lost\nStill reachable",
                      self.run_ok("leaks", held).text)

    def test_cycle(self):
        """The lowest block of a lost cycle stands for it."""
        script = SnapshotScript().basics()
        for address in (C, A, B):
            script.alloc(address, 8)
        script.snapshot((A, C), (C, B), (B, A))
        found = self.json_of("leaks", self.write(script.close()))
        self.assertEqual([(g["blocks"], g["total_blocks"]) for g in found["groups"]], [(1, 3)])
        self.assertEqual(found["groups"][0]["first_position"], "1:0")

    def test_views(self):
        path = self.write(self.small().close())
        found = self.json_of("leaks", path, "--by", "thread", "--show", "all")
        self.assertEqual([(g["class"], g["thread"], g["bytes"]) for g in found["groups"]], [
            ("definitely_lost", 1, 40), ("possibly_lost", 1, 16), ("indirectly_lost", 1, 1000),
            ("still_reachable", 1, 150)])
        self.assertEqual(found["groups"][0]["total_bytes"], 1040)
        folded = self.run_ok("leaks", "-f", "folded", path).text
        self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()), 56)
        tree = self.json_of("leaks", path, "--tree", "top-down", "--show", "all")
        self.assertEqual(tree["total_bytes"], 1206)
        found = self.json_of("leaks", path, "--include", "libwork.so", "--exclude", "0xdead")
        self.assertEqual(found["classes"]["still_reachable"], {"blocks": 1, "bytes": 50})

    def test_known_findings(self):
        """Only what is listed, or is an error, is a finding."""
        path = self.write(self.small().close())
        baseline = self.path("baseline")
        self.run_ok("leaks", "--write-baseline", baseline, path)
        with open(baseline, encoding="utf-8") as lines:
            self.assertEqual(len(lines.readlines()), 1 + 2)
        found = self.json_of("leaks", path, "--baseline", baseline)
        self.assertEqual((found["groups"], found["known_blocks"]), ([], 3))
        self.assertEqual(found["classes"]["still_reachable"]["blocks"], 2)
        self.assertEqual(run("leaks", "--error-exitcode", "9", "--baseline", baseline,
                             path).status, 0)
        rules = self.path("rules")
        with open(rules, "w", encoding="utf-8") as file:
            file.write("leak:libwork.so\n")
        found = self.json_of("leaks", path, "--suppressions", rules)
        self.assertEqual((found["groups"], found["suppressed_blocks"]), ([], 3))
        for kinds, left in (("definite", [16]), ("possible", [30, 10]), ("all", []),
                            ("reachable,indirect", [30, 10, 16]), ("none", [30, 10, 16]),
                            ("possible, definite", [])):
            with open(rules, "w", encoding="utf-8") as file:
                file.write(f"{{\nr\nMemcheck:Leak\nmatch-leak-kinds: {kinds}\n...\n}}\n")
            found = self.json_of("leaks", path, "--suppressions", rules)
            self.assertEqual([group["bytes"] for group in found["groups"]], left, kinds)


class Holders(SnapshotCase):
    """What holds a block that is still reachable."""

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
        self.assertIn("Held only by an ending stack or a register: 2 blocks, 3 bytes\n",
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

    def outside(self, *words, regions=None):
        """B is older than the release of memory at A and at D, and C is younger."""
        script = SnapshotScript().basics()
        script.alloc(B, 32)
        for address in (A, D):
            script.alloc(address, 64)
            script.free(address)
        script.alloc(C, 16)
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
        self.assertIn("Held only by words of blocks that may be older than what they point at: "
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

    def test_realloc(self):
        """What realloc() copies is not stale; behind it there may be something old."""
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


class Owners(SnapshotCase):
    """Pointers behind the start of a block that own it."""

    def test_new_array(self):
        script = SnapshotScript().basics()
        for address, size, api in ((A, 64, NEW_ARRAY), (B, 32, NEW_ARRAY), (C, 16, NEW),
                                   (D, 8, NEW_ARRAY)):
            script.event("Alloc", address=address, size=size, stack=2, api=api)
        script.snapshot((IN_BSS, 0, A + 8), (IN_BSS, 8, B + 16), (IN_BSS, 16, C + 8),
                        (IN_BSS, 24, D + 4))
        self.assertEqual(self.classes(script.close()), {"still_reachable": (2, 96),
                                                        "possibly_lost": (2, 24)})

    def test_base_class(self):
        script = SnapshotScript().basics()
        for address, size in ((A, 64), (B, 32), (C, 16)):
            script.event("Alloc", address=address, size=size, stack=2, api=NEW)
        table = 0x300000000
        script.snapshot((A, table), (A + 16, table + 64), (IN_BSS, 0, A + 16),
                        (B, table), (B + 16, A), (IN_BSS, 8, B + 16),     # no table there
                        (C + 8, table), (IN_BSS, 16, C + 8),              # none at the start
                        classes=((table, "6Server"), (table + 64, "")))
        self.assertEqual(self.classes(script.close()), {"still_reachable": (1, 64),
                                                        "possibly_lost": (2, 48)})

    def headers(self, count, others, stack=2):
        """Blocks that all but `others` of them are pointed at with one offset."""
        script = SnapshotScript().basics()
        blocks = [0x100000 + i * 64 for i in range(count)]
        for address in blocks:
            script.alloc(address, 40, stack=stack)
        script.snapshot(*[(IN_BSS, 8 * i, address + (3 if i >= others else 5))
                          for i, address in enumerate(blocks)])
        return self.classes(script.close(), name=f"{count}-{others}")

    def test_header(self):
        self.assertEqual(self.headers(20, 0), {"still_reachable": (20, 800)})
        self.assertEqual(self.headers(20, 2), {"still_reachable": (18, 720),
                                               "possibly_lost": (2, 80)})
        self.assertEqual(self.headers(20, 3), {"possibly_lost": (20, 800)})
        self.assertEqual(self.headers(10, 0), {"still_reachable": (10, 400)})
        self.assertEqual(self.headers(9, 0), {"possibly_lost": (9, 360)})

    def test_one_block_counts_once(self):
        script = SnapshotScript().basics()
        for i in range(20):
            script.alloc(0x100000 + i * 64, 40)
        script.snapshot(*[(IN_BSS, 8 * i, 0x100000 + 3) for i in range(20)])
        self.assertEqual(self.classes(script.close()), {"possibly_lost": (1, 40),
                                                        "definitely_lost": (19, 760)})


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
        self.assertIn("Allocated after the snapshot, not known: 1 block, 16 bytes\n",
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
        self.assertIn("there is no snapshot of references (see ttdrecord --snapshot-at-exit)",
                      text)
        self.assertIn("Live at 1:2: 3 blocks, 7 bytes, from 1 stack\n", text)
        self.assertEqual(run("leaks", "--at", "1:3", "--error-exitcode", "9", path).status, 9)

    def test_blocks_only(self):
        """A snapshot of blocks has no references, and one without a record is not complete."""
        script = SnapshotScript().basics()
        script.alloc(A, 1)
        script.add("snapshot", number=1, position="2:0", contents=1)
        script.add("regions", snapshot=2, regions="2:0x600000000:4096")
        script.add("references", snapshot=2, words=f"1:0:{A}")
        self.assertIsNone(self.json_of("leaks", self.write(script.close()))["snapshot"])

    def test_runtime(self):
        """What a runtime keeps is in no class, and is not lost."""
        script = SnapshotScript().basics()
        script.alloc(A, 8)
        script.alloc(B, 2)
        script.snapshot((A, B))
        script.add("blocks", list=3, position="8:0", blocks=f"0x{A:x}:8:0")
        found = self.json_of("leaks", self.write(script.close()))
        self.assertEqual(found["runtime_blocks"], 1)
        self.assertEqual(found["classes"]["definitely_lost"]["blocks"], 0)
        self.assertEqual(found["classes"]["indirectly_lost"]["blocks"], 1)


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
                      "released at 3:1\n", text)
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
                      "were released from 3:1 to 3:3\n",
                      self.run_ok("leaks", self.path("trace.ttd")).text)

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


class Ranges(SnapshotCase):
    """What is lost of the blocks that a range has added."""

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
        for reason in found["reasons"]:
            self.assertIn(f"Uncertain: {reason}", text)
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
