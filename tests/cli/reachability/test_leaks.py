# SPDX-License-Identifier: MIT
"""ttdanalyze leaks"""

import random

import support
from support import Script, TestCase, run


class Leaks(TestCase):
    def small(self):
        """Three leaks from two stacks, among other calls."""
        script = Script().basics()
        script.alloc(0x1000, 100)              # leaks, at 0:2
        script.alloc(0x2000, 50, stack=3)      # released
        script.free(0x2000)
        script.alloc(0x3000, 10, stack=4)      # leaks, at 2:0
        script.alloc(0x4000, 7)                # leaks, at 2:2
        return script

    def test_groups(self):
        path = self.write(self.small().close())
        found = self.json_of("leaks", path)
        self.assertEqual(found["total_blocks"], 3)
        self.assertEqual(found["total_bytes"], 117)
        self.assertIs(found["certain"], True)
        self.assertEqual(found["reasons"], [])
        self.assertEqual([(g["blocks"], g["bytes"], g["stack_id"]) for g in found["groups"]],
                         [(2, 107, 2), (1, 10, 4)])
        self.assertEqual(found["groups"][0]["first_position"], "0:2")
        self.assertEqual(found["groups"][0]["last_position"], "2:2")

    def test_killed(self):
        """What the runtimes keep is told by a program that exits: of one that was killed only if
        the trace has it after all."""
        kept = {"list": 3, "position": "8:0", "blocks": "0x4000:7:5"}
        killed = "The program was killed: what the C/C++ runtime"
        untold = "What the C/C++ runtime keeps until exit is not, or not all, known"
        for reason, lists, said in ((2, [], killed), (2, [1], None), (1, [], None), (1, [1], None),
                                    (1, [0], untold), (2, [0], killed), (1, [0, 1], None)):
            script = self.small()
            for i, last in enumerate(lists):
                script.add("blocks", **kept, id=i + 1, last=last)
            path = self.write(script.close(reason=reason), f"killed{reason}{lists}")
            found = self.json_of("leaks", path)
            self.assertIs(found["runtime_counted"], said is not None)
            self.assertEqual(found["runtime_bytes"], 7 if lists else 0)
            text = self.run_ok("leaks", path).text
            for line in (killed, untold):
                self.assertEqual(line in text, line == said)

    def test_frames(self):
        path = self.write(self.small().close())
        first, second = self.json_of("leaks", path)["groups"]
        self.assertEqual(
            [(f["function"], f["file"], f["line"], f["module"], f["address"], f["inlined"])
             for f in first["stack"]],
            [("g(int)", "g.h", 5, "/opt/app/bin/demo", "0x400200", True),
             ("f::run()", "f.cc", 20, "/opt/app/bin/demo", "0x400200", False),
             ("main", "main.c", 10, "/opt/app/bin/demo", "0x400100", False)])
        self.assertEqual(
            [(f["function"], f["line"], f["module"], f["offset"], f["address"])
             for f in second["stack"]],
            [(None, None, None, "0xdead", "0xdead"),
             (None, None, "/usr/lib/libwork.so", "0x300", "0x7000300"),
             ("main", 10, "/opt/app/bin/demo", "0x100", "0x400100")])

    def test_text(self):
        text = self.run_ok("leaks", self.write(self.small().close())).text
        self.assertIn("107 bytes in 2 blocks, allocated from 0:2 to 2:2\n"
                      "    #0  g(int) (g.h:5) in demo (inlined)\n"
                      "    #1  f::run() (f.cc:20) in demo\n"
                      "    #2  main (main.c:10) in demo\n", text)
        self.assertIn("10 bytes in 1 block, allocated at 2:0\n"
                      "    #0  0xdead\n"
                      "    #1  libwork.so+0x300\n"
                      "    #2  main (main.c:10) in demo\n", text)
        self.assertIn("Never released: 3 blocks, 117 bytes, from 2 stacks\n", text)
        self.assertNotIn("Uncertain", text)
        self.assertNotIn("\033", text)

    def test_csv(self):
        rows = self.run_ok("leaks", "-f", "csv", self.write(self.small().close())).csv
        self.assertEqual([(r["blocks"], r["bytes"], r["stack"]) for r in rows],
                         [("2", "107", "g(int);f::run();main"),
                          ("1", "10", "0xdead;libwork.so+0x300;main")])

    def test_none(self):
        script = Script().basics()
        script.alloc(0x1000, 1)
        script.free(0x1000)
        path = self.write(script.close())
        self.assertIn("No leaks\n", self.run_ok("leaks", path).text)
        found = self.json_of("leaks", path)
        self.assertEqual((found["total_blocks"], found["groups"]), (0, []))

    def test_limit(self):
        path = self.write(self.small().close())
        found = self.json_of("leaks", path, "--limit", "1")
        self.assertEqual([g["bytes"] for g in found["groups"]], [107])
        self.assertEqual(found["total_bytes"], 117)
        self.assertEqual(found["total_groups"], 2)
        self.assertIn("1 stack more", self.run_ok("leaks", "--limit", "1", path).text)
        self.assertEqual(len(self.json_of("leaks", path, "--limit", "0")["groups"]), 2)

    def test_error_exitcode(self):
        path = self.write(self.small().close())
        self.assertEqual(run("leaks", "--error-exitcode", "42", path).status, 42)
        self.assertEqual(run("leaks", "--error-exitcode", "256", path).status, support.USAGE)
        target = self.path("report")
        self.assertEqual(run("leaks", "--error-exitcode", "7", "-o", target, path).status, 7)
        with open(target, encoding="utf-8") as report:
            self.assertIn("Never released", report.read())
        clean = self.write(Script().basics().close(), "clean")
        self.assertEqual(run("leaks", "--error-exitcode", "42", clean).status, 0)


