# SPDX-License-Identifier: MIT
"""--by class of leaks, state and diff: the class of a block is what its first word points at."""

import support
from support import Script, run
from snapshot_support import IN_BSS, SnapshotCase, SnapshotScript

SERVER, SERVER_BASE, NAMELESS = 0x401000, 0x401100, 0x402000
CLASSES = ((SERVER, "N3app6ServerE"), (SERVER_BASE, "N3app6ServerE"), (NAMELESS, ""))
NAME, ADDRESS, UNKNOWN = ("app::Server", None), (None, "0x402000"), (None, None)
COMMANDS = ("leaks", "state", "diff")


def sums(groups):
    """(blocks, bytes) by class, each of which has one group."""
    found = {(g["class_name"], g["class_address"]): (g["blocks"], g["bytes"]) for g in groups}
    assert len(found) == len(groups)
    return found


class ByClass(SnapshotCase):
    def setUp(self):
        super().setUp()
        script = SnapshotScript().basics()
        script.alloc(0x19000, 7)                # freed before the snapshot
        script.alloc(0x20000, 10)
        script.alloc(0x21000, 20, stack=3)      # of the same class, with another table
        script.alloc(0x22000, 30)
        script.alloc(0x23000, 40)               # the address of a table is not its first word
        script.alloc(0x24000, 60, stack=3)
        script.free(0x19000)
        script.snapshot((0x20000, SERVER), (0x21000, SERVER_BASE), (0x22000, NAMELESS),
                        (0x23008, SERVER), (0x24000, SERVER), (IN_BSS, 8, 0x24000),
                        classes=CLASSES, flags=1)
        script.free(0x20000)
        script.alloc(0x20000, 50)               # where an object was
        self.trace = self.write(script.close())

    def test_state(self):
        found = self.json_of("state", self.trace, "--by", "class")
        self.assertEqual(sums(found["groups"]),
                         {NAME: (2, 80), ADDRESS: (1, 30), UNKNOWN: (2, 90)})
        self.assertEqual((found["by"], found["total_groups"], found["snapshot"]["number"]),
                         ("class", 3, 1))
        at = found["snapshot"]["position"]
        found = self.json_of("state", self.trace, "--by", "class", "--at", at)
        self.assertEqual(sums(found["groups"]),
                         {NAME: (3, 90), ADDRESS: (1, 30), UNKNOWN: (1, 40)})

    def test_leaks(self):
        found = self.json_of("leaks", self.trace, "--by", "class", "--show", "all")
        of_kind = {kind: sums([g for g in found["groups"] if g["class"] == kind])
                   for kind in ("definitely_lost", "still_reachable", "not_seen")}
        self.assertEqual(of_kind, {
            "definitely_lost": {NAME: (1, 20), ADDRESS: (1, 30), UNKNOWN: (1, 40)},
            "still_reachable": {NAME: (1, 60)},
            "not_seen": {UNKNOWN: (1, 50)}})

    def test_diff(self):
        found = self.json_of("diff", self.trace, "--by", "class")
        self.assertEqual({name: sums(found[name]["groups"]) for name in
                          ("aifi", "aifo", "aofi", "aofo")},
                         {"aifi": {NAME: (1, 10), UNKNOWN: (1, 7)},
                          "aifo": {NAME: (2, 80), ADDRESS: (1, 30), UNKNOWN: (2, 90)},
                          "aofi": {}, "aofo": {}})

    def test_diff_before_the_snapshot(self):
        """The first snapshot after the range tells."""
        found = self.json_of("diff", self.trace, "--by", "class", "--to", "#4")
        self.assertEqual(sums(found["aifo"]["groups"])[NAME], (2, 30))

    def test_text(self):
        for command in COMMANDS:
            with self.subTest(command=command):
                text = self.run_ok(command, "--by", "class", self.trace).text
                for label in ("app::Server", "table of virtual functions at 0x402000",
                              "(no class is known)"):
                    self.assertIn(f"    {label}\n", text)
        self.assertRegex(self.run_ok("state", "--by", "class", self.trace).text,
                         r"from 3 classes\nClasses as snapshot 1 at \S+.* tells\n")

    def test_csv(self):
        for command in COMMANDS:
            with self.subTest(command=command):
                lines = self.run_ok(command, "--by", "class", "-f", "csv", self.trace).text.split()
                self.assertTrue(lines[0].endswith(",class_name,class_address,certain"), lines[0])
                ends = {tuple(line.split(",")[-3:-1]) for line in lines[1:]}
                self.assertLessEqual(ends, {("app::Server", ""), ("", "0x402000"), ("", "")})
                self.assertIn(("app::Server", ""), ends)

    def test_folded(self):
        for command, server in (("leaks", 20), ("state", 80), ("diff", 80)):
            with self.subTest(command=command):
                lines = self.run_ok(command, "--by", "class", "-f", "folded", self.trace).text
                sums_of = {}
                for line in lines.splitlines():
                    stack, weight = line.rsplit(" ", 1)
                    first = stack.split(";")[0]
                    self.assertIn(";", stack)
                    sums_of[first] = sums_of.get(first, 0) + int(weight)
                self.assertEqual((sums_of["app::Server"], sums_of["[class 0x402000]"]),
                                 (server, 30))
                self.assertIn("[no class]", sums_of)

    def test_filters(self):
        groups = self.json_of("state", self.trace, "--by", "class", "--include", "libwork")["groups"]
        self.assertEqual(sums(groups), {NAME: (2, 80)})
        groups = self.json_of("state", self.trace, "--by", "class", "--exclude", "libwork")["groups"]
        self.assertEqual(sums(groups), {ADDRESS: (1, 30), UNKNOWN: (2, 90)})

    def test_without_snapshot(self):
        script = Script().basics()
        script.alloc(0x20000, 10)
        path = self.write(script.close(), "plain.ttd")
        for command in COMMANDS:
            with self.subTest(command=command):
                result = run(command, "--by", "class", path)
                self.assertEqual((result.status, result.text), (2, ""))
                self.assertIn("--by class needs a snapshot of references", result.errors)
                self.assertIn("ttdrecord snapshot PID", result.errors)
        result = run("state", "--by", "class", "--at", "#2", self.trace)
        self.assertEqual(result.status, 2)

    def test_other_commands(self):
        for arguments in (("hot",), ("peak",), ("diff", "--changes"), ("diff", self.trace)):
            with self.subTest(arguments=arguments):
                result = run(*arguments, "--by", "class", self.trace)
                self.assertEqual(result.status, 2)
                self.assertIn("--by class", result.errors)


if __name__ == "__main__":
    support.main()
