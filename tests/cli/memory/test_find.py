# SPDX-License-Identifier: MIT
"""ttdanalyze find: a search of memory"""

import struct

import support
from support import TestCase, run
from memory_support import PAGE, Snapshots


class Find(TestCase):
    def script(self):
        script = Snapshots().basics()
        script.alloc(0x1010, 40)
        script.alloc(0x1400, 64, stack=3)
        first = bytearray(PAGE)
        first[0x18:0x20] = struct.pack("<Q", 0x1410)
        first[0x40:0x48] = struct.pack("<Q", 0x1400)
        first[0x48:0x50] = struct.pack("<Q", 0x1440)
        first[0x61:0x69] = struct.pack("<Q", 0x1410)
        first[-3:] = b"hel"
        script.pages(bytes(first), b"lo hello" + b"." * 500 + b"end\x01")
        script.memory((0x1000, 2, 3), (0x1400, 1, 0), (0x4000, 1, 1))
        return script

    def places(self, path, *arguments):
        found = self.json_of("find", path, *arguments)
        return [(p["address"], p["block"] and p["block"]["address"]) for p in found["places"]]

    def test_string(self):
        path = self.write(self.script().close())
        self.assertEqual(self.places(path, "--string", "hello"),
                         [("0x11fd", None), ("0x1203", None)])
        self.assertEqual(self.places(path, "--string", "lo", "--limit", "1"), [("0x1200", None)])
        found = self.json_of("find", path, "--string", "hello", "--limit", "1")
        self.assertEqual((found["total_places"], len(found["places"]), found["searched_bytes"],
                          found["unreadable_bytes"]), (2, 1, 1536, 512))

    def test_certain(self):
        """Nothing is certainly nowhere unless all was searched."""
        found = self.json_of("find", self.write(self.script().close()), "--string", "absent")
        self.assertEqual((found["total_places"], found["certain"], found["reasons"]),
                         (0, False, ["512 bytes of memory could not be read"]))
        for number, (fields, reason) in enumerate((
                ({"flags": 1}, None),
                ({"flags": 3}, "snapshot 1 is not complete: contents of memory are missing"),
                ({"flags": 3, "missing": 4096},
                 "snapshot 1 is not complete: contents of memory are missing"),
                (None, "nothing was searched: the trace has no snapshot of memory at this position or "
                       "before"))):
            script = Snapshots().basics()
            script.alloc(0x1010, 40)
            script.pages(b"A" * PAGE)
            if fields is not None:
                script.memory((0x1000, 1, 3), **fields)
            path = self.write(script.close(), f"{number}.ttd")
            found = self.json_of("find", path, "--string", "absent")
            self.assertEqual((found["total_places"], found["certain"], found["reasons"]),
                             (0, reason is None, [reason] if reason else []))

    def test_bytes(self):
        path = self.write(self.script().close())
        self.assertEqual(self.places(path, "--bytes", "6c6F 20"), [("0x1200", None)])
        # Beyond a page of bytes into one of zeros.
        self.assertEqual(self.places(path, "--bytes", "01 00 00"), [("0x13ff", None)])
        self.assertEqual(self.places(path, "--bytes", "65 6e 64 01" + "00" * 512),
                         [("0x13fc", None)])
        self.assertEqual(self.places(path, "--bytes", "65 6e 64 01" + "00" * 513), [])
        for wrong in ("6", "xy", "", "00 00", "0" * 9000):
            self.assertEqual(run("find", "--bytes", wrong, path).status, support.USAGE, wrong)

    def test_words(self):
        path = self.write(self.script().close())
        self.assertEqual(self.places(path, "--address", "0x1410"), [("0x1018", "0x1010")])
        self.assertEqual(self.places(path, "--pointer-to", "0x1404"),
                         [("0x1018", "0x1010"), ("0x1040", None)])
        found = self.json_of("find", path, "--pointer-to", "0x143f")
        self.assertEqual(found["target"]["address"], "0x1400")
        self.assertEqual([p["value"] for p in found["places"]], ["0x1410", "0x1400"])

    def test_across_snapshots(self):
        """Bytes that two snapshots have side by side were never there at one time."""
        script = self.script()
        script.pages(b"l." + b"-" * 510)
        script.memory((0x1200, 1, 5))
        path = self.write(script.close())
        self.assertEqual(self.places(path, "--string", "hell"), [])
        self.assertEqual(self.places(path, "--string", "hell", "--at", "2:0"),
                         [("0x11fd", None), ("0x1203", None)])

    def test_text(self):
        path = self.write(self.script().close())
        text = self.run_ok("find", "--pointer-to", "0x1400", path).text
        self.assertIn("2 places at 1:0", text)
        self.assertIn("1,536 bytes searched; 512 bytes could not be read", text)
        self.assertRegex(text, r"  0x1018 has 0x1410, 8 bytes into block 0x1010, 40 bytes by g")
        text = self.run_ok("find", "--string", "x", "--at", "0:1", path).text
        self.assertIn("The trace has no snapshot of memory at this position or before", text)

    def test_usage(self):
        path = self.write(self.script().close())
        self.assertEqual(run("find", path).status, support.USAGE)
        self.assertEqual(run("find", "--string", "a", "--address", "1", path).status,
                         support.USAGE)


if __name__ == "__main__":
    support.main()
