# SPDX-License-Identifier: MIT
"""The page of `ttdanalyze report` in a browser: BROWSER is chromium or firefox, with '-dark' behind it
for test_dark.py. Pictures of all views go to the folder SHOTS."""

import os
import random
import re
import shlex
import sys
import time
import unittest
import xml.etree.ElementTree

import browser
import oracle
import support
from island_support import GUID, random_islands
from snapshot_support import IN_BSS, SnapshotScript
from support import Script, TestCase

NAME, _, MODE = os.environ["BROWSER"].partition("-")
SHOTS = os.environ["SHOTS"]
READY_SECONDS = 30
PLACES = 20

EVIL = ('<script>window.hacked=1</script>', '"><img src=http://127.0.0.1:9/x onerror=hacked=1>',
        '</script><b>', '\\e[31mred\\e[0m', '=HYPERLINK(1)', '&lt;&amp;', '\u202egnp.exe',
        'std::map<std::vector<std::pair<int, long>>, std::allocator<char const*>>::find',
        '名前', 'x' * 3000)

# The timeline as SVG, as its button saves it.
SVG = """(() => {
  const before = URL.createObjectURL;
  let saved = null;
  URL.createObjectURL = (blob) => { saved = blob; return location.hash || '#'; };
  document.querySelector('[aria-label="Save timeline as SVG"]').click();
  URL.createObjectURL = before;
  return saved.text();
})()"""

# A graph as PNG, as its button saves it: its size, what part of its pixels differ from the canvas, and
# how many colours they have.
PNG = """(async () => {
  const before = URL.createObjectURL;
  const saved = new Promise((done) => { URL.createObjectURL = (blob) => { done(blob);
    return location.hash; }; });
  document.querySelector('[aria-label="Save %s as PNG"]').click();
  const blob = await saved;
  URL.createObjectURL = before;
  const canvas = document.querySelector('canvas.%s');
  const pixelsOf = (image) => {
    const copy = new OffscreenCanvas(image.width, image.height).getContext('2d');
    copy.drawImage(image, 0, 0);
    return new Uint32Array(copy.getImageData(0, 0, image.width, image.height).data.buffer);
  };
  // Letters may have coloured edges in one of them.
  const isOther = (a, b) => [0, 8, 16].some((shift) =>
    Math.abs((a >> shift & 255) - (b >> shift & 255)) > 8);
  const image = await createImageBitmap(blob);
  const [pixels, wanted] = [image, canvas].map(pixelsOf);
  return {
    type: blob.type, size: [image.width, image.height],
    wanted: [canvas.clientWidth, canvas.clientHeight].map((size) => size * devicePixelRatio),
    others: pixels.filter((pixel, i) => isOther(pixel, wanted[i])).length / pixels.length,
    colours: new Set(pixels).size,
  };
})()"""

opened = None


def setUpModule():
    global opened
    opened = browser.start(NAME, is_dark=MODE == "dark")


def tearDownModule():
    opened.close()


def whole(text):
    """The number in a text such as "1,234 bytes"."""
    return int(re.search(r"[\d,]+", text)[0].replace(",", ""))


