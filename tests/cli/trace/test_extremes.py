# SPDX-License-Identifier: MIT
"""Inputs at the limits: devices, sparse files, numbers that do not fit, closed descriptors"""

import os
import subprocess

import support
from support import Script, TestCase, run
from loss_support import Chunks, HEADER


class Search(TestCase):
    """An endless search ends, and is reported."""

    def test_devices(self):
        for command in ("info", "leaks", "verify"):
            result = run(command, "/dev/zero")
            self.assertEqual(result.status, support.OPEN)
            self.assertIn("/dev/zero: offset 0x0: not a trace", result.errors)

    def test_sparse_tail(self):
        script = Script().basics()
        script.alloc(0x1000, 1)
        for closes in (True, False):
            path = self.write(script.close() if closes else script.abandon(), f"{closes}")
            script.lines.pop()
            os.truncate(path, 1 << 40)
            result = self.run_ok("leaks", "-f", "json", path)
            self.assertEqual((result.json["total_blocks"], result.json["certain"]), (1, False))
            self.assertIn("was not read to its end", result.json["reasons"][-1])
            self.assertIn("no intact chunk in all that was searched", result.errors)
            found = run("verify", "-f", "json", path).json
            self.assertEqual(found["problems"][-1]["what"],
                             "no intact chunk in all that was searched")
            self.assertEqual((found["ok"], found["closed"]), (False, False))
            self.assertEqual(found["problems"][0]["missing_events"], 0 if closes else None)


class Numbers(TestCase):
    """Values that are not known, or too large."""

    def test_sums(self):
        script = Script(time_unit=1).basics()
        for i in range(3):
            script.alloc(0x1000 * (i + 1), 2**64 - 1, wall=i * 1000000)
        path = self.write(script.close())
        self.assertIn("3 blocks, at least 18,446,744,073,709,551,615 bytes",
                      self.run_ok("leaks", path).text)
        rate = self.json_of("timeline", path)["points"][-1]["bytes_per_second"]
        self.assertGreater(rate, 2**64)
        text = self.run_ok("timeline", "--plot", "allocated", path).text.splitlines()[-1]
        self.assertIn(f"{rate:.3g} bytes/s", text)
        self.assertEqual(self.json_of("info", path)["bytes_requested"], str(2**64 - 1))

    def test_last_call(self):
        script = Script(time_unit=1).basics()
        for i, wall in enumerate((10, 5000, 70)):
            script.alloc(0x1000 * (i + 1), 1, wall=wall)
        path = self.write(script.close())
        self.assertEqual(self.json_of("info", path)["last_wall_time_ns"], 70)

    def test_parameters(self):
        script = Script().basics()
        script.event("Alloc", address=0x1000, size=8, api=8)
        script.event("Alloc", address=0x2000, size=8, api=1)
        path = self.write(script.close())
        rows = self.run_ok("events", "--parameters", "-f", "json", path).json_lines
        self.assertEqual([row["parameters"] for row in rows], [None, ["0x8"]])
        self.assertIn("{?}", self.run_ok("events", "--parameters", path).text)


class Descriptors(TestCase):
    """Messages go nowhere when nobody listens, and never into a file of ours."""

    def test_closed(self):
        script = Script(events_per_chunk=4, codec=0).basics()
        for i in range(40):
            script.alloc(0x1000 + 16 * i, 1)
        path = self.write(script.close())
        with open(path, "rb") as file:
            chunks = Chunks(file.read())
        chunks.parts[chunks.of(8)[2]][HEADER + 3] ^= 1
        with open(path, "wb") as file:
            file.write(chunks.data())
        for closed in ("2>&-", "0<&-", "0<&- 2>&-", "0<&- 1>&- 2>&-"):
            target = self.path("recovered")
            subprocess.run(["sh", "-c", f'"$0" recover -o "$1" "$2" {closed}', support.ANALYZER,
                            target, path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           check=False)
            self.assertEqual(run("verify", target).status, 0, closed)
            os.unlink(target)
        # Output that nobody gets is a failure.
        status = subprocess.run(["sh", "-c", '"$0" info "$1" >&-', support.ANALYZER, path],
                                stderr=subprocess.DEVNULL, check=False).returncode
        self.assertEqual(status, support.INTERNAL)


if __name__ == "__main__":
    support.main()
