# SPDX-License-Identifier: MIT
"""Events that are missing where chunks are damaged: every command says the same"""

import pathlib

import support
from support import Script, run
from loss_support import Chunks, HEADER, Said, VECTORS


class Gaps(Said):
    """Where a gap begins and ends, as spec/format.md says it."""

    def damaged(self):
        """Name, bytes, and the losses that are to be told."""
        for name, losses in (
                ("bad-payloads", [[4, "0:0", None]]),
                ("bad-payloads-apart", [[2, "0:0", "1:5"]]),
                ("bad-events-clock-overflow", [[4, "0:0", None]]),
                ("bad-end-payload", [[0, "1:6", None]]),
                ("bad-cut-behind-end", [[0, "1:6", None]]),
                ("bad-first-strings", [[0, "0:0", "1:1"]])):
            yield name, (VECTORS / f"{name}.trace").read_bytes(), losses
        for which in ([0], [0, 1], [4, 5, 6]):
            for spoil in (self.spoil_payload, self.spoil_end):
                chunks = Chunks(self.long)
                events = chunks.of(8)
                for i in which:
                    spoil(chunks, events[i])
                before = self.position_of(chunks.parts[events[which[0] - 1]], 80)
                behind = self.position_of(chunks.parts[events[which[-1] + 1]], 64)
                yield (f"{spoil.__name__} {which}", chunks.data(),
                       [[1000 * len(which), before if which[0] else "0:0", behind]])

    @staticmethod
    def position_of(part, at):
        return "{:X}:{:X}".format(int.from_bytes(part[at:at + 8], "little"),
                                  int.from_bytes(part[at + 8:at + 16], "little"))

    @staticmethod
    def spoil_payload(chunks, index):
        chunks.parts[index][HEADER + 2] ^= 1

    @staticmethod
    def spoil_end(chunks, index):
        """Another last position in the header: only the last event can tell."""
        part = chunks.parts[index]
        part[88:96] = (int.from_bytes(part[88:96], "little") + 1).to_bytes(8, "little")
        chunks.seal(index)

    def setUp(self):
        super().setUp()
        script = Script(events_per_chunk=1000, codec=0).basics()
        for i in range(4000):
            script.alloc(0x1000 + 16 * i, 1)
            script.free(0x1000 + 16 * i)
        self.long = pathlib.Path(self.write(script.close())).read_bytes()

    def test_all_say_the_same(self):
        for name, data, losses in self.damaged():
            path = self.path("gap.ttd")
            pathlib.Path(path).write_bytes(data)
            with self.subTest(name):
                self.assertEqual(self.losses_of(path), losses)
                self.check(name, path)

    def test_certain(self):
        """No event is certain that is behind a loss, or a part of one; and none at all where the
        damage may have told of a loss."""
        hidden = "bad-end-payload", "bad-cut-behind-end", "bad-first-strings"
        for name, data, losses in self.damaged():
            path = self.path("gap.ttd")
            pathlib.Path(path).write_bytes(data)
            with self.subTest(name):
                rows = run("events", "-f", "json", path).json_lines
                count, last_good, _ = losses[0]
                wrong = [row["number"] for row in rows if row["certain"] ==
                         (name in hidden or (count != 0 and self.is_behind(row, last_good)))]
                self.assertEqual(wrong, [])
                found = run("info", "-f", "json", path).json
                self.assertEqual((found["events"], found["certain"]), (len(rows), False))

    @staticmethod
    def is_behind(row, last_good):
        def pair(text):
            return tuple(int(part, 16) for part in text.split(":"))
        return pair(row["time_start"]) > pair(last_good)


if __name__ == "__main__":
    support.main()
