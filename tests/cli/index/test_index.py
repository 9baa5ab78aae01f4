# SPDX-License-Identifier: MIT
"""ttdanalyze index: what it writes, and how it fails"""

import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import unittest

import support
from index_support import Index, MAGIC, NOT_CLOSED, churn
from support import ANALYZER, Script, run


class Output(Index):
    def test_formats(self):
        path = self.write(churn(300000))
        data = self.run_ok("index", "-f", "json", path).json
        self.assertIn(data["keyframes"], (1, 2))
        expected = {"index": self.index_of(path), "keyframes": data["keyframes"],
                    "summaries": 0, "events": 300000, "index_bytes": os.path.getsize(self.index_of(path))}
        self.assertEqual(data, expected)
        # Made anew: its random id may make it a little longer or shorter.
        rows = self.run_ok("index", "-f", "csv", path).csv
        expected["index_bytes"] = os.path.getsize(self.index_of(path))
        self.assertEqual(rows, [{key: str(value) for key, value in expected.items()}])
        text = self.run_ok("index", path).text
        self.assertEqual(text, f"{self.index_of(path)}: {data['keyframes']} keyframe"
                               f"{'s' * (data['keyframes'] > 1)} of 300,000 events, "
                               f"{os.path.getsize(self.index_of(path)):,} bytes\n")
        self.assertTrue(run("verify", "-f", "json", self.index_of(path)).json["ok"])
        self.assertEqual(self.files(), ["trace.ttd", "trace.ttd.idx"])

    def test_small(self):
        path = self.write(Script().basics().close())
        data = self.run_ok("index", "-f", "json", path).json
        self.assertEqual((data["keyframes"], data["events"]), (0, 0))
        self.assertEqual(self.truth(path, "state", "--at", "0:1"),
                         self.said(path, "state", "--at", "0:1"))

    def test_name_without_folder(self):
        self.write(churn(1000))
        self.run_ok("index", "trace.ttd", cwd=self.folder)
        self.assertEqual(self.files(), ["trace.ttd", "trace.ttd.idx"])

    def test_mode(self):
        path = self.write(churn(1000))
        for mask in (0, 0o22, 0o77, 0o777):
            self.run_ok("index", path, umask=mask)
            self.assertEqual(stat.S_IMODE(os.stat(self.index_of(path)).st_mode), 0o600, oct(mask))

    def test_usage(self):
        self.assertEqual(run("index").status, support.USAGE)
        self.assertEqual(run("index", self.path("nothing")).status, support.OPEN)
        self.assertEqual(self.files(), [])

    def test_at_the_same_time(self):
        path = self.write(churn(300000))
        jobs = [subprocess.Popen([ANALYZER, "index", path], stdout=subprocess.DEVNULL)
                for _ in range(4)]
        self.assertEqual([job.wait(timeout=120) for job in jobs], [0] * 4)
        self.assertEqual(self.files(), ["trace.ttd", "trace.ttd.idx"])
        self.assertTrue(run("verify", "-f", "json", self.index_of(path)).json["ok"])


