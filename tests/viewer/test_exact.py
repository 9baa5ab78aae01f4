# SPDX-License-Identifier: MIT
"""The exact page of `ttdanalyze report --exact` in a browser, as test_page.py: between ticks its
numbers are those of the commands."""

import collections
import os
import random
import time
import xml.etree.ElementTree

import browser
import oracle
import support
import test_page
from snapshot_support import IN_BSS, SnapshotScript
from support import Script
from test_page import PLACES, churn, kept, whole

WAIT_SECONDS = 60
HAS_ENGINE = os.environ.get("HAS_ENGINE") == "1"


def setUpModule():
    test_page.setUpModule()


def tearDownModule():
    test_page.tearDownModule()


def evaluate(expression):
    return test_page.opened.evaluate(expression)


class ExactCase(test_page.PageCase):
    def show_exact(self, trace, fragment="", *arguments):
        self.show(trace, fragment, "--exact", *arguments)
        self.assertEqual(evaluate("heapPage.exact.done.then(() => [heapPage.exact.is_ready, "
                                  "heapPage.exactNote.textContent])"), [True, ""])
        self.settle()

    def visit(self, fragment):
        """Goes somewhere, and waits until the engine has answered."""
        self.go(fragment)
        evaluate("Promise.resolve(heapPage.exact.run).then(() => 1)")
        self.settle()

    def check_silence(self):
        """The worker is a part of the page."""
        test_page.opened.requests[:] = [url for url in test_page.opened.requests
                                        if not url.startswith("blob:")]
        super().check_silence()

    def wait(self, expression):
        deadline = time.monotonic() + WAIT_SECONDS
        while not evaluate(expression):
            self.assertLess(time.monotonic(), deadline, expression)
            time.sleep(0.02)

    def between(self, trace, seed=1):
        """Positions at which something happens, none of which is a tick."""
        ticks = set(evaluate("heapPage.heap.position"))
        rows = self.run_ok("events", "--format", "json", trace).json_lines
        found = [row["time_end"] if row["action"] == "Alloc" else row["time_start"] for row in rows
                 if row["result"]]
        found = [position for position in dict.fromkeys(found) if position not in ticks]
        return random.Random(seed).sample(found, min(PLACES, len(found)))

    def at(self):
        return evaluate("heapPage.heap.position[heapPage.state.get('at')]")


