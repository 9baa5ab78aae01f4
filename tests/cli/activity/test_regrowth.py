# SPDX-License-Identifier: MIT
"""ttdanalyze moves: growth by allocating, copying and releasing, which is inferred"""

import random

import support
from support import Script, TestCase

CALLS = 8


class Model:
    """The expected report, from the calls themselves, in the order of the trace."""

    def __init__(self):
        self.calls = []
        self.live = {}

    def alloc(self, address, size, stack, thread, heap, is_new=True):
        self.live[address] = dict(size=size, stack=stack, heap=heap, is_new=is_new,
                                  number=len(self.calls))
        self.calls.append(dict(thread=thread, block=self.live[address], freed=False, used=False))

    def forget(self, old, thread):
        for call in self.calls:
            if call["block"] is old and call["thread"] == thread:
                call["freed"] = True

    def free(self, address, thread):
        old = self.live.pop(address)
        number = len(self.calls)
        self.calls.append(dict(thread=thread, block=None, old=old))
        self.forget(old, thread)
        return self.match(old, thread, number)

    def match(self, old, thread, number):
        """The growth that the call is the end of: (stack, old size, new size), or None."""
        recent = [call for call in self.calls[:number + 1] if call["thread"] == thread][-CALLS:]
        for call in reversed(recent):
            new = call["block"]
            if new and not call["freed"] and not call["used"] and new["is_new"] and \
                    old["is_new"] and new["size"] > old["size"] and new["stack"] and \
                    new["stack"] == old["stack"] and new["heap"] == old["heap"] and \
                    new["number"] > old["number"]:
                call["used"] = True
                return old["stack"], old["size"], new["size"]
        return None


