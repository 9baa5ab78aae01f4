# SPDX-License-Identifier: MIT
"""Which blocks ttdanalyze leaks counts: the rules of releases, and blocks of the runtimes"""

import support
from support import Script, TestCase


class Rules(TestCase):
    """The effect of each rule."""

    def live(self, script, *arguments):
        path = self.write(script.close(), f"trace{script.clock}-{len(arguments)}")
        found = self.json_of("leaks", path, *arguments)
        return found["total_blocks"], found["total_bytes"], found

    def test_failures_have_no_effect(self):
        script = Script().basics()
        script.alloc(0, 100, result=0)
        script.alloc(0x1000, 10)
        script.realloc(0x1000, 0, 1000, result=0)
        script.free(0x1000, result=0)
        self.assertEqual(self.live(script)[:2], (1, 10))

    def test_realloc(self):
        script = Script().basics()
        script.realloc(0, 0x1000, 10)             # acquires
        script.realloc(0x1000, 0x2000, 20)        # moves
        script.realloc(0x2000, 0x2000, 30)        # in place
        script.alloc(0x3000, 5)
        script.realloc(0x3000, 0, 0)              # releases
        blocks, size, found = self.live(script)
        self.assertEqual((blocks, size), (1, 30))
        self.assertEqual(found["unknown_releases"], 0)

    def test_never_returned(self):
        script = Script().basics()
        script.alloc(0x1000, 10)
        script.alloc(0x2000, 20)
        start = script.tick()
        script.event("Free", base=0x1000, start=start, end="never")
        script.event("ReAlloc", base=0x2000, size=200, start=start, end="never", thread=2)
        self.assertEqual(self.live(script)[:2], (1, 20))

    def test_destroy(self):
        script = Script().basics()
        script.alloc(0x1000, 10)
        script.alloc(0x2000, 20, heap=2)
        script.alloc(0x3000, 40, heap=2)
        script.event("Destroy", heap=2)
        script.alloc(0x3000, 80, heap=2)
        blocks, size, found = self.live(script)
        self.assertEqual((blocks, size), (2, 90))
        self.assertEqual(found["overlaps"], 0)

    def test_unknown_and_overlapping(self):
        script = Script().basics()
        script.free(0x9000)
        script.alloc(0x1000, 10)
        script.alloc(0x1000, 20)
        blocks, size, found = self.live(script)
        self.assertEqual((blocks, size), (1, 20))
        self.assertEqual((found["unknown_releases"], found["overlaps"]), (1, 1))
        self.assertIs(found["certain"], False)
        self.assertEqual(found["reasons"], ["1 block was allocated where another was still live"])

    def test_releases_of_early_blocks(self):
        """A child releases blocks of its parent: what 'errors' finds right is no alarm here."""
        said = {0: "1 release of an address without a live block: 'ttdanalyze errors' says more\n",
                2: "1 release of an address without a live block, as blocks from before the recording: "
                   "'ttdanalyze errors' tells them apart\n"}
        for flags, line in said.items():
            script = Script(flags=flags).basics()
            script.free(0x9000)
            path = self.write(script.close(), f"flags{flags}")
            self.assertIn(line, self.run_ok("leaks", path).text)

    def test_realloc_in_flight(self):
        """Another thread's calls come between the release and the acquisition."""
        script = Script().basics()
        script.alloc(0x1000, 10, start="1:0", end="1:1")
        script.realloc(0x1000, 0x2000, 20, start="2:0", end="8:0")
        script.alloc(0x1000, 5, start="3:0", end="3:1", thread=2)
        script.free(0x1000, start="4:0", end="4:1", thread=2)
        path = self.write(script.close())
        expected = {"1:0": 0, "1:1": 10, "1:FF": 10, "2:0": 0, "3:1": 5, "4:0": 0, "7:FFFF": 0,
                    "8:0": 20, "end": 20}
        for position, size in expected.items():
            found = self.json_of("leaks", path, "--at", position)
            self.assertEqual(found["total_bytes"], size, position)
            self.assertEqual(found["unknown_releases"], 0)
        self.assertEqual(self.json_of("leaks", path, "--at", "3:1")["reallocs_in_flight"], 1)
        self.assertEqual(self.json_of("leaks", path, "--at", "8:0")["reallocs_in_flight"], 0)

    def test_huge_sizes(self):
        script = Script().basics()
        script.alloc(0x1000, 2 ** 64 - 1)
        script.alloc(0x2000, 2 ** 63)
        script.alloc(0x3000, 2 ** 53, stack=3)
        _, size, found = self.live(script)
        self.assertEqual(size, str(2 ** 64 - 1))
        self.assertEqual(found["groups"][1]["bytes"], str(2 ** 53))


class Runtime(TestCase):
    def script(self):
        script = Script().basics()
        script.alloc(0x1000, 72704, stack=3)      # 0:1 to 0:2: the runtime's
        script.alloc(0x2000, 10)                  # to 1:0: a leak
        script.alloc(0x3000, 20)                  # to 1:2: released, then the address is reused
        script.free(0x3000)
        script.alloc(0x3000, 30, stack=4)         # to 2:2: the runtime's
        script.add("blocks", position="9:0", blocks="0x1000:72704,0x3000:30,0x5000:1")
        return script.close()

    def test_not_counted(self):
        path = self.write(self.script())
        found = self.json_of("leaks", path)
        self.assertEqual((found["total_blocks"], found["total_bytes"]), (1, 10))
        self.assertEqual((found["runtime_blocks"], found["runtime_bytes"]), (2, 72734))
        self.assertNotIn("runtime_groups", found)
        self.assertIn("2 blocks, 72,734 bytes kept by the C/C++ runtime, not counted "
                      "(--show-runtime to list)\n", self.run_ok("leaks", path).text)

    def test_shown(self):
        path = self.write(self.script())
        found = self.json_of("leaks", path, "--show-runtime")
        self.assertEqual([(g["bytes"], g["stack_id"]) for g in found["runtime_groups"]],
                         [(72704, 3), (30, 4)])
        self.assertIn("libwork.so+0x300", self.run_ok("leaks", "--show-runtime", path).text)
        rows = self.run_ok("leaks", "--show-runtime", "-f", "csv", path).csv
        self.assertEqual([r["kind"] for r in rows], ["leak", "runtime", "runtime"])

    def test_earlier(self):
        """At an earlier moment a block is the runtime's if it is the one that is kept."""
        path = self.write(self.script())
        found = self.json_of("leaks", path, "--at", "1:2")
        self.assertEqual((found["total_blocks"], found["total_bytes"]), (2, 30))
        self.assertEqual((found["runtime_blocks"], found["runtime_bytes"]), (1, 72704))
        self.assertEqual(found["position"], "1:2")
        found = self.json_of("leaks", path, "--at", "2:3")
        self.assertEqual((found["total_bytes"], found["runtime_bytes"]), (10, 72734))

    def test_other_lists_do_not_count(self):
        script = Script().basics()
        script.alloc(0x1000, 10)
        script.add("blocks", list=2, position="9:0", blocks="0x1000:10")
        self.assertEqual(self.json_of("leaks", self.write(script.close()))["total_blocks"], 1)


if __name__ == "__main__":
    support.main()