class Numbers(ExactCase):
    def test_the_heap_between_ticks(self):
        for name, script in (("churn", churn(6000, 1)),
                             ("random", oracle.random_script(random.Random(5), 3000))):
            trace = self.write(script, name)
            self.show_exact(trace)
            for position in self.between(trace):
                self.visit(f"#at={position}")
                with self.subTest(trace=name, position=position):
                    # Not every call of the random trace changes the heap.
                    if name == "churn":
                        self.assertEqual(self.at(), position)
                    test_page.Numbers.check_state(self, trace, self.at())
                    found = self.json_of("state", trace, "--at", position)
                    self.assertEqual(whole(self.texts("main > section > .figures dd small")[1]),
                                     found["live_bytes"])
            self.check_silence()

    def test_what_the_runtimes_keep_between_ticks(self):
        trace = self.write(kept(True))
        self.show_exact(trace)
        events = self.run_ok("events", "--format", "json", trace).json_lines
        taken = [event["time_end"] if event["action"] == "Alloc" else event["time_start"]
                 for event in events if event.get("address", event.get("base_address")) in
                 ("0x100000", "0x300000", "0x400000", "0x500000")]
        self.assertEqual(len(taken), 5)
        for position in (*taken, *self.between(trace)[:3]):
            self.visit(f"#at={position}")
            found = self.json_of("state", trace, "--at", position)
            self.assertEqual(evaluate(
                "(({ heap, state }, at = state.get('at')) => [heap.position[at], heap.bytes[at], heap.blocks[at], "
                "heap.bySite.at(at).bytes.reduce((a, b) => a + b, 0)])(heapPage)"),
                [position, found["live_bytes"], found["live_blocks"], found["live_bytes"]])
        self.check_silence()

    def test_threads_and_heaps(self):
        trace = self.write(churn(5000, 2))
        self.show_exact(trace)
        for position in self.between(trace)[:5]:
            found = self.json_of("state", trace, "--at", position)
            for by in ("thread", "heap"):
                self.visit(f"#at={position}&by={by}")
                rows = sorted((whole(cells[2][1]), whole(cells[3][0]))
                              for cells in self.rows(".sites-panel") if whole(cells[3][0]))
                self.assertEqual(rows, sorted((item["bytes"], item["blocks"])
                                              for item in found[by + "s"]))

    def test_a_range_between_ticks(self):
        trace = self.write(churn(5000, 3))
        self.show_exact(trace)
        ends = sorted(self.between(trace)[:2], key=oracle.position)
        self.visit(f"#at={ends[1]}&from={ends[0]}&to={ends[1]}")
        states = [self.json_of("state", trace, "--at", end)["live_bytes"] for end in ends]
        grown = self.texts("main > section > .figures dd")[5]
        self.assertEqual(evaluate("(({heap, state}) => heap.bytes[state.get('to')] - "
                                  "heap.bytes[state.get('from')])(heapPage)"),
                         states[1] - states[0], grown)
        rows = self.run_ok("events", "--format", "json", trace).json_lines
        low, high = map(oracle.position, ends)
        allocations = sum(row["action"] == "Alloc" and bool(row["result"]) and
                          low < oracle.position(row["time_end"]) <= high for row in rows)
        self.assertIn(f"{allocations:,} allocations", grown)
        self.visit("#")
        self.assertEqual(evaluate("heapPage.heap.allocations.reduce((a, b) => a + b)"),
                         sum(row["action"] == "Alloc" and bool(row["result"]) for row in rows))

    def test_quadrants_between_ticks(self):
        for name, script in ("churn", churn(5000, 6)), ("kept", kept(False)):
            with self.subTest(trace=name):
                self.check_quadrants(self.write(script, name))

    def check_quadrants(self, trace):
        self.show_exact(trace, "#view=range")
        places = sorted(self.between(trace), key=oracle.position)
        for first, last in ((0, 9), (4, 5), (3, 19), (0, 19)):
            self.visit(f"#view=range&from={places[first]}&to={places[last]}&at={places[last]}")
            self.wait("!heapPage.views.find((view) => view.key === 'range').made.run")
            command = self.texts(".command code")[0].split()
            found = self.json_of("diff", trace, *command[2:-1], "--by", "function", "--limit", "0")
            for name in ("aifi", "aifo", "aofi", "aofo"):
                scope = f"[data-quadrant={name}]"
                self.check_functions(scope, found[name])
                sums = self.texts(f"{scope} .sums")[0].split(", ", 1)
                self.assertEqual((whole(sums[0]), whole(sums[1])),
                                 (found[name]["blocks"], found[name]["bytes"]))
            before, _, _, after, _ = (whole(text.split("B")[-1]) for text in self.texts(".view .figures dd"))
            self.assertEqual(before, found["aofi"]["blocks"] + found["aofo"]["blocks"])
            self.assertEqual(after, found["aifo"]["blocks"] + found["aofo"]["blocks"])
            self.assertGreater(found["aifi"]["blocks"] + found["aifo"]["blocks"], 0)
        self.check_quadrants_of_some(trace)
        self.check_silence()

    def check_quadrants_of_some(self, trace):
        """The range that is shown, of the functions that a search finds."""
        evaluate("heapPage.state.set({ search: 'g(int)' }), 1")
        self.settle()
        words = self.texts("main > .command code")[0].split()
        self.assertEqual(words[-3:-1], ["--include", "'g(int)'"])
        found = self.json_of("diff", trace, *words[2:-3], "--include", "g(int)", "--limit", "0")
        for name in ("aifi", "aifo", "aofi", "aofo"):
            sums = self.texts(f"[data-quadrant={name}] .sums")[0].split(", ", 1)
            self.assertEqual((whole(sums[0]), whole(sums[1])), (found[name]["blocks"], found[name]["bytes"]))
        self.assertGreater(found["aifo"]["blocks"] + found["aifi"]["blocks"], 0)

    def test_filters(self):
        trace = self.write(churn(5000, 4))
        self.show_exact(trace, "", "--exclude", "g(int)")
        for position in self.between(trace)[:5]:
            self.visit(f"#at={position}")
            found = self.json_of("state", trace, "--at", position, "--exclude", "g(int)",
                                 "--by", "function", "--limit", "0")
            rows = sorted((whole(cells[2][1]), whole(cells[3][0]))
                          for cells in self.rows(".sites-panel") if whole(cells[3][0]))
            self.assertEqual(rows, sorted((group["bytes"], group["blocks"])
                                          for group in found["groups"]))

    def test_memory_is_that_of_fragmentation(self):
        trace = self.write(churn(5000, 5))
        self.show_exact(trace)
        for position in self.between(trace)[:6]:
            self.visit(f"#at={position}&view=memory")
            self.wait("!heapPage.memory.run")
            found = self.json_of("fragmentation", trace, "--at", position, "--limit", "0")
            rows = evaluate("heapPage.memory.regions.rows.map((row) => [row.first.toString(16), "
                            "row.last.toString(16), row.blocks, row.used, row.unused, row.gaps, "
                            "row.largest])")
            self.assertEqual(rows, [[region["begin"][2:], region["last"][2:], region["blocks"],
                                     region["used_bytes"], region["gap_bytes"], region["gaps"],
                                     region["largest_gap"]] for region in found["regions"]])
            self.assertIn(f"{found['used_bytes']:,} bytes used", self.texts(".said")[0])
            wanted, shown = collections.Counter(), collections.Counter()
            for site in found["keepers"]:
                frame = (site["stack"] or [{"function": None}])[0]
                wanted[frame["function"]] += site["kept_bytes"]
            for name, sum_kept in evaluate("heapPage.memory.sparse.rows.map((row) => [heapPage.memory."
                                           "calls.functions[row.function].name, row.kept])"):
                shown[None if "+0x" in name or name[0] == "(" else name] += sum_kept
            self.assertEqual((shown, sum(shown.values())), (wanted, found["kept_bytes"]))
            self.assertEqual(self.texts(".command code"),
                             [f"ttdanalyze fragmentation --at {position} {trace}"])

    def test_biographies_are_those_of_history(self):
        trace = self.write(oracle.random_script(random.Random(8), 3000))
        self.show_exact(trace)
        rows = self.run_ok("events", "--format", "json", trace).json_lines
        addresses = sorted({row["address"] for row in rows if row.get("address")})
        for address in random.Random(1).sample(addresses, min(PLACES, len(addresses))):
            self.visit(f"#view=memory&address={address}")
            found = self.json_of("history", trace, "--address", address)
            self.wait(f"heapPage.memory.told === {address!r} && "
                      "document.querySelector('.story-panel .said')"
                      f"?.textContent.includes({address!r})")
            self.assertEqual(whole(self.texts(".story-panel .said")[0]), found["total_blocks"])
            told = evaluate("[...document.querySelectorAll('.owner')].map((owner) => "
                            "[owner.querySelector('h3').textContent, "
                            "...[...owner.querySelectorAll('h4')].map((node) => node.textContent)])")
            self.assertEqual(len(told), min(100, len(found["blocks"])))
            for (title, *calls), block in zip(told, reversed(found["blocks"])):
                self.assertTrue(title.startswith(f"{block['size']:,} bytes at {block['address']}"))
                self.assertIn(f" at {block['allocated']} ", calls[0])
                if block["previous_address"]:
                    self.assertIn(f"from {block['previous_address']}", title)
                self.assertEqual(len(calls), 2 if block["released"] else 1)
                if block["released"]:
                    self.assertIn(f" at {block['released']} ", calls[1])
                self.assertEqual("missing" in calls[-1], block["overlapped"], calls)

    def test_a_lost_block_is_called_lost(self):
        script = SnapshotScript().basics()
        script.alloc(0x20000, 100)
        script.alloc(0x21000, 50, stack=3)
        script.alloc(0x22000, 30)
        script.alloc(0x23000, 20)
        script.alloc(0x24000, 10)
        script.alloc(0x25000, 40)
        script.free(0x25000)
        script.alloc(0x25000 - 16, 128)
        script.snapshot((0x20008, 0x22000), (IN_BSS, 0, 0x23008), (IN_BSS, 8, 0x24FF0), (0x25008, 0x24000))
        script.alloc(0x26000, 60)
        trace = self.write(script.close())
        self.show_exact(trace)
        classes = {name: sums["blocks"] for name, sums in self.json_of("leaks", trace)["classes"].items()}
        seen = collections.Counter()
        for address in ("0x20000", "0x21000", "0x22000", "0x23000", "0x24000", "0x26000"):
            self.visit(f"#view=memory&address={address}")
            self.wait(f"document.querySelector('.owner h3')?.textContent.includes({address!r})")
            said = self.texts(".owner .calls > p")[0]
            block = self.json_of("history", trace, "--address", address)["blocks"][-1]
            self.assertTrue(said.startswith("Not released by the end"), said)
            self.assertEqual("lost after" in said, bool(block.get("lost_before")), (said, block))
            if block.get("lost_before"):
                self.assertIn(f" lost after position {block['lost_after']}", said)
                self.assertIn(f" at position {block['lost_before']} at the latest", said)
            seen[said.split("; ")[-1].split(" after")[0].split(", by")[0]] += 1
        self.assertEqual(seen["definitely lost"], classes["definitely_lost"])
        self.assertEqual(seen["indirectly lost"], classes["indirectly_lost"])
        self.assertEqual(seen["possibly lost"], classes["possibly_lost"])
        self.assertEqual(seen["held by stale words"], classes["held_by_stale"])
        self.assertEqual(seen["Not released by the end."], 1)
        self.check_silence()

    def test_the_search_takes_positions_as_commands_do(self):
        trace = self.write(churn(5000, 5))
        self.show_exact(trace)
        for text in ("0%", "33.3%", "50%", "100%", "#1234", "+0.5ms", "+1us"):
            self.enter(text)
            evaluate("Promise.resolve(heapPage.exact.run).then(() => 1)")
            self.settle()
            found = self.json_of("state", trace, "--at", text)
            self.assertEqual(evaluate("heapPage.heap.bytes[heapPage.state.get('at')]"), found["live_bytes"], text)

    def enter(self, text):
        evaluate(f"heapPage.state.set({{ search: {text!r} }}), 1")
        self.settle()
        evaluate("heapPage.searchField.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' })), 1")
        self.settle()

    def test_calls_are_those_of_events(self):
        trace = self.write(oracle.random_script(random.Random(9), 3000))
        self.show_exact(trace)
        rows = self.run_ok("events", "--format", "json", trace).json_lines
        for position in self.between(trace)[:8]:
            self.visit(f"#at={position}&view=calls")
            first, behind = evaluate("heapPage.events.range()")
            self.wait(f"heapPage.events.table.rows[0]?.number === {first}")
            shown = evaluate("heapPage.events.table.rows.map((call) => [call.number, call.start, "
                             "call.returned ? call.end : null, call.action, call.api, call.thread, "
                             "call.size, '0x' + call.address.toString(16), "
                             "'0x' + call.base.toString(16), Number(call.result)])")
            self.assertEqual(shown, [[row["number"], row["time_start"], row["time_end"],
                                      row["action"], row["api"], row["thread"],
                                      row.get("size", 0), row.get("address", "0x0"),
                                      row.get("base_address", "0x0"), row["result"]]
                                     for row in rows[first:behind]])
            self.assertIn(f"--from '#{first}' --to '#{behind}'", self.texts(".command code")[0])
        self.check_silence()


