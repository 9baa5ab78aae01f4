# SPDX-License-Identifier: MIT
"""ttdanalyze state and history"""

import random

import oracle
import support
from support import Script, TestCase, run


def small():
    script = Script().basics()
    script.alloc(0x1000, 100)                               # 0:1 to 0:2
    script.alloc(0x2000, 50, stack=3, thread=2, heap=2)     # 0:3 to 1:0
    script.realloc(0x1000, 0x3000, 700)                     # 1:1 to 1:2
    script.free(0x2000, heap=2, thread=2, stack=4)          # 1:3 to 2:0
    script.alloc(0x2010, 8, stack=1)                        # 2:1 to 2:2
    return script.close()


class State(TestCase):
    def setUp(self):
        super().setUp()
        self.trace = self.write(small())

    def state(self, at, *arguments):
        return self.json_of("state", self.trace, "--at", at, *arguments)

    def test_threads(self):
        """Chunks that are netted at the same time are added in order: the output stays."""
        script = Script().basics()
        for i in range(3000):
            if i % 20 == 0:
                script.add("flush")
            script.alloc(0x10000 + 16 * i, 1 + i % 50, stack=1 + i % 4, wall=i * 1000)
            if i % 3:
                script.free(0x10000 + 16 * (i - i % 7), wall=i * 1000)
                script.alloc(0x10000 + 16 * (i - i % 7), 7, stack=1 + i % 3, wall=i * 1000)
        path = self.write(script.close(wall=3000000), "threads.ttd")
        for command in (["leaks"], ["state", "--blocks"], ["leaks", "-f", "json"]):
            outputs = {run(*command, "--limit", "0", "--threads", threads, path).text
                       for threads in ("1", "2", "16", "99999999999")}
            self.assertEqual(len(outputs), 1, command)
        for wrong in ("0", "x", "-1"):
            self.assertEqual(run("leaks", "--threads", wrong, path).status, support.USAGE)

    def test_views(self):
        found = self.state("1:0")
        self.assertEqual((found["position"], found["live_blocks"], found["live_bytes"],
                          found["total_groups"], found["certain"]), ("1:0", 2, 150, 2, True))
        self.assertEqual(found["heaps"],
                         [{"heap_id": 1, "heap": "0x0", "name": "malloc", "parent_heap_id": 0,
                           "blocks": 1, "bytes": 100},
                          {"heap_id": 2, "heap": "0xb00000", "name": "private",
                           "parent_heap_id": 0, "blocks": 1, "bytes": 50}])
        self.assertEqual([(t["thread"], t["name"], t["bytes"]) for t in found["threads"]],
                         [(1, "main", 100), (2, "worker", 50)])
        self.assertEqual([(s["smallest"], s["largest"], s["blocks"]) for s in found["sizes"]],
                         [(64, 127, 1), (32, 63, 1)])
        self.assertEqual([(g["stack_id"], g["bytes"]) for g in found["groups"]],
                         [(2, 100), (3, 50)])
        text = self.run_ok("state", "--at", "1:0", self.trace).text
        self.assertIn("heap 2 private", text)
        self.assertIn("thread 2 worker", text)
        self.assertIn("64 to 127 bytes", text)
        self.assertIn("Live at 1:0: 2 blocks, 150 bytes, from 2 stacks\n", text)
        rows = self.run_ok("state", "--at", "1:0", "-f", "csv", self.trace).csv
        for more in (("--blocks",), ("--address", "0x1000")):
            result = run("state", *more, "-f", "csv", self.trace)
            self.assertEqual((result.status, result.text), (support.USAGE, ""))
        self.assertEqual([(r["bytes"], r["stack"]) for r in rows],
                         [("100", "g(int);f::run();main"), ("50", "libwork.so+0x300;main")])

    def test_in_flight(self):
        found = self.state("1:1")
        self.assertEqual((found["live_bytes"], found["reallocs_in_flight"]), (50, 1))

    def test_empty(self):
        found = self.state("start")
        self.assertEqual((found["live_blocks"], found["groups"], found["heaps"]), (0, [], []))

    def test_blocks(self):
        found = self.state("end", "--blocks")["blocks"]
        self.assertEqual([(b["address"], b["size"], b["allocated"], b["number"]) for b in found],
                         [("0x2010", 8, "2:2", 4), ("0x3000", 700, "1:2", 2)])
        self.assertNotIn("blocks", self.state("end"))
        self.assertIn("  0x2010", self.run_ok("state", "--blocks", self.trace).text)

    def test_blocks_of_stacks(self):
        """The list has the blocks that the totals count."""
        for option, addresses in (("--include", ["0x1000"]), ("--exclude", ["0x2000"])):
            found = self.state("1:0", "--blocks", option, "f::run")
            self.assertEqual([b["address"] for b in found["blocks"]], addresses)
            self.assertEqual(found["live_blocks"], 1)

    def test_options_without_effect(self):
        """They are refused, whatever else is given."""
        for command, *options in (
                ("state", "--tree", "top-down", "--blocks"), ("state", "--tree=top-down", "--heaps"),
                ("state", "--tree", "bottom-up", "--address", "0x1000"),
                ("state", "--address", "0x1000", "--include", "main"),
                ("state", "--address", "0x1000", "--by", "heap"),
                ("state", "--show-runtime", "--tree", "top-down"),
                ("leaks", "--show-runtime", "--tree", "top-down"),
                ("peak", "--show-runtime", "-f", "folded"),
                ("diff", "--show-runtime", "--tree", "top-down"),
                ("moves", "--chains", "3", "--tree", "top-down")):
            result = run(command, *options, self.trace)
            self.assertEqual((result.status, result.text), (support.USAGE, ""), options)

    def test_address(self):
        found = self.state("1:0", "--address", "0x2017")["address"]
        self.assertEqual((found["status"], found["offset"], found["block"]["address"],
                          found["block"]["released"], found["block"]["released_by"]["stack_id"]),
                         ("live", 0x17, "0x2000", "1:3", 4))
        self.assertEqual(found["next"]["allocated"], "2:2")
        found = self.state("2:0", "--address", "0x2017")["address"]
        self.assertEqual((found["status"], found["block"]["released"], found["next"]["address"]),
                         ("freed", "1:3", "0x2010"))
        found = self.state("0:0", "--address", "0x3000")["address"]
        self.assertEqual((found["status"], found["block"], found["next"]["previous_address"]),
                         ("never allocated", None, "0x1000"))
        text = self.run_ok("state", "--at", "2:0", "--address", "0x2017", self.trace).text
        self.assertIn("0x2017 is in no live block; it was in 0x2000, 50 bytes\n", text)
        self.assertIn("next in 0x2010, 8 bytes\n", text)
        text = self.run_ok("state", "--at", "1:0", "--address", "0x2017", self.trace).text
        self.assertIn("0x2017 lies 23 bytes inside the block at 0x2000, 50 bytes\n", text)
        # The answer alone, without the heap before it.
        self.assertTrue(text.startswith("0x2017 "), text)
        self.assertNotIn("Live at", text)

    def test_neighbours_of_an_address(self):
        found = self.state("end", "--address", "0x2800")["address"]
        self.assertEqual((found["before"]["address"], found["before"]["size"],
                          found["before"]["allocated"]["position"], found["after"]["address"]),
                         ("0x2010", 8, "2:2", "0x3000"))
        inside = self.state("end", "--address", "0x2012")["address"]
        self.assertEqual((inside["before"], inside["after"]["address"]), (None, "0x3000"))
        text = self.run_ok("state", "--address", "0x2800", self.trace).text
        self.assertIn("  the block before it, at 0x2010, begins 2,032 bytes before it and has 8 bytes\n",
                      text)
        self.assertIn("  the block behind it, at 0x3000, 2,048 bytes behind it, has 700 bytes\n",
                      text)

    def test_uncertain(self):
        script = Script().basics()
        script.alloc(0x1000, 100, start="1:0", end="1:1")
        script.alloc(0x2000, 100, start="7:0", end="7:1")
        script.add("loss", reason=1, count=3, last_good="5:0", first_good="6:0")
        self.trace = self.write(script.close(), "lossy")
        self.assertIs(self.state("1:1")["certain"], True)
        self.assertIs(self.state("7:1")["certain"], False)

    def test_usage(self):
        self.assertEqual(run("state", "--at", "x", self.trace).status, support.USAGE)
        self.assertEqual(run("history", self.trace).status, support.USAGE)
        self.assertEqual(run("history", "--address", "1", "--size", "0", self.trace).status,
                         support.USAGE)


