# SPDX-License-Identifier: MIT
"""Traces that cannot answer whether the program leaks: recordings that ended before it, programs that
were killed, and calls that were not recorded. Live blocks are no findings then, and no success either."""

import os

import page_support
import support
from support import Script, TestCase, run
from snapshot_support import SnapshotCase, SnapshotScript

UNJUDGED = 6
CUT = "the recording ended before the program"
UNSEEN = "calls up to the end of the program were not recorded"
NO_CALLS = "no allocation was recorded, and not all calls were"
END = "FFFFFFFFFFFFFFFE:FFFFFFFFFFFFFFFF"
UNTOLD, EXITED, KILLED, DETACHED = range(4)
SIGKILL, SIGSEGV = 9, 11
WAS_KILLED = "the program was killed before it could release its blocks"
MAYBE_KILLED = "how the program ended is not known: it may have been killed"


def live():
    """Two live blocks, from two stacks."""
    script = Script().basics()
    script.alloc(0x1000, 100)
    script.alloc(0x2000, 50, stack=3)
    script.free(0x2000)
    script.alloc(0x3000, 10, stack=4)
    return script


def cut(script):
    script.add("loss", reason=6, count=7, last_good="3:0", first_good="never")
    return script


class AnswerCase(TestCase):
    def assert_unjudged(self, path, reason, command="leaks"):
        result = run(command, "--error-exitcode", "9", path)
        self.assertEqual(result.status, UNJUDGED, result.text)
        self.assertEqual(result.errors.splitlines()[-1],
                         f"ttdanalyze: {path}: no answer to '{command}': {reason}")
        # Without that option it is an answer like others.
        self.assertEqual(run(command, path).status, 0)


