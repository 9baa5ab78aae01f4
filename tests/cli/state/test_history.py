# SPDX-License-Identifier: MIT
"""ttdanalyze history and state --address say the same with an index as without"""

import os
import random
import struct

import oracle
import support
from index_doubt import without_doubt
from support import Script, TestCase, run

FAR = 0x10000000  # where the blocks of a churn begin
HEADER = 112  # bytes of a chunk's header
EVENTS = 8


def nested():
    """Blocks inside a block that is live all the time, as an allocator within another has them."""
    script = Script().basics()
    script.alloc(0x1000, 0x1000)
    for step in range(20):
        script.alloc(0x1800, 16 + step, heap=2, stack=3)
        script.free(0x1800, heap=2, stack=4)
    script.free(0x1000)
    return script.close()


class Owners(TestCase):
    """The block that state --address names"""

    def address(self, path, at):
        return self.run_ok("state", "-f", "json", "--at", at, "--address", 0x1801, path).json["address"]

    def test_outer_block(self):
        """Between the blocks of an inner allocator, the address lies in the outer block."""
        path = self.write(nested())
        for event in (0, 2, 20, 40):
            with self.subTest(event=event):
                found = self.address(path, f"#{event}")
                self.assertEqual((found["status"], found["block"]["size"]), ("live", 0x1000))

    def test_inner_block(self):
        path = self.write(nested())
        self.assertEqual(self.address(path, "#21")["block"]["size"], 16 + 10)

    def test_no_block(self):
        """Of the released blocks, the one that was acquired last is told."""
        path = self.write(nested())
        found = self.address(path, "end")
        self.assertEqual((found["status"], found["block"]["size"]), ("freed", 16 + 19))

    def test_next_block(self):
        path = self.write(nested())
        self.assertEqual(self.address(path, "#2")["next"]["size"], 17)
        self.assertIsNone(self.address(path, "#40")["next"])


def payload_of_events(path):
    """The offset and size of the payload of the first chunk of events, as they are read."""
    with open(path, "rb") as file:
        data = file.read()
    offset = 0
    while True:
        kind, = struct.unpack_from("<H", data, offset + 10)
        size, = struct.unpack_from("<I", data, offset + 16)
        padded = (size + 7) & ~7
        if kind == EVENTS:
            return offset + HEADER, padded
        offset += HEADER + padded


class WithIndex(TestCase):
    def check(self, path, *arguments):
        """The answer, which must be the same from the index and from a replay of everything."""
        answers = [run(*arguments, *extra, path) for extra in ((), ("--no-index",))]
        self.assertEqual(answers[0].status, 0, answers[0].errors)
        self.assertEqual(*(answer.status for answer in answers), arguments)
        self.assertEqual(*(without_doubt(path, answer) for answer in answers), arguments)
        return answers[0]

    def index(self, path):
        self.run_ok("index", path)
        self.assertTrue(os.path.exists(path + ".idx"))
        return path

    def test_random_traces(self):
        blocks = 0
        for seed in range(12):
            chance = random.Random(seed)
            path = self.index(self.write(oracle.random_script(chance, 60), f"trace{seed}"))
            positions = oracle.positions(self.run_ok("events", "-f", "json", path).json_lines)
            for first, size in ((0x1000, 1), (0x1fff, 2), (0x2f00, 0x300), (1, 1 << 20)):
                found = self.check(path, "history", "-f", "json", "--address", first,
                                   "--size", size, "--limit", chance.choice((1, 3, 1000)))
                blocks += found.json["total_blocks"]
            for at in chance.sample(positions, 3):
                self.check(path, "state", "--at", oracle.spell(at), "--address", 0x3010)
        self.assertGreater(blocks, 100)

    def test_nested(self):
        path = self.index(self.write(nested()))
        found = self.check(path, "history", "-f", "json", "--address", 0x1801).json
        self.assertEqual(found["total_blocks"], 21)
        self.assertEqual(found["blocks"][0]["size"], 0x1000)
        for at in ("25%", "50%", "end"):
            self.check(path, "state", "--at", at, "--address", 0x1801)

    def test_keyframes(self):
        script = Script().basics()
        script.add("churn", count=400000, slots=500, position="2:0")
        path = self.index(self.write(script.close()))
        owned = 0
        for step in range(4):
            address = FAR + 0x40 * 83 * step
            owned += self.check(path, "history", "-f", "json", "--address", address,
                                "--limit", 5).json["total_blocks"]
            for at in ("1%", "60%", "99.9%"):
                self.check(path, "state", "-f", "json", "--at", at, "--address", address)
        self.assertGreater(owned, 1000)

    def test_moved(self):
        """A reallocation says whether it copied the bytes or mapped the pages."""
        moves = ((0x1000, 0x2008, 2, "copied", ", before that at 0x1000, copied\n"),
                 (0x1000, 0x3000, 1, "copied", ", before that at 0x1000, copied\n"),
                 (0x1000, 0x4000, 2, "remapped",
                  ", before that at 0x1000, its pages mapped here\n"),
                 (0x1000, 0x5000, 0, "unknown", ", before that at 0x1000\n"),
                 (0x1000, 0x1000, 0, None, ", before that at 0x1000\n"))
        for before, after, flags, moved, text in moves:
            script = Script().basics()
            script.alloc(before, 16)
            script.realloc(before, after, 32, flags=flags)
            path = self.write(script.close(), f"{after}{flags}")
            asked = ("history", "--address", hex(after + 8), path)
            block = self.run_ok("history", "-f", "json", *asked[1:]).json["blocks"][-1]
            self.assertEqual((block["previous_address"], block["moved"]), (hex(before), moved))
            self.assertIn(text, self.run_ok(*asked).text)
            row = self.run_ok("history", "-f", "csv", *asked[1:]).csv[-1]
            self.assertEqual((row["previous_address"], row["moved"]), (hex(before), moved or ""))
            state = self.json_of("state", path, "--address", hex(after + 8))
            self.assertEqual(state["address"]["block"]["moved"], moved)

    def test_reallocated_before_the_keyframe(self):
        """A keyframe does not say where a block was reallocated from; its event does."""
        script = Script().basics()
        script.alloc(0x1000, 16)
        script.realloc(0x1000, 0x2000, 32, flags=2)
        script.add("churn", count=400000, slots=500, position="2:0")
        path = self.index(self.write(script.close()))
        found = self.check(path, "state", "-f", "json", "--at", "90%", "--address", 0x2010).json
        block = found["address"]["block"]
        self.assertEqual((block["previous_address"], block["moved"]), ("0x1000", "remapped"))

    def test_starts_at_a_keyframe(self):
        """The events before the keyframe are read only if the answer may be among them."""
        script = Script().basics()
        script.alloc(0x1000, 16)
        script.free(0x1000)
        script.add("churn", count=400000, slots=500, position="2:0")
        path = self.index(self.write(script.close()))
        offset, size = payload_of_events(path)
        count = self.path("count")
        environment = {"LD_PRELOAD": os.environ["COUNT_READS"], "COUNT_AT": str(offset),
                       "COUNT_SIZE": str(size), "COUNT_TO": count}
        for address, reads in ((0x1000, 1), (FAR, 0)):
            run("state", "--at", "90%", "--address", address, path, env=environment)
            with open(count, encoding="ascii") as file:
                self.assertEqual(int(file.read()), reads, hex(address))


if __name__ == "__main__":
    support.main()