class Regrowth(TestCase):
    def inferred(self, script, *arguments):
        self.count = getattr(self, "count", 0) + 1
        path = self.write(script.close(), f"trace{self.count}")
        found = self.json_of("moves", path, "--limit", "0", *arguments)
        return found["inferred"]

    def grow(self, script, sizes, between=0, stack=2, **fields):
        """A container that grows through these sizes, with so many other calls each time."""
        address = 0x10000000
        for number, size in enumerate(sizes):
            script.alloc(address + 0x100000 * number, size, stack=stack, **fields)
            for other in range(between):
                script.alloc(0x50000000 + 0x1000 * number + 16 * other, 8, stack=3, **fields)
            if number:
                script.free(address + 0x100000 * (number - 1), stack=stack, **fields)

    def test_vector(self):
        script = Script().basics()
        self.grow(script, [100, 200, 400, 800, 1600])
        script.realloc(0, 0x9000, 10, stack=3)
        script.realloc(0x9000, 0xa010, 20, stack=3)
        path = self.write(script.close())
        found = self.json_of("moves", path)
        self.assertEqual((found["reallocs"], found["bytes_copied"], found["total_groups"]),
                         (2, 10, 1))
        group = found["inferred"]["groups"][0]
        self.assertEqual((found["inferred"]["replaced"], found["inferred"]["bytes_copied_at_most"],
                          found["inferred"]["total_groups"]), (4, 1500, 1))
        self.assertEqual((group["replaced"], group["bytes_copied_at_most"], group["smallest_size"],
                          group["largest_size"], group["growth"], group["growth_factor"],
                          group["stack"][0]["function"]),
                         (4, 1500, 100, 1600, "geometric", 2, "g(int)"))
        text = self.run_ok("moves", path).text
        self.assertIn("Inferred, and no reallocations: ", text)
        self.assertIn("at most 1,500 bytes copied when a block was replaced by a larger one, 4 "
                      "times\n    sizes from 100 to 1,600; growth: geometric", text)
        self.assertIn("All: 2 reallocations: 1 moved, 0 in place, 1 from NULL\n     10 bytes copied\n"
                      "Inferred, not among these: at most 1,500 bytes copied", text)
        rows = self.run_ok("moves", "-f", "csv", path).csv
        self.assertEqual([(r["kind"], r["reallocs"], r["moved"], r["bytes_copied_at_most"], r["growth"])
                          for r in rows],
                         [("realloc", "2", "1", "10", "unknown"),
                          ("inferred", "", "4", "1500", "geometric")])
        self.assertEqual(self.run_ok("moves", "-f", "folded", path).text.splitlines(),
                         ["main;libwork.so+0x300 10", "[inferred];main;f::run();g(int) 1500"])
        self.assertEqual(self.json_of("moves", path, "--tree", "top-down")["total_bytes"], 10)
        found = self.json_of("moves", path, "--by", "function", "--exclude", "libwork")
        self.assertEqual((found["reallocs"], found["inferred"]["replaced"]), (0, 4))
        self.assertEqual(found["inferred"]["groups"][0]["function"], "g(int)")
        found = self.json_of("moves", path, "--include", "libwork")
        self.assertEqual((found["reallocs"], found["inferred"]["replaced"],
                          found["inferred"]["groups"]), (2, 0, []))

    def test_what_is_none(self):
        for sizes, fields in (([800, 400, 200], {}), ([100, 100, 100], {}),
                              ([100, 200, 400], {"between": CALLS - 1}), ([100, 200], {"stack": 0})):
            script = Script().basics()
            self.grow(script, sizes, **fields)
            self.assertEqual(self.inferred(script)["replaced"], 0, (sizes, fields))
        script = Script().basics()
        self.grow(script, [100, 200, 400], between=CALLS - 2)
        self.assertEqual(self.inferred(script)["replaced"], 2)
        # Another stack, another thread, another heap; a larger block that is released itself.
        script = Script().basics()
        script.alloc(0x1000, 10)
        script.alloc(0x2000, 20, stack=3)
        script.free(0x1000)
        script.alloc(0x3000, 10)
        script.alloc(0x4000, 20, thread=2)
        script.free(0x3000)
        script.alloc(0x5000, 10)
        script.alloc(0x6000, 20, heap=2)
        script.free(0x5000)
        for _ in range(CALLS):
            script.alloc(0x7000, 1, stack=3)
            script.free(0x7000)
        script.alloc(0x8000, 10)
        script.alloc(0x9000, 20)
        script.free(0x9000)
        script.free(0x8000)
        self.assertEqual(self.inferred(script)["replaced"], 0)

    def test_random(self):
        seen = 0
        for seed in range(12):
            chance = random.Random(seed)
            script, model, expected, free = Script().basics(), Model(), {}, 0x1000
            for _ in range(400):
                thread = chance.choice([1, 1, 2])
                if model.live and chance.random() < 0.5:
                    address = chance.choice(list(model.live)[-6:])
                    if chance.random() < 0.1:
                        old = model.live.pop(address)
                        heap = old["heap"]
                        model.forget(old, thread)
                        script.realloc(address, free, 50, thread=thread, heap=heap)
                        model.alloc(free, 50, 2, thread, heap, is_new=False)
                        free += 0x1000
                        continue
                    script.free(address, thread=thread, heap=model.live[address]["heap"])
                    growth = model.free(address, thread)
                    if growth:
                        expected.setdefault(growth[0], []).append(growth[1:])
                    continue
                size, stack = chance.randrange(1, 60), chance.choice([0, 2, 2, 3])
                heap = chance.choice([1, 1, 1, 2])
                script.alloc(free, size, stack=stack, thread=thread, heap=heap)
                model.alloc(free, size, stack, thread, heap)
                free += 0x1000
            found = self.inferred(script)
            self.assertEqual({g["stack_id"]: (g["replaced"], g["bytes_copied_at_most"],
                                              g["smallest_size"], g["largest_size"])
                              for g in found["groups"]},
                             {stack: (len(sizes), sum(old for old, _ in sizes),
                                      min(old for old, _ in sizes), max(new for _, new in sizes))
                              for stack, sizes in expected.items()}, seed)
            self.assertEqual(found["replaced"], sum(map(len, expected.values())))
            seen += found["replaced"]
        self.assertGreater(seen, 100)


if __name__ == "__main__":
    support.main()
