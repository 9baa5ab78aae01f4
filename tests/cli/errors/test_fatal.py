# SPDX-License-Identifier: MIT
"""ttdanalyze errors and info: the signal that the program died of"""

import unittest

from snapshot_support import HEAP, SnapshotScript
from support import TestCase, run

SIGNALED, INHERITS = 2, 2
SIGABRT, SIGSEGV = 6, 11
MAPERR, ACCERR, FROM_KERNEL, BY_RAISE = 1, 2, 128, -6
RAX, RDI = 0, 5
ALLOCATED, RELEASED, DIED = 2, 3, 2


class Fatal(TestCase):
    written = 0
    trace = None

    def script(self):
        """A live block of 24 bytes at 0x1000, a released one of 200,000 at 0x100000."""
        script = SnapshotScript().basics()
        script.alloc(0x1000, 24, stack=ALLOCATED)
        script.alloc(0x100000, 200000, stack=ALLOCATED)
        script.free(0x100000, stack=RELEASED)
        return script

    def die(self, script, number=SIGSEGV, code=MAPERR, registers=(), **fields):
        fields.setdefault("position", "9:0")
        script.add("fatal", signal=number, code=str(code), stack=DIED, registers=",".join(
            f"{number}:{value}" for number, value in registers), **fields)
        self.written += 1
        self.trace = self.write(script.close(reason=SIGNALED, code=number), f"{self.written}.ttd")
        return self.trace

    def fatal(self, *arguments, **fields):
        return self.json_of("errors", self.die(*arguments, **fields))["fatal_signal"]

    def test_told_by_the_end_alone(self):
        """A thread whose stack has overflown may have no stack left to tell of its signal."""
        path = self.write(self.script().close(reason=SIGNALED, code=SIGSEGV))
        fatal = self.json_of("errors", path)["fatal_signal"]
        self.assertEqual([fatal[name] for name in (
            "signal", "name", "code", "reason", "position", "wall_time_ns", "thread", "address",
            "stack", "snapshot", "fault", "registers")],
            [SIGSEGV, "SIGSEGV", *[None] * 6, [], None, None, []])
        text = self.run_ok("errors", path).text
        self.assertIn("fatal-signal: SIGSEGV, of which nothing more was recorded\n\n"
                      "No other errors in the calls of the heap; reads and writes are not "
                      "watched\n", text)
        row, = self.run_ok("errors", "--format", "csv", path).csv
        self.assertEqual((row["kind"], row["position"], row["signal"]), ("fatal-signal", "", "11"))
        self.assertEqual(run("errors", "--error-exitcode", "9", path).status, 9)
        for number in (2, 9, 15, 64):
            path = self.write(self.script().close(reason=SIGNALED, code=number), f"{number}.ttd")
            self.assertIsNone(self.json_of("errors", path)["fatal_signal"])

    def test_use_after_free(self):
        script = self.script()
        script.snapshot(position="9:0", reason=5)
        path = self.die(script, address=0x100010, snapshot=1, wall=1234)
        found = self.json_of("errors", path)
        fatal = found["fatal_signal"]
        self.assertEqual([fatal[name] for name in (
            "signal", "name", "code", "reason", "position", "wall_time_ns", "thread", "address",
            "stack_id", "snapshot_number")], [
                SIGSEGV, "SIGSEGV", MAPERR, "address not mapped", "9:0", 1234, 1, "0x100010", DIED,
                1])
        self.assertEqual(fatal["stack"][0]["function"], "g(int)")
        self.assertEqual((fatal["snapshot"]["number"], fatal["snapshot"]["complete"]), (1, True))
        fault = fatal["fault"]
        self.assertEqual((fault["where"], fault["certain"], fault["block"]),
                         ("released", True, {"address": "0x100000", "size": 200000, "offset": 16}))
        self.assertEqual((fault["allocated"]["stack_id"], fault["released"]["stack_id"]),
                         (ALLOCATED, RELEASED))
        self.assertEqual((found["certain"], found["findings"]), (True, []))
        text = self.run_ok("errors", path).text
        self.assertTrue(text.startswith(
            "fatal-signal: SIGSEGV (address not mapped) at 9:0 (+0.00000123s) in thread 1\n    #0  g(int)"), text)
        self.assertIn("  the fault address 0x100010 lies 16 bytes inside a released block: "
                      "0x100000, 200,000 bytes\n  allocated by malloc() at 0:4 in thread 1\n"
                      .replace("0:4", fault["allocated"]["position"]), text)
        self.assertIn("  released by free() at ", text)
        self.assertIn("\n  snapshot 1 at 9:0\n\nNo other errors in the calls", text)
        row, = self.run_ok("errors", "-f", "csv", path).csv
        self.assertEqual((row["kind"], row["certain"], row["address"], row["signal"],
                          row["position"], row["released_position"]),
                         ("fatal-signal", "true", "0x100010", "11", "9:0",
                          fault["released"]["position"]))

    def test_info(self):
        path = self.die(self.script(), address=0x100010, wall=2500000000)
        self.assertIn("Fatal signal    SIGSEGV (address not mapped) at 9:0 (+2.50s) in thread 1, "
                      "fault address 0x100010 ('ttdanalyze errors' tells more)\n",
                      self.run_ok("info", path).text)
        fatal = self.json_of("info", path)["fatal_signal"]
        self.assertEqual((fatal["name"], fatal["address"]), ("SIGSEGV", "0x100010"))
        rows = {row["name"]: row["value"] for row in self.run_ok("info", "-f", "csv", path).csv}
        self.assertEqual(rows["fatal_signal"], "11")

    def test_without_one(self):
        path = self.write(self.script().close())
        self.assertIsNone(self.json_of("errors", path)["fatal_signal"])
        self.assertIsNone(self.json_of("info", path)["fatal_signal"])
        self.assertTrue(self.run_ok("errors", path).text.startswith(
            "No errors in the calls of the heap; reads and writes are not watched\n"))
        self.assertNotIn("Fatal", self.run_ok("info", path).text)

    def test_that_asks_to_end(self):
        """It is no error that somebody ends a server."""
        for number in (1, 2, 13, 15, 40, 64):
            path = self.die(self.script(), number=number, code=0)
            found = self.json_of("errors", path)
            self.assertEqual((found["fatal_signal"], found["findings"]), (None, []))
            self.assertEqual(run("errors", "--error-exitcode", "9", path).status, 0)
            self.assertEqual(self.json_of("info", path)["fatal_signal"]["signal"], number)
        path = self.die(self.script(), number=15, code=0)
        self.assertIn("Fatal signal    SIGTERM (sent by kill) at 9:0 (+0s) in thread 1\n",
                      self.run_ok("info", path).text)

    def test_error_status(self):
        path = self.die(self.script())
        self.assertEqual(run("errors", "--error-exitcode", "9", path).status, 9)
        hidden = ("--exclude", "g(int)", path)
        self.assertEqual(run("errors", "--error-exitcode", "9", *hidden).status, 0)
        self.assertIsNone(self.json_of("errors", path, *hidden[:2])["fatal_signal"])

    def test_registers(self):
        fatal = self.fatal(self.script(), code=FROM_KERNEL, registers=(
            (RAX, 0x1008), (RDI, 0x100000), (3, 7), (16, 0x400200), (99, 0x1020)))
        self.assertEqual((fatal["reason"], fatal["address"], fatal["fault"]),
                         ("sent by the kernel", None, None))
        self.assertEqual([(r["number"], r["name"], r["address"], r["where"])
                          for r in fatal["registers"]],
                         [(RAX, "rax", "0x1008", "live"), (RDI, "rdi", "0x100000", "released"),
                          (3, "rbx", "0x7", "near"), (16, "rip", "0x400200", "elsewhere"),
                          (99, None, "0x1020", "near")])
        self.assertEqual(fatal["registers"][0]["block"],
                         {"address": "0x1000", "size": 24, "offset": 8})
        self.assertIsNone(fatal["registers"][0]["released"])
        self.assertEqual(fatal["registers"][4]["before"]["address"], "0x1000")
        text = self.run_ok("errors", self.trace).text
        self.assertLess(text.index("No other errors"), text.index("\nRegisters that pointed"))
        self.assertLess(text.index("\nRegisters that pointed"), text.index("  rax = "))
        self.assertIn("  rax = 0x1008 lies 8 bytes inside a live block: 0x1000, 24 bytes\n", text)
        self.assertIn("  register 99 = 0x1020 lies in no block\n  the block before it, at 0x1000",
                      text)
        self.assertNotIn("0x400200", text)

    def test_how_near(self):
        """A block ends 1 MiB before the fault address, or a byte more."""
        for address, where in ((0x200018, "near"), (0x200019, "elsewhere")):
            script = SnapshotScript().basics()
            script.alloc(0x100000, 24)
            fault = self.fatal(script, address=address)["fault"]
            self.assertEqual((fault["where"], fault["after"]), (where, None))
        self.assertIn(f"  the fault address {address:#x} lies in no block, and near none\n",
                      self.run_ok("errors", self.trace).text)

    def test_the_block_that_was_there_last(self):
        script = SnapshotScript().basics()
        for size, stack in ((64, 1), (128, 2), (32, 3)):
            script.alloc(0x1000, size)
            script.free(0x1000, stack=stack)
        script.alloc(0x1000, 16)
        fault = self.fatal(script, address=0x1030)["fault"]
        self.assertEqual((fault["where"], fault["block"]["size"], fault["released"]["stack_id"]),
                         ("released", 128, 2))

    def test_the_block_went_with_its_heap(self):
        script = self.script()
        script.alloc(0x5000, 64, heap=2)
        script.event("Destroy", heap=2)
        fault = self.fatal(script, address=0x5010)["fault"]
        self.assertEqual((fault["where"], fault["certain"], (fault["block"] or {}).get("offset")),
                         ("released", True, 16))

    def test_the_state_is_that_at_the_signal(self):
        """Another thread goes on meanwhile."""
        script = self.script()
        script.free(0x1000, start="9:1", end="9:2", thread=2)
        fault = self.fatal(script, address=0x1001)["fault"]
        self.assertEqual(fault["where"], "live")

    def test_null_pointer_and_no_address(self):
        self.assertEqual(self.fatal(self.script(), code=ACCERR)["address"], "0x0")
        fatal = self.fatal(self.script(), number=SIGABRT, code=BY_RAISE)
        self.assertEqual((fatal["name"], fatal["code"], fatal["reason"], fatal["address"]),
                         ("SIGABRT", BY_RAISE, "sent by raise or tgkill", None))
        fatal = self.fatal(self.script(), number=77, code=-1000)
        self.assertEqual((fatal["name"], fatal["reason"]), (None, None))
        self.assertIn("fatal-signal: signal 77 (code -1000) at 9:0",
                      self.run_ok("errors", self.trace).text)

    def test_snapshot_that_is_missing(self):
        script = self.script()
        script.add("regions", snapshot=3, regions=f"{HEAP}:0x1000:0x1000")
        fatal = self.fatal(script, snapshot=3)
        self.assertEqual((fatal["snapshot_number"], fatal["snapshot"]), (3, None))
        self.assertIn("  snapshot 3 was cut short, and is not used\n",
                      self.run_ok("errors", self.trace).text)
        self.die(self.script())
        self.assertIn("  no snapshot was taken then\n",
                      self.run_ok("errors", self.trace).text)

    def test_losses(self):
        """A release says more than a loss before it; that there is no block does not."""
        for address, begin, certain in ((0x100010, "0:1", True), (0x100010, "5:0", False),
                                        (0x9000000, "0:1", False)):
            script = self.script()
            script.add("loss", reason=1, count=3, last_good=begin,
                       first_good=begin[:-1] + str(int(begin[-1]) + 1))
            fault = self.fatal(script, address=address)["fault"]
            self.assertEqual(fault["certain"], certain, (address, begin))
        text = self.run_ok("errors", self.trace).text
        self.assertIn("  uncertain: not everything before it is known\n", text)

    def test_blocks_that_are_not_told_of(self):
        """Blocks from before the recording, or one that another thread is moving."""
        for flags, moves, address, certain in (
                (0, False, 0x9000000, True), (INHERITS, False, 0x9000000, False),
                (INHERITS, False, 0x100010, True), (0, True, 0x9000000, False)):
            script = SnapshotScript(flags=flags).basics()
            script.alloc(0x100000, 200000)
            script.alloc(0x3000000, 24)
            script.free(0x100000)
            if moves:
                script.realloc(0x3000000, 0x3000000, 48, start="8:0", end="9:1", thread=2)
            fault = self.fatal(script, address=address)["fault"]
            self.assertEqual(fault["certain"], certain, (flags, moves, address))

    def test_codes_of_any_size(self):
        for code in (-(1 << 63), (1 << 63) - 1):
            self.assertEqual(int(self.fatal(self.script(), code=code)["code"]), code)

    def test_damage(self):
        path = self.die(self.script(), address=0x100010)
        with open(path, "rb") as file:
            data = file.read()
        with open(path, "wb") as file:
            file.write(data[:-20])
        found = run("errors", "--format", "json", path).json
        fault = found["fatal_signal"]["fault"]
        self.assertEqual((found["certain"], fault["where"], fault["certain"]),
                         (False, "released", False))

    def test_several(self):
        """The last one is told in whole, then those before it."""
        script = self.script()
        script.add("fatal", signal=SIGABRT, code=str(BY_RAISE), position="8:0", stack=ALLOCATED,
                   registers="0:16")
        path = self.die(script)
        fatal = self.json_of("errors", path)["fatal_signal"]
        earlier, = fatal["earlier"]
        self.assertEqual((fatal["name"], earlier["name"], earlier["position"], earlier["stack_id"]),
                         ("SIGSEGV", "SIGABRT", "8:0", ALLOCATED))
        self.assertEqual(list(earlier), list(fatal)[:11])
        text = self.run_ok("errors", path).text
        self.assertLess(text.index("fatal-signal: SIGSEGV"), text.index("  before that: SIGABRT (sent "
                        "by raise or tgkill) at 8:0 (+0s) in thread 1\n    #0  "))
        rows = self.run_ok("errors", "-f", "csv", path).csv
        self.assertEqual([(row["kind"], row["position"]) for row in rows],
                         [("fatal-signal", "8:0"), ("fatal-signal", "9:0")])

    def test_many(self):
        script = self.script()
        for number in range(20):
            script.add("fatal", signal=SIGABRT, code=str(BY_RAISE), position=f"8:{number:x}")
        path = self.die(script)
        self.assertEqual([signal["position"] for signal in
                          self.json_of("errors", path)["fatal_signal"]["earlier"]],
                         [f"8:{number:X}" for number in range(5, 20)])
        self.assertIn("  before that: 5 more signals\n", self.run_ok("errors", path).text)


if __name__ == "__main__":
    unittest.main()