class Use(ExactCase):
    def press(self, key):
        evaluate("void document.body.dispatchEvent(new KeyboardEvent('keydown', "
                 f"{{key: {key!r}, bubbles: true}})), 1")
        evaluate("Promise.resolve(heapPage.exact.run).then(() => 1)")
        self.settle()

    def test_steps_and_links(self):
        trace = self.write(churn(5000, 6))
        self.show_exact(trace)
        rows = self.run_ok("events", "--format", "json", trace).json_lines
        positions = [row["time_end"] if row["action"] == "Alloc" else row["time_start"]
                     for row in rows]
        self.visit(f"#at={positions[1000]}")
        for i in range(1001, 1008):
            self.press(".")
            self.assertEqual(self.at(), positions[i])
        for i in range(1006, 997, -1):
            self.press(",")
            self.assertEqual(self.at(), positions[i])
        time.sleep(1)
        fragment = evaluate("location.hash")
        self.assertEqual(fragment, f"#at={positions[998]}")
        self.show_exact(trace, fragment)
        self.assertEqual(self.at(), positions[998])
        self.press("p")
        self.assertEqual(self.at(), self.json_of("peak", trace)["position"])
        self.check_silence()

    def test_a_click_tells_of_a_block(self):
        trace = self.write(churn(3000, 7))
        self.show_exact(trace, "#view=memory")
        self.wait("Boolean(heapPage.memory && !heapPage.memory.run && heapPage.memory.layout)")
        evaluate("(async () => { const {memory} = heapPage; const {top} = memory.layout.places[0]; "
                 "await memory.pick(2, top + 2); return 1; })()")
        self.settle()
        address = self.rows(".blocks-panel")[0][0][0]
        evaluate("void document.querySelector('.blocks-panel tbody tr').click(), 1")
        self.settle()
        self.wait("document.querySelectorAll('.owner').length > 0")
        self.assertIn(f"address={address}", evaluate("heapPage.state.fragment()"))
        self.assertIn(f"history --address {address}", self.texts(".command code")[0])

    def test_enter_shows_the_biography_whatever_was_clicked(self):
        script = Script().basics()
        for i in range(800):
            script.alloc(0x100000 + 8 * i, 8)
        self.show_exact(self.write(script.close()), "#view=memory")
        self.wait("Boolean(heapPage.memory && !heapPage.memory.run && heapPage.memory.layout)")
        pick = "(({ memory }) => memory.pick(2, memory.layout.places[0].top + 2).then(() => memory.blocks.rows.length))(heapPage)"
        self.assertEqual(evaluate(pick), 2)
        for address in ("0x100008", "0x100010", "0x100010"):
            evaluate("scrollTo(0, 0), heapPage.searchField.focus(), 1")
            evaluate(f"heapPage.state.set({{ search: {address!r} }}), 1")
            self.settle()
            evaluate("heapPage.searchField.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' })), 1")
            self.wait(f"document.querySelector('.owner h3')?.textContent.includes({address!r})")
            self.wait("(({ top, bottom }) => top >= 0 && bottom <= innerHeight)(document.querySelector('.owner h3').getBoundingClientRect())")
            self.assertEqual(evaluate(pick), 2)
            self.wait("!document.querySelector('.owner')")
            self.assertEqual(evaluate("heapPage.state.get('address')"), "")
        self.check_silence()

    def test_nothing_moves_when_the_trace_is_read(self):
        self.show_exact(self.write(churn(3000, 7)))
        tops = "[...document.querySelectorAll('main > *')].map((node) => node.getBoundingClientRect().top)"
        before = evaluate(tops)
        evaluate("heapPage.exact.tell('Reading the trace: 1,234,567 events'), 1")
        self.settle()
        self.assertTrue(evaluate("(({ left, right, bottom }, { textContent }) => right > left && bottom < 100 && textContent.startsWith('Reading the trace'))"
                                 "(heapPage.exactNote.getBoundingClientRect(), document.querySelector('header p'))"))
        self.assertEqual(evaluate(tops), before)

    def test_traces_that_have_next_to_nothing(self):
        one = Script().basics()
        one.alloc(0x1000, 7)
        open_one = Script().basics()
        open_one.alloc(0x1000, 8)
        for name, script in (("empty", Script().basics().close()), ("one", one.close()),
                             ("evil", test_page.evil()), ("open", open_one.abandon())):
            self.show_exact(self.write(script, name))
            for view in ("heap", "memory", "calls"):
                self.visit(f"#view={view}&address=0x1000")
                self.press(".")
                self.press(",")
            self.wait("!heapPage.memory.run")
            self.assertEqual(evaluate("typeof window.hacked"), "undefined")
            self.check_silence()

    def test_an_engine_that_fails_says_so(self):
        trace = self.write(churn(100, 8))
        page = self.path("page.html")
        self.run_ok("report", "--exact", "-o", page, trace)
        with open(page, encoding="utf-8") as file:
            text = file.read()
        with open(page, "w", encoding="utf-8") as file:
            file.write(text.replace('id="engine">', 'id="engine">1'))
        test_page.opened.open("file://" + page)
        self.wait("window.heapPage?.exactNote.textContent.includes('are not known')")
        self.assertGreater(len(self.rows(".sites-panel")), 0)


