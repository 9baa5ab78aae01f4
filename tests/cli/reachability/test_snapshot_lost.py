# SPDX-License-Identifier: MIT
"""A snapshot of which the file has lost a part: whatever that part held is not called lost for
certain, not even when the trace was recovered and is intact."""

import support
from snapshot_support import IN_BSS, IN_STACK, SnapshotCase, SnapshotScript
from support import run

HEADER = 112
REGIONS, PACKED_REFERENCES = 20, 27
A, B = 0x20000, 0x20100


class Lost(SnapshotCase):
    def trace(self):
        """A is held by .bss, B by the stack, each in a chunk of its own."""
        script = SnapshotScript(codec=0).basics()
        script.alloc(A, 100)
        script.alloc(B, 50)
        for kind, begin in enumerate((0x10000, 0x600000000, 0x7ff000000), 1):
            script.add("regions", snapshot=1, first=kind, regions=f"{kind}:{begin}:4096000:1:1:x")
        script.add("references", snapshot=1, words=f"{IN_BSS}:8:{A}")
        script.add("references", snapshot=1, words=f"{IN_STACK}:8:{B}")
        script.add("snapshot", number=1, position="9:0")
        return self.write(script.close())

    def damage(self, path, kind, which):
        """Flips a bit in the payload of a chunk."""
        with open(path, "rb") as file:
            data = bytearray(file.read())
        offset = 0
        while which >= 0:
            which -= int.from_bytes(data[offset + 10:offset + 12], "little") == kind
            at = offset + HEADER
            offset = at + (int.from_bytes(data[offset + 16:offset + 20], "little") + 7) // 8 * 8
        data[at] ^= 1
        damaged = self.path(f"damaged-{kind}.ttd")
        with open(damaged, "wb") as file:
            file.write(data)
        return damaged

    def lost(self, path):
        found = self.json_of("leaks", path)
        return (found["classes"]["definitely_lost"]["bytes"], found["certain"],
                found["snapshot"]["complete"])

    def test_whole(self):
        self.assertEqual(self.lost(self.trace()), (0, True, True))

    def test_recovered(self):
        path = self.trace()
        for kind, which, name in ((PACKED_REFERENCES, 1, "references"), (REGIONS, 2, "regions")):
            with self.subTest(name):
                recovered = self.path(f"recovered-{kind}.ttd")
                run("recover", "-o", recovered, self.damage(path, kind, which))
                self.assertTrue(self.json_of("verify", recovered)["ok"])
                self.assertEqual(self.lost(recovered), (50, False, False))
                self.assertIn("snapshot 1 is not complete: parts of it are missing, or the kernel "
                              "may hold pointers (io_uring, AIO)",
                              self.json_of("leaks", recovered)["reasons"])
                self.assertEqual([s["complete"] for s in
                                  self.json_of("snapshots", recovered)["snapshots"]], [False])


if __name__ == "__main__":
    support.main()
