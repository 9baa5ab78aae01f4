# SPDX-License-Identifier: MIT
"""A trace that is still being written: every command works up to what is there, and says so"""

import json
import random

import oracle
import support
from support import TestCase, run

HEADER = 112
EVENTS = 8

# Commands, with members that tell of the file and not of the heap.
COMMANDS = (("info",), ("events",), ("leaks", "--limit", "0"), ("moves", "--limit", "0"),
            ("state", "--limit", "0", "--blocks", "--address", "0x2000"),
            ("history", "--address", "0x1000", "--size", "0x4000"), ("peak", "--limit", "0"),
            ("diff", "--limit", "0", "--from", "4:0"), ("diff", "--changes", "--from", "4:0"),
            ("hot", "--limit", "0"), ("temporary", "--limit", "0"), ("lifetimes",), ("timeline",),
            ("timeline", "--over", "position"), ("fragmentation", "--gap", "1"), ("errors",))
OF_THE_FILE = ("certain", "reasons", "closed", "end_reason", "end_code", "file_bytes", "chunks",
               "lost_events_exact", "loss_list", "chunk_list", "trace", "bytes_per_event", "old", "new", "judged")


def chunks(data):
    """(offset, size, kind, events) of each chunk."""
    found, offset = [], 0
    while offset < len(data):
        stored = int.from_bytes(data[offset + 16:offset + 20], "little")
        kind = int.from_bytes(data[offset + 10:offset + 12], "little")
        count = int.from_bytes(data[offset + 56:offset + 60], "little")
        size = HEADER + (stored + 7) // 8 * 8
        found.append((offset, size, kind, count if kind == EVENTS else 0))
        offset += size
    return found


def prefix(script, events):
    """The script with its first events only, closed."""
    lines, left = [], events
    for line in script.lines:
        if line.startswith("close"):
            continue
        if line.startswith("event "):
            left -= 1
            if left < 0:
                continue
        lines.append(line)
    script.lines = lines
    return script.close()


