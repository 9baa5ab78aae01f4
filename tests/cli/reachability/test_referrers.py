# SPDX-License-Identifier: MIT
"""ttdanalyze referrers, and the labels of roots."""

import support
from support import run
from snapshot_support import (ANONYMOUS, FILE, HEAP, HEAP_BEGIN, HEAP_SIZE, IN_BSS, IN_REGISTERS,
                              IN_STACK, MODULE, REGISTERS, STACK, TLS, SnapshotCase,
                              SnapshotScript)

FIRST = 0x20000
BLOCKS = [0x20000 + 0x100 * i for i in range(40)]


class Referrers(SnapshotCase):
    def script(self, count=10, size=0x40):
        script = SnapshotScript().basics()
        for address in BLOCKS[:count]:
            script.alloc(address, size)
        return script

    def items(self, path, address, *arguments):
        """Depth and place of each word, and what is said of it."""
        found = self.json_of("referrers", path, "--address", hex(address), *arguments)
        places = []
        for item in found["referrers"]:
            where = item["block"] or item["root"]
            name = {"more": f"+{item['pointers']}", "block": where and where.get("address"),
                    "chain": f"{item['pointers']} to {where and where.get('address')}",
                    "root": where and where.get("label")}[item["kind"]]
            places.append((item["depth"], name))
        return found, places

    def test_path(self):
        """A chain from a global: block 0 is in .bss, and each points at the next."""
        script = self.script()
        script.snapshot((IN_BSS, 0x1f8, BLOCKS[0]),
                        *((BLOCKS[i] + 8, BLOCKS[i + 1]) for i in range(3)))
        path = self.write(script.close())
        found, places = self.items(path, BLOCKS[3] + 5)
        self.assertEqual(places, [(0, "0x20200"), (1, "0x20100"), (2, "0x20000"),
                                  (3, "demo .bss+0x1f8")])
        self.assertEqual((found["block"]["address"], found["distance"], found["total_pointers"]),
                         ("0x20300", 4, 1))
        self.assertEqual([i["offset"] for i in found["referrers"]], [8, 8, 8, 0x1f8])
        self.assertEqual([i["address"] for i in found["referrers"]],
                         ["0x20208", "0x20108", "0x20008", "0x6000001f8"])
        self.assertEqual([i["distance"] for i in found["referrers"]], [3, 2, 1, 0])

    def test_the_largest(self):
        """Where nothing is lost, and nothing is asked for, the largest group of live blocks."""
        script = self.script(2)
        script.alloc(0x30000, 5000, stack=3)
        script.snapshot((IN_BSS, 0, BLOCKS[0]), (IN_BSS, 8, BLOCKS[1]), (IN_BSS, 16, 0x30000))
        path = self.write(script.close())
        found = self.json_of("referrers", path)
        self.assertEqual((found["block"]["address"], found["group"]), ("0x30000", None))
        self.assertIn("The largest group of live blocks, 5,000 bytes in 1 block still reachable\n",
                      self.run_ok("referrers", path).text)
        for arguments in (("--group", "1"), ("--show", "definite")):
            result = run("referrers", *arguments, path)
            self.assertIn("there is no group 1", result.errors)

    def test_shortest_first(self):
        """Of several pointers the one nearest to a root comes first."""
        script = self.script()
        script.snapshot((IN_BSS, 0, BLOCKS[0]), (IN_BSS, 8, BLOCKS[3]), (BLOCKS[0], BLOCKS[1]),
                        (BLOCKS[1], BLOCKS[2]), (BLOCKS[2], BLOCKS[9]), (BLOCKS[3], BLOCKS[9]),
                        (IN_STACK, 0x20, BLOCKS[9] + 8))
        path = self.write(script.close())
        self.assertEqual(self.items(path, BLOCKS[9])[1],
                         [(0, "thread 1, stack +0x20"), (0, "0x20300"), (1, "demo .bss+0x8"),
                          (0, "0x20200"), (1, "0x20100"), (2, "0x20000"), (3, "demo .bss+0x0")])

    def test_classes(self):
        script = self.script(2)
        script.snapshot((BLOCKS[0], 0x401000), (BLOCKS[0] + 8, BLOCKS[1]), (IN_BSS, 0, BLOCKS[0]),
                        classes=((0x401000, "N3app6ServerE"),))
        path = self.write(script.close())
        found, _ = self.items(path, BLOCKS[1])
        self.assertEqual([i["class"] for i in found["referrers"]], ["app::Server", None])
        self.assertIn("byte 8 of 0x20000, 64 bytes, app::Server by g",
                      self.run_ok("referrers", "--address", hex(BLOCKS[1]), path).text)

    def test_cycles(self):
        """A lost cycle, and a block that points at itself: each is told once."""
        script = self.script()
        script.snapshot((BLOCKS[0], BLOCKS[1]), (BLOCKS[1], BLOCKS[0]), (BLOCKS[1] + 8, BLOCKS[1]))
        found, places = self.items(self.write(script.close()), BLOCKS[1])
        self.assertEqual(places, [(0, "0x20000"), (1, "0x20100"), (0, "0x20100")])
        self.assertEqual([i["repeated"] for i in found["referrers"]], [False, True, True])
        self.assertIsNone(found["distance"])
        text = self.run_ok("referrers", "--address", hex(BLOCKS[1]), self.path("trace.ttd")).text
        self.assertIn("nothing leads to it from a variable, stack, register or mapping", text)

    def test_limits(self):
        script = self.script(40)
        script.snapshot(*((block, BLOCKS[0]) for block in BLOCKS[1:]),
                        *((IN_BSS, 8 * i, BLOCKS[39]) for i in range(20)))
        path = self.write(script.close())
        found, places = self.items(path, BLOCKS[0], "--limit", "4")
        self.assertEqual(places, [(0, "0x22700"), (1, "demo .bss+0x0"), (1, "demo .bss+0x8"),
                                  (1, "+18"), (0, "0x20100"), (0, "0x20200"), (0, "0x20300"),
                                  (0, "+35")])
        self.assertEqual(found["total_pointers"], 39)
        found, places = self.items(path, BLOCKS[0], "--limit", "1", "--depth", "1")
        self.assertEqual((places, found["referrers"][0]["cut"]),
                         ([(0, "0x22700"), (0, "+38")], True))
        for wrong in (("--depth", "0"), ("--depth", "5000"), ("--limit", "0")):
            self.assertEqual(run("referrers", "--address", "1", *wrong, path).status,
                             support.USAGE)

    def lists(self, count, step=0x20, sizes=(24,), is_double=False, anew=()):
        """A list that begins in .bss. In a double one each block also points at the one before.
        Those of `anew` take the place of an earlier block, whose words they may have."""
        script = SnapshotScript().basics()
        for i in range(count):
            script.alloc(0x20000 + step * i, sizes[i % len(sizes)])
        for i in anew:
            script.free(0x20000 + step * i)
            script.alloc(0x20000 + step * i, sizes[i % len(sizes)])
        words = [(0x20000 + step * i, 0x20000 + step * (i + 1)) for i in range(count - 1)]
        if is_double:
            words += [(0x20008 + step * (i + 1), 0x20000 + step * i) for i in range(count - 1)]
        return script.snapshot((IN_BSS, 0, 0x20000), *words), 0x20000 + step * (count - 1)

    def test_long_list(self):
        """A list is told as one; nothing recurses."""
        for is_double in (False, True):
            script, last = self.lists(10000, is_double=is_double)
            found, places = self.items(self.write(script.close(), f"{is_double}"), last)
            self.assertEqual(places, [(0, hex(last - 0x20)), (1, "9998 to 0x20000"),
                                      (2, "demo .bss+0x0")] +
                             ([(2, "0x20020")] if is_double else []))
            self.assertEqual((found["distance"], found["referrers"][1]["distance"]), (10000, 1))
        text = self.run_ok("referrers", "--address", hex(last), self.path("True")).text
        self.assertIn("    … through 9,998 blocks like it, each pointed at by the next, up to "
                      "0x20000\n      demo .bss+0x0, word at 0x600000000\n", text)

    def test_short_list(self):
        script, last = self.lists(5)
        self.assertEqual(self.items(self.write(script.close()), last)[1],
                         [(0, "0x20060"), (1, "0x20040"), (2, "0x20020"), (3, "0x20000"),
                          (4, "demo .bss+0x0")])

    def test_stale_word_in_a_list(self):
        """The line that stands for the list says it, as leaks says it of the block."""
        for anew in (), (15,):
            script, last = self.lists(30, anew=anew)
            path = self.write(script.close(), f"anew{len(anew)}")
            found, places = self.items(path, last)
            self.assertEqual(places[1], (1, "28 to 0x20000"))
            self.assertEqual([item["stale"] for item in found["referrers"]],
                             [False, bool(anew), False])
            text = self.run_ok("referrers", "--address", hex(last), path).text
            self.assertEqual("up to 0x20000, perhaps by a stale word\n" in text, bool(anew))
            kinds = self.json_of("leaks", path, "--show", "stale")["groups"]
            self.assertEqual(sum(group["blocks"] for group in kinds), 14 if anew else 0)

    def test_long_chain(self):
        """Blocks of different sizes are no list. Depth is bounded."""
        script, last = self.lists(10000, 0x20, (24, 25))
        found, places = self.items(self.write(script.close()), last, "--depth", "4096")
        self.assertEqual((len(places), found["distance"], found["referrers"][-1]["cut"]),
                         (4096, 10000, True))
        script, last = self.lists(30)
        found, places = self.items(self.write(script.close(), "list"), last, "--depth", "2")
        self.assertEqual((places[-1], found["referrers"][-1]["cut"]), ((1, "28 to 0x20000"), True))

    def test_snapshot_before(self):
        script = self.script(2)
        script.snapshot((IN_BSS, 0, BLOCKS[0]))
        script.alloc(BLOCKS[5], 8)
        script.snapshot((IN_BSS, 8, BLOCKS[0]))
        path = self.write(script.close())
        self.assertEqual(self.items(path, BLOCKS[0])[1], [(0, "demo .bss+0x8")])
        self.assertEqual(self.items(path, BLOCKS[0], "--at", "#2")[1], [(0, "demo .bss+0x0")])
        found, places = self.items(path, BLOCKS[0], "--at", "#1")
        self.assertEqual((found["snapshot"], places), (None, []))
        self.assertIn("no snapshot of references at this position", run(
            "referrers", "--at", "#1", "--address", "1", path).text)
        found, places = self.items(path, BLOCKS[9])
        self.assertEqual((found["block"], places), (None, []))

    def test_state(self):
        """state --address tells who points at the block, if it was there at the snapshot."""
        script = self.script(3)
        script.snapshot((IN_BSS, 0, BLOCKS[0]), (BLOCKS[0], BLOCKS[1]), (BLOCKS[2], BLOCKS[1]))
        script.free(BLOCKS[1])
        script.alloc(BLOCKS[1], 8)
        path = self.write(script.close())
        found = self.json_of("state", path, "--address", hex(BLOCKS[1]), "--at", "#2")["address"]
        self.assertEqual((found["status"], found["pointers"]), ("live", None))  # before it
        found = self.json_of("state", path, "--address", hex(BLOCKS[1]), "--at", "2:0")["address"]
        self.assertEqual((found["pointers"]["snapshot"]["number"], [
            item["block"]["address"] for item in found["pointers"]["referrers"]]),
            (1, [hex(BLOCKS[0]), hex(BLOCKS[2])]))
        text = self.run_ok("state", "--address", hex(BLOCKS[1]), "--at", "2:0", path).text
        self.assertIn("By snapshot 1 at 2:0, 2 pointers point at it\n  byte 0 of 0x20000, ", text)
        # Another block has its place now.
        found = self.json_of("state", path, "--address", hex(BLOCKS[1]))["address"]
        self.assertEqual((found["status"], found["pointers"]), ("live", None))

    def test_uncertain(self):
        script = self.script(2)
        script.snapshot((IN_BSS, 0, BLOCKS[0]), flags=0)
        found, _ = self.items(self.write(script.close()), BLOCKS[0])
        self.assertFalse(found["certain"])
        self.assertIn("threads ran on while snapshot 1 was taken", found["reasons"][0])

    def test_labels(self):
        """Each kind of root as a person calls it."""
        script = self.script(1)
        script.add("variable", module=1, offset=0x100200, size=0x40, name="_ZN3app6serverE")
        script.add("variable", module=1, offset=0x100300, size=8, name="bad%1b[name")
        script.add("frames", snapshot=1, thread=1, stack=2,
                   addresses=f"{0x7ff000100},{0x7ff000200}")
        regions = [(HEAP, HEAP_BEGIN, HEAP_SIZE), (MODULE, 0x500100, 0x1000, 0, 1, ".bss"),
                   (STACK, 0x7ff000080, 0x1000, 1), (REGISTERS, 0, 17 * 8, 2),
                   (TLS, 0x7fd000000, 0x1000, 1, 2), (ANONYMOUS, 0x7fa000000, 0x200000),
                   (FILE, 0x500000000, 0x1000, 0, 0, "/dev/shm/x"), (STACK, 0x1000, 0x1000, 2),
                   (TLS, 0x7fc000000, 0x1000),
                   (FILE, 0xffff800000000000, 0x18, 0, 0, "[epoll]")]
        words = {"demo .bss: app::server+0x1f": (2, 0x11f), "demo .bss: app::server": (2, 0x100),
                 "demo .bss: bad\x1b[name": (2, 0x200), "demo .bss+0x240": (2, 0x240),
                 "thread 1, stack, f::run() (f.cc:20) +0x8": (3, 8),
                 "thread 1, stack, main (main.c:10) +0x10": (3, 0x90),
                 "thread 1, stack +0x300": (3, 0x300), "thread 2, rdi": (4, 40),
                 "libwork.so TLS of thread 1 +0x40": (5, 0x40),
                 "mapping 0x7fa000000 (anonymous, 2 MB) +0x18": (6, 0x18),
                 "mapping 0x500000000 (/dev/shm/x, 4 kB) +0x20": (7, 0x20),
                 "thread 2, stack +0x8": (8, 8), "TLS at 0x7fc000000 +0x30": (9, 0x30),
                 "[epoll] of the system (24 bytes) +0x8": (10, 8)}
        script.snapshot(*((*place, BLOCKS[0]) for place in words.values()), regions=regions)
        path = self.write(script.close())
        _, places = self.items(path, BLOCKS[0], "--limit", "100")
        self.assertEqual(sorted(name for _, name in places), sorted(words))
        text = self.run_ok("referrers", "--address", hex(BLOCKS[0]), "--limit", "100", path).text
        self.assertIn("\n  demo .bss: bad\\x1b[name, word at 0x500300\n", text)
        for place in "thread 2, rdi", "[epoll] of the system (24 bytes) +0x8":
            self.assertIn(f"\n  {place}\n", text)
        rows = self.run_ok("referrers", "-f", "csv", "--address", hex(BLOCKS[0]), "--limit", "100",
                           path).csv
        self.assertIn("demo .bss: app::server+0x1f", [row["root"] for row in rows])

    def test_frames_on_another_stack(self):
        """A handler of signals or a coroutine that runs elsewhere has no words of the thread's
        stack, nor has the way from one stack to the other."""
        outer = ["thread 1, stack +0x8", "thread 1, stack, main (main.c:10) +0x8"]
        for name, ends, expected in (
                ("below", (0x800, 0x1100, 0x1200), outer),
                ("above", (0x9000, 0x1100, 0x1200), outer),
                ("alone", (0x9000, 0x9100, 0x9200), [outer[0], "thread 1, stack +0x108"])):
            script = self.script(1)
            script.add("stack", parent=2, module=0, offset=0xbeef)
            script.add("frames", snapshot=1, thread=1, stack=5, addresses=",".join(map(str, ends)))
            script.snapshot((1, 0x8, BLOCKS[0]), (1, 0x108, BLOCKS[0]),
                            regions=[(STACK, 0x1000, 0x1000, 1), (HEAP, HEAP_BEGIN, HEAP_SIZE)])
            _, places = self.items(self.write(script.close(), name), BLOCKS[0])
            self.assertEqual([label for _, label in places], expected, name)