class Unjudged(AnswerCase):
    def endings(self):
        yield self.write(cut(live()).close(), "full")
        yield self.write(live().close(reason=DETACHED), "detached")
        yield self.write(live().abandon(), "unclosed")
        script = live()
        script.free(0x1000, start="5:0", end="5:1")
        script.free(0x3000, start="6:0", end="6:1")
        path = self.path("slice")
        self.run_ok("slice", "--to", "4:0", "-o", path, self.write(script.close(), "whole"))
        yield path
        path = self.path("recovered")
        run("recover", "-o", path, self.path("unclosed"))
        yield path

    def test_a_recording_that_ended_before_the_program(self):
        """A block that was live then is not called never released, and no finding."""
        for path in self.endings():
            with self.subTest(os.path.basename(path)):
                self.assert_unjudged(path, CUT)
                text = run("leaks", path).text
                self.assertTrue(text.startswith(
                    "Live when the recording ended: 2 blocks, 110 bytes, from 2 stacks\n"
                    "No finding: the program may have released them.\n"), text)
                self.assertIn("Uncertain: ", text)
                found = run("leaks", "-f", "json", path).json
                self.assertEqual((found["judged"], found["certain"], found["total_blocks"]),
                                 (False, False, 2))
                self.assertEqual({g["class"] for g in found["groups"]}, {"live_at_end"})
                rows = run("leaks", "-f", "csv", path).csv
                self.assertEqual([(r["kind"], r["class"]) for r in rows],
                                 [("live", "live_at_end")] * 2)

    def test_siblings(self):
        for path in self.endings():
            with self.subTest(os.path.basename(path)):
                for command in (("summary",), ("summary", "--brief"), ("history", "--address",
                                "0x1000"), ("lifetimes",), ("hot",), ("leaks", "--group")):
                    text = run(*command, path).text
                    self.assertNotIn("never released", text.lower(), command)
                self.assertRegex(run("summary", path).text,
                                 r"(?m)^leaks      110 bytes in 2 blocks live when the recording "
                                 r"ended$[^$]*^           no finding: the program may have ")
                leaks = run("summary", "-f", "json", path).json["leaks"]
                self.assertEqual((leaks["kind"], leaks["judged"], leaks["blocks"]),
                                 ("live_at_end", False, 2))
                self.assertIn(("live_at_end", "2"), [(r["finding"], r["blocks"]) for r in
                                                     run("summary", "-f", "csv", path).csv])
                self.assertIs(run("digest", path).json["certain"], False)
                page = self.path("page.html")
                self.run_ok("report", "-o", page, path)
                parts = page_support.parts_of(page)
                self.assertEqual((parts["leaks"]["judged"], parts["summary"]["leaks"]["kind"]),
                                 (False, "live_at_end"))
                run_results = run("leaks", "-f", "sarif", path).json["runs"][0]["results"]
                self.assertEqual({(r["ruleId"], r["level"]) for r in run_results},
                                 {("live-at-end", "note")})
                self.assertIn("live when the recording ended", run_results[0]["message"]["text"])
                self.assertIn('failures="0"', run("leaks", "-f", "junit", path).text)

    def test_errors(self):
        """Calls behind the end of the recording may be errors; there may be no call in it at all. A
        recorder that let the process go has an answer about the time until then."""
        for path in *self.endings(), self.write(Script().basics().abandon(), "empty"):
            with self.subTest(os.path.basename(path)):
                if os.path.basename(path) == "detached":
                    self.assertIs(self.json_of("errors", path)["judged"], True)
                    self.assertEqual(run("errors", "--error-exitcode", "9", path).status, 0)
                    continue
                self.assert_unjudged(path, CUT, "errors")
                self.assertIs(run("errors", "-f", "json", path).json["judged"], False)
                self.assertTrue(run("errors", path).text.startswith("No errors are known "))
                self.assertIn(f"\nerrors     none are known: {CUT}\n", run("summary", path).text)
        script = live()
        script.free(0x1000)
        script.free(0x1000)
        path = self.write(cut(script).close(), "found")
        self.assertEqual(run("errors", "--error-exitcode", "9", path).status, 9)
        self.assertIs(self.json_of("errors", path)["judged"], True)

    def test_all_released_before_the_end_of_the_recording(self):
        script = live()
        script.free(0x1000)
        script.free(0x3000)
        path = self.write(cut(script).close())
        self.assert_unjudged(path, CUT)
        self.assertTrue(run("leaks", path).text.startswith("No leaks are known\n"))
        self.assertIn("\nleaks      nothing is known to be lost\n", run("summary", path).text)

    def test_a_loss_that_ends_is_no_end(self):
        """Calls that were dropped at the beginning, or lost on the way: live blocks are findings."""
        for reason, last, first in (6, "0:0", "1:0"), (1, "1:0", "2:0"), (1, "3:0", "never"):
            script = live()
            script.add("loss", reason=reason, count=7, last_good=last, first_good=first)
            path = self.write(script.close(), f"loss{reason}{first}")
            self.assertEqual(run("leaks", "--error-exitcode", "9", path).status, 9)
            self.assertIn("Never released: ", run("leaks", path).text)

    def test_calls_up_to_the_end_are_not_recorded(self):
        script = live()
        script.add("loss", reason=3, count="unknown", last_good="1:0", first_good=END)
        path = self.write(script.close())
        self.assert_unjudged(path, UNSEEN)
        self.assert_unjudged(path, UNSEEN, "errors")
        self.assertIn(f"\nerrors     none are known: {UNSEEN}\n", run("summary", path).text)
        self.assertIn("\nleaks      nothing is known to be lost\n", run("summary", path).text)
        # One that ends before leaves blocks behind it judged.
        script = live()
        script.add("loss", reason=3, count="unknown", last_good="1:0", first_good="1:1")
        path = self.write(script.close(), "gap")
        self.assertEqual(run("leaks", "--error-exitcode", "9", path).status, 9)

    def unseen(self, first_good, name, **facts):
        script = Script().basics()
        script.add("loss", reason=3, count="unknown", last_good="0:0", first_good=first_good)
        for key, value in facts.items():
            script.add("metadata", key=key, value=value.replace(" ", "%20"))
        return self.write(script.close(), name + first_good[0])

    def test_an_allocator_whose_calls_are_not_recorded(self):
        for first_good in END, "never":
            path = self.unseen(first_good, "own")
            for command in "leaks", "errors":
                self.assert_unjudged(path, NO_CALLS, command)
            self.assertTrue(run("leaks", path).text.startswith("No leaks are known\n"))
            self.assertTrue(run("errors", path).text.startswith("No errors are known "))
            self.assertFalse(self.json_of("errors", path)["judged"])
            text = run("summary", path).text
            self.assertIn("\nleaks      nothing is known to be lost\n", text)
            self.assertIn("\nerrors     none are known: no allocation was recorded\n", text)
        # Not if the recorder has chosen blocks, of which there were none.
        path = self.unseen("never", "chosen", chosen="blocks of at least 1000 bytes")
        self.assertEqual(run("leaks", "--error-exitcode", "9", path).status, 0)

    def test_which_calls_are_not_recorded(self):
        """The metadata say it: the last one that is no number of something else."""
        calls = "calls of malloc, free or operator new that the program defines itself"
        why = f"{NO_CALLS} (missing: {calls})"
        for unrecorded, said in (calls, why), ("3 child processes of the recording", NO_CALLS), (
                "x" * 128, NO_CALLS), ("x%1B[31m", NO_CALLS):
            for first_good in END, "never":
                path = self.unseen(first_good, "why", unrecorded=unrecorded)
                for command in "leaks", "errors":
                    self.assert_unjudged(path, said, command)
                    self.assertIn(f": {said}\n", run(command, "--group", path).text)
                    self.assertEqual(run(command, "--group", "--error-exitcode", "9",
                                         path).errors.splitlines()[-1],
                                     f"ttdanalyze: {path}: no answer to '{command}': {said}")
                os.remove(path)

    def test_calls_of_the_program_before(self):
        """The last program has such an allocator; the one before executed it."""
        for calls, status in (0, UNJUDGED), (1, 0):
            script = live()
            script.event("Destroy", heap=1, thread=0, result=1)
            script.add("loss", reason=3, count="unknown", last_good="9:0", first_good="never")
            for _ in range(calls):
                script.alloc(0x5000, 10)
                script.free(0x5000)
            path = self.write(script.close(), f"exec{calls}")
            self.assertEqual(run("leaks", "--error-exitcode", "9", path).status, status)
            self.assertNotIn("all released", run("summary", path).text)

    def test_known_answers(self):
        """Programs that never allocate, and those that execute others, are judged."""
        self.assertEqual(run("leaks", "--error-exitcode", "9",
                             self.write(Script().basics().close(), "none")).status, 0)
        script = live()
        script.event("Destroy", heap=1, thread=0, result=1)
        result = run("leaks", "--error-exitcode", "9", self.write(script.close(), "exec"))
        self.assertEqual(result.status, 0, result.errors)
        self.assertIn("110 bytes in 2 blocks left by programs before, at exec: not searched\n",
                      result.text)


