# SPDX-License-Identifier: MIT
"""ttdanalyze report of several traces, without a browser"""

import os
import random
import unittest

import oracle
import page_support
import support
from compare_support import rebuilt
from page_support import Calls, parts_of, without_addresses
from support import Script, TestCase, run


class Traces(TestCase):
    def script(self, seed, count=200):
        return oracle.random_script(random.Random(seed), count)

    def report(self, *arguments):
        page = self.path("page.html")
        self.run_ok("report", "-o", page, *arguments)
        return page

    def elements(self, page, *names):
        return [name for name in names if page_support.element_of(page, name) is not None]

    def test_each_trace_has_what_it_has_alone(self):
        traces = [self.write(self.script(seed), f"t{seed}") for seed in range(3)]
        page = self.report("--to", "80%", "--exclude", "g(int)", *traces)
        self.assertEqual(self.elements(page, "data", "data-2", "data-3", "data-4", "comparison",
                                       "engine", "trace"), ["data", "data-2", "data-3"])
        for i, trace in enumerate(traces):
            parts = parts_of(page, f"data-{i + 1}" if i else "data")
            alone = parts_of(self.report("--to", "80%", "--exclude", "g(int)", trace))
            facts = {**alone["facts"], "paths": traces, "number": i + 1}
            self.assertEqual(parts, {**alone, "facts": facts})
            page = self.report("--to", "80%", "--exclude", "g(int)", *traces)

    def check_comparison(self, page, found):
        """The changes are those of `diff`; others have as many bytes and blocks on both sides."""
        parts = parts_of(page, "comparison")
        calls = {side: Calls(parts[side]) for side in ("old", "new")}
        changes = [{**change, "stack": calls["new" if change["new_blocks"] else "old"]
                    .stack(change["stack"])} for change in parts["diff"]["changes"]]
        same = [change for change in changes if change["change"] == "same"]
        self.assertEqual(len(same), found["same_stacks"])
        for side in ("old", "new"):
            self.assertEqual(sum(change[side + "_bytes"] for change in changes),
                             found[side]["live_bytes"])
        shown = {**parts["diff"], "changes": changes[:len(changes) - len(same)]}
        self.assertEqual(without_addresses(shown), without_addresses(found))
        return parts

    def test_two_traces_are_compared(self):
        for seed in range(5):
            old, new = (self.write(self.script(number), f"t{number}") for number in (seed, seed + 9))
            found = self.json_of("diff", new, old, "--limit", "0")
            self.assertTrue(found["changes"])
            parts = self.check_comparison(self.report(old, new), found)
            self.assertEqual((parts["facts"]["paths"], parts["facts"]["to"]), ([old, new], None))

    def test_the_comparison_is_of_the_range_and_filtered(self):
        script = Script().basics()
        for i in range(40):
            script.alloc(0x1000 * (i + 1), 10 + i, stack=1 + i % 4)
        old, new = self.write(script.close(), "old"), self.write(rebuilt(script), "new")
        to = "4:0"
        at = "3:FFFFFFFFFFFFFFFF"
        self.check_comparison(
            self.report("--to", to, "--exclude", "g(int)", old, new),
            self.json_of("diff", new, old, "--from", at, "--to", at, "--exclude", "g(int)",
                         "--limit", "0"))

    def test_uncertain_traces_say_so(self):
        script = Script().basics()
        script.alloc(0x1000, 8)
        lines = list(script.lines)
        old, new = self.write(script.close(), "old"), Script()
        new.lines = lines
        found = parts_of(self.report(old, self.write(new.abandon(), "new")), "comparison")["diff"]
        self.assertEqual([found[side]["certain"] for side in ("old", "new")], [True, False])
        self.assertIn("not closed cleanly", found["new"]["reasons"][0])

    @unittest.skipUnless(os.environ["HAS_ENGINE"] == "1", "no engine was built")
    def test_exact_pages_have_all_traces_and_one_engine(self):
        traces = [self.write(self.script(seed), f"t{seed}") for seed in range(2)]
        page = self.report("--exact", *traces)
        self.assertEqual(self.elements(page, "engine", "engine-2", "trace", "trace-2", "trace-3"),
                         ["engine", "trace", "trace-2"])
        for trace, name in zip(traces, ("trace", "trace-2")):
            with open(trace, "rb") as file:
                self.assertEqual(page_support.element_of(page, name), file.read())

    def test_nothing_is_left_after_a_failure(self):
        good = self.write(self.script(1), "good")
        page = self.path("page.html")
        self.assertEqual(run("report", "-o", page, good, self.path("missing")).status, support.OPEN)
        self.assertFalse(os.path.exists(page))
        other = self.write(self.script(2), "other")
        for output in (good, other):
            result = run("report", "-o", output, good, other)
            self.assertEqual(result.status, support.USAGE)
            self.assertIn("will not be overwritten", result.errors)
        result = run("report", "-o", page, *[good] * 65)
        self.assertEqual(result.status, support.USAGE)
        self.assertIn("64 traces at a time", result.errors)


if __name__ == "__main__":
    support.main()
