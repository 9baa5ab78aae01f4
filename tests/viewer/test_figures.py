# SPDX-License-Identifier: MIT
"""Figures of the page that could be certain and wrong, as test_page.py: times between its moments, sums
that count a block twice, rates, positions of calls with two effects, and what is saved as CSV."""

import sys
import unittest

import browser
import support
import test_exact
import test_page
from snapshot_support import IN_BSS, SnapshotScript
from support import Script
from test_answers import shop
from test_page import NAME, PageCase, leaking, whole

A, B = 0x20000, 0x30000


def evaluate(expression):
    return test_page.opened.evaluate(expression)


def setUpModule():
    test_page.setUpModule()


def tearDownModule():
    test_page.tearDownModule()


def between_moments():
    """A double free and a realloc, each far from every moment of the page but in a stretch between
    two: calls before and after them fill the moments, at times of their own."""
    script = Script(events_per_chunk=500).basics()
    script.alloc(0x1000, 40, wall=0)
    for i in range(4000):
        script.alloc(0x100000 + 0x100 * i, 16, wall=i * 10**6)
        if i == 2001:
            script.realloc(0x1000, 0x2000, 90, wall=i * 10**6)
        if i == 2601:
            script.free(0x2000, wall=i * 10**6)
        if i == 3001:
            script.free(0x2000, wall=i * 10**6)
    return script.close(wall=4000 * 10**6)


class Times(PageCase):
    def test_a_time_between_two_moments_says_so(self):
        trace = self.write(between_moments())
        self.show(trace, "#view=errors")
        finding, = self.json_of("errors", trace)["findings"]
        for title, (event, time) in zip(self.texts("article.finding .time-line h4"), (
                ("allocated", 2.001), ("released", 2.601), (None, 3.001))):
            position = (finding[event] if event else finding)["position"]
            around = evaluate(f"heapPage.heap.around('time', {position!r}).map((time) => time / 1e9)")
            self.assertLessEqual(around[0], time)
            self.assertGreaterEqual(around[1], time)
            wanted = f"(+{time:.4f} s)" if around[0] == around[1] else \
                f"(between +{around[0]:.4f} s and +{around[1]:.4f} s)"
            self.assertIn(wanted, title)
        self.assertIn("between", " ".join(self.texts("article.finding .time-line h4")))
        self.check_silence()

    def test_a_card_has_the_moments_around(self):
        script = Script(events_per_chunk=500).basics()
        for i in range(4000):
            script.alloc(0x100000, 16, stack=3, wall=i * 10**6)
            script.free(0x100000, wall=i * 10**6)
            if i == 1001:
                script.alloc(0x1000, 90, wall=i * 10**6)
        self.show(self.write(script.close(wall=4000 * 10**6)))
        place = evaluate("heapPage.parts.summary.leaks.first_position")
        around = evaluate(f"heapPage.heap.around('time', {place!r}).map((time) => time / 1e9)")
        self.assertLessEqual(around[0], 1.001)
        self.assertGreaterEqual(around[1], 1.001)
        text = self.texts("[data-verdict=leak]")[0]
        self.assertIn("; allocated " + (f"at +{around[0]:.2f} s" if f"{around[0]:.2f}" == f"{around[1]:.2f}" else
                      f"between +{around[0]:.2f} s and +{around[1]:.2f} s"), text)


    def test_times_of_allocation_are_no_times_of_loss(self):
        script = SnapshotScript().basics()
        for i in range(100):
            script.alloc(0x100000 + 0x1000 * i, 96, wall=5 * 10**8 + i * 10**6)
        script.snapshot((0x100008, 0x200000))
        trace = self.write(script.close(wall=10**9))
        self.show(trace)
        text = self.texts("[data-verdict=leak]")[0]
        self.assertRegex(text, r"100 blocks of 96 B on average lost; allocated from \+0\.500 s to \+0\.599 s")
        self.go("#view=leaks")
        titles = ["First allocated", "Last allocated"]
        self.assertEqual(self.texts("[aria-label=leaks] th")[-2:], titles)
        self.show(trace, "#view=moves", "--from", self.json_of("state", trace, "--at", "5%")["position"])
        self.assertEqual(self.texts("[aria-label=chains] th")[-2:], ["Allocated", "Last reallocated"])
        self.go("#view=range")
        self.assertEqual(self.texts("[data-quadrant=aifo] th")[-1], titles[0])

    def test_a_loss_between_two_snapshots_is_between_positions(self):
        script = SnapshotScript().basics()
        script.alloc(A, 100)
        script.snapshot((IN_BSS, 0, A))
        script.alloc(B, 16)
        script.snapshot((IN_BSS, 0, B))
        trace = self.write(script.close())
        group, = (group for group in self.json_of("leaks", trace)["groups"] if group.get("lost_after"))
        self.show(trace, "#view=leaks")
        evaluate("document.querySelector('[aria-label=leaks] tbody tr').click(), 1")
        self.settle()
        self.assertIn(f"Lost after position {group['lost_after']}, at position {group['lost_before']} at the latest.",
                      self.texts(".view .detail p"))


