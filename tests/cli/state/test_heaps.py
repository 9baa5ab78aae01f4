# SPDX-License-Identifier: MIT
"""Heaps in blocks of other heaps: a block is of its heap, and no memory is counted twice."""

import json

import support
from snapshot_support import SnapshotCase, SnapshotScript

MALLOC, PRIVATE, POOL, INNER = 1, 2, 3, 4
LOST, MAYBE, HELD = "definitely_lost", "possibly_lost", "still_reachable"
SUMS = "live_blocks", "live_bytes", "nested_blocks", "nested_bytes"
CHUNK, FIRST, SECOND = 0x10000, 0x10000, 0x10040


def pools(script):
    script.basics()
    script.add("heap", name="pool", handle=0x10000, parent=MALLOC)
    script.add("heap", name="inner", handle=0x10000, parent=POOL)
    return script


def with_chunk():
    """A pool in a block of malloc, and a block of the pool at the same address."""
    script = pools(SnapshotScript())
    script.alloc(CHUNK, 4096)
    script.event("Create", heap=POOL, stack=3)
    script.alloc(FIRST, 16, heap=POOL, stack=4)
    return script


class NestedCase(SnapshotCase):
    written = 0

    def write(self, script, name=None):
        self.written += 1
        return super().write(script, name or f"trace{self.written}")


