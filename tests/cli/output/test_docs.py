# SPDX-License-Identifier: MIT
"""spec/json.md and the output agree, in both directions; the manual names every option."""

import os
import re

import support
from json_doc import documented
from support import Script, TestCase, run
from snapshot_support import SnapshotScript

SOURCE = os.environ["TTD_SOURCE"]


class Json(TestCase):
    def setUp(self):
        super().setUp()
        script = Script().basics()
        script.add("metadata", key="command", value="demo")
        script.alloc(0x1000, 10)
        script.realloc(0x1000, 0x2000, 20)
        script.realloc(0x2000, 0x3000, 30)
        script.free(0x9000, size=5)
        script.alloc(0x6000, 10, stack=3)
        script.alloc(0x6100, 20, stack=3)
        script.free(0x6000)
        script.alloc(0x5000, 10)
        script.add("stack", parent=1, module=1, offset=0x800)
        script.add("symbol", module=1, offset=0x800, frames="new@new.c@1")
        script.alloc(0x7000, 10, stack=5)
        script.event("Create", heap=2, reserve=1, commit=1)
        script.event("Protect", heap=2, read_only=1)
        script.add("loss", reason=1, count=3, last_good="0:0", first_good="0:1")
        script.add("blocks", position="9:0", blocks="0x5000:10")
        script.add("user", position="9:0", data="text", client="client-of-a-test")
        script.add("user", position="9:0", client="ttdtrace.thread%00",
                   data="%01" + 7 * "%00" + 48 * "%00")
        self.trace = self.write(script.close())
        self.tables = documented()

    def known(self):
        """Options of a rule that matches one stack, and of an empty baseline."""
        for name, text in (("rules", "{\nrule\nMemcheck:Leak\n...\nsrc:new.c\n}\n{\nrule\n"
                                     "Memcheck:Free\n...\nfun:main\n}\n"),
                           ("baseline", "ttdanalyze baseline 2\n")):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(text)
        return "--suppressions", self.path("rules"), "--baseline", self.path("baseline")

    def agree(self, title, members, extra=()):
        self.assertEqual(list(members), list(extra) + self.tables[title], title)

    def test_columns(self):
        """CSV comes from the visitors of JSON: its other columns are those that JSON nests."""
        members = {name for table in self.tables.values() for name in table}
        nested = {"hot": "", "lifetimes": "unit", "moves": "", "timeline": "", "peak": "",
                  "fragmentation": "", "marks": "", "index": "", "events": "",
                  "snapshots": "memory", "diff --show-runtime": "quadrant",
                  "history --address 0x1000": "released_thread released_stack"}
        for command, columns in nested.items():
            header, *_ = self.run_ok(*command.split(), "-f", "csv", self.trace).text.splitlines()
            with self.subTest(command):
                self.assertEqual(set(header.split(",")) - members - {"certain"},
                                 set(columns.split()))

    def test_info(self):
        found = self.json_of("info", self.trace)
        self.agree("info", found)
        self.agree("info.trace", found["trace"])
        self.assertEqual(list(found["metadata"][0]), ["key", "value"])
        for name in ("thread_list", "client_list", "activity_list", "module_list", "chunk_list",
                     "loss_list"):
            self.agree("info." + name, found[name][0])

    def test_summary(self):
        found = self.json_of("summary", self.trace)
        self.agree("summary", found)
        self.assertEqual(list(found["errors"][0]), ["kind", "calls", "certain"])
        for name in ("leaks", "peak", "moves"):
            self.agree("summary." + name, found[name])
            self.agree("summary.owner", found[name]["owner"])
        self.agree("summary.temporary", found["temporary"])

    def test_digest(self):
        found = self.json_of("digest", self.trace)
        self.agree("digest", found)
        self.agree("digest.sites", found["sites"][0])
        self.assertEqual(list(found["others"]), ["sites"] + self.tables["digest.sites"][3:])

    def test_group(self):
        found = self.json_of("info", self.trace, "--group")
        self.agree("info --group", found)
        self.agree("info --group.traces", found["traces"][0])

    def test_views(self):
        for by in ("function", "file", "module", "thread", "heap"):
            site = self.tables["Call site." + by]
            for command in ("leaks", "state", "peak", "hot", "temporary", "moves"):
                found = self.json_of(command, self.trace, "--by", by)
                self.assertEqual(list(found["groups"][0])[-len(site):], site)
                self.assertNotIn("stack", found["groups"][0])
                found = self.json_of(command, self.trace, "--by", by, "--tree", "top-down")
                without = ("suppress", "known", "grow")
                if command not in ("leaks", "state", "peak"):
                    without += ("runtime",)
                extra = [n for n in self.tables["Tree"] if n.startswith(without)]
                self.assertEqual(list(found), [n for n in self.tables["Tree"] if n not in extra])
                names = self.tables["Tree.nodes"]
                for node in found["nodes"][:1]:
                    self.assertEqual(list(node), names + site)

        found = self.json_of("leaks", self.trace, "--tree", "top-down", *self.known())
        self.agree("Tree", found)

    def test_classes(self):
        script = SnapshotScript().basics()
        script.alloc(0x20000, 8)
        script.snapshot((0x20000, 0x401000), classes=((0x401000, "5Class"),))
        trace = self.write(script.close(), "classes.ttd")
        site = self.tables["Call site.class"]
        for command in ("leaks", "state"):
            found = self.json_of(command, trace, "--by", "class")
            self.assertEqual(list(found["groups"][0])[-len(site):], site)
        found = self.json_of("state", trace, "--by", "class", "--blocks", "--heaps",
                             "--show-runtime", "--address", "0x20000")
        self.agree("state", found)
        self.agree("leaks.snapshot", found["snapshot"])
        found = self.json_of("leaks", trace, "--by", "class", "--tree", "top-down")
        self.assertEqual(list(found["nodes"][0]), self.tables["Tree.nodes"] + site)

    def test_events(self):
        rows = self.run_ok("events", "-f", "json", "--parameters", "--stacks",
                           self.trace).json_lines
        order = self.tables["events"]
        for row in rows:
            self.assertEqual(list(row), [name for name in order if name in row])
        self.assertEqual({name for row in rows for name in row}, set(order))
        self.agree("Frame", rows[0]["frames"][0])

    def test_leaks(self):
        found = self.json_of("leaks", self.trace, "--show-runtime", *self.known())
        self.agree("leaks", found)
        self.agree("leaks.suppressions", found["suppressions"][0])
        self.agree("leaks.groups", found["groups"][0], ["group", "address"])
        self.agree("leaks.groups", found["runtime_groups"][0])
        self.agree("Frame", found["groups"][0]["stack"][0])

    def test_moves(self):
        found = self.json_of("moves", self.trace)
        self.agree("moves", found)
        names = self.tables["moves"]
        counts = names[names.index("reallocs"):names.index("bytes_avoidable") + 1]
        self.agree("moves.groups", found["groups"][0], counts)
        self.agree("moves.chains", found["chains"][0])
        self.agree("moves.inferred", found["inferred"])
        members = self.tables["moves.groups"]
        self.assertEqual(list(found["inferred"]["groups"][0]),
                         self.tables["moves.inferred"][:2] + members)

    def test_state(self):
        found = self.json_of("state", self.trace, "--blocks", "--heaps", "--address", "0x1000",
                             "--show-runtime")
        self.tables["state"].remove("snapshot")
        self.agree("state", found)
        self.agree("leaks.groups", found["groups"][0])
        self.agree("state.heap_tree", found["heap_tree"][0])
        self.agree("state.blocks", found["blocks"][0])
        self.agree("state.address", found["address"])
        self.agree("history.blocks", found["address"]["block"])
        for name in ("heaps", "threads", "sizes"):
            self.assertEqual(list(found[name][0])[-2:], ["blocks", "bytes"])

    def test_history(self):
        found = self.json_of("history", self.trace, "--address", "0x1000")
        self.agree("history", found)
        self.agree("history.blocks", found["blocks"][0])
        self.agree("Call", found["blocks"][0]["released_by"])

    def test_peak_and_diff(self):
        found = self.json_of("peak", self.trace, "--show-runtime")
        self.agree("peak", found)
        self.agree("leaks.groups", found["groups"][0])
        found = self.json_of("diff", self.trace, "--show-runtime")
        self.agree("diff", found)
        self.agree("diff.aifi", found["aifo"])
        self.agree("leaks.groups", found["aifo"]["groups"][0])

    def test_diff_of_two(self):
        script = Script().basics()
        script.alloc(0x1000, 10)
        for arguments in ((self.trace, self.write(script.close(), "other")),
                          ("--changes", self.trace)):
            found = self.run_ok("diff", "-f", "json", *arguments).json
            self.agree("diff of two heaps", found)
            self.agree("diff of two heaps.old", found["old"])
            self.agree("diff of two heaps.old", found["new"])
            self.agree("diff of two heaps.changes", found["changes"][0])
            tree = self.run_ok("diff", "-f", "json", "--tree", "top-down", *arguments).json
            self.agree("Tree of two heaps", tree)
            names = self.tables["Tree of two heaps.nodes"]
            self.assertEqual(list(tree["nodes"][0]), names + self.tables["Call site.function"])

    def test_usage(self):
        for command in ("hot", "temporary"):
            found = self.json_of(command, self.trace)
            self.agree("hot", found)
            names = self.tables["hot"]
            counts = names[names.index("allocations"):names.index("destroyed") + 1]
            self.agree("hot.groups", found["groups"][0], counts)
        found = self.json_of("lifetimes", self.trace)
        self.agree("lifetimes", found)
        self.agree("lifetimes.by_time", found["by_time"][0])

    def test_timeline_and_fragmentation(self):
        found = self.json_of("timeline", self.trace)
        self.agree("timeline", found)
        self.agree("timeline.points", found["points"][0])
        found = self.json_of("fragmentation", self.trace)
        self.agree("fragmentation", found)
        names = self.tables["fragmentation"]
        sums = names[names.index("blocks"):names.index("largest_gap") + 1]
        self.assertEqual(list(found["regions"][0]), self.tables["fragmentation.regions"] + sums)
        self.assertEqual(list(found["keepers"][0]),
                         self.tables["fragmentation.keepers"] + ["stack_id", "stack"])

    def test_errors(self):
        script = Script().basics()
        script.alloc(0x1000, 10)
        script.free(0x1000)
        script.free(0x1000)
        path = self.write(script.close(), "errors")
        found = self.json_of("errors", path, *self.known())
        self.agree("errors", found)
        names = self.tables["leaks.suppressions"]
        self.assertEqual(list(found["suppressions"][0]), ["findings", "calls"] + names[2:])
        found = self.json_of("errors", path)
        self.agree("errors.findings", found["findings"][0])
        self.agree("errors.block", found["findings"][0]["block"])
        self.agree("Call", found["findings"][0]["allocated"])

    def test_fatal_signal(self):
        script = Script().basics()
        script.alloc(0x1000, 10)
        script.add("fatal", position="9:0", code=1, address=0x1001, registers="0:0x1002")
        path = self.write(script.close(reason=2, code=11), "fatal")
        fatal = self.json_of("errors", path)["fatal_signal"]
        self.agree("errors.fatal_signal", fatal)
        self.agree("errors.registers", fatal["registers"][0])
        self.assertEqual(list(fatal["fault"]), self.tables["errors.registers"][2:])
        self.assertEqual(list(self.json_of("info", path)["fatal_signal"]),
                         self.tables["errors.fatal_signal"][:8])

    def test_index(self):
        self.agree("index", self.json_of("index", self.trace))

    def test_verify_and_recover(self):
        with open(self.trace, "ab") as file:
            file.write(b"x" * 8)
        found = run("verify", "-f", "json", self.trace).json
        self.agree("verify", found)
        self.agree("verify.problems", found["problems"][0])
        found = self.json_of("recover", self.trace, "-o", self.path("new"))
        verify = self.tables["verify"]
        self.assertEqual(list(found), self.tables["recover"] + verify[verify.index("ok"):])

    def test_memory(self):
        script = Script().basics()
        script.alloc(0x1000, 10)
        script.add("pages", size=512, texts="abcdef")
        script.add("map", snapshot=1, size=512, position="9:0", runs="0x1000:1:3")
        script.add("snapshot", number=1, position="9:0", contents=4)
        path = self.write(script.close(), "memory.ttd")
        found = self.json_of("memory", path, "--address", "0x1000")
        self.agree("memory", found)
        self.agree("memory.parts", found["parts"][0])
        self.agree("Block", found["blocks"][0])
        self.agree("Call", found["blocks"][0]["allocated"])
        self.agree("Snapshot", found["parts"][0]["snapshot"])
        found = self.json_of("find", path, "--string", "abc")
        self.agree("find", found)
        self.agree("find.places", found["places"][0])
        found = self.json_of("snapshots", path)
        self.agree("snapshots", found)
        self.agree("snapshots.snapshots", found["snapshots"][0])

    def test_referrers(self):
        script = Script().basics()
        script.alloc(0x1000, 10)
        script.alloc(0x2000, 10)
        script.add("regions", snapshot=1, regions="1:0x1000:0x2000,2:0x400000:0x100:0:1:.bss")
        script.add("references", snapshot=1, words="1:0:0x2000,2:8:0x1000")
        script.add("snapshot", number=1, position="9:0")
        path = self.write(script.close(), "references.ttd")
        found = self.json_of("referrers", path, "--address", "0x2000")
        self.agree("referrers", found)
        self.agree("referrers.referrers", found["referrers"][0])
        self.agree("Block", found["referrers"][0]["block"])
        self.agree("Root", found["referrers"][1]["root"])
        for command in ("retained", "roots"):
            found = self.json_of(command, path)
            self.agree("retained", found)
            self.agree("retained.retainers", found["retainers"][0])

    def test_remade(self):
        for command, *arguments in (("repack",), ("slice", "--from", "1:0")):
            self.agree("slice, merge, repack",
                       self.json_of(command, self.trace, *arguments, "-o", self.path(command)))

    def test_redact(self):
        self.agree("redact", self.json_of("redact", self.trace, "-o", self.path("redacted")))


    def test_marks(self):
        mark = self.run_ok("marks", "-f", "json", self.trace).json_lines[0]
        self.agree("marks", mark)


class Manual(TestCase):
    def test_options(self):
        with open(os.path.join(SOURCE, "analyzer", "ttdanalyze.1"), encoding="utf-8") as file:
            manual = file.read().replace("\\-", "-")
        for command in ("summary", "info", "events", "leaks", "moves", "state", "history", "peak", "diff",
                        "hot", "temporary", "lifetimes", "timeline", "fragmentation", "errors", "verify", "recover",
                        "redact", "memory", "find", "query",
                        "snapshots", "referrers", "roots",
                        "retained", "slice", "merge", "repack", "index", "export", "import",
                        "digest"):
            self.assertRegex(manual, rf"(?m)^\.Ss .*\b{command}\b")
            for option in re.findall(r"(?m)^ +(?:-\w, )?--([\w-]+)", run(command, "--help").text):
                self.assertIn(f"Fl -{option}", manual, command)


if __name__ == "__main__":
    support.main()
