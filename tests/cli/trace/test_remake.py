# SPDX-License-Identifier: MIT
"""ttdanalyze slice, merge and repack: a new trace answers as its sources do, or says what it
lacks."""

import json
import os
import random
import stat

import support
from snapshot_support import SnapshotScript
from support import DAMAGED, OPEN, USAGE, Script, TestCase, run

UNJUDGED = 6

VECTORS = os.path.join(os.environ["TTD_SOURCE"], "tests", "vectors")
RECOVERED = 4
# The questions by which a copy is compared.
QUESTIONS = (("state", "--limit", "0"), ("state", "--at", "50%"), ("leaks", "--show", "all"),
             ("errors",), ("hot",), ("temporary",), ("lifetimes",), ("moves", "--chains", "0"),
             ("peak",), ("timeline",), ("diff", "--from", "25%", "--to", "75%"), ("marks",),
             ("fragmentation",), ("events", "--limit", "0", "--stacks", "--parameters"))


def without(value, *names):
    """The value without members of these names, at any depth."""
    if isinstance(value, dict):
        return {name: without(member, *names) for name, member in value.items()
                if name not in names}
    return [without(item, *names) for item in value] if isinstance(value, list) else value


class Remade(TestCase):
    def ask(self, path, command, *arguments):
        result = run(command, *arguments, "--format", "json", "--no-index", path)
        self.assertLess(result.status, USAGE, (command, *arguments, result.errors))
        return result.json_lines if command in ("events", "marks") else result.json

    def busy(self, seed, events=400, heaps=1, base=0x10000, script=None, start=0, step=1):
        """Calls of all kinds, some of them wrong or in flight at once, in the same order whatever
        is asked. `start` and `step` choose the sequences of the positions."""
        chance = random.Random(seed)
        script = script or SnapshotScript().basics()
        script.add("heap", handle=0x77, name="third")
        live = []
        for number in range(events):
            sequence = start + number * step
            times = {"start": f"{sequence:X}:0", "end": f"{sequence:X}:3", "wall": number * 1000,
                     "thread": 1 + number % 2, "heap": 1 + number % heaps}
            choice = chance.random()
            if choice < 0.5 or not live:
                address = base + 0x20 * number
                live.append((address, times["heap"]))
                script.alloc(address, chance.randrange(1, 200), stack=1 + number % 4, **times)
            elif choice < 0.6:
                address, heap = live.pop(chance.randrange(len(live)))
                times.update(heap=heap, end=f"{sequence + 5 * step:X}:1")
                live.append((base + 0x20 * number, heap))
                script.realloc(address, base + 0x20 * number, chance.randrange(1, 99), **times)
            elif choice < 0.62:
                script.free(0xDEAD00, **times)
            else:
                address, times["heap"] = live.pop(chance.randrange(len(live)))
                script.free(address, **times)
        script.clock = 4 * (start + events * step + 8)
        return script

    def make(self, command, *arguments, name="new.ttd"):
        """Makes a trace, and returns its path and the summary."""
        target = self.path(name)
        found = self.run_ok(command, *arguments, "-o", target, "--format", "json").json
        self.assertEqual(stat.S_IMODE(os.stat(target).st_mode), 0o600)
        self.assertTrue(run("verify", "--format", "json", target).json["ok"])
        return target, found

    def refuse(self, status, reason, command, *arguments):
        """The command fails, and leaves nothing."""
        before = sorted(os.listdir(self.folder))
        result = run(command, *arguments, "-o", self.path("refused.ttd"))
        self.assertEqual((result.status, result.text), (status, ""), result.errors)
        self.assertIn(reason, result.errors)
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def assert_same(self, one, other, questions=QUESTIONS, besides=()):
        for question in questions:
            with self.subTest(question):
                self.assertEqual(without(self.ask(other, *question), *besides),
                                 without(self.ask(one, *question), *besides))