class Rules(TestCase):
    """What has which effect."""

    def live(self, script, *arguments):
        path = self.write(script.close(), f"trace{script.clock}-{len(arguments)}")
        found = self.json_of("leaks", path, *arguments)
        return found["total_blocks"], found["total_bytes"], found

    def test_failures_have_no_effect(self):
        script = Script().basics()
        script.alloc(0, 100, result=0)
        script.alloc(0x1000, 10)
        script.realloc(0x1000, 0, 1000, result=0)
        script.free(0x1000, result=0)
        self.assertEqual(self.live(script)[:2], (1, 10))

    def test_realloc(self):
        script = Script().basics()
        script.realloc(0, 0x1000, 10)             # acquires
        script.realloc(0x1000, 0x2000, 20)        # moves
        script.realloc(0x2000, 0x2000, 30)        # in place
        script.alloc(0x3000, 5)
        script.realloc(0x3000, 0, 0)              # releases
        blocks, size, found = self.live(script)
        self.assertEqual((blocks, size), (1, 30))
        self.assertEqual(found["unknown_releases"], 0)

    def test_never_returned(self):
        script = Script().basics()
        script.alloc(0x1000, 10)
        script.alloc(0x2000, 20)
        start = script.tick()
        script.event("Free", base=0x1000, start=start, end="never")
        script.event("ReAlloc", base=0x2000, size=200, start=start, end="never", thread=2)
        self.assertEqual(self.live(script)[:2], (1, 20))

    def test_destroy(self):
        script = Script().basics()
        script.alloc(0x1000, 10)
        script.alloc(0x2000, 20, heap=2)
        script.alloc(0x3000, 40, heap=2)
        script.event("Destroy", heap=2)
        script.alloc(0x3000, 80, heap=2)
        blocks, size, found = self.live(script)
        self.assertEqual((blocks, size), (2, 90))
        self.assertEqual(found["overlaps"], 0)

    def test_unknown_and_overlapping(self):
        script = Script().basics()
        script.free(0x9000)
        script.alloc(0x1000, 10)
        script.alloc(0x1000, 20)
        blocks, size, found = self.live(script)
        self.assertEqual((blocks, size), (1, 20))
        self.assertEqual((found["unknown_releases"], found["overlaps"]), (1, 1))
        self.assertIs(found["certain"], False)

    def test_releases_of_early_blocks(self):
        """A child releases blocks of its parent: what 'errors' finds right is no alarm here."""
        said = {0: "1 release of an address without a live block: 'ttdanalyze errors' says more\n",
                2: "1 release of an address without a live block, as blocks from before the recording: "
                   "'ttdanalyze errors' tells them apart\n"}
        for flags, line in said.items():
            script = Script(flags=flags).basics()
            script.free(0x9000)
            path = self.write(script.close(), f"flags{flags}")
            self.assertIn(line, self.run_ok("leaks", path).text)

    def test_realloc_in_flight(self):
        """Another thread's calls come between the release and the acquisition."""
        script = Script().basics()
        script.alloc(0x1000, 10, start="1:0", end="1:1")
        script.realloc(0x1000, 0x2000, 20, start="2:0", end="8:0")
        script.alloc(0x1000, 5, start="3:0", end="3:1", thread=2)
        script.free(0x1000, start="4:0", end="4:1", thread=2)
        path = self.write(script.close())
        expected = {"1:0": 0, "1:1": 10, "1:FF": 10, "2:0": 0, "3:1": 5, "4:0": 0, "7:FFFF": 0,
                    "8:0": 20, "end": 20}
        for position, size in expected.items():
            found = self.json_of("leaks", path, "--at", position)
            self.assertEqual(found["total_bytes"], size, position)
            self.assertEqual(found["unknown_releases"], 0)
        self.assertEqual(self.json_of("leaks", path, "--at", "3:1")["reallocs_in_flight"], 1)
        self.assertEqual(self.json_of("leaks", path, "--at", "8:0")["reallocs_in_flight"], 0)

    def test_huge_sizes(self):
        script = Script().basics()
        script.alloc(0x1000, 2 ** 64 - 1)
        script.alloc(0x2000, 2 ** 63)
        script.alloc(0x3000, 2 ** 53, stack=3)
        _, size, found = self.live(script)
        self.assertEqual(size, str(2 ** 64 - 1))
        self.assertEqual(found["groups"][1]["bytes"], str(2 ** 53))


