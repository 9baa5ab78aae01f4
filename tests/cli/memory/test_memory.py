# SPDX-License-Identifier: MIT
"""ttdanalyze memory, find and snapshots: what snapshots of memory tell, and what they do not."""

import os
import struct

import support
from support import Script, TestCase, run
from memory_support import PAGE, REFERENCES, Snapshots


def bytes_of(found):
    """The known bytes of a report by address, and the states of all parts."""
    known = {}
    for part in found["parts"]:
        if part["bytes"] is not None:
            known[int(part["address"], 16)] = bytes.fromhex(part["bytes"])
    return known, [(part["address"], part["size"], part["state"],
                    part["snapshot"] and part["snapshot"]["number"]) for part in found["parts"]]


class Memory(TestCase):
    def script(self):
        script = Snapshots().basics()
        script.alloc(0x1010, 40)
        script.alloc(0x1038, 24, stack=3)
        script.pages(b"A" * PAGE, b"B" * 16 + b"\0" * 480 + b"C" * 16)
        script.memory((0x1000, 2, 3), (0x2000, 4, 0), (0x4000, 1, 1), duration=1500)
        script.alloc(0x1100, 8)
        script.pages(b"D" * PAGE)
        script.memory((0x1000, 1, 5), (0x1200, 1, 2), flags=0, reason=1)
        return script

    def test_newest(self):
        """Each page is as the newest snapshot before has it, and no later one."""
        path = self.write(self.script().close())
        known, parts = bytes_of(self.json_of("memory", path, "--address", "0x1000", "--length",
                                             "1K"))
        self.assertEqual(parts, [("0x1000", 512, "bytes", 2), ("0x1200", 512, "bytes", 1)])
        self.assertEqual(known[0x1000], b"D" * PAGE)
        self.assertEqual(known[0x1200], b"B" * 16 + b"\0" * 480 + b"C" * 16)
        found = self.json_of("memory", path, "--address", "0x1000", "--length", "1K", "--at",
                             "2:0")
        self.assertEqual(bytes_of(found)[1],
                         [("0x1000", 512, "bytes", 1), ("0x1200", 512, "bytes", 1)])
        found = self.json_of("memory", path, "--address", "0x1000", "--at", "1:3")
        self.assertEqual(bytes_of(found), ({}, [("0x1000", 256, "unknown", None)]))

    def test_behind_an_inner_block(self):
        """Memory behind a block of a pool is of the block that the pool lies in."""
        pool = 3
        script = Snapshots().basics()
        script.add("heap", name="pool", handle=0x1000, parent=1)
        script.alloc(0x1000, 256)
        script.alloc(0x1000, 16, heap=pool)
        script.alloc(0x1040, 32, heap=pool)
        marked = (0, 0x20, 0x48, 0x68, 0xf8, 0x100)
        script.pages(b"".join(struct.pack("<Q", 7 if i in marked else 0)
                              for i in range(0, PAGE, 8)))
        script.memory((0x1000, 1, 3))
        found = self.json_of("find", self.write(script.close()), "--address", "0x7")
        self.assertEqual([match["block"] and match["block"]["size"] for match in found["places"]],
                         [16, 256, 32, 256, 256, None])

    def test_what_a_doubtful_snapshot_tells(self):
        """Threads that ran on, or missing memory, make uncertain only what rests on the snapshot."""
        def certain(command, *arguments):
            return self.json_of(command, path, *arguments)["certain"]
        script = Snapshots().basics()
        script.pages(b"A" * PAGE, b"B" * PAGE)
        script.memory((0x1000, 2, 3), (0x3000, 1, 3))
        script.memory((0x1000, 1, 3), flags=0)
        path = self.write(script.close())
        self.assertFalse(certain("memory", "--address", "0x1000"))
        self.assertTrue(certain("memory", "--address", "0x1200"))
        self.assertFalse(certain("find", "--string", "AAAA"))
        script = Snapshots().basics()
        script.pages(b"A" * PAGE, b"B" * PAGE)
        script.memory((0x1000, 1, 3), flags=3)
        script.memory((0x1000, 2, 3))
        path = self.write(script.close(), "incomplete.ttd")
        self.assertTrue(certain("memory", "--address", "0x1000", "--length", "1K"))
        self.assertFalse(certain("memory", "--address", "0x1000", "--length", "1025"))
        self.assertFalse(certain("find", "--string", "AAAA"))

    def test_states(self):
        path = self.write(self.script().close())
        found = self.json_of("memory", path, "--address", "0x1fff", "--length", "0x2202")
        self.assertEqual(bytes_of(found)[1],
                         [("0x1fff", 1, "unknown", None), ("0x2000", 2048, "zero", 1),
                          ("0x2800", 0x1800, "unknown", None), ("0x4000", 512, "unreadable", 1),
                          ("0x4200", 1, "unknown", None)])

    def test_parts_of_pages(self):
        path = self.write(self.script().close())
        known, _ = bytes_of(self.json_of("memory", path, "--address", "0x13ee", "--length", "4"))
        self.assertEqual(known, {0x13ee: b"\0\0CC"})

    def test_cut_short(self):
        """A map without its snapshot is not used."""
        script = self.script()
        script.pages(b"E" * PAGE)
        script.memory((0x1000, 1, 6), is_complete=False)
        path = self.write(script.close())
        _, parts = bytes_of(self.json_of("memory", path, "--address", "0x1000"))
        self.assertEqual(parts, [("0x1000", 256, "bytes", 2)])
        found = self.json_of("snapshots", path)
        self.assertEqual((len(found["snapshots"]), found["cut_short"]), (2, 1))

    def test_blocks(self):
        path = self.write(self.script().close())
        found = self.json_of("memory", path, "--address", "0x1037", "--length", "8")
        self.assertEqual([(b["address"], b["size"]) for b in found["blocks"]],
                         [("0x1010", 40), ("0x1038", 24)])
        self.assertEqual(found["blocks"][0]["allocated"]["api"], "malloc")

    def test_text(self):
        path = self.write(self.script().close())
        lines = self.run_ok("memory", "--address", "0x1000", "--length", "0x130", path,
                            "--at", "2:1").text.splitlines()
        self.assertIn("as of snapshot 1 at 2:0", lines[1])
        self.assertRegex(lines[2], r"^0x1000 +41 41 41 41 41 41 41 41  41 .* 41   A{16}$")
        self.assertRegex(lines[3], r"^block 0x1010, 40 bytes by g\(int\) \(g.h:5\) in demo "
                                   r"\(inlined\), allocated by malloc\(\) at 0:2 in thread 1$")
        self.assertRegex(lines[4], r"^0x1010 +\[41 41")
        self.assertEqual(lines[5], "*")
        self.assertIn("block 0x1038, 24 bytes", lines[6])
        self.assertRegex(lines[7], r"^0x1030 +41 41 41 41 41 41 41 41 \|41 41.* 41   A{16}$")
        self.assertRegex(lines[8], r"^0x1040 .*41\]  A{16}$")
        self.assertEqual(lines[9], "*")
        self.assertIn("304 bytes, of which 304 are known", lines[-1])

    def test_older_than_block(self):
        """The block was allocated after the snapshot that has its place."""
        script = Snapshots().basics()
        script.pages(b"A" * PAGE)
        script.memory((0x1000, 1, 3))
        script.alloc(0x1010, 40)
        path = self.write(script.close())
        text = self.run_ok("memory", "--address", "0x1000", path).text
        self.assertIn("the snapshot is older, and has what was there before", text)
        self.assertNotIn("is older", self.run_ok("memory", "--address", "0x1000", self.write(
            self.script().close(), "other.ttd")).text)

    def test_torn(self):
        text = self.run_ok("memory", "--address", "0x1000", self.write(self.script().close())).text
        self.assertIn("snapshot 2 at 3:0, taken while the program ran: parts may be of different",
                      text)

    def test_torn_is_uncertain(self):
        path = self.write(self.script().close())
        for arguments in (("memory", "--address", "0x1000"), ("find", "--string", "D")):
            found = self.json_of(arguments[0], path, *arguments[1:])
            self.assertEqual((found["certain"], [r[:37] for r in found["reasons"]][:1]),
                             (False, ["threads ran on while snapshot 2 was t"]))
            before = self.json_of(arguments[0], path, *arguments[1:], "--at", "2:0",
                                  "--no-index")
            self.assertNotIn("threads ran on", str(before["reasons"]))
            rows = self.run_ok(*arguments, path, "-f", "csv").csv
            self.assertEqual({row["certain"] for row in rows}, {"false"})

    def test_raw(self):
        path = self.write(self.script().close())
        target = self.path("raw")
        result = self.run_ok("memory", "--address", "0x11f0", "--length", "0x220", "--raw", "-o",
                             target, path)
        with open(target, "rb") as file:
            self.assertEqual(file.read(), b"D" * 16 + b"B" * 16 + b"\0" * 480 + b"C" * 16 +
                             b"\0" * 16)
        self.assertEqual(os.stat(target).st_mode & 0o777, 0o600)
        self.assertIn("16 of 544 bytes are not known, and are written as zeros", result.errors)
        self.assertEqual(run("memory", "--address", "1", "--raw", path).status, support.USAGE)

    def test_csv(self):
        path = self.write(self.script().close())
        rows = self.run_ok("memory", "--address", "0x1fff", "--length", "2", "-f", "csv", path).csv
        self.assertEqual([(r["address"], r["size"], r["state"], r["snapshot"], r["bytes"])
                          for r in rows],
                         [("0x1fff", "1", "unknown", "", ""), ("0x2000", "1", "zero", "1", "")])
        rows = self.run_ok("memory", "--address", "0x11fe", "--length", "4", "-f", "csv", path).csv
        self.assertEqual([r["bytes"] for r in rows], ["4444", "4242"])

    def test_damaged(self):
        """Pages that are damaged are unknown, and the answer is not certain."""
        path = self.write(self.script().close())
        with open(path, "r+b") as file:
            data = file.read()
            at = data.index(struct.pack("<II", PAGE, 0) + b"D") if b"D" * 8 in data else None
            if at is None:      # compressed: its chunk is the last one of pages
                at = [i for i in range(0, len(data), 8)
                      if data[i:i + 12] == b"\x89TTDH\r\n\x1a\x01\0\x0c\0"][-1] + 112
            file.seek(at + 4)
            file.write(b"X")
        found = self.json_of("memory", path, "--address", "0x1000")
        self.assertEqual(bytes_of(found)[1], [("0x1000", 256, "damaged", 2)])
        self.assertFalse(found["certain"])

    def test_extremes(self):
        path = self.write(self.script().close())
        found = self.json_of("memory", path, "--address", "0xffffffffffffffff", "--length", "1")
        self.assertEqual(bytes_of(found)[1], [("0xffffffffffffffff", 1, "unknown", None)])
        result = run("memory", "--address", "0xffffffffffffffff", "--length", "2", path)
        self.assertEqual(result.status, support.USAGE)
        self.assertEqual(run("memory", path).status, support.USAGE)