class Heaps(NestedCase):
    def state(self, script, *arguments):
        return self.json_of("state", self.write(script.close()), *arguments)

    def errors(self, path):
        return [(f["kind"], f["certain"], f["heap_id"], (f["block"] or {}).get("heap_id"))
                for f in self.json_of("errors", path)["findings"]]

    def test_events_show_every_action(self):
        script = with_chunk()
        script.event("Lock", heap=POOL)
        script.event("Unlock", heap=POOL)
        script.event("Protect", heap=POOL, read_only=1)
        script.event("Protect", heap=POOL)
        script.realloc(FIRST, SECOND, 32, heap=POOL)
        script.free(SECOND, heap=POOL)
        script.event("Destroy", heap=POOL)
        script.free(CHUNK)
        path = self.write(script.close())
        rows = self.run_ok("events", "-f", "json", path).json_lines
        self.assertEqual([(row["action"], row["heap_id"]) for row in rows],
                         [("Alloc", 1), ("Create", 3), ("Alloc", 3), ("Lock", 3), ("Unlock", 3),
                          ("Protect", 3), ("Protect", 3), ("ReAlloc", 3), ("Free", 3),
                          ("Destroy", 3), ("Free", 1)])
        self.assertEqual(self.errors(path), [])

    def test_memory_is_counted_once(self):
        script = with_chunk()
        script.alloc(SECOND, 32, heap=POOL)
        script.alloc(SECOND, 8, heap=INNER)
        found = self.state(script, "--blocks")
        self.assertEqual((found["live_blocks"], found["live_bytes"]), (1, 4096))
        self.assertEqual((found["nested_blocks"], found["nested_bytes"]), (3, 56))
        self.assertEqual({h["name"]: (h["parent_heap_id"], h["blocks"], h["bytes"])
                          for h in found["heaps"]},
                         {"malloc": (0, 1, 4096), "pool": (MALLOC, 2, 48), "inner": (POOL, 1, 8)})
        self.assertEqual([(b["address"], b["heap_id"]) for b in found["blocks"]],
                         [("0x10000", MALLOC), ("0x10000", POOL), ("0x10040", POOL),
                          ("0x10040", INNER)])
        path = self.write(script)
        text = self.run_ok("state", path).text
        self.assertIn("Live at 2:2: 1 block, 4,096 bytes, from", text)
        self.assertIn("heap 4 inner, in heap 3", text)
        self.assertIn("In them, in heaps of the program: 3 blocks, 56 bytes\n", text)
        self.assertEqual(self.json_of("peak", path)["live_bytes"], 4096)

    def test_the_tree_of_heaps(self):
        script = with_chunk()
        script.alloc(SECOND, 32, heap=POOL)
        script.event("Create", heap=INNER, stack=1)
        script.alloc(SECOND, 8, heap=INNER)
        script.event("Destroy", heap=POOL)
        path = self.write(script.close())

        def tree(*arguments):
            return [(h["heap_id"], h["parent_heap_id"], h["level"], h["destroyed"], h["blocks"],
                     h["bytes"], h["inner_blocks"], h["inner_bytes"],
                     h["created"] and h["created"]["stack_id"])
                    for h in self.json_of("state", path, "--heaps", *arguments)["heap_tree"]]
        self.assertEqual(tree("--at", "#5"),
                         [(MALLOC, 0, 0, False, 1, 4096, 2, 48, None),
                          (POOL, MALLOC, 1, False, 2, 48, 1, 8, 3),
                          (INNER, POOL, 2, False, 1, 8, 0, 0, 1)])
        self.assertEqual(tree(), [(MALLOC, 0, 0, False, 1, 4096, 0, 0, None),
                                  (POOL, MALLOC, 1, True, 0, 0, 1, 8, 3),
                                  (INNER, POOL, 2, False, 1, 8, 0, 0, 1)])
        self.assertNotIn("heap_tree", self.json_of("state", path))
        text = self.run_ok("state", path, "--heaps").text
        self.assertIn("\n    heap 3 pool, destroyed: 0 blocks, 0 bytes; in them, in heaps right "
                      "below: 1 block, 8 bytes\n  created by ", text)
        self.assertEqual(support.run("state", path, "--heaps", "-f", "csv").status, 2)

    def test_leaks_of_a_heap_name_its_creation(self):
        path = self.write(with_chunk().close())
        groups = {g["heap_id"]: g["created"]
                  for g in self.json_of("leaks", path, "--by", "heap")["groups"]}
        self.assertIsNone(groups[MALLOC])
        self.assertEqual(groups[POOL]["stack_id"], 3)
        created, = (h["created"] for h in self.json_of("state", path, "--heaps")["heap_tree"]
                    if h["heap_id"] == POOL)
        self.assertEqual(groups[POOL], created)
        self.assertNotIn("created", self.json_of("leaks", path)["groups"][0])
        text = self.run_ok("leaks", path, "--by", "heap").text
        self.assertRegex(text, rf"heap 3 pool\n  group \d+: .*\n(  .*\n)*?  created by "
                               rf"{created['api']}\(\) at {created['position']}")

    def test_diff_counts_nested_blocks(self):
        script = with_chunk()
        script.alloc(SECOND, 32, heap=POOL)
        script.free(SECOND, heap=POOL)
        path = self.write(script.close())
        found = self.json_of("diff", path)
        self.assertEqual([(found[name]["blocks"], found[name]["nested_blocks"],
                           found[name]["nested_bytes"]) for name in ("aifi", "aifo", "aofo")],
                         [(1, 1, 32), (2, 1, 16), (0, 0, 0)])
        found = self.json_of("diff", path, "--from", "#3")
        self.assertEqual([(found[name]["blocks"], found[name]["nested_blocks"])
                          for name in ("aifi", "aifo", "aofo")], [(1, 1), (0, 0), (2, 1)])
        self.assertIn("    Of these, in heaps of the program and so within other blocks: "
                      "1 block, 32 bytes\n", self.run_ok("diff", path).text)

    def test_two_heaps_count_memory_once(self):
        """Both sides of a comparison are what `state` tells, whatever the view and the filters."""
        old, new = with_chunk(), with_chunk()
        for script in old, new:
            script.alloc(0x30000, 5, stack=2)
        new.alloc(0x20000, 1000, stack=2)
        new.alloc(SECOND, 32, heap=POOL, stack=4)
        new.alloc(SECOND, 8, heap=INNER, stack=2)
        old, new = self.write(old.close()), self.write(new.close())
        middle = "#3"
        for options in [], ["--include", "g(int)"], ["--exclude", "g(int)"], ["--by", "module"], \
                ["--tree", "top-down"]:
            found = json.loads(self.run_ok("diff", "-f", "json", *options, old, new).text)
            views = options if options[:1] != ["--tree"] else []
            for side, path in ("old", old), ("new", new):
                state = self.json_of("state", path, *views)
                self.assertEqual(*([sums[name] for name in SUMS] for sums in (found[side], state)))
            self.assertEqual(found["change_bytes"],
                             found["new"]["live_bytes"] - found["old"]["live_bytes"])
            found = self.json_of("diff", new, "--changes", "--from", middle, *options)
            state = self.json_of("state", new, "--at", middle, *views)
            self.assertEqual(*([sums[name] for name in SUMS] for sums in (found["old"], state)))
        found = json.loads(self.run_ok("diff", "-f", "json", old, new).text)
        self.assertEqual([found["new"][name] for name in SUMS], [3, 5101, 3, 56])
        self.assertEqual((found["change_blocks"], found["change_bytes"]), (1, 1000))
        self.assertEqual(sum(change["change_bytes"] for change in found["changes"]), 1040)
        text = self.run_ok("diff", old, new).text
        self.assertIn("New: 5,101 bytes in 3 blocks at 3:2\n"
                      "    In them, in heaps of the program: 3 blocks, 56 bytes\n", text)

    def test_destroyed_heaps_are_not_in_the_tree(self):
        script = with_chunk()
        script.event("Destroy", heap=POOL)
        found = self.state(script, "--heaps")
        self.assertEqual([h["heap_id"] for h in found["heap_tree"]], [MALLOC])

    def test_a_deep_tree(self):
        script = SnapshotScript()
        script.basics()
        for heap in range(3, 3000):
            script.add("heap", name="\x1b[1m", handle=heap, parent=heap - 1)
        script.event("Create", heap=2999, stack=3)
        path = self.write(script.close())
        levels = [h["level"] for h in self.json_of("state", path, "--heaps")["heap_tree"]]
        self.assertEqual(levels, list(range(2998)))
        text = self.run_ok("state", path, "--heaps").text
        self.assertNotIn("\x1b", text)
        self.assertIn(" (level 2997): 0 blocks", text)
        self.assertLess(max(map(len, text.splitlines())), 200)

    def test_an_index_says_the_same(self):
        script = with_chunk()
        script.add("churn", position="100:0", count=20000, slots=100, seed=5)
        script.clock = 400000
        path = self.write(script.close())
        expected = self.json_of("state", path, "--no-index", "--at", "90%", "--blocks")
        self.run_ok("index", path)
        self.assertEqual(self.json_of("state", path, "--at", "90%", "--blocks")["blocks"],
                         expected["blocks"])
        peak, expected = (self.json_of("peak", path, *option)
                          for option in ([], ["--no-index"]))
        self.assertEqual((peak["live_bytes"], peak["groups"]),
                         (expected["live_bytes"], expected["groups"]))
        self.run_ok("verify", path)

    def test_a_release_is_of_its_heap(self):
        script = with_chunk()
        script.free(FIRST, heap=POOL)
        found = self.state(script)
        self.assertEqual((found["live_blocks"], found["nested_blocks"]), (1, 0))
        script = with_chunk()
        script.free(CHUNK)
        found = self.state(script)
        self.assertEqual((found["live_blocks"], found["nested_blocks"]), (0, 1))

    def test_blocks_whose_memory_may_be_gone_make_nothing_certain(self):
        def chunk_is_freed(script):
            script.free(CHUNK)

        def chunk_is_used_again(script):
            script.free(CHUNK)
            script.alloc(CHUNK, 2048)

        def block_is_larger(script):
            script.alloc(SECOND, 4096, heap=POOL)

        def block_is_elsewhere(script):
            script.alloc(0x20000, 16, heap=POOL)

        def chunk_grows_in_place(script):
            script.realloc(CHUNK, CHUNK, 8192)

        for change in (chunk_is_freed, chunk_is_used_again, block_is_larger, block_is_elsewhere):
            script = with_chunk()
            change(script)
            script.snapshot()
            script.event("Destroy", heap=POOL)
            path = self.write(script.close())
            for command in (("leaks",), ("leaks", "--at", "50:0"), ("state", "--at", "2:3"),
                            ("retained",)):
                found = self.json_of(command[0], path, *command[1:])
                self.assertEqual((found["certain"], [r[:31] for r in found["reasons"]]),
                                 (False, ["1 live block lies in no block o"]), (change, command))
        for change in (chunk_grows_in_place, lambda script: None):
            script = with_chunk()
            change(script)
            script.snapshot()
            self.assertTrue(self.json_of("leaks", self.write(script.close()))["certain"], change)

    def test_destroy_ends_one_heap(self):
        script = with_chunk()
        script.alloc(SECOND, 8, heap=INNER)
        script.event("Destroy", heap=POOL)
        found = self.state(script, "--blocks")
        self.assertEqual([b["heap_id"] for b in found["blocks"]], [MALLOC, INNER])

    def test_errors_of_nested_blocks(self):
        script = with_chunk()
        script.free(FIRST, heap=POOL)
        script.free(CHUNK)
        script.free(CHUNK)
        self.assertEqual(self.errors(self.write(script.close())), [("double-free", True, MALLOC, MALLOC)])

    def test_a_free_inside_a_released_block_of_another_heap(self):
        script = with_chunk()
        script.free(FIRST, heap=POOL)
        script.free(CHUNK)
        script.alloc(CHUNK + 16, 16)
        script.free(CHUNK + 16)
        script.alloc(SECOND, 32, heap=POOL)
        script.free(SECOND, heap=POOL)
        script.free(SECOND + 8)
        self.assertEqual(self.errors(self.write(script.close())),
                         [("invalid-free", True, MALLOC, POOL)])

    def test_a_free_in_another_heap(self):
        script = with_chunk()
        script.alloc(SECOND, 32, heap=POOL)
        script.free(SECOND)
        path = self.write(script.close())
        self.assertEqual(self.errors(path), [("wrong-heap", True, MALLOC, POOL)])
        self.assertEqual(self.json_of("state", path)["nested_blocks"], 2)
        # The block may have been allocated before recording.
        script = pools(SnapshotScript(flags=8))
        script.alloc(SECOND, 32, heap=POOL)
        script.free(SECOND)
        self.assertEqual(self.errors(self.write(script.close())), [])

    def test_history_names_the_innermost(self):
        script = with_chunk()
        path = self.write(script.close())
        found = self.json_of("state", path, "--address", "0x10008")["address"]
        self.assertEqual(found["block"]["heap_id"], POOL)
        found = self.json_of("state", path, "--address", "0x10020")["address"]
        self.assertEqual(found["block"]["heap_id"], MALLOC)
        found = self.json_of("history", path, "--address", "0x10008")
        self.assertEqual([b["heap_id"] for b in found["blocks"]], [MALLOC, POOL])


