# SPDX-License-Identifier: MIT
"""ttdanalyze errors: the call in which the process died, and blocks that an address lay inside"""

import unittest

from snapshot_support import SnapshotScript
from support import Script, TestCase, run

SIGKILL, SIGABRT, SIGSEGV = 9, 6, 11
SIGNALED = 2
FREE_STACK = 3
BY_TGKILL = -6


class LastCalls(TestCase):
    def findings(self, script, reason=SIGNALED, code=SIGABRT, name="trace.ttd"):
        script.close(reason=reason, code=code)
        return self.json_of("errors", self.write(script, name))["findings"]

    def overrun(self):
        """The block at 0x1020 is released, and the call never returns."""
        script = Script().basics()
        for address in (0x1040, 0x1000, 0x1020, 0x9000):
            script.alloc(address, 24)
        script.free(0x1020, stack=FREE_STACK, end="never")
        return script

    def test_abort_inside_free(self):
        finding, = self.findings(self.overrun())
        self.assertEqual((finding["kind"], finding["address"], finding["signal"],
                          finding["stack_id"], finding["certain"]),
                         ("died-in-call", "0x1020", SIGABRT, FREE_STACK, True))
        self.assertEqual((finding["block"]["address"], finding["block"]["size"]), ("0x1020", 24))
        self.assertEqual((finding["before"]["address"], finding["after"]["address"]),
                         ("0x1000", "0x1040"))
        self.assertEqual(finding["before"]["allocated"]["stack_id"], 2)
        text = self.run_ok("errors", self.path("trace.ttd")).text
        self.assertIn("died-in-call: free(0x1020) at 2:1 in thread 1\n", text)
        self.assertIn("  the process died of SIGABRT before the call returned\n", text)
        self.assertIn("  the block before it, at 0x1000, begins 32 bytes before it and has 24 bytes",
                      text)
        self.assertIn("  the block behind it, at 0x1040, 32 bytes behind it, has 24 bytes", text)
        self.assertIn("\n1 finding in 1 call, beside the signal\n", text)
        rows = self.run_ok("errors", "-f", "csv", self.path("trace.ttd")).csv
        self.assertEqual([(row["kind"], row["signal"]) for row in rows],
                         [("fatal-signal", "6"), ("died-in-call", "6")])
        self.assertEqual(run("errors", "--error-exitcode", "9", self.path("trace.ttd")).status, 9)

    def test_a_double_free_that_the_allocator_notices(self):
        """Its neighbours have nothing to do with it."""
        script = Script().basics()
        for address in 0x1000, 0x1020, 0x1040:
            script.alloc(address, 24)
        script.free(0x1020)
        script.free(0x1020, stack=FREE_STACK, end="never")
        finding, = self.findings(script)
        self.assertEqual((finding["kind"], finding["signal"]), ("double-free", SIGABRT))
        text = self.run_ok("errors", self.path("trace.ttd")).text
        self.assertIn("released again by free() at", text)
        self.assertNotIn("the block before it", text)

    def test_history_says_that_the_release_never_returned(self):
        path = self.write(self.overrun().close(reason=SIGNALED, code=SIGABRT))
        text = self.run_ok("history", "--address", "0x1020", path).text
        self.assertIn("released by free() at 2:1 in thread 1, which never returned\n", text)
        block, = self.json_of("history", path, "--address", "0x1020")["blocks"]
        self.assertEqual((block["released_by"]["returned"], block["allocated_by"]["returned"]),
                         (False, True))

    def test_a_signal_from_outside_is_no_fault(self):
        self.assertEqual(self.findings(self.overrun(), code=SIGKILL), [])

    def test_an_exit_is_no_fault(self):
        self.assertEqual(self.findings(self.overrun(), reason=1, code=SIGABRT), [])

    def test_a_thread_that_went_on_did_not_die_there(self):
        script = self.overrun()
        script.alloc(0x5000, 8)
        self.assertEqual(self.findings(script), [])

    def test_other_threads_do_not_matter(self):
        script = self.overrun()
        script.alloc(0x5000, 8, thread=2)
        finding, = self.findings(script)
        self.assertEqual((finding["kind"], finding["thread"]), ("died-in-call", 1))

    def two_threads(self):
        """Two threads release a block, and neither call returns."""
        script = SnapshotScript().basics()
        for address in (0x1000, 0x2000):
            script.alloc(address, 24)
        script.free(0x1000, stack=FREE_STACK, end="never")
        script.free(0x2000, stack=2, end="never", thread=2)
        return script

    def test_a_thread_that_merely_ran(self):
        """Only the thread that died did so in its call."""
        for thread in (1, 2):
            script = self.two_threads()
            script.add("fatal", signal=SIGABRT, code=str(BY_TGKILL), thread=thread,
                       position="9:0")
            finding, = self.findings(script, name=f"{thread}.ttd")
            self.assertEqual((finding["thread"], finding["certain"]), (thread, True))

    def test_a_call_that_was_interrupted(self):
        """The signal was sent from outside."""
        script = self.two_threads()
        script.add("fatal", signal=SIGABRT, code="0", thread=1, position="9:0")
        self.assertEqual(self.findings(script), [])

    def test_which_thread_died_is_not_known(self):
        findings = self.findings(self.two_threads())
        self.assertEqual([(finding["kind"], finding["thread"], finding["certain"])
                          for finding in findings],
                         [("died-in-call", 1, False), ("died-in-call", 2, False)])
        self.assertIn("  uncertain: another thread may have died, or a return may be missing\n",
                      self.run_ok("errors", self.path("trace.ttd")).text)

    def test_a_call_without_a_block(self):
        script = Script().basics()
        script.alloc(0, 64, end="never", result=0)
        finding, = self.findings(script, code=SIGSEGV)
        self.assertEqual((finding["kind"], finding["api"], finding["size"], finding["before"],
                          finding["after"]), ("died-in-call", "malloc", 64, None, None))

    def test_one_finding_for_a_double_free_that_aborts(self):
        script = Script().basics()
        script.free(0x7000)
        script.alloc(0x1000, 24)
        script.free(0x1000)
        script.free(0x1000, stack=FREE_STACK)
        script.free(0x1000, stack=FREE_STACK, end="never")
        last, *others = self.findings(script)
        self.assertEqual((last["kind"], last["signal"], last["count"]), ("double-free", SIGABRT, 1))
        self.assertEqual([(f["kind"], f["signal"]) for f in others],
                         [("invalid-free", None), ("double-free", None)])

    def test_calls_that_were_not_the_last_are_as_others(self):
        script = Script().basics()
        script.alloc(0x1000, 24)
        script.free(0x1000)
        script.free(0x1000, end="never")
        script.alloc(0x5000, 8)
        finding, = self.findings(script)
        self.assertEqual((finding["kind"], finding["signal"]), ("double-free", None))

    def test_a_lost_return_makes_it_uncertain(self):
        script = self.overrun()
        script.add("loss", reason=1, thread=1, count=1, last_good="2:1", first_good="3:0")
        finding, = self.findings(script)
        self.assertFalse(finding["certain"])