class Killed(AnswerCase):
    def endings(self):
        """Traces, with what is said of them: the reason, the words for the blocks, and why they are
        no findings."""
        for reason, code in (KILLED, SIGKILL), (KILLED, SIGSEGV), (UNTOLD, 0):
            yield (self.write(live().close(reason=reason, code=code), f"{reason}-{code}"),
                   *((WAS_KILLED, "live when the program was killed", "it had no chance to release "
                      "them") if reason == KILLED else
                     (MAYBE_KILLED, "live when the program ended", "it may have been killed before it "
                      "could release them")))

    def test_a_program_that_was_killed(self):
        """Its blocks may have been reachable: they are no findings."""
        for path, reason, words, why in self.endings():
            with self.subTest(os.path.basename(path)):
                self.assert_unjudged(path, reason)
                text = run("leaks", path).text
                self.assertTrue(text.startswith(
                    f"L{words[1:]}: 2 blocks, 110 bytes, from 2 stacks\nNo finding: {why}.\n"
                    "The trace has no snapshot of references"), text)
                self.assertIn(f"Uncertain: {reason}\n", text)
                found = run("leaks", "-f", "json", path).json
                self.assertEqual((found["judged"], found["certain"], found["total_blocks"]),
                                 (False, False, 2))
                self.assertEqual({g["class"] for g in found["groups"]}, {"live_at_end"})
                self.assertEqual({(r["kind"], r["class"]) for r in
                                  run("leaks", "-f", "csv", path).csv}, {("live", "live_at_end")})
                # Of the blocks it is a fact.
                self.assertIn("  never released\n", run("history", "--address", "0x1000", path).text)

    def test_siblings(self):
        for path, reason, words, why in self.endings():
            with self.subTest(os.path.basename(path)):
                self.assertIn(f"\nleaks      110 bytes in 2 blocks {words}\n",
                              run("summary", path).text)
                self.assertIn(f"\n           no finding: {why}\n", run("summary", path).text)
                self.assertIn(f"leaks      110 bytes {words}, 91 % by ",
                              run("summary", "--brief", path).text)
                leaks = run("summary", "-f", "json", path).json["leaks"]
                self.assertEqual((leaks["kind"], leaks["judged"], leaks["blocks"]),
                                 ("live_at_end", False, 2))
                self.assertIs(run("digest", path).json["certain"], False)
                page = self.path("page.html")
                self.run_ok("report", "-o", page, path)
                parts = page_support.parts_of(page)
                self.assertEqual((parts["leaks"]["judged"], parts["summary"]["leaks"]["kind"]),
                                 (False, "live_at_end"))
                results = run("leaks", "-f", "sarif", path).json["runs"][0]["results"]
                self.assertEqual({(r["ruleId"], r["level"]) for r in results},
                                 {("live-at-end", "note")})
                self.assertIn(words, results[0]["message"]["text"])
                self.assertIn('failures="0"', run("leaks", "-f", "junit", path).text)
                group = run("leaks", "--group", path).text
                self.assertIn(f": {reason}\n", group)
                self.assertNotIn("never released", group)
                self.assertIs(self.json_of("errors", path)["judged"], True)

    def test_all_released_before_the_end(self):
        """Nothing is left that could be lost."""
        for reason in UNTOLD, KILLED:
            script = live()
            script.free(0x1000)
            script.free(0x3000)
            path = self.write(script.close(reason=reason, code=SIGKILL), f"{reason}")
            self.assertEqual(run("leaks", "--error-exitcode", "9", path).status, 0)
            self.assertEqual(run("leaks", path).text.splitlines()[0], "No leaks")

    def test_an_earlier_position(self):
        path, *_ = next(self.endings())
        self.assertIs(self.json_of("leaks", path, "--at", "1:3")["judged"], True)


