# SPDX-License-Identifier: MIT
"""Handling the page of `ttdanalyze report`, as test_page.py: what a click, a key, the wheel and the search
do, and whether the page says what it left out."""

import shlex
import sys
import unittest

import browser
import support
import test_exact
import test_page
from support import Script
from test_answers import shop
from test_figures import between_moments
from test_page import NAME, PageCase, leaking, whole


def evaluate(expression):
    return test_page.opened.evaluate(expression)


def setUpModule():
    test_page.setUpModule()


def tearDownModule():
    test_page.tearDownModule()


def press(page, key):
    evaluate("void document.body.dispatchEvent(new KeyboardEvent('keydown', "
             f"{{ key: {key!r}, bubbles: true }})), 1")
    page.settle()


CHIP = "[heapPage.onlyChip.hidden, heapPage.only.textContent]"


class Filter(PageCase):
    def names(self):
        return sorted({cells[0][0].split(" ")[0] for cells in self.rows(".sites-panel")})

    def test_a_card_shows_all_functions(self):
        self.show(self.write(shop()))
        for kind, names in (("leak", ["shop::audit", "shop::import"]), ("temporary", ["shop::render"])):
            evaluate(f"void document.querySelector('[data-verdict={kind}] .act').click(), 1")
            self.settle()
            self.assertEqual(evaluate("heapPage.state.get('search')"), "")
            self.assertTrue(set(names) <= set(self.names()), kind)
            self.assertEqual(evaluate("['from', 'to'].map((name) => heapPage.state.get(name))"),
                             [0, evaluate("heapPage.heap.last")])

    def test_a_filter_is_seen_and_goes(self):
        self.show(self.write(shop()))
        self.assertEqual(evaluate(CHIP)[0], True)
        self.go(f"#search=audit&from={self.positions()[3]}")
        self.assertEqual(evaluate(CHIP), [False, "audit"])
        press(self, "Escape")
        self.assertEqual(evaluate("['search', 'from'].map((name) => heapPage.state.get(name))"), ["audit", 0])
        press(self, "Escape")
        self.assertEqual(evaluate(CHIP)[0], True)
        self.assertGreater(len(self.names()), 1)
        self.go("#search=audit")
        evaluate("void document.querySelector('.only button').click(), 1")
        self.settle()
        self.assertEqual(evaluate("heapPage.state.get('search')"), "")
        self.check_silence()

    def test_the_command_has_the_filter(self):
        trace = self.write(shop())
        self.show(trace, "#search=audit")
        words = self.texts("main > .command code")[0].split()
        self.assertEqual(words[-3:], ["--include", "audit", trace])
        found = self.json_of(words[1], trace, *words[2:-1], "--by", "function")
        self.assertEqual(sum(group["bytes"] for group in found["groups"]), evaluate("heapPage.sites.whole"))
        self.go("#search=audit&view=lifetimes")
        words = self.texts("main > .command code")[0].split()
        self.assertEqual(words[-3:], ["--include", "audit", trace])
        self.run_ok(*words[1:])
        self.assertIn("The search does not filter this view, but the command below.", self.texts("main > .scope")[-1])
        self.go("#search=audit&view=about")
        self.assertNotIn("--include", self.texts("main > .command code")[0])

    def command(self, fragment):
        self.go(fragment)
        return shlex.split(self.texts("main > .command code")[0])[1:]

    def test_a_range_follows_the_search(self):
        trace = self.write(shop())
        self.show(trace)
        for name, first, last in (("audit", 3, 9), ("shop::import(std::vector<int>)", 0, 14), ("audit", 5, -1)):
            ends = f"&from={self.positions()[first]}&to={self.positions()[last]}"
            words = self.command(f"#view=range&search={name}{ends}")
            self.assertEqual(words[-3:-1], ["--include", name])
            found = self.json_of("diff", trace, *words[1:-1])
            before, after = (sum(found[quadrant]["blocks"] for quadrant in pair) for pair in (("aofi", "aofo"), ("aifo", "aofo")))
            figures = self.texts(".view .figures dd")
            short = name.split("(")[0]
            self.assertTrue(figures[0].endswith(f" {before:,} block{'' if before == 1 else 's'} of “{short}”"), figures)
            self.assertTrue(figures[1].endswith(f" {after:,} block{'' if after == 1 else 's'} of “{short}”"), figures)
            self.assertEqual(len(figures), 3)
            self.assertIn("The table is of all functions.", " ".join(self.texts(".view .dim")))
        self.check_silence()

    def test_commands_of_a_range_are_of_the_same_calls(self):
        trace = self.write(shop())
        self.show(trace)
        for first, last in ((0, 9), (3, -1), (4, 12)):
            ends = f"&from={self.positions()[first]}&to={self.positions()[last]}"
            states = self.command(f"#view=heap&measure=changed{ends}")
            calls = self.command(f"#view=range{ends}")
            changes = self.json_of("diff", trace, *states[1:-1], "--limit", "0")
            found = self.json_of("diff", trace, *calls[1:-1])
            grown = changes["change_bytes"]
            self.assertEqual(grown, found["aifo"]["bytes"] - found["aofi"]["bytes"])
            self.go(f"#view=heap{ends}")
            self.assertEqual(grown, evaluate("(({ heap, state, timeline: { followed } }) => followed.bytes[state.get('to')] - "
                                             "followed.bytes[state.get('from')])(heapPage)"))

    def test_sums_say_that_they_are_of_all_functions(self):
        self.show(self.write(leaking()), "#")
        for view in ("leaks", "moves"):
            self.go(f"#view={view}&search=nothing+has+this")
            self.assertIn("sums are of all functions", self.texts("main > .scope")[-1], view)
        self.go("#view=leaks&search=nothing+has+this")
        self.assertEqual(self.texts(".view .more-rows"), ["Nothing that the search finds."])
        self.go("#view=leaks")
        self.assertNotIn("all functions", self.texts("main > .scope")[-1])

    def test_an_address_filters_nothing(self):
        self.show(self.write(shop()))
        everything = self.names()
        for text in ("0x", "0x10", "0x100000", "4:", "4:1F", "77", "50%", "#12", "+", "+0.1", "+0.1s", "+100ms"):
            evaluate(f"heapPage.state.set({{ search: {text!r} }}), 1")
            self.settle()
            self.assertEqual(self.names(), everything, text)
            self.assertEqual(evaluate("heapPage.onlyChip.hidden"), True)
        self.check_silence()


    def test_moments_move_the_cursor(self):
        trace = self.write(shop())
        self.show(trace)
        for text in ("50%", "#100", "+0.1s", "+100ms", "100%"):
            evaluate(f"heapPage.state.set({{ search: {text!r} }}), 1")
            self.settle()
            evaluate("heapPage.searchField.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' })), 1")
            self.settle()
            self.assertEqual(evaluate("heapPage.state.get('search')"), "")
            place = self.json_of("state", trace, "--at", text)["position"]
            tick = evaluate("heapPage.state.get('at')")
            self.assertLessEqual(abs(evaluate(f"heapPage.heap.tickAt({place!r})") - tick), 1, text)
            self.assertGreater(tick, 0)

    def hint(self, text):
        """The hint below the search field before Enter; None if there is none."""
        evaluate(f"(heapPage.searchField.focus(), heapPage.state.set({{ search: {text!r} }})), 1")
        self.settle()
        return evaluate("((tip) => tip.getClientRects().length ? tip.textContent : null)(document.querySelector('.search .tip'))")

    def test_a_hint_says_what_enter_does(self):
        trace = self.write(shop())
        self.show(trace)
        events = self.json_of("info", trace)["events"]
        for text, says in (("40%", f"40%: so many of the {events:,} events, not of the time. "),
                           ("#100", "#100: event 100, counted from 0. "), ("+0.1s", "+0.1s: so long after the start. "),
                           (self.positions()[7].lower(), "a position. ")):
            said = self.hint(text)
            self.assertIn(says, said)
            before = evaluate("heapPage.state.get('at')")
            evaluate("heapPage.searchField.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' })), 1")
            self.settle()
            self.assertNotEqual(evaluate("heapPage.state.get('at')"), before)
            self.assertIn(f"Enter moves the cursor to {self.texts('main > section > .figures dd')[0].split(' s')[0]} s, "
                          "the last moment of this page up to there.", said)
            self.assertIsNone(self.hint(""))
        self.assertIn("40% of the events", self.hint("40"))
        self.assertIn("0x1000 is in none of these", self.hint("0x1000"))
        self.assertTrue(evaluate("((tip) => tip.scrollWidth <= tip.clientWidth && tip.getBoundingClientRect().height > 40)"
                                 "(document.querySelector('.search .tip'))"))
        self.assertIsNone(self.hint("audit"))
        self.hint("40%")
        evaluate("(heapPage.searchField.blur(), heapPage.state.tell()), 1")
        self.settle()
        self.assertFalse(evaluate("document.querySelector('.search .tip').getClientRects().length > 0"))
        self.check_silence()

    def test_names_break_between_words(self):
        name = "some::name_space::Template<int, long>::BuildScheduleUnits"
        script = Script().basics()
        script.add("stack", parent=1, module=1, offset=0x2001)  # 5
        script.add("symbol", module=1, offset=0x2001, frames=name.replace(" ", "_").replace(",", ";") + "@a.cpp@1")
        script.alloc(0x1000, 10, stack=5)
        self.show(self.write(script.close()))
        places = evaluate("[...document.querySelector('.sites-panel td.name b').childNodes].map((node) => "
                          "node.nodeType === 3 ? node.data : '|').join('')")
        self.assertIn("some::|", places)
        self.assertIn("|BuildScheduleUnits", places)
        self.assertEqual(places.replace("|", ""), self.texts(".sites-panel td.name b")[0])

    def test_legends_tell_functions_apart(self):
        script = Script().basics()
        names = [f"library-of-a-long-name.so.14+0x{i:x}e3{i:x}c05" for i in range(1, 4)] + \
            [f"one::two::kind{i}::allocate_by_a_long_word" for i in range(2)]
        for i, name in enumerate(names):
            script.add("stack", parent=1, module=1, offset=0x2001 + i)  # 5, …
            script.add("symbol", module=1, offset=0x2001 + i, frames=f"{name}@a.cpp@{i + 1}")
            script.alloc(0x1000 * (i + 1), 100000, stack=5 + i)
        self.show(self.write(script.close()), "#")
        evaluate("heapPage.state.set({ at: heapPage.heap.last }), 1")
        self.settle()
        shown = self.texts(".timeline-box .legend b")
        self.assertEqual(len(set(shown)), len(names), shown)
        self.assertEqual(evaluate("[...document.querySelectorAll('.timeline-box .legend b')]"
                                  ".filter((node) => node.scrollWidth > node.clientWidth + 1).length"), 0, shown)

    def test_headings_are_explained(self):
        self.show(self.write(between_moments()), "#view=moves")
        hints = dict(evaluate("[...document.querySelectorAll('.view th button')].map((node) => "
                              "[node.textContent.replace(/ [▾▴]/, ''), node.title])"))
        for title in ("Copied at most", "Remapped", "Avoidable", "Moved"):
            self.assertTrue(hints[title], title)

    def test_bytes_copied_are_certain_or_at_most_everywhere(self):
        script = Script().basics()
        script.alloc(0x10010, 100)
        script.realloc(0x10010, 0x10040, 200)
        for name, trace, is_known in ("known", script.close(), True), ("unknown", between_moments(), False):
            self.show(self.write(trace, name), "#view=moves")
            self.assertRegex(self.texts(".view p")[0], r"; \d+ bytes copied" if is_known else r"; at most \d+ bytes copied")
            for table in ("moves", "chains"):
                title = "Copied" if is_known else "Copied at most"
                hints = dict(evaluate(f"[...document.querySelectorAll('[aria-label={table}] th button')].map((node) => "
                                      "[node.textContent.replace(/ [▾▴]/, ''), node.title])"))
                self.assertTrue(hints.get(title), (title, hints))

    def test_a_column_of_times_has_times_only(self):
        self.show(self.write(between_moments()), "#view=leaks")
        for cells in self.rows(".view"):
            for text, _ in cells[4:6]:
                self.assertRegex(text, r"^(≤ )?\+[\d.]+ s( – \+[\d.]+ s)?$")


