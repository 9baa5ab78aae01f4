# SPDX-License-Identifier: MIT
"""What is lost: info, events, verify and recover say the same, and no verdict is certain but of what
verify calls intact; in every command and every format"""

import random

import support
from support import Script, run
from loss_support import Chunks, HEADER, Said, VECTORS

ANALYSES = (("leaks",), ("errors",), ("state",), ("state", "--at", "50%"), ("leaks", "--at", "#3"),
            ("peak",), ("moves",), ("timeline", "--over", "position"), ("hot",), ("temporary",),
            ("lifetimes",), ("diff", "--from", "#1"), ("fragmentation",), ("history", "--address", "0x1000"))


class Losses(Said):
    def setUp(self):
        super().setUp()
        script = Script(events_per_chunk=4, codec=0).basics()
        for i in range(40):
            script.alloc(0x1000 + 16 * i, 1)
            if i % 3 == 0:
                script.free(0x1000 + 16 * i)
        with open(self.write(script.close()), "rb") as file:
            self.whole = file.read()

    def chunks(self):
        return Chunks(self.whole)

    def flipped(self, kind, at=3, which=0, seals=False):
        chunks = self.chunks()
        index = chunks.of(kind)[which]
        chunks.parts[index][HEADER + at] ^= 0x40
        if seals:
            chunks.seal(index)
        return chunks.data()

    def header(self, kind, field, value, size=8, which=0):
        chunks = self.chunks()
        index = chunks.of(kind)[which]
        chunks.parts[index][field:field + size] = value.to_bytes(size, "little")
        chunks.seal(index)
        return chunks.data()

    def damaged(self):
        """Name and bytes of traces that are damaged, or not, in many ways."""
        whole = self.whole
        chunks = self.chunks()
        end = chunks.parts[-1]
        yield "intact", whole
        for kind in range(1, 17):
            if chunks.of(kind):
                yield f"payload of kind {kind}", self.flipped(kind)
                yield f"header of kind {kind}", self.header(kind, 60, 1, 4)
        for size in (7, 8, 100, 130, len(whole) // 3, len(whole) // 2, len(whole) - 160,
                     len(whole) - 100, len(whole) - 1):
            yield f"cut at {size}", whole[:size]
        for size in (1, 4, 8, 9, 16, 400):
            yield f"{size} zeros behind End", whole + bytes(size)
        yield "data behind End", whole + b"more"
        yield "a chunk behind End", whole + bytes(end)
        other = self.chunks()
        other.parts.append(bytearray(other.parts[1]))
        yield "a chunk of another kind behind End", other.renumber().data()
        yield "a number so large that End is passed over", self.header(2, 32, 1 << 32)
        yield "nothing but a bad payload", self.flipped(1)[:len(chunks.parts[0])] + bytes(400)
        yield "a cut chunk behind End", whole + bytes(end[:120])
        yield "a codec that nobody knows", self.header(8, 12, 77, 1, 2)
        yield "a critical kind", self.header(8, 10, 0x8001, 2, 2)
        yield "another major", self.header(8, 8, 2, 2, 2)
        yield "a chunk that is too long", self.header(8, 16, 0xFFFFF0 << 32 | 0xFFFFF0, 8, 1)
        for name, at, change in (("too few events", 16, -4), ("too many events", 16, 4),
                                 ("too many chunks", 32, 1), ("lost events", 24, 1),
                                 ("another index", 40, 8)):
            chunks = self.chunks()
            value = int.from_bytes(chunks.parts[-1][HEADER + at:HEADER + at + 8], "little")
            chunks.parts[-1][HEADER + at:HEADER + at + 8] = (value + change).to_bytes(8, "little")
            chunks.seal(len(chunks.parts) - 1)
            yield f"End: {name}", chunks.data()
        for flipped in (0, 1):
            chunks = self.chunks()
            extra = bytearray(chunks.parts[1])
            extra[10:12] = (0x8001).to_bytes(2, "little")
            chunks.parts.insert(2, extra)
            chunks.renumber()
            chunks.parts[2][HEADER] ^= flipped
            yield f"a private chunk, {flipped} bits of it wrong", chunks.data()
        chunks = self.chunks()
        middle = bytearray(end)
        events = chunks.of(8)[3]
        middle[HEADER + 16:HEADER + 24] = chunks.parts[events][48:56]
        middle[HEADER + 32:HEADER + 40] = (events + 1).to_bytes(8, "little")
        middle[64:96] = chunks.parts[events - 1][80:96] * 2
        chunks.parts.insert(events, middle)
        yield "an End in the middle", chunks.renumber().data()
        for left_out in range(0, len(chunks.parts) - 1, 3):
            chunks = self.chunks()
            del chunks.parts[left_out]
            yield f"without chunk {left_out}", chunks.data()
        chance = random.Random(7)
        for number in range(8):
            data = bytearray(whole)
            for _ in range(chance.randrange(1, 5)):
                data[chance.randrange(len(data))] ^= chance.randrange(1, 256)
            yield f"random {number}", bytes(data)

    def test_all_say_the_same(self):
        intact = []
        for name, data in self.damaged():
            path = self.path("trace.ttd")
            with open(path, "wb") as file:
                file.write(data)
            with self.subTest(name):
                if self.check(name, path):
                    intact.append(name)
        self.assertEqual(intact, ["intact"])

    def test_vectors(self):
        """None of these has losses of its own, which verify does not call problems."""
        for path in sorted(VECTORS.glob("[bu]*.trace")):
            with self.subTest(path.name):
                info, losses = self.said_by_info(path)
                self.assertEqual(losses, self.losses_of(path))
                if losses is not None:
                    verify = run("verify", "-f", "json", path).json
                    self.assertEqual(self.told_by(verify), [one for one in losses if one[0] != 0])
                    self.assertEqual((info.json["closed"], verify["closed"]),
                                     (self.is_closed, self.is_closed))

    def certainty(self, path, command):
        """Whether any format says that it is certain."""
        result = run(*command[:1], "-f", "json", path, *command[1:])
        if result.status not in (0, 1) or not result.raw:
            return None
        found = result.json
        if "certain" in found:
            return found["certain"]
        return all(one["certain"] for one in found["findings"]) and not found["reasons"]

    def test_certain(self):
        told = []
        for number, (name, data) in enumerate(self.damaged()):
            path = self.path("trace.ttd")
            with open(path, "wb") as file:
                file.write(data)
            is_intact = run("verify", path).status == 0
            every = name in ("intact", "a chunk that is too long", "an End in the middle")
            for command in ANALYSES if every else ANALYSES[number % 5::5]:
                with self.subTest((name, command)):
                    found = self.certainty(path, command)
                    if found is not None:
                        self.assertIs(found, is_intact)
                        told.append(found)
        self.assertEqual(told.count(True), len(ANALYSES))
        self.assertGreater(told.count(False), 100)


if __name__ == "__main__":
    support.main()