class History(TestCase):
    def setUp(self):
        super().setUp()
        self.trace = self.write(small())

    def test_history(self):
        found = self.json_of("history", self.trace, "--address", "0x2010")
        self.assertEqual([(b["address"], b["size"], b["allocated"], b["released"])
                          for b in found["blocks"]],
                         [("0x2000", 50, "1:0", "1:3"),
                          ("0x2010", 8, "2:2", None)])
        first = found["blocks"][0]
        self.assertEqual((first["allocated_by"]["stack_id"], first["allocated_by"]["thread"],
                          first["released_by"]["stack_id"], first["released_by"]["api"]),
                         (3, 2, 4, "free"))
        text = self.run_ok("history", "--address", "0x2010", self.trace).text
        self.assertIn("Block 2: 0x2010, 8 bytes\n  allocated by malloc() at 2:2 in thread 1\n",
                      text)
        self.assertIn("  never released\n", text)
        self.assertIn("2 blocks covered 0x2010\n", text)
        rows = self.run_ok("history", "-f", "csv", "--address", "0x2010", self.trace).csv
        self.assertEqual([(r["allocated"], r["released_by"]) for r in rows],
                         [("1:0", "Free"), ("2:2", "")])

    def test_limit(self):
        found = self.json_of("history", self.trace, "--address", "0", "--size", "1M",
                             "--limit", "2")
        self.assertEqual(found["total_blocks"], 4)
        self.assertEqual([b["address"] for b in found["blocks"]], ["0x3000", "0x2010"])
        self.assertIn("the last 2 are shown", self.run_ok(
            "history", "--address", "0", "--size", "1M", "--limit", "2", self.trace).text)