class Measures(PageCase):
    def test_number_weighs_the_table(self):
        self.show(self.write(shop()), "#measure=allocated")
        shares = "heapPage.sites.table.csv().slice(1).map((row) => [row[0], row[3], row[4], row[5]])"
        by_bytes = evaluate(shares)
        self.assertEqual([row[2] for row in by_bytes], sorted((row[2] for row in by_bytes), reverse=True))
        self.go("#measure=allocated&unit=blocks")
        by_number = evaluate(shares)
        self.assertEqual([row[3] for row in by_number], sorted((row[3] for row in by_number), reverse=True))
        total = sum(row[3] for row in by_number)
        for name, share, _, number in by_number:
            self.assertEqual(share, f"{100 * number / total:.2f}", name)
        self.assertNotEqual([row[1] for row in by_bytes], [row[1] for row in by_number])

    def test_the_order_of_tables_is_in_the_link(self):
        trace = self.write(leaking())
        orders = "Object.fromEntries([...document.querySelectorAll('.view table')].map((table) => [table.ariaLabel, [...table.querySelectorAll('th')]" \
            ".map((cell, i) => [i, cell.ariaSort]).filter(([, order]) => order !== 'none')]))"
        click = "[...document.querySelectorAll('[aria-label=\"{}\"] th button')][{}].click(), 1"
        self.show(trace, "#view=leaks")
        self.assertEqual(evaluate(orders), {"leaks": [[1, "descending"]]})
        evaluate(click.format("leaks", 2))
        evaluate(click.format("leaks", 2))
        self.settle()
        self.go(evaluate("heapPage.state.fragment().replace('view=leaks', 'view=lifetimes')"))
        evaluate(click.format("sizes", 1))
        self.settle()
        fragment = evaluate("heapPage.state.fragment()")
        self.assertIn("sort=leaks.2.up*sizes.1.down", fragment)
        self.show(trace, fragment)
        self.assertEqual(evaluate(orders)["sizes"], [[1, "descending"]])
        self.go(fragment.replace("lifetimes", "leaks"))
        self.assertEqual(evaluate(orders), {"leaks": [[2, "ascending"]]})
        blocks = [whole(cells[2][0]) for cells in self.rows(".view")]
        self.assertEqual(blocks, sorted(blocks))
        for text in ("", "&sort=leaks.77.up", "&sort=leaks.2*x.1.up"):
            self.go(f"#view=leaks{text}")
            self.assertEqual(evaluate(orders), {"leaks": [[1, "descending"]]}, text)
        self.go("#unit=blocks&by=line&sort=call-sites.0.up")
        self.assertEqual(evaluate(orders)["call sites"], [[0, "ascending"]])
        evaluate("heapPage.state.set({ unit: 'bytes' }), 1")
        self.settle()
        self.assertEqual(evaluate(orders)["call sites"], [[0, "ascending"]])
        evaluate(click.format("call sites", 2))
        self.settle()
        self.assertEqual(evaluate("heapPage.state.get('sort')"), "")
        self.check_silence()

    def test_rows_that_cannot_be_seen_follow(self):
        script = Script().basics()
        for i in range(90):
            script.add("stack", parent=1, module=1, offset=0x3000 + i)  # 5 ...
            script.add("symbol", module=1, offset=0x3000 + i, frames=f"many::f{i}()@many.cpp@{i + 1}")
        for i in range(90):
            script.alloc(0x1000 * (i + 1), 1000 + 7 * i % 90, stack=5 + i, wall=i * 10**6)
        for i in range(60):
            script.free(0x1000 * (i + 1), wall=(100 + i) * 10**6)
        self.show(self.write(script.close(wall=10**9)))
        shown = "[...document.querySelectorAll('.sites-panel tbody tr')].map((row) => row.cells[2].title)"
        wanted = "heapPage.sites.table.csv().slice(1).map((row) => `${row[4].toLocaleString('en-US')} bytes`)"
        for at in (40, 89, 20, 150, 60):
            evaluate(f"heapPage.state.set({{ at: {at} }}), 1")
            self.settle()
            top = evaluate(wanted)
            self.assertEqual(evaluate(shown)[:12], top[:12], at)
            evaluate("new Promise((done) => setTimeout(() => done(1), 200))")
            self.assertEqual(evaluate(shown), top, at)
        self.check_silence()

    def test_the_note_has_the_unit_of_the_table(self):
        trace = self.write(shop())
        self.show(trace, "#measure=temporary&unit=blocks")
        found = self.json_of("temporary", trace)
        self.assertIn(f"{found['temporary']:,} allocations by function", self.texts(".sites-panel .said")[0])
        self.go("#measure=temporary")
        self.assertIn(f"{found['temporary_bytes']:,} bytes by function", self.texts(".sites-panel .said")[0])
        self.go("#unit=blocks&by=thread")
        self.assertRegex(self.texts(".sites-panel .said")[0], r"^Live at the cursor: [\d,]+ blocks by thread")
        self.check_silence()

    def test_the_column_of_change_is_explained(self):
        self.show(self.write(leaking()))
        for fragment in ("#", "#measure=lost", "#measure=allocated", "#by=thread"):
            self.go(fragment)
            hints = dict(evaluate("[...document.querySelectorAll('.sites-panel th button')].map((node) => "
                                  "[node.textContent.replace(/ [▾▴]/, ''), node.title])"))
            self.assertIn("live bytes at the end of the range, less those at its beginning", hints["Change"], fragment)
            self.assertIn(hints["Change"], self.texts(".sites-panel .said")[0])

    def test_a_zoom_into_nothing_ends(self):
        self.show(self.write(shop()))
        root = evaluate("(({ boxes, picture }) => boxes.find(({ node }) => node >= 0 && "
                        "picture.tree.function(node).plain === 'shop::audit').node)(heapPage.flame)")
        self.go(f"#root={root}")
        self.assertEqual(evaluate("heapPage.flame.picture.root"), root)
        evaluate("heapPage.state.set({ measure: 'temporary' }), 1")
        self.settle()
        self.assertEqual(evaluate("heapPage.state.get('root')"), "")
        self.assertGreater(evaluate("heapPage.flame.boxes.length"), 0)
        evaluate(f"heapPage.state.set({{ measure: 'live', root: '{root}' }}), 1")
        self.settle()
        evaluate("heapPage.state.set({ measure: 'allocated' }), 1")
        self.settle()
        self.assertEqual(evaluate("heapPage.flame.picture.root"), root)

    def test_the_badge_counts_what_is_lost(self):
        trace = self.write(leaking())
        self.show(trace)
        lost = [group for group in self.json_of("leaks", trace)["groups"] if group["class"] == "definitely_lost"]
        badge = "[...document.querySelectorAll('[role=tab]')][1].textContent"
        self.assertEqual(evaluate(badge), f"Leaks{len(lost)}")
        self.show(self.write(shop(), "unknown"))
        self.assertEqual(evaluate(badge), "Leaks")

    def test_lists_have_times(self):
        self.show(self.write(shop()), "#view=leaks")
        shown = self.rows(".view")[0]
        self.assertRegex(shown[4][0], r"^\+0\.\d+ s$")
        self.assertTrue(evaluate("document.querySelector('.view tbody tr').cells[4].firstChild.title")
                        .startswith("Position "))

    def test_blocks_of_a_few_calls_are_named(self):
        script = Script().basics()
        for i in range(100):
            for k in (1, 2):
                script.alloc(0x1000 * k, 40, wall=i * 10**6)
            for k in (1, 2):
                script.free(0x1000 * k, wall=i * 10**6)
        self.show(self.write(script.close(wall=10**8)))
        self.assertIn("200 (100 %) with at most 3 calls between", self.texts("[data-verdict=temporary]")[0])
        self.show(self.write(shop(), "shop"))
        self.assertNotIn("calls between", self.texts("[data-verdict=temporary]")[0])


