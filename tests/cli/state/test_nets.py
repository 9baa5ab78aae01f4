# SPDX-License-Identifier: MIT
"""The end of a trace is found from its chunks, netted each by itself, or by a replay of its events:
the answers are the same. With RUNS=1000 in the environment, of so many random programs."""

import os
import random

import oracle
import support
from support import TestCase

# Behind all events, but not the end: only a replay knows where it is.
BEHIND = "FFFFFFFF:0"
COMMANDS = (["leaks"], ["leaks", "--by", "heap"], ["state"], ["state", "--blocks"])


class Nets(TestCase):
    def of(self, command, path, *options):
        return self.json_of(command[0], path, "--no-index", *command[1:], *options)

    def compare(self, path):
        for command in COMMANDS:
            netted = self.of(command, path, "--threads", "1")
            self.assertEqual(self.of(command, path, "--threads", "16"), netted, command)
            self.assertEqual(self.of(command, path, "--at", BEHIND), netted, command)
        return netted

    def test_random_programs(self):
        runs = int(os.environ.get("RUNS", 30))
        blocks = certain = 0
        for seed in range(runs):
            with self.subTest(seed=seed):
                script = oracle.program_script(random.Random(seed))
                found = self.compare(self.write(script.close(), f"{seed}.ttd"))
                blocks += found["live_blocks"]
                certain += found["certain"]
        self.assertGreater(blocks, runs)
        self.assertGreater(certain, runs / 3)
        self.assertLess(certain, runs)


if __name__ == "__main__":
    support.main()
