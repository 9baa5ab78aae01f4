# SPDX-License-Identifier: MIT
"""What is lost: info, events, verify and recover say the same, and no verdict is certain but of what
verify calls intact; in every command and every format"""

import os
import pathlib
import random
import subprocess
import sys

sys.path.append(os.path.join(os.environ["TTD_SOURCE"], "tests", "reader"))

import support
from support import Script, TestCase, run
from ttdtrace_reader import Reader
from xxh3 import xxh3

HEADER = 112
VECTORS = pathlib.Path(os.environ["TTD_SOURCE"]) / "tests" / "vectors"
ANALYSES = (("leaks",), ("errors",), ("state",), ("state", "--at", "50%"), ("leaks", "--at", "#3"),
            ("peak",), ("moves",), ("timeline", "--over", "position"), ("hot",), ("temporary",),
            ("lifetimes",), ("diff", "--from", "#1"), ("fragmentation",), ("history", "--address", "0x1000"))


class Chunks:
    """A trace as a list of chunks, to be put together anew."""

    def __init__(self, data):
        self.parts = []
        while data:
            size = HEADER + (int.from_bytes(data[16:20], "little") + 7) // 8 * 8
            self.parts.append(bytearray(data[:size]))
            data = data[size:]

    def of(self, kind):
        return [i for i, part in enumerate(self.parts) if part[10] == kind]

    def seal(self, index):
        part = self.parts[index]
        stored = int.from_bytes(part[16:20], "little")
        if HEADER + stored <= len(part):
            part[96:104] = xxh3(bytes(part[HEADER:HEADER + stored])).to_bytes(8, "little")
        part[104:112] = xxh3(bytes(part[:104])).to_bytes(8, "little")

    def renumber(self):
        """Numbers, offsets and hashes as if nothing had happened."""
        offset = 0
        for number, part in enumerate(self.parts):
            part[32:40] = number.to_bytes(8, "little")
            part[40:48] = offset.to_bytes(8, "little")
            self.seal(number)
            offset += len(part)
        return self

    def data(self):
        return b"".join(self.parts)


class Said(TestCase):
    """What each command says of the losses of a file."""

    def losses_of(self, path):
        """What the second reader makes of it, as info says it: a list, or None if it is no trace."""
        reader = Reader(pathlib.Path(path).read_bytes(), True)
        lines, status, _ = reader.read()
        self.is_closed = reader.closed
        if reader.trace_id is None or (status == "truncated" and not lines):
            return None
        found = []
        for line in lines:
            if line.startswith("loss "):
                fields = dict(part.split("=") for part in line.split()[1:])
                count = int(fields["count"], 16)
                found.append([None if count == 2**64 - 1 else count, self.position(fields["last"]),
                              self.position(fields["first"])])
        if not reader.ended and (not found or found[-1][0] is not None):
            found.append([None, "{:X}:{:X}".format(*reader.position), None])
        return found

    @staticmethod
    def position(text):
        sequence, steps = (int(part, 16) for part in text.split(":"))
        return None if sequence == 2**64 - 1 else f"{sequence:X}:{steps:X}"

    def said_by_info(self, path):
        result = run("info", "-f", "json", path)
        if not result.raw:
            return result, None
        found = result.json
        losses = [[one["events"], one["last_good"], one["first_good"]] for one in found["loss_list"]]
        known = [count for count, *_ in losses if count is not None]
        self.assertEqual(found["lost_events"], sum(known))
        self.assertEqual(found["lost_events_exact"], len(known) == len(losses))
        self.assertEqual(found["end_reason"] is not None, found["closed"])
        return result, losses

    @staticmethod
    def told_by(verify):
        """The losses of events that verify tells of."""
        return [[one["missing_events"], one["last_good"], one["first_good"]]
                for one in verify["problems"] if one["missing_events"] != 0]

    def check(self, name, path):
        info, losses = self.said_by_info(path)
        verify = run("verify", "-f", "json", path)
        target = self.path("recovered")
        pathlib.Path(target).unlink(missing_ok=True)
        recover = run("recover", "-f", "json", "-o", target, path)
        listing = run("events", "-f", "json", path)
        self.assertEqual(losses, self.losses_of(path), name)
        if losses is None:
            statuses = {one.status for one in (info, verify, recover, listing)}
            self.assertEqual(len(statuses), 1, (name, statuses))
            self.assertGreaterEqual(statuses.pop(), support.OPEN)
            return False
        found = verify.json
        self.assertEqual((info.json["closed"], found["closed"]), (self.is_closed, self.is_closed), name)
        is_intact = found["ok"]
        self.assertEqual(verify.status, 0 if is_intact else 1)
        # Verify: the same numbers, at one of the problems that each loss is made of.
        self.assertEqual(self.told_by(found), [one for one in losses if one[0] != 0], name)
        self.assertEqual(found["lost_events"], sum(count or 0 for count, *_ in losses), name)
        # Events: as many as are neither lost nor unread, with a warning for each loss.
        self.assertEqual(len(listing.json_lines), found["events"], name)
        self.assertEqual(bool(listing.errors), not is_intact, (name, listing.errors))
        closed = [found["closed"], info.json["closed"], recover.json["closed"]]
        self.assertEqual(len(set(closed)), 1, (name, closed))
        # Recover: the losses as records, in a trace that is intact.
        self.assertEqual((recover.json["events"], recover.json["lost_events"], recover.json["ok"]),
                         (found["events"], found["lost_events"], is_intact), name)
        self.assertEqual(self.said_by_info(target)[1], losses, name)
        self.assertEqual(run("verify", target).status, 0, name)
        return is_intact


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
        """No event is certain that is behind a loss, or a part of one."""
        for name, data, losses in self.damaged():
            path = self.path("gap.ttd")
            pathlib.Path(path).write_bytes(data)
            with self.subTest(name):
                rows = run("events", "-f", "json", path).json_lines
                count, last_good, _ = losses[0]
                wrong = [row["number"] for row in rows
                         if row["certain"] == (count != 0 and self.is_behind(row, last_good))]
                self.assertEqual(wrong, [])
                found = run("info", "-f", "json", path).json
                self.assertEqual((found["events"], found["certain"]), (len(rows), False))

    @staticmethod
    def is_behind(row, last_good):
        def pair(text):
            return tuple(int(part, 16) for part in text.split(":"))
        return pair(row["time_start"]) > pair(last_good)