@unittest.skipUnless(test_exact.HAS_ENGINE, "no engine")
class ExactTimes(test_exact.ExactCase):
    def test_a_biography_has_the_times_of_its_calls(self):
        trace = self.write(between_moments())
        self.show_exact(trace)
        self.visit("#view=memory&address=0x2000")
        self.wait("document.querySelectorAll('.owner h4').length === 2")
        titles = self.texts(".owner h4")
        self.assertIn("(+2.0010 s)", titles[0])
        self.assertIn("(+2.6010 s)", titles[1])
        self.assertIn("1 block ever had", self.texts(".story-panel .said")[0])
        self.check_silence()

    def test_the_time_of_a_position_is_not_that_of_a_loss(self):
        script = SnapshotScript().basics()
        script.alloc(0x20000, 100, wall=5 * 10**8)
        script.snapshot((0x20008, 0x22000))
        self.show_exact(self.write(script.close(wall=10**9)))
        self.visit("#view=memory&address=0x20000")
        self.wait("document.querySelectorAll('.owner .calls > p').length === 1")
        self.assertRegex(self.texts(".owner .calls > p")[0], r"definitely lost after position [0-9A-F:]+ \(its time: ")

    def test_a_reallocation_has_two_positions(self):
        trace = self.write(between_moments())
        self.show_exact(trace)
        event, = (row for row in self.run_ok("events", "--format", "json", trace).json_lines
                  if row["action"] == "ReAlloc")
        chain, = self.json_of("moves", trace)["chains"]
        self.assertEqual(chain["last_position"], event["time_end"])
        self.visit(f"#view=calls&at={event['time_end']}")
        self.wait("heapPage.events.table.rows.length > 0")
        cell, = [cells[1][0] for cells in self.rows('[aria-label="Calls around the cursor"]')
                 if "realloc" in cells[4][0].lower()]
        self.assertEqual(cell, f"{event['time_start']} – {event['time_end']}")