class Earlier(SnapshotCase):
    """The block that had a word before."""

    OWNER, HOLDER, LOST = 0x21000, 0x23000, 0x22000

    def trace(self, holder=True):
        script = SnapshotScript().basics()
        script.alloc(self.LOST, 24, stack=3)
        script.alloc(self.OWNER - 16, 64)
        script.free(self.OWNER - 16)
        script.alloc(self.OWNER - 8, 32, stack=3)       # the last one that had the word
        script.free(self.OWNER - 8)
        words = [(self.OWNER + 8, self.LOST), (self.OWNER + 16, self.LOST)]
        script.alloc(self.OWNER + 0x100, 8)     # in the same page, which so is the allocator's
        if holder:
            script.alloc(self.HOLDER, 100)
            script.free(self.HOLDER)
            script.alloc(self.HOLDER + 8, 40)
            words += [(self.HOLDER + 16, self.LOST), (IN_BSS, 0, self.HOLDER + 8)]
        return self.write(script.snapshot(*words).close())

    def test_relic(self):
        path = self.trace(holder=False)
        found = self.json_of("referrers", path, "--address", self.LOST)
        self.assertEqual((found["distance"], found["total_pointers"], found["total_relics"]),
                         (None, 0, 2))
        self.assertEqual([(i["kind"], i["address"], i["depth"], i["block"], i["root"]["label"])
                          for i in found["referrers"]],
                         [("relic", hex(self.OWNER + offset), 0, None,
                           "heap memory outside of blocks") for offset in (8, 16)])
        for item in found["referrers"]:
            self.assertEqual((item["earlier_block"]["address"], item["earlier_block"]["size"],
                              item["earlier_block"]["allocated"]["stack_id"],
                              item["earlier_released"]["position"]),
                             (hex(self.OWNER - 8), 32, 3, "2:1"))
        text = self.run_ok("referrers", "--address", self.LOST, "--limit", "1", path).text
        self.assertIn(f"\n  released memory, which holds nothing, word at {self.OWNER + 8:#x}\n"
                      f"    was byte 16 of {self.OWNER - 8:#x}, 32 bytes by libwork.so+0x300, "
                      "allocated by malloc() at ",
                      text)
        self.assertIn("\n    released by free() at 2:1 in thread 1, ", text)
        self.assertIn("\n  … and 1 word more of released memory (--limit)\n", text)
        self.assertIn("definitely lost: 2 blocks, 32 bytes",
                      self.run_ok("leaks", path).text.lower())

    def test_stale(self):
        path = self.trace()
        found = self.json_of("referrers", path, "--address", self.LOST)
        stale = found["referrers"][0]
        self.assertEqual((stale["kind"], stale["stale"], stale["earlier_block"]["address"],
                          stale["earlier_block"]["size"]), ("block", True, hex(self.HOLDER), 100))
        root = found["referrers"][1]
        self.assertEqual((root["kind"], root["earlier_block"], root["earlier_released"]),
                         ("root", None, None))
        rows = self.run_ok("referrers", "-f", "csv", "--address", self.LOST, path).csv
        self.assertEqual([(row["earlier_block"], row["earlier_size"], bool(row["earlier_released"]))
                          for row in rows], [(hex(self.HOLDER), "100", True), ("", "", False),
                                            (hex(self.OWNER - 8), "32", True),
                                            (hex(self.OWNER - 8), "32", True)])


