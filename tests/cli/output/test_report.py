# SPDX-License-Identifier: MIT
"""ttdanalyze report: the page's data, without a browser"""

import base64
import hashlib
import os
import random
import re
import stat
import unittest

import oracle
import page_support
import support
from island_support import GUID, random_islands
from snapshot_support import SnapshotScript
from support import Script, TestCase, on_one_processor, run

# Bytes of a page without data at most: its styles and its scripts.
FRAME_MAX = 100_000

COMMANDS = ("info", "leaks", "errors", "moves", "lifetimes", "snapshots")


class Report(TestCase):
    def report(self, trace, *arguments):
        path = self.path("report.html")
        self.run_ok("report", "-o", path, *arguments, trace)
        return path

    def parts(self, trace, *arguments):
        return page_support.parts_of(self.report(trace, *arguments))

    def heap(self, trace, *arguments):
        return page_support.Heap(self.parts(trace, *arguments)["heap"])

    def rows(self, trace):
        return self.run_ok("events", "--format", "json", "--limit", "0", trace).json_lines

    def churn(self, count, is_closed=True):
        """Many events, over several heaps that are destroyed now and then."""
        chance = random.Random(count)
        script = Script(events_per_chunk=500).basics()
        live = []
        for i in range(count):
            if live and chance.random() < 0.45:
                address, heap = live.pop(chance.randrange(len(live)))
                script.free(address, heap=heap)
            elif chance.random() < 0.01:
                script.event("Destroy", heap=2, result=1)
                live = [block for block in live if block[1] != 2]
            else:
                live.append((0x1000 * (i + 1), chance.choice([1, 1, 2])))
                script.alloc(live[-1][0], chance.randrange(1, 900), stack=chance.randrange(1, 5),
                             heap=live[-1][1], thread=chance.choice([1, 2]))
        return self.write(script.close() if is_closed else script.abandon(), f"churn{count}{is_closed}")

    def check_ticks(self, heap, trace, places=None):
        """Compares what is live at each tick with a model that goes through all blocks."""
        owners = oracle.owners(self.rows(trace))
        for name, key in (("stack", "stack"), ("thread", "thread"), ("heap", "heap_id")):
            states = heap.states(name)
            for i in places or range(len(heap.position)):
                at = oracle.position(heap.position[i])
                wanted = oracle.sums((block for block in owners if block.live(at)),
                                     lambda block: block.row[key])
                self.assertEqual(states[i], wanted, (name, i, heap.position[i]))
                self.assertEqual((heap.blocks[i], heap.bytes[i]),
                                 tuple(map(sum, zip((0, 0), *wanted.values()))))


