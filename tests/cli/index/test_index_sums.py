# SPDX-License-Identifier: MIT
"""Indexes with summaries and peaks, right and wrong ones"""

import json

import support
from index_support import HandMade, NOWHERE


class Sums(HandMade):
    """Summaries and peaks made by hand."""

    def test_summary(self):
        """One that nothing is wrong with is used, where it serves."""
        only = self.lists(skip=(0, 1, 3))
        asks = [("state", "-f", "json", "--limit", "0", "--at", f"#{event}")
                for event in range(0, 300, 9)]
        expected = [self.truth(self.trace, *ask) for ask in asks]
        self.assertTrue(self.make_summary(self.summary(), self.lists(skip=(0, 1, 3)), self.sums()))
        for ask, said in zip(asks, expected):
            self.assertEqual(self.said(self.trace, *ask), said, ask)
        used = [[], []]
        for case, end in enumerate(("63:4", NOWHERE)):
            self.assertTrue(self.make_summary(self.summary(end=end), only,
                                              self.sums(first="B:0")))
            for ask, said in zip(asks, expected):
                if self.said(self.trace, *ask) != said:
                    used[case].append(int(ask[-1][1:]))
        # Event 231 is at 115:2, and 234 at 117:0.
        self.assertEqual(used[1], list(range(207, 300, 9)))
        self.assertEqual(used[0], [])
        self.assertTrue(self.make_summary(self.summary(end="75:0"), only, self.sums(first="B:0")))
        used = [ask for ask, said in zip(asks, expected) if self.said(self.trace, *ask) != said]
        self.assertEqual([ask[-1] for ask in used], ["#207", "#216", "#225"])
        for other in (("state", "--blocks", "--at", "#220"), ("leaks", "--at", "#220"),
                      ("state", "--by", "thread", "--at", "#220"),
                      ("state", "--include", "main", "--at", "#220"),
                      ("fragmentation", "--at", "#220")):
            self.assertEqual(self.said(self.trace, *other), self.truth(self.trace, *other), other)

    def test_lies_in_a_summary(self):
        ask = ("state", "-f", "json", "--limit", "0", "--at", "#250")
        expected = self.truth(self.trace, *ask)
        end = NOWHERE
        good, only, sums = self.summary(end), self.lists(skip=(0, 1, 3)), self.sums()
        self.assertTrue(self.make_summary(good, only, sums))
        late = (*ask[:-1], "#298")
        self.assertEqual(self.said(self.trace, *late), self.truth(self.trace, *late))
        for what, (record, blocks, rows) in self.summary_lies(end).items():
            with self.subTest(what):
                self.assertTrue(self.make_summary(record, blocks, rows))
                if what == "no sums":
                    # Its claim cannot be seen to be wrong.
                    self.assertEqual(self.said(self.trace, *ask)[0], 0)
                    continue
                self.assertEqual(self.said(self.trace, *ask), expected)
        for changes in ({"blocks": 2**64 - 1}, {"bytes": 2**64 - 1}, {"key": 0},
                        {"key": 2**32 - 1}, {"last": "FFFF:0"}, {"api": 255}, {"table": 3},
                        {"table": 1}):
            self.assertTrue(self.make_summary(good, only, self.sums(**changes)))
            self.assertEqual(self.said(self.trace, *ask)[0], 0, changes)
            self.said(self.trace, "state", "--at", "#250")
            self.said(self.trace, "state", "--folded", "--at", "#250")
            self.said(self.trace, "peak")

    def test_peak(self):
        """One that is as the index says is believed; others are found without it."""
        expected = self.truth(self.trace, "peak", "-f", "json")
        state = support.json.loads(expected[1])
        bytes, blocks = int(state["live_bytes"]), state["live_blocks"]
        later = support.json.loads(self.truth(self.trace, "state", "-f", "json", "--at", "#250")[1])
        true = {"position": state["position"], "bytes": bytes, "blocks": blocks}
        peaks = {
            "true": true,
            "other bytes": {**true, "bytes": bytes + 1},
            "many bytes": {**true, "bytes_high": 1},
            "other blocks": {**true, "blocks": blocks + 1},
            "elsewhere": {**true, "position": later["position"]},
            "missing": None,
        }
        for what, peak in peaks.items():
            with self.subTest(what):
                self.assertTrue(self.make([self.record()], self.lists(), peak=peak))
                self.assertEqual(self.said(self.trace, "peak", "-f", "json"), expected)
        smaller = {"position": later["position"], "bytes": later["live_bytes"],
                   "blocks": later["live_blocks"]}
        self.assertTrue(self.make([self.record()], self.lists(), peak=smaller))
        self.assertNotEqual(self.said(self.trace, "peak", "-f", "json"), expected)


if __name__ == "__main__":
    support.main()
