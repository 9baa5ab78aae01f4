# SPDX-License-Identifier: MIT
"""What the page of `ttdanalyze report` answers before anything is asked, as test_page.py: verdicts,
the timeline by function, the search, and colours that can be read and stay the same."""

import random
import sys

import browser
import oracle
import support
import test_page
from support import Script
from test_page import NAME, PageCase, churn, evil, kept, leaking, whole

# The texts that are hard to read: those on elements whose contrast to what is behind them is too low.
HARD_TO_READ = """(() => {
  const parts = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => (c <= 10 ? c / 3294 :
    ((c / 255 + 0.055) / 1.055) ** 2.4)).reduce((s, c, i) => s + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const color = parts(getComputedStyle(at).backgroundColor);
      if (color.length < 4 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const node of document.querySelectorAll('main *')) {
    const has_text = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (!has_text || !node.getClientRects().length || node.disabled) continue;
    const [a, b] = [parts(getComputedStyle(node).color), behind(node)].map(light);
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) found.push([node.className, node.textContent.slice(0, 30), contrast]);
  }
  return found;
})()"""

# The same of what the flame graph and the timeline write: pairs of colours, one behind the other.
HARD_TO_READ_DRAWN = """((colors) => {
  const light = (color) => [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16)).map((c) =>
    (c <= 10 ? c / 3294 : ((c / 255 + 0.055) / 1.055) ** 2.4))
    .reduce((s, c, i) => s + c * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => { const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05); };
  const boxes = [...colors.series, ...colors.tints, ...colors.rise, ...colors.fall, colors.own,
    colors.pale, colors.other].map((color) => [color, heapPage.inkOn(color)]);
  return [...boxes, ...[...colors.inks, colors.dim].map((ink) => [ink, colors.back])]
    .filter(([a, b]) => contrast(a, b) < 4.5);
})(heapPage.flame.picture.colors)"""


def evaluate(expression):
    return test_page.opened.evaluate(expression)


def setUpModule():
    test_page.setUpModule()


def tearDownModule():
    test_page.tearDownModule()


def shop():
    """A program whose functions call each other with one callee each, on two threads."""
    script = Script().basics()
    names = ("start_thread@@", "shop::worker(int)@app.cpp@30", "shop::audit()@app.cpp@20",
             "shop::import(std::vector<int>)@app.cpp@25", "std::make(int)@memory@7", "shop::render(int)@app.cpp@21")
    for i, (name, module) in enumerate(zip(names, (2, 1, 1, 1, 1, 1))):
        script.add("stack", parent=(0, 5, 6, 6, 8, 6)[i], module=module, offset=0x2000 + i)
        script.add("symbol", module=module, offset=0x2000 + i, frames=name)
    for i in range(200):
        script.alloc(0x100000 + 0x1000 * i, 96, stack=7, wall=i * 10**6)
        script.alloc(0x900000 + 0x1000 * i, 4000 if i < 100 else 8, stack=9, wall=i * 10**6)
        script.alloc(0x50000000, 40, stack=10, wall=i * 10**6)
        script.free(0x50000000, wall=i * 10**6)
        if i > 100:
            script.free(0x900000 + 0x1000 * (i - 100), wall=i * 10**6)
    return script.close(wall=200 * 10**6)