class Find(SnapshotCase):
    """find --pointer-to answers from references, without any contents of memory."""

    def trace(self):
        script = SnapshotScript().basics()
        script.alloc(FIRST, 64)
        script.alloc(FIRST + 0x1000, 24)
        script.snapshot((IN_BSS, 0x40, FIRST), (IN_REGISTERS, 40, FIRST + 8),
                        (FIRST + 0x1008, FIRST))
        script.alloc(FIRST + 0x2000, 8)     # after the snapshot
        return self.write(script.close())

    def test_references(self):
        path = self.trace()
        found = self.json_of("find", path, "--pointer-to", FIRST + 4)
        self.assertEqual((found["target"]["address"], found["total_places"]), (hex(FIRST), 0))
        self.assertEqual((found["pointers"]["snapshot"]["number"], found["reasons"]), (1, []))
        self.assertEqual([(i["kind"], i["offset"], i["target_offset"],
                           i["block"] and i["block"]["address"])
                          for i in found["pointers"]["referrers"]],
                         [("root", 0x40, 0, None), ("root", 40, 8, None),
                          ("block", 8, 0, hex(FIRST + 0x1000))])
        text = self.run_ok("find", "--pointer-to", FIRST, path).text
        self.assertNotIn("No snapshot of memory", text)
        self.assertIn("By snapshot 1 at 2:0, 3 pointers point at it", text)
        self.assertIn("demo .bss+0x40", text)

    def test_csv(self):
        rows = self.run_ok("find", "-f", "csv", "--pointer-to", FIRST, self.trace()).csv
        self.assertEqual([(r["address"], r["value"], r["snapshot"], r["block"], r["root"])
                          for r in rows],
                         [("0x600000040", hex(FIRST), "1", "", "demo .bss+0x40"),
                          ("", hex(FIRST + 8), "1", "", "thread 1, rdi"),
                          (hex(FIRST + 0x1008), hex(FIRST), "1", hex(FIRST + 0x1000), "")])

    def test_unknown(self):
        """No block, and one that the snapshot does not know."""
        path = self.trace()
        for address in (FIRST + 0x2000, 0x9999000):
            self.assertIsNone(self.json_of("find", path, "--pointer-to", address)["pointers"])
        self.assertIn("The trace has no snapshot of memory",
                      self.run_ok("find", "--pointer-to", FIRST + 0x2000, path).text)

    def test_limit(self):
        text = self.run_ok("find", "--pointer-to", FIRST, "--limit", "1", self.trace()).text
        self.assertIn("… and 2 pointers more", text)


if __name__ == "__main__":
    support.main()
