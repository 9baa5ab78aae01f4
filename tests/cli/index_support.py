# SPDX-License-Identifier: MIT
"""Traces with an index beside them, and indexes made by hand"""

import os
import subprocess

import support
from index_doubt import DOUBT, without_doubt
from support import Script, TestCase, run

MAGIC = b"\x89TTDH\r\n\x1a"
DERIVED = 1
NOBODY = 65534
# Forms of a state, and a position that is invalid.
KEYFRAME, SUMMARY, PEAK = 1, 2, 3
NOWHERE = "never"


def position_text(sequence, steps):
    return f"{sequence:X}:{steps:X}"


def churn(count, **trace):
    """Random calls, with blocks that the runtimes keep, and a loss."""
    script = Script(**trace).basics()
    script.add("loss", reason=1, count=3, last_good=f"{count // 2:X}:0",
               first_good=f"{count // 2 + 1:X}:0")
    script.add("churn", count=count, slots=2000, position="2:0")
    script.add("blocks", list=3, position=f"{count + 9:X}:0",
               blocks=",".join(f"0x{0x10000000 + 0x40 * i:x}:1" for i in range(0, 2000, 7)))
    return script.close()


NOT_CLOSED = "the trace is not closed, and has no index until it is"


class Index(TestCase):
    """A trace with an index beside it."""

    def index_of(self, path):
        return path + ".idx"

    def said(self, path, *arguments):
        """Status, output and messages of a command, which must not crash or hang."""
        result = run(*arguments, path)
        self.assertIn(result.status, (0, 1, 2, 3, 4, 5), (arguments, result.errors))
        return result.status, *without_doubt(path, result)

    def truth(self, path, *arguments):
        return self.said(path, arguments[0], "--no-index", *arguments[1:])

    def files(self):
        return sorted(os.listdir(self.folder))


class HandMade(Index):
    """Indexes that were made by somebody else, of a trace that is small enough to know it all."""

    KEPT = {20: 0x1000, 21: 0x2000, 100: 0x3000, 101: 0x4000}
    NEXT = 200

    def setUp(self):
        super().setUp()
        script = Script(events_per_chunk=100).basics()
        for i in range(300):
            if i in self.KEPT:
                script.alloc(self.KEPT[i], i)
            elif i == 298:
                script.event("Destroy")
            elif i % 2 == 0:
                script.alloc(0x9000, i)
            else:
                script.free(0x9000)
        self.trace = self.write(script.close())
        with open(self.trace, "rb") as file:
            data = file.read()
        end = data.rfind(MAGIC)
        self.tie = {"flags": DERIVED, "source_id": 0x1234, "source_size": len(data),
                    "source_hash": int.from_bytes(data[end + 104:end + 112], "little"),
                    "id": 0x777}
        self.ask = ("state", "-f", "json", "--blocks", "--at", "#250")
        self.expected = self.truth(self.trace, *self.ask)
        self.assertEqual(self.expected[0], 0)

    @staticmethod
    def tick(number):
        return f"{number // 4:X}:{number % 4:X}"

    def record(self, form=KEYFRAME, **changes):
        """The keyframe."""
        numbers = {"sequence": 99, "steps": 3, "blocks": 4, "next": self.NEXT,
                   "events": self.NEXT, "alloc": 102, "free": 98}
        numbers.update(changes)
        position = position_text(numbers.pop("sequence"), numbers.pop("steps"))
        return {"form": form, "position": position, **numbers}

    def lists(self, position="63:3", skip=(), event=None, size=None, address=None,
              allocated=None, list=1, **fields):
        """A list, a chunk for each block; changes are for the third."""
        lines = []
        for i, (number, at) in enumerate(self.KEPT.items()):
            if i in skip:
                continue
            is_it = i == 2
            lines.append({
                "list": list, "id": 1, "position": position, "stack": 2, "api": 1,
                "allocated": allocated if is_it and allocated else self.tick(2 * number + 2),
                "blocks": ":".join(str(part) for part in (
                    address if is_it and address else at,
                    size if is_it and size is not None else number,
                    event if is_it and event is not None else number)),
                **(fields if is_it else {})})
        return lines

    def stamp(self):
        """What the program says of the trace's file."""
        file = os.stat(self.trace)
        times = "%20".join(f"{ns // 10**9}.{ns % 10**9:09}"
                           for ns in (file.st_mtime_ns, file.st_ctime_ns))
        return f"{file.st_dev}%20{file.st_ino}%20{file.st_size}%20{times}"

    def make(self, records, lists, close=True, peak=None, sums=(), **tie):
        """Writes an index by hand; False if the writer does not want to."""
        script = Script(**{**self.tie, **tie})
        script.add("thread").add("heap").add("stack").add("stack")
        for fields in records:
            script.add("state", **fields)
        script.add("flush")
        for fields in sums:
            script.add("sum", **fields)
        script.add("metadata", key="source", value=self.stamp())
        script.add("flush")
        for fields in lists:
            script.add("blocks", **fields)
        if peak is not None:
            script.add("state", form=PEAK, **peak)
        if close:
            script.close()
        else:
            script.abandon()
        path = self.index_of(self.trace)
        if os.path.exists(path):
            os.unlink(path)
        made = subprocess.run([support.TRACEGEN, path], input="\n".join(script.lines) + "\n",
                              text=True, capture_output=True, check=False)
        return made.returncode == 0

    def honest(self, **tie):
        self.assertTrue(self.make([self.record()], self.lists(), **tie))

    def lie(self):
        """An index whose lie cannot be seen: it shows where an index is used."""
        self.assertTrue(self.make([self.record()], self.lists(size=4242)))

    def is_believed(self, **options):
        """Whether the sizes of blocks, which are 492 bytes together, are taken from the index."""
        result = run("state", "-f", "json", "--at", "#250", self.trace, **options)
        self.assertEqual(result.status, 0)
        is_believed = result.json["live_bytes"] == 4634
        self.assertEqual(DOUBT in result.json["reasons"], is_believed)
        return is_believed

    def summary(self, end="63:4", sums=5, **changes):
        return self.record(form=SUMMARY, sums=sums, end=end, **{"blocks": 1, **changes})

    def sums(self, **changes):
        """Sums of all blocks but the third; changes are for the first sum."""
        first = {"table": 0, "key": 2, "api": 1, "blocks": 3, "bytes": 142, "first": "A:2",
                 "last": "33:0"}
        return [{**first, **changes}] + [
            {"table": table, "key": key, "api": 1, "blocks": blocks, "bytes": size}
            for table, key, blocks, size in ((1, 1, 3, 142), (2, 1, 3, 142), (3, 5, 2, 41),
                                             (3, 7, 1, 101))]

    def make_summary(self, record, lists, sums):
        return self.make([record], lists, sums=sums)