class Repack(Remade):
    def test_answers(self):
        script = self.busy(1, heaps=3)
        script.add("loss", reason=1, count=3, last_good="10:0", first_good="12:0")
        script.add("user", position="40:0", data="mark", client="ttdtrace.mark%00%00%00")
        script.snapshot((0x10040, 0x10060), (2, 8, 0x10000), classes=((0x10000, "5Class"),))
        script.add("pages", texts="page,other")
        script.add("map", snapshot=2, position="400:0", runs="0x1000:2:3")
        script.add("snapshot", number=2, position="400:0", contents=4)
        script.add("blocks", position="400:0", list=3, blocks="0x10000:10")
        script.lines[0] += " events_per_chunk=7"
        path = self.write(script.close(code=3, wall=10**9))
        target, found = self.make("repack", path)
        self.assert_same(path, target, QUESTIONS + (("memory", "--address", "0x1000"),))
        self.assertEqual((found["events"], found["left_out"], found["records_left_out"]),
                         (400, 0, 0))
        self.assertEqual((found["source_bytes"], found["bytes"]),
                         (os.path.getsize(path), os.path.getsize(target)))
        self.assertLess(os.path.getsize(target), os.path.getsize(path) / 2)
        [events] = [chunks for chunks in self.ask(target, "info")["chunk_list"]
                    if chunks["kind"] == "events"]
        self.assertLess(events["chunks"], 5)
        infos = [without(self.ask(of, "info"), "chunk_list", "file_bytes", "chunks",
                         "bytes_per_event") for of in (path, target)]
        self.assertEqual(infos[0], infos[1])

    def test_twice(self):
        path = self.write(self.busy(2).close())
        first, _ = self.make("repack", path)
        second, _ = self.make("repack", first, name="second.ttd")
        with open(first, "rb") as one, open(second, "rb") as two:
            self.assertEqual(one.read(), two.read())

    def test_vectors(self):
        """An intact trace is copied, and no other is, whatever is wrong with it."""
        copied = 0
        for name in sorted(os.listdir(VECTORS)):
            if not name.endswith(".trace"):
                continue
            path = os.path.join(VECTORS, name)
            target = self.path(name)
            result = run("repack", path, "-o", target)
            is_ok = run("verify", "--no-index", path).status == 0
            with self.subTest(name):
                if result.status == 0:
                    copied += 1
                    self.assertTrue(is_ok, "a damaged trace was copied")
                    self.assert_same(path, target, (("events", "--limit", "0"), ("state",)))
                else:
                    self.assertIn(result.status, (OPEN, DAMAGED))
                    self.assertFalse(os.path.exists(target))
                    self.assertFalse(is_ok and "an index is no trace" not in result.errors and
                                     "was recovered" not in result.errors, result.errors)
        self.assertGreater(copied, 15)

    def test_refusals(self):
        path = self.write(self.busy(3, events=30).abandon())
        self.refuse(DAMAGED, "'ttdanalyze recover' makes an intact trace", "repack", path)
        self.run_ok("recover", path, "-o", self.path("recovered.ttd"))
        target, _ = self.make("repack", self.path("recovered.ttd"))
        self.assert_same(self.path("recovered.ttd"), target, QUESTIONS[:4])
        existing = run("repack", path, "-o", target)
        self.assertEqual((existing.status, existing.text), (USAGE, ""))
        self.assertIn("exists, and is not overwritten", existing.errors)
        no_file = run("repack", path, "-o", "/dev/stdout")
        self.assertEqual((no_file.status, no_file.text), (USAGE, ""))
        self.assertIn("is no file", no_file.errors)

    def test_holes(self):
        """Records that a recovered trace lacks cannot be numbered again."""
        script = self.busy(4)
        script.lines[0] += " events_per_chunk=16"
        path = self.write(script.close())
        with open(path, "r+b") as file:
            file.seek(os.path.getsize(path) // 2)
            file.write(b"damage!!")
        self.refuse(DAMAGED, "recover", "repack", path)
        self.run_ok("recover", path, "-o", self.path("recovered.ttd"))
        self.refuse(OPEN, "lost before the trace was recovered", "repack",
                    self.path("recovered.ttd"))

    def test_lost_definitions(self):
        """A recovered trace without some of its definitions is copied, or refused for that reason."""
        path, reasons = self.write(self.busy(4).close()), ""
        with open(path, "rb") as file:
            intact = file.read()
        for offset in range(100, min(len(intact), 1500), 70):
            broken, recovered = self.path(f"{offset}.ttd"), self.path(f"{offset}-recovered.ttd")
            with open(broken, "wb") as file:
                file.write(intact[:offset] + bytes([intact[offset] ^ 1]) + intact[offset + 1:])
            if run("recover", broken, "-o", recovered).status:
                continue
            for command in ("repack", "merge"):
                target = self.path(f"{offset}-{command}.ttd")
                result = run(command, "-o", target, recovered, *[path] * (command == "merge"))
                self.assertIn(result.status, (0, OPEN), (offset, result.errors))
                reasons += result.errors
        self.assertIn("records refer to them", reasons)


class Slice(Remade):
    def slice(self, path, first, behind):
        return self.make("slice", "--from", first, "--to", behind, path,
                         name=f"{first}-{behind}.ttd".replace(":", "_"))

    def assert_answers(self, path, target, first, behind, at):
        """Inside, all that rests on the heap there is the same, and as certain."""
        for question in ("state", "--limit", "0"), ("fragmentation",), ("state", "--by", "heap"), \
                ("state", "--by", "thread"):
            for position in at:
                question += ("--at", position)
                # No effect at the begin itself: the last one before it was left out.
                besides = ["event", "position"][:1 + (position == first)]
                self.assertEqual(without(self.ask(target, *question), *besides),
                                 without(self.ask(path, *question), *besides), question)
        for question in (("events", "--limit", "0", "--from", first, "--to", behind),
                         ("marks", "--from", first, "--to", behind)):
            self.assertEqual(without(self.ask(target, *question), "number"),
                             without(self.ask(path, *question), "number"), question)
        for begin, end in ((first, at[1]), (at[0], at[2])):
            question = ("diff", "--from", begin, "--to", end, "--limit", "0")
            self.assertEqual(self.ask(target, *question), self.ask(path, *question), question)

    def test_ranges(self):
        """Reallocations are in flight at each bound. The blocks are all there, none twice."""
        path = self.write(self.busy(5, heaps=3).close())
        for first, behind, at in (("64:0", "C8:0", ("64:0", "80:1", "A5:2")),
                                  ("1:0", "18F:0", ("1:0", "100:0", "18E:1")),
                                  ("C0:2", "C8:2", ("C0:2", "C4:3", "C7:1"))):
            target, found = self.slice(path, first, behind)
            self.assert_answers(path, target, first, behind, at)
            self.assertEqual(found["events"] + found["left_out"], 400)
            sequence, steps = (int(number, 16) for number in first.split(":"))
            before = f"{sequence:X}:{steps - 1:X}" if steps else f"{sequence - 1:X}:5"
            live = self.ask(path, "state", "--at", before)
            self.assertEqual(found["kept"],
                             live["live_blocks"] + live["reallocs_in_flight"])

    def test_outside(self):
        """Questions about calls that were left out have uncertain answers, and say why."""
        path = self.write(self.busy(6).close())
        target, found = self.slice(path, "64:0", "C8:0")
        info = self.ask(target, "info")
        self.assertEqual([(loss["reason"], loss["last_good"], loss["first_good"])
                          for loss in info["loss_list"]],
                         [("limit", "0:0", "64:0"), ("limit", "C7:FFFFFFFFFFFFFFFF", None)]
                         if info["loss_list"][0]["reason"] == "limit" else
                         [(info["loss_list"][0]["reason"], "0:0", "64:0"),
                          (info["loss_list"][1]["reason"], "C7:FFFFFFFFFFFFFFFF", None)])
        self.assertEqual(info["lost_events"], found["left_out"])
        self.assertIn("calls before 64:0, but for blocks that were live then",
                      [fact["value"] for fact in info["metadata"]
                       if fact["key"] == "unrecorded"][0])
        for question in (("state", "--at", "50:0"), ("state",), ("peak",), ("hot",), ("errors",),
                         ("leaks",), ("diff", "--from", "50:0", "--to", "70:0"), ("moves",)):
            answer = self.ask(target, *question)
            self.assertFalse(answer["certain"], question)
            self.assertIn("left out to bound the trace", answer["reasons"][0])
        self.assertTrue(self.ask(target, "state", "--at", "64:0")["certain"])

    def test_losses(self):
        """Each loss of the source makes the same positions uncertain."""
        script = self.busy(7)
        script.add("loss", reason=1, count=3, last_good="50:0", first_good="52:0")
        script.add("loss", reason=3, count=2, last_good="70:0", first_good="78:0")
        script.add("loss", reason=4, last_good="D0:0", first_good="D2:0")
        path = self.write(script.close())
        target, found = self.slice(path, "64:0", "C8:0")
        self.assert_answers(path, target, "64:0", "C8:0", ("64:0", "80:1", "A5:2"))
        self.assertFalse(self.ask(target, "state", "--at", "80:1")["certain"])
        lost = self.ask(target, "info")["loss_list"]
        self.assertEqual(len(lost), 4)
        # The number of those behind is not known: damage has no number.
        self.assertIsNone(lost[-1]["events"])

    def test_snapshots(self):
        """Those inside are there with their parts, those outside with none."""
        script = self.busy(8, events=100)
        for index, position in enumerate(("20:0", "50:0", "70:0")):
            script.snapshot((2, 8, 0x10000 + 0x20 * index), (0x10040, 0x10060), position=position)
        script.add("blocks", position="70:0", list=3, blocks="0x10000:10,0x10020:1,0x10040:1")
        path = self.write(script.close())
        target, found = self.slice(path, "40:0", "60:0")
        both = [self.ask(of, "leaks", "--show", "all", "--at", "5F:0") for of in (path, target)]
        self.assertEqual(both[0]["snapshot"]["number"], 2)
        # When a block was lost is a question about earlier snapshots.
        besides = ("certain", "reasons", "event", "lost_after", "lost_before", "holders_released",
                   "first_release", "last_release")
        self.assertEqual(without(both[0], *besides), without(both[1], *besides))
        self.assertFalse(both[1]["certain"])
        self.assertEqual(len(self.ask(target, "snapshots")["snapshots"]), 1)
        self.assertGreater(found["records_left_out"], 0)
        whole, _ = self.slice(path, "0:0", "end")
        self.assert_same(path, whole, QUESTIONS[:6])

    def test_runtimes(self):
        """A block that the runtimes keep at the end is not the one that had its address before."""
        script = Script().basics()
        script.alloc(0x1000, 10, start="1:0", end="1:1")
        script.alloc(0x2000, 20, start="2:0", end="2:1")
        script.free(0x1000, start="5:0", end="5:1")
        script.alloc(0x1000, 30, start="6:0", end="6:1")
        script.add("blocks", position="7:0", list=3, blocks="0x1000:30,0x2000:20")
        path = self.write(script.close())
        for bounds in ("0:0", "4:0"), ("2:0", "4:0"), ("4:0", "end"):
            target, _ = self.slice(path, *bounds)
            both = [self.ask(of, "state", "--at", "4:0" if bounds[0] == "4:0" else "3:0")
                    for of in (path, target)]
            self.assertEqual(without(both[0], "position"), without(both[1], "position"), bounds)
            self.assertEqual(both[1]["runtime_bytes"], 20)

    def test_heaps(self):
        """A heap that exists at the begin was created; blocks of one that ended are gone."""
        script = Script().basics()
        script.event("Create", heap=1, reserve=4096)
        script.event("Create", heap=2, reserve=4096)
        for number in range(8):
            script.alloc(0x1000 + 0x100 * number, 10, heap=1 + number % 2)
        script.event("Destroy", heap=2)
        first = script.tick()
        script.alloc(0x5000, 10)
        path = self.write(script.close())
        target, found = self.slice(path, first, "end")
        self.assertEqual(found["kept"], 5)
        actions = [event["action"] for event in self.ask(target, "events", "--limit", "0")]
        self.assertEqual(actions, ["Create"] + 5 * ["Alloc"])
        self.assertEqual(self.ask(target, "state", "--at", first)["live_blocks"], 4)

    def test_twice(self):
        """A slice of a slice is the slice."""
        path = self.write(self.busy(9).close())
        outer, _ = self.slice(path, "40:0", "E0:0")
        inner, _ = self.slice(outer, "64:0", "C8:0")
        self.assert_answers(path, inner, "64:0", "C8:0", ("64:0", "80:1", "A5:2"))

    def test_forms(self):
        path = self.write(self.busy(10).close())
        target, _ = self.make("slice", "--from", "25%", "--to", "#300", path)
        numbers = self.ask(target, "events", "--limit", "0")
        self.assertEqual(numbers[-1]["time_start"], "12B:0")
        self.refuse(USAGE, "the range is empty", "slice", "--from", "50:0", "--to", "50:0", path)
        self.refuse(USAGE, "invalid argument", "slice", "--from", "x", path)


class Merge(Remade):
    def process(self, number, **fields):
        """A process whose calls alternate with the calls of the others, at the same addresses."""
        script = SnapshotScript(id=0x1000 + number, pid=200 + number, start_time=10**9 + number,
                                time_unit=1, **fields).basics()
        script.add("metadata", key="host", value="here")
        script.add("metadata", key="command", value=f"program%20{number}")
        script.add("stack", parent=2, module=1, offset=0x900 + number)
        script.add("symbol", module=1, offset=0x900 + number, frames=f"only_{number}@o.c@1")
        script.alloc(0x700, 5, stack=5, start="0:0", end=f"0:{number + 1}")
        return self.busy(number, events=200, heaps=2, script=script, start=number, step=4)

    def write_all(self, *endings):
        paths = []
        for number, ending in enumerate(endings):
            script = self.process(number)
            script.snapshot((2, 8, 0x10000))
            paths.append(self.write(script.close(**ending), f"{number}.ttd"))
        return paths

    def test_processes(self):
        """At each position the heap has the blocks of all processes."""
        paths = self.write_all(*3 * [{"reason": 3}])
        target, found = self.make("merge", *paths)
        self.assertEqual((found["traces"], found["events"], found["left_out"]), (3, 603, 0))
        for position in "50:0", "150:2", "200:3", "end":
            parts = [self.ask(path, "state", "--at", position) for path in paths]
            whole = self.ask(target, "state", "--at", position, "--limit", "0")
            for name in "live_blocks", "live_bytes", "reallocs_in_flight":
                self.assertEqual(whole[name], sum(part[name] for part in parts), position)
            self.assertTrue(whole["certain"])
        listed = self.ask(target, "events", "--limit", "0")
        order = [event["time_end" if event["action"] == "Alloc" else "time_start"]
                 for event in listed]
        self.assertEqual(order, sorted(order, key=lambda at: [int(n, 16) for n in at.split(":")]))
        same = ("number", "heap_id", "thread", "stack", "certain", "wall_time_ns")
        parts = [without(event, *same) for path in paths
                 for event in self.ask(path, "events", "--limit", "0")]
        self.assertEqual(sorted(map(json.dumps, parts)),
                         sorted(json.dumps(without(event, *same)) for event in listed))

    def test_names(self):
        """Heaps have the process in their names; each stack keeps its functions."""
        paths = self.write_all(*2 * [{"reason": 3}])
        target, _ = self.make("merge", *paths)
        text = self.run_ok("state", "--by", "heap", target).text
        for name in ("malloc of process 200", "malloc of process 201", "private of process 201"):
            self.assertIn(name, text)
        groups = {}
        for path in paths:
            for group in self.ask(path, "state", "--limit", "0")["groups"]:
                key = json.dumps([frame["function"] for frame in group["stack"]])
                groups[key] = groups.get(key, 0) + group["bytes"]
        found = {}
        for group in self.ask(target, "state", "--limit", "0")["groups"]:
            key = json.dumps([frame["function"] for frame in group["stack"]])
            found[key] = found.get(key, 0) + group["bytes"]
        self.assertEqual(found, groups)
        facts = [(fact["key"], fact["value"]) for fact in self.ask(target, "info")["metadata"]]
        self.assertEqual(facts.count(("host", "here")), 1)
        self.assertIn(("command", "program 1"), facts)
        self.assertIn(("merged", "process 201, trace 0000000000001001"), facts)

    def test_end(self):
        """The blocks of a process end with it, unless it is the last one."""
        short = Script(id=1, pid=7).basics()
        short.alloc(0x1000, 100, start="10:0", end="10:1")
        long = Script(id=2, pid=8).basics()
        long.alloc(0x1000, 7, start="20:0", end="20:1")
        paths = [self.write(short.close(), "short.ttd"), self.write(long.close(), "long.ttd")]
        target, found = self.make("merge", *paths)
        self.assertEqual(found["events"], 3)
        sizes = [self.ask(target, "state", "--at", at)["live_bytes"]
                 for at in ("10:1", "18:0", "end")]
        self.assertEqual(sizes, [100, 0, 7])
        self.assertEqual(self.ask(target, "peak")["live_bytes"], 100)
        self.assertEqual(self.ask(target, "errors")["findings"], [])

    def merged_end(self, *endings, snapshot=False):
        """The verdict about a merged trace, and how it ends: of processes with one block each."""
        paths = []
        for number, ending in enumerate(endings):
            script = SnapshotScript(id=1 + number, pid=7 + number).basics()
            script.alloc(0x1000, 100, start=f"{number + 1}0:0", end=f"{number + 1}0:1")
            if snapshot:
                script.snapshot((2, 8, 0x1000), reason=4, position=f"{number + 1}1:0")
            paths.append(self.write(script.close(**ending), f"{number}.ttd"))
        target, _ = self.make("merge", *paths)
        info = self.ask(target, "info")
        leaks = run("leaks", "--error-exitcode", "9", target)
        self.assertEqual("'merge' has left out the snapshots: ask each trace" in leaks.text,
                         snapshot)
        self.assertEqual(run("errors", "--error-exitcode", "9", target).status, 0)
        for path in target, *paths:
            os.remove(path)
        return leaks.status, info["end_reason"], info["end_code"]

    def test_how_the_last_process_ended(self):
        """A process that was killed had no chance to release its blocks. Of several whose blocks are
        left, the end that says least counts."""
        exited, killed, detached = {"code": 3}, {"reason": 2, "code": 9}, {"reason": 3}
        self.assertEqual(self.merged_end(killed, exited), (9, "exited", 3))
        self.assertEqual(self.merged_end(exited, killed), (UNJUDGED, "killed", 9))
        self.assertEqual(self.merged_end(detached, exited), (UNJUDGED, "detached", None))
        self.assertEqual(self.merged_end(exited, {"reason": 0}), (UNJUDGED, "unknown", None))

    def test_snapshots_that_are_left_out(self):
        """What the program still held at its end is not known, and no finding."""
        self.assertEqual(self.merged_end({}, {}, snapshot=True), (UNJUDGED, "exited", 0))

    def test_a_call_of_another_process(self):
        """A call that has not returned is not the one in which the last process died."""
        first = Script(id=1, pid=7).basics()
        first.alloc(0x1000, 100, start="10:0", end="10:1")
        first.free(0x1000, start="11:0", end="never")
        last = Script(id=2, pid=8).basics()
        last.alloc(0x2000, 7, start="20:0", end="20:1")
        target, _ = self.make("merge", self.write(first.close(), "first.ttd"),
                              self.write(last.close(reason=2, code=11), "last.ttd"))
        self.assertEqual(self.ask(target, "errors")["findings"], [])

    def test_losses(self):
        script = self.process(1)
        script.add("loss", reason=1, count=3, last_good="10:0", first_good="12:0")
        paths = [self.write(self.process(0).close(), "0.ttd"), self.write(script.close(), "1.ttd")]
        target, _ = self.make("merge", *paths)
        self.assertTrue(self.ask(target, "state", "--at", "F:0")["certain"])
        self.assertFalse(self.ask(target, "state", "--at", "20:0")["certain"])
        self.assertEqual(self.ask(target, "info")["lost_events"], 3)

    def test_refusals(self):
        paths = self.write_all({"reason": 1})
        self.refuse(USAGE, "two traces or more", "merge", *paths)
        self.refuse(OPEN, "named twice", "merge", *paths, *paths)
        other = self.write(self.process(1, group=1).close(), "other.ttd")
        self.refuse(OPEN, "not of one recording", "merge", *paths, other)
        mixed = self.process(2)
        mixed.alloc(0x999000, 10, heap=0, start="7000:0", end="7000:1")
        self.refuse(OPEN, "known and of unknown heaps", "merge", *paths,
                    self.write(mixed.close(), "mixed.ttd"))
        cut = self.write(self.process(3).abandon(), "cut.ttd")
        self.refuse(DAMAGED, "'ttdanalyze recover'", "merge", *paths, cut)

    def test_too_many_blocks_at_an_address(self):
        """The format has 16 of them: more processes than that are not merged in silence."""
        paths = []
        for number in range(17):
            script = Script(id=1 + number, pid=number).basics()
            script.alloc(0x1000, 8, start=f"{number + 1:X}:0", end=f"{number + 1:X}:1")
            paths.append(self.write(script.close(reason=3), f"{number}.ttd"))
        self.make("merge", *paths[:16])
        self.refuse(OPEN, "too many blocks have the same address", "merge", *paths)


if __name__ == "__main__":
    support.main()
