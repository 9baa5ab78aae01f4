# SPDX-License-Identifier: MIT
"""ttdanalyze summary: the answers of the other commands, in a dozen lines."""

import os
import random

import oracle
import support
from snapshot_support import IN_BSS, SnapshotScript
from support import Script, TestCase

LONG = "a_function_with_a_name_of_more_than_eighty_columns" * 4


def owner_of(found, weight):
    """The functions with the largest weight of `--by function`, and their share."""
    total = sum(group[weight] for group in found["groups"])
    largest = max((group[weight] for group in found["groups"]), default=0)
    if not largest:
        return None
    return [g["function"] for g in found["groups"] if g[weight] == largest], largest / total


# Calls that are errors, or look as if they were: each search for errors finds the same.
NEW, DELETE_SIZED = 16, 26
TROUBLES = {
    "none": [],
    "a fitting size": [("Alloc", {"address": 0x7000, "size": 16, "api": NEW}),
                       ("Free", {"base": 0x7000, "size": 16, "api": DELETE_SIZED})],
    "another size": [("Alloc", {"address": 0x7000, "size": 16, "api": NEW}),
                     ("Free", {"base": 0x7000, "size": 8, "api": DELETE_SIZED})],
    "another family": [("Alloc", {"address": 0x7000, "size": 16, "api": NEW}),
                       ("Free", {"base": 0x7000, "api": 5})],
    "realloc of a family": [("Alloc", {"address": 0x7000, "size": 16, "api": NEW}),
                            ("ReAlloc", {"base": 0x7000, "address": 0x7100, "size": 8, "api": 3})],
    "failed": [("Alloc", {"address": 0, "size": 1 << 40, "api": 1, "result": 0})],
    "unknown realloc": [("ReAlloc", {"base": 0x7800, "address": 0x7900, "size": 8, "api": 3})],
    "a heap destroyed": [("Destroy", {"heap": 2, "api": 0}),
                         ("Alloc", {"heap": 2, "address": 0x7000, "size": 16, "api": 0})],
    "an overlap": [("Alloc", {"address": 0x7000, "size": 16, "api": 1}),
                   ("Alloc", {"address": 0x7000, "size": 8, "api": 1})],
}