class Pointer(PageCase):
    def wheel(self, delta):
        """Turns the wheel over the timeline. Whether the page scrolls."""
        scrolls = evaluate("heapPage.timeline.canvas.dispatchEvent(new WheelEvent('wheel', "
                           f"{{ deltaY: {delta}, offsetX: 300, clientX: 400, bubbles: true, cancelable: true }}))")
        self.settle()
        return scrolls

    def test_the_wheel_scrolls_where_it_cannot_zoom(self):
        self.show(self.write(shop()))
        self.assertTrue(self.wheel(100))
        self.assertFalse(self.wheel(-100))
        self.assertNotEqual(evaluate("heapPage.state.get('zoom')"), "")
        self.assertFalse(self.wheel(100))

    def test_a_new_size_drops_the_second_cursor(self):
        self.show(self.write(shop()))
        evaluate("((canvas) => { const place = canvas.getBoundingClientRect(); canvas.dispatchEvent("
                 "new PointerEvent('pointermove', { clientX: place.left + 300, clientY: place.top + 50 })); })"
                 "(heapPage.timeline.canvas)")
        self.assertEqual(evaluate("heapPage.timeline.line.hidden"), False)
        evaluate("void dispatchEvent(new Event('resize')), 1")
        self.assertEqual(evaluate("heapPage.timeline.line.hidden"), True)

    def test_at_the_lower_edge_the_hint_leaves_the_range_alone(self):
        self.show(self.write(shop()), "#")
        self.go(f"#from={self.positions()[3]}&to={self.positions()[9]}")
        covers = evaluate("(({ timeline: { canvas, hint, chip } }) => { const place = canvas.getBoundingClientRect(); "
                          "const box = chip.getBoundingClientRect(); canvas.dispatchEvent(new PointerEvent("
                          "'pointermove', { clientX: box.left + 20, clientY: place.bottom - 30 })); "
                          "const tip = hint.getBoundingClientRect(); return tip.top < box.bottom && "
                          "tip.bottom > box.top && tip.left < box.right && tip.right > box.left; })(heapPage)")
        self.assertFalse(covers)


