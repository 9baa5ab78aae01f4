# SPDX-License-Identifier: MIT
"""What the page knows of one function, of an address, of sparse pages and of blocks that are freed soon, as
test_page.py; all numbers are those of the commands."""

import shlex
import sys

import browser
import support
import test_page
from snapshot_support import IN_BSS, SnapshotScript
from support import Script
from test_answers import shop
from test_page import NAME, PageCase, leaking


def evaluate(expression):
    return test_page.opened.evaluate(expression)


def setUpModule():
    test_page.setUpModule()


def tearDownModule():
    test_page.tearDownModule()


def workshop():
    """A program whose function work() allocates, and calls pack(), which grows a block; with lost blocks, blocks
    that are freed at once and a few calls later, and a release too much."""
    script = SnapshotScript().basics()
    for i, (parent, name) in enumerate(((1, "shop::work(int)@work.cpp@10"), (1, "shop::work(int)@work.cpp@12"),
                                        (5, "shop::pack()@work.cpp@30"), (5, "shop::idle()@work.cpp@50"))):
        script.add("stack", parent=parent, module=1, offset=0x2000 + i)   # 5, 6, 7, 8
        script.add("symbol", module=1, offset=0x2000 + i, frames=name)
    script.alloc(0x100000, 16, stack=7, wall=0)
    for i in range(60):
        wall = 4_200_000 + i * 10**6
        script.alloc(0x200000 + 0x1000 * i, 300, stack=5, wall=wall)
        script.alloc(0x400000 + 0x2000 * i, 50 + i, stack=6 if i % 3 else 8, wall=wall)
        script.realloc(0x100000 + 0x10 * i, 0x100000 + 0x10 * (i + 1), 32 + 16 * i, stack=7, wall=wall)
        script.alloc(0x900000, 24, stack=7, wall=wall)
        script.free(0x900000, wall=wall)
        if i % 2:
            script.alloc(0x910000, 40, stack=5, wall=wall)
            script.alloc(0x920000, 8, stack=6, wall=wall)
            script.free(0x910000, wall=wall)
            script.free(0x920000, wall=wall)
        if i > 40:
            script.free(0x200000 + 0x1000 * (i - 30), wall=wall)
    script.snapshot((0x200008, 0x201000), (IN_BSS, 8, 0x1003c0))
    script.free(0x200000 + 0x1000 * 20, stack=8)
    return script.close(wall=70 * 10**6)


