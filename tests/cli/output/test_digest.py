# SPDX-License-Identifier: MIT
"""digest: a line for each trace, whose sums equal the sums of other commands, and fingerprints by the
algorithm of spec/json.md."""

import ctypes
import ctypes.util
import json
import os
import struct
import unittest

from snapshot_support import IN_BSS, SnapshotScript
from support import DAMAGED, OPEN, USAGE, Script, TestCase, run

SITE_SUMS = ("allocations", "allocated_bytes", "temporary", "temporary_bytes", "live_blocks",
             "live_bytes", "lost_blocks", "lost_bytes", "possibly_lost_blocks",
             "possibly_lost_bytes")


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


def xxh3(data):
    library = ctypes.CDLL(ctypes.util.find_library("xxhash"))
    library.XXH3_128bits.restype = Hash128
    library.XXH3_128bits.argtypes = ctypes.c_char_p, ctypes.c_size_t
    found = library.XXH3_128bits(data, len(data))
    return found.high, found.low


def chain(before, after):
    return xxh3(struct.pack("<4Q", *before, *after))


def fingerprint(frames):
    """Of frames from the outermost inward: a canonical name; a number for an offset without a name;
    None for nowhere. Runtimes and the standard library are the table's, not this model's."""
    value = last = (0, 0)
    for frame in frames:
        own = xxh3(b"?" if frame is None else b"+" + struct.pack("<Q", frame)
                   if isinstance(frame, int) else frame.encode())
        if frame == "_start" or frame == "main":
            value = last = (0, 0)
        if frame == "_start" or (own == last and frame is not None):
            continue
        value, last = chain(value, own), own
    return "%016x%016x" % value