class Enclosing(TestCase):
    def finding(self, script):
        finding, = self.json_of("errors", self.write(script.close()))["findings"]
        return finding

    def test_inside_a_released_block(self):
        script = Script().basics()
        script.alloc(0x1000, 64)
        script.free(0x1000, stack=FREE_STACK)
        script.free(0x1010)
        finding = self.finding(script)
        self.assertEqual((finding["kind"], finding["block"]["address"], finding["block"]["offset"],
                          finding["released"]["stack_id"]),
                         ("invalid-free", "0x1000", 16, FREE_STACK))
        text = self.run_ok("errors", self.path("trace.ttd")).text
        self.assertIn("  the block at 0x1000 has 64 bytes; the address lies 16 bytes inside it\n",
                      text)
        self.assertIn("  released before by free()", text)

    def test_the_last_one_that_was_there(self):
        script = Script().basics()
        for size in (64, 128, 32):
            script.alloc(0x1000, size)
            script.free(0x1000)
        script.alloc(0x1008, 100)
        script.free(0x1008)
        script.free(0x1010)
        self.assertEqual(self.finding(script)["block"]["address"], "0x1008")

    def test_behind_a_released_block(self):
        script = Script().basics()
        script.alloc(0x1000, 16)
        script.free(0x1000)
        script.free(0x1010)
        self.assertIsNone(self.finding(script)["block"])


if __name__ == "__main__":
    unittest.main()