class References(NestedCase):
    def kinds(self, *words, **fields):
        script = with_chunk()
        script.alloc(SECOND, 32, heap=POOL, stack=1)
        script.snapshot(*words, **fields)
        found = self.json_of("leaks", self.write(script.close()), "--show", "all", "--limit", "0")
        return {g["bytes"]: g["class"] for g in found["groups"]}

    def test_a_pointer_to_an_inner_block_keeps_the_outer_one(self):
        self.assertEqual(self.kinds((2, 0, SECOND)),
                         {4096: HELD, 32: HELD, 16: LOST})

    def test_a_pointer_to_the_outer_block_keeps_no_inner_one(self):
        self.assertEqual(self.kinds((2, 0, CHUNK + 2048)),
                         {4096: MAYBE, 32: LOST, 16: LOST})

    def test_words_are_of_the_innermost_block(self):
        # A word in the first inner block points at the second one.
        self.assertEqual(self.kinds((2, 0, FIRST), (FIRST + 8, SECOND)),
                         {4096: HELD, 32: HELD, 16: HELD})
        # One behind it is of the outer block.
        self.assertEqual(self.kinds((2, 0, CHUNK + 2048), (FIRST + 24, SECOND)),
                         {4096: MAYBE, 32: MAYBE, 16: LOST})

    def test_leaks_tell_how_many_lie_in_others(self):
        script = with_chunk()
        script.alloc(SECOND, 32, heap=POOL, stack=1)
        path = self.write(script.close())
        found = self.json_of("leaks", path)
        self.assertEqual((found["total_blocks"], found["nested_blocks"], found["nested_bytes"]),
                         (3, 2, 48))
        self.assertIn("within other blocks: 2 blocks, 48 bytes\n", self.run_ok("leaks", path).text)
        for option, counts in (("--include", (1, 0)), ("--exclude", (2, 2))):
            found = self.json_of("leaks", path, option, "g(int)")
            self.assertEqual((found["total_blocks"], found["nested_blocks"]), counts, option)
        rules = self.path("rules")
        with open(rules, "w", encoding="ascii") as file:
            file.write("leak:nothing\nleak:libwork.so\n")
        found = self.json_of("leaks", path, "--suppressions", rules)
        self.assertEqual((found["total_blocks"], found["nested_blocks"], found["nested_bytes"]),
                         (2, 1, 32))
        script = with_chunk()
        script.snapshot((2, 0, FIRST))
        found = self.json_of("leaks", self.write(script.close()))
        self.assertEqual((found["nested_blocks"], found["nested_bytes"]), (1, 16))

    def test_referrers_tell_what_lies_within(self):
        script = with_chunk()
        script.snapshot((2, 0, FIRST))
        path = self.write(script.close())
        text = self.run_ok("referrers", path, "--address", "0x10800").text
        self.assertIn("within it, ", text)
        found = self.json_of("referrers", path, "--address", "0x10800")
        self.assertIsNone(found["referrers"][0]["offset"])


if __name__ == "__main__":
    support.main()