class Saving(ExactCase):
    def test_the_map(self):
        trace = self.write(churn(600, 21))
        self.show_exact(trace, "#view=memory")
        self.wait("Boolean(heapPage.memory && !heapPage.memory.run && heapPage.memory.layout)")
        self.assertGreater(evaluate("heapPage.memory.cells.length"), 0)
        svg = xml.etree.ElementTree.fromstring(evaluate(test_page.SVG.replace("timeline", "memory")))
        regions = evaluate("heapPage.memory.layout.places.map(({region}) => "
                           "'0x' + region.first.toString(16))")
        labels = [node.text.split()[0] for node in svg.iter() if node.tag.endswith("text")]
        self.assertEqual(labels, regions)
        drawn = len([node for node in svg.iter() if node.tag.endswith("rect")])
        used = evaluate("heapPage.memory.cells.reduce((sum, values) => sum + "
                        "values.filter((value, i) => i % 4 === 2 && value).length, 0)")
        self.assertEqual(drawn, 1 + len(regions) + used)
        png = evaluate(test_page.PNG % ("memory", "memory"))
        self.assertEqual((png["type"], png["size"]), ("image/png", png["wanted"]))
        self.assertLess(png["others"], 0.02)
        self.assertGreater(png["colours"], 5)
        self.check_silence()

    def test_the_map_has_the_colours_of_functions_and_says_when_it_waits(self):
        self.show_exact(self.write(churn(600, 21)), "#view=memory")
        self.wait("Boolean(heapPage.memory && !heapPage.memory.run && heapPage.memory.layout)")
        shown = evaluate("(({ memory, functions, flame: { picture } }) => [...memory.legend.children].map((node) => "
                         "[node.textContent, node.firstChild.style.background]))(heapPage)")
        wanted = evaluate("(({ functions, calls, timeline }) => { const probe = document.createElement('i'); "
                          "return Object.fromEntries(functions.ordered.map((key) => { probe.style.background = "
                          "getComputedStyle(document.documentElement).getPropertyValue('--s' + functions.of(key));"
                          " return [calls.functions[key].short, probe.style.background]; })); })(heapPage)")
        self.assertGreater(len(shown), 1)
        for name, color in shown:
            self.assertEqual(color, wanted[name])
        waiting = "(({ memory, exact }) => { exact.is_ready = false; exact.events = 300; memory.draw(); " \
            "const seen = [memory.wait.hidden, memory.progress.value / memory.progress.max]; " \
            "exact.is_ready = true; memory.draw(); return [...seen, memory.wait.hidden]; })(heapPage)"
        hidden, part, after = evaluate(waiting)
        self.assertEqual((hidden, bool(after)), (False, True))
        self.assertAlmostEqual(part, 0.5, delta=0.05)

    def test_the_map_is_as_high_as_its_rows(self):
        for blocks in (20, 3000):
            script = Script(events_per_chunk=500).basics()
            for i in range(blocks):
                script.alloc(0x100000 + 0x40 * i, 40)
            self.show_exact(self.write(script.close(), f"trace{blocks}"), "#view=memory")
            self.wait("Boolean(heapPage.memory && !heapPage.memory.run && heapPage.memory.layout)")
            shown = evaluate("(({ canvas, layout: { places } }) => [canvas.clientHeight, places.at(-1).top + 6 * places.at(-1).rows])"
                             "(heapPage.memory)")
            self.assertAlmostEqual(shown[0], shown[1], delta=1)
            self.assertLessEqual(shown[0], 380)
        self.check_silence()

    def test_an_empty_map_takes_no_room(self):
        script = Script().basics()
        script.alloc(0x1000, 50)
        script.free(0x1000)
        self.show_exact(self.write(script.close()), "#view=memory&at=0:0")
        self.wait("Boolean(heapPage.memory && !heapPage.memory.run && heapPage.memory.layout)")
        height = "document.querySelector('canvas.memory').clientHeight"
        self.assertEqual(evaluate(height), 0)
        evaluate("heapPage.goToPeak(), 1")
        self.wait(f"{height} > 0 && !heapPage.memory.run")
        self.assertEqual(evaluate("heapPage.memory.layout.places.length"), 1)
        self.check_silence()


class Pictures(ExactCase):
    def test_views(self):
        trace = self.write(churn(4000, 11), "picture")
        os.makedirs(test_page.SHOTS, exist_ok=True)
        self.show_exact(trace)
        for view in ("memory", "calls"):
            self.visit(f"#view={view}&at={self.between(trace)[0]}")
            time.sleep(0.5)
            kind = f"{test_page.NAME}{test_page.MODE and '-' + test_page.MODE}"
            path = os.path.join(test_page.SHOTS, f"{kind}-exact-{view}.png")
            test_page.opened.screenshot(path)
            self.assertGreater(os.path.getsize(path), 10000)


if __name__ == "__main__":
    if browser.missing(test_page.NAME):
        raise SystemExit(77)
    support.main()