class SnapshotList(TestCase):
    def script(self):
        script = Memory.script(self)
        script.add("regions", snapshot=3, regions="1:0x1000:0x1000,2:0x500000:0x100:0:1:.bss")
        script.add("references", snapshot=3, words="1:16:0x1038,2:8:0x1010")
        script.add("snapshot", number=3, position="4:0", contents=REFERENCES, flags=7, missing=99,
                   reason=4, duration=2500000, thread=1, wall=1250000000)
        return script

    def test_list(self):
        found = self.json_of("snapshots", self.write(self.script().close()))
        keys = ("number", "position", "reason", "stopped", "complete", "missing_bytes", "held_ns",
                "copied", "contents", "regions", "references", "mapped_bytes", "page_bytes")
        self.assertEqual([tuple(s[key] for key in keys) for s in found["snapshots"]], [
            (1, "2:0", "exit", True, True, 0, 1500, False, ["memory"], 0, 0, 3072, 1024),
            (2, "3:0", "requested", False, True, 0, 0, False, ["memory"], 0, 0, 512, 512),
            (3, "4:0", "exit", True, False, 99, 2500000, True, ["references"], 2, 2, 0, 0)])
        self.assertTrue(all(s["stored_bytes"] > 0 for s in found["snapshots"]))
        self.assertTrue(found["certain"])

    def test_text(self):
        text = self.run_ok("snapshots", self.write(self.script().close())).text
        self.assertIn("3 snapshots\n", text)
        self.assertIn("snapshot 3 at 4:0, incomplete: 99 bytes left out, at the end of the "
                      "program (thread 1)\n  references (2 in 2 regions)\n", text)
        self.assertIn("taken after 1.25 s; the program was held for 2.50 ms, all threads stopped, "
                      "and copied\n", text)
        self.assertIn("memory (3,072 bytes, 1,024 of them stored)", text)

    def test_csv(self):
        rows = self.run_ok("snapshots", "-f", "csv", self.write(self.script().close())).csv
        self.assertEqual([(r["number"], r["wall_time_ns"], r["references"], r["memory"], r["copied"])
                          for r in rows],
                         [("1", "0", "", "true", "false"), ("2", "0", "", "true", "false"),
                          ("3", "1250000000", "2", "false", "true")])

    def test_none(self):
        path = self.write(Script().basics().close())
        self.assertEqual(self.json_of("snapshots", path)["snapshots"], [])
        self.assertIn("0 snapshots", self.run_ok("snapshots", path).text)


if __name__ == "__main__":
    support.main()