class Ticks(Report):
    def test_each_event_of_a_short_trace_is_a_tick(self):
        for seed in range(30):
            trace = self.write(oracle.random_script(random.Random(seed), 60), f"r{seed}")
            self.check_ticks(self.heap(trace), trace)

    def test_ticks_of_a_long_trace(self):
        for is_closed in (True, False):
            trace = self.churn(5000, is_closed)
            heap = self.heap(trace)
            self.assertTrue(600 < len(heap.position) <= 1400, len(heap.position))
            self.check_ticks(heap, trace, range(0, len(heap.position), 41))
            self.assertEqual(sum(heap.allocations),
                             self.json_of("hot", trace)["allocations"])

    def test_ticks_have_the_time_of_their_own_calls(self):
        script = Script().basics()
        for i in range(1, 4):
            script.alloc(0x1000 * i, 8, wall=i * 1000)
        heap = self.heap(self.write(script.close(wall=9000)))
        self.assertEqual(page_support.sums(heap.part["ticks"]["time"]), [0, 1000, 2000, 3000])

    def test_the_timeline_says_the_same(self):
        trace = self.churn(900)
        heap = self.heap(trace)
        points = self.json_of("timeline", trace, "--over", "position", "--points", "2000")["points"]
        self.assertEqual(points[0]["peak_bytes"], heap.peak[1])
        ends = dict(zip(heap.event, zip(heap.bytes, heap.blocks)))
        for point in points:
            self.assertEqual(ends[point["first"]], (point["live_bytes"], point["live_blocks"]))
        self.assertEqual(max(heap.peak), self.json_of("peak", trace)["live_bytes"])

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "needs two processors")
    def test_two_processors_find_what_one_does(self):
        traces = [self.write(oracle.random_script(random.Random(seed), 300), f"r{seed}")
                  for seed in range(20)] + [self.churn(5000), self.churn(4000)]
        with open(traces[-1], "r+b") as file:
            file.seek(os.path.getsize(traces[-1]) // 2)
            file.write(b"damage")
        script = SnapshotScript().basics()
        script.alloc(0x20000, 10)
        script.snapshot((0x20000, 0x401000), classes=((0x401000, "5Class"),))
        traces.append(self.write(script.close(), "snapshot"))
        for trace in traces:
            results = [run("report", "-o", "-", trace, preexec_fn=begin)
                       for begin in (None, on_one_processor)]
            self.assertEqual(results[0].text, results[1].text)
            self.assertEqual(results[0].errors, results[1].errors)
            self.assertGreater(len(results[0].text), 1000)

    def test_a_range(self):
        trace = self.churn(900)
        middle = self.heap(trace).position[300:500:199]
        heap = self.heap(trace, "--from", middle[0], "--to", middle[1])
        self.check_ticks(heap, trace)
        self.assertLess(oracle.position(heap.position[0]), oracle.position(middle[0]))
        self.assertEqual(heap.position[1], middle[0])
        self.assertLess(oracle.position(heap.position[-1]), oracle.position(middle[1]))
        self.assertEqual(heap.allocations[0] > 0, True)

    def test_filters(self):
        trace = self.churn(300)
        heap = self.heap(trace, "--exclude", "g(int)")
        for state in heap.states("stack"):
            self.assertNotIn(2, state)
        self.assertNotIn(2, heap.stacks)
        whole = self.heap(trace)
        self.assertEqual(heap.event[-1], whole.event[-1])
        kept = {stack: sums for stack, sums in whole.states("stack")[-1].items() if stack != 2}
        self.assertEqual(heap.states("stack")[-1], kept)

    def test_the_peak(self):
        trace = self.churn(900)
        heap = self.heap(trace)
        part = heap.part
        found = self.json_of("peak", trace, "--limit", "0")
        self.assertEqual((part["peak"]["position"], part["peak"]["bytes"]),
                         (found["position"], found["live_bytes"]))
        self.assertEqual(heap.at_peak(), {group["stack_id"]: (group["blocks"], group["bytes"])
                                          for group in found["groups"]})

    def test_traces_that_have_next_to_nothing(self):
        empty = self.write(Script().basics().close(), "empty")
        heap = self.heap(empty)
        self.assertEqual((set(heap.bytes), heap.stacks), ({0}, []))
        one = Script().basics()
        one.alloc(0x1000, 7)
        heap = self.heap(self.write(one.close(), "one"))
        self.assertEqual((heap.bytes, heap.states("stack")), ([0, 7], [{}, {2: (1, 7)}]))


class Parts(Report):
    def test_parts_are_what_commands_print(self):
        for seed in range(5):
            trace = self.write(oracle.random_script(random.Random(seed), 60), f"p{seed}")
            parts = self.parts(trace)
            calls = page_support.Calls(parts["calls"])
            for command in COMMANDS:
                limit = ("--limit", "200") if command in ("leaks", "errors", "moves") else ()
                found = self.json_of(command, trace, *limit)
                self.assertEqual(calls.expand(parts[command]),
                                 page_support.without_addresses(found), command)

    def test_islands(self):
        """A page of islands has what the commands select, and what stacks of these calls select."""
        for seed in range(3):
            trace = self.write(random_islands(seed).close(), f"islands{seed}")
            by_island = "--client", GUID, "--activity", "7"
            for options in (), ("--from", "20%", "--to", "70%"):
                parts = self.parts(trace, *options, *by_island)
                calls = page_support.Calls(parts["calls"])
                at = ("--at", parts["facts"]["to"]) if options else ()
                for command, which in (("leaks", at), ("errors", ()), ("moves", ()),
                                       ("lifetimes", ()), ("diff", options)):
                    if command == "diff" and not options:
                        continue
                    limit = ("--limit", "200") if command != "lifetimes" else ()
                    found = self.json_of(command, trace, *limit, *which, *by_island)
                    self.assertEqual(calls.expand(parts[command]),
                                     page_support.without_addresses(found), command)
                of_stacks = self.parts(trace, *options, "--include", "g(int)")
                self.assertEqual(parts["heap"], of_stacks["heap"])
            client = parts["facts"].pop("client").replace("-", "")
            self.assertEqual((client, parts["facts"]["activity"]), (GUID, 7))
        result = run("report", "--exact", "--activity", "7", "-o", self.path("exact.html"), trace)
        self.assertEqual(result.status, support.USAGE)
        self.assertIn("do not go with --exact", result.errors)

    def test_usage_is_that_of_hot(self):
        trace = self.churn(500)
        part = self.parts(trace)["heap"]
        groups = {group["stack_id"]: group
                  for group in self.json_of("hot", trace, "--limit", "0")["groups"]}
        for group in self.json_of("temporary", trace, "--steps", "3", "--limit", "0")["groups"]:
            of_hot = groups[group["stack_id"]]
            of_hot["later"] = group["temporary"] - of_hot["temporary"]
            of_hot["later_bytes"] = group["temporary_bytes"] - of_hot["temporary_bytes"]
        for i, stack in enumerate(page_support.sums(part["sites"]["stack"])):
            for name, values in part["usage"].items():
                self.assertEqual(values[i], groups[stack][name], (stack, name))

    def test_copies_are_those_of_moves(self):
        script = Script().basics()
        for i in range(40):
            script.alloc(0x10000 * (i + 1), 100 + i)
            script.realloc(0x10000 * (i + 1), 0x10000 * (i + 1) + 0x8000, 300 + i, stack=2 + i % 3)
        trace = self.write(script.close())
        part = self.parts(trace)["heap"]
        moves = {group["stack_id"]: group["bytes_copied_at_most"]
                 for group in self.json_of("moves", trace, "--limit", "0")["groups"]}
        self.assertEqual(len(moves), 3)
        stacks = page_support.sums(part["sites"]["stack"])
        self.assertEqual({stack: copied for stack, copied in zip(stacks, part["copied"]) if copied}, moves)

    def test_call_sites(self):
        """The last own call of each site is what `--by function` groups by."""
        trace = self.churn(300)
        parts = self.parts(trace)
        heap, nodes = page_support.Heap(parts["heap"]), parts["calls"]["nodes"]
        sites, frames = parts["heap"]["sites"], parts["calls"]["frames"]
        found = {}
        for stack, node, up in zip(heap.stacks, page_support.sums(sites["node"]), sites["up"]):
            for _ in range(up):
                node -= nodes["up"][node - 1]
            name = (parts["calls"]["strings"][frames["function"][nodes["frame"][node - 1]]]
                    if node else "")
            blocks, size = heap.states("stack")[-1].get(stack, (0, 0))
            old = found.get(name, (0, 0))
            found[name] = (old[0] + blocks, old[1] + size)
        groups = self.json_of("state", trace, "--by", "function", "--limit", "0")["groups"]
        wanted = {}
        for group in groups:
            old = wanted.get(group["function"] or "", (0, 0))
            wanted[group["function"] or ""] = (old[0] + group["blocks"], old[1] + group["bytes"])
        self.assertEqual({name: sums for name, sums in found.items() if sums != (0, 0)}, wanted)

    def test_uncertainty_stands_where_the_numbers_are(self):
        script = Script().basics()
        script.alloc(0x1000, 8)
        parts = self.parts(self.write(script.abandon()))
        for name in ("heap", "leaks", "errors", "moves", "lifetimes"):
            self.assertFalse(parts[name]["certain"], name)
            self.assertIn("not closed cleanly", parts[name]["reasons"][0])

    def test_title(self):
        trace = self.churn(10)
        self.assertIsNone(self.parts(trace)["facts"]["title"])
        self.assertEqual(self.parts(trace, "--title", "</script><b>")["facts"]["title"],
                         "</script><b>")


class File(Report):
    def test_only_what_the_policy_names_can_run(self):
        page = self.report(self.churn(10))
        with open(page, encoding="utf-8") as file:
            text = file.read()
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
        style, script = page_support.element_of(page, "viewer").decode().split("\f")
        scripts = (*re.findall(r"<script>(.*?)</script>", text, re.DOTALL), script)
        hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}'"
                  for part in (style, *scripts)]
        self.assertEqual(policy, "default-src 'none'; style-src {}; script-src {} {}"
                         .format(*hashes))
        self.assertEqual(text.count("<script"), 3)
        self.assertIsNone(re.search(r"(?:src|href)=\"|url\(|@import", text))

    def test_all_but_the_data_is_small(self):
        with open(self.report(self.churn(10)), encoding="utf-8") as file:
            text = file.read()
        frame = re.sub(r'(<script type="text/plain" id="data">).*?(?=</script>)', r"\1", text)
        self.assertLess(len(frame), FRAME_MAX)
        self.assertGreater(len(text) - len(frame), 1000)

    def test_the_file_is_the_users_own(self):
        path = self.report(self.churn(10))
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)

    def test_it_can_go_to_a_pipe_but_not_to_a_terminal(self):
        trace = self.churn(10)
        page = self.run_ok("report", trace)
        self.assertTrue(page.text.startswith("<!doctype html>"))
        status, text = self.on_terminal("report", trace)
        self.assertEqual(status, support.USAGE)
        self.assertIn("write it with '-o report.html'", text)

    def test_usage(self):
        trace = self.churn(10)
        for arguments, message in ((("-f", "json"), "unknown option '-f'"),
                                   (("--format=json",), "ambiguous option '--format=json'"),
                                   (("--full-stacks",), "ambiguous option '--full-stacks'"),
                                   (("--with-contents",), "--with-contents goes with --exact"),
                                   (("--from", "end"), "the range is empty")):
            result = run("report", "-o", self.path("x"), *arguments, trace)
            self.assertEqual(result.status, support.USAGE)
            self.assertIn(message, result.errors)
            self.assertFalse(os.path.exists(self.path("x")))

    @unittest.skipUnless(os.environ["SANITIZE"] == "none", "a sanitizer takes memory of its own")
    def test_no_file_is_left_of_a_failure(self):
        result = run("report", "-o", self.path("x"), "--max-memory", "12M", self.churn(3000))
        self.assertNotEqual(result.status, 0)
        self.assertEqual([name for name in os.listdir(self.folder) if "churn" not in name], [])