class Sums(PageCase):
    def test_doubtfully_held_blocks_count_once(self):
        script = SnapshotScript().basics()
        script.alloc(B, 8)
        script.alloc(A, 64)
        script.free(A)
        script.alloc(A - 16, 128)
        script.snapshot((IN_BSS, 0, A - 16), (A + 8, B))
        trace = self.write(script.close())
        classes = self.json_of("leaks", trace)["classes"]
        self.assertEqual((classes["still_reachable"]["bytes"], classes["held_by_stale"]["bytes"]), (136, 8))
        self.show(trace, "#view=leaks")
        shown = {name: whole(text.split("blocks, ")[-1].split("block, ")[-1]) for name, text in
                 zip(self.texts(".view .figures dt"), self.texts(".view .figures dd small"))}
        self.assertEqual(shown, {"definitely lost": 0, "still reachable": 128, "held by stale words": 8})
        place = self.json_of("leaks", trace)["position"]
        self.assertIn(f"{sum(shown.values())} bytes live at {place};", " ".join(self.texts(".view p")))

    def test_what_grew_is_one_sum(self):
        script = Script().basics()
        for line in (1, 2):
            script.add("stack", parent=1, module=1, offset=0x2000 + line)  # 5, 6
            script.add("symbol", module=1, offset=0x2000 + line, frames=f"grow@grow.c@{line}")
        script.alloc(0x1000, 500, stack=5)
        for i in range(20):
            script.alloc(0x10000 + 0x100 * i, 100, stack=3)
        script.alloc(0x2000, 57, stack=6)
        script.free(0x1000)
        self.show(self.write(script.close()), "#measure=grown")
        first = self.positions()[1]
        self.go(f"#measure=grown&from={first}")
        for measure, amount in ("grown", 57), ("shrunk", 500), ("changed", 557):
            self.go(f"#measure={measure}&from={first}")
            rows = evaluate("heapPage.sites.table.all.map(({ name, bytes, grown }) => [name, bytes, grown])")
            self.assertIn(["grow", amount, -443], rows)
            self.assertEqual(sum(row[1] for row in rows), evaluate("heapPage.flame.picture.sums.total[0]"), measure)
            self.assertIn("Change", self.texts(".sites-panel th")[4])

    def test_a_function_has_the_line_of_most(self):
        script = Script().basics()
        for line in (7, 8):
            script.add("stack", parent=1, module=1, offset=0x2000 + line)  # 5, 6
            script.add("symbol", module=1, offset=0x2000 + line, frames=f"arena@arena.cpp@{line}")
        for i in range(6):
            script.alloc(0x1000 * (i + 1), 10, stack=5)
        script.alloc(0x10000, 500, stack=6)
        self.show(self.write(script.close()), "#")
        place = "heapPage.sites.table.csv().slice(1).filter(([name]) => name === 'arena').map((row) => row[2])"
        for fragment, line in ("#", 8), ("#unit=blocks", 7), ("#measure=allocated", 8), ("#", 8):
            self.go(fragment)
            self.assertEqual(evaluate(place), [line], fragment)
            self.assertEqual([cells[0][0].strip() for cells in self.rows(".sites-panel")
                              if "arena" in cells[0][0]], [f"arena arena.cpp:{line}"])

    def test_rows_of_nothing_are_left_out(self):
        self.show(self.write(leaking()), "#")
        for measure in ("live", "lost", "possible", "grown", "shrunk", "temporary"):
            self.go(f"#measure={measure}")
            rows = evaluate("heapPage.sites.table.csv().slice(1).map((row) => row.slice(4, 6))")
            self.assertNotIn([0, 0], rows, measure)
        self.assertEqual(rows, [])

    def test_a_range_without_the_runtimes_adds_up(self):
        script = Script(events_per_chunk=500).basics()
        script.alloc(0x100000, 72704, stack=3)
        for i in range(3000):
            if i in (900, 1500):
                script.alloc(0x400000 + i, 40, stack=2)
            script.alloc(0x1000000 + 0x1000 * i, 100, stack=2 + i % 2)
            if i % 3 == 0:
                script.free(0x1000000 + 0x1000 * i)
        script.add("blocks", list=3, position="FFFF:0",
                   blocks=f"0x100000:72704,{0x400000 + 900:#x}:40,{0x400000 + 1500:#x}:40")
        trace = self.write(script.close())
        self.show(trace, "#view=range")
        places = self.positions()
        for fragment, number in ("", 3), (f"&from={places[2]}", 2), (f"&from={places[2]}&to={places[8]}", None):
            self.go(f"#view=range{fragment}")
            before, allocated, released, after, _ = self.texts(".view .figures dd")
            said = [whole(text.split("B")[-1]) for text in (before, allocated, after)]
            kept = whole(allocated.split(", ")[-1]) if "kept by" in allocated else 0
            if number is not None:
                self.assertEqual(kept, number)
            self.assertEqual(said[2] - said[0], said[1] - kept - whole(released))

    def test_the_fastest_calls_do_not_depend_on_the_width(self):
        opened = test_page.opened
        size = evaluate("[innerWidth, innerHeight]")
        script = Script(events_per_chunk=500).basics()
        for i in range(3000):
            script.alloc(0x1000 * (i + 1), 8, wall=i * 10**6 if i < 1000 else 10**9 + i * 1000)
        self.show(self.write(script.close(wall=3 * 10**9)))
        seen = set()
        try:
            for width in (1280, 2000, 3840):
                opened.size(width, 900)
                self.settle()
                seen.add(evaluate("heapPage.timeline.fastest(heapPage.timeline.frame("
                                  "heapPage.timeline.ground, heapPage.timeline.colors))"))
        finally:
            opened.size(*size)
            self.settle()
        self.assertEqual(len(seen), 1, seen)
        self.assertRegex(*seen, r"^[\d.]+ k? ?calls/s in \d+\.?\d* ms$")


