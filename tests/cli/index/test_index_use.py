# SPDX-License-Identifier: MIT
"""Answers of commands with an index beside the trace, and when they make one"""

import os
import random
import resource
import signal
import stat
import subprocess

import support
from index_doubt import without_doubt
from index_support import Index, NOBODY, churn
from support import ANALYZER, Script, run


class Same(Index):
    """With an index and without, commands say the same."""

    def compare(self, path, chance, count):
        for at in [f"{chance.random() * 100:.4f}%" for _ in range(count)] + ["start", "100%"]:
            for command in (("state", "--blocks"), ("leaks",), ("fragmentation",)):
                arguments = (*command, "-f", "json", "--limit", "0", "--at", at)
                if command[0] == "fragmentation":
                    arguments = (*command, "-f", "json", "--at", at)
                with self.subTest(at=at, command=command[0]):
                    self.assertEqual(self.said(path, *arguments), self.truth(path, *arguments))
        for arguments in (("peak", "-f", "json"), ("leaks", "--show-runtime"),
                          ("diff", "-f", "json", "--from", "start", "--to", "90%"),
                          ("diff", "-f", "json", "--from", "60%", "--to", "end")):
            self.assertEqual(self.said(path, *arguments), self.truth(path, *arguments))
        for _ in range(count):
            begin, end = sorted(f"{chance.random() * 100:.4f}%" for _ in range(2))
            arguments = ("diff", "-f", "json", "--limit", "0", "--from", begin, "--to", end)
            with self.subTest(begin=begin, end=end):
                self.assertEqual(self.said(path, *arguments), self.truth(path, *arguments))

    def test_many_positions(self):
        path = self.write(churn(700000))
        self.assertGreater(self.run_ok("index", "-f", "json", path).json["keyframes"], 3)
        self.compare(path, random.Random(1), 8)

    def test_many_blocks(self):
        """So many that they are summed up."""
        script = Script().basics()
        script.add("churn", count=1700000, slots=400000, position="2:0")
        path = self.write(script.close())
        data = self.run_ok("index", "-f", "json", path).json
        self.assertGreater(data["summaries"], 2)
        chance = random.Random(3)
        for at in ["start", "end", *(f"{chance.uniform(25, 100):.4f}%" for _ in range(5))]:
            arguments = ("state", "-f", "json", "--limit", "0", "--at", at)
            self.assertEqual(self.said(path, *arguments), self.truth(path, *arguments), arguments)
        self.assertEqual(self.said(path, "peak"), self.truth(path, "peak"))
        text = self.run_ok("index", path).text
        self.assertIn(f" and {data['summaries']} summaries of ", text)

    def memory(self, count):
        """The memory for an index of many blocks that are few in the last `count` calls."""
        script = Script().basics()
        script.add("churn", count=400000, slots=400000, position="2:0")
        for heap in (1, 2):
            script.event("Destroy", heap=heap, start=f"F0000:{heap}", end=f"F0000:{heap + 1}")
        script.add("churn", count=count, slots=1000, position="F1000:0")
        path = self.write(script.close(), f"{count}.ttd")
        # A sanitizer keeps what is freed, so that uses of it are found.
        options = os.environ.get("ASAN_OPTIONS", "")
        environment = dict(os.environ, ASAN_OPTIONS=f"{options}:quarantine_size_mb=0:"
                                                    "thread_local_quarantine_size_kb=0")
        with subprocess.Popen([ANALYZER, "index", path], stdout=subprocess.DEVNULL,
                              env=environment) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        return usage.ru_maxrss

    def test_few_blocks_after_many(self):
        """Records that no summary needs are not kept."""
        self.assertLess(self.memory(2000000), self.memory(100000) + 8000)

    def test_small_chunks(self):
        path = self.write(churn(400000, events_per_chunk=1000))
        self.assertGreater(self.run_ok("index", "-f", "json", path).json["keyframes"], 1)
        self.compare(path, random.Random(2), 4)