class Runtime(TestCase):
    def script(self):
        script = Script().basics()
        script.alloc(0x1000, 72704, stack=3)      # 0:1 to 0:2: the runtime's
        script.alloc(0x2000, 10)                  # to 1:0: a leak
        script.alloc(0x3000, 20)                  # to 1:2: released, then the address is reused
        script.free(0x3000)
        script.alloc(0x3000, 30, stack=4)         # to 2:2: the runtime's
        script.add("blocks", position="9:0", blocks="0x1000:72704,0x3000:30,0x5000:1")
        return script.close()

    def test_not_counted(self):
        path = self.write(self.script())
        found = self.json_of("leaks", path)
        self.assertEqual((found["total_blocks"], found["total_bytes"]), (1, 10))
        self.assertEqual((found["runtime_blocks"], found["runtime_bytes"]), (2, 72734))
        self.assertNotIn("runtime_groups", found)
        self.assertIn("2 blocks, 72,734 bytes kept by the C/C++ runtime, not counted "
                      "(--show-runtime to list)\n", self.run_ok("leaks", path).text)

    def test_shown(self):
        path = self.write(self.script())
        found = self.json_of("leaks", path, "--show-runtime")
        self.assertEqual([(g["bytes"], g["stack_id"]) for g in found["runtime_groups"]],
                         [(72704, 3), (30, 4)])
        self.assertIn("libwork.so+0x300", self.run_ok("leaks", "--show-runtime", path).text)
        rows = self.run_ok("leaks", "--show-runtime", "-f", "csv", path).csv
        self.assertEqual([r["kind"] for r in rows], ["leak", "runtime", "runtime"])

    def test_earlier(self):
        """At an earlier moment a block is the runtime's if it is the one that is kept."""
        path = self.write(self.script())
        found = self.json_of("leaks", path, "--at", "1:2")
        self.assertEqual((found["total_blocks"], found["total_bytes"]), (2, 30))
        self.assertEqual((found["runtime_blocks"], found["runtime_bytes"]), (1, 72704))
        self.assertEqual(found["position"], "1:2")
        found = self.json_of("leaks", path, "--at", "2:3")
        self.assertEqual((found["total_bytes"], found["runtime_bytes"]), (10, 72734))

    def test_other_lists_do_not_count(self):
        script = Script().basics()
        script.alloc(0x1000, 10)
        script.add("blocks", list=2, position="9:0", blocks="0x1000:10")
        self.assertEqual(self.json_of("leaks", self.write(script.close()))["total_blocks"], 1)


