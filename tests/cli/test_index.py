# SPDX-License-Identifier: MIT
"""ttdanalyze index, and what commands say with an index beside the trace"""

import json
import os
import random
import resource
import signal
import stat
import subprocess

import support
from support import ANALYZER, Script, TestCase, run

MAGIC = b"\x89TTDH\r\n\x1a"
DERIVED = 1
NOBODY = 65534
# Forms of a state, and a position that is invalid.
KEYFRAME, SUMMARY, PEAK = 1, 2, 3
NOWHERE = "never"


def position_text(sequence, steps):
    return f"{sequence:X}:{steps:X}"


def churn(count, **trace):
    """Random calls, with blocks that the runtimes keep, and a loss."""
    script = Script(**trace).basics()
    script.add("loss", reason=1, count=3, last_good=f"{count // 2:X}:0",
               first_good=f"{count // 2 + 1:X}:0")
    script.add("churn", count=count, slots=2000, position="2:0")
    script.add("blocks", list=3, position=f"{count + 9:X}:0",
               blocks=",".join(f"0x{0x10000000 + 0x40 * i:x}:1" for i in range(0, 2000, 7)))
    return script.close()


NOT_CLOSED = "the trace is not closed, and has no index until it is"


class Index(TestCase):
    """A trace with an index beside it."""

    def index_of(self, path):
        return path + ".idx"

    def said(self, path, *arguments):
        """Status, output and messages of a command, which must not crash or hang."""
        result = run(*arguments, path)
        self.assertIn(result.status, (0, 1, 2, 3, 4, 5), (arguments, result.errors))
        return result.status, result.text, result.errors

    def truth(self, path, *arguments):
        return self.said(path, arguments[0], "--no-index", *arguments[1:])

    def files(self):
        return sorted(os.listdir(self.folder))


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
        """What it takes to make an index of many blocks that are few in the last `count` calls."""
        script = Script().basics()
        script.add("churn", count=400000, slots=400000, position="2:0")
        for heap in (1, 2):
            script.event("Destroy", heap=heap, start=f"F0000:{heap}", end=f"F0000:{heap + 1}")
        script.add("churn", count=count, slots=1000, position="F1000:0")
        path = self.write(script.close(), f"{count}.ttd")
        with subprocess.Popen([ANALYZER, "index", path], stdout=subprocess.DEVNULL) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        return usage.ru_maxrss

    def test_few_blocks_after_many(self):
        """What no summary needs is not kept."""
        self.assertLess(self.memory(2000000), self.memory(100000) + 8000)

    def test_small_chunks(self):
        path = self.write(churn(400000, events_per_chunk=1000))
        self.assertGreater(self.run_ok("index", "-f", "json", path).json["keyframes"], 1)
        self.compare(path, random.Random(2), 4)