class OneFunction(PageCase):
    def panel(self):
        """The sums in the panel by row and title: the text of each cell, and its title."""
        return evaluate("((node) => node.hidden ? null : Object.fromEntries([...node.querySelectorAll('tbody tr')].map((row) => "
                        "[row.cells[0].textContent, Object.fromEntries([...row.cells].slice(1).map((cell, i) => "
                        "[node.querySelectorAll('thead th')[i + 1].textContent, [cell.textContent, cell.title]]))])))"
                        "(document.querySelector('.function-panel'))")

    def exact(self, cell):
        return int(cell[1].split(" ")[0].replace(",", "").replace("−", "-"))

    def commands(self):
        evaluate("[...document.querySelectorAll('.function-panel details')].at(-1).open = true, 1")
        self.settle()
        return [shlex.split(text)[1:] for text in self.texts(".function-panel .command code")]

    def group(self, words, name):
        """The amounts of a function in the output of a command by function, and in all stacks with it."""
        found = self.json_of(words[0], words[-1], *words[1:-1], "--limit", "0")
        found.setdefault("groups", found.get("changes"))
        return found, next((group for group in found["groups"] if group["function"] == name), None)

    def check_panel(self, trace, name, rows):
        panel = self.panel()
        self.assertEqual(list(panel), rows)
        commands = self.commands()
        self.assertEqual([words[0] for words in commands],
                         ["state", "diff", "hot", "temporary", "temporary", "leaks", "moves"])
        for words in commands:
            self.assertEqual(words[-1], trace)
            self.assertEqual(words[words.index("--include") + 1], name)
        state, diff, hot, temporary, soon, leaks, moves = (self.group(words, name) for words in commands)
        for row, sums in panel.items():
            def amount(found, member):
                whole, group = found
                return sum(group[member] for group in whole["groups"]) if row != "itself" else (group or {}).get(member, 0)
            self.assertEqual(self.exact(sums["Live at the cursor"]), amount(state, "bytes"))
            self.assertEqual(sums["Blocks"][0], f"{amount(state, 'blocks'):,}")
            self.assertEqual(self.exact(sums["Allocated"]), amount(hot, "bytes"))
            self.assertEqual(sums["Allocations"][0], f"{amount(hot, 'allocations'):,}")
            self.assertEqual(sums["Temporary"][0], f"{amount(temporary, 'temporary'):,}")
            self.assertEqual(sums["≤ 3 calls between"][0], f"{amount(soon, 'temporary'):,}")
            self.assertEqual(self.exact(sums["Copied"]) if "Copied" in sums else 0, amount(moves, "bytes_copied_at_most"))
            for kind in ("definitely", "indirectly", "possibly"):
                lost = sum(group["bytes"] for group in leaks[0]["groups"] if group["class"] == f"{kind}_lost" and
                           (row != "itself" or group["function"] == name))
                title = f"{kind.capitalize()} lost"
                self.assertEqual(self.exact(sums[title]) if title in sums else 0, lost, title)
            self.assertEqual(self.exact(sums["Grew in the range"]), amount(diff, "change_bytes"), diff)
        return panel

    def test_a_search_shows_the_sums_of_the_function(self):
        trace = self.write(workshop())
        self.show(trace)
        self.assertIsNone(self.panel())
        for name, rows in (("shop::work(int)", ["itself", "with its callees"]), ("shop::pack()", ["itself"]),
                           ("main", ["with its callees"])):
            evaluate(f"heapPage.state.set({{ search: {name!r} }}), 1")
            self.settle()
            self.check_panel(trace, name, rows)
        self.check_silence()

    def test_it_follows_cursor_and_range(self):
        trace = self.write(workshop())
        self.show(trace)
        places = self.positions()
        for at, first, last in ((3, 0, -1), (9, 4, 12), (15, 2, 17)):
            self.go(f"#search=shop::work(int)&at={places[at]}&from={places[first]}&to={places[last]}")
            self.check_panel(trace, "shop::work(int)", ["itself", "with its callees"])
        self.check_silence()

    def test_everything_that_names_a_function_leads_there(self):
        trace = self.write(workshop())
        self.show(trace)
        title = "((node) => node.hidden ? '' : node.querySelector('h2').textContent)(document.querySelector('.function-panel'))"
        box = "(({ canvas, boxes, picture: { tree, is_icicle } }) => { const box = boxes.find(({ node }) => node >= 0 && " \
            "tree.function(node).plain === 'shop::pack'); const place = canvas.getBoundingClientRect(); canvas.dispatchEvent(" \
            "new MouseEvent('click', { clientX: place.left + box.x + 2, clientY: place.top + 22 * box.depth + 5 })); })(heapPage.flame)"
        for click, name in (
                ("[...document.querySelectorAll('.sites-panel tbody tr')].find((row) => row.textContent.includes('idle')).click()", "shop::idle"),
                (box, "shop::pack"),
                ("[...document.querySelectorAll('.timeline-box .legend button')].find((node) => node.textContent.includes('idle')).click()",
                 "shop::idle"),
                ("document.querySelector('[data-verdict=peak] code button').click()", None),
                ("heapPage.state.set({ search: 'pack' })", "shop::pack"), ("heapPage.state.set({ search: 'shop' })", ""),
                ("heapPage.state.set({ search: 'work.cpp' })", "")):
            evaluate("heapPage.state.set({ search: '', root: '' }), 1")
            self.settle()
            self.assertEqual(evaluate(title), "")
            evaluate(f"void {click}, 1")
            self.settle()
            wanted = evaluate("document.querySelector('[data-verdict=peak] code').textContent") if name is None else name
            self.assertEqual(evaluate(title), wanted, click)
        self.go("#view=errors")
        evaluate("void document.querySelector('.view .stack button.name').click(), 1")
        self.settle()
        self.assertEqual(evaluate(title), self.texts(".view .stack button.name")[0].split("(")[0])
        evaluate("void document.querySelector('[aria-label=\"Close the function\"]').click(), 1")
        self.settle()
        self.assertEqual(evaluate("[heapPage.state.get('search'), document.querySelector('.function-panel').hidden]"), ["", True])
        self.check_silence()

    def test_the_line_and_the_stack_of_most(self):
        trace = self.write(workshop())
        self.show(trace, "#search=shop::work(int)")
        said = " ".join(self.texts(".function-panel .said"))
        at = evaluate("heapPage.heap.position[heapPage.state.get('at')]")
        groups = [group for group in self.json_of("state", trace, "--at", at, "--limit", "0")["groups"]
                  if group["stack"][0]["function"] == "shop::work(int)"]
        total = sum(group["bytes"] for group in groups)
        most = max(groups, key=lambda group: group["bytes"])
        self.assertIn(f"Heaviest line: work.cpp:{most['stack'][0]['line']}, {100 * most['bytes'] / total:.0f} % of its live bytes", said)
        self.assertEqual(len(groups), 2)
        evaluate("document.querySelector('.function-panel details').open = true, 1")
        self.assertIn(f"work.cpp:{most['stack'][0]['line']}", self.texts(".function-panel .stack li")[0])
        self.go("#search=shop::idle()")
        self.assertIn("1 error: double free", self.texts(".function-panel button"))

    def test_a_caller_has_its_own_lines(self):
        script = Script().basics()
        for i, (parent, name) in enumerate(((1, "shop::audit()@audit.cpp@27"), (1, "shop::audit()@audit.cpp@29"),
                                            (5, "shop::open(int)@open.cpp@20"), (6, "shop::open(int)@open.cpp@21"))):
            script.add("stack", parent=parent, module=1, offset=0x2000 + i)   # 5, 6, 7, 8
            script.add("symbol", module=1, offset=0x2000 + i, frames=name)
        for i in range(4):
            script.alloc(0x1000 * (i + 1), 100, stack=7 if i else 8)
        trace = self.write(script.close())
        self.show(trace)
        for at, share, places in (("heap.position.findIndex((_, tick) => heap.bytes[tick] === 100)", 100, ("audit.cpp:29", "open.cpp:21")),
                                  ("heap.last", 75, ("audit.cpp:27", "open.cpp:20"))):
            for name, place in zip(("shop::audit()", "shop::open(int)"), places):
                evaluate(f"(({{ heap, state }}) => state.set({{ search: {name!r}, at: {at} }}))(heapPage), 1")
                self.settle()
                self.assertEqual(self.texts(".function-panel h2 + small"), [place])
                self.assertIn(f"Heaviest line: {place}, {share} % of its live bytes", self.texts(".function-panel .said"))
        self.check_silence()

    def test_a_range_has_each_function_once(self):
        trace = self.write(workshop())
        self.show(trace, "#view=range", "--from", self.json_of("state", trace, "--at", "5%")["position"])
        for quadrant in ("aifi", "aifo"):
            names = [cells[0][0].strip().split(" ")[0] for cells in self.rows(f"[data-quadrant={quadrant}]")]
            self.assertIn("shop::work", names)
            self.assertEqual(len(names), len(set(names)))
        evaluate("[...document.querySelectorAll('[data-quadrant=aifo] tbody tr')].find((row) => row.textContent.includes('shop::work')).click(), 1")
        self.settle()
        stacks = self.texts("[data-quadrant=aifo] .detail .stack li:first-child")
        self.assertEqual([text.split(" ")[1] for text in stacks], ["work.cpp:10", "work.cpp:12"])
        self.assertRegex(self.texts("[data-quadrant=aifo] .detail p")[0], r"^\d+ blocks, [\d,]+ bytes$")


