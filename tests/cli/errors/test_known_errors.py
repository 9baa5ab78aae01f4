# SPDX-License-Identifier: MIT
"""Suppressions and baselines of ttdanalyze errors"""

import support
from known_support import Files
from support import Script, run


class Errors(Files):
    def setUp(self):
        super().setUp()
        script = Script().basics()
        script.alloc(0x1000, 10)
        script.free(0x1000, stack=3)
        for _ in range(3):
            script.free(0x1000, stack=3)                       # double
        script.free(0x9000, stack=2)                           # never allocated
        script.alloc(0, 1 << 40, stack=4, result=0)            # failed
        self.script = script
        self.trace = self.write(script.close())

    def left(self, *arguments):
        found = self.json_of("errors", self.trace, *arguments)
        return [f["kind"] for f in found["findings"]], found

    def test_suppressions(self):
        every = ["double-free", "invalid-free", "failed-call"]
        for kind, lines, left in (
                ("Memcheck:Free", "fun:free\nobj:*/libwork.so", every[1:]),
                ("Memcheck:Free", "...\nfun:main", every[2:]),
                ("Memcheck:Leak", "...\nfun:main", every),
                ("Memcheck:FishyValue", "fun:malloc\n...\nfun:main", every[:2]),
                ("ttdanalyze:invalid-free", "...\nfun:main", ["double-free", "failed-call"])):
            rules = self.file("leak:*\n{\nname\n" + kind + "\n" + lines + "\n}\n")
            self.assertEqual(self.left("--suppressions", rules)[0], left, (kind, lines))
        rules = self.file("{\nname\nMemcheck:Free\n...\nobj:*work*\n}\n")
        found = self.left("--suppressions", rules)[1]
        self.assertEqual((found["total_findings"], found["total_calls"],
                          found["suppressed_findings"], found["suppressed_calls"]), (2, 2, 1, 3))
        self.assertEqual(found["suppressions"],
                         [{"findings": 1, "calls": 3, "rule": "name", "file": rules, "line": 1}])
        text = self.run_ok("errors", "--suppressions", rules, self.trace).text
        self.assertIn(f"Suppressed: 1 finding, 3 calls\n  1 finding, 3 calls by name ({rules}:1)\n",
                      text)
        rules = self.file("{\nall\nMemcheck:Free\n...\n}\n{\nfail\nMemcheck:FishyValue\n...\n}\n")
        self.assertEqual(run("errors", "--suppressions", rules, "--error-exitcode", "7",
                             self.trace).status, 0)

    def test_baseline(self):
        path = self.path("baseline")
        self.run_ok("errors", "--write-baseline", path, self.trace)
        found = self.left("--baseline", path)[1]
        self.assertEqual((found["findings"], found["known_findings"], found["known_calls"]),
                         ([], 3, 5))
        self.assertEqual(run("errors", "--baseline", path, "--error-exitcode", "7",
                             self.trace).status, 0)
        # The same call about a block that somebody else allocated is another finding.
        self.script.lines.pop()
        self.script.alloc(0x5000, 10, stack=4)
        self.script.free(0x5000, stack=3)
        self.script.free(0x5000, stack=3)
        self.trace = self.write(self.script.close(), "more")
        found = self.left("--baseline", path)[1]
        self.assertEqual([(f["kind"], f["block"]["address"]) for f in found["findings"]],
                         [("double-free", "0x5000")])
        self.assertEqual(run("errors", "--baseline", path, "--error-exitcode", "7",
                             self.trace).status, 7)


if __name__ == "__main__":
    support.main()