class ManySites(PageCase):
    SITES = 14000

    def trace(self):
        script = Script(events_per_chunk=5000).basics()
        for i in range(3):
            script.add("symbol", module=1, offset=0x500000 + i, frames=f"maker{i}@make.c@{i + 1}")
        for i in range(self.SITES):
            script.add("stack", parent=1, module=1, offset=0x100000 + 16 * i)               # 5 + 2 i
            script.add("stack", parent=5 + 2 * i, module=1, offset=0x500000 + i % 3)        # 6 + 2 i
        for i in range(self.SITES):
            script.alloc(0x1000000 + 0x1000 * i, 1 + i % 3000, stack=6 + 2 * i, wall=i * 1000)
            if i % 2:
                script.free(0x1000000 + 0x1000 * i, wall=i * 1000)
        return script.close(wall=self.SITES * 1000)

    def shown(self):
        return sorted((cells[0][0].split(" ")[0], whole(cells[2][1]), whole(cells[3][0]))
                      for cells in self.rows(".sites-panel") if whole(cells[3][0]))

    def test_functions_have_all_of_theirs(self):
        trace = self.write(self.trace())
        self.show(trace)
        others = evaluate("heapPage.heap.others")
        self.assertEqual(others["sites"], 4)
        self.assertGreater(others["count"], 2000)
        for fragment, words, size, number in (
                ("#measure=peak", ["peak"], "bytes", "blocks"),
                ("#measure=allocated", ["hot"], "bytes", "allocations"),
                *((f"#at={place}", ["state", "--at", place], "bytes", "blocks")
                  for place in self.positions()[3:16:4])):
            self.go(fragment)
            found = self.json_of(words[0], trace, *words[1:], "--by", "function", "--limit", "0")
            self.assertEqual(self.shown(), sorted((group["function"], group[size], group[number])
                                                  for group in found["groups"]), fragment)
        self.go("#by=function&search=maker1")
        self.assertEqual(len(self.shown()), 1)
        self.assertIn(f"{others['count']:,} other call sites are known by function only",
                      self.texts(".flame-panel .said")[0])
        panel = "[...document.querySelectorAll('.function-panel tbody tr')].map((row) => [row.cells[0].textContent, " \
            "row.cells[0].title, row.cells[1].title])"
        found = self.json_of("state", trace, "--at", evaluate("heapPage.heap.position[heapPage.state.get('at')]"), "--by",
                             "function", "--limit", "0")
        maker, = (group for group in found["groups"] if group["function"] == "maker1")
        self.assertEqual(evaluate(panel), [["itself", "", f"{maker['bytes']:,} bytes"]])
        self.go("#search=main")
        rows = evaluate(panel)
        self.assertEqual([row[:2] for row in rows], [["with its known callees", f"The callers of {others['count']:,} other call "
                                                      "sites are not known: --exact has all"]])
        self.assertLess(whole(rows[0][2]), found["live_bytes"])
        self.go("#by=stack")
        total = evaluate("heapPage.sites.whole")
        self.assertEqual(total, evaluate("heapPage.heap.bytes[heapPage.state.get('at')]"))
        names = evaluate("heapPage.sites.table.rows.map(({ name }) => name)")
        self.assertEqual(sorted(name for name in names if "other" in name),
                         [f"maker{i} (other call sites)" for i in range(3)])
        self.go("#direction=outward")
        self.assertEqual(evaluate("heapPage.flame.picture.sums.total[0]"), total)
        self.check_silence()


class Csv(PageCase):
    def test_shares_are_shares_and_lines_have_columns(self):
        self.show(self.write(shop()))
        head, *rows = evaluate("heapPage.sites.table.csv()")
        self.assertEqual(head, ["Function", "File", "Line", "Share in %", "Bytes", "Blocks", "Change"])
        self.assertAlmostEqual(sum(float(row[3]) for row in rows), 100, delta=0.1)
        audit, = (row for row in rows if row[0].startswith("shop::audit"))
        self.assertTrue(audit[1].endswith("app.cpp"))
        self.assertEqual(audit[2], 20)
        self.go("#by=thread")
        self.assertEqual(evaluate("heapPage.sites.table.csv()[0]"),
                         ["Thread", "Share in %", "Bytes", "Blocks", "Change"])

    def test_histograms_have_shares_and_no_graph(self):
        self.show(self.write(shop()), "#view=lifetimes")
        evaluate("void (URL.createObjectURL = (blob) => { window.saved = blob; return location.hash; }), 1")
        text = evaluate("([...document.querySelectorAll('.view button')].find((node) => "
                        "node.textContent === 'Save CSV').click(), saved.text())")
        self.assertEqual(text.splitlines()[0], '"Lived for, at least (ns)","Lived for, at most (ns)",'
                         'Blocks,Share in %,Bytes')
        for line in text.splitlines()[1:]:
            self.assertLessEqual(int(line.split(",")[0]), int(line.split(",")[1]))

    def test_lists_have_columns_of_their_own(self):
        saved = "void (URL.createObjectURL = (blob) => { (window.saved ||= []).push(blob); return location.hash; }), 1"
        click = "([...document.querySelectorAll('.view button')].filter((node) => node.textContent === 'Save CSV')" \
            ".forEach((node) => node.click()), Promise.all(saved.map((blob) => blob.text())))"
        self.show(self.write(shop()), "#view=leaks")
        evaluate(saved)
        head, row, *_ = evaluate(click)[0].splitlines()
        self.assertEqual(head.split(",")[:3], ["Function", "File", "Line"])
        self.assertIn("app.cpp,", row)
        self.go("#view=range")
        self.assertEqual(evaluate(click)[-1].splitlines()[0], "Allocated and freed,Blocks,Bytes")
        self.go("#view=moves")
        self.assertEqual(evaluate(click)[-3].splitlines()[0].split(",")[:3], ["Function", "File", "Line"])


if __name__ == "__main__":
    lacking = browser.missing(NAME)
    if lacking:
        print(f"not installed: {lacking}")
        sys.exit(77)
    support.main()
