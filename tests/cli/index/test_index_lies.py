# SPDX-License-Identifier: MIT
"""Indexes whose keyframes are wrong: refused where it can be seen"""

import os
import random

import support
from index_doubt import DOUBT
from index_support import HandMade, churn
from support import run


class Lies(HandMade):
    """Keyframes of another trace, or of none."""

    def test_honest(self):
        self.honest()
        for event in range(0, 300, 17):
            ask = ("state", "-f", "json", "--blocks", "--at", f"#{event}")
            self.assertEqual(self.said(self.trace, *ask), self.truth(self.trace, *ask))

    def test_which_is_used(self):
        self.lie()
        self.assertTrue(self.is_believed())
        self.assertEqual(self.truth(self.trace, *self.ask), self.expected)
        self.assertEqual(self.said(self.trace, "state", "-f", "json", "--blocks", "--at", "#150"),
                         self.truth(self.trace, "state", "-f", "json", "--blocks", "--at", "#150"))

    def test_of_another_trace(self):
        for name, value in self.tie.items():
            if name == "id":
                continue
            self.assertTrue(self.make([self.record()], self.lists(size=4242),
                                      **{name: value ^ 1}))
            self.assertFalse(self.is_believed(), name)
        self.assertTrue(self.make([self.record()], self.lists(size=4242), close=False))
        self.assertFalse(self.is_believed())
        self.lie()
        self.assertTrue(self.is_believed())
        other = self.write(churn(500, id=0x999), "other")
        os.rename(other, self.trace)
        self.assertFalse(self.is_believed())

    def test_that_can_be_seen(self):
        others = {ask: self.truth(self.trace, *ask) for ask in
                  (("leaks",), ("peak",), ("diff", "--from", "#240", "--to", "end"),
                   ("leaks", "-f", "json", "--at", "#250"))}
        for what, (records, blocks) in self.visible_lies().items():
            with self.subTest(what):
                if not self.make(records, blocks):
                    continue
                self.assertEqual(self.said(self.trace, *self.ask), self.expected)
                for other in others:
                    self.assertEqual(self.said(self.trace, *other), others[other])
        self.honest()
        self.assertEqual(self.said(self.trace, *self.ask), self.expected)

    def test_that_cannot_be_seen(self):
        """Commands give some answer."""
        for fields in ({"size": 2**64 - 1}, {"heap": 2**32 - 1},
                       {"thread": 2**32 - 1}, {"stack": 2**32 - 1}, {"heap": 0}, {"thread": 0}, {"stack": 1}, {"api": 255},
                       {"address": 2**64 - 1}, {"address": 0x2001}, {"event": 20}, {"event": 0},
                       {"allocated": "0:0"}, {"size": 0}):
            with self.subTest(fields):
                if not self.make([self.record()], self.lists(**fields)):
                    continue
                self.said(self.trace, *self.ask)
                self.said(self.trace, "leaks", "--at", "#250")
                self.said(self.trace, "fragmentation", "--at", "#250")
        for changes in ({"failed": 2**64 - 1}, {"overlaps": 7}, {"unknown": 2**64 - 1},
                        {"alloc": 0}, {"sequence": 0}):
            if not self.make([self.record(**changes)],
                             self.lists(position="0:3" if "sequence" in changes else "63:3")):
                continue
            self.said(self.trace, *self.ask)
            self.said(self.trace, "leaks", "--at", "#250")

    def test_forged_blocks(self):
        """Blocks that are shown one by one are those of the trace, whatever the index says."""
        chance = random.Random(7)
        refused = f"ttdanalyze: warning: {self.index_of(self.trace)}: is not used: it does not " \
                  "agree with the trace\n"
        asks = [("state", "-f", "json", "--blocks", "--at", "#250"),
                ("state", "-f", "json", "--address", "0x3000", "--at", "#250"),
                ("state", "-f", "json", "--address", "0x2fff", "--at", "#250")]
        truths = [self.truth(self.trace, *ask) for ask in asks]
        for number in range(700):
            field, limit = chance.choice((("size", 2**20), ("stack", 9), ("thread", 5),
                                          ("heap", 5), ("api", 60), ("event", 200)))
            forged = {field: chance.randrange(limit)}
            if number % 7 == 6:
                forged = {"allocated": self.tick(chance.randrange(100))}
            if not self.make([self.record()], self.lists(**forged)):
                continue
            ask = number % len(asks)
            status, text, errors = self.said(self.trace, *asks[ask])
            self.assertEqual((status, text), truths[ask][:2], forged)
            self.assertIn(errors, ("", refused), forged)

    def test_that_is_refuted(self):
        """An answer by a replay in place of an index that was refuted is certain again."""
        self.lie()
        result = run(*self.ask, self.trace)
        self.assertIs(result.json["certain"], True)
        self.assertIn("it does not agree with the trace", result.errors)

    def test_forged_sums(self):
        """A sum from an index is never certain; without one it is."""
        self.lie()
        for command in (("state", "--at", "#250"), ("leaks", "--at", "#250"),
                        ("fragmentation", "--at", "#250"), ("diff", "--from", "#250")):
            with self.subTest(command):
                data = run(*command, "-f", "json", self.trace).json
                self.assertEqual((data["certain"], data["reasons"]), (False, [DOUBT]))
                alone = run(command[0], "--no-index", *command[1:], "-f", "json", self.trace).json
                self.assertIs(alone["certain"], True)
        for command in (("leaks",), ("state",), ("fragmentation",), ("diff",)):
            with self.subTest(command):
                self.assertEqual(self.said(self.trace, *command), self.truth(self.trace, *command))
                self.assertIs(run(*command, "-f", "json", self.trace).json["certain"], True)

    def test_damaged(self):
        """Every byte, and every length: not used, or right."""
        self.honest()
        chance = random.Random(5)
        with open(self.index_of(self.trace), "rb") as file:
            whole = file.read()
        for at in range(0, len(whole), 7):
            data = bytearray(whole)
            data[at] ^= 1 << chance.randrange(8)
            with open(self.index_of(self.trace), "wb") as file:
                file.write(data)
            self.assertEqual(self.said(self.trace, *self.ask), self.expected, at)
        for size in [*range(0, 16), *range(16, len(whole), 37), len(whole) - 8, len(whole) - 1]:
            with open(self.index_of(self.trace), "wb") as file:
                file.write(whole[:size])
            self.assertEqual(self.said(self.trace, *self.ask), self.expected, size)
        with open(self.index_of(self.trace), "wb") as file:
            file.write(whole + b"more")
        self.assertEqual(self.said(self.trace, *self.ask), self.expected)


if __name__ == "__main__":
    support.main()