class PageCase(TestCase):
    pages = 0

    def show(self, trace, fragment="", *arguments):
        """Opens the page of a trace, and waits until it is drawn."""
        # Another address loads another page, whatever the fragment.
        self.pages += 1
        page = self.path(f"page-{self.pages}.html")
        self.run_ok("report", "-o", page, *arguments, trace)
        self.url = "file://" + page
        opened.open(self.url + fragment)
        deadline = time.monotonic() + READY_SECONDS
        while not opened.evaluate("document.body.dataset.state || ''"):
            self.assertLess(time.monotonic(), deadline, "the page is not ready")
            time.sleep(0.02)
        self.settle()
        self.assertEqual(opened.evaluate("document.body.dataset.state"), "ready",
                         opened.evaluate("document.body.innerText"))

    def settle(self):
        """Waits for two pictures, so that everything that was asked for is drawn."""
        opened.evaluate("new Promise((done) => requestAnimationFrame(() => "
                        "requestAnimationFrame(() => setTimeout(() => done(1), 0))))")

    def go(self, fragment):
        opened.evaluate(f"void (location.hash = {fragment!r}), 1")
        self.settle()

    def check_silence(self):
        """Nothing was logged, and nothing but the page was requested."""
        self.assertEqual(opened.logs, [])
        self.assertLessEqual({url.split("#")[0] for url in opened.requests}, {self.url})
        opened.logs.clear()

    def texts(self, selector):
        return opened.evaluate(f"[...document.querySelectorAll({selector!r})]"
                               ".map((node) => node.textContent)")

    def rows(self, scope):
        """The rows of a table: for each cell its text and its title."""
        return opened.evaluate(
            f"[...document.querySelectorAll('{scope} tbody tr')]"
            ".map((row) => [...row.cells].map((cell) => [cell.textContent, cell.title]))")

    def check_functions(self, scope, found):
        """The table of a quadrant has a row for each function, with its share."""
        rows = self.rows(f"{scope} ")
        self.assertEqual(sorted((whole(cells[1][1]), whole(cells[3][0])) for cells in rows),
                         sorted((group["bytes"], group["blocks"]) for group in found["groups"]), scope)
        for cells in rows:
            share = 100 * whole(cells[1][1]) / found["bytes"]
            self.assertEqual(cells[2][0], "< 0.1 %" if share < 0.05 else f"{share:.{1 if share < 10 else 0}f} %", scope)

    def positions(self):
        """Positions of ticks, from the first to the last."""
        all_of_them = opened.evaluate("heapPage.heap.position")
        step = max(1, len(all_of_them) // PLACES)
        return [*all_of_them[:-1:step], all_of_them[-1]]


def churn(count, seed):
    chance = random.Random(seed)
    script = Script(events_per_chunk=500).basics()
    live = []
    for i in range(count):
        if live and chance.random() < 0.45:
            address, heap = live.pop(chance.randrange(len(live)))
            script.free(address, heap=heap, wall=i * 1000)
        elif chance.random() < 0.005:
            script.event("Destroy", heap=2, result=1, wall=i * 1000)
            live = [block for block in live if block[1] != 2]
        else:
            live.append((0x10000 * (i + 1), chance.choice([1, 1, 2])))
            script.alloc(live[-1][0], chance.randrange(1, 9000), stack=chance.randrange(0, 5),
                         heap=live[-1][1], thread=chance.choice([1, 2]), wall=i * 1000)
    return script.close(wall=count * 1000)


def kept(has_released):
    """Calls around a peak, with blocks that the runtimes keep from before it, before its tick ends and
    after it, and thread-local storage, some of it released if `has_released`."""
    script = Script(events_per_chunk=500).basics()
    script.add("module", path="/lib64/ld-linux-x86-64.so.2", bias=0x9000000,
               begin=0x9000000, end=0x9100000, position="0:0")
    script.add("stack", parent=2, module=3, offset=0x10)    # 5
    script.add("symbol", module=3, offset=0x10, frames="_dl_allocate_tls@dl-tls.c@9")
    script.alloc(0x100000, 72704, stack=3)
    script.alloc(0x200000, 304, stack=5)
    script.alloc(0x300000, 306, stack=5, thread=2)
    for i in range(6000):
        if i == 3005:
            script.alloc(0x400000, 40, stack=2, thread=2)
            if has_released:
                script.free(0x300000)
        script.alloc(0x1000000 + 0x1000 * i, 100 + i % 7, stack=2 + i % 3, thread=1 + i % 2)
        if i >= 3000:
            script.free(0x1000000 + 0x1000 * (i - 3000))
            script.free(0x1000000 + 0x1000 * i)
    script.alloc(0x500000, 1024, stack=3)
    script.add("blocks", list=3, position="FFFF:0",
               blocks="0x100000:72704,0x400000:40,0x500000:1024,0x600000:1")
    return script.close()


def evil():
    script = Script().basics()
    for i, name in enumerate(EVIL):
        shown = name.replace(" ", "_").replace(",", ";").replace("@", "(")
        script.add("stack", parent=1, module=1, offset=0x1000 + i)
        script.add("symbol", module=1, offset=0x1000 + i, frames=f"{shown}@{shown[:60]}@{i + 1}")
        script.alloc(0x1000 * (i + 1), (1 << 63) if i < 3 else 100 + i, stack=5 + i)
    script.realloc(0x1000, 0x900000, 50, stack=5)
    script.free(0x5000, stack=6)
    script.free(0x5000, stack=7)
    return script.close()


def leaking():
    script = SnapshotScript().basics()
    script.alloc(0x20000, 100)
    script.alloc(0x21000, 50, stack=3)
    script.alloc(0x22000, 30)
    script.snapshot((0x20008, 0x22000))
    script.free(0x9999)
    return script.close()


class Numbers(PageCase):
    def check_state(self, trace, position):
        found = self.json_of("state", trace, "--at", position, "--by", "function", "--limit", "0")
        rows = self.rows(".sites-panel")
        page = sorted((whole(cells[2][1]), whole(cells[3][0])) for cells in rows
                      if whole(cells[3][0]))
        groups = sorted((group["bytes"], group["blocks"]) for group in found["groups"])
        self.assertEqual(page, groups, position)
        figures = self.texts("main > section > .figures dd small")
        self.assertEqual(whole(figures[1]), found["live_bytes"])
        said = self.texts(".flame-panel .said")[0]
        self.assertIn("Live at the cursor", said)
        self.assertEqual(whole(said.split("(")[1]), found["live_bytes"], said)
        command = self.texts(".command code")[0]
        self.assertEqual(command, f"ttdanalyze state --at {position} {trace}")

    def test_the_heap_at_each_place(self):
        for name, script in (("churn", churn(3000, 1)), ("short", churn(40, 2)),
                             ("random", oracle.random_script(random.Random(5), 200)),
                             ("another", oracle.random_script(random.Random(6), 90)),
                             ("leaking", leaking())):
            trace = self.write(script, name)
            self.show(trace)
            for position in self.positions():
                self.go(f"#at={position}")
                with self.subTest(trace=name, position=position):
                    self.check_state(trace, position)
            self.check_silence()

    def test_other_measures(self):
        trace = self.write(churn(2000, 3))
        self.show(trace)
        at = self.positions()[5:16:10]
        for measure, command, size, number in (
                ("allocated", ["hot"], "bytes", "allocations"),
                ("peak", ["peak"], "bytes", "blocks")):
            self.go(f"#measure={measure}")
            found = self.json_of(*command, trace, "--by", "function", "--limit", "0")
            rows = sorted((whole(cells[2][1]), whole(cells[3][0])) for cells in
                          self.rows(".sites-panel") if whole(cells[3][0]))
            self.assertEqual(rows, sorted((group[size], group[number])
                                          for group in found["groups"]), measure)
            self.assertEqual(self.texts(".command code"),
                             [f"ttdanalyze {command[0]} {trace}"])
        self.go(f"#measure=changed&from={at[0]}&to={at[1]}")
        ends = [{(group["function"], group["module"], group["offset"]): group["bytes"] for group in
                 self.json_of("state", trace, "--at", place, "--by", "function", "--limit", "0")
                 ["groups"]} for place in at]
        wanted = sorted(ends[1].get(name, 0) - ends[0].get(name, 0)
                        for name in {*ends[0], *ends[1]})
        rows = sorted(int(cells[4][1].replace(",", "").split()[0].replace("−", "-"))
                      for cells in self.rows(".sites-panel"))
        self.assertEqual([row for row in rows if row], [growth for growth in wanted if growth])

    def test_changes_in_one_graph(self):
        script = Script().basics()
        for i in range(60):
            script.alloc(0x1000 * (i + 1), 100 + i, stack=2 + i // 25)
            if i >= 30:
                script.free(0x1000 * (i - 29))
        trace = self.write(script.close())
        self.show(trace)
        places = self.positions()[8:18:9]
        for unit, colours in (("bytes", "module"), ("blocks", "thread")):
            self.go(f"#measure=changed&from={places[0]}&to={places[1]}&unit={unit}&color={colours}")
            command = self.texts(".command code")[0].split()
            self.assertEqual(command[:3], ["ttdanalyze", "diff", "--changes"])
            found = self.json_of("diff", trace, *command[2:-1], "--limit", "0")
            changes = [change[f"change_{unit}"] for change in found["changes"]]
            rises, falls = (sum(max(0, sign * change) for change in changes) for sign in (1, -1))
            self.assertTrue(rises and falls)
            self.assertEqual(opened.evaluate(
                "(({nets, wholes}) => [nets[0], wholes[0]])(heapPage.flame.source)"),
                [rises - falls, rises + falls])
            said = self.texts(".flame-panel .said")[0]
            self.assertIn("Changed in the range", said)
            self.assertIn(" grown, −", said)
            self.check_change_colours()
            self.assertEqual(self.texts(".flame-panel .legend li")[:2], ["grown", "shrunk"])
        self.check_silence()

    def check_change_colours(self):
        """Growth and shrinkage have colours of their own."""
        boxes = opened.evaluate(
            "(({boxes, picture, source}) => boxes.filter(({node}) => node >= 0).map((box) => ["
            "source.nets[box.node], picture.colors.rise.includes(picture.colorOf(box)),"
            "picture.colors.fall.includes(picture.colorOf(box))]))(heapPage.flame)")
        self.assertEqual({net > 0 for net, _, _ in boxes}, {True, False})
        for net, is_rise, is_fall in boxes:
            self.assertEqual((is_rise, is_fall), (net > 0, net < 0))

    def test_colours_of_threads(self):
        script = Script().basics()
        for i, (stack, thread) in enumerate(((1, 1), (2, 1), (2, 2), (3, 2), (3, 2))):
            script.alloc(0x1000 * (i + 1), 100, stack=stack, thread=thread)
        self.show(self.write(script.close()), "#color=thread")
        threads = opened.evaluate("(({threadOf, stacks, series}) => Object.fromEntries(Array.from("
                                  "stacks, (stack, i) => [stack, threadOf[i] && "
                                  "series.thread.keys[threadOf[i] - 1]])))(heapPage.heap)")
        self.assertEqual(threads, {"1": 1, "2": 0, "3": 2})
        names = self.texts(".flame-panel .legend li")
        self.assertEqual(len(names), 3)
        self.assertEqual(names[2], "several threads")
        self.go("#color=thread&tree=icicle&direction=outward")
        colours = opened.evaluate(
            "(({boxes, picture, source}) => { const nodes = source.threads.ofNodes(picture.tree);"
            "return boxes.filter(({node}) => node >= 0).map((box) => [nodes[box.last], "
            "picture.colors.series.indexOf(picture.colorOf(box))]); })(heapPage.flame)")
        self.assertGreater(len(colours), 2)
        for thread, colour in colours:
            self.assertEqual(colour >= 0, thread > 0)
        self.go("#color=module")
        self.assertNotIn("several threads", self.texts(".flame-panel .legend li"))
        self.check_silence()

    def test_lost_blocks(self):
        trace = self.write(leaking())
        self.show(trace)
        for measure, kind in (("lost", "definite"), ("indirect", "indirect"),
                              ("possible", "possible")):
            self.go(f"#measure={measure}")
            found = self.json_of("leaks", trace, "--show", kind, "--by", "function")
            self.assertEqual(sorted((whole(cells[2][1]), whole(cells[3][0])) for cells in
                                    self.rows(".sites-panel") if whole(cells[3][0])),
                             sorted((group["bytes"], group["blocks"])
                                    for group in found["groups"]), kind)
            self.assertIn(f"{sum(group['bytes'] for group in found['groups']):,} bytes",
                          self.texts(".flame-panel .said")[0])
            self.assertEqual(self.texts(".command code"),
                             [f"ttdanalyze leaks --show {kind} {trace}"])
        self.assertGreater(len(self.json_of("leaks", trace, "--show", "definite")["groups"]), 0)
        self.show(self.write(churn(40, 5), "without"), "#measure=lost")
        self.assertIn("Live at the cursor", self.texts(".flame-panel .said")[0])
        self.assertNotIn("Definitely lost", " ".join(self.texts("option")))

    def test_classes(self):
        script = SnapshotScript().basics()
        for number in range(6):
            script.alloc(0x20000 + 0x1000 * number, 10 * number + 10)
        script.snapshot((0x20000, 0x401000), (0x21000, 0x401000), (0x22000, 0x402000),
                        (0x22008, 0x20000), *((IN_BSS, 8 * number, 0x20000 + 0x1000 * number)
                                            for number in range(6)), classes=((0x401000, EVIL[0]), (0x402000, "")))
        trace = self.write(script.close())
        for options in ((), ("--exclude", "g(int)")):
            self.show(trace, "#by=class", *options)
            command = self.texts(".sites-panel .command code")[0].split()
            self.assertEqual(command, ["ttdanalyze", "retained", "--by", "class", "--limit", "200",
                                       trace])
            found = self.json_of("retained", trace, *command[2:-1])
            rows = [(whole(cells[0][1]), whole(cells[2][0]), whole(cells[3][1]))
                    for cells in self.rows(".sites-panel")]
            self.assertEqual(len(rows), 3)
            self.assertEqual(sorted(rows), sorted((row["bytes"], row["blocks"],
                                                   row["retained_bytes"])
                                                  for row in found["retainers"]))
            said = self.texts(".sites-panel .said")[0]
            self.assertEqual("filters of this page do not apply" in said, bool(options))
        self.go("#by=class&search=402000")
        self.assertEqual(len(self.rows(".sites-panel")), 1)
        self.check_silence()
        self.show(self.write(churn(40, 5), "without"), "#by=class")
        self.assertNotIn("class", self.texts(".sites-panel option"))
        self.assertIn("by function", self.texts(".sites-panel .said")[0])

    def test_threads_and_heaps(self):
        trace = self.write(churn(500, 4))
        self.show(trace)
        position = self.positions()[10]
        found = self.json_of("state", trace, "--at", position)
        for by in ("thread", "heap"):
            self.go(f"#at={position}&by={by}")
            rows = sorted((whole(cells[2][1]), whole(cells[3][0]))
                          for cells in self.rows(".sites-panel"))
            self.assertEqual(rows, sorted((item["bytes"], item["blocks"])
                                          for item in found[by + "s"]))

    def test_lists(self):
        trace = self.write(leaking())
        self.show(trace, "#view=leaks")
        found = self.json_of("leaks", trace)
        self.assertEqual(sorted(whole(cells[1][1]) for cells in self.rows(".view")),
                         sorted(group["bytes"] for group in found["groups"]))
        self.assertGreater(len(found["groups"]), 0)
        trace = self.write(oracle.random_script(random.Random(7), 120), "errors")
        self.show(trace, "#view=errors")
        found = self.json_of("errors", trace, "--limit", "0")
        self.assertEqual(len(self.texts("article.finding")), found["total_findings"])
        self.assertGreater(found["total_findings"], 3)
        self.go("#view=moves")
        found = self.json_of("moves", trace, "--limit", "0")
        self.assertEqual(sorted(whole(cells[2][0]) for cells in
                                self.rows(".view > div > .panel:first-child")),
                         sorted(group["reallocs"] for group in found["groups"]))
        self.go("#view=lifetimes")
        found = self.json_of("lifetimes", trace)
        # All times are shorter than the clock can tell from none.
        self.assertEqual([found["by_time"][0]["shortest"], found["by_time"][-1]["longest"] < 1 << 21], [0, True])
        self.assertEqual([whole(cells[1][0]) for cells in self.rows(".columns > .panel:first-child")],
                         [sum(row["blocks"] for row in found["by_time"])])
        self.assertEqual([whole(cells[1][0]) for cells in self.rows(".columns > .panel:nth-child(2)")],
                         [row["blocks"] for row in found["by_calls"]])
        self.check_silence()


class Use(PageCase):
    def press(self, key, **more):
        words = ", ".join(f"{name}: {str(value).lower()}" for name, value in more.items())
        opened.evaluate("(document.activeElement || document.body).dispatchEvent("
                        f"new KeyboardEvent('keydown', {{key: {key!r}, bubbles: true, {words}}}))")
        self.settle()

    def at(self):
        return opened.evaluate("heapPage.state.get('at')")

    def test_keys_and_the_fragment(self):
        trace = self.write(churn(200, 8))
        self.show(trace)
        self.press("Home")
        self.assertEqual(self.at(), 0)
        self.press("ArrowRight")
        self.press("PageDown")
        self.assertEqual(self.at(), 11)
        self.press("ArrowRight", shiftKey=True)
        self.press("3")
        time.sleep(1)
        fragment = opened.evaluate("location.hash")
        position = opened.evaluate("heapPage.heap.position[12]")
        self.assertEqual(fragment, f"#at={position}&to={position}&view=errors")
        self.show(trace, fragment)
        self.assertEqual((self.at(), opened.evaluate("heapPage.state.get('to')")), (12, 12))
        self.assertEqual(self.texts("[role=tab][aria-selected=true]"), ["Errors"])
        self.check_silence()

    def test_the_timeline_as_a_table(self):
        trace = self.write(churn(900, 18))
        self.show(trace)
        scope = "#timeline-table"
        self.assertEqual(self.rows(scope), [])
        self.press("t")
        ticks = opened.evaluate("heapPage.heap.count")
        csv = opened.evaluate("heapPage.ticks.table.csv()")
        self.assertEqual(len(csv), 1 + ticks)
        rows = dict(zip(csv[0], zip(*csv[1:])))
        events = self.run_ok("events", "--format", "json", trace).json_lines
        self.assertEqual(sum(rows["Allocations"]), sum(event["action"] == "Alloc" for event in events))
        for i in range(0, ticks, ticks // PLACES):
            found = self.json_of("state", trace, "--at", rows["Position"][i])
            self.assertEqual((rows["Live"][i], rows["Blocks"][i]),
                             (found["live_bytes"], found["live_blocks"]))
        shown = self.rows(scope)
        self.assertEqual([cells[2][0] for cells in shown], list(rows["Position"][:len(shown)]))
        self.assertEqual([whole(cells[3][1]) for cells in shown], list(rows["Live"][:len(shown)]))
        opened.evaluate(f"void document.querySelectorAll('{scope} tbody tr')[7].focus(), 1")
        self.press("Enter")
        self.assertEqual(self.at(), 7)
        time.sleep(1)
        fragment = opened.evaluate("location.hash")
        self.assertIn("table=timeline", fragment)
        self.show(trace, f"{fragment}&zoom=100000-200000")
        self.assertEqual(opened.evaluate("heapPage.ticks.table.rows"), opened.evaluate(
            "Array.from(heapPage.heap.time.keys()).filter((tick) => heapPage.heap.time[tick] >= "
            "100000 && heapPage.heap.time[tick] <= 200000)"))
        self.assertEqual(self.texts(f"{scope} .command code"),
                         [f"ttdanalyze timeline --over time --points 200 {trace}"])
        self.press("t")
        self.assertTrue(opened.evaluate(f"document.querySelector('{scope}').hidden"))
        self.check_silence()

    def test_an_address_given_while_the_page_writes_its_own(self):
        trace = self.write(churn(200, 8))
        self.show(trace)
        opened.evaluate("heapPage.state.set({ at: 5 }), location.hash = "
                        "`#at=${heapPage.heap.position[9]}`, heapPage.state.write(), 1")
        self.settle()
        self.assertEqual(self.at(), 9)

    def test_a_nonsense_fragment_is_harmless(self):
        trace = self.write(churn(50, 9))
        self.show(trace, "#at=zz&from=FFFF:0&view=nothing&by=x&measure=constructor&zoom=5-1"
                         "&root=77777&tree=<b>&direction=__proto__&plot=9&sort=-1")
        self.assertGreater(len(self.rows(".sites-panel")), 0)
        self.check_silence()

    def test_everything_has_a_name(self):
        self.show(self.write(churn(50, 10)))
        for number in range(1, 8):
            self.press(str(number))
            nameless = opened.evaluate(
                "[...document.querySelectorAll('button, select, input, canvas, [role]')]"
                ".filter((node) => !(node.getAttribute('aria-label') || node.textContent.trim() ||"
                " node.labels?.length)).map((node) => node.outerHTML)")
            self.assertEqual(nameless, [])

    def test_saving(self):
        self.show(self.write(evil()))
        opened.evaluate("void (URL.createObjectURL = (blob) => { window.saved = blob; "
                        "return '#'; }), 1")
        for label in ("Save timeline as SVG", "Save flame-graph as SVG"):
            opened.evaluate(f"void document.querySelector('[aria-label=\"{label}\"]').click(), 1")
            text = opened.evaluate("saved.text()")
            root = xml.etree.ElementTree.fromstring(text)
            self.assertTrue(root.tag.endswith("svg"))
            self.assertFalse([node for node in root.iter() if node.tag.endswith("script")])
        csv = opened.evaluate("heapPage.sites.table.csv()")
        self.assertEqual(len(csv), 1 + len(self.rows(".sites-panel")))

    def test_every_view_has_a_command_and_copies(self):
        script = SnapshotScript().basics()
        script.alloc(0x20000, 100)
        script.realloc(0x20000, 0x21000, 200)
        script.snapshot((IN_BSS, 8, 0x21000))
        script.free(0x9999)
        script.free(0x9990, stack=3)
        trace = self.write(script.close())
        self.show(trace)
        opened.evaluate("void (URL.createObjectURL = (blob) => { window.saved = blob; "
                        "return location.hash; }), 1")
        for view in ("heap", "range", "leaks", "errors", "moves", "lifetimes", "retained", "about"):
            self.go(f"#view={view}")
            buttons = "[...document.querySelectorAll('main .view button')].filter((node) => " \
                "node.textContent === 'Save CSV')"
            tables = opened.evaluate("document.querySelectorAll('main .view table').length")
            saved = opened.evaluate(f"Promise.all({buttons}.map((node) => {{ node.click(); "
                                    "return saved.text(); }))")
            self.assertGreater(len(saved), 0, view)
            self.assertGreaterEqual(len(saved), tables, view)
            for text in saved:
                self.assertIn(",", text.splitlines()[0])
            for command in self.texts(".command code"):
                words = command.split()
                self.assertEqual((words[0], words[-1]), ("ttdanalyze", trace), view)
                self.run_ok(*words[1:])
            if view == "errors":
                found = self.json_of("errors", trace)["findings"]
                self.assertEqual(len(saved[0].splitlines()), 1 + len(found))
                self.assertIn(f"{found[0]['kind']},1,true,{found[0]['address']},", saved[0])
            if view == "retained":
                self.assertEqual(self.texts(".command code"),
                                 [f"ttdanalyze {name} {trace}" for name in ("retained", "roots")])


    def test_saving_as_png(self):
        self.show(self.write(churn(300, 19)), "#plot=bytes-sites")
        for width, height in ((1280, 800), (3840, 2160)):
            opened.size(width, height)
            self.settle()
            for label, name in (("timeline", "timeline"), ("flame-graph", "flame")):
                found = opened.evaluate(PNG % (label, name))
                self.assertEqual(found["type"], "image/png")
                self.assertEqual(found["size"], found["wanted"], (label, width))
                self.assertGreater(found["size"][0], width / 3)
                self.assertLess(found["others"], 0.02, (label, width))
                self.assertGreater(found["colours"], 10, (label, width))
        opened.size(1400, 900)
        self.check_silence()


@unittest.skipIf(NAME != "chromium", "only Chromium shows the tree")
class Accessible(PageCase):
    """The tree of names and roles that a screen reader gets."""

    # Their text is read, not a name.
    READ = {"RootWebArea", "row", "code", "cell", "option", "MenuListPopup"}

    def check_view(self, view):
        """Checks the tree of a view, and returns it."""
        tree = opened.accessibility_tree()
        nameless = [node for node in tree if node["role"] not in self.READ and not node["name"] and
                    (node.get("focusable") or node["role"] in ("image", "table", "region", "slider"))]
        self.assertEqual(nameless, [], view)
        by_role = {}
        for node in tree:
            by_role.setdefault(node["role"], []).append(node)
        self.assertEqual([node["level"] for node in by_role["heading"]].count(1), 1, view)
        names = [node["name"] for node in by_role.get("table", [])]
        self.assertEqual(sorted(set(names)), sorted(names), view)
        self.assertEqual([name for name in names if "-" in name], [], "a name for programs")
        chosen = [node["name"] for node in by_role["tab"] if node["selected"]]
        self.assertEqual(len(chosen), 1, view)
        self.assertEqual([node["name"] for node in by_role["tabpanel"]],
                         [re.sub(r"[ \d,]+$", "", chosen[0])], view)
        return by_role

    def test_tree(self):
        self.show(self.write(leaking()))
        for view in ("heap", "leaks", "errors", "moves", "lifetimes", "held", "range", "about"):
            self.go(f"#view={view}")
            self.check_view(view)
        self.check_silence()

    def test_states(self):
        """States that colour or place show are in the tree."""
        self.show(self.write(leaking()), "#view=heap&measure=allocated")
        tree = self.check_view("heap")
        pressed = [node["name"] for node in tree["button"] if node.get("pressed") == "true"]
        self.assertIn("Allocated", pressed)
        slider, = tree["slider"]
        self.assertEqual(slider["value"], opened.evaluate("heapPage.heap.last"))
        self.assertIn(f"position {self.positions()[-1]}", opened.evaluate(
            "document.querySelector('[role=slider]').getAttribute('aria-valuetext')"))
        self.assertTrue(any(node.get("live") == "polite" for nodes in tree.values()
                            for node in nodes))


class Hostile(PageCase):
    def test_names_only_display(self):
        self.show(self.write(evil()), "", "--title", EVIL[1])
        for view in ("heap", "range", "leaks", "errors", "moves", "lifetimes", "about"):
            self.go(f"#view={view}&by=stack")
            opened.evaluate("void document.querySelectorAll('tr[tabindex]')"
                            ".forEach((row) => row.click()), 1")
            self.settle()
            self.assertEqual(opened.evaluate("typeof window.hacked"), "undefined")
            self.assertEqual(opened.evaluate(
                "[document.scripts.length, document.querySelectorAll('img, b script').length]"),
                [4, 0])
        self.assertEqual(opened.evaluate("document.title"), EVIL[1])
        self.go("#view=heap&by=function")
        self.assertIn(EVIL[0], " ".join(self.texts(".sites-panel td.name")))
        self.check_silence()

    def test_a_name_cannot_turn_what_stands_beside_it(self):
        self.show(self.write(evil()))
        opened.evaluate("heapPage.state.set({ at: heapPage.heap.last }), 1")
        self.settle()
        names = " ".join(self.texts(".sites-panel td.name"))
        self.assertIn("\\u202egnp.exe", names)
        self.assertNotIn("\u202e", names)

    def test_positions_are_sorted_as_such(self):
        script = Script().basics()
        for place in ("2:0", "10:0", "A:0", "104:0", "1004:0"):
            script.add("thread", os=7, name="t", position=place)
        script.clock = 4 * 0x1005
        for thread in range(3, 8):
            script.alloc(0x1000 * thread, 8, thread=thread)
        self.show(self.write(script.close()), "#view=about")
        cells = [cells[0][0] for cells in self.rows(".columns > .panel:nth-child(2)")]
        self.assertEqual([cell for cell in cells if cell not in ("0:0", "1:0")],
                         ["2:0", "A:0", "10:0", "104:0", "1004:0"])

    def test_words_stay_within_the_timeline(self):
        """That of the peak is at its left if there is no room at its right."""
        script = Script().basics()
        for i in range(30):
            script.alloc(0x1000 * (i + 1), 100, wall=i * 1000)
        self.show(self.write(script.close(wall=30000)))
        svg = opened.evaluate(SVG)
        places = [(float(node.get("x")), node.get("text-anchor"), node.text) for node in
                  xml.etree.ElementTree.fromstring(svg).iter() if node.tag.endswith("text")]
        width = opened.evaluate("heapPage.timeline.canvas.clientWidth")
        self.assertEqual([anchor for _, anchor, text in places if "peak" in text], ["end"])
        for x, anchor, text in places:
            room = {"start": width - x, "middle": 2 * min(x, width - x), "end": x}[anchor]
            self.assertGreater(room, 6 * len(text), (x, anchor, text))

    def test_an_empty_trace_has_no_label_twice(self):
        self.show(self.write(Script().basics().close()))
        svg = xml.etree.ElementTree.fromstring(opened.evaluate(SVG))
        texts = [node.text for node in svg.iter() if node.tag.endswith("text")]
        self.assertEqual(len(texts), len(set(texts)), texts)

    def test_traces_that_have_next_to_nothing(self):
        one = Script().basics()
        one.alloc(0x1000, 7)
        errors = Script().basics()
        errors.free(0x9000)
        for name, script in (("empty", Script().basics()), ("one", one), ("errors", errors)):
            self.show(self.write(script.close(), name))
            for view in ("heap", "range", "leaks", "errors", "moves", "lifetimes", "about"):
                self.go(f"#view={view}&table=timeline")
                self.assertNotRegex(opened.evaluate("document.body.innerText"),
                                    r"\b1 (event|allocation|release|block|byte|moment)s\b")
            self.check_silence()
            svg = xml.etree.ElementTree.fromstring(opened.evaluate(SVG))
            labels = " ".join(node.text for node in svg.iter() if node.tag.endswith("text"))
            self.assertEqual("peak" in labels, name == "one")
            areas = [node.get("points").split() for node in svg.iter()
                     if node.tag.endswith("polygon")]
            widest = max(max(map(float, points[::2])) - min(map(float, points[::2]))
                         for points in areas)
            self.assertGreater(widest, float(svg.get("width")) / 2, "nothing is drawn")

    def test_deep_stacks(self):
        script = Script().basics()
        for i in range(5000):
            script.add("stack", parent=4 + i, module=1, offset=0x1000 + 16 * (i % 2))
        for i in range(0, 5000, 2):
            script.alloc(0x1000 * (i + 1), 8, stack=5 + i)
        self.show(self.write(script.close()))
        self.assertIn("deeper calls are not drawn", self.texts(".flame-panel .said")[0])
        self.go("#direction=outward")
        self.check_silence()

    def test_an_open_trace_says_what_is_uncertain(self):
        script = Script().basics()
        script.alloc(0x1000, 8)
        self.show(self.write(script.abandon()))
        for view in ("heap", "range", "leaks", "errors", "moves", "lifetimes", "about"):
            self.go(f"#view={view}")
            self.assertIn("not closed cleanly", " ".join(self.texts(".doubt")), view)


class Limits(PageCase):
    """Every view says which part of the trace it is of, where that is not the page's."""

    def test_a_part_of_the_trace(self):
        script = churn(400, 12)
        trace = self.write(script)
        self.show(trace)
        first, last = (self.positions()[i] for i in (5, 12))
        self.show(trace, "", "--from", first, "--to", last)
        notes = dict.fromkeys(("errors", "moves", "lifetimes", "about"), "of the whole trace")
        for view, note in (*notes.items(), ("leaks", "live at "), ("heap", "")):
            self.go(f"#view={view}")
            top, own = self.texts(".scope")
            self.assertIn(f"the range from {first} to ", top)
            self.assertIn(note, own, view)
            self.assertEqual(bool(own), bool(note), view)
        self.go("#view=heap&measure=peak")
        peak = opened.evaluate("heapPage.parts.heap.peak.position")
        command = self.texts(".command code")[0].split()
        self.assertEqual(command, ["ttdanalyze", "state", "--at", peak, trace])
        found = self.json_of("state", trace, "--at", peak, "--limit", "0")
        self.assertEqual(sum(whole(cells[2][1]) for cells in self.rows(".sites-panel")
                             if whole(cells[3][0])), found["live_bytes"])
        self.check_silence()

    def check_quadrants(self, trace, *ends):
        self.show(trace, "#view=range", *ends)
        found = self.json_of("diff", trace, *ends, "--limit", "0")
        by_function = self.json_of("diff", trace, *ends, "--by", "function", "--limit", "0")
        for name in ("aifi", "aifo", "aofi", "aofo"):
            scope = f"[data-quadrant={name}]"
            self.check_functions(scope, by_function[name])
            sums = self.texts(f"{scope} .sums")[0].split(", ", 1)
            self.assertEqual((whole(sums[0]), whole(sums[1])),
                             (found[name]["blocks"], found[name]["bytes"]), name)
        self.assertEqual(self.texts(".command code")[0].split(), ["ttdanalyze", "diff", *ends, trace])
        return found

    def test_quadrants_of_the_range(self):
        trace = self.write(churn(600, 13))
        self.show(trace)
        for first, last in ((3, 9), (0, 7), (12, 18)):
            ends = ["--from", self.positions()[first], "--to", self.positions()[last]]
            found = self.check_quadrants(trace, *ends)
            self.assertGreater(found["aifi"]["blocks"] + found["aifo"]["blocks"], 0)
            self.show(trace)
        self.check_silence()

    def test_lost_blocks_of_the_range(self):
        trace = self.write(leaking())
        self.show(trace)
        found = self.check_quadrants(trace, "--from", self.positions()[1])
        lost = found["classes"]["definitely_lost"]
        self.assertGreater(lost["blocks"], 0)
        self.assertIn(f"{lost['bytes']} bytes definitely lost", " ".join(self.texts(".lost li")))

    def test_a_range_that_is_chosen(self):
        trace = self.write(churn(600, 14))
        self.show(trace)
        for first, last in ((2, 11), (5, 6), (0, 19)):
            places = [self.positions()[i] for i in (first, last)]
            self.go(f"#view=range&from={places[0]}&to={places[1]}")
            command = self.texts(".command code")[0].split()
            self.assertEqual(command[:2], ["ttdanalyze", "diff"])
            found = self.json_of("diff", trace, *command[2:-1])
            figures = self.texts(".view .figures dd")
            blocks = {name: found[name]["blocks"] for name in ("aifi", "aifo", "aofi", "aofo")}
            self.assertEqual(whole(figures[0].split("B", 1)[1]), blocks["aofi"] + blocks["aofo"])
            self.assertEqual(whole(figures[1].split("B", 1)[1]), blocks["aifi"] + blocks["aifo"])
            self.assertEqual(whole(figures[2]), blocks["aifi"] + blocks["aofi"])
            self.assertEqual(whole(figures[3].split("B", 1)[1]), blocks["aifo"] + blocks["aofo"])
            self.check_sums(found)
        self.check_silence()

    def check_sums(self, found):
        """The sums of quadrants are those of `diff`."""
        rows = [(cells[0][0].lower()[-5:-1], whole(cells[1][0]), whole(cells[3][0]))
                for cells in self.rows("[aria-label=quadrants]")]
        self.assertEqual(rows, [(name, found[name]["blocks"], found[name]["bytes"])
                                for name in ("aifi", "aifo", "aofi", "aofo")])

    def choose(self, first, last):
        """Chooses a range of ticks, and returns what the command of the page prints."""
        places = opened.evaluate(f"[{first}, {last}].map((tick) => heapPage.heap.position[tick])")
        self.go(f"#view=range&from={places[0]}&to={places[1]}")
        command = shlex.split(self.texts(".command code")[0])
        return self.json_of("diff", command[-1], *command[2:-1], "--limit", "0")

    def test_the_quadrants_of_any_range(self):
        nested = Script().basics()
        nested.add("heap", name="pool", handle=0x10000, parent=1)
        nested.alloc(0x10000, 4096)
        nested.alloc(0x10100, 100, heap=3)
        nested.free(0x10100, heap=3)
        for seed, script in ((1, churn(2600, 15)), (2, leaking()), (3, nested.close()),
                             (4, oracle.random_script(random.Random(8), 400))):
            self.show(self.write(script, f"trace{seed}"))
            self.assertEqual(opened.evaluate("heapPage.parts.heap.spans.width"), 1)
            chance = random.Random(seed)
            last = opened.evaluate("heapPage.heap.last")
            ranges = [sorted(chance.sample(range(last + 1), 2)) for _ in range(PLACES)]
            for first, end in [(0, last), *ranges]:
                with self.subTest(trace=seed, first=first, end=end):
                    self.check_sums(self.choose(first, end))
            self.check_silence()

    def test_quadrants_with_filters_and_in_a_part(self):
        trace = self.write(churn(900, 20))
        self.show(trace)
        places = self.positions()
        for options in (("--exclude", "g(int)"), ("--from", places[4], "--to", places[15])):
            self.show(trace, "", *options)
            last = opened.evaluate("heapPage.heap.last")
            for first, end in ((1, last - 1), (last // 3, last // 2), (0, last // 2)):
                found = self.choose(first, end)
                self.assertGreater(found["aofi"]["blocks"] + found["aifi"]["blocks"], 0)
                self.check_sums(found)
        self.check_silence()

    def test_ranges_are_rounded_where_spans_are_too_many(self):
        script = Script(events_per_chunk=5000).basics()
        blocks = [0x1000 * (i + 1) for i in range(20000)]
        for i, address in enumerate(blocks):
            script.alloc(address, 1 + i % 97)
        random.Random(16).shuffle(blocks)
        for address in blocks:
            script.free(address)
        self.show(self.write(script.close()))
        width = opened.evaluate("heapPage.parts.heap.spans.width")
        last = opened.evaluate("heapPage.heap.last")
        self.assertGreater(width, 1)
        for first, end in ((1, 2), (width + 1, 9 * width - 1), (width, 5 * width), (5, last)):
            self.check_sums(self.choose(first, end))
            is_rounded = first % width > 0 or (end % width > 0 and end < last)
            self.assertEqual("Rounded outwards" in self.texts(".view .dim")[0], is_rounded)
        self.check_silence()

    def test_marks_outside_are_not_on_the_timeline(self):
        trace = self.write(leaking())
        self.show(trace)
        self.assertIn("snapshot 1", opened.evaluate("heapPage.timeline.places.map((a) => a.text)"))
        self.show(trace, "#view=about", "--to", "2:0")
        self.assertNotIn("snapshot 1",
                         opened.evaluate("heapPage.timeline.places.map((a) => a.text)"))
        self.assertIn("snapshot 1", " ".join(self.texts(".view td")))

    def test_filters(self):
        trace = self.write(leaking())
        self.show(trace, "#view=about", "--exclude", "g(int)")
        top, own = self.texts(".scope")
        self.assertIn("Stacks with “g(int)” do not count", top)
        self.assertIn("do not apply", own)
        self.assertNotIn("--exclude", self.texts(".command code")[0])
        self.go("#view=heap")
        all_of_them = self.json_of("peak", trace)
        self.assertIn(f"at {all_of_them['position']}", self.texts("main > section > .figures dd small")[3])
        self.assertIn("--exclude", self.texts(".command code")[0])
        self.assertEqual(self.texts(".scope")[1], "")

    def test_islands(self):
        trace = self.write(random_islands(3).close())
        self.show(trace, "#view=about", "--client", GUID, "--activity", "7")
        top, own = self.texts(".scope")
        self.assertIn("islands of activity 7 ", top)
        self.assertIn("islands of client 612d636c-", top)
        self.assertIn("do not apply", own)
        self.go("#view=heap")
        self.assertIn("--client 612d636c-6965-6e74-2d63-6f6d65732d31 --activity 7",
                      self.texts(".command code")[0])
        self.assertEqual(self.texts(".scope")[1], "")

    def test_blocks_within_others(self):
        script = Script().basics()
        script.add("heap", name="pool", handle=0x10000, parent=1)
        script.alloc(0x10000, 4096)
        script.alloc(0x10100, 100, heap=3)
        trace = self.write(script.close())
        self.show(trace)
        self.go(f"#at={self.positions()[-1]}")
        found = self.json_of("state", trace)
        self.assertEqual((found["live_bytes"], found["nested_bytes"]), (4096, 100))
        self.assertEqual(self.texts("main > section > .figures dd small")[1:3],
                         [" 4,096 bytes, and 100 within them", " live, and 1 within them"])
        for said in self.texts(".said"):
            self.assertIn("100 bytes of it lie within other blocks", said)
        self.go("#measure=allocated&plot=bytes-sites")
        self.assertIn("count, too", self.texts(".flame-panel .said")[0])
        self.assertIn("count, too", self.texts(".legend")[0])
        self.check_silence()


class Pictures(PageCase):
    def test_all_views(self):
        trace = self.write(churn(3000, 11), "picture")
        os.makedirs(SHOTS, exist_ok=True)
        for width, height in ((1400, 900), (3840, 2160)):
            opened.size(width, height)
            self.show(trace)
            for view in ("heap", "range", "leaks", "errors", "moves", "lifetimes", "about"):
                self.go(f"#view={view}&plot=bytes-sites")
                path = os.path.join(SHOTS, f"{NAME}{MODE and '-' + MODE}-{width}-{view}.png")
                opened.screenshot(path)
                self.assertGreater(os.path.getsize(path), 10000)
        opened.size(1400, 900)


if __name__ == "__main__":
    lacking = browser.missing(NAME)
    if lacking:
        print(f"not installed: {lacking}")
        sys.exit(77)
    support.main()
