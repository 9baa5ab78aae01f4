# SPDX-License-Identifier: MIT
"""ttdanalyze leaks of a trace with snapshots: what is lost, and what is still reachable."""

import support
from json_doc import documented
from snapshot_support import IN_BSS, IN_STACK, SnapshotCase, SnapshotScript
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

    def test_blocks_within_blocks(self):
        """A function on top of the allocator returns a part of the block that it got, behind a
        header, and both are blocks of one heap: as long as the part is held, the whole is in use."""
        for held, expected in ((0x20010, {"still_reachable": (4, 396)}),
                               (0x20040, {"possibly_lost": (4, 396)}),
                               (0, {"definitely_lost": (1, 100), "indirectly_lost": (3, 296)})):
            script = SnapshotScript().basics()
            script.alloc(0x20000, 116)
            script.alloc(0x20010, 100)
            script.alloc(0x30000, 140)
            script.alloc(0x40000, 40)
            roots = [(IN_BSS, 0, held)] if held else []
            script.snapshot(*roots, (0x20018, 0x30000), (0x30008, 0x40000))
            self.assertEqual(self.classes(script.close(), name=f"{held:x}.ttd"), expected)

    def test_sums(self):
        self.assertEqual(self.classes(self.small().close()), {
            "definitely_lost": (2, 40), "indirectly_lost": (1, 1000), "possibly_lost": (1, 16),
            "still_reachable": (2, 150)})

    def test_more_references_than_are_read_together(self):
        count, held = 40000, 36000
        script = SnapshotScript().basics()
        blocks = [A + 32 * i for i in range(count)]
        for block in blocks:
            script.alloc(block, 32)
        chain = [(block, block + 32) for i, block in enumerate(blocks[:-1], 1) if i != held]
        script.snapshot((IN_BSS, 0, A), *chain)
        self.assertEqual(self.classes(script.close()), {
            "definitely_lost": (1, 32), "indirectly_lost": (3999, 32 * 3999),
            "still_reachable": (held, 32 * held)})

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
        script.snapshot((IN_STACK, 0, G), (C, D), (IN_BSS, 8, E + 8))
        found = self.json_of("leaks", self.write(script.close()), "--show", "all")
        self.assertEqual(list(found["possible_ways"][0]), tables["leaks.possible_ways"])
        self.assertEqual(list(found["snapshot"]), tables["leaks.snapshot"])
        self.assertEqual(list(found["classes"]), tables["leaks.classes"])
        members = {name for group in found["groups"] for name in group}
        self.assertEqual(members, {*tables["leaks.class"], *tables["leaks.group"],
                                   *tables["leaks.groups"]})

    def test_text(self):
        path = self.write(self.small().close())
        text = self.run_ok("leaks", path).text
        head, *groups, names, more = text.split("\n\n")
        self.assertRegex(names, "^Names are missing in libwork.so: ")
        self.assertRegex(more, f"^More of group 1: ttdanalyze history --address 0x[0-9a-f]+ {path}\n$")
        self.assertEqual(head.splitlines(), [
            "Definitely lost: 2 blocks, 40 bytes, from 2 stacks",
            "Indirectly lost, held by these (--show indirect to list): 1 block, 1,000 bytes",
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
            command = "referrers" if kinds in ("possible", "reachable") else "history"
            self.assertIn(f"\n\nMore of group 1: ttdanalyze {command} --address "
                          f"{found['groups'][0]['address']} {path}\n",
                          self.run_ok("leaks", "--show", kinds, path).text)
        # At another moment a block may be another one, and no group has none to say more of.
        for options in ("--at", "2:0"), ("--show", "unknown"):
            self.assertNotIn("More of", self.run_ok("leaks", *options, path).text)
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


class Ways(SnapshotCase):
    """How possibly lost blocks are held."""

    def setUp(self):
        super().setUp()
        script = SnapshotScript().basics()
        for i in range(5):
            script.add("stack", parent=1, module=1, offset=0x900 + i)
        script.alloc(A, 500, stack=5)
        script.alloc(B, 400, stack=6)
        script.alloc(C, 300, stack=7)   # held by A
        script.alloc(D, 180, stack=8)   # one by A, another one 24 bytes behind its start
        script.alloc(D + 256, 180, stack=8)
        script.alloc(E, 100, stack=9)   # lost, and points at B as well
        script.snapshot((IN_BSS, 0, A + 16), (IN_BSS, 8, B + 40), (A, C), (A + 8, D),
                        (IN_BSS, 16, D + 280), (E, B + 8))
        self.trace = self.write(script.close())

    def test_one_group(self):
        """Text has one group of all of them, and lists them when it is told to."""
        _, lost, *others, _names, _ = self.run_ok("leaks", self.trace).text.split("\n\n")
        self.assertTrue(lost.startswith("100 bytes in 1 block definitely lost"), lost)
        self.assertEqual(others, [
            "1,560 bytes in 5 blocks possibly lost, from 4 stacks (--show possible to list)\n"
            "    1 block held by a pointer 16 bytes into the block\n"
            "    1 block held by a pointer 40 bytes into the block\n"
            "    2 blocks held in several such ways\n"
            "    1 block held by others that are possibly lost"])
        _, _table, *groups, _names, _ = self.run_ok("leaks", "--show", "possible",
                                                    self.trace).text.split("\n\n")
        self.assertEqual([group.splitlines()[1] for group in groups], [
            "    held by a pointer 16 bytes into the block",
            "    held by a pointer 40 bytes into the block",
            "    held in several such ways", "    held by others that are possibly lost"])
        self.assertEqual(run("leaks", "--error-exitcode", "9", self.trace).status, 9)

    def test_formats(self):
        found = self.json_of("leaks", self.trace)
        ways = [("into", 16), ("into", 40), ("several", None), ("below", None)]
        sums = [(1, 1, 500), (1, 1, 400), (1, 2, 360), (1, 1, 300)]
        self.assertEqual([(w["way"], w.get("way_offset")) for w in found["possible_ways"]], ways)
        self.assertEqual([(w["groups"], w["blocks"], w["bytes"]) for w in found["possible_ways"]],
                         sums)
        self.assertEqual([(g.get("way"), g.get("way_offset")) for g in found["groups"]],
                         [(None, None), *ways])
        rows = self.run_ok("leaks", "-f", "csv", self.trace).csv
        self.assertEqual([(r["way"], r["way_offset"]) for r in rows],
                         [("", ""), ("into", "16"), ("into", "40"), ("several", ""), ("below", "")])

    def test_filters(self):
        """The sums are of what is left, and a single group is listed."""
        text = self.run_ok("leaks", "--by", "thread", self.trace).text
        self.assertIn("possibly lost, allocated", text)
        self.assertIn("\n    held in several such ways\n", text)

    def test_outside(self):
        script = SnapshotScript().basics()
        script.alloc(A, 40)
        script.snapshot((B, A))
        found = self.json_of("leaks", self.write(script.close(), "outside"))
        self.assertEqual([group.get("way") for group in found["groups"]], ["outside"])


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
        """Blocks that all but `others` of them are pointed at with one offset, those with others."""
        script = SnapshotScript().basics()
        blocks = [0x100000 + i * 64 for i in range(count)]
        for address in blocks:
            script.alloc(address, 40, stack=stack)
        script.snapshot(*[(IN_BSS, 8 * i, address + (3 if i >= others else 5 + i))
                          for i, address in enumerate(blocks)])
        return self.classes(script.close(), name=f"{count}-{others}")

    def test_header(self):
        self.assertEqual(self.headers(20, 0), {"still_reachable": (20, 800)})
        self.assertEqual(self.headers(20, 2), {"still_reachable": (18, 720),
                                               "possibly_lost": (2, 80)})
        self.assertEqual(self.headers(20, 3), {"possibly_lost": (20, 800)})
        self.assertEqual(self.headers(10, 0), {"still_reachable": (10, 400)})
        self.assertEqual(self.headers(9, 0), {"still_reachable": (9, 360)})
        self.assertEqual(self.headers(9, 1), {"possibly_lost": (9, 360)})
        self.assertEqual(self.headers(3, 0), {"still_reachable": (3, 120)})
        self.assertEqual(self.headers(2, 0), {"possibly_lost": (2, 80)})

    def of_function(self, pointers, frames=None, size=40, frame=0x500):
        """Blocks of as many stacks, whose innermost frames are the same; of the offsets at which
        each is pointed at, or None."""
        script = SnapshotScript().basics()
        script.add("symbol", module=1, offset=frame, frames=frames or "make@m.c@1")
        words = []
        for i, offsets in enumerate(pointers):
            script.add("stack", parent=1, module=1, offset=0x600 + i)
            script.add("stack", parent=5 + 2 * i, module=1, offset=frame)
            address = 0x100000 + 0x20000 * i
            script.alloc(address, size[i] if isinstance(size, list) else size, stack=6 + 2 * i)
            words += [(IN_BSS, 8 * len(words) + 8 * j, address + offset)
                      for j, offset in enumerate(offsets)]
        script.snapshot(*words)
        self.functions = getattr(self, "functions", 0) + 1
        found = self.classes(script.close(), name=f"function{self.functions}.ttd")
        return {kind: blocks for kind, (blocks, _) in found.items()}

    def test_function(self):
        """Its blocks count together, from wherever it is called."""
        held, possible = "still_reachable", "possibly_lost"
        self.assertEqual(self.of_function([(8,)] * 3), {held: 3})
        self.assertEqual(self.of_function([(8,)] * 2), {possible: 2})
        # Somebody has a pointer to the start, so the others are no owners; nor are various ones.
        self.assertEqual(self.of_function([(8,)] * 3 + [(0,)]), {possible: 3, held: 1})
        self.assertEqual(self.of_function([(8,)] * 3 + [(16,)]), {possible: 4})
        self.assertEqual(self.of_function([(8,)] * 18 + [(16,)] * 2), {held: 18, possible: 2})
        self.assertEqual(self.of_function([(8,)] * 17 + [(16,), (24,), (32,)]), {possible: 20})
        # A block without pointers says nothing, unless most blocks are so.
        lost = "definitely_lost"
        self.assertEqual(self.of_function([(8,)] * 3 + [()] * 3), {held: 3, lost: 3})
        self.assertEqual(self.of_function([(8,)] * 3 + [()] * 4), {possible: 3, lost: 4})
        self.assertEqual(self.of_function([(8,)] * 12 + [()] * 12), {held: 12, lost: 12})
        self.assertEqual(self.of_function([(8,)] * 12 + [()] * 13), {possible: 12, lost: 13})

    def test_wrappers_are_looked_through(self):
        for frames, others in (("make@m.c@1", 3), ("xmalloc@m.c@1", 0)):
            script = SnapshotScript().basics()
            script.add("stack", parent=2, module=1, offset=0x700)
            script.add("stack", parent=3, module=1, offset=0x700)
            script.add("symbol", module=1, offset=0x700, frames=frames)
            blocks = [(A + 64 * i, 5, 8) for i in range(3)] + [(B + 64 * i, 6, 0) for i in range(3)]
            for address, stack, _ in blocks:
                script.alloc(address, 40, stack=stack)
            script.snapshot(*[(IN_BSS, 8 * i, address + offset)
                              for i, (address, _, offset) in enumerate(blocks)])
            found = self.classes(script.close(), name=f"{frames}.ttd")
            self.assertEqual(found.get("possibly_lost", (0, 0))[0], others, frames)

    def test_wrapper_with_a_header(self):
        """The program's own operator new, or xmalloc(), may put a header before the data."""
        for name in ("xmalloc", "_Znwm"):
            self.assertEqual(self.of_function([(16,)] * 3, f"{name}@m.c@1"), {"still_reachable": 3})
            self.assertEqual(self.of_function([(16,)] * 3 + [(0,)], f"{name}@m.c@1"),
                             {"possibly_lost": 3, "still_reachable": 1})

    def test_headers_of_the_runtimes(self):
        """A pointer behind the header of an exception or of its string owns one block, and so does
        one to the record at the end of a buffer of std::pmr, and one to a node of the C library's
        search trees with its colour; no other one does."""
        held, possible = "still_reachable", "possibly_lost"
        for name, size, owning, other in (
                ("__cxa_allocate_exception", 144, (16, 128), (8, 112, 136)),
                ("_ZNSs4_Rep9_S_createEmmRKSaIcE", 60, (24,), (16, 32)),
                ("_ZNSbIwSt11char_traitsIwESaIwEE4_Rep9_S_createEmmRKS1_", 60, (24,), (16,)),
                ("_ZNSt3pmr25monotonic_buffer_resource13_M_new_bufferEmm", 1040, (1024,),
                 (8, 1016, 1032)),
                ("tsearch", 24, (1,), (2, 8, 16)), ("__tsearch", 24, (1,), (8,)), ("listsearch", 24, (), (1, 8)),
                ("_ZN2my9exceptionC1Ev", 144, (), (16, 128))):
            for offset in owning + other:
                self.assertEqual(self.of_function([(offset,)], f"{name}@@0", size),
                                 {held if offset in owning else possible: 1}, (name, offset))

    def test_inlined_function(self):
        """Its call of the allocator is at another address in each caller, and its name is known."""
        for inlined, expected in (("", {"possibly_lost": (3, 120)}),
                                  ("make@m.c@1,", {"still_reachable": (3, 120)})):
            script = SnapshotScript().basics()
            for i in range(3):
                script.add("stack", parent=1, module=1, offset=0x800 + i)
                script.add("symbol", module=1, offset=0x800 + i, frames=f"{inlined}user{i}@m.c@2")
                script.alloc(A + 64 * i, 40, stack=5 + i)
            script.snapshot(*[(IN_BSS, 8 * i, A + 64 * i + 8) for i in range(3)])
            self.assertEqual(self.classes(script.close(), name=f"{len(inlined)}.ttd"), expected)

    def test_several_offsets(self):
        held, possible = "still_reachable", "possibly_lost"
        self.assertEqual(self.of_function([(8,), (24,)] * 6), {held: 12})
        self.assertEqual(self.of_function([(8,), (24,), (32,)] * 4), {held: 12})
        self.assertEqual(self.of_function([(8,), (24,)] * 2), {held: 4})
        self.assertEqual(self.of_function([(8,), (16,), (24,), (32,)] * 4), {possible: 16})
        # Several pointers into one block are one of the blocks that are held so.
        self.assertEqual(self.of_function([(8, 24)] * 6 + [(32,), (64,)] * 3, size=100),
                         {possible: 12})
        # Two offsets are too many where blocks are usually held by their start.
        self.assertEqual(self.of_function([(0, 8), (0, 24)] * 5 + [(8,), (24,)]),
                         {held: 10, possible: 2})

    def test_own_pointers_say_nothing(self):
        """A block that points into itself, such as an empty list, is not owned so."""
        script = SnapshotScript().basics()
        for i in range(12):
            script.alloc(A + 64 * i, 40)
        script.snapshot(*[(A + 64 * i, A + 64 * i + 8) for i in range(12)], (IN_BSS, 0, A + 8))
        self.assertEqual(self.classes(script.close()), {"possibly_lost": (1, 40),
                                                        "definitely_lost": (11, 440)})

    def test_sds(self):
        """The offset goes with the size, from 1 to 9 here."""
        offsets, sizes = [(1,), (3,), (5,), (9,)], [20, 200, 2000, 100000]
        self.assertEqual(self.of_function(offsets, size=sizes), {"still_reachable": 4})
        self.assertEqual(self.of_function(offsets, size=sizes[::-1]), {"possibly_lost": 4})
        self.assertEqual(self.of_function(offsets[2:3], size=2000), {"possibly_lost": 1})
        self.assertEqual(self.of_function(offsets[2:3], "_sdsnewlen@sds.c@1", size=2000),
                         {"still_reachable": 1})
        self.assertEqual(self.of_function(offsets[2:3], "_sdsnewlen@sds.c@1", size=200),
                         {"possibly_lost": 1})

    def test_hash_tables_of_rust(self):
        """Pointed at behind their data, before a byte for each bucket and 16 more."""
        tables = [(4, 8), (8, 24), (16, 1), (64, 40)]
        ends = [-(-buckets * item // 16) * 16 for buckets, item in tables]
        sizes = [end + buckets + 16 for end, (buckets, _) in zip(ends, tables)]
        self.assertEqual(self.of_function([(end,) for end in ends], size=sizes),
                         {"still_reachable": 4})
        self.assertEqual(self.of_function([(end - 16,) for end in ends[:2] + ends[3:]],
                                          size=sizes[:2] + sizes[3:]), {"possibly_lost": 3})
        name = "_ZN9hashbrown3raw13RawTableInner16new_uninitialized17h1E@raw.rs@1"
        self.assertEqual(self.of_function([(ends[3],)], size=sizes[3]), {"possibly_lost": 1})
        self.assertEqual(self.of_function([(ends[3],)], name, size=sizes[3]),
                         {"still_reachable": 1})
        self.assertEqual(self.of_function([(ends[3] - 16,)], name, size=sizes[3]),
                         {"possibly_lost": 1})

    def test_slices_of_glib(self):
        """The allocator holds a page by the record at its end."""
        name = "allocator_memalign@gslice.c@1,g_slice_alloc@gslice.c@2"
        self.assertEqual(self.of_function([(208,)], name, size=240), {"still_reachable": 1})
        self.assertEqual(self.of_function([(208,)], size=240), {"possibly_lost": 1})
        self.assertEqual(self.of_function([(192,)], name, size=240), {"possibly_lost": 1})
        self.assertEqual(self.of_function([(216,)], name, size=248), {"possibly_lost": 1})
        # A slice from malloc() is no page.
        name = "g_malloc@gmem.c@1,g_slice_alloc@gslice.c@2,make@m.c@3"
        self.assertEqual(self.of_function([(208,)], name, size=240), {"possibly_lost": 1})

    def test_instances_of_glib(self):
        """Private data comes before an instance, and the pointer to its class at its beginning."""
        held, possible = {"still_reachable": (2, 160)}, {"still_reachable": (1, 40),
                                                         "possibly_lost": (1, 120)}
        for name, offset, target, expected in (
                ("g_type_create_instance", 64, B, held), ("make", 64, B, possible),
                ("g_type_create_instance", 56, B, possible),
                ("g_type_create_instance", 64, B + 8, possible),
                ("g_type_create_instance", 64, A, possible)):
            script = SnapshotScript().basics()
            script.add("stack", parent=2, module=1, offset=0x700)
            script.add("symbol", module=1, offset=0x700,
                       frames=f"g_slice_alloc@gslice.c@1,{name}@gtype.c@2")
            script.alloc(A, 120, stack=5)
            script.alloc(B, 40)
            script.snapshot((A, A), (A + 8, B), (A + offset, target), (A + 80, B), (IN_BSS, 0, A + 64),
                            (IN_BSS, 8, B))
            self.assertEqual(self.classes(script.close(), name=f"{name}{offset}{target}.ttd"),
                             expected, (name, offset, target))

    def test_one_block_counts_once(self):
        script = SnapshotScript().basics()
        for i in range(20):
            script.alloc(0x100000 + i * 64, 40)
        script.snapshot(*[(IN_BSS, 8 * i, 0x100000 + 3) for i in range(20)])
        self.assertEqual(self.classes(script.close()), {"possibly_lost": (1, 40),
                                                        "definitely_lost": (19, 760)})


if __name__ == "__main__":
    support.main()