class Growing(TestCase):
    def setUp(self):
        super().setUp()
        # Of each command and closed trace, the result.
        self.closed = {}

    def cut(self, data, size, name):
        path = self.path(name)
        with open(path, "wb") as file:
            file.write(data[:size])
        return path

    def strip(self, found):
        if isinstance(found, list):
            return [self.strip(item) for item in found]
        if isinstance(found, dict):
            return {k: self.strip(v) for k, v in found.items()
                    if k not in OF_THE_FILE and v != "live_at_end"}
        return found

    def check_oracle(self, path, rows):
        """The model's answer for the present events."""
        self.assertEqual(self.run_ok("events", "-f", "json", path).json_lines, rows)
        blocks = oracle.owners(rows)
        last = (1 << 62, 0)
        live = [b for b in blocks if b.live(last)]
        state = self.json_of("state", path, "--limit", "0")
        self.assertEqual((state["live_blocks"], state["live_bytes"]),
                         (len(live), sum(b.size for b in live)))
        self.assertEqual({g["stack_id"]: (g["blocks"], g["bytes"]) for g in state["groups"]},
                         oracle.sums(live, lambda b: b.row["stack"]))
        sizes = [sum(b.size for b in blocks if b.live(at)) for at in oracle.positions(rows)]
        self.assertEqual(self.json_of("peak", path)["live_bytes"], max(sizes))
        self.assertEqual(self.json_of("hot", path)["allocations"], len(blocks))
        diff = self.json_of("diff", path)
        self.assertEqual((diff["aifi"]["blocks"], diff["aifo"]["blocks"]),
                         (len(blocks) - len(live), len(live)))

    def check(self, path, whole, truncated):
        """`whole` has the same events, and was closed."""
        for command in COMMANDS:
            with self.subTest(command=command):
                cut = self.run_ok(*command, "-f", "json", path)
                if (command, whole) not in self.closed:
                    self.closed[command, whole] = self.run_ok(*command, "-f", "json", whole)
                closed = self.closed[command, whole]
                if command[0] == "events":
                    self.assertEqual(cut.json_lines, closed.json_lines)
                    self.assertIn("not closed cleanly", cut.errors)
                    continue
                self.assertEqual(self.strip(cut.json), self.strip(closed.json))
                if command[0] == "info":
                    self.assertIs(cut.json["closed"], False)
                    self.assertIs(cut.json["lost_events_exact"], False)
                    self.assertIsNone(cut.json["loss_list"][-1]["events"])
                    self.assertIn("not closed", self.run_ok("info", path).text)
                    continue
                if "certain" in closed.json and command[0] != "diff":
                    self.assertIs(cut.json["certain"], False)
                text = json.dumps(cut.json)
                self.assertIn("the trace was not closed cleanly", text)
                self.assertEqual("ends within a chunk" in text, truncated, text)
                self.assertIn("not closed cleanly", self.run_ok(*command, path).text)
                self.assertEqual("truncated" in cut.errors, truncated)

    def test_cuts(self):
        for seed in (400, 401):
            script = oracle.random_script(random.Random(seed), 30)
            source = self.write(script, f"{seed}")
            with open(source, "rb") as file:
                data = file.read()
            rows = self.run_ok("events", "-f", "json", source).json_lines
            all_chunks = chunks(data)
            definitions = next(o for o, _, kind, _ in all_chunks if kind == EVENTS)
            done = 0
            for i, (offset, size, kind, count) in enumerate(all_chunks):
                if offset >= definitions:
                    whole = self.write(prefix(oracle.random_script(random.Random(seed), 30), done),
                                       f"{seed}.{i}.whole")
                    for cut, truncated in ((0, False), (5, True), (HEADER + 3, True),
                                           (size - 1, True)):
                        path = self.cut(data, offset + cut, f"{seed}.{i}.{cut}")
                        with self.subTest(seed=seed, chunk=i, cut=cut):
                            self.check_oracle(path, rows[:done])
                            if cut in (0, HEADER + 3):
                                self.check(path, whole, truncated)
                done += count
            self.assertEqual(done, len(rows))

    def test_cuts_in_definitions(self):
        """Nothing happened yet."""
        source = self.write(oracle.random_script(random.Random(7), 30))
        with open(source, "rb") as file:
            data = file.read()
        for offset, size, kind, _ in chunks(data)[1:]:
            if kind == EVENTS:
                break
            for cut in (0, 3, HEADER, size - 8):
                path = self.cut(data, offset + cut, "cut")
                for command in COMMANDS:
                    with self.subTest(offset=offset, cut=cut, command=command):
                        self.run_ok(*command, "-f", "json", path)
                self.assertEqual(self.json_of("state", path)["live_blocks"], 0)
                self.assertIs(self.json_of("state", path)["certain"], False)

    def test_first_chunk_is_not_there_yet(self):
        source = self.write(oracle.random_script(random.Random(7), 30))
        with open(source, "rb") as file:
            data = file.read()
        for size in (0, 4, 60, 150):
            path = self.cut(data, size, "cut")
            for command in COMMANDS:
                result = run(*command, path)
                self.assertIn(result.status, (support.OPEN, support.DAMAGED), (size, command))
                self.assertIn("cut: ", result.errors)

    def test_diff_of_two(self):
        source = self.write(oracle.random_script(random.Random(8), 30))
        with open(source, "rb") as file:
            data = file.read()
        offset = [o for o, _, kind, _ in chunks(data) if kind == EVENTS][2]
        path = self.cut(data, offset + 50, "cut")
        for pair, torn in (((path, source), "old"), ((source, path), "new")):
            found = self.run_ok("diff", "-f", "json", *pair).json
            self.assertIs(found["certain"], False)
            for side in ("old", "new"):
                self.assertEqual("ends within a chunk" in str(found[side]["reasons"]), side == torn)


if __name__ == "__main__":
    support.main()
