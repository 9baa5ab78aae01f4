# SPDX-License-Identifier: MIT
"""Traces with an index beside them, and indexes made by hand"""

import os

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
                "list": list, "last": 0, "position": position, "stack": 2, "api": 1,
                "allocated": allocated if is_it and allocated else self.tick(2 * number + 2),
                "blocks": ":".join(str(part) for part in (
                    address if is_it and address else at,
                    size if is_it and size is not None else number,
                    event if is_it and event is not None else number)),
                **(fields if is_it else {})})
        if lines:
            lines[-1]["last"] = 1
        return lines

    def stamp(self):
        """The program's messages about the trace's file."""
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
        return support.make_trace(path, script.lines).returncode == 0

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

    def visible_lies(self):
        """Records and lists of indexes that are seen to be wrong without a replay."""
        good, lists = self.record(), self.lists()
        return {
            "next event within a chunk": ([self.record(next=150)], lists),
            "next event is the second": ([self.record(next=201)], lists),
            "next event is beyond the end": ([self.record(next=300)], lists),
            "next event is nowhere": ([self.record(next=10**18)], lists),
            "next event is the last there can be": ([self.record(next=2**64 - 1)], lists),
            "later than the next event": ([self.record(sequence=100)],
                                          self.lists(position="64:3")),
            "no position": ([self.record(sequence=2**64 - 1)], lists),
            "more releases of nothing than events": ([self.record(unknown=201)], lists),
            "more overlaps than events": ([self.record(overlaps=201)], lists),
            "position differs": ([good], self.lists(position="63:2")),
            "block from the future": ([good], self.lists(event=200)),
            "block from nowhere": ([good], self.lists(event=2**64 - 1)),
            "block from the future of the chunk": ([self.record(next=250)],
                                                   self.lists(event=210)),
            "block acquired later": ([good], self.lists(allocated="64:0")),
            "address twice": ([good], self.lists(address=0x2000)),
            "more blocks": ([self.record(blocks=3)], lists),
            "fewer blocks": ([self.record(blocks=5)], lists),
            "no blocks": ([self.record(blocks=0)], lists),
            "any number of blocks": ([self.record(blocks=2**63)], lists),
            "the largest number of blocks": ([self.record(blocks=2**64 - 1)], lists),
            "a snapshot": ([good], self.lists(list=2)),
            "kept by a runtime": ([good], self.lists(list=3)),
            "no list": ([good], []),
            "two lists": ([good], lists + lists),
            "one list for two": ([good, self.record(next=201)], lists),
            "no record": ([], lists),
            "twice the same": ([good, good], lists + lists),
            "going back": ([good, self.record(next=100)], lists + lists),
            "going back in time": ([good, self.record(sequence=9, next=250)], lists + lists),
        }

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

    def summary_lies(self, end):
        """Summaries that are seen to be wrong without a replay: record, list and sums."""
        good, only, sums = self.summary(end), self.lists(skip=(0, 1, 3)), self.sums()

        def change(number, **fields):
            return [{**row, **fields} if i == number else row for i, row in enumerate(sums)]

        return {
            "more sums": (self.summary(end, sums=4), only, sums),
            "fewer sums": (self.summary(end, sums=6), only, sums),
            "no sums": (self.summary(end, sums=0), only, []),
            "any number of sums": (self.summary(end, sums=2**64 - 1), only, sums),
            "no sums, it says": (self.summary(end, sums=0), only, sums),
            "more blocks": (self.summary(end, blocks=0), only, sums),
            "fewer blocks": (self.summary(end, blocks=2), only, sums),
            "no list": (good, [], sums),
            "a list of another position": (good, self.lists(skip=(0, 1, 3), position="63:2"), sums),
            "a block of the future": (good, self.lists(skip=(0, 1, 3), event=200), sums),
            "next event within a chunk": (self.summary(end, next=150), only, sums),
            "next event is beyond the end": (self.summary(end, next=300), only, sums),
            "the last block is of the future": (good, only, self.sums(last="64:0")),
            "more bytes in one table": (good, only, self.sums(bytes=143)),
            "more blocks in one table": (good, only, self.sums(blocks=4)),
            "more blocks than events": (good, only, [{**row, "blocks": 2**40} for row in sums]),
            "a size that is too small": (good, only, change(3, key=6)),
            "a size that is too large": (good, only, change(3, key=4)),
            "one table has no sums": (self.summary(end, sums=4), only, sums[:2] + sums[3:]),
        }

    def make_summary(self, record, lists, sums):
        return self.make([record], lists, sums=sums)
