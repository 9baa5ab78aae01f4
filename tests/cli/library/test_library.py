# SPDX-License-Identifier: MIT
"""libttdheap: each call answers as the command that prints the same."""

import json
import os
import random

import oracle
import served
import support
from snapshot_support import IN_BSS, IN_STACK, SnapshotScript
from support import Script, TestCase

HEAPDUMP = os.environ["HEAPDUMP"]

# A class, and what holds its blocks.
KINDS = [("definitely_lost", None), ("possibly_lost", None), ("indirectly_lost", None),
         ("still_reachable", "stale"), ("still_reachable", "stack"),
         ("still_reachable", None), ("not_seen", None), ("unknown", None)]
GROWTHS = ["unknown", "shrinking", "same", "linear", "geometric", "irregular"]


def several_kinds():
    """Blocks of all kinds of calls, with a snapshot in the middle."""
    script = SnapshotScript().basics()
    script.alloc(0x20000, 10)
    script.alloc(0x21000, 20, stack=3, thread=2, heap=2)
    script.alloc(0x22000, 3000, stack=4)
    script.realloc(0x20000, 0x23000, 700)
    script.alloc(0x24000, 64)
    script.alloc(0x25000, 65)
    script.snapshot((IN_BSS, 8, 0x24000), (0x24000, 0x25008), (IN_STACK, 8, 0x21000),
                    (0x22000, 0x601), classes=[(0x601, "N3app6ServerE")], flags=1)
    script.free(0x24000)
    script.alloc(0x26000, 8, stack=1)
    script.free(0x26000)
    script.free(0x26000)
    script.free(0x99000, stack=3)
    for i in range(6):
        script.realloc(0x23000 + 0x10000 * i, 0x23000 + 0x10000 * (i + 1), 700 + 100 * (i + 1))
    return script


