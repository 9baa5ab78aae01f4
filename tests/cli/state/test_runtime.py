# SPDX-License-Identifier: MIT
"""Blocks that the C and C++ runtimes keep are separated by every command that lists live
blocks, and by all in the same way."""

import support
from index_doubt import DOUBT
from support import Script, TestCase

LINE = " kept by the C/C++ runtime, not counted"


class Runtime(TestCase):
    def setUp(self):
        super().setUp()
        script = Script(events_per_chunk=4).basics()
        script.alloc(0x1000, 72704, stack=3)  # #0: kept
        script.alloc(0x2000, 10, stack=2)     # #1
        script.alloc(0x3000, 20, stack=3)     # #2: at an address that is named, but released
        script.free(0x3000)                   # #3
        script.alloc(0x3000, 30, stack=4)     # #4: kept
        script.alloc(0x4000, 5000, stack=2)   # #5: the peak
        script.free(0x4000)                   # #6
        script.alloc(0x5000, 7, stack=3)      # #7: of the stack of what is kept
        script.add("blocks", list=3, position="9:0", blocks="0x1000:1,0x3000:1")
        self.trace = self.write(script.close())

    def sums(self, groups):
        return sorted((g["stack_id"], g["blocks"], g["bytes"]) for g in groups)

    def test_state_is_as_leaks(self):
        for at in ("#0", "#1", "#2", "#3", "#4", "#5", "#6", "#7", "end"):
            leaks = self.json_of("leaks", self.trace, "--at", at, "--show-runtime")
            state = self.json_of("state", self.trace, "--at", at, "--show-runtime")
            # Groups of leaks have a number and a block beside.
            for group in leaks["groups"]:
                del group["group"], group["address"]
            for name in ("groups", "runtime_groups", "runtime_blocks", "runtime_bytes",
                         "runtime_counted"):
                self.assertEqual(state[name], leaks[name], (at, name))
            self.assertEqual((state["live_blocks"], state["live_bytes"]),
                             (leaks["total_blocks"], leaks["total_bytes"]), at)
            for table in ("heaps", "threads", "sizes"):
                self.assertEqual(sum(g["bytes"] for g in state[table]), leaks["total_bytes"], at)
        found = self.json_of("state", self.trace)
        self.assertEqual(self.sums(found["groups"]), [(2, 1, 10), (3, 1, 7)])
        self.assertEqual((found["runtime_blocks"], found["runtime_bytes"]), (2, 72734))
        self.assertNotIn("runtime_groups", found)

    def test_peak(self):
        found = self.json_of("peak", self.trace, "--show-runtime")
        self.assertEqual(self.sums(found["groups"]), [(2, 2, 5010)])
        self.assertEqual(self.sums(found["runtime_groups"]), [(3, 1, 72704), (4, 1, 30)])
        self.assertEqual((found["live_bytes"], found["runtime_bytes"]), (5010, 72734))
        self.run_ok("index", self.trace)
        indexed = self.json_of("peak", self.trace, "--show-runtime")
        self.assertEqual((indexed["certain"], indexed["reasons"]), (False, [DOUBT]))
        self.assertEqual(indexed | {"certain": True, "reasons": []}, found)

    def test_timeline(self):
        """It has both, and says so."""
        found = self.json_of("timeline", self.trace)
        self.assertIs(found["runtime_counted"], True)
        self.assertEqual(max(point["peak_bytes"] for point in found["points"]), 5010 + 72734)

    def test_diff(self):
        """At the end of the range it is open what is kept: that is looked up."""
        for to in ("#5", "end"):
            found = self.json_of("diff", self.trace, "--from", "#1", "--to", to, "--show-runtime")
            self.assertEqual(self.sums(found["runtime_groups"]), [(3, 1, 72704), (4, 1, 30)])
            self.assertEqual(self.sums(found["aofo"]["groups"]), [])
            self.assertEqual(self.sums(found["aifi"]["groups"]),
                             [(2, 1, 5000), (3, 1, 20)] if to == "end" else [(3, 1, 20)])
            self.assertEqual(self.sums(found["aifo"]["groups"]),
                             [(2, 1, 10), (3, 1, 7)] if to == "end" else [(2, 1, 10)])
        found = self.json_of("diff", self.trace, "--from", "#1", "--to", "#3", "--show-runtime")
        self.assertEqual(self.sums(found["runtime_groups"]), [(3, 1, 72704)])
        self.assertEqual(self.sums(found["aifo"]["groups"]), [(2, 1, 10), (3, 1, 20)])

    def test_changes(self):
        found = self.json_of("diff", self.trace, "--changes", "--from", "start")
        self.assertEqual(sorted(c["change_bytes"] for c in found["changes"]), [7, 10])
        self.assertEqual([found[s]["runtime_bytes"] for s in ("old", "new")], [0, 72734])
        found = self.json_of("diff", self.trace, "--changes", "--from", "start", "--show-runtime")
        self.assertEqual(sorted(c["change_bytes"] for c in found["changes"]), [10, 30, 72711])
        self.assertEqual(found["new"]["live_bytes"], 72751)
        self.assertEqual(self.json_of("diff", self.trace, self.trace)["changes"], [])

    def test_text(self):
        for command in ("leaks", "state", "peak", "diff"):
            for more in ((), ("--tree", "top-down"), ("--by", "module")):
                text = self.run_ok(command, *more, self.trace).text
                hint = "" if "--tree" in more else " (--show-runtime to list)"
                self.assertIn(f"2 blocks, 72,734 bytes{LINE}{hint}\n", text, (command, more))
                self.assertNotIn("72,704", text, (command, more))
                if "--tree" in more:
                    self.assertEqual(support.run(command, "--show-runtime", *more,
                                             self.trace).status, support.USAGE)
                    continue
                text = self.run_ok(command, "--show-runtime", *more, self.trace).text
                self.assertIn(LINE + "; they come last\n", text)
        for more in ((), ("--tree", "top-down")):
            text = self.run_ok("diff", "--changes", *more, self.trace).text
            self.assertIn("Of the new heap, 2 blocks, 72,734 bytes" + LINE +
                          " (--show-runtime to count)\n", text)
            self.assertNotIn("Of the old heap", text)
            self.assertNotIn(LINE, self.run_ok("diff", "--changes", "--show-runtime", *more,
                                               self.trace).text)

    def test_killed_with_thread_storage(self):
        """Blocks that the dynamic linker allocated are known by their stack, the others are not."""
        for thread_storage, line in (
                (True, "1 block, 300 bytes" + LINE + " (--show-runtime to list)\n"
                 "It may keep more blocks, which are counted: the program was killed\n"),
                (False, "Blocks that the C/C++ runtime keeps are counted: the program was killed\n")):
            script = Script().basics()
            script.add("module", path="/lib64/ld-linux-x86-64.so.2", bias=0x9000000,
                       begin=0x9000000, end=0x9100000, position="0:0")
            script.add("stack", parent=2, module=3, offset=0x10)    # 5
            script.add("symbol", module=3, offset=0x10, frames="_dl_allocate_tls@dl-tls.c@9")
            script.alloc(0x1000, 300, stack=5 if thread_storage else 2)
            script.alloc(0x2000, 10, stack=2)
            path = self.write(script.close(reason=2, code=11), str(thread_storage))
            text = self.run_ok("leaks", path).text
            self.assertIn(line, text)
            self.assertEqual(LINE in text, thread_storage)

    def test_tables(self):
        for command, kind in (("leaks", "kind"), ("state", "kind"), ("peak", "kind"),
                              ("diff", "quadrant")):
            rows = self.run_ok(command, "-f", "csv", "--show-runtime", self.trace).csv
            self.assertEqual(sorted(r["bytes"] for r in rows if r[kind] == "runtime"),
                             ["30", "72704"], command)
            self.assertNotIn("72704", self.run_ok(command, "-f", "csv", self.trace).text)
            if command != "diff":
                self.assertEqual(sum(int(line.rpartition(" ")[2]) for line in self.run_ok(
                    command, "-f", "folded", self.trace).text.splitlines()),
                    5010 if command == "peak" else 17, command)

    def test_filters(self):
        for command in ("leaks", "state", "peak", "diff"):
            found = self.json_of(command, self.trace, "--exclude", "0xdead", "--include", "libwork")
            self.assertEqual(found["runtime_bytes"], 72734, command)
            found = self.json_of(command, self.trace, "--exclude", "libwork")
            self.assertEqual(found["runtime_bytes"], 0, command)

    def test_killed(self):
        script = Script().basics()
        script.alloc(0x1000, 5)
        path = self.write(script.close(reason=2, code=9), "killed")
        for command in ("leaks", "state", "peak", "diff"):
            self.assertIs(self.json_of(command, path)["runtime_counted"], True)
            self.assertIn("Blocks that the C/C++ runtime keeps are counted: the program was killed\n",
                          self.run_ok(command, path).text)


support.main()
