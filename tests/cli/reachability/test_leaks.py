# SPDX-License-Identifier: MIT
"""ttdanalyze leaks"""

import support
from support import Script, TestCase, run


class Leaks(TestCase):
    def small(self):
        """Three leaks from two stacks, among other calls."""
        script = Script().basics()
        script.alloc(0x1000, 100)              # leaks, at 0:2
        script.alloc(0x2000, 50, stack=3)      # released
        script.free(0x2000)
        script.alloc(0x3000, 10, stack=4)      # leaks, at 2:0
        script.alloc(0x4000, 7)                # leaks, at 2:2
        return script

    def test_groups(self):
        path = self.write(self.small().close())
        found = self.json_of("leaks", path)
        self.assertEqual(found["total_blocks"], 3)
        self.assertEqual(found["total_bytes"], 117)
        self.assertIs(found["certain"], True)
        self.assertEqual(found["reasons"], [])
        self.assertEqual([(g["blocks"], g["bytes"], g["stack_id"]) for g in found["groups"]],
                         [(2, 107, 2), (1, 10, 4)])
        self.assertEqual(found["groups"][0]["first_position"], "0:2")
        self.assertEqual(found["groups"][0]["last_position"], "2:2")

    def test_executed_another_program(self):
        """Its blocks end with it, and nobody has looked for them: they are not called released."""
        script = self.small()
        script.event("Destroy", heap=1, thread=0, result=1)
        path = self.write(script.close(), "exec")
        found = self.json_of("leaks", path)
        self.assertEqual((found["left_blocks"], found["left_bytes"], found["total_blocks"]),
                         (3, 117, 0))
        left = "117 bytes in 3 blocks left by programs before, at exec: not searched\n"
        self.assertTrue(self.run_ok("leaks", path).text.startswith(
            "No leaks in the last program\n" + left))
        self.assertEqual(self.json_of("summary", path)["leaks"]["left"],
                         {"blocks": 3, "bytes": 117})
        summary = self.run_ok("summary", path).text
        self.assertIn("\nleaks      none in the last program: all released\n           " + left,
                      summary)
        self.assertIn(" in all, by 1 thread\n", summary)
        for i, fields in enumerate(({"thread": 1}, {"thread": 0, "api": 16})):
            script = self.small()
            script.event("Destroy", heap=1, result=1, **fields)
            path = self.write(script.close(), f"destroyed{i}")
            self.assertEqual(self.json_of("leaks", path)["left_blocks"], 0)
            self.assertEqual(self.run_ok("leaks", path).text, "No leaks\n")

    def test_killed(self):
        """What the runtimes keep is told by a program that exits: of one that was killed only if
        the trace has it after all."""
        kept = {"list": 3, "position": "8:0", "blocks": "0x4000:7:5"}
        killed = "are counted: the program was killed"
        untold = "are counted: the trace does not list them all"
        for reason, lists, said in ((2, [], killed), (2, [1], None), (1, [], None), (1, [1], None),
                                    (1, [0], untold), (2, [0], killed), (1, [0, 1], None)):
            script = self.small()
            for i, last in enumerate(lists):
                script.add("blocks", **kept, id=i + 1, last=last)
            path = self.write(script.close(reason=reason), f"killed{reason}{lists}")
            found = self.json_of("leaks", path)
            self.assertIs(found["runtime_counted"], said is not None)
            self.assertEqual(found["runtime_bytes"], 7 if lists else 0)
            text = self.run_ok("leaks", path).text
            for line in (killed, untold):
                self.assertEqual(line in text, line == said)

    def test_frames(self):
        path = self.write(self.small().close())
        first, second = self.json_of("leaks", path)["groups"]
        self.assertEqual(
            [(f["function"], f["file"], f["line"], f["module"], f["address"], f["inlined"])
             for f in first["stack"]],
            [("g(int)", "g.h", 5, "/opt/app/bin/demo", "0x400200", True),
             ("f::run()", "f.cc", 20, "/opt/app/bin/demo", "0x400200", False),
             ("main", "main.c", 10, "/opt/app/bin/demo", "0x400100", False)])
        self.assertEqual(
            [(f["function"], f["line"], f["module"], f["offset"], f["address"])
             for f in second["stack"]],
            [(None, None, None, "0xdead", "0xdead"),
             (None, None, "/usr/lib/libwork.so", "0x300", "0x7000300"),
             ("main", 10, "/opt/app/bin/demo", "0x100", "0x400100")])

    def test_text(self):
        text = self.run_ok("leaks", self.write(self.small().close())).text
        self.assertIn("107 bytes in 2 blocks, allocated from 0:2 to 2:2\n"
                      "    #0  g(int) (g.h:5) in demo (inlined)\n"
                      "    #1  f::run() (f.cc:20) in demo\n"
                      "    #2  main (main.c:10) in demo\n", text)
        self.assertIn("10 bytes in 1 block, allocated at 2:0\n"
                      "    #0  0xdead\n"
                      "    #1  libwork.so+0x300\n"
                      "    #2  main (main.c:10) in demo\n", text)
        self.assertIn("Never released: 3 blocks, 117 bytes, from 2 stacks\n", text)
        self.assertNotIn("Uncertain", text)
        self.assertNotIn("\033", text)

    def test_csv(self):
        rows = self.run_ok("leaks", "-f", "csv", self.write(self.small().close())).csv
        self.assertEqual([(r["blocks"], r["bytes"], r["stack"]) for r in rows],
                         [("2", "107", "g(int);f::run();main"),
                          ("1", "10", "0xdead;libwork.so+0x300;main")])

    def test_none(self):
        script = Script().basics()
        script.alloc(0x1000, 1)
        script.free(0x1000)
        path = self.write(script.close())
        self.assertIn("No leaks\n", self.run_ok("leaks", path).text)
        found = self.json_of("leaks", path)
        self.assertEqual((found["total_blocks"], found["groups"]), (0, []))

    def test_limit(self):
        path = self.write(self.small().close())
        found = self.json_of("leaks", path, "--limit", "1")
        self.assertEqual([g["bytes"] for g in found["groups"]], [107])
        self.assertEqual(found["total_bytes"], 117)
        self.assertEqual(found["total_groups"], 2)
        self.assertIn("1 stack more", self.run_ok("leaks", "--limit", "1", path).text)
        self.assertEqual(len(self.json_of("leaks", path, "--limit", "0")["groups"]), 2)

    def test_error_exitcode(self):
        path = self.write(self.small().close())
        self.assertEqual(run("leaks", "--error-exitcode", "42", path).status, 42)
        self.assertEqual(run("leaks", "--error-exitcode", "256", path).status, support.USAGE)
        target = self.path("report")
        self.assertEqual(run("leaks", "--error-exitcode", "7", "-o", target, path).status, 7)
        with open(target, encoding="utf-8") as report:
            self.assertIn("Never released", report.read())
        clean = self.write(Script().basics().close(), "clean")
        self.assertEqual(run("leaks", "--error-exitcode", "42", clean).status, 0)