class Memory(PageCase):
    def test_sparse_pages_are_those_of_the_command(self):
        trace = self.write(workshop())
        self.show(trace, "#view=memory")
        found = self.json_of("fragmentation", trace)
        self.assertGreater(len(found["keepers"]), 3)
        self.assertEqual(self.texts("main > .command code"), [f"ttdanalyze fragmentation {trace}"])
        self.assertIn(f"{found['sparse_pages']:,} of {found['pages']:,} pages have less than a quarter in blocks",
                      self.texts(".view .said")[0])
        rows = evaluate("[...document.querySelectorAll('[aria-label=sparse] tbody tr')].map((row) => "
                        "[row.cells[1].title, row.cells[2].textContent, row.cells[3].title])")
        self.assertEqual(sorted(rows), sorted([f"{keeper['kept_bytes']:,} bytes", f"{keeper['blocks']:,}", f"{keeper['bytes']:,} bytes"]
                                              for keeper in found["keepers"]))
        evaluate("void document.querySelector('[aria-label=sparse] tbody tr').click(), 1")
        self.settle()
        self.assertGreater(len(self.texts("[aria-label=sparse] .stack li")), 1)
        at = self.positions()[5]
        self.go(f"#view=memory&at={at}")
        self.assertIn("at the end of the trace", self.texts(".view h2")[0])
        time, = evaluate("[heapPage.figures.timeOf(heapPage.state.get('at'))]")
        self.assertIn(f"The cursor stands at {time}, where other pages may be sparse", self.texts(".view .said")[1])
        self.assertIn(f"ttdanalyze fragmentation --at {at} {trace}", self.texts(".view .command code"))
        for command in self.texts(".command code"):
            self.run_ok(*shlex.split(command)[1:])
        evaluate("heapPage.state.set({ at: heapPage.heap.last }), 1")
        self.settle()
        self.assertEqual(self.texts(".view .said")[1], "The cursor stands there.")
        self.assertTrue(evaluate("heapPage.view().made.now.node.hidden"))
        self.check_silence()

    def test_sparse_pages_of_a_part(self):
        trace = self.write(workshop())
        self.show(trace, "#view=memory", "--to", "50%", "--include", "shop")
        command, = self.texts("main > .command code")
        self.assertNotIn("--include", command)
        found = self.json_of("fragmentation", trace, *shlex.split(command)[2:-1])
        self.assertIn(f"{found['sparse_pages']:,} of {found['pages']:,} pages", self.texts(".view .said")[0])
        self.assertEqual(evaluate("document.querySelectorAll('[aria-label=sparse] tbody tr').length"), len(found["keepers"]))
        self.assertIn("The filters of this page do not apply", self.texts("main > .scope")[-1])

    def search(self, text):
        evaluate(f"heapPage.state.set({{ search: {text!r} }}), 1")
        self.settle()
        said = self.texts("main > .scope")[-1]
        evaluate("heapPage.searchField.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' })), 1")
        self.settle()
        return said

    def test_an_address_shows_what_is_known_of_its_block(self):
        trace = self.write(workshop())
        self.show(trace)
        group = next(group for group in self.json_of("leaks", trace)["groups"] if group["class"] == "definitely_lost")
        finding, = self.json_of("errors", trace)["findings"]
        chain = self.json_of("moves", trace)["chains"][0]
        for address, word, texts in (
                (group["address"], "definitely lost", ["At the end definitely lost", f"Allocated at {group['first_position']}"]),
                (finding["address"], "double free", ["Error: double free.", "Released by free()"]),
                (chain["address"], "reallocated", [f"Reallocated {chain['reallocs']} times, from {chain['start_size']:,} to "
                                                   f"{chain['final_size']:,} bytes"]),
                (f"{int(chain['address'], 16) + 4:#x}", "reallocated", [f"Reallocated {chain['reallocs']} times"])):
            said = self.search(address)
            self.assertIn(word, said)
            self.assertEqual(evaluate("['view', 'address', 'search'].map((name) => heapPage.state.get(name))"), ["memory", address, ""])
            self.assertEqual(len(self.texts(".view .owner")), 1)
            shown = " ".join(self.texts(".view .owner"))
            for text in texts:
                self.assertIn(text, shown)
            self.assertEqual(self.texts("main > .command code"), [f"ttdanalyze history --address {address} {trace}"])
        self.check_silence()

    def test_an_unknown_address_names_what_knows_it(self):
        self.show(self.write(shop()))
        said = self.search("0xABC123")
        self.assertIn("report --exact", said)
        self.assertEqual(self.texts(".view .owner"), [])
        self.assertIn("0xabc123 is in none of these; its whole life", " ".join(self.texts(".view .said")))
        self.assertEqual(self.texts(".view .command code")[-1], f"ttdanalyze history --address 0xabc123 {self.path('trace.ttd')}")
        self.run_ok(*shlex.split(self.texts("main > .command code")[0])[1:])
        self.go("#view=memory&address=nonsense")
        self.assertEqual(self.texts("main > .command code")[0].split()[1], "fragmentation")
        self.check_silence()


    def test_each_lost_block_is_known_with_its_group(self):
        script = SnapshotScript().basics()
        sizes = [30 + i % 7 for i in range(300)]
        for i, size in enumerate(sizes):
            script.alloc(0x200000 + 0x100 * i, size, stack=3, wall=i * 10**6)
        script.alloc(0x900000, 64, wall=10**9)
        script.snapshot((IN_BSS, 8, 0x900000))
        trace = self.write(script.close(wall=10**9))
        self.show(trace)
        for i in (0, 1, 150, 299):
            said = self.search(f"{0x200000 + 0x100 * i + 8:#x}")
            self.assertIn("definitely lost; Enter shows its block", said)
            shown, = self.texts(".view .owner")
            self.assertIn(f"{sizes[i]} bytes at {0x200000 + 0x100 * i:#x}", shown)
            self.assertIn(f"one of 300 blocks of its stack, from 30 to 36 bytes each, {sum(sizes):,} bytes in all", shown)
            self.assertIn("Allocated at" if i == 0 else "Allocated between", shown)
            self.assertGreater(len(self.texts(".view .owner .stack li")), 0)
        self.assertIn("0xabc123 is in none of these, nor in a lost block; ", self.search("0xabc123"))
        self.check_silence()

    def test_more_lost_blocks_than_the_page_lists(self):
        script = SnapshotScript(events_per_chunk=500).basics()
        for i in range(1000):
            script.alloc(0x200000 + 0x100 * i, 10 + i % 2, stack=3, wall=i)
        script.snapshot((IN_BSS, 8, 0x100))
        self.show(self.write(script.close()))
        listed = len(evaluate("heapPage.parts.heap.lost_blocks.definitely_lost.address"))
        self.search("0x200000")
        self.assertIn("one of 1,000 blocks of its stack, 10,500 bytes in all, 11 B each on average", self.texts(".view .owner")[0])
        said = self.search(f"{0x200000 + 0x100 * 999:#x}")
        self.assertIn(f"nor in the {listed} lost blocks that it lists ({1000 - listed} more are lost)", said)
        self.check_silence()

    def test_a_lost_group_leads_to_its_first_block(self):
        trace = self.write(workshop())
        self.show(trace, "#view=leaks")
        groups = self.json_of("leaks", trace, "--show", "all")["groups"]
        said = {f"{'It is' if group['blocks'] == 1 else 'The first is'} block {group['address']}."
                for group in groups}
        evaluate("[...document.querySelectorAll('[aria-label=leaks] tbody tr')].forEach((row) => row.click()), 1")
        self.settle()
        shown = self.texts(".view .first-block")
        self.assertGreater(len(shown), 0)
        self.assertLessEqual(set(shown), said)
        evaluate("document.querySelector('.view .first-block button').click(), 1")
        self.settle()
        self.assertEqual(evaluate("heapPage.state.get('view')"), "memory")
        self.assertIn(evaluate("heapPage.state.get('address')"), shown[0])
        self.assertEqual(len(self.texts(".view .owner")), 1)
        self.check_silence()

    def test_enter_shows_the_biography_and_leaves_the_search(self):
        self.show(self.write(shop()), "#view=memory")
        evaluate("document.querySelector('.view .panel').style.minHeight = '4000px', 1")
        evaluate("heapPage.searchField.focus(), 1")
        self.search("0xABC123")
        top = evaluate("document.querySelector('.view [aria-label^=Biography]').getBoundingClientRect().top / innerHeight")
        self.assertLess(top, 1)
        self.assertNotEqual(evaluate("document.activeElement.type"), "search")
        evaluate("heapPage.searchField.focus(), 1")
        self.search("50%")
        self.assertNotEqual(evaluate("document.activeElement.type"), "search")
        evaluate("heapPage.searchField.focus(), 1")
        self.search("no such thing")
        self.assertEqual(evaluate("document.activeElement.type"), "search")


