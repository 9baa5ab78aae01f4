# SPDX-License-Identifier: MIT
"""ttdanalyze errors"""

import os

import support
from error_support import ErrorCase
from support import Script, run

UNJUDGED = 6

MALLOC, CALLOC, REALLOC, FREE, POSIX_MEMALIGN, ALIGNED_ALLOC = 1, 2, 3, 5, 8, 9
FREE_SIZED = 12
NEW, NEW_NOTHROW, NEW_ALIGNED, NEW_ARRAY, NEW_ARRAY_ALIGNED = 16, 17, 18, 20, 22
DELETE, DELETE_SIZED, DELETE_ALIGNED, DELETE_SIZED_ALIGNED = 24, 26, 27, 29
DELETE_ARRAY, DELETE_ARRAY_SIZED, DELETE_ARRAY_ALIGNED = 30, 32, 33
HEAP_ALLOC, HEAP_FREE = 48, 50
INHERITS, ATTACHED = 2, 8


class Errors(ErrorCase):
    def test_double_free(self):
        script = Script().basics()
        script.alloc(0x1000, 24)
        script.free(0x1000, stack=3)
        script.free(0x1000, stack=4, end="never")
        found = self.findings(script)
        finding, = found["findings"]
        self.assertEqual((finding["kind"], finding["position"], finding["address"],
                          finding["stack_id"], finding["count"], finding["certain"]),
                         ("double-free", "1:1", "0x1000", 4, 1, True))
        self.assertEqual((finding["released"]["position"], finding["released"]["stack_id"]),
                         ("0:3", 3))
        self.assertEqual((finding["allocated"]["position"], finding["allocated"]["stack_id"]),
                         ("0:2", 2))
        self.assertEqual(finding["block"],
                         {"address": "0x1000", "size": 24, "offset": 0, "heap_id": 1})
        self.assertEqual(finding["stack"][0]["address"], "0xdead")
        self.assertEqual(finding["allocated"]["stack"][1]["function"], "f::run()")
        text = self.run_ok("errors", self.path("trace.ttd")).text
        # The finding, its block, and three stacks in the order of time.
        self.assertRegex(text, r"double-free: free\(0x1000\) at 1:1 in thread 1\n"
                         r"  the block at 0x1000 has 24 bytes\n"
                         r"  allocated by malloc\(\) at 0:2 in thread 1\n    #0  g\(int\)[^:]*:5(.|\n)*"
                         r"\n  released before by free\(\) at 0:3 in thread 1\n    #0  libwork.so(.|\n)*"
                         r"\n  released again by free\(\) at 1:1 in thread 1, which never returned\n"
                         r"    #0  0xdead\n")
        row, = self.run_ok("errors", "-f", "csv", self.path("trace.ttd")).csv
        self.assertEqual((row["kind"], row["released_position"], row["conflict_stack"]),
                         ("double-free", "0:3", ""))

    def test_third_free_conflicts_with_the_second(self):
        script = Script().basics()
        script.alloc(0x1000, 24)
        for _ in range(3):
            script.free(0x1000)
        script.free(0x1000, stack=3)
        found = self.findings(script)
        self.assertEqual([(f["stack_id"], f["count"], f["position"], f["last_position"])
                          for f in found["findings"]], [(1, 2, "1:1", "1:3"), (3, 1, "2:1", "2:1")])
        self.assertEqual(found["total_calls"], 3)
        self.assertEqual(found["findings"][1]["released"]["position"], "1:3")

    def test_filters(self):
        """By the stack of the call that is wrong, whatever those are that it conflicts with."""
        script = Script().basics()
        for stack in (1, 2, 3, 3):
            script.free(0x9000 + stack, stack=stack)
        path = self.write(script.close())
        for options, stacks, calls in (((), {1, 2, 3}, 4), (("--include", "g(int)"), {2}, 1),
                                       (("--exclude", "g.h"), {1, 3}, 3),
                                       (("--include", "libwork.so"), {3}, 2),
                                       (("--include", "no such"), set(), 0)):
            found = self.json_of("errors", path, *options)
            self.assertEqual(({f["stack_id"] for f in found["findings"]}, found["total_calls"]),
                             (stacks, calls), options)
            status = run("errors", "--error-exitcode", "9", *options, path).status
            self.assertEqual(status, 9 if stacks else 2)
        baseline = self.path("baseline")
        self.run_ok("errors", "--include", "g(int)", "--write-baseline", baseline, path)
        found = self.json_of("errors", path, "--baseline", baseline)
        self.assertEqual({f["stack_id"] for f in found["findings"]}, {1, 3})

    def test_allocated_again(self):
        script = Script().basics()
        for _ in range(3):
            script.alloc(0x1000, 24)
            script.free(0x1000)
        script.realloc(0, 0x1000, 5)
        script.realloc(0x1000, 0x1000, 50)
        script.realloc(0x1000, 0x2000, 500)
        script.alloc(0x1000, 1)
        script.free(0x1000)
        script.free(0x2000)
        script.free(0)
        self.assertEqual(self.kinds(script), [])
        self.assertIn("No errors in the calls of the heap; reads and writes are not watched\n",
                      self.run_ok("errors", self.path("trace.ttd")).text)

    def test_invalid_and_interior(self):
        script = Script().basics()
        script.alloc(0x1000, 0x20)
        script.alloc(0x2000, 0)
        script.free(0x1008, stack=3)
        script.free(0x1020)
        script.realloc(0x101f, 0x5000, 10)
        script.free(0x2001, stack=4)
        found = self.findings(script)["findings"]
        self.assertEqual([(f["kind"], f["action"], f["address"]) for f in found],
                         [("interior-free", "Free", "0x1008"), ("invalid-free", "Free", "0x1020"),
                          ("interior-free", "ReAlloc", "0x101f"),
                          ("invalid-free", "Free", "0x2001")])
        self.assertEqual(found[0]["block"]["offset"], 8)
        self.assertIn("lies 8 bytes inside it", self.run_ok("errors", self.path("trace.ttd")).text)
        self.assertIsNone(found[1]["block"])
        self.assertTrue(all(f["certain"] for f in found))

    def test_pairs(self):
        right = [(MALLOC, FREE), (POSIX_MEMALIGN, FREE), (ALIGNED_ALLOC, FREE), (CALLOC, FREE),
                 (NEW, DELETE), (NEW_NOTHROW, DELETE), (NEW_ALIGNED, DELETE_ALIGNED),
                 (NEW_ARRAY, DELETE_ARRAY), (NEW_ARRAY_ALIGNED, DELETE_ARRAY_ALIGNED),
                 (HEAP_ALLOC, HEAP_FREE), (0, FREE), (NEW, 0), (200, DELETE)]
        sized = [(NEW, DELETE_SIZED), (NEW_ALIGNED, DELETE_SIZED_ALIGNED), (MALLOC, FREE_SIZED),
                 (NEW_ARRAY, DELETE_ARRAY_SIZED)]
        wrong = [(MALLOC, DELETE), (MALLOC, DELETE_ARRAY), (NEW, FREE), (NEW_ARRAY, DELETE),
                 (NEW, DELETE_ARRAY), (NEW_ALIGNED, DELETE), (NEW, DELETE_ALIGNED),
                 (NEW_ARRAY_ALIGNED, DELETE_ARRAY), (HEAP_ALLOC, FREE), (MALLOC, HEAP_FREE),
                 (NEW_ARRAY, DELETE_SIZED)]
        script = Script().basics()
        for allocate, release in right + sized + wrong:
            script.event("Alloc", address=0x1000, size=16, api=allocate, stack=2)
            size = {"size": 16} if (allocate, release) in sized else {}
            script.event("Free", base=0x1000, api=release, stack=1, **size)
        finding, = self.findings(script)["findings"]
        self.assertEqual((finding["kind"], finding["count"]), ("mismatched-free", len(wrong)))

    def test_operators_of_a_library(self):
        """They call malloc() and free(), and what they allocate is released by others' operators."""
        script = Script().basics()
        for offset, name in ((0x400, "_Znwm"), (0x500, "_ZdlPv"), (0x600, "_ZnwmX")):
            script.add("stack", parent=1, module=2, offset=offset)  # 5, 6, 7
            script.add("symbol", module=2, offset=offset, frames=f"{name}@@0")
        for allocate, stack, release, at in ((MALLOC, 5, DELETE, 1), (NEW, 2, FREE, 6),
                                             (NEW, 5, DELETE_ARRAY, 3), (MALLOC, 7, DELETE, 4)):
            script.event("Alloc", address=0x1000, size=16, api=allocate, stack=stack)
            script.event("Free", base=0x1000, api=release, stack=at)
        found = self.findings(script)["findings"]
        self.assertEqual([(f["kind"], f["stack_id"]) for f in found], [("mismatched-free", 4)])

    def test_operators_that_may_be_inlined(self):
        """Without lines it is not known what is inlined where malloc() was called."""
        text = "uncertain: an operator of the program may be inlined there"
        for allocate, stack, release, at, certain in (
                (MALLOC, 2, DELETE, 1, True), (MALLOC, 5, DELETE, 1, False),
                (NEW, 2, FREE, 1, True), (NEW, 2, FREE, 5, False), (NEW, 5, DELETE_ARRAY, 5, True),
                (NEW, 5, FREE, 1, True), (MALLOC, 6, DELETE, 1, True)):
            script = Script().basics()
            script.add("module", path="/lib/libc.so.6", bias=0x8000000, begin=0x8000000,
                       end=0x8100000, position="0:0")
            script.add("stack", parent=1, module=2, offset=0x400)  # 5: a function without a line
            script.add("symbol", module=2, offset=0x400, frames="f@@0")
            script.add("stack", parent=1, module=3, offset=0x400)  # 6: the C library has none
            script.add("symbol", module=3, offset=0x400, frames="strdup@@0")
            script.event("Alloc", address=0x1000, size=16, api=allocate, stack=stack)
            script.event("Free", base=0x1000, api=release, stack=at)
            name = f"{allocate}-{stack}-{release}-{at}.ttd"
            finding, = self.findings(script, name=name)["findings"]
            self.assertEqual((finding["kind"], finding["certain"]), ("mismatched-free", certain),
                             name)
            said = self.run_ok("errors", self.path(name)).text
            self.assertEqual(text in said, not certain)

    def test_releases_that_are_deferred(self):
        """A free() on top of the allocator's keeps a block, and releases it in a later call. One that
        was called twice by the program, or has called twice, is to blame."""
        text = "uncertain: the function that called it may release blocks later"
        for function, first, again, certain in (
                ("free", 2, 5, False), ("realloc", 2, 5, False), ("_ZdlPv", 2, 5, False),
                ("_ZdlPvm", 2, 5, False), ("free", 2, 2, True), ("free", 5, 5, True),
                ("free", 5, 2, True), ("_ZN4shop4freeEPv", 2, 5, True),
                ("_ZN4shopdlEPv", 2, 5, True), ("free_all", 2, 5, True)):
            for action in "Free", "ReAlloc":
                script = Script().basics()
                script.add("stack", parent=1, module=2, offset=0x400)  # 5
                script.add("symbol", module=2, offset=0x400, frames=f"{function}@layer.cc@7")
                script.event("Alloc", address=0x1000, size=16, api=MALLOC, stack=2)
                script.event("Free", base=0x1000, api=FREE, stack=first)
                if action == "Free":
                    script.event("Free", base=0x1000, api=FREE, stack=again)
                else:
                    script.event("ReAlloc", base=0x1000, address=0x2000, size=8, api=3, stack=again)
                name = f"{function}-{first}-{again}-{action}.ttd"
                finding, = self.findings(script, name=name)["findings"]
                self.assertEqual(finding["certain"], certain, name)
                said = run("errors", "--error-exitcode", "9", self.path(name))
                self.assertEqual((text in said.text, said.status),
                                 (not certain, 9 if certain else UNJUDGED), name)

    def test_operators_that_leave_no_frame(self):
        """A module that contains the C++ library has operators that nobody else takes: one that
        ends in a call of free() is not seen between that and its caller."""
        text = "uncertain: an operator of the module's own may end in the call, and have no frame"
        for file, module, certain in (("plug.cc", 2, False), ("plug.h", 2, False),
                                      ("plug.c", 2, True), ("plug.cc", 1, True),
                                      ("strdup.cc", 3, True)):
            for calls in ((NEW, 2, FREE, 5), (MALLOC, 5, DELETE, 2)):
                allocate, stack, release, at = calls
                script = Script().basics()
                script.add("module", path="/lib/libc.so.6", bias=0x8000000, begin=0x8000000,
                           end=0x8100000, position="0:0")
                script.add("stack", parent=1, module=module, offset=0x400)
                script.add("symbol", module=module, offset=0x400, frames=f"f@{file}@6")
                script.event("Alloc", address=0x1000, size=16, api=allocate, stack=stack)
                script.event("Free", base=0x1000, api=release, stack=at)
                name = f"{file}{module}{allocate}.ttd"
                finding, = self.findings(script, name=name)["findings"]
                self.assertEqual((finding["kind"], finding["certain"]),
                                 ("mismatched-free", certain), name)
                self.assertEqual(text in self.run_ok("errors", self.path(name)).text, not certain)

    def test_realloc_of_new(self):
        script = Script().basics()
        script.event("Alloc", address=0x1000, size=16, api=NEW, stack=2)
        script.realloc(0x1000, 0x2000, 32)
        script.free(0x2000)
        finding, = self.findings(script)["findings"]
        self.assertEqual((finding["kind"], finding["action"], finding["allocated"]["api"]),
                         ("mismatched-free", "ReAlloc", "operator new"))

    def test_size(self):
        script = Script().basics()
        script.event("Alloc", address=0x1000, size=16, api=NEW, stack=2)
        script.event("Free", base=0x1000, size=8, api=DELETE_SIZED, stack=1)
        finding, = self.findings(script)["findings"]
        self.assertEqual((finding["kind"], finding["size"], finding["block"]["size"]),
                         ("mismatched-size", 8, 16))

    def test_size_of_a_block_from_before(self):
        """Its size is what the allocator has made of what was asked for."""
        script = Script().basics()
        script.event("Alloc", address=0x1000, size=16, api=0, stack=2)
        script.event("Free", base=0x1000, size=8, api=DELETE_SIZED, stack=1)
        self.assertEqual(self.findings(script)["findings"], [])

    def test_realloc_of_freed(self):
        script = Script().basics()
        script.alloc(0x1000, 24)
        script.free(0x1000, stack=3)
        script.realloc(0x1000, 0, 48, result=0)
        finding, = self.findings(script)["findings"]
        self.assertEqual((finding["kind"], finding["released"]["stack_id"]),
                         ("realloc-of-freed", 3))

    def test_failed(self):
        script = Script().basics()
        script.alloc(0, 1 << 60, result=0)
        script.alloc(0, 0, result=0)
        script.event("Protect", heap=2, read_only=1, result=0)
        script.alloc(0x1000, 8, heap=2)
        script.event("Alloc", size=8, end="never")
        found = self.findings(script)["findings"]
        self.assertEqual([(f["kind"], f["action"], f["size"]) for f in found],
                         [("failed-call", "Alloc", str(1 << 60)), ("failed-call", "Protect", 0)])

    def test_trace_inconsistency(self):
        script = Script().basics()
        script.alloc(0x1000, 24)
        script.alloc(0x1000, 32, stack=3)
        finding, = self.findings(script)["findings"]
        self.assertEqual((finding["kind"], finding["allocated"]["stack_id"], finding["api"]),
                         ("trace-inconsistency", 2, "malloc"))
        path = self.path("trace.ttd")
        self.assertEqual(run("errors", "--error-exitcode", "9", path).status, 0)

    def test_reallocation_that_never_returned(self):
        """It may have released the block, so that the address is given again."""
        script = Script().basics()
        script.alloc(0x1000, 24)
        script.event("ReAlloc", base=0x1000, size=48, end="never")
        script.alloc(0x1000, 32, stack=3)
        self.assertEqual(self.findings(script)["findings"], [])

        script = Script().basics()
        script.alloc(0x1000, 24)
        script.event("ReAlloc", base=0x1000, size=48, end="never")
        script.alloc(0x1000, 32, stack=3)
        script.alloc(0x1000, 40, stack=4)
        finding, = self.findings(script, name="later.ttd")["findings"]
        self.assertEqual((finding["kind"], finding["allocated"]["stack_id"]),
                         ("trace-inconsistency", 3))

    def test_exit_status(self):
        script = Script().basics()
        script.free(0x1000)
        path = self.write(script.close())
        self.assertEqual(run("errors", path).status, 0)
        self.assertEqual(run("errors", "--error-exitcode", "9", path).status, 9)

    def test_blocks_from_before_the_recording(self):
        for flags in (INHERITS, ATTACHED):
            script = Script(flags=flags).basics()
            script.free(0x1000)
            script.realloc(0x2000, 0x3000, 8)
            script.free(0x1000, stack=3)     # now that is known to be wrong
            script.free(0x1003, stack=3)     # no block begins there
            script.free(0x20, stack=4)       # nor in the page of NULL
            script.free(0x20, stack=4)
            found = self.findings(script, name=f"flags{flags}")
            self.assertEqual([(f["kind"], f["address"], f["count"], f["certain"])
                              for f in found["findings"]],
                             [("double-free", "0x1000", 1, False),
                              ("invalid-free", "0x1003", 1, True),
                              ("invalid-free", "0x20", 2, True)])
            self.assertIsNone(found["findings"][0]["allocated"])
            self.assertEqual(found["early_releases"], 2)

    def test_losses(self):
        script = Script().basics()
        script.alloc(0x1000, 8, start="1:0", end="1:1")
        script.free(0x1000, start="2:0", end="2:1")
        script.free(0x1000, start="3:0", end="3:1", stack=2)
        script.free(0x1000, start="6:0", end="6:1", stack=3)
        script.free(0x7000, start="6:2", end="6:3")
        script.free(0x1000, start="8:0", end="8:1", stack=4)
        script.add("loss", reason=1, count=17, last_good="4:0", first_good="5:0")
        found = self.findings(script)
        self.assertEqual([(f["kind"], f["certain"]) for f in found["findings"]],
                         [("double-free", True), ("double-free", False), ("invalid-free", False),
                          ("double-free", True)])
        self.assertEqual((found["certain"], len(found["reasons"])), (False, 1))
        self.assertIn("  uncertain: ", self.run_ok("errors", self.path("trace.ttd")).text)

    def test_calls_that_are_missing_may_explain_findings(self):
        """Then the program may be right: there is no answer. Each call needs a missing one, of known
        number or not; and what is certain counts, as a failure does."""
        reason = "calls are missing that may explain the findings"
        plain = {"reason": 1, "count": 1, "last_good": "4:0", "first_good": "5:0"}
        cut_off = {"reason": 6, "count": 9, "last_good": "0:0", "first_good": "2:0"}
        unseen = {"reason": 3, "count": "unknown", "last_good": "0:0", "first_good": "never"}
        for name, loss, frees, status in (
                ("double", plain, ["3:0", "6:0"], UNJUDGED), ("twice", plain, ["3:0", "6:0", "7:0"], 9),
                ("before", plain, ["2:2", "3:0"], 9), ("behind", plain, ["6:0", "7:0"], 9),
                ("past", cut_off, ["3:0", "6:0"], 9), ("unseen", unseen, ["3:0", "6:0"], UNJUDGED),
                ("unseen twice", unseen, ["3:0", "6:0", "7:0"], UNJUDGED), ("none", plain, ["3:0"], 0)):
            script = Script().basics()
            script.alloc(0x1000, 8, start="2:0", end="2:1")
            for position in frees:
                script.free(0x1000, start=position, end=position[:-1] + "9")
            path = self.write(script.add("loss", **loss).close(), name.replace(" ", "-"))
            result = run("errors", "--error-exitcode", "9", path)
            self.assertEqual(result.status, status, name)
            self.assertEqual(f"no answer to 'errors': {reason}\n" in result.errors, status == UNJUDGED)
            group = run("errors", "--group", "--error-exitcode", "9", path)
            self.assertEqual(group.status, status, name)
            self.assertIs(self.json_of("errors", path)["judged"], status != UNJUDGED)
            results = run("errors", "-f", "sarif", path).json["runs"][0]["results"]
            self.assertEqual({r["level"] == "note" for r in results},
                             {status == UNJUDGED} if status else set())
            self.assertIn(f'failures="{int(status == 9)}"', run("errors", "-f", "junit", path).text)
            os.remove(path)

    def test_a_failure_rests_on_itself(self):
        script = Script().basics()
        script.alloc(0, 8, result=0, start="6:0", end="6:1")
        script.add("loss", reason=1, count=7, last_good="4:0", first_good="5:0")
        self.assertEqual(run("errors", "--error-exitcode", "9", self.write(script.close())).status, 9)

    def test_forgotten(self):
        script = Script().basics()
        for i in range(1, 6):
            script.alloc(0x1000 * i, 8)
            script.free(0x1000 * i)
        script.free(0x1000)
        script.free(0x5000)
        found = self.findings(script, "--remember", "4")
        self.assertEqual([(f["kind"], f["certain"]) for f in found["findings"]],
                         [("invalid-free", False), ("double-free", True)])
        self.assertEqual(found["forgotten_releases"], 1)
        text = self.run_ok("errors", "--remember", "4", self.path("trace.ttd")).text
        self.assertIn("1 released block forgotten", text)
        found = self.json_of("errors", self.path("trace.ttd"))
        self.assertEqual([f["kind"] for f in found["findings"]], ["double-free"])
        self.assertEqual(run("errors", "--remember", "0", self.path("trace.ttd")).status,
                         support.USAGE)

    def test_addresses_used_again_take_no_room(self):
        script = Script().basics()
        for _ in range(10):
            script.alloc(0x1000, 8)
            script.free(0x1000)
        self.assertEqual(self.findings(script, "--remember", "4")["forgotten_releases"], 0)

    def test_limit(self):
        script = Script().basics()
        for stack in range(1, 5):
            script.free(0x1000, stack=stack)
        found = self.findings(script, "--limit", "3")
        self.assertEqual((len(found["findings"]), found["total_findings"]), (3, 4))
        text = self.run_ok("errors", "--limit", "3", self.path("trace.ttd")).text
        self.assertIn("… and 1 finding more", text)


if __name__ == "__main__":
    support.main()