class Certainty(TestCase):
    def lossy(self):
        script = Script().basics()
        script.alloc(0x1000, 10, start="1:0", end="1:1")
        script.alloc(0x2000, 20, start="5:0", end="5:1")
        script.add("loss", reason=1, count=17, last_good="2:0", first_good="3:0")
        return script

    def test_lost_events(self):
        path = self.write(self.lossy().close())
        found = self.json_of("leaks", path)
        self.assertIs(found["certain"], False)
        self.assertEqual(found["reasons"],
                         ["17 events are missing after 2:0: the recorder's buffers were full"])
        self.assertIn("Uncertain: 17 events", self.run_ok("leaks", path).text)

    def test_losses_count_from_where_they_were(self):
        """The record of a loss comes later in the file than what it may have affected."""
        path = self.write(self.lossy().close())
        self.assertIs(self.json_of("leaks", path, "--at", "1:1")["certain"], True)
        self.assertIs(self.json_of("leaks", path, "--at", "2:0")["certain"], True)
        self.assertIs(self.json_of("leaks", path, "--at", "2:1")["certain"], False)

    def test_unknown_number(self):
        script = self.lossy()
        script.add("loss", reason=5, count="unknown", last_good="4:0", first_good="4:1")
        found = self.json_of("leaks", self.write(script.close()))
        self.assertEqual(len(found["reasons"]), 2)
        self.assertIn("an unknown number of events", found["reasons"][1])

    def test_no_loss(self):
        script = Script().basics()
        script.alloc(0x1000, 10, start="1:0", end="1:1")
        script.add("loss", reason=1, count=0, last_good="0:0", first_good="1:0")
        self.assertIs(self.json_of("leaks", self.write(script.close()))["certain"], True)

    def test_not_closed(self):
        script = Script().basics()
        script.alloc(0x1000, 10, start="1:0", end="1:1")
        script.alloc(0x2000, 10, start="2:0", end="2:1")
        path = self.write(script.abandon())
        found = self.json_of("leaks", path)
        self.assertEqual(found["reasons"],
                         ["the trace was not closed cleanly: nothing is known after 2:1"])
        # A loss at an earlier position could be told of later.
        for at in ("1:1", "2:0", "3:0"):
            found = self.json_of("leaks", path, "--at", at)
            self.assertIs(found["certain"], False)
            self.assertIn("not closed cleanly", found["reasons"][0])


if __name__ == "__main__":
    support.main()