class Failure(Index):
    def test_no_room(self):
        """The message names the index, the old one stays, and nothing else is left."""
        path = self.write(churn(300000))
        self.run_ok("index", path)
        before = os.stat(self.index_of(path))

        def limit(handling):
            signal.signal(signal.SIGXFSZ, handling)
            resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))

        result = run("index", path, preexec_fn=lambda: limit(signal.SIG_IGN),
                     restore_signals=False)
        self.assertEqual(result.status, support.INTERNAL)
        self.assertRegex(result.errors, "trace.ttd.idx: .*File too large")
        self.assertEqual(self.files(), ["trace.ttd", "trace.ttd.idx"])
        self.assertEqual(os.stat(self.index_of(path)).st_mtime_ns, before.st_mtime_ns)
        try:
            os.close(os.open(self.folder, os.O_TMPFILE | os.O_RDWR))
        except OSError:
            self.skipTest("no files without names here")
        result = run("index", path, preexec_fn=lambda: limit(signal.SIG_DFL))
        self.assertEqual(result.status, -signal.SIGXFSZ)
        self.assertEqual(self.files(), ["trace.ttd", "trace.ttd.idx"])

    @unittest.skipIf(os.environ["SANITIZE"] != "none" or not shutil.which("strace"),
                     "no strace, or a sanitizer that wants to trace by itself")
    def test_no_random_numbers(self):
        """No file gets a name that others can guess."""
        path = self.write(churn(1000))
        result = subprocess.run(
            ["strace", "-o", os.devnull, "-e", "inject=getrandom:error=ENOSYS", ANALYZER, "index",
             path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(result.returncode, support.INTERNAL)
        self.assertIn("trace.ttd.idx: Function not implemented", result.stderr)
        self.assertEqual(self.files(), ["trace.ttd"])

    def refused(self, path, what, why):
        status, text, errors = self.said(path, "index")
        self.assertEqual((status, text), (support.DAMAGED, ""), what)
        self.assertIn(why, errors, what)
        self.assertEqual(self.files(), [os.path.basename(path)], what)
        self.assertEqual(self.truth(path, "state", "--at", "50%"),
                         self.said(path, "state", "--at", "50%"))

    def test_damaged_trace(self):
        path = self.write(churn(3000, events_per_chunk=500))
        with open(path, "rb") as file:
            whole = file.read()
        starts = [i for i in range(0, len(whole), 8) if whole.startswith(MAGIC, i)]
        middle = starts[len(starts) // 2]
        damaged = "a damaged trace has no index; 'ttdanalyze recover' saves the intact parts"
        for what, cut, flipped, why in (("cut off", len(whole) - 8, None, NOT_CLOSED),
                                        ("within a chunk", middle + 50, None, NOT_CLOSED),
                                        ("payload", None, middle + 120, damaged),
                                        ("header", None, middle + 20, damaged),
                                        ("first chunk", None, 20, damaged),
                                        ("end", None, len(whole) - 10, NOT_CLOSED)):
            data = bytearray(whole[:cut])
            if flipped:
                data[flipped] ^= 4
            with open(path, "wb") as file:
                file.write(data)
            with self.subTest(what):
                self.refused(path, what, why)

    def test_trace_damaged_since(self):
        """An index is of the file that it was made of, and of no other with the same End."""
        path = self.write(churn(300000, events_per_chunk=10000))
        self.run_ok("index", path)
        for number in range(8, 24, 3):
            self.flip(path, number)
            said, truth = [json.loads(text) for _, text, _ in
                           (self.said(path, "leaks", "-f", "json", "--at", "80%"),
                            self.truth(path, "leaks", "-f", "json", "--at", "80%"))]
            self.flip(path, number)
            self.assertEqual(said, truth)
            self.assertIs(said["certain"], False)

    def flip(self, path, number):
        """Damages the payload of a chunk."""
        with open(path, "rb") as file:
            data = bytearray(file.read())
        starts = [i for i in range(0, len(data), 8) if data.startswith(MAGIC, i)]
        data[starts[number] + 120] ^= 4
        with open(path, "wb") as file:
            file.write(data)

    def test_recovered_trace(self):
        """Numbers of events that are missing are not those of others."""
        damaged = self.write(churn(300000, events_per_chunk=10000))
        self.flip(damaged, 10)
        path = os.path.join(self.folder, "recovered")
        self.run_ok("recover", "-o", path, damaged)
        facts = self.run_ok("index", "-f", "json", path).json
        self.assertEqual(facts["events"], 290000)
        self.assertGreater(facts["keyframes"], 0)
        for at in ("10%", "50%", "70%", "90%", "#100500", "end"):
            arguments = ("leaks", "-f", "json", "--at", at)
            self.assertEqual(self.said(path, *arguments), self.truth(path, *arguments), at)
        # The part before a keyframe is read when the file has changed.
        self.flip(path, 8)
        arguments = ("leaks", "-f", "json", "--at", "90%")
        for found in (self.said(path, *arguments), self.truth(path, *arguments)):
            self.assertIn("20000 events are missing", found[1])

    def test_growing_trace(self):
        script = churn(3000)
        script.lines[-1] = "close"
        self.refused(self.write(script), "not closed", NOT_CLOSED)


if __name__ == "__main__":
    support.main()