class Digest(TestCase):
    def digest(self, *arguments):
        line, = self.run_ok("digest", *arguments).json_lines
        return line

    def busy(self):
        """Blocks of six sites; of the first one, some are lost and some only possibly."""
        script = SnapshotScript().basics()
        script.add("metadata", key="host", value="box")
        script.add("metadata", key="command", value="demo%20--all")
        for stack in range(1, 7):
            offset = 0x1000 * stack
            script.add("stack", parent=1, module=1, offset=offset)
            script.add("symbol", module=1, offset=offset, frames=f"make{stack}@a.c@{stack}")
        for number in range(30):
            address = 0x10000 + 0x1000 * number
            script.alloc(address, 10 + number, stack=5 + number % 6)
            if number % 3 == 0:
                script.free(address)
        script.realloc(0x11000, 0x90000, 500, stack=6)
        script.free(0xdead)
        return script

    def leaking(self):
        script = self.busy()
        script.snapshot((IN_BSS, 0, 0x12000), (IN_BSS, 8, 0x14008))
        return self.write(script.close(code=0), "leaking.ttd")

    def test_identity(self):
        path = self.leaking()
        found = self.digest(path)
        info = self.json_of("info", path)
        for name in ("file_bytes", "events", "lost_events", "threads", "end_reason", "end_code",
                     "last_wall_time_ns", "lost_events_exact"):
            self.assertEqual(found[name], info[name], name)
        for name in ("trace_id", "group", "start_time", "process_id", "architecture"):
            self.assertEqual(found[name], info["trace"][name], name)
        self.assertEqual((found["host"], found["command"], found["program"], found["build_id"]),
                         ("box", "demo --all", "demo", "00ff12"))
        self.assertEqual((found["digest"], found["system"]), (1, None))

    def check_sums(self, path):
        """The sums equal the sums that other commands print."""
        found = self.digest(path)
        hot = self.json_of("hot", path)
        leaks = self.json_of("leaks", path, "--show", "all")
        peak = self.json_of("peak", path)
        moves = self.json_of("moves", path)
        self.assertEqual((found["allocations"], found["allocated_bytes"]),
                         (hot["allocations"], hot["bytes"]))
        self.assertEqual((found["temporary"], found["temporary_bytes"]),
                         (hot["temporary"], hot["temporary_bytes"]))
        for name in ("blocks", "bytes"):
            self.assertEqual(found[f"live_{name}"],
                             sum(kind[name] for kind in leaks["classes"].values())
                             if leaks["classes"] else
                             leaks[f"total_{name}"] + leaks[f"unknown_{name}"])
        self.assertEqual((found["peak_blocks"], found["peak_bytes"]),
                         (peak["live_blocks"], peak["live_bytes"]))
        self.assertEqual((found["reallocs"], found["moved"], found["copied_bytes"]),
                         (moves["reallocs"], moves["moved"], moves["bytes_copied"]))
        self.assertEqual(found["errors"], self.json_of("errors", path)["total_calls"])
        for name in ("certain", "reasons"):
            self.assertEqual(found[name], leaks[name])
        return found, leaks

    def test_sums(self):
        found, leaks = self.check_sums(self.leaking())
        classes = leaks["classes"]
        lost = classes["definitely_lost"], classes["indirectly_lost"]
        self.assertEqual(found["lost_blocks"], sum(kind["blocks"] for kind in lost))
        self.assertEqual(found["lost_bytes"], sum(kind["bytes"] for kind in lost))
        self.assertEqual((found["possibly_lost_blocks"], found["possibly_lost_bytes"]),
                         (classes["possibly_lost"]["blocks"], classes["possibly_lost"]["bytes"]))
        self.assertTrue(found["lost_blocks"] and found["possibly_lost_blocks"])

    def test_without_a_snapshot_nobody_knows_what_is_lost(self):
        found, _ = self.check_sums(self.write(self.busy().close()))
        for record in (found, found["others"], *found["sites"]):
            self.assertEqual([record[name] for name in SITE_SUMS[6:]], [None] * 4)

    def test_uncertain(self):
        script = self.busy()
        script.add("loss", reason=1, first="0:0", last="9:0", count=3)
        found, _ = self.check_sums(self.write(script.abandon()))
        self.assertFalse(found["certain"])
        self.assertIsNone(found["end_reason"])

    def test_sites_and_others_add_up(self):
        path = self.leaking()
        whole = self.digest(path, "--sites", "0")
        self.assertEqual(whole["others"]["sites"], 0)
        for limit in (1, 3, 100):
            found = self.digest(path, "--sites", str(limit))
            self.assertEqual(found["sites"], whole["sites"][:limit])
            self.assertEqual(len(found["sites"]) + found["others"]["sites"], len(whole["sites"]))
            for name in SITE_SUMS:
                self.assertEqual(sum(site[name] for site in found["sites"]) +
                                 found["others"][name], found[name], name)
        shares = [max(site[name] / found[name] for name in SITE_SUMS if found[name])
                  for site in whole["sites"]]
        self.assertEqual(shares, sorted(shares, reverse=True))

    def test_fingerprints(self):
        """By the algorithm of the specification; stacks that have the same are one site."""
        script = Script().basics()
        frames = {1: ["main"], 2: ["main", "f::run", "g"], 3: ["main", 0x300],
                  4: ["main", 0x300, None]}
        for stack, offset, parent, name in ((5, 0x400, 0, "_start"), (6, 0x500, 5, "main"),
                                            (7, 0x600, 6, "_ZN1a1fIPKcEEvi"), (8, 0x610, 7, ""),
                                            (9, 0x620, 6, "_ZN1a1fIPKcEEvi")):
            script.add("stack", parent=parent, module=1, offset=offset)
            if name:
                script.add("symbol", module=1, offset=offset, frames=f"{name}@x.c@{stack}")
        frames.update({7: ["_start", "main", "a::f<char*>"],
                       8: ["_start", "main", "a::f<char*>", 0x610]})
        for number, stack in enumerate([*frames, 9]):
            script.alloc(0x1000 * (number + 1), 1 << number, stack=stack)
        found = {site["fingerprint"]:
                 (site["allocations"], site["allocated_bytes"], site["function"])
                 for site in self.digest(self.write(script.close()))["sites"]}
        expected = {fingerprint(names): (1, 1 << number, names[-1] if number in (0, 4) else None)
                    for number, names in enumerate(frames.values())}
        self.assertEqual(len(found), len(expected))
        self.assertEqual(set(found), set(expected))
        self.assertEqual(found[fingerprint(frames[7])], (2, 16 + 64, "a::f<char*>"))
        self.assertEqual(found[fingerprint(frames[2])][2], "g")

    def test_several_traces(self):
        first, second = self.leaking(), self.write(Script(id=5).basics().close(), "second.ttd")
        found = self.run_ok("digest", first, second).json_lines
        self.assertEqual([line["trace_id"] for line in found][1:], ["0x5"])
        self.assertEqual(found[0], self.digest(first))
        with open(self.path("other.ttd"), "wb") as file:
            file.write(b"no trace at all")
        for arguments, status in (((first, self.path("other.ttd"), second), None),
                                  ((first, self.path("missing"), second), OPEN)):
            result = run("digest", *arguments)
            self.assertIn(result.status, (OPEN, DAMAGED) if status is None else (status,))
            self.assertEqual(result.json_lines, found)
            self.assertIn(os.path.basename(arguments[1]), result.errors)

    def test_output(self):
        path = self.leaking()
        line = self.run_ok("digest", path).raw
        self.run_ok("digest", path, "-o", self.path("out.json"))
        with open(self.path("out.json"), "rb") as file:
            self.assertEqual(file.read(), line)
        for trace in (path, self.path("out.json")):
            self.assertNotEqual(run("digest", path, self.path("out.json"), "-o", trace).status, 0)
        for form in ("csv", "folded", "sarif"):
            self.assertEqual(run("digest", "-f", form, path).status, USAGE)
        self.assertEqual(self.run_ok("digest", "-f", "json", path).raw, line)

    def test_names(self):
        """Hostile names stay in their strings, on one line."""
        script = Script().basics()
        script.add("metadata", key="host", value="%0a%22%1b%ff")
        script.add("stack", parent=1, module=1, offset=0x900)
        script.add("symbol", module=1, offset=0x900, frames="a%0a%22b@x.c@1")
        script.alloc(0x1000, 10, stack=5)
        text = self.run_ok("digest", self.write(script.close())).text
        self.assertEqual((text.count("\n"), text.isascii() or "\ufffd" in text), (1, True))
        found = json.loads(text)
        self.assertEqual(found["host"], '\n"\x1b\ufffd')
        self.assertEqual(found["sites"][0]["function"], 'a\n"b')


if __name__ == "__main__":
    unittest.main()
