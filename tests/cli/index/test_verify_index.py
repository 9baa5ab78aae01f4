# SPDX-License-Identifier: MIT
"""ttdanalyze verify compares an index with its trace"""

import os
import random
import shutil

import support
from index_support import HandMade, NOWHERE
from support import Script, run


class Compared(HandMade):
    """Indexes made by hand, whose checksums are right."""

    def verify(self, path=None):
        return run("verify", "-f", "json", path or self.trace)

    def agrees(self, what=None):
        for path in (self.trace, self.index_of(self.trace)):
            result = self.verify(path)
            self.assertEqual((result.status, result.json["index_agrees"], result.json["problems"]),
                             (0, True, []), what)

    def is_refused(self, what, *reasons):
        """The index is damage, with its file and reason, whichever of the two files is named."""
        for path in (self.trace, self.index_of(self.trace)):
            result = self.verify(path)
            self.assertEqual((result.status, result.errors), (1, ""), what)
            data = result.json
            self.assertEqual((data["ok"], data["index_agrees"], data["problem_count"]),
                             (False, False, 1), what)
            problem, = data["problems"]
            self.assertEqual(problem["file"], self.index_of(self.trace))
            self.assertEqual(problem["status"], "corrupt", what)
            if reasons:
                self.assertIn(problem["what"], reasons)
                self.assertIsNotNone(problem["chunk"])
                self.assertIsNotNone(problem["offset"])

    def is_told(self, what):
        """As is_refused(), of an index that even verify alone may call damaged."""
        result = self.verify()
        self.assertEqual(result.status, 1, what)
        self.assertIs(result.json["index_agrees"], False, what)

    def test_honest(self):
        self.honest()
        self.agrees()
        text = self.run_ok("verify", self.trace).text.splitlines()
        self.assertEqual(text[1], f"{self.index_of(self.trace)}: the index agrees with the trace")

    def test_made(self):
        """An index of the program agrees, with keyframes, summaries and no states at all."""
        for count, slots in ((1700000, 400000), (500000, 2000), (10, 5)):
            script = Script().basics()
            script.add("churn", count=count, slots=slots, position="2:0")
            trace = self.write(script.close(), f"t{count}")
            made = self.run_ok("index", "-f", "json", trace).json
            self.assertEqual(made["summaries"] > 2, slots == 400000)
            result = self.verify(trace)
            self.assertEqual((result.status, result.json["index_agrees"]), (0, True))

    def test_forged_blocks(self):
        chance = random.Random(7)
        self.honest()
        truth = {"size": 100, "stack": 2, "thread": 1, "heap": 1, "api": 1, "event": 100}
        refused = 0
        for number in range(120):
            field, limit = chance.choice((("size", 2**20), ("stack", 9), ("thread", 5),
                                          ("heap", 5), ("api", 60), ("event", 200)))
            value = chance.randrange(limit)
            if value == truth[field] or not self.make([self.record()],
                                                      self.lists(**{field: value})):
                continue
            refused += 1
            self.is_refused((field, value), "a live block differs from the trace's")
        self.assertGreater(refused, 60)

    def test_invisible(self):
        """Faults that no reader can see without a replay."""
        for fields in ({"size": 2**64 - 1}, {"heap": 0}, {"thread": 0}, {"stack": 1},
                       {"api": 255}, {"address": 0x3001}, {"event": 20}, {"allocated": "0:0"}):
            if self.make([self.record()], self.lists(**fields)):
                self.is_refused(fields)
        for changes in ({"failed": 7}, {"overlaps": 7}, {"unknown": 7}, {"alloc": 0},
                        {"free": 97}):
            self.assertTrue(self.make([self.record(**changes)], self.lists()))
            self.is_refused(changes, "a state of the heap has other counts of events than the trace")
        self.assertTrue(self.make([self.record(blocks=3)], self.lists(skip=(2,))))
        self.is_refused("a block is left out")

    def test_visible(self):
        for what, (records, lists) in self.visible_lies().items():
            with self.subTest(what):
                if self.make(records, lists):
                    self.is_told(what)

    def middle(self, sums=4, **changes):
        """A summary of the second chunk."""
        return self.summary(**{"sequence": 49, "steps": 3, "blocks": 0, "next": 100, "events": 100,
                               "alloc": 51, "free": 49, "sums": sums, "end": "64:2", **changes})

    def middle_sums(self, number=None, **changes):
        sums = [{"table": 0, "key": 2, "api": 1, "blocks": 2, "bytes": 41, "first": "A:2",
                 "last": "B:0"}] + [
            {"table": table, "key": key, "api": 1, "blocks": 2, "bytes": 41}
            for table, key in ((1, 1), (2, 1), (3, 5))]
        return [{**row, **changes} if i == number else row for i, row in enumerate(sums)]

    def test_summaries(self):
        record, sums = self.middle(), self.middle_sums()
        self.assertTrue(self.make_summary(record, [], sums))
        self.agrees()
        self.assertTrue(self.make_summary(record, [], sums[::-1]))
        self.agrees()
        for number in range(4):
            for changes in ({"blocks": 3}, {"bytes": 42}, {"key": 3}, {"api": 255},
                            {"first": "9:2"}, {"last": "B:1"}):
                if number and ("first" in changes or "last" in changes):
                    continue
                self.assertTrue(self.make_summary(record, [], self.middle_sums(number, **changes)))
                self.is_refused((number, changes), "a sum of a summary differs from the trace's")
        for changes in ({"end": "64:1"}, {"end": "63:3"}, {"end": NOWHERE}, {"failed": 1},
                        {"next": 99}, {"events": 99}, {"steps": 2}):
            if self.make_summary(self.middle(**changes), [], sums):
                self.is_refused(changes)
        for rows in (sums[:3], [*sums, {**sums[3], "key": 6}]):
            self.assertTrue(self.make_summary(self.middle(sums=len(rows)), [], rows))
            self.is_refused(rows)
            self.assertTrue(self.make_summary(record, [], rows))
            self.is_told(rows)
        self.assertTrue(self.make_summary(self.middle(blocks=1), self.lists(skip=(1, 2, 3)), sums))
        self.is_told("a block that does not end")
        for what, (record, blocks, rows) in self.summary_lies(NOWHERE).items():
            with self.subTest(what):
                self.assertTrue(self.make_summary(record, blocks, rows))
                self.is_told(what)

    def test_peak(self):
        state = support.json.loads(self.truth(self.trace, "peak", "-f", "json")[1])
        true = {"position": state["position"], "bytes": int(state["live_bytes"]),
                "blocks": state["live_blocks"]}
        self.assertTrue(self.make([self.record()], self.lists(), peak=true))
        self.agrees()
        for changes in ({"bytes": 1}, {"blocks": 1}, {"position": "63:3"}, {"bytes_high": 1}):
            self.assertTrue(self.make([self.record()], self.lists(), peak={**true, **changes}))
            self.is_refused(changes, "the peak differs from the trace's")

    def test_not_compared(self):
        """No index, one of another trace, one without its trace, and --no-index."""
        self.assertIsNone(self.verify().json["index_agrees"])
        self.lie()
        result = run("verify", "--no-index", "-f", "json", self.trace)
        self.assertEqual((result.status, result.json["index_agrees"]), (0, None))
        self.assertTrue(self.make([self.record()], self.lists(), source_hash=1))
        result = self.verify()
        self.assertEqual((result.status, result.json["index_agrees"]), (0, None))
        self.assertIn(f"{self.index_of(self.trace)}: is not used: it is not an index of this trace",
                      result.errors)
        self.lie()
        alone = os.path.join(self.folder, "alone.idx")
        shutil.copy(self.index_of(self.trace), alone)
        result = self.verify(alone)
        self.assertEqual((result.status, result.json["index_agrees"]), (0, None))
        self.assertIn("is not compared with its trace", result.errors)


if __name__ == "__main__":
    support.main()