class Automatic(Index):
    """Commands that go to a position of a long trace make the index themselves."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        holder = support.tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.long = os.path.join(holder.name, "long.ttd")
        subprocess.run([support.TRACEGEN, cls.long], text=True, check=True,
                       input="\n".join(churn(4100000, slots=2000).lines) + "\n")

    def setUp(self):
        super().setUp()
        self.trace = self.path("trace.ttd")
        os.link(self.long, self.trace)
        self.at = ("state", "-f", "json", "--at", "70%")

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
        expected = self.truth(self.trace, *self.at)
        self.assertEqual(self.said(self.trace, *self.at), expected)
        self.assertEqual(self.files(), ["trace.ttd", "trace.ttd.idx"])
        first = os.stat(self.index_of(self.trace))
        self.assertEqual(stat.S_IMODE(first.st_mode), 0o600)
        self.assertEqual(self.said(self.trace, *self.at), expected)
        self.assertEqual(os.stat(self.index_of(self.trace)).st_ino, first.st_ino)
        self.assertEqual(os.stat(self.index_of(self.trace)).st_mtime_ns, first.st_mtime_ns)

    def test_made_anew(self):
        """A stale index, and one that is no longer whole."""
        expected = self.truth(self.trace, *self.at)
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
            self.assertEqual(self.said(self.trace, *self.at), expected)
            self.assertTrue(run("verify", "-f", "json", self.index_of(self.trace)).json["ok"])
            self.assertGreater(os.path.getsize(self.index_of(self.trace)), len(whole) - 100)

    def test_file_of_another_kind(self):
        """What is no index is never overwritten, and who waits for want of one is told."""
        truth = self.truth(self.trace, *self.at)
        expected = (*truth[:2], f"ttdanalyze: warning: {self.index_of(self.trace)}: is no index, "
                                "and will not be overwritten\n")
        other = self.write(churn(1000), "other")
        with open(other, "rb") as file:
            trace = file.read()
        for content in (b"somebody's data", trace):
            with open(self.index_of(self.trace), "wb") as file:
                file.write(content)
            self.assertEqual(self.said(self.trace, *self.at), expected)
            status, _, errors = self.said(self.trace, "index")
            self.assertEqual(status, support.INTERNAL)
            self.assertIn("trace.ttd.idx: is no index, and will not be overwritten", errors)
            with open(self.index_of(self.trace), "rb") as file:
                self.assertEqual(file.read(), content)

    def test_no_room(self):
        """The command goes on, and nothing is left."""
        expected = self.truth(self.trace, *self.at)

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))

        result = run(*self.at, self.trace, preexec_fn=limit, restore_signals=False)
        self.assertEqual((result.status, result.text, result.errors), expected)
        self.assertEqual(self.files(), ["trace.ttd"])

    def test_folder_that_cannot_be_written(self):
        expected = self.truth(self.trace, *self.at)
        os.chmod(self.long, 0o644)
        os.chmod(self.folder, 0o555)
        who = {"user": NOBODY} if os.geteuid() == 0 else {}
        try:
            result = run(*self.at, self.trace, **who)
        except PermissionError:
            self.skipTest("another user cannot run the program")
        self.assertEqual((result.status, result.text, result.errors), expected)
        result = run("index", self.trace, **who)
        self.assertEqual(result.status, support.INTERNAL)
        self.assertIn("trace.ttd.idx: Permission denied", result.errors)
        self.assertEqual(self.files(), ["trace.ttd"])
        os.chmod(self.folder, 0o755)


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
        damaged = "a damaged trace has no index; 'ttdanalyze recover' saves what is intact"
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
        # What is before a keyframe is read when the file has changed.
        self.flip(path, 8)
        arguments = ("leaks", "-f", "json", "--at", "90%")
        for found in (self.said(path, *arguments), self.truth(path, *arguments)):
            self.assertIn("20000 events are missing", found[1])

    def test_growing_trace(self):
        script = churn(3000)
        script.lines[-1] = "close"
        self.refused(self.write(script), "not closed", NOT_CLOSED)


class Lies(Index):
    """Indexes that were made by somebody else, of a trace that is small enough to know it all."""

    KEPT = {20: 0x1000, 21: 0x2000, 100: 0x3000, 101: 0x4000}
    NEXT = 200

    def setUp(self):
        super().setUp()
        script = Script(events_per_chunk=100).basics()
        for i in range(300):
            if i in self.KEPT:
                script.alloc(self.KEPT[i], i)
            elif i == 298:
                script.event("Destroy")
            elif i % 2 == 0:
                script.alloc(0x9000, i)
            else:
                script.free(0x9000)
        self.trace = self.write(script.close())
        with open(self.trace, "rb") as file:
            data = file.read()
        end = data.rfind(MAGIC)
        self.tie = {"flags": DERIVED, "source_id": 0x1234, "source_size": len(data),
                    "source_hash": int.from_bytes(data[end + 104:end + 112], "little"),
                    "id": 0x777}
        self.ask = ("state", "-f", "json", "--blocks", "--at", "#250")
        self.expected = self.truth(self.trace, *self.ask)
        self.assertEqual(self.expected[0], 0)

    @staticmethod
    def tick(number):
        return f"{number // 4:X}:{number % 4:X}"

    def record(self, form=KEYFRAME, **changes):
        """The keyframe."""
        numbers = {"sequence": 99, "steps": 3, "blocks": 4, "next": self.NEXT,
                   "events": self.NEXT, "alloc": 102, "free": 98}
        numbers.update(changes)
        position = position_text(numbers.pop("sequence"), numbers.pop("steps"))
        return {"form": form, "position": position, **numbers}

    def lists(self, position="63:3", skip=(), event=None, size=None, address=None,
              allocated=None, list=1, **fields):
        """A list, a chunk for each block; changes are for the third."""
        lines = []
        for i, (number, at) in enumerate(self.KEPT.items()):
            if i in skip:
                continue
            is_it = i == 2
            lines.append({
                "list": list, "id": 1, "position": position, "stack": 2, "api": 1,
                "allocated": allocated if is_it and allocated else self.tick(2 * number + 2),
                "blocks": ":".join(str(part) for part in (
                    address if is_it and address else at,
                    size if is_it and size is not None else number,
                    event if is_it and event is not None else number)),
                **(fields if is_it else {})})
        return lines

    def stamp(self):
        """What the program says of the trace's file."""
        file = os.stat(self.trace)
        times = "%20".join(f"{ns // 10**9}.{ns % 10**9:09}"
                           for ns in (file.st_mtime_ns, file.st_ctime_ns))
        return f"{file.st_dev}%20{file.st_ino}%20{file.st_size}%20{times}"

    def make(self, records, lists, close=True, peak=None, sums=(), **tie):
        """Writes an index by hand; False if the writer does not want to."""
        script = Script(**{**self.tie, **tie})
        script.add("thread").add("heap").add("stack").add("stack")
        for fields in records:
            script.add("state", **fields)
        script.add("flush")
        for fields in sums:
            script.add("sum", **fields)
        script.add("metadata", key="source", value=self.stamp())
        script.add("flush")
        for fields in lists:
            script.add("blocks", **fields)
        if peak is not None:
            script.add("state", form=PEAK, **peak)
        if close:
            script.close()
        else:
            script.abandon()
        path = self.index_of(self.trace)
        if os.path.exists(path):
            os.unlink(path)
        made = subprocess.run([support.TRACEGEN, path], input="\n".join(script.lines) + "\n",
                              text=True, capture_output=True, check=False)
        return made.returncode == 0

    def honest(self, **tie):
        self.assertTrue(self.make([self.record()], self.lists(), **tie))

    def lie(self):
        """An index whose lie cannot be seen: it shows where an index is used."""
        self.assertTrue(self.make([self.record()], self.lists(size=4242)))

    def is_believed(self, **options):
        result = run(*self.ask, self.trace, **options)
        self.assertEqual(result.status, 0)
        return "4242" in result.text

    def test_honest(self):
        self.honest()
        for event in range(0, 300, 17):
            ask = ("state", "-f", "json", "--blocks", "--at", f"#{event}")
            self.assertEqual(self.said(self.trace, *ask), self.truth(self.trace, *ask))

    def test_which_is_used(self):
        self.lie()
        self.assertTrue(self.is_believed())
        self.assertEqual(self.truth(self.trace, *self.ask), self.expected)
        self.assertEqual(self.said(self.trace, "state", "-f", "json", "--blocks", "--at", "#150"),
                         self.truth(self.trace, "state", "-f", "json", "--blocks", "--at", "#150"))

    def test_of_another_trace(self):
        for name, value in self.tie.items():
            if name == "id":
                continue
            self.assertTrue(self.make([self.record()], self.lists(size=4242),
                                      **{name: value ^ 1}))
            self.assertFalse(self.is_believed(), name)
        self.assertTrue(self.make([self.record()], self.lists(size=4242), close=False))
        self.assertFalse(self.is_believed())
        self.lie()
        self.assertTrue(self.is_believed())
        other = self.write(churn(500, id=0x999), "other")
        os.rename(other, self.trace)
        self.assertFalse(self.is_believed())

    def test_that_can_be_seen(self):
        good, lists = self.record(), self.lists()
        others = {ask: self.truth(self.trace, *ask) for ask in
                  (("leaks",), ("peak",), ("diff", "--from", "#240", "--to", "end"),
                   ("leaks", "-f", "json", "--at", "#250"))}
        lies = {
            "next event within a chunk": ([self.record(next=150)], lists),
            "next event is the second": ([self.record(next=201)], lists),
            "next event is beyond the end": ([self.record(next=300)], lists),
            "next event is nowhere": ([self.record(next=10**18)], lists),
            "next event is the last there can be": ([self.record(next=2**64 - 1)], lists),
            "later than the next event": ([self.record(sequence=100)],
                                          self.lists(position="64:3")),
            "no position": ([self.record(sequence=2**64 - 1)], lists),
            "more releases of nothing than events": ([self.record(unknown=201)], lists),
            "more overlaps than events": ([self.record(overlaps=201)], lists),
            "position differs": ([good], self.lists(position="63:2")),
            "block from the future": ([good], self.lists(event=200)),
            "block from nowhere": ([good], self.lists(event=2**64 - 1)),
            "block from the future of the chunk": ([self.record(next=250)],
                                                   self.lists(event=210)),
            "block acquired later": ([good], self.lists(allocated="64:0")),
            "address twice": ([good], self.lists(address=0x2000)),
            "more blocks": ([self.record(blocks=3)], lists),
            "fewer blocks": ([self.record(blocks=5)], lists),
            "no blocks": ([self.record(blocks=0)], lists),
            "any number of blocks": ([self.record(blocks=2**63)], lists),
            "the largest number of blocks": ([self.record(blocks=2**64 - 1)], lists),
            "a snapshot": ([good], self.lists(list=2)),
            "kept by a runtime": ([good], self.lists(list=3)),
            "no list": ([good], []),
            "two lists": ([good], lists + lists),
            "one list for two": ([good, self.record(next=201)], lists),
            "no record": ([], lists),
            "twice the same": ([good, good], lists + lists),
            "going back": ([good, self.record(next=100)], lists + lists),
            "going back in time": ([good, self.record(sequence=9, next=250)], lists + lists),
        }
        for what, (records, blocks) in lies.items():
            with self.subTest(what):
                if not self.make(records, blocks):
                    continue
                self.assertEqual(self.said(self.trace, *self.ask), self.expected)
                for other in others:
                    self.assertEqual(self.said(self.trace, *other), others[other])
        self.honest()
        self.assertEqual(self.said(self.trace, *self.ask), self.expected)

    def summary(self, end="63:4", sums=5, **changes):
        return self.record(form=SUMMARY, sums=sums, end=end, **{"blocks": 1, **changes})

    def sums(self, **changes):
        """Sums of all blocks but the third; changes are for the first sum."""
        first = {"table": 0, "key": 2, "api": 1, "blocks": 3, "bytes": 142, "first": "A:2",
                 "last": "33:0"}
        return [{**first, **changes}] + [
            {"table": table, "key": key, "api": 1, "blocks": blocks, "bytes": size}
            for table, key, blocks, size in ((1, 1, 3, 142), (2, 1, 3, 142), (3, 5, 2, 41),
                                             (3, 7, 1, 101))]

    def make_summary(self, record, lists, sums):
        return self.make([record], lists, sums=sums)

    def test_summary(self):
        """One that nothing is wrong with is used, where it serves."""
        only = self.lists(skip=(0, 1, 3))
        asks = [("state", "-f", "json", "--limit", "0", "--at", f"#{event}")
                for event in range(0, 300, 9)]
        expected = [self.truth(self.trace, *ask) for ask in asks]
        self.assertTrue(self.make_summary(self.summary(), self.lists(skip=(0, 1, 3)), self.sums()))
        for ask, said in zip(asks, expected):
            self.assertEqual(self.said(self.trace, *ask), said, ask)
        used = [[], []]
        for case, end in enumerate(("63:4", NOWHERE)):
            self.assertTrue(self.make_summary(self.summary(end=end), only,
                                              self.sums(first="B:0")))
            for ask, said in zip(asks, expected):
                if self.said(self.trace, *ask) != said:
                    used[case].append(int(ask[-1][1:]))
        # Event 231 is at 115:2, and 234 at 117:0.
        self.assertEqual(used[1], list(range(207, 300, 9)))
        self.assertEqual(used[0], [])
        self.assertTrue(self.make_summary(self.summary(end="75:0"), only, self.sums(first="B:0")))
        used = [ask for ask, said in zip(asks, expected) if self.said(self.trace, *ask) != said]
        self.assertEqual([ask[-1] for ask in used], ["#207", "#216", "#225"])
        for other in (("state", "--blocks", "--at", "#220"), ("leaks", "--at", "#220"),
                      ("state", "--by", "thread", "--at", "#220"),
                      ("state", "--include", "main", "--at", "#220"),
                      ("fragmentation", "--at", "#220")):
            self.assertEqual(self.said(self.trace, *other), self.truth(self.trace, *other), other)

    def test_lies_in_a_summary(self):
        ask = ("state", "-f", "json", "--limit", "0", "--at", "#250")
        expected = self.truth(self.trace, *ask)
        end = NOWHERE
        good, only, sums = self.summary(end), self.lists(skip=(0, 1, 3)), self.sums()

        def change(number, **fields):
            return [{**row, **fields} if i == number else row for i, row in enumerate(sums)]

        lies = {
            "more sums": (self.summary(end, sums=4), only, sums),
            "fewer sums": (self.summary(end, sums=6), only, sums),
            "no sums": (self.summary(end, sums=0), only, []),
            "any number of sums": (self.summary(end, sums=2**64 - 1), only, sums),
            "no sums, it says": (self.summary(end, sums=0), only, sums),
            "more blocks": (self.summary(end, blocks=0), only, sums),
            "fewer blocks": (self.summary(end, blocks=2), only, sums),
            "no list": (good, [], sums),
            "a list of another position": (good, self.lists(skip=(0, 1, 3), position="63:2"), sums),
            "a block of the future": (good, self.lists(skip=(0, 1, 3), event=200), sums),
            "next event within a chunk": (self.summary(end, next=150), only, sums),
            "next event is beyond the end": (self.summary(end, next=300), only, sums),
            "the last block is of the future": (good, only, self.sums(last="64:0")),
            "more bytes in one table": (good, only, self.sums(bytes=143)),
            "more blocks in one table": (good, only, self.sums(blocks=4)),
            "more blocks than events": (good, only, [{**row, "blocks": 2**40} for row in sums]),
            "a size that is too small": (good, only, change(3, key=6)),
            "a size that is too large": (good, only, change(3, key=4)),
            "one table has no sums": (self.summary(end, sums=4), only, sums[:2] + sums[3:]),
        }
        self.assertTrue(self.make_summary(good, only, sums))
        late = (*ask[:-1], "#298")
        self.assertEqual(self.said(self.trace, *late), self.truth(self.trace, *late))
        for what, (record, blocks, rows) in lies.items():
            with self.subTest(what):
                self.assertTrue(self.make_summary(record, blocks, rows))
                if what == "no sums":
                    # What it says cannot be seen to be wrong.
                    self.assertEqual(self.said(self.trace, *ask)[0], 0)
                    continue
                self.assertEqual(self.said(self.trace, *ask), expected)
        for changes in ({"blocks": 2**64 - 1}, {"bytes": 2**64 - 1}, {"key": 0},
                        {"key": 2**32 - 1}, {"last": "FFFF:0"}, {"api": 255}, {"table": 3},
                        {"table": 1}):
            self.assertTrue(self.make_summary(good, only, self.sums(**changes)))
            self.assertEqual(self.said(self.trace, *ask)[0], 0, changes)
            self.said(self.trace, "state", "--at", "#250")
            self.said(self.trace, "state", "--folded", "--at", "#250")
            self.said(self.trace, "peak")

    def test_peak(self):
        """One that is as the index says is believed; others are found without it."""
        expected = self.truth(self.trace, "peak", "-f", "json")
        state = support.json.loads(expected[1])
        bytes, blocks = int(state["live_bytes"]), state["live_blocks"]
        later = support.json.loads(self.truth(self.trace, "state", "-f", "json", "--at", "#250")[1])
        true = {"position": state["position"], "bytes": bytes, "blocks": blocks}
        peaks = {
            "true": true,
            "other bytes": {**true, "bytes": bytes + 1},
            "many bytes": {**true, "bytes_high": 1},
            "other blocks": {**true, "blocks": blocks + 1},
            "elsewhere": {**true, "position": later["position"]},
            "missing": None,
        }
        for what, peak in peaks.items():
            with self.subTest(what):
                self.assertTrue(self.make([self.record()], self.lists(), peak=peak))
                self.assertEqual(self.said(self.trace, "peak", "-f", "json"), expected)
        smaller = {"position": later["position"], "bytes": later["live_bytes"],
                   "blocks": later["live_blocks"]}
        self.assertTrue(self.make([self.record()], self.lists(), peak=smaller))
        self.assertNotEqual(self.said(self.trace, "peak", "-f", "json"), expected)

    def test_that_cannot_be_seen(self):
        """Commands give some answer."""
        for fields in ({"size": 2**64 - 1}, {"heap": 2**32 - 1},
                       {"thread": 2**32 - 1}, {"stack": 2**32 - 1}, {"heap": 0}, {"thread": 0}, {"stack": 1}, {"api": 255},
                       {"address": 2**64 - 1}, {"address": 0x2001}, {"event": 20}, {"event": 0},
                       {"allocated": "0:0"}, {"size": 0}):
            with self.subTest(fields):
                if not self.make([self.record()], self.lists(**fields)):
                    continue
                self.said(self.trace, *self.ask)
                self.said(self.trace, "leaks", "--at", "#250")
                self.said(self.trace, "fragmentation", "--at", "#250")
        for changes in ({"failed": 2**64 - 1}, {"overlaps": 7}, {"unknown": 2**64 - 1},
                        {"alloc": 0}, {"sequence": 0}):
            if not self.make([self.record(**changes)],
                             self.lists(position="0:3" if "sequence" in changes else "63:3")):
                continue
            self.said(self.trace, *self.ask)
            self.said(self.trace, "leaks", "--at", "#250")

    def test_damaged(self):
        """Every byte, and every length: not used, or right."""
        self.honest()
        chance = random.Random(5)
        with open(self.index_of(self.trace), "rb") as file:
            whole = file.read()
        for at in range(0, len(whole), 7):
            data = bytearray(whole)
            data[at] ^= 1 << chance.randrange(8)
            with open(self.index_of(self.trace), "wb") as file:
                file.write(data)
            self.assertEqual(self.said(self.trace, *self.ask), self.expected, at)
        for size in [*range(0, 16), *range(16, len(whole), 37), len(whole) - 8, len(whole) - 1]:
            with open(self.index_of(self.trace), "wb") as file:
                file.write(whole[:size])
            self.assertEqual(self.said(self.trace, *self.ask), self.expected, size)
        with open(self.index_of(self.trace), "wb") as file:
            file.write(whole + b"more")
        self.assertEqual(self.said(self.trace, *self.ask), self.expected)

    def test_no_regular_file(self):
        index = self.index_of(self.trace)

        def forget():
            if os.path.isdir(index):
                os.rmdir(index)
            else:
                os.unlink(index)

        for what, make in (("directory", lambda: os.mkdir(index)),
                           ("FIFO", lambda: os.mkfifo(index)),
                           ("zeros", lambda: os.symlink("/dev/zero", index)),
                           ("noise", lambda: os.symlink("/dev/urandom", index)),
                           ("loop", lambda: os.symlink(index, index)),
                           ("itself", lambda: os.symlink(self.trace, index))):
            make()
            with self.subTest(what):
                self.assertEqual(self.said(self.trace, *self.ask), self.expected)
                status, _, errors = self.said(self.trace, "index")
                self.assertEqual(status, support.INTERNAL)
                self.assertIn("is no index, and will not be overwritten", errors)
                self.assertEqual(self.files(), ["trace.ttd", "trace.ttd.idx"])
            forget()
        os.symlink(self.path("nowhere"), index)
        self.assertEqual(self.said(self.trace, *self.ask), self.expected)
        self.assertEqual(self.said(self.trace, "index")[0], support.INTERNAL)
        self.assertTrue(os.path.islink(index))
        self.assertEqual(self.files(), ["trace.ttd", "trace.ttd.idx"])

    def test_of_other_users(self):
        if os.geteuid() != 0:
            self.skipTest("only root can give files away")
        self.lie()
        index = self.index_of(self.trace)
        self.assertTrue(self.is_believed())
        os.chown(index, NOBODY, -1)
        self.assertFalse(self.is_believed())
        os.chown(self.trace, NOBODY, -1)
        self.lie()
        os.chown(index, NOBODY, -1)
        self.assertTrue(self.is_believed())
        os.chown(self.trace, 0, -1)
        self.assertEqual(self.said(self.trace, *self.ask),
                         (*self.expected[:2], f"ttdanalyze: warning: {index}: is not used: it "
                                              "belongs to another user\n"))

    def test_that_others_can_write(self):
        self.lie()
        index = self.index_of(self.trace)
        for mode in (0o600, 0o640, 0o644, 0o400, 0o620, 0o602, 0o666):
            os.chmod(index, mode)
            self.assertEqual(self.is_believed(), not mode & 0o022, oct(mode))
        self.assertEqual(self.said(self.trace, *self.ask),
                         (*self.expected[:2], f"ttdanalyze: warning: {index}: is not used: it "
                                              "can be written by other users\n"))
        self.assertEqual(self.said(self.trace, self.ask[0], "--no-index", *self.ask[1:]),
                         self.expected)
        self.run_ok("index", self.trace)
        self.assertEqual(self.said(self.trace, *self.ask), self.expected)


if __name__ == "__main__":
    support.main()
