# SPDX-License-Identifier: MIT
"""The page of several traces in a browser, as test_page.py: each shows what it shows alone, and of
two the comparison has the numbers of `ttdanalyze diff`."""

import os
import random
import time

import browser
import oracle
import support
import test_page
from compare_support import rebuilt
from support import Script
from test_page import MODE, NAME, SHOTS, PageCase, churn, leaking, whole


def setUpModule():
    test_page.setUpModule()


def tearDownModule():
    test_page.tearDownModule()


def evaluate(expression):
    return test_page.opened.evaluate(expression)


class Traces(PageCase):
    def wait(self):
        """Waits until the page of another trace is drawn."""
        deadline = time.monotonic() + test_page.READY_SECONDS
        while not evaluate("document.body.dataset.state === 'ready'"):
            self.assertLess(time.monotonic(), deadline, "the page is not ready")
            time.sleep(0.02)
        self.settle()

    def choose(self, value):
        evaluate(f"((select) => {{ select.value = {value!r}; select.dispatchEvent("
                 "new Event('change')); })(document.querySelector('header select')), 1")
        time.sleep(0.05)
        self.wait()

    def visit(self, fragment):
        self.go(fragment)
        self.wait()

    def live(self):
        return whole(self.texts("main > section > .figures dd small")[1])

    def show_all(self, traces, fragment="", *arguments):
        self.show(traces[-1], fragment, *arguments, *traces[:-1])

    def two(self):
        """A program, and the same built anew, which allocates a little more."""
        chance = random.Random(3)
        script = Script().basics()
        for i in range(60):
            script.alloc(0x1000 * (i + 1), chance.randrange(1, 5000), stack=chance.randrange(5))
        more = Script()
        more.lines = list(rebuilt(script).lines)
        more.clock = script.clock + 4
        for i in range(9):
            more.alloc(0x900000 + 0x1000 * i, 3000, stack=1 + i % 2)
        more.free(0x2000)
        return self.write(script.close(), "old"), self.write(more.close(), "new")


class Choice(Traces):
    def test_each_trace_is_as_if_alone(self):
        traces = [self.write(script, name) for name, script in
                  (("a", churn(300, 1)), ("b", churn(500, 2)), ("c", leaking()))]
        self.show_all(traces)
        self.assertEqual(self.texts("header option"), ["1: a", "2: b", "3: c"])
        for i, trace in enumerate(traces):
            self.choose(str(i + 1))
            self.assertIn(f"t={i + 1}", evaluate("location.hash"))
            self.assertEqual(evaluate("heapPage.parts.facts.path"), trace)
            for position in self.positions()[5::9]:
                self.visit(f"#t={i + 1}&at={position}")
                found = self.json_of("state", trace, "--at", position)
                self.assertEqual(self.live(), found["live_bytes"], (trace, position))
                self.assertEqual(self.texts(".command code"),
                                 [f"ttdanalyze state --at {position} {trace}"])
        self.check_silence()

    def test_the_address_has_the_trace(self):
        traces = [self.write(churn(300, 1), "a"), self.write(leaking(), "b")]
        self.show_all(traces, "#t=2&view=leaks")
        self.assertEqual(self.texts("[role=tab][aria-selected=true]")[0][:5], "Leaks")
        self.assertEqual(evaluate("heapPage.parts.facts.number"), 2)
        evaluate("heapPage.state.set({ view: 'moves', at: 1 }), 1")
        self.choose("1")
        self.assertEqual(evaluate("[heapPage.parts.facts.number, heapPage.state.get('view')]"),
                         [1, "moves"])
        self.assertNotIn("at=", evaluate("location.hash"))
        time.sleep(1)
        self.assertIn("view=moves", evaluate("location.hash"))
        for nonsense in ("9", "0", "x", "01", "__proto__"):
            self.visit(f"#t={nonsense}")
            self.assertEqual(evaluate("heapPage.parts.facts.number"), 1)
        self.check_silence()

    def test_only_the_trace_that_is_shown_follows_the_keyboard(self):
        traces = [self.write(churn(300, 1), "a"), self.write(churn(300, 2), "b")]
        self.show_all(traces, "#t=1")
        evaluate("void (window.first = heapPage), 1")
        self.choose("2")
        at = evaluate("[first.state.get('at'), heapPage.state.set({ at: 7 })][0]")
        evaluate("document.body.dispatchEvent(new KeyboardEvent('keydown', "
                 "{key: 'ArrowRight', bubbles: true})), 1")
        self.settle()
        self.assertEqual(evaluate("[first.state.get('at'), heapPage.state.get('at')]"), [at, 8])
        time.sleep(1)
        self.assertIn("t=2", evaluate("location.hash"))

    def test_names_that_are_the_same(self):
        os.makedirs(self.path("x"))
        traces = [self.write(churn(30, 1), "a"), self.write(churn(30, 2), "x/a")]
        self.show_all(traces)
        self.assertEqual(self.texts("header option")[:2],
                         [f"{i + 1}: {trace}" for i, trace in enumerate(traces)])