class Search(TestCase):
    """What never ends is not searched for ever, and that is said."""

    def test_devices(self):
        for command in ("info", "leaks", "verify"):
            result = run(command, "/dev/zero")
            self.assertEqual(result.status, support.OPEN)
            self.assertIn("/dev/zero: offset 0x0: not a trace", result.errors)

    def test_sparse_tail(self):
        script = Script().basics()
        script.alloc(0x1000, 1)
        for closes in (True, False):
            path = self.write(script.close() if closes else script.abandon(), f"{closes}")
            script.lines.pop()
            os.truncate(path, 1 << 40)
            result = self.run_ok("leaks", "-f", "json", path)
            self.assertEqual((result.json["total_blocks"], result.json["certain"]), (1, False))
            self.assertIn("was not read to its end", result.json["reasons"][-1])
            self.assertIn("no intact chunk in all that was searched", result.errors)
            found = run("verify", "-f", "json", path).json
            self.assertEqual(found["problems"][-1]["what"],
                             "no intact chunk in all that was searched")
            self.assertEqual((found["ok"], found["closed"]), (False, False))
            self.assertEqual(found["problems"][0]["missing_events"], 0 if closes else None)


class Numbers(TestCase):
    """What is not known, or too large."""

    def test_sums(self):
        script = Script(time_unit=1).basics()
        for i in range(3):
            script.alloc(0x1000 * (i + 1), 2**64 - 1, wall=i * 1000000)
        path = self.write(script.close())
        self.assertIn("3 blocks, at least 18,446,744,073,709,551,615 bytes",
                      self.run_ok("leaks", path).text)
        rate = self.json_of("timeline", path)["points"][-1]["bytes_per_second"]
        self.assertGreater(rate, 2**64)
        text = self.run_ok("timeline", "--plot", "allocated", path).text.splitlines()[-1]
        self.assertIn(f"{rate:.3g} bytes/s", text)
        self.assertEqual(self.json_of("info", path)["bytes_requested"], str(2**64 - 1))

    def test_last_call(self):
        script = Script(time_unit=1).basics()
        for i, wall in enumerate((10, 5000, 70)):
            script.alloc(0x1000 * (i + 1), 1, wall=wall)
        path = self.write(script.close())
        self.assertEqual(self.json_of("info", path)["last_wall_time_ns"], 70)

    def test_parameters(self):
        script = Script().basics()
        script.event("Alloc", address=0x1000, size=8, api=8)
        script.event("Alloc", address=0x2000, size=8, api=1)
        path = self.write(script.close())
        rows = self.run_ok("events", "--parameters", "-f", "json", path).json_lines
        self.assertEqual([row["parameters"] for row in rows], [None, ["0x8"]])
        self.assertIn("{?}", self.run_ok("events", "--parameters", path).text)


class Descriptors(TestCase):
    """Messages go nowhere when nobody listens, and never into a file of ours."""

    def test_closed(self):
        script = Script(events_per_chunk=4, codec=0).basics()
        for i in range(40):
            script.alloc(0x1000 + 16 * i, 1)
        path = self.write(script.close())
        with open(path, "rb") as file:
            chunks = Chunks(file.read())
        chunks.parts[chunks.of(8)[2]][HEADER + 3] ^= 1
        with open(path, "wb") as file:
            file.write(chunks.data())
        for closed in ("2>&-", "0<&-", "0<&- 2>&-", "0<&- 1>&- 2>&-"):
            target = self.path("recovered")
            subprocess.run(["sh", "-c", f'"$0" recover -o "$1" "$2" {closed}', support.ANALYZER,
                            target, path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           check=False)
            self.assertEqual(run("verify", target).status, 0, closed)
            os.unlink(target)
        # Output that nobody gets is a failure.
        status = subprocess.run(["sh", "-c", '"$0" info "$1" >&-', support.ANALYZER, path],
                                stderr=subprocess.DEVNULL, check=False).returncode
        self.assertEqual(status, support.INTERNAL)


if __name__ == "__main__":
    support.main()