class Lists(PageCase):
    def test_blocks_that_moved_most_have_a_function(self):
        trace = self.write(workshop())
        self.show(trace, "#view=moves")
        chains = self.json_of("moves", trace)["chains"]
        names = evaluate("[...document.querySelectorAll('[aria-label=chains] tbody tr')].map((row) => row.cells[0].textContent)")
        self.assertEqual(names, ["shop::pack()"] * len(chains))
        self.go("#view=retained")
        times = evaluate("[...document.querySelectorAll('[aria-label=retained] tbody tr')].map((row) => row.cells[4].textContent)")
        self.assertGreater(len(times), 0)
        for time in times:
            self.assertRegex(time, r"^(≤ )?\+[\d.]+ s( – \+[\d.]+ s)?$")
        self.go("#view=about")
        for time in evaluate("[...document.querySelectorAll('[aria-label=moments] tbody tr')].map((row) => row.cells[1].textContent)"):
            self.assertRegex(time, r"^((≤ )?\+[\d.]+ s( – \+[\d.]+ s)?)?$")


class Layout(PageCase):
    """Widths of windows."""

    def setUp(self):
        super().setUp()
        self.size = evaluate("[innerWidth, innerHeight]")

    def tearDown(self):
        test_page.opened.size(*self.size)
        super().tearDown()

    def lines(self, selector):
        """How many lines the children of an element take."""
        return evaluate(f"new Set([...document.querySelector({selector!r}).children].filter((node) => node.offsetHeight)"
                        ".map((node) => { const place = node.getBoundingClientRect(); return Math.round((place.top + place.bottom) / 40); })).size")

    def test_bars_take_one_line(self):
        trace = self.write(workshop())
        test_page.opened.size(1280, 800)
        self.show(trace, "#measure=soon", "--title", "Heap of a shop")
        self.assertEqual(self.lines(".flame-panel .bar"), 1)
        self.go("#search=shop::work(int)")
        evaluate("heapPage.panel.fold(false), 1")
        self.settle()
        self.assertIn("≤ 3 calls between", self.texts(".function-panel th"))
        self.assertTrue(evaluate("((box) => box.scrollWidth <= box.clientWidth)(document.querySelector('.function-panel .table-box'))"))
        self.assertTrue(evaluate("document.documentElement.scrollWidth <= innerWidth"))

    def test_the_panel_leaves_the_view_in_low_windows(self):
        trace = self.write(workshop())
        for height, is_low in ((800, True), (1100, False)):
            test_page.opened.size(1280, height)
            self.show(trace, "#search=shop::work(int)")
            parts = "['', ' .table-box'].map((part) => document.querySelector(`.function-panel${part}`).getClientRects()[0]?.height || 0)"
            high, table = evaluate(parts)
            self.assertEqual([high < 60, table == 0], [is_low, is_low], (high, table))
            live = self.texts(".function-panel tbody td")
            self.assertIn(f"itself {live[0]}, with its callees ", self.texts(".function-panel .brief")[0])
            evaluate("document.querySelector('.function-panel [aria-expanded]').click(), 1")
            self.settle()
            self.assertEqual(evaluate(parts)[1] > 0, is_low)

    def test_menus_show_all_that_they_have(self):
        trace = self.write(workshop())
        test_page.opened.size(1280, 800)
        self.show(trace)
        for name in ("Timeline", "Graph", "Table"):
            evaluate("((menu) => { scrollTo(0, 0); const { bottom } = menu.getBoundingClientRect(); scrollTo(0, Math.max(0, bottom - innerHeight + 10)); "
                     "menu.firstChild.click(); })([...document.querySelectorAll('.menu')].find((menu) => menu.firstChild.textContent === "
                     f"{name!r})), 1")
            self.settle()
            self.settle()
            top, bottom, right = evaluate("(({ top, bottom, right }) => [top, innerHeight - bottom, innerWidth - right])"
                                          "(document.querySelector('.menu[open] > div').getBoundingClientRect())")
            self.assertGreaterEqual(min(top, bottom, right), 0, name)
            cut = evaluate("[...document.querySelectorAll('.menu[open] select')].filter((node) => { const copy = node.cloneNode(true); "
                           "copy.style.maxWidth = 'none'; node.after(copy); const is_cut = copy.offsetWidth > node.offsetWidth; copy.remove(); "
                           "return is_cut; }).length")
            self.assertEqual(cut, 0, name)
            evaluate("document.querySelector('.menu[open]').open = false, 1")

    def test_buttons_of_tables_stand_beside_titles(self):
        trace = self.write(workshop())
        test_page.opened.size(1280, 800)
        self.show(trace, "", "--from", self.json_of("state", trace, "--at", "5%")["position"])
        for view in ("leaks", "errors", "moves", "lifetimes", "retained", "range", "memory", "about"):
            self.go(f"#view={view}")
            beside = evaluate("[...document.querySelectorAll('.view .tools')].map((tools) => { const title = tools.closest('.panel')"
                              ".querySelector('h2, h3').getBoundingClientRect(); const place = tools.getBoundingClientRect(); "
                              "return place.top < title.bottom && place.bottom > title.top; })")
            self.assertGreater(len(beside), 0, view)
            self.assertTrue(all(beside), view)

    def test_names_do_not_cover_the_curves(self):
        trace = self.write(workshop())
        for width in (700, 850, 880, 1280):
            test_page.opened.size(width, 800)
            self.show(trace)
            covered = evaluate("(({ timeline: { canvas, legend }, timeline }) => { const [a, b] = [canvas, legend].map((node) => "
                               "node.getBoundingClientRect()); const right = a.left + timeline.scale(canvas.clientWidth).right; "
                               "return b.left < right && b.top < a.bottom - 1 && b.bottom > a.top + 1; })(heapPage)")
            self.assertFalse(covered, width)
            self.assertTrue(evaluate("document.documentElement.scrollWidth <= innerWidth"))

    def test_a_command_is_named_by_its_last_parts(self):
        words = "/usr/local/lib/python3.11/bin/python3 -u /srv/shop/of/many/things/serve.py --at 1/2"
        script = Script().basics().add("metadata", key="command", value=words.replace(" ", "%20"))
        script.alloc(0x1000, 100)
        test_page.opened.size(1280, 800)
        head = "[document.querySelector('h1').textContent, document.querySelector('h1').title, document.title]"
        self.show(self.write(script.close()))
        self.assertEqual(evaluate(head), ["Heap of python3 -u serve.py --at 1/2", f"Heap of {words}", f"Heap of {words}"])
        self.assertEqual(self.lines("header"), 1)
        self.show(self.path("trace.ttd"), "", "--title", "Heap of /srv/shop")
        self.assertEqual(evaluate(head), ["Heap of /srv/shop"] * 3)

    def test_wide_windows_have_large_texts_where_the_pointer_finds_them(self):
        trace = self.write(workshop())
        test_page.opened.size(1400, 900)
        self.show(trace, "#search=shop::work(int)")
        test_page.opened.size(3840, 2160)
        self.settle()
        self.settle()
        high = evaluate("(({ canvas, picture }) => [canvas.clientHeight / picture.height, canvas.height / canvas.clientHeight / "
                        "devicePixelRatio])(heapPage.flame)")
        self.assertAlmostEqual(high[0], 22 / 16, delta=0.02)
        self.assertAlmostEqual(high[1], 1, delta=0.02)
        small = evaluate("[...document.querySelectorAll('main *')].filter((node) => [...node.childNodes].some((child) => "
                         "child.nodeType === 3 && child.data.trim()) && node.getClientRects().length)"
                         ".map((node) => [parseFloat(getComputedStyle(node).fontSize), node.className, node.textContent.slice(0, 20)])"
                         ".filter(([size]) => size < 15)")
        self.assertEqual(small, [])
        self.go("#")
        evaluate("heapPage.state.set({ search: '' }), 1")
        self.settle()
        place = "(({ timeline: { canvas, frame, ground, colors }, timeline }) => { const made = timeline.frame(ground, colors); " \
            "return made.x(made.values[%d]) * canvas.width / (devicePixelRatio * made.surface.width); })(heapPage)"
        for tick in (3, 20, 40):
            x = evaluate(place % tick)
            evaluate("((canvas, x) => { const box = canvas.getBoundingClientRect(); canvas.setPointerCapture = () => {}; "
                     "for (const kind of ['pointermove', 'pointerdown', 'pointerup']) canvas.dispatchEvent(new PointerEvent(kind, "
                     "{ clientX: box.left + x, clientY: box.top + 100, bubbles: true })); })(heapPage.timeline.canvas, %f), 1" % (x + 1))
            self.settle()
            self.assertEqual(evaluate("heapPage.heap.time[heapPage.state.get('at')]"), evaluate(f"heapPage.heap.time[{tick}]"))
            self.assertAlmostEqual(evaluate("parseFloat(heapPage.timeline.line.style.left)"), x, delta=2)
        box = "(({ canvas, boxes, picture: { tree } }) => { const box = boxes.find(({ node }) => node >= 0 && " \
            "tree.function(node).plain === 'shop::pack'); const place = canvas.getBoundingClientRect(); canvas.dispatchEvent(" \
            "new MouseEvent('click', { clientX: place.left + box.x * place.width + 4, clientY: place.top + " \
            "(box.depth + 0.5) * 24 * parseFloat(getComputedStyle(document.documentElement).fontSize) / 16 })); return box.node; })(heapPage.flame)"
        node = evaluate(box)
        self.settle()
        self.assertEqual(evaluate("heapPage.state.get('root')"), str(node))