class Snapshots(SnapshotCase):
    def snapshot_of_killed(self, why, holds, *, ending=KILLED, later=False):
        script = SnapshotScript().basics()
        script.alloc(0x20000, 10)
        script.snapshot(*([(2, 8, 0x20000)] if holds else []), reason=why)
        if later:
            script.alloc(0x30000, 20)
        return self.write(script.close(reason=ending, code=SIGSEGV), f"{ending}{why}{holds}{later}")

    def test_a_snapshot_of_a_program_that_was_killed(self):
        """The one of the end is an answer, though other threads may have gone on for a moment. Another
        one has findings; without any there is no answer, since a pointer may be gone without a
        call."""
        requested, at_exit, at_signal = 1, 4, 5
        for why in requested, at_exit, at_signal:
            for later in False, True:
                for ending in UNTOLD, KILLED:
                    is_answer = why != requested
                    path = self.snapshot_of_killed(why, True, ending=ending, later=later)
                    result = run("leaks", "--error-exitcode", "9", path)
                    self.assertEqual(result.status, 0 if is_answer else UNJUDGED, result.errors)
                    self.assertIs(self.json_of("leaks", path)["judged"], is_answer)
                    self.assertIs(self.json_of("leaks", path)["certain"], is_answer)
                    path = self.snapshot_of_killed(why, False, ending=ending, later=later)
                    self.assertEqual(run("leaks", "--error-exitcode", "9", path).status, 9)

    def test_the_snapshot_of_the_end_is_missing(self):
        """Of a program that has ended by itself, by a system call of its own for example."""
        reason = "no snapshot was taken when the program ended"
        # The one that there is belongs to a program before.
        script = SnapshotScript().basics()
        script.alloc(0x20000, 10)
        script.snapshot((2, 8, 0x20000), reason=4)
        script.add("metadata", key="missing_snapshot", value="of%20the%20program's%20end")
        self.assertEqual(run("leaks", "--error-exitcode", "9",
                             self.write(script.close(), "before")).status, UNJUDGED)
        for snapshot, status in (None, UNJUDGED), (True, UNJUDGED), (False, 9):
            script = SnapshotScript().basics()
            script.alloc(0x20000, 10)
            if snapshot is not None:
                script.snapshot(*([(2, 8, 0x20000)] if snapshot else []), reason=2)
            script.add("metadata", key="missing_snapshot", value="of%20the%20program's%20end")
            path = self.write(script.close(), f"{snapshot}")
            result = run("leaks", "--error-exitcode", "9", path)
            self.assertEqual(result.status, status, result.errors)
            found = self.json_of("leaks", path)
            self.assertEqual((found["judged"], found["certain"]), (False, False))
            self.assertEqual(found["reasons"], [reason])
            if snapshot is None:
                self.assertEqual(found["groups"][0]["class"], "live_at_end")
                text = run("leaks", path).text
                self.assertTrue(text.startswith("Live when the program ended: 1 block, 10 bytes"), text)
                self.assertIn("\nNo finding: it may still have reached them.\n", text)

    def test_a_newest_snapshot_that_is_not_of_the_end(self):
        """A program without a snapshot of its end, as was asked for: a pointer may be gone since the
        newest one without a call. The one that a process takes at its end may be followed by calls
        of other threads."""
        at_api, at_request, at_interval, at_exit = range(1, 5)
        for why in at_api, at_request, at_interval, at_exit:
            for later in "alloc", "free", "":
                script = SnapshotScript().basics()
                script.alloc(0x20000, 10)
                script.snapshot((2, 8, 0x20000), reason=why)
                if later == "alloc":
                    script.alloc(0x30000, 20)
                elif later == "free":
                    script.free(0x20000)
                path = self.write(script.close(), f"{why}{later}")
                is_answer = why == at_exit or later == "free"
                result = run("leaks", "--error-exitcode", "9", path)
                self.assertEqual(result.status, 0 if is_answer else UNJUDGED, result.errors)
                if not is_answer:
                    self.assertIn("no snapshot was taken when the program ended", result.errors)
                found = self.json_of("leaks", path)
                self.assertEqual((found["judged"], found["certain"]), (is_answer, is_answer))
                # Of that moment it is an answer.
                snapshot, = self.json_of("snapshots", path)["snapshots"]
                found = self.json_of("leaks", path, "--at", snapshot["position"])
                self.assertEqual((found["judged"], found["certain"]), (True, True))

    def test_a_snapshot_where_the_recording_ended(self):
        """Blocks that were lost then are findings; if all were held, that is an answer."""
        for reason in DETACHED, 1:
            for holds in True, False:
                script = SnapshotScript().basics()
                script.alloc(0x20000, 10)
                script.snapshot(*([(2, 8, 0x20000)] if holds else []))
                if reason != DETACHED:
                    script.add("loss", reason=6, count=7, last_good="9:0", first_good="never")
                path = self.write(script.close(reason=reason), f"{reason}{holds}")
                found = self.json_of("leaks", path)
                self.assertIs(found["judged"], True)
                self.assertEqual(run("leaks", "--error-exitcode", "9", path).status,
                                 0 if holds else 9)

    def test_the_snapshot_where_the_recording_ended_is_missing(self):
        """An earlier one does not show what the process held then."""
        for holds, status in (True, UNJUDGED), (False, 9):
            script = SnapshotScript().basics()
            script.alloc(0x20000, 10)
            script.snapshot(*([(2, 8, 0x20000)] if holds else []), reason=2)
            script.add("metadata", key="missing_snapshot", value="of%20the%20recording's%20end")
            path = self.write(script.close(reason=DETACHED), f"{holds}")
            self.assertEqual(run("leaks", "--error-exitcode", "9", path).status, status)
            self.assertIs(self.json_of("leaks", path)["judged"], False)

    def test_a_snapshot_before(self):
        """Findings count, and without one there is no answer."""
        for holds, status in (True, UNJUDGED), (False, 9):
            script = SnapshotScript().basics()
            script.alloc(0x20000, 10)
            script.snapshot(*([(2, 8, 0x20000)] if holds else []))
            script.alloc(0x30000, 20)
            script.add("loss", reason=6, count=7, last_good="9:0", first_good="never")
            path = self.write(script.close(), f"{holds}")
            self.assertEqual(run("leaks", "--error-exitcode", "9", path).status, status)
            self.assertEqual(run("leaks", "--error-exitcode", "9", "--errors-for", "all",
                                 path).status, 9)

    def process(self, number, *, loses=False, loss=None):
        if os.path.exists(self.path(f"trace.{number}")):
            os.remove(self.path(f"trace.{number}"))
        script = SnapshotScript(id=number, parent=1 if number > 1 else 0, pid=100 + number,
                                start_time=number * 10 ** 9).basics()
        if loses:
            script.alloc(0x20000, 10)
            script.snapshot()
        if loss and "killed" in loss:
            script.alloc(0x30000, 20)
            return self.write(script.close(reason=KILLED, code=SIGKILL), f"trace.{number}")
        if loss:
            script.add("loss", **loss)
        return self.write(script.close(), f"trace.{number}")

    def test_group(self):
        """A child whose calls were not recorded is as one that ran unrecorded; a child that was killed,
        or whose recording ended, is not."""
        cut_off = {"reason": 6, "count": 7, "last_good": "0:0", "first_good": "never"}
        unseen = {"reason": 3, "count": "unknown", "last_good": "0:0", "first_good": END}
        killed = {"killed": True}
        for first, second, status in ((None, unseen, 0), (unseen, None, UNJUDGED),
                                      (None, killed, UNJUDGED), (killed, None, UNJUDGED),
                                      (None, cut_off, UNJUDGED), (None, None, 0)):
            path = self.process(1, loss=first)
            self.process(2, loss=second)
            result = run("leaks", "--group", "--error-exitcode", "9", path)
            self.assertEqual(result.status, status, result.errors)
            self.assertEqual("no answer to 'leaks'" in result.errors, status == UNJUDGED)
            self.assertEqual(self.json_of("leaks", path, "--group")["judged"], status != UNJUDGED)
            reason = (NO_CALLS if unseen in (first, second) else
                      WAS_KILLED if killed in (first, second) else CUT)
            self.assertEqual(f": {reason}\n" in result.text, bool(first or second))
            # Of a process that was killed all calls are known.
            result = run("errors", "--group", "--error-exitcode", "9", path)
            self.assertEqual(result.status, 0 if killed in (first, second) else status)
            self.assertEqual("no answer to 'errors'" in result.errors, result.status == UNJUDGED)
        self.process(2, loses=True)
        for loss in cut_off, killed:
            self.process(3, loss=loss)
            self.assertEqual(run("leaks", "--group", "--error-exitcode", "9", path).status, 9)
        # What the child has left is in no sum.
        self.assertEqual(self.json_of("leaks", path, "--group")["blocks"], 1)

    def test_group_of_known_findings(self):
        """Filters leave out blocks, not the doubt about them."""
        self.process(1, loss={"killed": True})
        path = self.path("trace.1")
        rules = self.path("rules")
        with open(rules, "w", encoding="utf-8") as file:
            file.write("leak:*\n")
        for options in (), ("--suppressions", rules), ("--errors-for", "all", "--exclude", "main"):
            self.assertEqual(run("leaks", *options, "--error-exitcode", "9", path).status, UNJUDGED)
            self.assertEqual(run("leaks", "--group", *options, "--error-exitcode", "9", path).status,
                             UNJUDGED)

    def test_group_without_a_snapshot(self):
        """What a process has never released may be reachable: a line says so."""
        path = self.process(1)
        line = "1 process without a snapshot: what it never released may be reachable\n"
        self.assertNotIn(line, run("leaks", "--group", path).text)
        self.assertEqual(self.json_of("leaks", path, "--group")["unsearched_processes"], 0)
        script = SnapshotScript(id=2, parent=1, pid=102).basics()
        script.alloc(0x20000, 10)
        self.write(script.close(), "trace.2")
        result = run("leaks", "--group", "--error-exitcode", "9", path)
        self.assertEqual(result.status, 9)
        self.assertIn(line, result.text)
        self.assertEqual(self.json_of("leaks", path, "--group")["unsearched_processes"], 1)

    def test_group_left(self):
        path = self.process(1)
        script = SnapshotScript(id=2, parent=1, pid=102).basics()
        script.alloc(0x20000, 10)
        script.event("Destroy", heap=1, thread=0, result=1)
        self.write(script.close(), "trace.2")
        found = self.json_of("leaks", path, "--group")
        self.assertEqual((found["left_blocks"], found["left_bytes"]), (1, 10))
        self.assertIn("\n10 bytes in 1 block left by programs before, at exec: not searched\n",
                      run("leaks", "--group", path).text)


if __name__ == "__main__":
    support.main()
