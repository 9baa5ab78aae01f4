# SPDX-License-Identifier: MIT
"""The ways from a group of leaks to a block, to who holds it, and to what hangs below."""

import support
from snapshot_support import IN_BSS, IN_STACK, SnapshotCase, SnapshotScript
from support import run

A, B, C, D, E, F, G = range(0x20000, 0x27000, 0x1000)


class Ways(SnapshotCase):
    def setUp(self):
        super().setUp()
        script = SnapshotScript().basics()
        script.alloc(B, 16, stack=3)     # the first of its group, though not the lowest
        script.alloc(A, 16, stack=3)     # of the same group
        script.alloc(C, 32, stack=2)     # lost, and D, E, F and G hang below it
        script.alloc(D, 100, stack=1)
        script.alloc(E, 300, stack=4)
        script.alloc(F, 250, stack=1)
        script.alloc(G, 40, stack=3)
        script.alloc(0x28000, 8, stack=2)  # holds nothing but a stack
        script.alloc(0x29000, 8, stack=4)  # held by a block that is
        script.alloc(0x2a000, 64, stack=1)
        script.snapshot((IN_BSS, 0x18, B + 8), (IN_BSS, 0x20, A + 8), (C, D), (C + 8, E), (D, F),
                        (F, G), (IN_STACK, 0, 0x28000), (IN_BSS, 0x28, 0x2a000),
                        (0x2a000 + 8, 0x29000 + 4))
        self.trace = self.write(script.close())

    def test_json(self):
        lost, *possible = self.json_of("leaks", self.trace)["groups"]
        self.assertEqual((lost["group"], lost["address"], lost["below_stacks"]),
                         (1, hex(C), 3))
        self.assertEqual([(s["stack_id"], s["blocks"], s["bytes"]) for s in lost["below"]],
                         [(1, 2, 350), (4, 1, 300), (3, 1, 40)])
        self.assertEqual(lost["below"][0]["stack"][0]["function"], "main")
        self.assertNotIn("holder", lost)
        self.assertEqual([(g["group"], g["address"], g["holder"]["kind"]) for g in possible],
                         [(2, hex(B), "root"), (3, "0x29000", "block")])
        self.assertEqual(possible[0]["holder"]["root"]["label"], "demo .bss+0x18")
        self.assertEqual(possible[1]["holder"]["block"]["address"], "0x2a000")

    def test_text(self):
        text = self.run_ok("leaks", self.trace).text
        self.assertIn("  group 1:   block 0x22000\n"
                      "  below it:  350 bytes in 2 blocks, stack #1, main (main.c:10) in demo\n"
                      "             300 bytes in 1 block, stack #4, 0xdead\n"
                      "             40 bytes in 1 block, stack #3, libwork.so+0x300\n", text)
        text = self.run_ok("leaks", "--show", "definite,possible", self.trace).text
        self.assertIn("  group 2:   the first is block 0x21000, held by demo .bss+0x18\n", text)
        self.assertIn("  group 3:   block 0x29000, held by block 0x2a000 of 64 bytes\n", text)

    def test_csv(self):
        rows = self.run_ok("leaks", "-f", "csv", self.trace).csv
        self.assertEqual([(r["group"], r["address"], r["holder"], r["below"]) for r in rows],
                         [("1", hex(C), "", "350:1;300:4;40:3"),
                          ("2", hex(B), "demo .bss+0x18", ""), ("3", "0x29000", "0x2a000", "")])

    def test_joined(self):
        """Groups that a key makes one have one address, and all that hangs below."""
        group = self.json_of("leaks", self.trace, "--by", "module", "--show",
                             "definite,indirect")["groups"][0]
        self.assertEqual((group["address"], [s["bytes"] for s in group["below"]]),
                         (hex(C), [350, 300, 40]))

    def test_kinds(self):
        """Each line of a kind that is not listed names the option that lists it."""
        text = self.run_ok("leaks", self.trace).text
        for line, kind, address in (("Indirectly lost", "indirect", hex(D)),
                                    ("Held only by an ending stack", "stack", "0x28000")):
            (line,) = [part for part in text.splitlines() if part.startswith(line)]
            self.assertIn(f"(--show {kind}", line)
            found = self.json_of("leaks", self.trace, "--show", kind)["groups"]
            self.assertIn(address, [group["address"] for group in found])

    def test_referrers(self):
        """A group of leaks, by its number with the same options."""
        for options in ((), ("--show", "all"), ("--by", "module"), ("--include", "libwork"),
                        ("--exclude", "f::run"), ("--show", "reachable", "--by", "function")):
            groups = self.json_of("leaks", self.trace, *options)["groups"]
            for group in groups:
                found = self.json_of("referrers", self.trace, "--group", group["group"], *options)
                self.assertEqual((found["address"], found["group"]),
                                 (group["address"], group["group"]), options)
            result = run("referrers", "--group", len(groups) + 1, *options, self.trace)
            self.assertEqual((result.status, result.text), (support.USAGE, ""))
        text = self.run_ok("referrers", self.trace).text
        self.assertIn("Group 1 of leaks, 32 bytes in 1 block definitely lost\n0x22000 is block",
                      text)
        self.assertIsNone(self.json_of("referrers", self.trace, "--address", hex(A))["group"])

    def test_refused(self):
        """No option is taken and has no effect."""
        for options in (("--group", "1", "--address", "1"), ("--address", "1", "--show", "all"),
                        ("--address", "1", "--include", "main"), ("--write-baseline", "x"),
                        ("--address", "1", "--by", "heap"), ("--group", "0")):
            result = run("referrers", *options, self.trace)
            self.assertEqual((result.status, result.text), (support.USAGE, ""), options)


support.main()
