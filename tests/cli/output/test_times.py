# SPDX-License-Identifier: MIT
"""Text tells when something happened, beside where"""

import re
import unittest

from support import Script, TestCase

SECOND = 1_000_000_000


class Times(TestCase):
    def trace(self, count, step, name="trace.ttd", chunk=1 << 16):
        """One allocation a step, at addresses that rise, in chunks of so many."""
        script = Script().basics()
        for i in range(count):
            if i % chunk == 0:
                script.add("flush")
            script.alloc(0x1000 + 32 * i, 16, stack=1 + i % 2, wall=i * step)
        return self.write(script.close(wall=count * step), name)

    def times(self, command, path, *options):
        text = self.run_ok(command, "--limit", "0", *options, path).text
        return re.findall(r"([0-9A-F]+:[0-9A-F]+) \((\+[0-9.]+s)\)", text), text

    def check(self, path, found):
        """Each time is that of the event at the position, as far as it has digits."""
        rows = {row["time_start" if row["action"] == "Free" else "time_end"]: row["wall_time_ns"]
                for row in self.run_ok("events", "-f", "json", path).json_lines}
        self.assertTrue(found)
        for position, text in found:
            digits = len(text.split(".")[1]) - 1 if "." in text else 0
            unit = 10 ** -digits
            self.assertGreaterEqual(rows[position] / SECOND, float(text[1:-1]) - 1e-12)
            self.assertLess(rows[position] / SECOND, float(text[1:-1]) + 2 * unit, (position, text))

    def test_leaks_and_peak(self):
        path = self.trace(500, SECOND // 100)
        found, text = self.times("leaks", path)
        self.assertEqual(len(found), 4)
        self.assertIn("allocated from 0:2 (+0.000s) to F9:2 (+4.980s)\n", text)
        self.check(path, found)
        found, _ = self.times("peak", path)
        self.assertEqual([time for _, time in found], ["+4.990s"])

    def test_a_trace_of_many_chunks(self):
        path = self.trace(1000, 1000, chunk=25)
        self.assertGreater(self.json_of("info", path)["chunks"], 40)
        for command in ("leaks", "peak"):
            found, _ = self.times(command, path)
            self.check(path, found)

    def test_times_that_go_back(self):
        """A thread that was held up after it took the time is behind the others."""
        script = Script().basics()
        walls = [i * SECOND // 100 - (i % 7 == 3) * SECOND // 20 for i in range(600)]
        for i, wall in enumerate(walls):
            script.alloc(0x1000 + 32 * i, 16, stack=1 + i % 2, wall=max(wall, 0))
            if i % 2 == 0:
                script.free(0x1000 + 32 * i, wall=max(wall, 0))
                script.free(0x1000 + 32 * i, wall=max(wall, 0))
        path = self.write(script.close(wall=6 * SECOND))
        found, _ = self.times("errors", path)
        self.check(path, found)

    def test_with_an_index(self):
        path = self.trace(1000, 1000, chunk=25)
        self.run_ok("index", path)
        found, _ = self.times("leaks", path, "--at", "50%")
        self.check(path, found)

    def test_errors_and_history(self):
        script = Script().basics()
        script.alloc(0x1000, 16, wall=SECOND)
        script.free(0x1000, wall=2 * SECOND)
        script.free(0x1000, wall=4 * SECOND)
        path = self.write(script.close(wall=5 * SECOND))
        found, _ = self.times("errors", path)
        self.assertEqual(sorted(time for _, time in found), ["+1.000s", "+2.000s", "+4.000s"])
        text = self.run_ok("history", "--address", "0x1000", path).text
        self.assertIn("released by free() at 0:3 (+2.000s) in thread 1\n", text)


if __name__ == "__main__":
    unittest.main()