class Certainty(TestCase):
    def lossy(self):
        script = Script().basics()
        script.alloc(0x1000, 10, start="1:0", end="1:1")
        script.alloc(0x2000, 20, start="5:0", end="5:1")
        script.add("loss", reason=1, count=17, last_good="2:0", first_good="3:0")
        return script

    def test_lost_events(self):
        path = self.write(self.lossy().close())
        found = self.json_of("leaks", path)
        self.assertIs(found["certain"], False)
        self.assertEqual(found["reasons"],
                         ["17 events are missing after 2:0: the recorder's buffers were full"])
        self.assertIn("Uncertain: 17 events", self.run_ok("leaks", path).text)

    def test_losses_count_from_where_they_were(self):
        """The record of a loss comes later in the file than what it may have affected."""
        path = self.write(self.lossy().close())
        self.assertIs(self.json_of("leaks", path, "--at", "1:1")["certain"], True)
        self.assertIs(self.json_of("leaks", path, "--at", "2:0")["certain"], True)
        self.assertIs(self.json_of("leaks", path, "--at", "2:1")["certain"], False)

    def test_unknown_number(self):
        script = self.lossy()
        script.add("loss", reason=5, count="unknown", last_good="4:0", first_good="4:1")
        found = self.json_of("leaks", self.write(script.close()))
        self.assertEqual(len(found["reasons"]), 2)
        self.assertIn("an unknown number of events", found["reasons"][1])

    def test_no_loss(self):
        script = Script().basics()
        script.alloc(0x1000, 10, start="1:0", end="1:1")
        script.add("loss", reason=1, count=0, last_good="0:0", first_good="1:0")
        self.assertIs(self.json_of("leaks", self.write(script.close()))["certain"], True)

    def test_not_closed(self):
        script = Script().basics()
        script.alloc(0x1000, 10, start="1:0", end="1:1")
        script.alloc(0x2000, 10, start="2:0", end="2:1")
        path = self.write(script.abandon())
        found = self.json_of("leaks", path)
        self.assertEqual(found["reasons"],
                         ["the trace was not closed cleanly: nothing is known after 2:1"])
        # A loss at an earlier position could be told of later.
        for at in ("1:1", "2:0", "3:0"):
            found = self.json_of("leaks", path, "--at", at)
            self.assertIs(found["certain"], False)
            self.assertIn("not closed cleanly", found["reasons"][0])


class Model(TestCase):
    """Random traces through the file format, against a model, at every position."""

    def random_script(self, chance):
        events = []
        for _ in range(chance.randrange(1, 25)):
            start = chance.randrange(60)
            end = None if chance.random() < 0.1 else start + chance.randrange(10)
            action = chance.choice(["Alloc"] * 3 + ["Free"] * 2 + ["ReAlloc"] * 3 + ["Destroy"])
            event = {"action": action, "start": start, "end": end, "thread": chance.choice([1, 2]),
                     "result": int(end is not None and chance.random() < 0.9),
                     "heap": chance.choice([1, 2]), "stack": chance.randrange(5)}
            if action in ("Free", "ReAlloc"):
                event["base"] = chance.choice([0, 1, 2, 3, 4]) * 0x1000
            if action in ("Alloc", "ReAlloc"):
                event["size"] = chance.randrange(1, 100)
                event["address"] = chance.choice([0, 1, 2, 3, 4]) * 0x1000 * event["result"]
            if action == "Alloc" and not event["address"]:
                event["result"] = 0
            events.append(event)
        for event in events:
            acquires = event["action"] == "Alloc" and event["end"] is not None
            event["effect"] = event["end"] if acquires else event["start"]
        events.sort(key=lambda event: event["effect"])
        return events

    def live_at(self, events, moment):
        live = {}
        steps = []
        for number, event in enumerate(events):
            if event["action"] == "ReAlloc" and event["result"] and event["address"]:
                at_once = event["end"] == event["start"]
                steps.append((event["end"], 1 if at_once else 0, number, "acquire"))
            steps.append((event["effect"], 1, number, ""))
        for when, _, number, what in sorted(steps, key=lambda s: (s[0], s[1], s[2], s[3])):
            event = events[number]
            action, result, returned = event["action"], event["result"], event["end"] is not None
            if when > moment:
                continue
            if what == "acquire" or (action == "Alloc" and result):
                live[event["heap"], event["address"]] = event
            elif action == "Destroy" and (result or not returned):
                live = {key: e for key, e in live.items() if e["heap"] != event["heap"]}
            elif (action == "Free" and (result or not returned)) or (action == "ReAlloc" and result):
                live.pop((event["heap"], event["base"]), None)
        return live

    def write_events(self, events, name):
        script = Script(events_per_chunk=7).basics()
        for event in events:
            fields = dict(event)
            del fields["effect"]
            fields["start"] = f"{fields['start']:X}:0"
            fields["end"] = "never" if fields["end"] is None else f"{fields['end']:X}:0"
            script.event(**fields)
        return self.write(script.close(), name)

    def test_model(self):
        chance = random.Random(4711)
        for round_number in range(20):
            events = self.random_script(chance)
            path = self.write_events(events, f"trace{round_number}")
            for moment in sorted(chance.sample(range(72), 8)):
                found = self.json_of("leaks", path, "--limit", "0", "--at", f"{moment:X}:7")
                live = self.live_at(events, moment)
                groups = {}
                for event in live.values():
                    blocks, size = groups.get(event["stack"], (0, 0))
                    groups[event["stack"]] = (blocks + 1, size + event["size"])
                self.assertEqual({g["stack_id"]: (g["blocks"], g["bytes"])
                                  for g in found["groups"]}, groups, (round_number, moment))


if __name__ == "__main__":
    support.main()