class Library(TestCase):
    def ask(self, path, *questions, status=0):
        made = served.run([HEAPDUMP, path, *questions])
        self.assertEqual(made.returncode, status, made.stdout + made.stderr)
        return [json.loads(line) for line in made.stdout.decode().splitlines()]

    def open_failure(self, path):
        """The status of the failure to open a file, and its text."""
        made = served.run([HEAPDUMP, path])
        return made.returncode, made.stderr.decode()

    def check_certainty(self, answer, found, *more):
        self.assertEqual((answer["certain"], answer["reasons"]),
                         (found["certain"], found["reasons"]), more)

    def check_groups(self, answers, groups, by, *more):
        """Compares groups of the library with the groups of a report."""
        def place(group):
            if by == "stack":
                return group["stack_id"]
            if by == "thread":
                return group["thread"]
            if by == "heap":
                return group["heap_id"]
            name = group[by] if group[by] is not None else ""
            return name, group.get("module") or ""

        def own_place(group):
            if by == "stack":
                return group["stack_id"]
            if by in ("thread", "heap"):
                return group["id"]
            module = group["module"] if by in ("function",) else ""
            return group["name"], module

        if by in ("file", "class", "module"):
            groups = [{**group, "module": ""} if by != "module" else group for group in groups]
        if by == "module":
            self.assertEqual([(g["module"] or g["name"], g["blocks"], g["bytes"]) for g in answers],
                             [(g["module"] or "", g["blocks"], g["bytes"]) for g in groups], more)
            return
        self.assertEqual([(own_place(g), g["blocks"], g["bytes"], g["first"], g["last"])
                          for g in answers],
                         [(place(g), g["blocks"], g["bytes"], g["first_position"],
                           g["last_position"]) for g in groups], more)

    def check_state(self, path, at, by):
        found = self.json_of("state", path, "--at", at, "--by", by, "--blocks", "--limit", "0")
        _, answer, blocks, sizes = self.ask(path, f"go/{at}", f"groups/{by}", "blocks",
                                            "groups/size")
        self.check_certainty(answer, found, at, by)
        self.check_groups(answer["groups"], found["groups"], by, at)
        self.assertEqual(answer["position"], found["position"])
        self.assertEqual([answer["runtime_blocks"], answer["runtime_bytes"]],
                         [found["runtime_blocks"], found["runtime_bytes"]])
        self.assertEqual([{k: v for k, v in b.items()} for b in blocks["blocks"]],
                         found["blocks"])
        self.assertEqual([(g["id"], g["blocks"], g["bytes"]) for g in sizes["groups"]],
                         [(s["smallest"], s["blocks"], s["bytes"]) for s in found["sizes"]])

    def test_state(self):
        path = self.write(several_kinds().close())
        for at in ("start", "50%", "#4", "3:1", "+0s", "end"):
            for by in ("stack", "function", "file", "module", "thread", "heap"):
                self.check_state(path, at, by)

    def test_names_of_stacks(self):
        """A stack has the name of the function that groups by function count it for."""
        path = self.write(several_kinds().close())
        for word in ("groups/{}", "leaks/{}", "diff/{}/start/end"):
            sums = []
            for by in ("stack", "function"):
                [answer] = self.ask(path, word.format(by))
                found = {}
                for group in answer["groups"]:
                    key = (group["kind"], group["name"], group["module"], group["id"])
                    found[key] = found.get(key, 0) + group["bytes"]
                sums.append(found)
            self.assertTrue(all(name for _, name, _, number in sums[0] if not number), sums)
            self.assertEqual(*sums, word)

    def test_random_states(self):
        """Of traces with calls that overlap, fail and never return."""
        for seed in range(10):
            path = self.write(oracle.random_script(random.Random(seed)), f"{seed}.ttd")
            for at in ("0:3", "50%", "7:2", "end"):
                self.check_state(path, at, "stack")

    def test_block_at(self):
        path = self.write(several_kinds().close())
        for address in (0x22000, 0x22000 + 2999, 0x22000 + 3000, 0x21005, 1):
            found = self.json_of("state", path, "--address", hex(address))["address"]
            [answer] = self.ask(path, f"block/{address}")
            expected = [found["block"]["address"]] if found["status"] == "live" else []
            self.assertEqual([b["address"] for b in answer["blocks"]], expected)

    def test_classes(self):
        path = self.write(several_kinds().close())
        found = self.json_of("state", path, "--by", "class")
        [answer] = self.ask(path, "groups/class")
        self.check_certainty(answer, found)
        self.assertEqual([(g["name"], g["blocks"], g["bytes"]) for g in answer["groups"]],
                         [(g["class_name"] or "", g["blocks"], g["bytes"]) for g in found["groups"]])
        answers = self.ask(path, "go/0:1", "groups/class", "groups/stack", status=10)
        self.assertRegex(answers[1]["what"], "no snapshot of references")
        self.assertIn("groups", answers[2])

    def test_leaks(self):
        path = self.write(several_kinds().close())
        for at in ("end", "3:1", "start"):
            for by in ("stack", "function"):
                found = self.json_of("leaks", path, "--at", at, "--by", by, "--show", "all",
                                     "--limit", "0")
                _, answer = self.ask(path, f"go/{at}", f"leaks/{by}")
                self.check_certainty(answer, found)
                self.check_groups(answer["groups"], found["groups"], by)
                self.assertEqual([KINDS[g["kind"]] for g in answer["groups"]],
                                 [(g.get("class", "not_seen"), g.get("held_by")) for g in found["groups"]])

    def test_diff(self):
        path = self.write(several_kinds().close())
        for begin, end in (("start", "end"), ("1:0", "4:0"), ("#2", "#7"), ("25%", "end")):
            for by in ("stack", "function", "thread"):
                found = self.json_of("diff", path, "--from", begin, "--to", end, "--by", by,
                                     "--limit", "0")
                [answer] = self.ask(path, f"diff/{by}/{begin}/{end}")
                for kind, name in enumerate(("aifi", "aifo", "aofi", "aofo")):
                    self.check_groups([g for g in answer["groups"] if g["kind"] == kind],
                                      found[name]["groups"], by, begin, end, name)
        answers = self.ask(path, "diff/stack/end/start", "diff/class/start/end", "info", status=9)
        self.assertRegex(answers[0]["what"], "the range is empty")
        self.assertRegex(answers[1]["what"], "no groups by this property")
        self.assertIn("events", answers[2])

    def test_moves(self):
        path = self.write(several_kinds().close())
        found = self.json_of("moves", path)
        [answer] = self.ask(path, "moves")
        self.check_certainty(answer, found)
        self.assertTrue(found["groups"])
        self.assertEqual([(g["stack_id"], g["reallocs"], g["moved"], g["in_place"], g["copied"],
                           g["copied_at_most"], g["smallest"], g["largest"], GROWTHS[g["growth"]])
                          for g in answer["groups"] if not g["inferred"]],
                         [(g["stack_id"], g["reallocs"], g["moved"], g["in_place"],
                           g["bytes_copied"], g["bytes_copied_at_most"], g["smallest_size"],
                           g["largest_size"], g["growth"]) for g in found["groups"]])

    def test_errors(self):
        path = self.write(several_kinds().close())
        found = self.json_of("errors", path)
        [answer] = self.ask(path, "errors")
        self.check_certainty(answer, found)
        self.assertTrue(found["findings"])
        self.assertEqual([(f["kind"], f["certain"], f["address"], f["count"]) for f in
                          answer["findings"]],
                         [(f["kind"], f["certain"], f["address"], f["count"]) for f in
                          found["findings"]])

    def test_history(self):
        path = self.write(several_kinds().close())
        found = self.json_of("history", path, "--address", "0x26000")
        [answer] = self.ask(path, f"history/{0x26000}/{0x26000}/1000")
        self.check_certainty(answer, found)
        self.assertEqual([(o["address"], o["size"], o["ordinal"], o["allocated"], o["stack_id"],
                           o["released"]["position"]) for o in answer["owners"]],
                         [("0x26000", 8, 1, found["blocks"][0]["allocated"], 1,
                           found["blocks"][0]["released"])])
        for most, count in ((0, 0), (2**64 - 1, 1)):
            [few] = self.ask(path, f"history/{0x26000}/{0x26000}/{most}")
            self.assertEqual((few["total"], few["owners"]), (1, answer["owners"][:count]))
        answers = self.ask(path, "history/2/1/5", status=9)
        self.assertIn("no addresses", answers[0]["what"])

    def test_frames(self):
        path = self.write(several_kinds().close())
        found = self.json_of("leaks", path, "--show", "all")
        self.assertGreater(len(found["groups"]), 2)
        for group in found["groups"]:
            [answer] = self.ask(path, f"frames/{group['stack_id']}")
            self.assertEqual([(f["function"] or None, f["file"] or None, f["line"] or None,
                               f["module"] or None, f["inlined"]) for f in answer["frames"]],
                             [(f["function"], f["file"], f["line"], f["module"], f["inlined"])
                              for f in group["stack"]])
        [none, unknown] = self.ask(path, "frames/0", "frames/12345")
        self.assertEqual((none["frames"], unknown["frames"]), ([], []))

    def test_calls(self):
        path = self.write(several_kinds().close())
        for begin, end in (("start", "end"), ("1:0", "4:0"), ("#2", "#7")):
            found = self.run_ok("events", "-f", "json", "--from", begin, "--to", end, path)
            rows = [row for row in found.json_lines if "number" in row]
            for most in (1, 3, 1000):
                answers = self.ask(path, f"calls/{most}/{begin}/{end}")
                self.assertEqual([(c["number"], c["action"], c["start"]) for a in answers
                                  for c in a["calls"]],
                                 [(r["number"], r["action"], r["time_start"]) for r in rows])

    def test_raw_arguments(self):
        """Arguments of calls belong to the answer: those of earlier chunks are as they were."""
        script = Script(events_per_chunk=3).basics()
        expected = []
        for i in range(100):
            expected.append([0x1000 + i, i, 77][:i % 4])
            script.alloc(0x100000 + 64 * i, 8, **({"parameters": ",".join(map(str, expected[-1]))}
                                                  if expected[-1] else {}))
        path = self.write(script.close())
        for most in (7, 1000):
            answers = self.ask(path, f"calls/{most}/start/end")
            self.assertEqual([c["parameters"] for a in answers for c in a["calls"]], expected)

    def test_info(self):
        path = self.write(several_kinds().close())
        found = self.json_of("info", path)
        [answer] = self.ask(path, "info")
        self.check_certainty(answer, found)
        self.assertEqual((answer["events"], answer["closed"]), (found["events"], found["closed"]))

    def test_damage(self):
        """Of a damaged trace, and of one without an end, answers are uncertain for the same reasons."""
        script = several_kinds()
        whole = self.write(script.close(), "whole.ttd")
        with open(whole, "rb") as file:
            data = file.read()
        cut, hit = self.path("cut.ttd"), self.path("hit.ttd")
        with open(cut, "wb") as file:
            file.write(data[:len(data) // 2])
        with open(hit, "wb") as file:
            middle = len(data) // 2
            file.write(data[:middle] + bytes([data[middle] ^ 0x55]) + data[middle + 1:])
        for path in (cut, hit):
            for at in ("50%", "end"):
                found = self.json_of("state", path, "--at", at)
                _, answer = self.ask(path, f"go/{at}", "groups/stack")
                self.assertFalse(answer["certain"])
                self.check_certainty(answer, found, path, at)
                self.check_groups(answer["groups"], found["groups"], "stack", path)

    def test_certainty(self):
        """Where calls are missing, or were not chosen, each answer is as certain as the command's, for
        the same reasons."""
        chosen = "a%20sample:%20one%20block%20for%20every%20524288%20bytes"
        live = "blocks%20that%20are%20live%20at%20a%20snapshot"
        additions = {
            "whole": (),
            "kept": (("loss", dict(reason=6, count=17, last_good="0:0", first_good="0:1")),),
            "kept-later": (("loss", dict(reason=6, count=17, last_good="0:0", first_good="3:0")),),
            "full": (("loss", dict(reason=1, count=17, last_good="2:0", first_good="3:0")),),
            "attached": (("loss", dict(reason=3, count="unknown", last_good="0:0",
                                       first_good="1:0")),),
            "sampled": (("metadata", dict(key="chosen", value=chosen)),),
            "live": (("metadata", dict(key="chosen", value=live)),
                     ("loss", dict(reason=6, count=9, last_good="1:0", first_good="4:0")))}
        questions = [("state", "groups/function"), ("state", "blocks"), ("leaks", "leaks/function"),
                     ("state", f"block/{0x22000}"), ("state --by class", "groups/class")]
        of_all = [("info", "info"), ("moves", "moves"), ("errors", "errors"),
                  (f"history --address {0x26000}", f"history/{0x26000}/{0x26000}/9")]
        certain = set()
        for name, records in additions.items():
            script = several_kinds()
            for word, fields in records:
                script.add(word, **fields)
            path = self.write(script.close(), f"{name}.ttd")
            for at in ("start", "0:1", "50%", "3:2", "end"):
                for command, question in questions if at == "end" else questions[:4]:
                    word, *options = command.split()
                    found = self.json_of(word, path, *options, "--at", at)
                    answer = self.ask(path, f"go/{at}", question)[1]
                    self.check_certainty(answer, found, name, at, question)
                    certain.add((name, answer["certain"]))
            # With a snapshot, the command's comparison has a verdict about lost blocks, too.
            script = Script().basics()
            for i in range(10):
                script.alloc(0x20000 + 64 * i, 10)
            for word, fields in records:
                script.add(word, **fields)
            plain = self.write(script.close(), f"plain-{name}.ttd")
            for bounds in (("start", "end"), ("start", "3:0"), ("1:0", "3:0"), ("3:2", "end")):
                found = self.json_of("diff", plain, "--from", bounds[0], "--to", bounds[1])
                [answer] = self.ask(plain, "diff/function/" + "/".join(bounds))
                self.check_certainty(answer, found, name, bounds)
            for command, question in of_all:
                word, *options = command.split()
                found = self.json_of(word, path, *options)
                self.check_certainty(self.ask(path, question)[0], found, name, question)
                certain.add((name, found["certain"]))
        self.assertEqual(certain, {("whole", True), ("sampled", False), ("live", False), *(
            (name, value) for name in ("kept", "kept-later", "full", "attached")
            for value in (True, False))})

    def test_growing(self):
        """A handle describes the trace as it was opened, whatever is written between questions."""
        questions = ["frames/2", "info", *(f"groups/{by}" for by in (
            "stack", "function", "file", "module", "thread", "heap", "size")),
            "blocks", f"block/{0x22000}", "leaks/stack", "leaks/thread", "diff/function/start/end",
            "moves", "errors", f"history/{0x20000}/{0x90000}/100", "calls/3/start/end", "go/50%",
            "groups/stack", "go/end", "groups/function", "leaks/heap", "frames/2", "info"]
        whole = self.write(several_kinds().close(), "whole.ttd")
        with open(whole, "rb") as file:
            data = file.read()
        path = self.path("growing.ttd")
        with open(f"{path}.whole", "wb") as file:
            file.write(data)
        sizes = range(len(data) // 4, len(data), len(data) // 12)
        for size in (*sizes, len(data) - 1):
            with open(path, "wb") as file:
                file.write(data[:size])
            expected = self.ask(path, *questions)
            step = 1 + (len(data) - size) // len(questions)
            growing = [part for question in questions for part in (question, f"grow/{step}")]
            self.assertEqual(self.ask(path, *growing), expected, size)
            self.assertEqual(os.path.getsize(path), len(data))
            self.assertFalse(any(answer.get("certain") for answer in expected), expected)
        whole, now = self.ask(whole, *questions), self.ask(path, *questions)
        self.assertEqual(now, whole)
        self.assertTrue(all(answer.get("certain", True) for answer in now if "go" not in answer))

    def test_nested(self):
        """Groups count the blocks of heaps that lie in blocks of others, as leaks do."""
        script = Script().basics()
        script.add("heap", handle=0xc00000, name="inner", parent=1)
        for i in range(40):
            script.alloc(0x100000 + 64 * i, 64, stack=1 + i % 2)
            script.alloc(0x100000 + 64 * i + 8, 1 + i % 3, stack=2, heap=3)
        path = self.write(script.close())
        for at in ("end", "75%"):
            [_, by_heap, *answers] = self.ask(path, f"go/{at}", "groups/heap", *(
                f"groups/{by}" for by in ("stack", "function", "module", "thread", "size")))
            [nested] = [(g["blocks"], g["bytes"]) for g in by_heap["groups"] if g["id"] == 3]
            for answer in (by_heap, *answers):
                self.assertEqual(tuple(sum(g[name] for g in answer["groups"])
                                       for name in ("nested_blocks", "nested_bytes")), nested)
            self.assertEqual(*(sorted((g["stack_id"], g["nested_blocks"], g["nested_bytes"])
                                      for g in groups["groups"]) for groups in
                               (answers[0], self.ask(path, f"go/{at}", "leaks/stack")[-1])))

    def test_nested_with_summaries(self):
        """The summaries of an index have no nested blocks, so they do not serve."""
        script = Script().basics()
        script.add("heap", handle=0xc00000, name="inner", parent=1)
        script.alloc(0x100000, 64)
        script.alloc(0x100008, 8, heap=3)
        script.add("churn", count=1700000, slots=400000, position="2:0")
        path = self.write(script.close())
        self.assertGreater(self.run_ok("index", "-f", "json", path).json["summaries"], 2)
        answers = self.ask(path, f"index/{path}.idx", "info", "go/60%", "groups/stack", "groups/size")
        self.assertTrue(answers[0]["has_index"])
        for answer in answers[2:]:
            self.assertEqual((sum(g["nested_blocks"] for g in answer["groups"]),
                              sum(g["nested_bytes"] for g in answer["groups"])), (1, 8))

    def test_index(self):
        """An index is used for positions within, if it belongs to this file, and makes an answer
        uncertain."""
        script = Script(events_per_chunk=50).basics()
        for i in range(2000):
            script.alloc(0x100000 + 64 * i, 1 + i % 50, stack=1 + i % 4)
            if i % 3 == 0:
                script.free(0x100000 + 64 * i)
        path = self.write(script.close())
        self.run_ok("index", path)
        plain = self.ask(path, "go/75%", "groups/stack", "blocks")
        indexed = self.ask(path, f"index/{path}.idx", "info", "go/75%", "groups/stack", "blocks")
        self.assertIs(indexed[0]["has_index"], True)
        self.assertEqual(plain[1]["groups"], indexed[2]["groups"])
        self.assertEqual(plain[2]["blocks"], indexed[3]["blocks"])
        self.assertEqual((plain[1]["certain"], indexed[2]["certain"]), (True, False))
        other = self.write(several_kinds().close(), "other.ttd")
        [info] = self.ask(other, f"index/{path}.idx", "info")
        self.assertIs(info["has_index"], False)
        [info] = self.ask(path, f"index/{self.path('none')}", "info")
        self.assertIs(info["has_index"], False)

    def test_failures(self):
        """The text has the file, the reason and the place."""
        path = self.path("nothing")
        status, text = self.open_failure(path)
        self.assertEqual(status, 8)
        self.assertRegex(text, f"{path}: .*No such file or directory")
        with open(path, "wb") as file:
            file.write(b"this is no trace" * 20)
        status, text = self.open_failure(path)
        self.assertEqual((status, text.startswith(f"{path}: ")), (2, True))
        path = self.write(several_kinds().close())
        for text in ("", "1,5%", "101%", "nowhere", "mark:none"):
            answers = self.ask(path, f"go/{text or ' '}", "info",
                               status=1 if text.startswith("mark") else 9)
            self.assertTrue(answers[0]["what"].startswith(f"{path}: "), answers)
            self.assertIn("events", answers[1])
        answers = self.ask(path, "groups/nothing", status=9)
        self.assertIn("unknown property", answers[0]["what"])


if __name__ == "__main__":
    support.main()
