# SPDX-License-Identifier: MIT
"""Each table of `query` says what a model says, which has read the trace with the second reader, and
what the command says that prints the same; on traces of all kinds, most of them recorded"""

import collections
import os
import pathlib
import random
import subprocess

import oracle
import support
from query_support import QueryTestCase, TABLES
from trace_model import Trace, address, place, positions_between, spell

RECORDER = os.environ["TTDRECORD"]
PROGRAMS = pathlib.Path(os.environ["PROGRAMS"])
PATIENCE = int(os.environ.get("PATIENCE", 120))
CALLS = "calls 60\nkeep 9\nlose 5\nhold 7\nspeak\ncalls 40\n"
# Commands that print a table by itself, beside those that test_query.py compares.
ALL_TABLES = {**TABLES, "retained": (("retained", "--limit", "0"), None)}


class Model(QueryTestCase):
    # Traces.

    def record(self, name, program, *options, commands=""):
        path = self.path(name)
        subprocess.run([RECORDER, "-q", "-o", path, *options, "--", str(PROGRAMS / program)],
                       input=commands.encode(), capture_output=True, timeout=PATIENCE, check=False)
        self.assertTrue(os.path.exists(path), name)
        return path

    def record_attached(self):
        """Of a process that has blocks already; with a mark and a second snapshot."""
        path = self.path("attached.bin")
        with subprocess.Popen([str(PROGRAMS / "counted")], stdin=subprocess.PIPE, text=True,
                              stdout=subprocess.PIPE, bufsize=1) as process:
            def tell(command):
                process.stdin.write(command + "\n")
                process.stdout.readline()
            process.stdout.readline()
            tell("keep 6")
            with subprocess.Popen([RECORDER, "attach", "-o", path, str(process.pid)], text=True,
                                  stderr=subprocess.PIPE) as recorder:
                self.assertIn("attached", recorder.stderr.readline())
                tell("calls 30")
                for command in ("mark", "here"), ("snapshot",), ("detach",):
                    subprocess.run([RECORDER, command[0], str(process.pid), *command[1:]],
                                   capture_output=True, timeout=PATIENCE, check=True)
                recorder.communicate(timeout=PATIENCE)
            process.communicate(timeout=PATIENCE)
        return path

    def imported(self):
        chance, live, lines = random.Random(1), [], ["= Start"]
        for number in range(200):
            if live and chance.random() < 0.5:
                lines.append(f"@ prog:[0x{chance.randrange(5):x}00] - 0x{live.pop():x}")
            else:
                live.append(0x5000 + 0x100 * number)
                lines.append(f"@ prog:[0x{chance.randrange(5):x}00] + 0x{live[-1]:x} "
                             f"0x{chance.randrange(1, 250):x}")
        source = pathlib.Path(self.path("mtrace.txt"))
        source.write_text("\n".join(lines) + "\n", encoding="ascii")
        path = self.path("imported.bin")
        self.run_ok("import", "mtrace", source, "-o", path)
        return path

    def damaged(self, path):
        """A copy with a wrong byte in one of its chunks of events, and one without its last third."""
        data = bytearray(pathlib.Path(path).read_bytes())
        cut = pathlib.Path(self.path("truncated.bin"))
        cut.write_bytes(data[:len(data) * 2 // 3])
        offset = 0
        chunks = []
        while offset < len(data):
            if data[offset + 10] == 8:
                chunks.append(offset)
            offset += (112 + int.from_bytes(data[offset + 16:offset + 20], "little") + 7) // 8 * 8
        data[chunks[len(chunks) // 2] + 150] ^= 1
        other = pathlib.Path(self.path("damaged.bin"))
        other.write_bytes(data)
        return str(cut), str(other)

    def traces(self):
        """Traces by their kinds, each with a table that shows the kind, and its least rows."""
        yield "plain", self.record("plain.bin", "counted", commands=CALLS), "events", 1000
        parent = self.record("parent.bin", "children")
        child = sorted(pathlib.Path(self.folder).glob("parent.bin.*.children"))[0]
        yield "child", str(child), "events", 2
        merged = self.path("merged.bin")
        self.run_ok("merge", parent, child, "-o", merged)
        yield "merged", merged, "threads", 2
        yield "attached", self.record_attached(), "marks", 1
        ring = self.record("ring.bin", "counted", "--keep=8K", commands="keep 9\n" + 3 * "calls 1000\n")
        yield "ring", ring, "losses", 1
        sample = self.record("sample.bin", "counted", "--sample=3000", commands=CALLS)
        yield "sample", sample, "losses", 1
        heaps = self.write(oracle.random_script(random.Random(5), 400), "heaps.bin")
        yield "heaps", heaps, "heaps", 2
        nested = os.path.join(os.environ["TTD_SOURCE"], "tests/vectors/good-nested-heaps.trace")
        yield "nested", nested, "events", 5
        yield "imported", self.imported(), "losses", 1
        script = oracle.random_script(random.Random(6), 300)
        cut, damaged = self.damaged(self.write(script, "whole.bin"))
        yield "truncated", cut, "events", 50
        yield "losses", damaged, "losses", 1
        yield "snapshot", self.record("snapshot.bin", "leaks_c"), "refs", 10
        yield "errors", self.record("errors.bin", "double_free"), "errors", 1

    # Comparisons.

    def check_rows(self, path, table, expected, order=False):
        """The rows of a table have the members of the model's, in any order unless `order`."""
        columns = list(expected[0]) if expected else []
        found = self.rows(path, "SELECT " + ", ".join(f'"{name}"' for name in columns) + f" FROM {table}") if columns else \
            self.rows(path, f"SELECT * FROM {table}")
        if not order:
            found, expected = (sorted(rows, key=repr) for rows in (found, expected))
        self.assertEqual(len(found), len(expected), table)
        for row, other in zip(found, expected):
            self.assertEqual(row, other, table)

    def check_records(self, path, model):
        self.check_rows(path, "events", [model.event_row(e) for e in model.events], order=True)
        self.check_rows(path, "threads", model.thread_rows())
        self.check_rows(path, "modules", model.module_rows())
        self.check_rows(path, "losses", model.loss_rows(), order=True)
        self.check_rows(path, "marks", model.mark_rows(), order=True)
        self.check_rows(path, "snapshots", model.snapshot_rows(), order=True)

    def check_stacks(self, path, model):
        self.check_rows(path, "stacks", [{"stack_id": number, "caller_stack_id": parent or None}
                                         for number, (parent, *_) in model.stacks.items()])
        paths = {row["module"]: row["path"] for row in model.module_rows()}
        found = collections.defaultdict(list)
        for row in self.rows(path, "SELECT * FROM frames WHERE NOT inlined ORDER BY stack_id, depth"):
            found[row["stack_id"]].append((row["module"], row["offset"]))
        self.assertEqual(found, {number: [(paths.get(module), address(offset))
                                          for module, offset in model.stack_of(number)]
                                 for number in model.stacks})

    def check_live(self, path, model):
        for at in positions_between(model, 4):
            live = model.live(at)
            self.check_rows(path, f"live('{spell(at)}')", [model.live_row(b) for b in live], True)
            others = [block for block in live if not model.is_kept(block)]
            by_heap = collections.defaultdict(lambda: (0, 0))
            for block in others:
                count, size = by_heap[block.event["heap"]]
                by_heap[block.event["heap"]] = count + 1, size + block.event["size"]
            self.check_rows(path, f"heaps('{spell(at)}')", [
                {"heap_id": heap, "heap": address(model.heaps.get(heap, 0)), "blocks": count,
                 "bytes": size} for heap, (count, size) in by_heap.items()])
            sums = model.by_stack(others)
            self.check_rows(path, f"live_sites('{spell(at)}')", [
                {"stack_id": stack, "blocks": count, "bytes": size, "first_position": spell(first),
                 "last_position": spell(last)} for stack, (count, size, first, last) in sums.items()])

    def check_blocks(self, path, model):
        self.check_rows(path, "blocks", [model.block_row(block) for block in model.blocks], True)
        for block in model.blocks[::max(len(model.blocks) // 5, 1)]:
            at = block.event["address"]
            self.check_rows(path, f"history('{at}')", [
                model.block_row(b) for b in model.blocks
                if b.event["address"] <= at < b.event["address"] + max(b.event["size"], 1)], True)

    def check_sites(self, path, model):
        expected = [{"stack_id": stack, "allocations": count, "bytes": size, "never_released": sum(
            b.released is None for b in model.blocks if b.event["stack"] == stack),
                     "destroyed": sum(b.is_destroyed for b in model.blocks
                                      if b.event["stack"] == stack)}
                    for stack, (count, size, *_) in model.by_stack(model.blocks).items()]
        self.check_rows(path, "sites", expected)
        live = [b for b in model.live(model.last_moment()) if not model.is_kept(b)]
        row = self.rows(path, "SELECT count(*) AS n, sum(blocks) AS blocks, sum(bytes) AS bytes "
                              "FROM leaks")[0]
        self.assertEqual((row["blocks"] or 0, row["bytes"] or 0),
                         (len(live), sum(b.event["size"] for b in live)))

    def check_moves(self, path, model):
        kinds = collections.defaultdict(collections.Counter)
        for event in model.events:
            if event["name"] != "ReAlloc":
                continue
            kind = "unfinished" if event["end"] is None else "failed" if not event["result"] else \
                "to_zero" if not event["address"] else "from_null" if not event["base"] else \
                "in_place" if event["base"] == event["address"] else "moved"
            kinds[event["stack"]][kind] += 1
        self.check_rows(path, "(SELECT * FROM moves WHERE kind = 'realloc')", [
            {"stack_id": stack, "reallocs": sum(counts.values()),
             **{kind: counts[kind] for kind in
                ("unfinished", "failed", "from_null", "to_zero", "in_place", "moved")}}
            for stack, counts in kinds.items()])

    def check_diff(self, path, model):
        ends = positions_between(model, 5)
        for begin, end in zip(ends, ends[2:]):
            def quadrant(block, begin=begin, end=end):
                inside = "ai" if block.allocated >= begin else "ao"
                return inside + ("fo" if block.released is None or block.released >= end else "fi")
            groups = collections.defaultdict(list)
            for block in model.blocks:
                if block.allocated < end and not model.is_kept(block) and \
                        (block.released is None or block.released >= begin):
                    groups[quadrant(block)].append(block)
            self.check_rows(path, f"diff('{spell(begin)}', '{spell(end)}')", [
                {"quadrant": name, "stack_id": stack, "blocks": count, "bytes": size}
                for name, blocks in groups.items()
                for stack, (count, size, *_) in model.by_stack(blocks).items()])

    def check_timeline(self, path, model):
        """Each slice ends before the first effect of the next one, unless others have its position."""
        if not model.has_times:
            refused = support.run("query", "SELECT * FROM timeline", path)
            self.assertIn("wall times are not known", refused.errors)
            return
        counts = collections.Counter(effect.at for effect in model.effects)
        rows = self.rows(path, "SELECT * FROM timeline(7)")
        ends = [place(row["position"]) for row in rows[1:]] + [(1 << 62, 0)]
        acquired = [e for e in model.effects if e.what == "acquire"]
        for row, end in zip(rows, ends):
            begin = place(row["position"])
            if counts[begin] > 1 or counts[end] > 1:
                continue
            inside = [e for e in acquired if begin <= e.at < end]
            moments = [at for at in model.moments if at < end]
            live = model.sums_at(moments[-1]) if moments else (0, 0)
            at_begin = model.sums_at((begin[0], begin[1] - 1) if begin[1] else
                                     (begin[0] - 1, 1 << 62)) if begin > (0, 0) else (0, 0)
            within = [model.sums_at(at)[0] for at in model.moments if begin <= at < end]
            self.assertEqual((row["live_bytes"], row["live_blocks"], row["allocations"],
                              row["peak_bytes"]),
                             (*live, len(inside), max([at_begin[0], *within])), row)
        if rows:
            top = max(model.sums, default=(0, 0))[0]
            self.assertEqual(max(row["peak_bytes"] for row in rows), top)
            found = self.rows(path, "SELECT * FROM peak")[0]
            if top:
                first = next(at for at, (size, _) in zip(model.moments, model.sums) if size == top)
                self.assertEqual(found["position"], spell(first))

    def check_refs(self, path, model):
        found = self.rows(path, "SELECT * FROM refs")
        if not model.found["snapshot"]:
            self.assertEqual(found, [])
            return
        held, roots = model.references_of_blocks()
        self.assertEqual(collections.Counter(
            (row["holder"], row["offset"], row["target"], bool(row["interior"])) for row in found
            if row["holder"]), held)
        there = collections.Counter(row["target"] for row in found if not row["holder"])
        self.assertLessEqual(roots, there)

    def check_errors(self, path, model):
        """Every release that meant no block is a finding, or one of those that are counted; if no
        heap was destroyed, which is another error of its own."""
        if any(event["name"] == "Destroy" for event in model.events):
            return
        answer = self.json_of("errors", path, "--limit", "0")
        kinds = "('double-free', 'invalid-free', 'interior-free', 'realloc-of-freed', 'wrong-heap')"
        found = self.rows(path, f"SELECT sum(count) AS n FROM errors WHERE kind IN {kinds}")[0]["n"]
        self.assertEqual((found or 0) + answer["early_releases"] + answer["gap_releases"],
                         len(model.unknown_releases))

    def same_as_commands(self, path, has_times):
        for table, (command, name) in ALL_TABLES.items():
            # Without a snapshot the table is empty and the command has no list.
            if table == "timeline" and not has_times:
                continue
            if table != "retained" or self.rows(path, "SELECT * FROM retained LIMIT 1"):
                self.compare(path, table, command, name)

    def test_all(self):
        kinds = 0
        for kind, path, table, count in self.traces():
            with self.subTest(kind=kind):
                kinds += 1
                model = Trace(path)
                rows = self.rows(path, f"SELECT count(*) AS n FROM {table}")
                self.assertGreaterEqual(rows[0]["n"], count)
                for check in (self.check_records, self.check_stacks, self.check_live,
                              self.check_blocks, self.check_sites, self.check_moves,
                              self.check_diff, self.check_timeline, self.check_refs,
                              self.check_errors):
                    with self.subTest(check=check.__name__):
                        check(path, model)
                with self.subTest(check="commands"):
                    self.same_as_commands(path, model.has_times)
        self.assertEqual(kinds, 13)


if __name__ == "__main__":
    support.main()
