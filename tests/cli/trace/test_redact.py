# SPDX-License-Identifier: MIT
"""ttdanalyze redact: what is private is gone, and everything else is as it was."""

import os
import stat

import support
from support import Script, TestCase, run

SECRET = "hunter2"
PRIVATE = ("/home/ann/secret-project", "ann-laptop", "demo.c", "_Z5stealv", "worker-of-ann",
           "--password", "client-data")


class Redact(TestCase):
    def script(self, codec=0):
        """Not compressed, so that what is there can be found in the bytes."""
        script = Script(codec=codec)
        script.add("metadata", key="command", value="demo%20--password%20x")
        script.add("metadata", key="host", value="ann-laptop")
        script.add("metadata", key="unrecorded", value="a%20program%20that%20was%20executed")
        script.add("module", path="/home/ann/secret-project/demo", bias=0x400000, begin=0x400000,
                   end=0x500000, build_id="00ff12", position="0:0")
        script.add("thread", os=1000, name="worker-of-ann", position="0:0")
        script.add("heap", name="malloc")
        script.add("stack", parent=0, module=1, offset=0x100)
        script.add("stack", parent=1, module=1, offset=0x200)
        script.add("symbol", module=1, offset=0x100, frames="main@demo.c@10")
        script.add("symbol", module=1, offset=0x200, frames="_Z5stealv@demo.c@20")
        script.alloc(0x1000, 100)
        script.alloc(0x2000, 50, stack=1)
        script.free(0x1000)
        script.add("loss", reason=1, count=3, last_good="1:0", first_good="1:1")
        script.add("user", position="1:2", data="client-data")
        script.add("pages", texts=f"user%3Dann%20password%3D{SECRET},{SECRET}")
        script.add("map", snapshot=1, position="1:2", runs="0x1000:2:3,0x8000:4:0")
        script.add("snapshot", number=1, position="1:2", contents=4)
        script.alloc(0x3000, 10)
        return script

    def redact(self, path, *arguments):
        target = self.path("redacted.ttd")
        return target, self.json_of("redact", path, "-o", target, *arguments)

    def holds(self, path, *texts):
        with open(path, "rb") as file:
            data = file.read()
        return [text for text in texts if text.encode() in data]

    def test_contents(self):
        path = self.write(self.script().close())
        self.assertEqual(self.holds(path, SECRET, *PRIVATE), [SECRET, *PRIVATE])
        target, found = self.redact(path)
        self.assertEqual(self.holds(target, SECRET), [])
        self.assertEqual(self.holds(target, *PRIVATE), list(PRIVATE))
        self.assertEqual((found["page_bytes"], found["memory_snapshots"], found["has_strings"],
                          found["strings"]), (8192, 1, True, 0))
        self.assertTrue(run("verify", "-f", "json", target).json["ok"])
        self.assertEqual(stat.S_IMODE(os.stat(target).st_mode), 0o600)

    def test_info(self):
        """info tells whether a trace has contents."""
        path = self.write(self.script().close())
        self.assertEqual([self.json_of("info", path)[k] for k in ("snapshots", "memory_bytes")],
                         [1, 8192])
        text = self.run_ok("info", path).text
        self.assertRegex(text, r"Snapshots +1\nContents +8,192 bytes of the program's memory")
        target, _ = self.redact(path)
        self.assertEqual([self.json_of("info", target)[k] for k in ("snapshots", "memory_bytes")],
                         [1, 0])
        self.assertIn("the trace has nothing of what the program's memory held",
                      self.run_ok("info", target).text)

    def test_strings(self):
        target, found = self.redact(self.write(self.script().close()), "--strings")
        self.assertEqual(self.holds(target, SECRET, *PRIVATE), [])
        self.assertEqual((found["strings"], found["metadata"], found["build_ids"],
                          found["user_events"], found["has_strings"]), (6, 2, 1, 1, False))
        self.assertTrue(run("verify", "-f", "json", target).json["ok"])
        info = self.json_of("info", target)
        self.assertEqual([m["key"] for m in info["metadata"]], ["unrecorded", "redacted"])
        self.assertEqual(info["module_list"][0]["build_id"], "")

    def test_answers(self):
        """Everything but names is the same; without --strings names as well."""
        path = self.write(self.script(codec=1).close(code=3))
        for arguments in ((), ("--strings",)):
            with self.subTest(arguments=arguments):
                target = self.path("redacted" + "".join(arguments))
                self.run_ok("redact", "-o", target, *arguments, path)
                for command in ("events --parameters", "leaks", "state --blocks", "timeline",
                                "peak", "history --address 0x1000"):
                    before, after = (run(*command.split(), "-f", "json", name).raw
                                     for name in (path, target))
                    if not arguments:
                        self.assertEqual(before, after, command)
                before, after = (self.json_of("leaks", name) for name in (path, target))
                for found in (before, after):
                    for group in found["groups"]:
                        del group["stack"]
                self.assertEqual(before, after)
                before, after = (self.json_of("info", name) for name in (path, target))
                self.assertEqual([before[k] for k in ("events", "end_code", "lost_events")],
                                 [after[k] for k in ("events", "end_code", "lost_events")])

    def test_names_stay_distinct(self):
        target, _ = self.redact(self.write(self.script().close()), "--strings")
        groups = self.json_of("state", target, "--by", "function")["groups"]
        self.assertEqual(len(groups), 2, groups)

    def test_snapshots(self):
        """References stay; memory snapshots are of blocks alone."""
        script = self.script()
        script.add("regions", snapshot=2, regions="2:0x500000:0x100:0:1:.bss")
        script.add("references", snapshot=2, words="1:8:0x3000")
        script.add("snapshot", number=2, position="9:0", contents=6)
        path = self.write(script.close())
        for arguments in ((), ("--strings",)):
            with self.subTest(arguments=arguments):
                target = self.path("redacted" + "".join(arguments))
                self.run_ok("redact", "-o", target, *arguments, path)
                self.assertTrue(run("verify", "-f", "json", target).json["ok"])
                found = self.json_of("snapshots", target)["snapshots"]
                self.assertEqual([(s["contents"], s["references"]) for s in found],
                                 [(["blocks"], 0), (["references"], 1)])
                self.assertEqual(self.json_of("leaks", path)["classes"],
                                 self.json_of("leaks", target)["classes"])

    def test_twice(self):
        once, _ = self.redact(self.write(self.script().close()))
        twice = self.path("twice")
        found = self.json_of("redact", once, "-o", twice, "--strings")
        self.assertEqual((found["page_bytes"], found["memory_snapshots"]), (0, 0))
        metadata = self.json_of("info", twice)["metadata"]
        self.assertEqual([m["value"] for m in metadata if m["key"] == "redacted"],
                         ["contents of memory", "contents of memory, strings"])

    def test_outputs(self):
        path = self.write(self.script().close())
        with open(path, "rb") as file:
            before = file.read()
        result = run("redact", "-o", path, path)
        self.assertEqual(result.status, support.USAGE)
        self.assertIn("exists, and is not overwritten", result.errors)
        self.assertEqual(run("redact", path).status, support.USAGE)
        with open(path, "rb") as file:
            self.assertEqual(file.read(), before)
        piped = run("redact", "-o", "/dev/stdout", path)
        target, _ = self.redact(path)
        with open(target, "rb") as file:
            self.assertEqual(piped.raw, file.read())
        text = run("redact", "-o", self.path("other"), path).text
        self.assertIn("removed 8,192 bytes of memory in 1 snapshot; strings are still there", text)

    def test_damaged(self):
        path = self.write(self.script().close())
        with open(path, "r+b") as file:
            data = file.read()
            file.seek(data.index(SECRET.encode()))
            file.write(b"X")
        result = run("redact", "-o", self.path("new"), path)
        self.assertEqual(result.status, support.DAMAGED)
        self.assertIn("corrupt", result.errors)
        self.assertIn("ttdanalyze recover", result.errors)
        unclosed = self.write(self.script().abandon(), "unclosed.ttd")
        result = run("redact", "-o", self.path("new"), unclosed)
        self.assertEqual(result.status, support.DAMAGED)
        self.assertIn("not closed", result.errors)
        self.assertEqual(sorted(os.listdir(self.folder)), ["trace.ttd", "unclosed.ttd"])
        self.run_ok("recover", "-o", self.path("recovered"), path)
        target, found = self.redact(self.path("recovered"))
        self.assertTrue(run("verify", "-f", "json", target).json["ok"])
        self.assertEqual((self.holds(target, SECRET), found["page_bytes"]), ([], 0))


if __name__ == "__main__":
    support.main()
