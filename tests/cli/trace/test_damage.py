# SPDX-License-Identifier: MIT
"""Damaged traces: what every command makes of them; verify and recover"""

import os
import re
import stat
import sys

sys.path.append(os.path.join(os.environ["TTD_SOURCE"], "tests", "reader"))

import support
from xxh3 import xxh3
from support import Script, TestCase, run

HEADER = 112


class Damage(TestCase):
    """A trace of ten chunks of four events each, with leaks in each."""

    def setUp(self):
        super().setUp()
        self.make(4)

    def make(self, events_per_chunk):
        script = Script(events_per_chunk=events_per_chunk, codec=0).basics()
        for i in range(40):
            script.alloc(0x1000 + 16 * i, 1)
        self.trace = self.write(script.close())
        with open(self.trace, "rb") as file:
            self.data = file.read()

    def chunks(self, kind):
        """Offset and payload size of each chunk of a kind."""
        found = []
        magic = self.data[:8]
        offset = 0
        while offset < len(self.data):
            self.assertEqual(self.data[offset:offset + 8], magic)
            stored = int.from_bytes(self.data[offset + 16:offset + 20], "little")
            if int.from_bytes(self.data[offset + 10:offset + 12], "little") == kind:
                found.append((offset, stored))
            offset += HEADER + (stored + 7) // 8 * 8
        return found

    def save(self, data, name="damaged.ttd"):
        path = self.path(name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def damaged(self):
        """A byte in the payload of the third chunk of events is wrong."""
        offset, _ = self.chunks(8)[2]
        at = offset + HEADER + 3
        return self.save(self.data[:at] + bytes([self.data[at] ^ 0x40]) + self.data[at + 1:]), offset

    def test_reading_goes_on(self):
        path, offset = self.damaged()
        for command in ("leaks", "info", "moves", "events"):
            result = self.run_ok(command, "-f", "json", path)
            self.assertRegex(result.errors, rf"warning: {re.escape(path)}: offset 0x{offset:x}, "
                                            r"chunk \d+: corrupt: \w+", command)
        found = self.json_of("leaks", path)
        self.assertEqual((found["total_blocks"], found["certain"]), (36, False))
        self.assertRegex(found["reasons"][0], "4 events are missing after .*damaged or missing")
        self.assertEqual(self.json_of("info", path)["lost_events"], 4)
        rows = self.run_ok("events", "-f", "json", path).json_lines
        self.assertEqual([r["number"] for r in rows], [*range(8), *range(12, 40)])

    def test_recovered_without_what_verdicts_rest_on(self):
        """The record of a loss may be lost itself, and so may the parents of heaps: recover cannot
        tell, so that nothing is certain of what it has made."""
        for kind in (10, 26):
            script = Script(codec=0).basics()
            script.add("heap", name="pool", handle=0x1000, parent=1)
            script.alloc(0x1000, 256)
            if kind == 10:
                script.add("loss", reason=1, count=3, last_good="0:0", first_good="0:1")
            else:
                script.alloc(0x1000, 16, heap=3)
            with open(self.write(script.close(), f"whole{kind}"), "rb") as file:
                self.data = file.read()
            (offset, _), = self.chunks(kind)
            damaged = bytearray(self.data)
            damaged[offset + HEADER] ^= 0x40
            out = self.path(f"recovered{kind}")
            run("recover", "-o", out, self.save(damaged))
            for arguments in (["state"], ["state", "--at", "0:3"], ["leaks"], ["errors"], ["peak"],
                              ["timeline"], ["events"]):
                result = self.run_ok(*arguments, "-f", "json", out)
                text = result.errors if arguments == ["events"] else " ".join(
                    result.json["reasons"])
                self.assertIn("the trace was recovered, and its missing parts", text, arguments)

    def test_cut_before_all_events(self):
        """A part of no events is no position: the reason is not that the range was given wrongly."""
        offset, _ = self.chunks(8)[0]
        path = self.save(self.data[:offset])
        for arguments in (["diff", "--from", "10%"],
                          ["report", "--from", "10%", "-o", self.path("page.html")]):
            if arguments[0] == "report" and not support.HAS_VIEWER:
                continue
            result = run(*arguments, path)
            self.assertEqual(result.status, support.USAGE)
            self.assertIn("no event that can be read comes at --from or after it", result.errors)

    def test_first_chunk_is_lost(self):
        """It alone says what clocks count: times are not known, nor in what recover makes."""
        script = Script(time_unit=1000, events_per_chunk=4).basics()
        for i in range(8):
            script.alloc(0x1000 + 16 * i, 1, wall=1000000 * i)
        whole = self.write(script.close(), "timed")
        with open(whole, "rb") as file:
            data = bytearray(file.read())
        self.assertEqual([r["wall_time_ns"] for r in
                          self.run_ok("events", "-f", "json", whole).json_lines],
                         [1000000 * i for i in range(8)])
        data[40] ^= 1
        lost = self.save(bytes(data), "lost")
        recovered = self.path("recovered")
        run("recover", "-o", recovered, lost)
        self.run_ok("verify", recovered)
        for path in (lost, recovered):
            result = self.run_ok("events", "-f", "json", path)
            self.assertEqual({r["wall_time_ns"] for r in result.json_lines}, {None})
            self.assertEqual(len(result.json_lines), 8)
            self.assertIn("the first chunk is lost: wall times are not known", result.errors)
            self.assertEqual(self.run_ok("events", "-f", "csv", path).csv[7]["wall_time_ns"], "")
            found = self.json_of("info", path)
            self.assertEqual((found["last_wall_time_ns"], found["trace"]["time_unit_ns"],
                              found["trace"]["start_time"]), (None, None, None))
            self.assertNotIn(" 0 s,", self.run_ok("info", path).text)
            for arguments in (("timeline",), ("state", "--at", "+1s")):
                result = run(*arguments, path)
                self.assertEqual(result.status, support.DAMAGED)
                self.assertIn("wall times are not known", result.errors)
            self.assertEqual(self.json_of("timeline", path, "--over", "position")["points"][-1]
                             ["live_blocks"], 8)
            for command in ("hot", "lifetimes"):
                self.assertIn("wall times are not known: the trace's first chunk is lost",
                              self.json_of(command, path)["reasons"])
            self.assertNotIn("wall times", str(self.json_of("leaks", path)["reasons"]))

    def test_damage_behind_a_good_checksum(self):
        """Stacks are decoded when they are needed: what is wrong is said then, and once."""
        offset, size = self.chunks(3)[0]
        data = bytearray(self.data)
        payload = offset + HEADER
        frames = payload + 16 + data[payload]
        self.assertEqual(list(data[frames:frames + 4]), [0, 0, 0, 0])
        data[frames + 1] = 9
        data[offset + 96:offset + 104] = xxh3(data[payload:payload + size]).to_bytes(8, "little")
        data[offset + 104:payload] = xxh3(data[offset:offset + 104]).to_bytes(8, "little")
        path = self.save(bytes(data))
        for command in ("leaks", "peak", "hot", "state"):
            result = self.run_ok(command, "-f", "json", path)
            self.assertEqual(result.errors.count("warning"), 1, (command, result.errors))
            self.assertRegex(result.errors, rf"warning: {re.escape(path)}: offset 0x{offset:x}, "
                                            r"chunk \d+: corrupt: frame of a stack", command)
        found = self.json_of("leaks", path)
        self.assertEqual((found["total_blocks"], found["groups"][0]["stack"]), (40, []))
        self.assertEqual(self.run_ok("info", path).errors.count("corrupt: frame of a stack"), 1)
        self.assertEqual(run("verify", path).status, 1)

    def test_damage_is_reported_once(self):
        """A chunk that is missing is met in every pass over the file."""
        offset, _ = self.chunks(8)[2]
        data = bytearray(self.data)
        data[offset + 30] ^= 1
        path = self.save(bytes(data))
        for command in ("leaks", "info", "moves", "events"):
            result = self.run_ok(command, "-f", "json", path)
            self.assertEqual(result.errors.count(f"0x{offset:x}"), 1, (command, result.errors))

    def test_positions_in_damage(self):
        """A position that is asked for lies in what is missing."""
        path, _ = self.damaged()
        self.assertEqual(self.json_of("leaks", path, "--at", "#9")["total_blocks"], 8)
        self.assertEqual(self.json_of("leaks", path, "--at", "#12")["total_blocks"], 9)
        rows = self.run_ok("events", "-f", "json", "--from", "#9", "--to", "#13", path).json_lines
        self.assertEqual([r["number"] for r in rows], [12])

    def test_cut_off(self):
        offset, size = self.chunks(8)[5]
        path = self.save(self.data[:offset + HEADER + size // 2])
        result = self.run_ok("leaks", "-f", "json", path)
        self.assertEqual(result.json["total_blocks"], 20)
        self.assertIs(result.json["certain"], False)
        self.assertIn("ends within a chunk", result.json["reasons"][-1])
        self.assertRegex(result.errors, rf"warning: .*offset 0x{offset:x}.*truncated")
        self.assertEqual(result.errors.count("warning"), 1)

    def test_every_truncation(self):
        """Whatever is left: a report or a clear error, never a crash."""
        for size in [*range(0, len(self.data), 97), len(self.data) - 1]:
            path = self.save(self.data[:size])
            for command in ("leaks", "info", "verify"):
                result = run(command, "-f", "json", path)
                self.assertIn(result.status, (0, 1, 3, 4), (size, command, result.errors))
                if result.status in (0, 1):
                    self.assertTrue(result.json)
                else:
                    self.assertIn(path, result.errors)

    def test_many_places(self):
        """A warning for each gap, up to a limit; bad chunks with nothing good between are one."""
        os.unlink(self.trace)
        self.make(2)
        for step, reason, told, more in ((1, "^40 events", 1, 0), (2, "^20 events", 9, 1)):
            data = bytearray(self.data)
            offsets = [offset for offset, _ in self.chunks(8)[::step]]
            for offset in offsets:
                data[offset + HEADER] ^= 1
            path = self.save(bytes(data))
            result = self.run_ok("leaks", "-f", "json", path)
            self.assertIs(result.json["certain"], False)
            self.assertRegex(result.json["reasons"][0], reason)
            self.assertEqual(result.errors.count("warning"), told + more)
            for offset in offsets[:told]:
                self.assertEqual(result.errors.count(f"offset 0x{offset:x},"), 1)

    def test_verify_intact(self):
        result = self.run_ok("verify", self.trace)
        self.assertRegex(result.text, r"^\S+: intact: \d+ chunks, 40 events, 0 events lost, ")
        found = self.json_of("verify", self.trace)
        expected = {"problems": [], "ok": True, "closed": True, "problem_count": 0, "events": 40,
                    "lost_events": 0, "file_bytes": len(self.data),
                    "intact_bytes": len(self.data)}
        self.assertEqual({k: found[k] for k in expected}, expected)

    def test_verify_damaged(self):
        path, offset = self.damaged()
        result = run("verify", "-f", "json", path)
        self.assertEqual(result.status, 1)
        found = result.json
        self.assertEqual((found["ok"], found["closed"]), (False, True))
        problem = found["problems"][0]
        self.assertEqual((problem["offset"], problem["status"], problem["missing_events"]),
                         (offset, "corrupt", 4))
        self.assertEqual(set(problem), {"file", "offset", "chunk", "status", "what", "bytes",
                                        "missing_chunks", "missing_events", "last_good",
                                        "first_good"})
        result = run("verify", path)
        self.assertEqual(result.status, 1)
        self.assertRegex(result.text, rf"^{re.escape(path)}: offset 0x{offset:x}, chunk "
                                      rf"{problem['chunk']}: corrupt: .*missing.*4 events between")
        rows = run("verify", "-f", "csv", path).csv
        self.assertEqual((rows[0]["offset"], rows[0]["missing_events"]), (str(offset), "4"))

    def test_verify_unclosed(self):
        script = Script().basics()
        script.alloc(0x1000, 1)
        path = self.write(script.abandon(), "unclosed")
        result = run("verify", "-f", "json", path)
        self.assertEqual(result.status, 1)
        self.assertEqual((result.json["ok"], result.json["closed"]), (False, False))
        self.assertIn("not closed cleanly", run("verify", path).text)

    def test_recover(self):
        path, offset = self.damaged()
        target = self.path("recovered.ttd")
        result = self.run_ok("recover", "-f", "json", "-o", target, path)
        self.assertEqual((result.json["result"], result.json["events"]), (target, 36))
        self.assertIn(f"offset 0x{offset:x}", result.errors)
        self.assertEqual(stat.S_IMODE(os.stat(target).st_mode), 0o600)
        self.assertEqual(run("verify", target).status, 0)
        info = self.json_of("info", target)
        self.assertEqual((info["events"], info["lost_events"], info["closed"],
                          info["trace"]["recovered"]), (36, 4, True, True))
        rows = self.run_ok("events", "-f", "json", target).json_lines
        self.assertEqual([r["number"] for r in rows], [*range(8), *range(12, 40)])
        self.assertEqual(self.json_of("leaks", target, "--at", "#12")["total_blocks"], 9)
        self.assertEqual(self.json_of("leaks", target)["total_blocks"], 36)
        self.assertEqual(sorted(os.listdir(self.folder)),
                         ["damaged.ttd", "recovered.ttd", "trace.ttd"])

    def test_recover_unclosed(self):
        """Nobody knows what came after the last whole chunk."""
        for kept in (2, 3):
            script = Script(events_per_chunk=1).basics()
            for i in range(3):
                script.alloc(0x1000 * (i + 1), 1)
            path = self.write(script.abandon(), f"unclosed{kept}")
            with open(path, "rb") as file:
                data = file.read()
            if kept == 2:
                data = data[:data.rfind(b"\x89TTDH") - 8 + 16]
                with open(path, "wb") as file:
                    file.write(data)
            target = self.path(f"recovered{kept}")
            run("recover", "-o", target, path)
            self.assertTrue(self.json_of("verify", target)["ok"])
            leaks = self.json_of("leaks", target)
            self.assertEqual((leaks["certain"], len(leaks["reasons"])), (False, 1))
            self.assertEqual(run("leaks", target).text.count("Uncertain:"), 1)

    def test_recover_refuses(self):
        path, _ = self.damaged()
        before = os.stat(path)
        for target in (path, self.trace):
            result = run("recover", "-o", target, path)
            self.assertEqual(result.status, support.USAGE)
            self.assertIn("not overwritten", result.errors)
        self.assertEqual(run("recover", path).status, support.USAGE)
        self.assertEqual(os.stat(path).st_mtime_ns, before.st_mtime_ns)
        result = run("recover", "-o", self.path("no/such/folder"), path)
        self.assertEqual(result.status, support.INTERNAL)
        result = run("recover", "-o", self.path("new"), self.path("missing"))
        self.assertEqual(result.status, support.OPEN)
        self.assertFalse(os.path.exists(self.path("new")))

    def test_not_a_trace(self):
        path = self.save(b"\x7fELF" + bytes(5000))
        empty = self.save(b"", "empty")
        for command in ("info", "events", "leaks", "moves", "verify"):
            for name in (path, empty, self.path("missing"), self.folder):
                result = run(command, "-f", "json", name)
                self.assertEqual(result.status, support.OPEN, (command, name, result.errors))
                self.assertIn(name, result.errors)
                self.assertEqual(result.raw, b"")
                self.assertEqual(result.errors.count("\n"), 1, result.errors)

    def test_first_chunk_damaged(self):
        data = bytearray(self.data)
        data[HEADER] ^= 1
        path = self.save(bytes(data))
        result = self.run_ok("leaks", "-f", "json", path)
        self.assertEqual(result.json["total_blocks"], 40)


if __name__ == "__main__":
    support.main()
