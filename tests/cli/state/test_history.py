# SPDX-License-Identifier: MIT
"""ttdanalyze history and state --address say the same with an index as without"""

import os
import random

import oracle
import support
from index_doubt import without_doubt
from support import Script, TestCase, run

FAR = 0x10000000  # where the blocks of a churn begin


def nested():
    """Blocks inside a block that is live all the time, as an allocator within another has them."""
    script = Script().basics()
    script.alloc(0x1000, 0x1000)
    for step in range(20):
        script.alloc(0x1800, 16 + step, heap=2, stack=3)
        script.free(0x1800, heap=2, stack=4)
    script.free(0x1000)
    return script.close()


class WithIndex(TestCase):
    def check(self, path, *arguments):
        """The answer, which must be the same from the index and from a replay of everything."""
        answers = [run(*arguments, *extra, path) for extra in ((), ("--no-index",))]
        self.assertEqual(answers[0].status, 0, answers[0].errors)
        self.assertEqual(*(answer.status for answer in answers), arguments)
        self.assertEqual(*(without_doubt(path, answer) for answer in answers), arguments)
        return answers[0]

    def index(self, path):
        self.run_ok("index", path)
        self.assertTrue(os.path.exists(path + ".idx"))
        return path

    def test_random_traces(self):
        blocks = 0
        for seed in range(12):
            chance = random.Random(seed)
            path = self.index(self.write(oracle.random_script(chance, 60), f"trace{seed}"))
            positions = oracle.positions(self.run_ok("events", "-f", "json", path).json_lines)
            for first, size in ((0x1000, 1), (0x1fff, 2), (0x2f00, 0x300), (1, 1 << 20)):
                found = self.check(path, "history", "-f", "json", "--address", first,
                                   "--size", size, "--limit", chance.choice((1, 3, 1000)))
                blocks += found.json["total_blocks"]
            for at in chance.sample(positions, 3):
                self.check(path, "state", "--at", oracle.spell(at), "--address", 0x3010)
        self.assertGreater(blocks, 100)

    def test_nested(self):
        path = self.index(self.write(nested()))
        found = self.check(path, "history", "-f", "json", "--address", 0x1801).json
        self.assertEqual(found["total_blocks"], 21)
        self.assertEqual(found["blocks"][0]["size"], 0x1000)
        for at in ("25%", "50%", "end"):
            self.check(path, "state", "--at", at, "--address", 0x1801)

    def test_keyframes(self):
        script = Script().basics()
        script.add("churn", count=400000, slots=500, position="2:0")
        path = self.index(self.write(script.close()))
        owned = 0
        for step in range(4):
            address = FAR + 0x40 * 83 * step
            owned += self.check(path, "history", "-f", "json", "--address", address,
                                "--limit", 5).json["total_blocks"]
            self.check(path, "state", "--at", "60%", "--address", address)
        self.assertGreater(owned, 1000)


if __name__ == "__main__":
    support.main()