class Summary(TestCase):
    def random_trace(self, seed, threads=1, trouble="none"):
        draw = random.Random(seed)
        script = Script().basics()
        for thread in range(1, threads):
            script.add("thread", os=1000 + thread, position="0:0")
        script.add("metadata", key="command", value="demo")
        live = {}
        for i in range(400):
            address = 0x10000 + 0x100 * draw.randrange(60)
            # Of several threads: each allocates and frees at once, now and then.
            if threads > 1 and live and draw.random() < 0.5:
                address = draw.choice(list(live)[-threads:])
            fields = {"stack": draw.randrange(1, 5), "wall": 1000 * i}
            if threads > 1:
                fields["thread"] = draw.randrange(1, threads + 1)
            if address not in live:
                script.alloc(address, draw.randrange(1, 200), **fields)
                live[address] = True
            elif draw.random() < 0.6:
                script.free(address, **fields)
                del live[address]
            else:
                target = 0x80000 + 0x100 * i if draw.random() < 0.5 else address
                script.realloc(address, target, draw.randrange(1, 300), **fields)
                del live[address]
                live[target] = True
            if threads > 1 and i % 50 == 0:
                script.add("flush")
        for action, fields in TROUBLES[trouble]:
            script.event(action, **{"stack": 2, "wall": 500_000, **fields})
        if threads == 1 and draw.random() < 0.5:
            script.free(0x9999, wall=500_000)
        return self.write(script.close(), f"trace{seed}.{threads}.{trouble.replace(' ', '_')}")

    def check_owner(self, owner, expected):
        if expected is None:
            self.assertIsNone(owner)
            return
        functions, share = expected
        self.assertIn(owner["function"], functions)
        self.assertAlmostEqual(owner["share"], share, 5)

    def test_it_says_what_the_commands_say(self):
        paths = [self.random_trace(seed) for seed in range(12)]
        paths += [self.random_trace(seed, threads=3) for seed in range(6)]
        paths += [self.random_trace(20 + i, 2, trouble) for i, trouble in enumerate(TROUBLES)]
        temporary = errors = 0
        for path in paths:
            with self.subTest(path=path):
                found = self.check_all(path)
            temporary += "3" in path and found["temporary"]["blocks"]
            errors += len(found["errors"])
        self.assertGreater(temporary, 20)
        self.assertGreater(errors, 11)

    def check_all(self, path):
        found = self.json_of("summary", path)
        by = ("--by", "function", "--limit", "0")
        leaks = self.json_of("leaks", path, "--show", "all", *by)
        peak = self.json_of("peak", path, *by)
        temporary = self.json_of("temporary", path, *by)
        moves = self.json_of("moves", path, *by)
        errors = self.json_of("errors", path, "--limit", "0")
        info = self.json_of("info", path)
        self.assertEqual((found["certain"], found["command"]), (errors["certain"], "demo"))
        for name in "closed", "end_reason", "end_code", "events", "threads", "fatal_signal":
            self.assertEqual(found[name], info[name], name)
        self.assertEqual((found["leaks"]["kind"], found["leaks"]["blocks"]),
                         ("never_released", leaks["total_blocks"]))
        self.assertEqual(found["leaks"]["bytes"], leaks["total_bytes"])
        self.check_owner(found["leaks"]["owner"], owner_of(leaks, "bytes"))
        self.assertEqual((found["peak"]["blocks"], found["peak"]["bytes"],
                          found["peak"]["position"]),
                         (peak["live_blocks"], peak["live_bytes"], peak["position"]))
        self.check_owner(found["peak"]["owner"], owner_of(peak, "bytes"))
        self.assertEqual(found["temporary"]["blocks"], temporary["temporary"])
        self.assertEqual(found["allocated"]["blocks"], temporary["allocations"])
        self.assertEqual(found["allocated"]["bytes"], temporary["bytes"])
        self.check_owner(found["temporary"]["owner"], owner_of(temporary, "temporary"))
        self.assertEqual((found["moves"]["moved"], found["moves"]["bytes_copied_at_most"]),
                         (moves["moved"], moves["bytes_copied_at_most"]))
        self.check_owner(found["moves"]["owner"], owner_of(moves, "bytes_copied_at_most"))
        self.assert_errors(found["errors"], errors["findings"])
        return found

    def assert_errors(self, found, findings):
        calls = {}
        for finding in findings:
            if finding["kind"] != "trace-inconsistency":
                calls[finding["kind"]] = calls.get(finding["kind"], 0) + finding["count"]
        self.assertEqual({error["kind"]: error["calls"] for error in found}, calls)

    def test_random_programs(self):
        """Of several heaps, with calls that overlap. With RUNS in the environment, of so many."""
        for seed in range(int(os.environ.get("RUNS", 10))):
            with self.subTest(seed=seed):
                script = oracle.program_script(random.Random(seed))
                script.add("metadata", key="command", value="demo")
                self.check_all(self.write(script.close(), f"program{seed}"))

    def test_nested_calls(self):
        """A signal handler's call while realloc() gets a block, which the thread then frees."""
        for between in range(2):
            script = Script(events_per_chunk=2).basics()
            script.realloc(0, 0x1000, 16, start="1:0", end="1:9")
            script.alloc(0x2000, 8, start="1:3", end="1:4")
            if between:
                script.free(0x2000, start="1:5", end="1:6")
            script.free(0x1000, start="1:10", end="1:11")
            path = self.write(script.close(), f"nested{between}")
            found = self.json_of("summary", path)
            wanted = self.json_of("temporary", path)
            self.assertEqual((found["certain"], found["temporary"]["blocks"]),
                             (True, wanted["temporary"]), between)
            self.assertEqual(wanted["temporary"], 1 + between)

    def test_few_temporary_blocks_have_no_owner(self):
        for others, is_named in ((99, True), (100, False)):
            script = Script().basics()
            for i in range(others):
                script.alloc(0x1000 + 64 * i, 50)
            script.alloc(0x90000, 7, stack=3)
            script.free(0x90000)
            text = self.run_ok("summary", self.write(script.close(), f"few{others}")).text
            after = text.split("\ntemporary  1 allocation (1 %) freed by the next call")[1]
            self.assertEqual(" % by " in after.split("\nmoves")[0], is_named)

    def test_text(self):
        script = Script().basics()
        script.add("metadata", key="command", value="demo")
        for i in range(10):
            script.alloc(0x1000 + 64 * i, 50, wall=1_000_000 * i)
        script.alloc(0x9000, 7, stack=3, wall=20_000_000)
        script.free(0x9000, wall=20_000_000)
        script.free(0x9000, wall=30_000_000)
        text = self.run_ok("summary", self.write(script.close(code=3))).text
        self.assertEqual(text.splitlines()[0], "demo")
        for line in ("info       exited 3 after 0 s", "           11 allocations, 507 bytes in all",
                     "double-free: 1 call", "leaks      500 bytes in 10 blocks never released",
                     "           100 % by g(int) (g.h:5)", "peak       507 bytes in 11 blocks at ",
                     "           99 % by g(int) (g.h:5)",
                     "temporary  1 allocation (9 %) freed by the next call",
                     "moves      nothing is reallocated"):
            self.assertIn(line, text)

    def test_a_long_command_line(self):
        """It takes one line, whatever is in it; `info` has all of it."""
        for i, command in enumerate(("/a/folder/" * 30 + "program", "python3 -c 'import json\n" * 9 + "end",
                                     "p " + "\x1b\u20ac\\" * 40, "€" * 79, "€" * 80,
                                     "€" * 81)):
            script = Script().basics()
            script.add("metadata", key="command", value="".join(
                f"%{byte:02x}" for byte in command.encode()))
            script.alloc(0x1000, 8)
            path = self.write(script.close(), f"command{i}")
            written = command.replace("\\", "\\\\").replace("\n", "\\x0a").replace("\x1b", "\\x1b")
            lines = self.run_ok("summary", path).text.splitlines()
            if len(written) <= 80:
                self.assertEqual(lines[0], written)
                continue
            head, tail = lines[0].split("…")
            self.assertTrue(72 < len(lines[0]) <= 80, lines[0])
            self.assertTrue(written.startswith(head) and written.endswith(tail), lines[0])
            self.assertTrue(lines[1].startswith("info "))
            self.assertIn(written, self.run_ok("info", path).text)
            self.assertEqual(self.json_of("summary", path)["command"], command)

    def test_doubtful_losses(self):
        """They have a line each, with the option of leaks that lists them."""
        script = SnapshotScript().basics()
        for address, size in ((0x20000, 64), (0x30000, 32), (0x40000, 16), (0x50000, 8)):
            script.alloc(address, size)
        script.free(0x20000)
        script.alloc(0x20000, 64)
        script.snapshot((IN_BSS, 0, 0x20000), (0x20000, 0x30000), (IN_BSS, 8, 0x40004))
        path = self.write(script.close())
        text = self.run_ok("summary", path).text
        self.assertIn("leaks      8 bytes in 1 block definitely lost\n", text)
        self.assertIn("\n           16 bytes in 1 block possibly lost (--show possible)\n"
                      "           32 bytes in 1 block held by possibly stale words (--show stale)\n",
                      text)
        found = self.json_of("summary", path)["leaks"]
        self.assertEqual((found["possibly_lost"], found["held_by_stale"]),
                         ({"blocks": 1, "bytes": 16}, {"blocks": 1, "bytes": 32}))
        for kind, size in ("possible", 16), ("stale", 32):
            listed = self.json_of("leaks", path, "--show", kind)["groups"]
            self.assertEqual([group["bytes"] for group in listed], [size])

    def test_sizes(self):
        for size, text in ((1, "1 byte"), (999, "999 bytes"), (1000, "1.00 kB"), (9994, "9.99 kB"),
                           (9995, "10.0 kB"), (99_949, "99.9 kB"), (99_950, "100 kB"),
                           (999_499, "999 kB"), (999_500, "1.00 MB"), (15_649_999, "15.6 MB"),
                           (2**63, "9.22 EB")):
            script = Script().basics()
            script.alloc(0x1000, size)
            self.assertIn(f"peak       {text} in 1 block at",
                          self.run_ok("summary", self.write(script.close(), str(size))).text)

    def test_lengths(self):
        for length, text in ((0, "0 s"), (1, "1 ns"), (999, "999 ns"), (1000, "1.00 us"),
                             (26_400_000, "26.4 ms"), (999_499_999, "999 ms"),
                             (999_500_000, "1.00 s"), (1_094_649_000, "1.09 s"),
                             (999_499_999_999, "999 s"), (86_400 * 10**9, "86,400 s")):
            script = Script().basics()
            script.alloc(0x1000, 8)
            path = self.write(script.close(wall=length), str(length))
            for command in "summary", "info":
                self.assertRegex(self.run_ok(command, path).text, f"exited 0 after {text}\n")

    def test_memory_that_is_no_heap(self):
        script = Script().basics()
        script.alloc(0x1000, 5592)
        path = self.write(script.close(), "without")
        found = self.json_of("summary", path)
        self.assertEqual((found["resident_bytes"], found["mapped_bytes"]), (None, None))
        self.assertNotIn("resident", self.run_ok("summary", path).text)
        script = Script().basics()
        script.alloc(0x1000, 5592)
        script.memory(100_000_000, 300_000_000, 206_000_000)
        script.memory(150_000_000, 250_000_000, 0)
        script.memory(10**10)  # not of the form
        path = self.write(script.close(), "with")
        found = self.json_of("summary", path)
        self.assertEqual((found["resident_bytes"], found["mapped_bytes"]),
                         (206_000_000, 300_000_000))
        text = self.run_ok("summary", path).text
        self.assertIn("\n           206 MB resident at most, 300 MB mapped, by samples\n"
                      "           the heap had 5.59 kB at most: most is ", text)
        script = Script().basics()
        script.alloc(0x1000, 5592)
        script.memory(1_000_000, 2_000_000, 206_000_000)  # the samples missed the mappings
        text = self.run_ok("summary", self.write(script.close(), "missed")).text
        self.assertIn("\n           206 MB resident at most, by samples\n", text)
        # They are no marks for people; what has another form is an event of an unknown client.
        marks = self.run_ok("marks", "--format", "json", path).json_lines
        self.assertEqual(len(marks), 1)
        self.assertEqual(self.json_of("info", path)["user_events"], 1)
        script = Script().basics()
        script.alloc(0x1000, 5_000_000)
        script.memory(6_000_000, 300_000_000, 6_000_000)
        self.assertNotIn("the heap had", self.run_ok("summary", self.write(script.close())).text)

    def test_kinds_of_a_snapshot(self):
        script = SnapshotScript().basics()
        for address in 0x10000, 0x20000, 0x30000, 0x40000:
            script.alloc(address, 64)
        script.snapshot((0x10000, 0x20000), (0x400100, 0x30008))
        path = self.write(script.close())
        found = self.json_of("summary", path)["leaks"]
        classes = self.json_of("leaks", path)["classes"]
        self.assertEqual(found["kind"], "definitely_lost")
        self.assertEqual((found["blocks"], found["bytes"]), (2, 128))
        for name, part in (("definitely_lost", found), ("indirectly_lost", found["indirectly_lost"]),
                           ("possibly_lost", found["possibly_lost"])):
            self.assertEqual((part["blocks"], part["bytes"]),
                             (classes[name]["blocks"], classes[name]["bytes"]), name)

    def test_width(self):
        """Within the width of the terminal, and the place of a function is kept."""
        script = Script().basics()
        script.add("stack", parent=1, module=1, offset=0x900)
        script.add("symbol", module=1, offset=0x900, frames=f"{LONG}@/a/place.c@77")
        script.alloc(0x1000, 100, stack=5)
        path = self.write(script.close())
        for columns in 80, 160:
            lines = self.run_ok("summary", path, env={"COLUMNS": str(columns),
                                                      "LC_ALL": "C.UTF-8"}).text.splitlines()
            owners = [line for line in lines if " by a_function" in line]
            self.assertEqual(len(owners), 2)
            for line in owners:
                self.assertTrue(line.endswith("columns (place.c:77)"), line)
                self.assertIn("by a_function", line)
                self.assertIn("…", line)
                self.assertEqual(len(line), columns)

    def test_blocks_without_bytes(self):
        """They weigh by their number."""
        script = Script().basics()
        for address in 0x1000, 0x2000, 0x3000:
            script.alloc(address, 0)
        found = self.json_of("summary", self.write(script.close()))["leaks"]
        self.assertEqual((found["blocks"], found["bytes"]), (3, 0))
        self.assertEqual((found["owner"]["share"], found["owner"]["blocks"]), (1, 3))
        self.assertNotEqual(found["owner"]["stack_id"], 0)

    def test_nothing_at_all(self):
        path = self.write(Script().close())
        found = self.json_of("summary", path)
        self.assertEqual([found[name]["owner"] for name in ("leaks", "peak", "temporary", "moves")],
                         [None] * 4)
        self.assertIn("none: all released", self.run_ok("summary", path).text)

    def test_rows(self):
        rows = self.run_ok("summary", "-f", "csv", self.random_trace(3)).csv
        self.assertEqual([row["finding"] for row in rows if row["finding"] != "invalid-free"],
                         ["never_released", "indirectly_lost", "possibly_lost", "peak", "temporary",
                          "moves", "allocated"])

    def test_a_gap(self):
        """A block that may have been released in it is not called released."""
        script = Script().basics()
        script.alloc(0x1000, 10)
        script.add("loss", reason=3, count="unknown", last_good="0:3", first_good="9:0")
        text = self.run_ok("summary", self.write(script.close())).text
        self.assertNotIn("all released", text)
        self.assertIn("Uncertain", text)

    def test_a_peak_behind_a_gap(self):
        """Blocks that were released in the gap may make it; what came before it is known."""
        said = "perhaps less: recording was off before"
        for last_good, first_good, is_said in (("2:0", "5:0", True), ("7:0", "8:0", False)):
            script = Script().basics()
            script.alloc(0x1000, 10, start="1:0", end="1:1")
            script.alloc(0x2000, 20, start="6:0", end="6:1")
            script.free(0x2000, start="9:0", end="9:1")
            script.add("loss", reason=3, count="unknown", last_good=last_good,
                       first_good=first_good)
            path = self.write(script.close(), f"gap{is_said}")
            for command in (("peak",), ("summary",), ("summary", "--brief")):
                text = self.run_ok(*command, path).text
                self.assertEqual(said in text, is_said, command)

    def test_pools(self):
        """What lies in them is said by all that may say that nothing is lost."""
        def written(*texts):
            script = Script().basics()
            script.alloc(0x1000, 10)
            for text in texts:
                script.add("metadata", key="pooled", value=text)
            return self.write(script.close(), f"{len(texts)}")
        path = written("slices%20(X=1)", "%1b[7mobjects", "x" * 64, *"abcd")
        wanted = ["slices (X=1)", "\x1b[7mobjects", "a", "b"]
        shown = [text.replace("\x1b", r"\x1b") for text in wanted]
        for command in ("leaks", "summary"):
            self.assertEqual(self.json_of(command, path)["pooled"], wanted)
            lines = self.run_ok(command, path).text.splitlines()
            self.assertEqual([line.strip() for line in lines if "Unrecorded pools: " in line],
                             [f"Unrecorded pools: {text}" for text in shown])
        path = written()
        self.assertNotIn("pools", self.run_ok("leaks", path).text)
        self.assertEqual(self.json_of("leaks", path)["pooled"], [])

    def test_an_attached_process(self):
        script = Script().basics()
        script.add("metadata", key="before", value="2-blocks")
        script.alloc(0x1000, 10)
        path = self.write(script.close())
        self.assertIn("\n           among them 2-blocks\n", self.run_ok("summary", path).text)
        self.assertEqual(self.json_of("summary", path)["before"], "2-blocks")

    def test_a_signal(self):
        script = Script().basics()
        script.alloc(0x1000, 10)
        script.add("fatal", position="9:0", code=1, address=0x1001, registers="0:0x1002")
        path = self.write(script.close(reason=2, code=11), "fatal")
        self.assertIn("errors     SIGSEGV", self.run_ok("summary", path).text)
        self.assertEqual(self.json_of("summary", path)["fatal_signal"]["signal"], 11)


if __name__ == "__main__":
    support.main()