@unittest.skipUnless(os.environ["HAS_ENGINE"] == "1", "built without the engine")
class Exact(Report):
    def trace_in(self, trace, *arguments):
        """The trace that an exact page has, as a file."""
        page = self.report(trace, "--exact", *arguments)
        self.assertEqual(stat.S_IMODE(os.stat(page).st_mode), 0o600)
        path = self.path("inside.ttd")
        with open(path, "wb") as file:
            file.write(page_support.element_of(page, "trace"))
        return path

    def memory(self, is_closed=True):
        """A trace with the contents of memory."""
        secret = random.Random(1).randbytes(512)
        script = Script().basics()
        script.alloc(0x1000, 300)
        script.add("pages", size=512, texts="".join(f"%{byte:02x}" for byte in secret))
        script.add("map", snapshot=1, size=512, position="9:0", runs="0x1000:1:3")
        script.add("snapshot", number=1, position="9:0", contents=4)
        path = self.write(script.close() if is_closed else script.abandon(), "memory")
        self.assertIn(secret, read(path))
        return path, secret

    def test_the_page_has_the_trace_and_the_engine(self):
        trace = self.churn(500)
        self.assertEqual(read(self.trace_in(trace)), read(trace))
        page = self.path("report.html")
        self.assertEqual(page_support.element_of(page, "engine")[:8], b"\0asm\1\0\0\0")
        with open(page, encoding="utf-8") as file:
            text = file.read()
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
        self.assertTrue(policy.endswith(" 'wasm-unsafe-eval'; worker-src blob:"), policy)
        self.assertEqual(text.count("<script"), 5)

    def test_an_ordinary_page_has_neither(self):
        page = self.report(self.churn(10))
        self.assertIsNone(page_support.element_of(page, "trace"))
        self.assertIsNone(page_support.element_of(page, "engine"))

    def test_contents_of_memory_only_on_demand(self):
        trace, secret = self.memory()
        self.assertIn(secret, read(self.trace_in(trace, "--with-contents")))
        inside = self.trace_in(trace)
        self.assertNotIn(secret, read(inside))
        self.assertEqual(self.run_ok("events", "--format", "json", inside).json_lines,
                         self.rows(trace))

    def test_damaged_parts_may_be_contents(self):
        trace, secret = self.memory()
        data = bytearray(read(trace))
        data[data.index(secret) - 1] ^= 1
        with open(trace, "wb") as file:
            file.write(data)
        self.run_ok("report", "--exact", "-o", self.path("report.html"), trace)
        inside = page_support.element_of(self.path("report.html"), "trace")
        self.assertNotIn(secret, inside)

    def test_a_trace_that_was_not_closed(self):
        trace, secret = self.memory(is_closed=False)
        self.assertNotIn(secret, read(self.trace_in(trace)))


def read(path):
    with open(path, "rb") as file:
        return file.read()


if __name__ == "__main__":
    support.main()