class DeepFlame(PageCase):
    LEVELS = 120

    def show_deep(self):
        script = Script().basics()
        for i in range(self.LEVELS):
            script.add("stack", parent=4 + i if i else 1, module=1, offset=0x3000 + i)  # 5 ...
            script.add("symbol", module=1, offset=0x3000 + i, frames=f"deep::f{i}()@deep.cpp@{i + 1}")
        script.alloc(0x1000, 1000, stack=4 + self.LEVELS)
        self.show(self.write(script.close()))

    def under(self, y):
        """The name that the hint has at a height in the flame graph."""
        return evaluate("(({ canvas, tip }) => { const place = canvas.getBoundingClientRect(); canvas.dispatchEvent(new PointerEvent("
                        f"'pointermove', {{ clientX: place.left + 50, clientY: place.top + {y} }})); "
                        "return tip.hidden ? '' : tip.firstChild.textContent; })(heapPage.flame)")

    def scroll(self, place):
        evaluate(f"(heapPage.flame.scroll.scrollTop = {place}), 1")
        self.settle()
        self.settle()

    def colours(self):
        """The colours in a column of the picture, without its margin."""
        return evaluate("(({ canvas }) => { const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d'); "
                        "copy.drawImage(canvas, 0, 0); return new Set(new Uint32Array(copy.getImageData(canvas.width - 60, 0, 1, "
                        "canvas.height).data.buffer)).size; })(heapPage.flame)")

    def test_only_what_can_be_seen_is_drawn(self):
        self.show_deep()
        high, room, whole = evaluate("(({ canvas, scroll, picture }) => [canvas.height / devicePixelRatio, scroll.clientHeight, "
                                     "picture.height])(heapPage.flame)")
        self.assertGreater(whole, 2 * room)
        self.assertAlmostEqual(high, room, delta=1)
        for shape, places in (("icicle", (0, 1000, 99999)), ("flame", (0, -1000, -99999))):
            evaluate(f"heapPage.state.set({{ tree: {shape!r} }}), 1")
            self.settle()
            seen = set()
            for place in places:
                self.scroll(place)
                top = evaluate("(({ canvas, scroll }) => canvas.getBoundingClientRect().top - scroll.getBoundingClientRect().top)(heapPage.flame)")
                self.assertAlmostEqual(top, 0, delta=1)
                self.assertGreater(self.colours(), 1)
                seen.update((self.under(5), self.under(room - 8)))
            self.assertEqual(len(seen), 6, seen)
            self.assertIn(f"deep::f{self.LEVELS - 1}()", seen)
        self.check_silence()

    def test_a_saved_graph_is_whole(self):
        self.show_deep()
        self.scroll(1000)
        svg = evaluate(test_page.SVG.replace("timeline", "flame-graph"))
        self.assertIn(f'height="{evaluate("heapPage.flame.picture.height")}"', svg)
        for i in (0, self.LEVELS - 1):
            self.assertIn(f">deep::f{i}<", svg)