class Verdicts(PageCase):
    def card(self, kind):
        return evaluate(f"(({{ querySelector: _ }}, node) => [node.querySelector('.value').textContent,"
                        " node.querySelector('code')?.title ?? null, node.textContent])"
                        f"(document, document.querySelector('[data-verdict={kind}]'))")

    def act(self, kind):
        evaluate(f"void document.querySelector('[data-verdict={kind}] .act').click(), 1")
        self.settle()

    def test_they_say_what_summary_says(self):
        for name, script in (("leaking", leaking()), ("churn", churn(900, 3)), ("shop", shop()),
                             ("random", oracle.random_script(random.Random(5), 200)),
                             ("empty", Script().basics().close())):
            trace = self.write(script, name)
            self.show(trace)
            found = self.json_of("summary", trace)
            for kind in ("peak", "temporary", "moves"):
                with self.subTest(trace=name, kind=kind):
                    value, function, text = self.card(kind)
                    owner = found[kind]["owner"]
                    self.assertEqual(bool(owner), function is not None)
                    if owner and owner["function"]:
                        self.assertEqual(function, owner["function"])
                    if owner and owner["file"]:
                        self.assertIn(f"{owner['file']}:{owner['line']}", text)
                    self.assertEqual("uncertain" in text, not found["certain"] and value != "None")
            value, function, text = self.card("leak")
            self.assertEqual(value == "None", found["leaks"]["blocks"] == 0)
            if found["leaks"]["blocks"]:
                self.assertIn("lost" if found["leaks"]["kind"] == "definitely_lost" else "left", text)
                self.assertIn(f"{found['leaks']['owner']['blocks']:,} block", text)
            _, _, text = self.card("errors")
            for error in found["errors"]:
                self.assertIn(f"{error['kind'].replace('-', ' ')}: {error['calls']:,} call", text)
            self.check_silence()

    def test_each_leads_to_what_it_says(self):
        trace = self.write(shop())
        self.show(trace)
        self.act("leak")
        get = "['view', 'measure', 'search'].map((name) => heapPage.state.get(name))"
        self.assertEqual(evaluate(get), ["heap", "live", ""])
        found = self.json_of("state", trace, "--by", "function")["groups"]
        self.assertEqual(sorted(whole(cells[2][1]) for cells in self.rows(".sites-panel") if whole(cells[3][0])),
                         sorted(group["bytes"] for group in found))
        self.act("temporary")
        self.assertEqual(evaluate("heapPage.state.get('unit')"), "blocks")
        self.act("peak")
        self.assertEqual(evaluate(get), ["heap", "live", ""])
        self.assertEqual(evaluate("heapPage.state.get('unit')"), "bytes")
        self.assertEqual(evaluate("heapPage.state.get('at')"), evaluate("heapPage.heap.peakTick()"))
        self.assertNotIn("file", self.card("temporary")[2])
        trace = self.write(leaking(), "lost")
        self.show(trace)
        self.act("leak")
        self.assertEqual(evaluate(get)[1], "lost")
        self.act("errors")
        self.assertEqual(evaluate(get)[0], "errors")
        first = self.json_of("errors", trace)["findings"][0]["position"]
        self.assertEqual(evaluate("heapPage.state.get('at')"), evaluate(f"heapPage.heap.tickAt({first!r})"))

    def test_memory_that_is_no_heap(self):
        script = Script().basics()
        for i in range(20):
            script.alloc(0x1000 * (i + 1), 280, wall=i * 10**6)
            if i in (5, 15):
                script.memory(10**7 * i, 300_000_000, 206_000_000, wall=i * 10**6)
        self.show(self.write(script.close(wall=20 * 10**6)))
        self.assertIn("most of the 206 MB that were resident is not heap", self.card("peak")[2])
        memory = "(({ textContent, firstChild: { title } }) => [textContent, title])([...document.querySelectorAll('.legend li')].at(-1))"
        for tick, resident, when in (0, "50.0 MB", "+0.00500 s"), (19, "150 MB", "+0.01500 s"):
            evaluate(f"heapPage.state.set({{ at: {tick} }})")
            evaluate("heapPage.draw()")
            said, title = evaluate(memory)
            self.assertEqual(said, f"resident {resident} at {when}")
            self.assertIn(f"the sample nearest to the cursor. Mapped 300 MB at {when}", title)
            self.assertIn(f"; resident {resident} at {when}, mapped 300 MB at {when}",
                          evaluate("heapPage.timeline.canvas.getAttribute('aria-valuetext')"))
            self.assertIn(f">resident {resident} at {when}<", evaluate(test_page.SVG))
        most = "heapPage.timeline.frame(heapPage.timeline.ground, heapPage.timeline.colors).most"
        self.assertEqual(evaluate(most), 5600)
        evaluate("[...document.querySelectorAll('.legend button')].at(-1).click()")
        evaluate("heapPage.draw()")
        self.assertEqual(evaluate(most), 300_000_000)
        self.show(self.write(shop(), "without"))
        self.assertNotIn("resident", evaluate("document.querySelector('.timeline-box').textContent") + self.card("peak")[2])

    def test_growth_has_three_digits(self):
        script = Script().basics()
        sizes = [1000 * 16 ** i // 11 ** i for i in range(8)]
        script.alloc(0x10000, sizes[0])
        for i in range(1, 8):
            script.realloc(0x10000 * i, 0x10000 * (i + 1), sizes[i])
        self.show(self.write(script.close()))
        self.assertRegex(self.card("moves")[2], r"grows by a factor of 1\.4\d;")

    def test_verdicts_take_one_line(self):
        opened = test_page.opened
        size = evaluate("[innerWidth, innerHeight]")
        self.show(self.write(shop()))
        try:
            opened.size(1180, 720)
            self.settle()
            tops = evaluate("[...document.querySelectorAll('.verdict')].map((card) => card.offsetTop)")
            self.assertEqual(len(set(tops)), 1, tops)
        finally:
            opened.size(*size)
            self.settle()

    def test_a_leak_is_steady_or_at_once(self):
        self.show(self.write(shop()))
        self.assertIn("shop::audit()", self.card("leak")[1])
        at_once = Script().basics()
        for i in range(400):
            at_once.alloc(0x100000 + 0x1000 * i, 96, stack=2 if i < 40 else 3, wall=i * 10**6)
            if i >= 40:
                at_once.free(0x100000 + 0x1000 * i, wall=i * 10**6)
        self.show(self.write(at_once.close(wall=400 * 10**6), "once"))
        steady = "(({ verdicts, parts: { summary: { leaks } } }) => verdicts.leakCurve({ ...leaks.owner," \
            " first: leaks.first_position, last: '%s' }, heapPage.functions.ordered.find((key) => " \
            "heapPage.calls.functions[key].name === leaks.owner.function)).is_steady)(heapPage)"
        last = evaluate("heapPage.heap.position[heapPage.heap.last]")
        self.assertFalse(evaluate(steady % last))
        self.show(self.write(shop(), "again"))
        last = evaluate("heapPage.heap.position[heapPage.heap.last]")
        self.assertTrue(evaluate(steady % last))


class Views(PageCase):
    def boxes(self):
        return evaluate("(({ boxes, picture: { tree } }) => boxes.filter(({ node }) => node >= 0)"
                        ".map((box) => [tree.function(box.node).plain, tree.function(box.last).plain]))"
                        "(heapPage.flame)")

    def test_own_functions_have_boxes_of_their_own(self):
        self.show(self.write(shop()))
        boxes = self.boxes()
        for name in ("shop::worker", "shop::audit", "shop::import"):
            self.assertIn([name, name], boxes)
        self.assertTrue(all(first == last or not first.startswith("shop") for first, last in boxes))
        self.assertGreaterEqual(evaluate("parseInt(document.querySelector('canvas.flame').style.height)"),
                                22 * 4)

    def test_the_search_goes_through_all_views(self):
        trace = self.write(shop())
        self.show(trace)
        whole_sum = evaluate("heapPage.flame.picture.sums.total[0]")
        for text, names in (("audit", ["shop::audit"]), ("APP.CPP:25", ["shop::import"]),
                            ("shop::worker(int)", ["shop::audit", "shop::import", "shop::render"])):
            evaluate(f"heapPage.state.set({{ search: {text!r} }}), 1")
            self.settle()
            rows = self.rows(".sites-panel")
            self.assertEqual(sorted(cells[0][0].split(" ")[0] for cells in rows), names)
            total = evaluate("heapPage.flame.picture.sums.total[0]")
            self.assertEqual(total, sum(whole(cells[2][1]) for cells in rows))
            self.assertLessEqual(total, whole_sum)
            self.assertEqual(evaluate("(({ timeline, state }) => timeline.curves('bytes')"
                                      ".total[state.get('at')])(heapPage)"), total)
            self.assertIn(["shop::worker", "shop::worker"], self.boxes())
        self.go("#search=nothing+has+this")
        self.assertEqual(self.rows(".sites-panel"), [])
        self.check_silence()

    def test_a_function_has_one_colour(self):
        self.show(self.write(shop()))
        colour = "(({ picture, boxes }) => { const box = boxes.find(({ node }) => node >= 0 && " \
            "picture.tree.function(node).plain === 'shop::audit'); return picture.colorOf(box); })" \
            "(heapPage.flame)"
        seen = {evaluate(colour)}
        root = evaluate("(({ boxes, picture }) => boxes.find(({ node }) => node >= 0 && "
                        "picture.tree.function(node).plain === 'shop::audit').node)(heapPage.flame)")
        self.go(f"#root={root}")
        seen.add(evaluate(colour))
        self.go("#")
        red = "((text) => '#' + text.match(/\\d+/g).map((part) => Number(part).toString(16)" \
            ".padStart(2, '0')).join(''))"
        for selector in (".sites-panel td.name i", ".timeline-box .legend i"):
            seen.add(evaluate(f"{red}(getComputedStyle([...document.querySelectorAll({selector!r})].find((node) => "
                              "node.parentElement.textContent.includes('shop::audit'))).backgroundColor)"))
        self.assertEqual(len(seen), 1, seen)


class Timeline(PageCase):
    def point(self, kind, x, y, **more):
        words = ", ".join(f"{name}: {str(value).lower()}" for name, value in more.items())
        evaluate("((canvas) => { const place = canvas.getBoundingClientRect(); canvas.setPointerCapture = "
                 f"() => {{}}; canvas.dispatchEvent(new PointerEvent('{kind}', {{ clientX: place.left + {x}, "
                 f"clientY: place.top + {y}, pointerId: 1, bubbles: true, {words} }})); }})"
                 "(heapPage.timeline.canvas), 1")
        self.settle()

    def test_the_pointer_previews(self):
        self.show(self.write(shop()))
        at = evaluate("heapPage.state.get('at')")
        self.point("pointermove", 500, 60)
        text = self.texts(".timeline-box .tip")[0]
        tick = evaluate("heapPage.timeline.tickAt(500)")
        size = evaluate(f"heapPage.heap.bytes[{tick}]")
        self.assertTrue(text.startswith(f"{size / 1000:.0f} kB live at +"), text)
        self.assertIn("shop::import", text)
        self.assertIn("shop::audit", text)
        self.assertEqual(evaluate("heapPage.state.get('at')"), at)
        self.point("pointermove", 5, 60)
        self.assertTrue(evaluate("heapPage.timeline.hint.hidden"))

    def test_dragging_at_the_lower_edge_chooses_a_range(self):
        self.show(self.write(shop()))
        ends = "['from', 'to', 'at'].map((name) => heapPage.state.get(name))"
        edge = evaluate("heapPage.timeline.canvas.clientHeight") - 30
        at = evaluate(ends)[2]
        self.point("pointerdown", 300, edge)
        self.point("pointermove", 600, edge)
        self.point("pointerup", 600, edge)
        ticks = [evaluate(f"heapPage.timeline.tickAt({x})") for x in (300, 600)]
        self.assertEqual(evaluate(ends), [*ticks, at])
        grown = evaluate(f"heapPage.heap.bytes[{ticks[1]}] - heapPage.heap.bytes[{ticks[0]}]")
        self.assertTrue(self.texts(".chip span")[0].startswith(f"+{grown / 1000:.0f} kB in "), self.texts(".chip span"))
        self.assertIn("mostly shop::", self.texts(".chip span")[0])
        times = " to ".join(evaluate(f"[{ticks[0]}, {ticks[1]}].map((tick) => heapPage.figures.timeOf(tick))"))
        self.assertIn(f", {times}, mostly", self.texts(".chip span")[0])
        self.assertTrue(self.texts("main > section > .figures dd small")[4].startswith(f" {times}, after "))
        evaluate("heapPage.state.set({ search: 'audit' })")
        self.settle()
        said = self.texts(".chip span")[0]  # of what was searched, all is of one function
        self.assertEqual(said.split(" in ")[0], said.split(", mostly shop::audit ")[1])
        evaluate("heapPage.state.set({ search: '' })")
        self.settle()
        handle = evaluate(f"heapPage.timeline.scale(heapPage.timeline.canvas.clientWidth).x("
                          f"heapPage.heap.time[{ticks[1]}])")
        self.point("pointerdown", handle + 2, edge)
        self.point("pointermove", 700, edge)
        self.point("pointerup", 700, edge)
        self.assertEqual(evaluate(ends), [ticks[0], evaluate("heapPage.timeline.tickAt(700)"), at])
        evaluate("void document.querySelector('.chip button').click(), 1")
        self.settle()
        self.assertEqual(evaluate(ends)[:2], [0, evaluate("heapPage.heap.last")])

    def test_a_step_draws_the_cursor_first(self):
        self.show(self.write(shop()))
        self.assertEqual(evaluate("""new Promise((done) => {
          const { drawViews, timeline: { canvas } } = heapPage;
          let is_drawn = false;
          heapPage.drawViews = () => { is_drawn = true; drawViews.call(heapPage); };
          heapPage.state.set({ at: 7 });
          requestAnimationFrame(() => {
            const first = [canvas.getAttribute('aria-valuenow'), is_drawn];
            setTimeout(() => done([...first, is_drawn]));
          });
        })"""), ["7", False, True])

    def test_steady_calls_are_a_level_line(self):
        script = Script().basics()
        for i in range(3000):
            script.alloc(0x1000 * (i + 1), 8, wall=i * 1000)
        self.show(self.write(script.close(wall=3000 * 1000)))
        for columns in (7, 100, 333, 499):
            rates = evaluate("(({ timeline, heap }) => Array.from(timeline.ratesOf(heap.allocations, "
                             "{ values: heap.time, x: (value) => 64 + (value - heap.time[0]) / "
                             f"(heap.time[heap.last] - heap.time[0]) * {columns * 2} }}, {columns})))(heapPage)")
            middle = rates[1:-1]
            self.assertAlmostEqual(sum(rates), 3000, delta=1)
            self.assertLess(max(middle) / min(middle), 1.15, columns)

    def test_times_too_coarse_are_replaced_by_events(self):
        script = Script().basics()
        for i in range(300):
            script.alloc(0x1000 * (i + 1), 8, wall=1000 if i < 299 else 10**9)
        self.show(self.write(script.close(wall=10**9)))
        self.assertEqual(evaluate("heapPage.timeline.axis"), "event")
        self.go("#axis=time")
        self.assertEqual(evaluate("heapPage.timeline.axis"), "time")
        self.show(self.write(shop(), "fine"))
        self.assertEqual(evaluate("heapPage.timeline.axis"), "time")

    def test_space_plays(self):
        self.show(self.write(shop()))
        space = "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: ' ', bubbles: true })), 1"
        evaluate("heapPage.state.set({ at: 3 }), 1")
        self.settle()
        evaluate(space)
        moved = evaluate("new Promise((done) => { const look = () => heapPage.state.get('at') > 5 ? "
                         "done(heapPage.state.get('at')) : requestAnimationFrame(look); look(); })")
        self.assertGreater(moved, 5)
        evaluate(space)
        self.settle()
        stopped = evaluate("heapPage.state.get('at')")
        self.settle()
        self.assertEqual(evaluate("heapPage.state.get('at')"), stopped)
        self.check_silence()

    def test_the_peak_is_a_moment(self):
        rounds = [churn(6000, 31), churn(3000, 32), oracle.random_script(random.Random(9), 300)]
        for i, script in enumerate(rounds):
            trace = self.write(script, f"trace{i}")
            found = self.json_of("peak", trace)
            inserted = []
            for ends in ((), ("--from", "2:0")):
                self.show(trace, "", *ends)
                inserted.append(evaluate("heapPage.heap.peakInserted ?? -1"))
                position = evaluate("heapPage.heap.position[heapPage.heap.peakTick()]")
                self.assertEqual(position, found["position"])
                self.go(f"#at={position}")
                state = self.json_of("state", trace, "--at", position, "--by", "function", "--limit", "0")
                self.assertEqual(sorted((whole(cells[2][1]), whole(cells[3][0])) for cells in
                                        self.rows(".sites-panel") if whole(cells[3][0])),
                                 sorted((group["bytes"], group["blocks"]) for group in state["groups"]))
                for by in ("thread", "heap"):
                    self.go(f"#at={position}&by={by}")
                    self.assertEqual(sorted((whole(cells[2][1]), whole(cells[3][0]))
                                            for cells in self.rows(".sites-panel")),
                                     sorted((item["bytes"], item["blocks"]) for item in state[by + "s"]))
                events = self.run_ok("events", "--format", "json", trace).json_lines
                self.assertEqual(evaluate("heapPage.heap.allocations.reduce((a, b) => a + b, 0)"), evaluate(
                    "heapPage.parts.heap.ticks.allocations.reduce((a, b) => a + Number(b), 0)"))
                self.assertTrue(events and evaluate("Array.from(heapPage.heap.event).every((event, i, all) => "
                                                    "!i || event >= all[i - 1])"))
                self.assertTrue(evaluate("Array.from(heapPage.heap.time).every((time, i, all) => "
                                         "!i || time >= all[i - 1])"))
            if i:
                continue
            at = inserted[0]
            self.show(trace)
            self.assertGreater(at, 0)
            for first, last in ((at, at + 9), (at - 9, at), (at - 30, at + 30), (at + 1, at + 2), (at - 2, at - 1)):
                test_page.Limits.check_sums(self, test_page.Limits.choose(self, first, last))
        self.check_silence()

    def check_state(self, trace, position, has_series):
        """What the page has live is what `state` has: in all, by function, thread and heap."""
        self.go(f"#at={position}")
        state = self.json_of("state", trace, "--at", position, "--by", "function", "--limit", "0")
        figures = self.texts("main > section > .figures dd")
        self.assertIn(f"{state['live_bytes']:,} byte", figures[1], position)
        self.assertEqual(whole(figures[2]), state["live_blocks"], position)
        self.assertEqual(sorted((whole(cells[2][1]), whole(cells[3][0])) for cells in
                                self.rows(".sites-panel") if whole(cells[3][0])),
                         sorted((group["bytes"], group["blocks"]) for group in state["groups"]))
        for by in ("thread", "heap") if has_series else ():
            self.go(f"#at={position}&by={by}")
            self.assertEqual(sorted((whole(cells[2][1]), whole(cells[3][0])) for cells in
                                    self.rows(".sites-panel") if whole(cells[3][0])),
                             sorted((item["bytes"], item["blocks"]) for item in state[by + "s"]))

    def test_what_the_runtimes_keep_does_not_count(self):
        """Neither blocks whose addresses the trace lists nor thread-local storage."""
        for has_released in (False, True):
            trace = self.write(kept(has_released), str(has_released))
            self.show(trace)
            peak = self.json_of("peak", trace)
            at = "heapPage.heap.peakTick()"
            self.assertEqual(evaluate(f"heapPage.heap.position[{at}]"), peak["position"])
            self.assertEqual(evaluate(f"[heapPage.heap.bytes[{at}], heapPage.heap.blocks[{at}]]"),
                             [peak["live_bytes"], peak["live_blocks"]])
            self.assertEqual(evaluate("heapPage.parts.summary.peak"),
                             self.json_of("summary", trace)["peak"] | {
                                 "owner": evaluate("heapPage.parts.summary.peak.owner")})
            kept_then = self.run_ok("peak", trace).text.splitlines()[1].split(" (")[0]
            self.assertIn("3 blocks, 73,314 bytes kept by the C/C++ runtime, not counted", kept_then)
            self.assertIn(kept_then, self.texts(".flame-panel .said")[0])
            for position in self.positions()[::3]:
                self.check_state(trace, position, not has_released)
            self.go("#measure=peak")
            self.assertEqual(sum(whole(cells[2][1]) for cells in self.rows(".sites-panel")),
                             peak["live_bytes"])
        self.check_silence()

    def test_figures_follow_the_search(self):
        trace = self.write(shop())
        self.show(trace, "#search=audit")
        live, blocks, peak, _, grown = self.texts("main > section > .figures dd")[1:]
        total, count = evaluate("(({ timeline: { followed }, state }) => [followed.bytes[state.get('at')], "
                                "followed.blocks[state.get('at')]])(heapPage)")
        rows = self.rows(".sites-panel")
        self.assertEqual((total, count), (whole(rows[0][2][1]), whole(rows[0][3][0])))
        self.assertIn(f"{total:,} bytes of “audit”", live)
        self.assertIn(f"{count:,} of “audit”, ", blocks)
        self.assertIn(evaluate("heapPage.heap.bytes[heapPage.state.get('at')].toLocaleString('en-US')"),
                      self.run_ok("state", trace, "--at", evaluate(
                          "heapPage.heap.position[heapPage.state.get('at')]")).text)
        self.assertIn("of “audit”, at ", peak)
        self.assertIn("of “audit”, +", grown)
        self.assertIn("live of “audit”", evaluate("heapPage.timeline.canvas.getAttribute('aria-valuetext')"))
        self.go("#search=audit&view=range")
        self.assertIn(" of “audit”", self.texts(".view .figures dd")[0])
        self.go("#")
        self.assertNotIn("of “", "".join(self.texts("main > section > .figures dd")))
        self.check_silence()

    def test_long_names_are_short_in_sentences(self):
        script = Script().basics()
        name = "void_outer::fill<" + "std::vector<int;_std::allocator<int>_>;_" * 5 + "int>(int)"
        script.add("symbol", module=1, offset=0x100, frames=f"{name}@fill.cpp@3")
        script.alloc(0x1000, 100, stack=1)
        self.show(self.write(script.close()))
        evaluate("heapPage.state.set({ search: heapPage.calls.functions.find(({ name }) => "
                 "name.includes('fill')).name }), 1")
        self.settle()
        said = evaluate("[heapPage.flame.said.textContent, heapPage.flame.said.title]")
        self.assertIn("only stacks with “void_outer::fill<…>”", said[0])
        self.assertIn("std::allocator<int>", said[1])

    def test_a_long_search_leaves_the_bar_alone(self):
        opened = test_page.opened
        size = evaluate("[innerWidth, innerHeight]")
        self.show(self.write(shop()))
        height = "document.querySelector('.one-line').offsetHeight"
        try:
            opened.size(1280, 800)
            self.settle()
            before = evaluate(height)
            for text in ("render_price+at+all", "x" * 200):
                self.go(f"#search={text}")
                self.assertEqual(evaluate(height), before)
                self.assertTrue(evaluate("document.documentElement.scrollWidth <= innerWidth"))
        finally:
            opened.size(*size)
            self.settle()

    def test_lifetimes_use_the_words_of_the_command(self):
        # Below two ticks of the recorder's clock, classes say nothing if some blocks have no time at all.
        for times, classes in (((0, 10_000, 2_000_000, 2_200_000), [("under 2.10 ms: too short to measure", "3"), ("2.10 ms – 4.19 ms", "1")]),
                               ((10_000, 2_200_000), [("8.19 µs – 16.4 µs", "1"), ("2.10 ms – 4.19 ms", "1")])):
            script = Script().basics()
            for i, time in enumerate(times):
                script.alloc(0x1000, 100, wall=i * 10**7)
                script.free(0x1000, wall=i * 10**7 + time)
            trace = self.write(script.close(wall=10**8), f"of-{len(times)}")
            said = self.run_ok("lifetimes", trace).text.split("\n\n")[1].splitlines()[1:]
            self.assertEqual(["too short" in line for line in said], ["too short" in title for title, _ in classes])
            self.show(trace, "#view=lifetimes")
            rows = self.rows(".columns > .panel:first-child")
            self.assertEqual([(cells[0][0], cells[1][0]) for cells in rows], classes)
            self.assertEqual(rows[0][3][0], f"{100 * int(classes[0][1])} B")

    def test_slash_searches(self):
        trace = self.write(shop())
        self.show(trace)
        evaluate("document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '/', bubbles: true })), 1")
        self.assertTrue(evaluate("document.activeElement === heapPage.searchField"))
        position = self.positions()[7]
        evaluate(f"(heapPage.searchField.value = {position!r}, heapPage.searchField.dispatchEvent("
                 "new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }))), 1")
        self.settle()
        self.assertEqual(evaluate("heapPage.heap.position[heapPage.state.get('at')]"), position)

    def test_an_address_names_its_command(self):
        trace = self.write(shop())
        self.show(trace, "#search=0x50000000")
        self.assertEqual(self.texts("main > .command code"), [f"ttdanalyze history --address 0x50000000 {trace}"])
        self.assertIn("--exact", self.texts("main > .scope")[-1])
        self.run_ok(*self.texts("main > .command code")[0].split()[1:])
        self.go("#search=audit")
        self.assertEqual(self.texts("main > .scope")[-1], "")
        self.assertNotIn("history", self.texts("main > .command code")[0])

    def test_sizes_name_the_command_for_gaps(self):
        trace = self.write(shop())
        self.show(trace, "#view=lifetimes")
        at = evaluate("heapPage.heap.position[heapPage.state.get('at')]")
        self.assertEqual(self.texts(".view .command code"), [f"ttdanalyze fragmentation --at {at} {trace}"])

    def test_the_heading_has_the_short_name(self):
        self.show(self.write(shop()))
        evaluate("heapPage.state.set({ search: 'shop::import(std::vector<int>)' })")
        self.settle()
        self.assertTrue(self.texts("main h2")[5].endswith(": “shop::import”"), self.texts("main h2"))

    def test_menus_close(self):
        self.show(self.write(shop()))
        evaluate("(heapPage.state.set({ from: 3 }), 1)")
        for kind, more in (("KeyboardEvent", "'keydown', { key: 'Escape', bubbles: true }"),
                           ("PointerEvent", "'pointerdown', { bubbles: true }")):
            evaluate("(document.querySelector('.menu').open = true, 1)")
            evaluate("(document.querySelector('.menu > div').dispatchEvent("
                     "new PointerEvent('pointerdown', { bubbles: true })), 1)")
            self.assertEqual(evaluate("document.querySelectorAll('.menu[open]').length"), 1)
            evaluate(f"(document.querySelector('h1').dispatchEvent(new {kind}({more})), 1)")
            self.assertEqual(evaluate("document.querySelectorAll('.menu[open]').length"), 0, kind)
        self.assertEqual(evaluate("heapPage.state.get('from')"), 3)


class Findings(PageCase):
    def errors_and_moves(self):
        script = Script().basics()
        script.alloc(0x1000, 40)
        script.realloc(0x1000, 0x2000, 90)
        script.free(0x2000, stack=3)
        script.free(0x2000)
        script.alloc(0x3000, 8, stack=3)
        return script.close()

    def test_leaks_lead_with_the_function(self):
        trace = self.write(shop())
        self.show(trace, "#view=leaks")
        wanted = {group["function"] for group in self.json_of("leaks", trace, "--by", "function")["groups"]}
        self.assertEqual({cells[0][1] for cells in self.rows(".view")}, wanted)
        self.assertEqual(self.texts(".view th")[0], "Function")
        everything = len(self.rows(".view"))
        self.go("#view=leaks&search=audit")
        self.assertEqual([cells[0][1] for cells in self.rows(".view")], ["shop::audit()"])
        self.go("#view=leaks")
        self.assertEqual(len(self.rows(".view")), everything)

    def test_errors_are_told_in_order(self):
        trace = self.write(self.errors_and_moves())
        self.show(trace, "#view=errors")
        finding, = self.json_of("errors", trace)["findings"]
        self.assertEqual(self.texts("article.finding > *:first-child"), ["double free"])
        places = [finding["allocated"]["position"], finding["released"]["position"], finding["position"]]
        titles = self.texts("article.finding .time-line h4")
        self.assertEqual(len(titles), 3)
        for title, word, place in zip(titles, ("Allocated", "Released", "double free"), places):
            self.assertTrue(title.startswith(word) and f" at {place} " in title, title)
        hidden = "[...document.querySelectorAll('article.finding')].map((node) => node.hidden)"
        self.go("#view=errors&search=nobody")
        self.assertEqual(evaluate(hidden), [True])
        self.go("#view=errors&search=main")
        self.assertEqual(evaluate(hidden), [False])
        self.go("#view=moves&search=nobody")
        self.assertEqual(self.rows(".view > div > .panel:first-child"), [])
        self.check_silence()

    def test_ranges_speak_plainly(self):
        self.show(self.write(shop()))
        self.go(f"#view=range&from={self.positions()[3]}&to={self.positions()[9]}")
        for cells, name in zip(sorted(self.rows("[aria-label=quadrants]")), ("AIFO", "AIFI", "AOFO", "AOFI")):
            self.assertRegex(cells[0][0], rf"^\w[\w ]+: allocated .* \({name}\)$")

    def test_interpreters_are_named(self):
        script = Script().basics()
        script.add("stack", parent=1, module=1, offset=0x3000)
        script.add("symbol", module=1, offset=0x3000, frames="_PyEval_EvalFrameDefault@@")
        for i in range(10):
            script.alloc(0x1000 * (i + 1), 100, stack=5 if i < 7 else 2)
        self.show(self.write(script.close()))
        self.assertIn("Python allocates 70 % of all bytes here: its stacks show functions of the interpreter, "
                      "such as _PyEval_EvalFrameDefault", self.texts(".scope")[0])
        self.show(self.write(shop(), "native"))
        self.assertNotIn("interpreter", " ".join(self.texts(".scope")))


class Legible(PageCase):
    """In light and in dark."""

    def test_texts_have_contrast(self):
        for name, script in (("shop", shop()), ("evil", evil()), ("leaking", leaking())):
            self.show(self.write(script, name))
            for view in ("heap", "range", "leaks", "errors", "moves", "lifetimes", "about"):
                self.go(f"#view={view}&from={self.positions()[1]}")
                self.assertEqual(evaluate(HARD_TO_READ), [], view)
            self.assertEqual(evaluate(HARD_TO_READ_DRAWN), [])


if __name__ == "__main__":
    lacking = browser.missing(NAME)
    if lacking:
        print(f"not installed: {lacking}")
        sys.exit(77)
    support.main()