class Automatic(Index):
    """Commands that go to a position of a long trace make the index themselves."""

    PAYS = int(os.environ["INDEX_PAYS"])
    at = ("state", "-f", "json", "--at", "70%")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        holder = support.tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.long = os.path.join(holder.name, "long.ttd")
        subprocess.run([support.TRACEGEN, cls.long], text=True, check=True,
                       input="\n".join(churn(cls.PAYS // 40 * 41, slots=2000).lines) + "\n")
        result = run("state", "--no-index", *cls.at[1:], cls.long)
        cls.expected = (result.status, *without_doubt(cls.long, result))

    def setUp(self):
        super().setUp()
        self.trace = self.path("trace.ttd")
        os.link(self.long, self.trace)

    def test_made_where_it_pays(self):
        for arguments in (("state", "--no-index", "--at", "70%"), ("state",), ("leaks",),
                          ("state", "--at", "start"), ("diff", "--to", "70%"), ("info",),
                          ("hot",), ("diff",), ("peak",)):
            self.run_ok(*arguments, self.trace)
            self.assertEqual(self.files(), ["trace.ttd"], arguments)
        for arguments in (("diff", "--from", "70%"), ("leaks", "--at", "70%")):
            self.run_ok(*arguments, self.trace)
            self.assertEqual(self.files(), ["trace.ttd", "trace.ttd.idx"], arguments)
            os.unlink(self.index_of(self.trace))
        self.assertEqual(self.said(self.trace, *self.at), self.expected)
        self.assertEqual(self.files(), ["trace.ttd", "trace.ttd.idx"])
        first = os.stat(self.index_of(self.trace))
        self.assertEqual(stat.S_IMODE(first.st_mode), 0o600)
        self.assertEqual(self.said(self.trace, *self.at), self.expected)
        self.assertEqual(os.stat(self.index_of(self.trace)).st_ino, first.st_ino)
        self.assertEqual(os.stat(self.index_of(self.trace)).st_mtime_ns, first.st_mtime_ns)

    def test_made_anew(self):
        """A stale index, and one that is no longer whole."""
        self.run_ok("index", self.write(churn(1000), "other"))
        self.run_ok("index", self.trace)
        with open(self.index_of(self.trace), "rb") as file:
            whole = file.read()
        for content in (self.path("other.idx"), whole[:300], whole[:-1], b""):
            if isinstance(content, str):
                with open(content, "rb") as file:
                    content = file.read()
            with open(self.index_of(self.trace), "wb") as file:
                file.write(content)
            self.assertEqual(self.said(self.trace, *self.at), self.expected)
            self.assertTrue(run("verify", "-f", "json", self.index_of(self.trace)).json["ok"])
            self.assertGreater(os.path.getsize(self.index_of(self.trace)), len(whole) - 100)

    def test_file_of_another_kind(self):
        """A file that is no index is never overwritten, and a warning says why."""
        expected = (*self.expected[:2], f"ttdanalyze: warning: {self.index_of(self.trace)}: is not "
                                        "an index, and is not overwritten\n")
        other = self.write(churn(1000), "other")
        with open(other, "rb") as file:
            trace = file.read()
        for content in (b"somebody's data", trace):
            with open(self.index_of(self.trace), "wb") as file:
                file.write(content)
            self.assertEqual(self.said(self.trace, *self.at), expected)
            status, _, errors = self.said(self.trace, "index")
            self.assertEqual(status, support.INTERNAL)
            self.assertIn("trace.ttd.idx: is not an index, and is not overwritten", errors)
            with open(self.index_of(self.trace), "rb") as file:
                self.assertEqual(file.read(), content)

    def test_no_room(self):
        """The command goes on, and nothing is left."""

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))

        result = run(*self.at, self.trace, preexec_fn=limit, restore_signals=False)
        self.assertEqual((result.status, *without_doubt(self.trace, result)), self.expected)
        self.assertEqual(self.files(), ["trace.ttd"])

    def test_folder_that_cannot_be_written(self):
        os.chmod(self.long, 0o644)
        os.chmod(self.folder, 0o555)
        who = {"user": NOBODY} if os.geteuid() == 0 else {}
        try:
            result = run(*self.at, self.trace, **who)
        except PermissionError:
            self.skipTest("another user cannot run the program")
        self.assertEqual((result.status, *without_doubt(self.trace, result)), self.expected)
        result = run("index", self.trace, **who)
        self.assertEqual(result.status, support.INTERNAL)
        self.assertIn("trace.ttd.idx: Permission denied", result.errors)
        self.assertEqual(self.files(), ["trace.ttd"])
        os.chmod(self.folder, 0o755)


if __name__ == "__main__":
    support.main()
