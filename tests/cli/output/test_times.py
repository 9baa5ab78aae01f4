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

    def times(self, command, path, *options, limit=0):
        text = self.run_ok(command, "--limit", limit, *options, path).text
        return re.findall(r"([0-9A-F]+:[0-9A-F]+) \((\+[0-9.]+s)\)", text), text

    def check(self, path, found):
        """Each time is that of the event at the position, as far as it has digits; and a later one
        is no earlier."""
        rows = {row["time_start" if row["action"] == "Free" else "time_end"]: row["wall_time_ns"]
                for row in self.run_ok("events", "-f", "json", path).json_lines}
        self.assertTrue(found)
        fine = max(rows.values()) / 10000
        for position, text in found:
            digits = len(text.split(".")[1]) - 1 if "." in text else 0
            error = 0.5 * 10 ** -digits + (10 * fine) / SECOND
            self.assertAlmostEqual(rows[position] / SECOND, float(text[1:-1]), delta=error)
            significant = text[1:-1].replace(".", "").lstrip("0")
            self.assertLessEqual(len(significant), 3, text)
        in_order = sorted((rows[position], float(text[1:-1])) for position, text in found)
        self.assertEqual([time for _, time in in_order], sorted(time for _, time in in_order))

    def test_leaks_and_peak(self):
        path = self.trace(500, SECOND // 100)
        found, text = self.times("leaks", path)
        self.assertEqual(len(found), 4)
        self.assertIn("allocated from 0:2 (+0s) to F9:2 (+4.98s)\n", text)
        self.check(path, found)
        found, _ = self.times("peak", path)
        self.assertEqual([time for _, time in found], ["+4.99s"])

    def test_a_trace_of_many_chunks(self):
        path = self.trace(1000, 1000, chunk=25)
        self.assertGreater(self.json_of("info", path)["chunks"], 40)
        for command in ("leaks", "peak"):
            found, _ = self.times(command, path)
            self.check(path, found)

    def test_chunks_of_a_long_trace(self):
        """Each chunk is a small part of the time, but longer than times are precise."""
        script = Script().basics()
        for i in range(1000):
            if i % 25 == 0:
                script.add("flush")
            script.alloc(0x2000 + 32 * i, 16, wall=i * 1_000_000)
            if i % 20 == 0:
                script.alloc(0x1000, 16, wall=i * 1_000_000 + 500_000)
            if i % 20 == 7:
                script.free(0x1000, wall=i * 1_000_000 + 500_000)
        path = self.write(script.close(wall=SECOND))
        found, _ = self.times("history", path, "--address", "0x1000", limit=200)
        self.assertEqual(len(found), 100)
        self.assertEqual([time for _, time in found][:3], ["+0.000500s", "+0.00750s", "+0.0205s"])
        self.check(path, found)

    def test_marks(self):
        """Marks have the times of all other text."""
        script = Script().basics()
        walls = {26_400_000: "+0.0264s", 4_444_999_999: "+4.44s", 123_456_000_000: "+123s"}
        for wall in walls:
            script.alloc(0x1000, 16, wall=wall)
            script.free(0x1000, wall=wall)
            script.add("user", position=script.tick(), data="mark",
                       client="ttdtrace.mark%00%00%00", wall=wall)
        text = self.run_ok("marks", self.write(script.close(wall=123_456_000_000))).text
        self.assertEqual(re.findall(r"\+\S+", text), list(walls.values()))

    def test_rounding(self):
        script = Script().basics()
        walls = (0, 4_444_999_999, 9_994_999_999, 9_995_000_000, 99_960_000_000, 123_456_000_000)
        for i, wall in enumerate(walls):
            if i % 2 == 0:
                script.alloc(0x1000, 16, wall=wall)
            else:
                script.free(0x1000, wall=wall)
        path = self.write(script.close(wall=123_456_000_000))
        found, _ = self.times("history", path, "--address", "0x1000", limit=200)
        self.assertEqual([time for _, time in found],
                         ["+0s", "+4.44s", "+9.99s", "+10.0s", "+100s", "+123s"])

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

    def test_chunks_that_an_index_leaves_out(self):
        """Blocks of several call sites, each of another chunk: nothing between them is read."""
        script = Script().basics()
        sites = 8
        for site in range(sites):
            script.add("stack", parent=1, module=1, offset=0x1000 + site)
        for i in range(150_000):
            if i % 15_000 == 0 and i < 15_000 * sites:
                script.alloc(0x1000 + i, 16, stack=5 + i // 15_000, wall=i * 1000)
            script.alloc(0x80000, 16, wall=i * 1000)
            script.free(0x80000, wall=i * 1000)
        path = self.write(script.close(wall=150_000_000))
        self.assertGreater(self.run_ok("index", "-f", "json", path).json["keyframes"], 1)
        found, _ = self.times("leaks", path, "--at", "99%")
        self.assertGreaterEqual(len(found), sites)
        self.check(path, found)

    def test_more_chunks_than_are_looked_up(self):
        """Each time is in another chunk. The chunks are netted: no pass reads their events."""
        script = Script().basics()
        sites = 150
        for site in range(sites):
            script.add("stack", parent=1, module=1, offset=0x1000 + site)
        for i in range(sites):
            script.add("flush")
            for k in range(4):
                script.alloc(0x1000 + 64 * i + 16 * k, 16, stack=5 + i, wall=(4 * i + k) * 1000000)
        path = self.write(script.close(wall=sites * 4000000))
        found, text = self.times("leaks", path)
        self.assertGreater(len(re.findall(r"\+[0-9.]+s\b", text)), sites)
        self.check(path, found)

    def test_errors_and_history(self):
        script = Script().basics()
        script.alloc(0x1000, 16, wall=SECOND)
        script.free(0x1000, wall=2 * SECOND)
        script.free(0x1000, wall=4 * SECOND)
        path = self.write(script.close(wall=5 * SECOND))
        found, _ = self.times("errors", path)
        self.assertEqual({time for _, time in found}, {"+1.00s", "+2.00s", "+4.00s"})
        text = self.run_ok("history", "--address", "0x1000", path).text
        self.assertIn("released by free() at 0:3 (+2.00s) in thread 1\n", text)


if __name__ == "__main__":
    unittest.main()