class Comparison(Traces):
    def test_numbers_are_those_of_diff(self):
        for old, new in (self.two(), [self.write(oracle.random_script(random.Random(seed), 300),
                                                 f"r{seed}") for seed in (1, 2)]):
            self.show_all((old, new), "#t=comparison")
            found = self.json_of("diff", new, old, "--limit", "0")
            self.assertTrue(found["changes"])
            rows = [(evaluate(f"heapPage.table.rows.map((row) => Number(row.{name}))"))
                    for name in ("change_bytes", "change_blocks", "old_bytes", "new_bytes")]
            self.assertEqual(list(zip(*rows)),
                             [tuple(change[name] for name in ("change_bytes", "change_blocks",
                                                              "old_bytes", "new_bytes"))
                              for change in found["changes"]])
            shown = [cells[1][1].replace(",", "").split()[0].replace("−", "-")
                     for cells in self.rows(".compared")]
            self.assertEqual(sorted(map(int, shown)),
                             sorted(change["change_bytes"] for change in found["changes"]))
            figures = self.texts(".figures dd small")
            self.assertEqual([whole(figures[i]) for i in (0, 1)],
                             [found[side]["live_bytes"] for side in ("old", "new")])
            self.check_flame(found)
            self.assertEqual(self.texts(".command code"), [f"ttdanalyze diff {old} {new}"])
            self.check_silence()

    def check_flame(self, found):
        changes = [change["change_bytes"] for change in found["changes"]]
        for name, total in (("new", found["new"]["live_bytes"]), ("old", found["old"]["live_bytes"]),
                            ("grown", sum(change for change in changes if change > 0)),
                            ("shrunk", -sum(change for change in changes if change < 0))):
            self.visit(f"#t=comparison&change={name}")
            self.assertEqual(evaluate("heapPage.flame.picture.sums.total[0]"), total, name)
            said = self.texts(".flame-panel .said")[0]
            self.assertEqual(whole(said.split("(")[1]), total)

    def test_two_traces_open_on_their_comparison(self):
        self.show_all(self.two())
        self.assertTrue(evaluate("Boolean(heapPage.parts.diff && heapPage.changes)"))
        self.choose("1")
        evaluate("heapPage.state.set({ at: 1 }), 1")
        time.sleep(1)
        fragment = evaluate("location.hash")
        self.assertIn("t=1", fragment)
        self.visit("#t=comparison")
        self.visit(fragment)
        self.assertEqual(evaluate("heapPage.parts.facts.number"), 1)

    def test_colours_are_the_changes(self):
        self.show_all(self.two(), "#t=comparison")
        colours = evaluate("((flame) => { const { picture } = flame; const { tree, colors } = picture;"
                           " const [old, later] = heapPage.changes.totals;"
                           " return flame.boxes.filter(({ node }) => node >= 0).map((box) => "
                           "[later[box.node] - old[box.node], "
                           "colors.rise.includes(picture.colorOf(box)), "
                           "colors.fall.includes(picture.colorOf(box))]); })(heapPage.flame)")
        self.assertTrue(any(change for change, _, _ in colours))
        for change, is_rise, is_fall in colours:
            self.assertEqual((is_rise, is_fall), (change > 0, change < 0))

    def test_a_range(self):
        old, new = self.two()
        self.show_all((old, new), "#t=comparison", "--to", "8:0")
        found = self.json_of("diff", new, old, "--from", "7:FFFF", "--to", "7:FFFF", "--limit", "0")
        self.assertEqual(evaluate("heapPage.parts.diff.new.live_bytes"), found["new"]["live_bytes"])
        command = self.texts(".command code")[0].split()
        self.assertEqual(command[-2:], [old, new])
        self.assertEqual(self.run_ok(*command[1:], "--format", "json").json["change_bytes"],
                         found["change_bytes"])


class Pictures(Traces):
    def test_the_comparison(self):
        os.makedirs(SHOTS, exist_ok=True)
        traces = self.two()
        for width, height in ((1280, 800), (3840, 2160)):
            test_page.opened.size(width, height)
            self.show_all(traces, "#t=comparison")
            path = os.path.join(SHOTS, f"{NAME}{MODE and '-' + MODE}-{width}-comparison.png")
            test_page.opened.screenshot(path)
            self.assertGreater(os.path.getsize(path), 10000)


if __name__ == "__main__":
    lacking = browser.missing(NAME)
    if lacking:
        print(f"not installed: {lacking}")
        raise SystemExit(77)
    support.main()