class Temporary(PageCase):
    def test_blocks_that_are_freed_soon(self):
        trace = self.write(workshop())
        self.show(trace)
        card, = self.texts("[data-verdict=temporary]")
        at_once, soon = (self.json_of("temporary", trace, *steps, "--by", "function", "--limit", "0") for steps in ((), ("--steps", "3")))
        more = soon["temporary"] - at_once["temporary"]
        self.assertGreater(more, 30)
        self.assertIn(f"{more:,} more (", card)
        self.assertIn("(temporary --steps 3)", card)
        self.assertIn(f"{more:,} more (", self.run_ok("temporary", trace).text)
        for measure, found in ("temporary", at_once), ("soon", soon):
            for unit in ("bytes", "blocks"):
                self.go(f"#measure={measure}&unit={unit}")
                words = shlex.split(self.texts("main > .command code")[0])[1:]
                self.assertEqual(self.json_of(words[0], trace, *words[1:-1], "--by", "function", "--limit", "0"), found)
                shown = evaluate("heapPage.sites.table.csv().slice(1).map((row) => [row[0], row[4], row[5]])")
                self.assertEqual(sorted(shown), sorted([group["function"], group["temporary_bytes"], group["temporary"]]
                                                       for group in found["groups"] if group["temporary"]))
        self.assertIn("Freed with at most 3 calls between", self.texts(".sites-panel .said")[0])
        self.check_silence()

    def test_one_wording_of_a_few_calls(self):
        trace = self.write(workshop())
        self.show(trace)
        for view in ("heap&measure=soon", "lifetimes", "heap&search=shop::work(int)"):
            self.go(f"#view={view}")
            self.assertNotRegex(" ".join(self.texts("main")), r"(?i)within \d calls")
            self.assertRegex(" ".join(self.texts(".view")) + " ".join(self.texts(".function-panel")), "3 calls between")
        self.go("#view=lifetimes")
        shown = " ".join(self.texts(".view"))
        self.assertIn("Shares are of the blocks that were released.", shown)
        self.assertIn("is up to 4 calls, of the thread only, and its share is of all allocations", shown)

    def test_only_freed_later(self):
        script = Script().basics()
        for i in range(50):
            script.alloc(0x1000, 40, wall=i)
            script.alloc(0x2000 + i * 0x100, 8, wall=i)
            script.free(0x1000, wall=i)
        trace = self.write(script.close())
        self.show(trace)
        self.assertIn("50 (50 %) with at most 3 calls between (temporary --steps 3)", self.texts("[data-verdict=temporary]")[0])
        evaluate("void document.querySelector('[data-verdict=temporary] .act').click(), 1")
        self.settle()
        self.assertEqual(evaluate("heapPage.state.get('measure')"), "soon")
        self.show(self.write(leaking(), "none"))
        self.assertNotIn("--steps", self.texts("[data-verdict=temporary]")[0])


