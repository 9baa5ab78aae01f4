# SPDX-License-Identifier: MIT
"""A module that is loaded again and again: its calls are those of one stack."""

import unittest

from support import Script, TestCase

TIMES = 5


def reloaded(build_id=None, names=None, path=None):
    """Calls plug() of a module that is loaded TIMES times, each time elsewhere; it loses a block and
    releases the first block twice."""
    script = Script()
    script.add("module", path="/opt/demo", bias=0x10000, begin=0x10000, end=0x20000,
               position="0:0")
    script.add("thread", os=1, position="0:0").add("heap", name="malloc")
    script.add("stack", parent=0, module=1, offset=0x10)
    script.add("symbol", module=1, offset=0x10, frames="main@main.c@5")
    for number in range(TIMES):
        begin = 0x100000 * (number + 1)
        more = {"build_id": build_id} if build_id else {}
        script.add("module", path=path(number) if path else "/opt/plug.so", bias=begin, begin=begin,
                   end=begin + 0x1000, position=f"{number}:0", **more)
        script.add("stack", parent=1, module=number + 2, offset=0x40)
        script.add("symbol", module=number + 2, offset=0x40,
                   frames=names(number) if names else "plug@plug.c@7")
    script.alloc(0x900000, 8, stack=1)
    script.free(0x900000, stack=1)
    for number in range(TIMES):
        script.alloc(0x1000 * (number + 1), 100, stack=number + 2)
        script.free(0x900000, stack=number + 2)
    return script.close()


class SameStacks(TestCase):
    def groups(self, **options):
        self.trace = self.write(reloaded(**options))
        return [(group["blocks"], group["stack"][0]["function"])
                for group in self.json_of("leaks", self.trace)["groups"]]

    def test_by_build_id(self):
        self.assertEqual(self.groups(build_id="ab" * 20), [(TIMES, "plug")])
        self.assertIn("from 1 stack\n", self.run_ok("leaks", self.trace).text)

    def test_by_build_id_under_other_names(self):
        self.assertEqual(self.groups(build_id="ab" * 20, path=lambda n: f"/tmp/jna{n}.tmp"),
                         [(TIMES, "plug")])

    def test_by_path_and_names(self):
        self.assertEqual(self.groups(), [(TIMES, "plug")])

    def test_errors(self):
        self.trace = self.write(reloaded(build_id="ab" * 20))
        findings = self.json_of("errors", self.trace)["findings"]
        # The first one was released by main() before, the others by plug().
        self.assertEqual([(finding["kind"], finding["count"]) for finding in findings],
                         [("double-free", 1), ("double-free", TIMES - 1)])

    def test_other_names_are_other_frames(self):
        """Without a build-id the file at the path may be another one each time."""
        names = self.groups(names=lambda n: f"plug{n % 2}@plug.c@7")
        self.assertEqual(len(names), 3)  # plug0 is one; plug1, which is not like the first, is two

    def test_without_names_nothing_is_known(self):
        script = reloaded(names=lambda n: "@@0")
        self.trace = self.write(script)
        self.assertEqual(len(self.json_of("leaks", self.trace)["groups"]), TIMES)


if __name__ == "__main__":
    unittest.main()
