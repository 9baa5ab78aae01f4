# SPDX-License-Identifier: MIT
"""Damaged copies of a trace, and what each command says of their losses"""

import os
import pathlib
import sys

sys.path.append(os.path.join(os.environ["TTD_SOURCE"], "tests", "reader"))

import support
from support import TestCase, run
from ttdtrace_reader import Reader
from xxh3 import xxh3

HEADER = 112
VECTORS = pathlib.Path(os.environ["TTD_SOURCE"]) / "tests" / "vectors"


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
    """The answer of each command about the losses of a file."""

    def losses_of(self, path):
        """The second reader's answer, in the form of info: a list, or None if it is no trace."""
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
        # Damage may have hit a record of a loss.
        is_damaged = any("damage" in one["reason"] for one in found["loss_list"])
        self.assertEqual(found["lost_events_exact"], len(known) == len(losses) and not is_damaged)
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