class Times(PageCase):
    def test_moments_have_three_digits(self):
        script = Script(events_per_chunk=500).basics()
        for i in range(20):
            script.alloc(0x800000 + 0x100 * i, 16, wall=4_200_000)
        for i in range(3000):
            script.alloc(0x100000 + 0x100 * i, 16, wall=20 * 10**9 + i * 10**7)
            script.free(0x100000 + 0x100 * i, wall=20 * 10**9 + i * 10**7)
            if i == 1:
                script.alloc(0x1000, 99, stack=3, wall=20 * 10**9 + i * 10**7)
        trace = self.write(script.close(wall=60 * 10**9))
        self.show(trace, "#at=" + self.json_of("state", trace, "--at", "#0")["position"])
        first = evaluate("heapPage.heap.time.find((time) => time > 0)")
        self.assertEqual(first, 4_200_000)
        evaluate("heapPage.state.set({ at: heapPage.heap.time.indexOf(4200000) }), 1")
        self.settle()
        self.assertIn("+0.00420 s", self.texts("main > section > .figures dd")[0])
        self.assertIn("+0.00420 s", evaluate("heapPage.timeline.canvas.getAttribute('aria-valuetext')"))
        self.assertNotRegex("".join(self.texts("main")), r"\+0(\.0*)? s(?! *live)")


if __name__ == "__main__":
    lacking = browser.missing(NAME)
    if lacking:
        print(f"not installed: {lacking}")
        sys.exit(77)
    support.main()