class Oracle(TestCase):
    """Random traces against a model, at random positions."""

    def check_state(self, path, blocks, at):
        live = [b for b in blocks if b.live(at)]
        found = self.json_of("state", path, "--limit", "0", "--blocks", "--at", oracle.spell(at))
        self.assertEqual([(b["address"], b["size"], b["allocated"], b["number"])
                          for b in found["blocks"]],
                         [(hex(b.address), b.size, oracle.spell(b.allocated), b.row["number"])
                          for b in sorted(live, key=lambda b: (b.address, b.row["heap_id"]))])
        self.assertEqual((found["live_blocks"], found["live_bytes"]),
                         (len(live), sum(b.size for b in live)))
        for name, id_name, key in (("heaps", "heap_id", lambda b: b.row["heap_id"]),
                                   ("threads", "thread", lambda b: b.row["thread"]),
                                   ("groups", "stack_id", lambda b: b.row["stack"]),
                                   ("sizes", "smallest",
                                    lambda b: 1 << (b.size.bit_length() - 1) if b.size else 0)):
            self.assertEqual({g[id_name]: (g["blocks"], g["bytes"]) for g in found[name]},
                             oracle.sums(live, key), name)

    def check_address(self, path, blocks, at, address):
        found = self.json_of("state", path, "--at", oracle.spell(at), "--address", address)
        mine = [b for b in blocks if b.covers(address, address)]
        live = [b for b in mine if b.live(at)]
        before = [b for b in mine if b.released <= at]
        after = [b for b in mine if b.allocated > at]
        owner = (live or before or [None])[-1]
        status = "live" if live else "freed" if before else "never allocated"
        answer = found["address"]
        self.assertEqual(answer["status"], status)
        self.assertEqual(answer["block"] and answer["block"]["allocated"],
                         owner and oracle.spell(owner.allocated))
        self.assertEqual(answer["next"] and answer["next"]["allocated"],
                         after[0].allocated and oracle.spell(after[0].allocated)
                         if after else None)

    def check_history(self, path, blocks, address, size):
        found = self.json_of("history", path, "--address", address, "--size", size)
        self.assertEqual([(b["address"], b["size"], b["allocated"], b["released"],
                           b["released_by"] and b["released_by"]["stack_id"])
                          for b in found["blocks"]],
                         [(hex(b.address), b.size, oracle.spell(b.allocated),
                           oracle.spell(b.released), b.by and b.by["stack"])
                          for b in blocks if b.covers(address, address + size - 1)])

    def test_random(self):
        for seed in range(12):
            chance = random.Random(seed)
            path = self.write(oracle.random_script(chance), f"trace{seed}")
            rows = self.run_ok("events", "-f", "json", path).json_lines
            blocks = oracle.owners(rows)
            with self.subTest(seed=seed):
                for at in chance.sample(oracle.positions(rows), 5):
                    self.check_state(path, blocks, at)
                    self.check_address(path, blocks, at, chance.choice([1, 2, 3, 4]) * 0x1000 + 5)
                self.check_history(path, blocks, 0x1ff0, 0x20)
                self.check_history(path, blocks, 0x3000, 1)


if __name__ == "__main__":
    support.main()