@unittest.skipUnless(test_exact.HAS_ENGINE, "no engine")
class ExactPage(test_exact.ExactCase):
    def test_every_view_has_a_key(self):
        self.show_exact(self.write(leaking()))
        count = evaluate("heapPage.views.length")
        self.assertEqual(count, 10)
        for i in range(count):
            press(self, str((i + 1) % 10))
            self.assertEqual(evaluate("heapPage.view() === heapPage.views[%d]" % i), True)

    def test_addresses_lead_on(self):
        self.show_exact(self.write(between_moments()))
        self.visit("#view=memory&address=0x1000")
        self.wait("document.querySelectorAll('.owner h4').length === 2")
        self.assertEqual(self.texts(".owner h3"), ["40 bytes at 0x1000, reallocated to 0x2000"])
        evaluate("void document.querySelector('.owner h3 button').click(), 1")
        self.settle()
        self.assertEqual(evaluate("heapPage.state.get('address')"), "0x2000")
        self.wait("document.querySelector('.owner h3')?.textContent.includes('reallocated from 0x1000')")
        self.check_silence()

    def test_calls_name_the_program_and_mark_the_cursor(self):
        trace = self.write(shop())
        self.show_exact(trace)
        rows = self.run_ok("events", "--format", "json", trace).json_lines
        self.visit(f"#view=calls&at={rows[200]['time_end']}")
        self.wait("document.querySelectorAll('tr.current').length === 1")
        self.assertEqual(evaluate("document.querySelector('tr.current').cells[0].textContent"), "#200")
        names = {cells[5][0] for cells in self.rows(".view") if len(cells) > 5}
        self.assertIn("shop::import(std::vector<int>)", names)
        self.assertNotIn("std::make(int)", names)
        evaluate("void document.querySelector('.view td.name button').click(), 1")
        self.settle()
        self.assertEqual(evaluate("heapPage.state.get('view')"), "memory")


if __name__ == "__main__":
    lacking = browser.missing(NAME)
    if lacking:
        print(f"not installed: {lacking}")
        sys.exit(77)
    support.main()
