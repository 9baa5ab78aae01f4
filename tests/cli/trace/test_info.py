# SPDX-License-Identifier: MIT
"""ttdanalyze info"""

import os
import pathlib
import re

import support
from support import Script, TestCase


class Info(TestCase):
    def script(self):
        script = Script(id=0xabcdef, parent=0x77, parent_position="12:3", pid=4242,
                        start_time=1709208000 * 10 ** 9).basics()
        script.add("metadata", key="command", value="demo%20--fast")
        script.alloc(0x1000, 100, wall=1000)
        script.alloc(0x2000, 50, thread=2, wall=2000)
        script.realloc(0x2000, 0x3000, 60, thread=2, wall=3000)
        script.free(0x3000, wall=3000)
        script.alloc(0, 10 ** 12, result=0, wall=4000)
        script.event("Create", heap=2, reserve=4096, commit=512, wall=5000)
        script.event("Free", base=0x1000, end="never", wall=2500000)
        script.add("user", position="4:0")
        script.add("thread", ends=2, position="4:0")
        script.add("unload", id=2, position="4:1")
        return script

    def test_counts(self):
        path = self.write(self.script().close(code=3, wall=5000000))
        found = self.json_of("info", path)
        expected = {"events": 7, "allocs": 3, "frees": 2, "reallocs": 1, "creates": 1,
                    "protects": 0, "locks": 0, "unlocks": 0, "destroys": 0, "failed": 1,
                    "unfinished": 1, "bytes_requested": 210, "user_events": 1, "threads": 2,
                    "lost_events": 0, "lost_events_exact": True, "closed": True,
                    "end_reason": "exited", "end_code": 3, "first_position": "0:1",
                    "last_position": "3:1", "last_wall_time_ns": 2500000,
                    "file_bytes": os.path.getsize(path)}
        self.assertEqual({k: found[k] for k in expected}, expected)
        self.assertEqual(found["chunks"], sum(c["chunks"] for c in found["chunk_list"]))
        events = [c for c in found["chunk_list"] if c["kind"] == "events"][0]
        self.assertEqual((events["chunks"], events["items"]), (1, 7))
        self.assertGreater(events["raw_bytes"], 0)
        self.assertAlmostEqual(found["bytes_per_event"], events["stored_bytes"] / 7, places=3)

    def test_without_the_first_chunk(self):
        """Nothing is said of the process, neither in words nor by zeros; and it may be missing in a
        list of those that were recorded together."""
        path, beside = (self.write(self.script().close(), name) for name in ("a.ttd", "b.ttd"))
        with open(path, "r+b") as file:
            file.seek(112 + 20)
            file.write(b"\xff\x00\xff\x00")
        result = self.run_ok("info", path)
        self.assertRegex(result.text, r"(?m)^Process +unknown: the first chunk of the trace is lost$")
        self.assertNotIn("1970", result.text)
        found = self.json_of("info", path)["trace"]
        for name in ("group", "start_time", "process_id", "parent_process_id", "inherits", "attached"):
            self.assertIsNone(found[name], name)
        listed = self.run_ok("info", "--group", "-f", "json", path)
        self.assertEqual([trace["process_id"] for trace in listed.json["traces"]], [None])
        self.assertIn(f"warning: {path}: its first chunk is lost", listed.errors)
        listed = self.run_ok("info", "--group", "-f", "json", beside)
        self.assertEqual([trace["process_id"] for trace in listed.json["traces"]], [4242])
        self.assertIn(f"warning: {path}: its first chunk is lost", listed.errors)

    def test_lists(self):
        found = self.json_of("info", self.write(self.script().close()))
        self.assertEqual(found["metadata"], [{"key": "command", "value": "demo --fast"}])
        self.assertEqual(
            found["thread_list"],
            [{"thread": 1, "os_id": 1000, "name": "main", "begun": "0:0", "ended": None,
              "events": 5, "allocs": 2, "frees": 2, "reallocs": 0},
             {"thread": 2, "os_id": 1001, "name": "worker", "begun": "1:0", "ended": "4:0",
              "events": 2, "allocs": 1, "frees": 0, "reallocs": 1}])
        self.assertEqual(
            found["module_list"],
            [{"module": 1, "path": "/opt/app/bin/demo", "build_id": "00ff12", "begin": "0x400000",
              "end": "0x500000", "bias": "0x400000", "loaded": "0:0", "unloaded": None},
             {"module": 2, "path": "/usr/lib/libwork.so", "build_id": "", "begin": "0x7000000",
              "end": "0x7100000", "bias": "0x7000000", "loaded": "0:0", "unloaded": "4:1"}])

    def test_trace(self):
        found = self.json_of("info", self.write(self.script().close()))["trace"]
        expected = {"trace_id": "0xabcdef", "group": "abcd" + 28 * "0", "parent_trace_id": "0x77",
                    "parent_position": "12:3", "process_id": 4242, "parent_process_id": 1,
                    "architecture": "x86_64", "pointer_size": 8,
                    "start_time": "2024-02-29T12:00:00Z", "inherits": False, "attached": False}
        self.assertEqual({k: found[k] for k in expected}, expected)

    def test_flags(self):
        script = Script(flags=2 | 8).basics()
        path = self.write(script.close())
        found = self.json_of("info", path)["trace"]
        self.assertEqual((found["inherits"], found["attached"], found["derived"],
                          found["recovered"]), (True, True, False, False))
        text = self.run_ok("info", path).text
        self.assertIn("began with its parent's live blocks", text)
        self.assertIn("had run before recording began", text)

    def test_ends(self):
        for reason, code, name, text in ((1, 0, "exited", "exited 0"),
                                         (2, 9, "killed", "killed by SIGKILL"),
                                         (3, 0, "detached", "the process went on")):
            path = self.write(Script().basics().close(reason=reason, code=code), f"t{reason}")
            found = self.json_of("info", path)
            self.assertEqual(found["end_reason"], name)
            self.assertEqual(found["end_code"], None if reason == 3 else code)
            self.assertIn(text, self.run_ok("info", path).text)

    def test_empty(self):
        found = self.json_of("info", self.write(Script().close()))
        self.assertEqual((found["events"], found["first_position"], found["last_position"]),
                         (0, None, None))

    def test_unclosed(self):
        path = self.write(self.script().abandon())
        found = self.json_of("info", path)
        self.assertEqual((found["closed"], found["end_reason"], found["end_code"]),
                         (False, None, None))
        self.assertEqual(found["events"], 7)
        self.assertIn("not closed cleanly", self.run_ok("info", path).text)

    def test_losses(self):
        script = Script().basics()
        script.add("loss", reason=1, count=17, thread=2, last_good="2:0", first_good="3:0")
        script.add("loss", reason=3, count="unknown", last_good="4:0", first_good="5:0")
        path = self.write(script.close())
        found = self.json_of("info", path)
        self.assertEqual((found["lost_events"], found["lost_events_exact"]), (17, False))
        self.assertEqual([(l["events"], l["thread"], l["last_good"]) for l in found["loss_list"]],
                         [(17, 2, "2:0"), (None, 0, "4:0")])
        self.assertIn("Lost events     at least 17\n", self.run_ok("info", path).text)

    def test_clients(self):
        """Marks of two clients; islands of two activities, and of one without a client."""
        def started(at, client, activity):
            script.add("user", position=at, thread=1, client="ttdtrace.thread%00",
                       data=f"%01{7 * '%00'}{client}%{activity:02x}{31 * '%00'}")
        script = self.script()
        for at in "4:1", "5:0":
            script.add("user", position=at, client="second-client-ab")
        script.add("user", position="5:1", client="a-client-comes-1")
        started("6:0", "a-client-comes-1", 9)
        started("6:1", "a-client-comes-1", 7)
        started("6:2", "a-client-comes-1", 9)
        started("6:3", 16 * "%00", 0)
        path = self.write(script.close())
        first = "612d636c-6965-6e74-2d63-6f6d65732d31"
        second = "7365636f-6e64-2d63-6c69-656e742d6162"
        found = self.json_of("info", path)
        self.assertEqual([list(c.values()) for c in found["client_list"]],
                         [[first, 4, "5:1", "6:2"], [second, 2, "4:1", "5:0"]])
        self.assertEqual([list(a.values()) for a in found["activity_list"]],
                         [[None, 0, 1, "6:3", "6:3"], [first, 7, 1, "6:1", "6:1"],
                          [first, 9, 2, "6:0", "6:2"]])
        rows = {r["name"]: r["value"] for r in self.run_ok("info", "-f", "csv", path).csv}
        self.assertEqual((rows["clients"], rows["activities"]), ("2", "3"))
        lines = [line.split() for line in self.run_ok("info", path).text.splitlines()]
        self.assertIn([second, "2", "4:1", "5:0"], lines)
        self.assertIn([first, "9", "2", "6:0", "6:2"], lines)
        self.assertIn(["none", "0", "1", "6:3", "6:3"], lines)

    def test_many_clients(self):
        """The list ends somewhere, and says so."""
        script = self.script()
        for i in range(4100):
            script.add("user", position="4:1", client=f"{i:016}")
        path = self.write(script.close())
        self.assertEqual(len(self.json_of("info", path)["client_list"]), 4096)
        self.assertIn("\nand others\n", self.run_ok("info", path).text)

    def test_text(self):
        text = self.run_ok("info", self.write(self.script().close())).text
        self.assertIn("  command       demo --fast\n", text)
        self.assertIn("started 2024-02-29T12:00:00Z", text)
        self.assertIn("Events          7 from 0:1 to 3:1", text)
        self.assertIn("  Alloc         3\n", text)
        self.assertIn("worker", text)
        self.assertIn("/opt/app/bin/demo build-id 00ff12 loaded 0:0\n", text)

    def test_every_kind(self):
        """Columns stand below their heads, however long the name of a kind is."""
        vectors = pathlib.Path(os.environ["TTD_SOURCE"]) / "tests" / "vectors"
        lines = self.run_ok("info", vectors / "good-snapshots.trace").text.splitlines()
        first = next(i for i, line in enumerate(lines) if line.startswith("Chunks "))
        last = lines.index("", first)
        starts = [m.start() for m in re.finditer(r"\S+", lines[first])]
        names = []
        for line in lines[first + 1:last]:
            self.assertTrue(all(line[at] != " " and line[at - 1] == " " for at in starts[1:]), line)
            names.append(line[:starts[1]].strip())
        self.assertEqual(names[-9:], ["snapshots", "regions", "variables", "frames", "classes",
                                      "fatal signals", "packed references", "block headers",
                                      "all"])

    def test_csv(self):
        rows = self.run_ok("info", "-f", "csv", self.write(self.script().close())).csv
        values = {r["name"]: r["value"] for r in rows}
        self.assertEqual((values["events"], values["end_reason"], values["last_position"],
                          values["command"]), ("7", "exited", "3:1", "demo --fast"))


if __name__ == "__main__":
    support.main()
