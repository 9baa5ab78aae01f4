# SPDX-License-Identifier: MIT
"""Where something is missing, every command says so in every format; where nothing is, none does."""

import support
from support import Script, TestCase, run

COMMANDS = [
    "summary", "info", "events", "events --stacks --parameters", "leaks", "leaks --by function",
    "leaks --show-runtime", "leaks --tree top-down", "state", "state --at 100%", "state --by thread",
    "state --tree bottom-up", "history --address 0x1000", "peak", "peak --tree top-down",
    "diff", "diff --from #2", "diff --tree top-down", "diff --changes",
    "diff --changes --tree top-down", "hot", "hot --tree top-down", "temporary --steps 9",
    "temporary --tree top-down --steps 9", "lifetimes", "timeline", "timeline --over position",
    "fragmentation", "moves", "moves --tree top-down", "errors"]
LOSSES = 10
GROUPS = ("leaks", "state", "peak", "diff", "hot", "temporary", "moves")


def formats(command):
    yield from ("text", "json", "csv")
    if command.split()[0] in GROUPS and "--show-runtime" not in command and (command.split()[0] != "diff" or "--by" not in command):
        yield "folded"


class Verdict(TestCase):
    def script(self, **trace):
        script = Script(events_per_chunk=4, codec=0, **trace).basics()
        for i in range(12):
            script.alloc(0x1000 + 64 * i, 16, wall=1000 * i)
            script.alloc(0x8000, 8, wall=1000 * i, stack=3)
            if i == 4:
                script.add("loss", reason=1, count=3, last_good="8:0", first_good="8:1")
                script.realloc(0x1000, 0x3000, 20, wall=1000 * i)
            script.free(0x8000, wall=1000 * i)
        script.free(0x8000, wall=12000)
        script.alloc(0x9000, 24, wall=12000, stack=4)
        return script

    def lossless(self):
        script = self.script()
        script.alloc(0x9100, 24, wall=12000, stack=2)
        script.lines = [line for line in script.lines if not line.startswith("loss")]
        return script

    def flipped(self, path, kind=8, which=2):
        """Of a chunk, of the third of events, a byte is wrong."""
        with open(path, "rb") as file:
            data = bytearray(file.read())
        magic = bytes(data[:8])
        chunks = [at for at in range(0, len(data), 8) if data[at:at + 8] == magic]
        found = [at for at in chunks if data[at + 10] == kind]
        data[found[which] + 113] ^= 0x40
        return self.save(data, "flipped")

    def save(self, data, name):
        path = self.path(name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def is_told(self, command, form, path):
        """The verdict in the output itself: True, False, or None where it has none."""
        result = self.run_ok(*command.split(), "-f", form, *path)
        warns = "uncertain: " in result.errors
        if form == "text":
            return "Uncertain" in result.text
        if form == "json" and command.startswith("events"):
            return not result.json_lines[-1]["certain"], warns
        if form == "json":
            return not result.json["certain"]
        if form == "csv" and command == "errors":
            return warns  # its column is about each finding
        if form == "csv":
            self.assertTrue(result.csv, command)
            return {"false": True, "true": False}[result.csv[-1]["certain"]], warns
        lines = result.text.splitlines()
        self.assertTrue(lines, command)
        told = {line.startswith("[uncertain];") for line in lines}
        self.assertEqual(len(told), 1)
        return told.pop(), warns

    def check(self, path, is_uncertain, commands=COMMANDS):
        for command in commands:
            for form in formats(command):
                with self.subTest(command=command, form=form):
                    told = self.is_told(command, form, [path])
                    both = (is_uncertain, is_uncertain)
                    self.assertIn(told, (is_uncertain, both))

    def test_intact(self):
        self.check(self.write(self.lossless().close()), False)

    def test_lossy(self):
        self.check(self.write(self.script().close()), True)

    def test_damaged(self):
        self.check(self.flipped(self.write(self.lossless().close())), True)

    def test_cut(self):
        """Of a call that is there, no later one makes anything uncertain but that there are more:
        then the listing says it, and no row of it."""
        whole = self.write(self.lossless().close())
        with open(whole, "rb") as file:
            data = file.read()
        path = self.save(data[:data.rfind(data[:8], 0, len(data) * 2 // 3) + 50], "cut")
        self.check(path, True, [c for c in COMMANDS if c.split()[0] not in ("events", "errors")])
        for form in ("text", "json", "csv"):
            result = self.run_ok("events", "-f", form, path)
            self.assertIn("ncertain: the trace was not closed cleanly and ends within a chunk",
                          result.errors + result.text)
            if form == "csv":
                self.assertEqual({row["certain"] for row in result.csv}, {"true"})
        for form in ("csv", "folded"):
            result = self.run_ok("leaks", "-f", form, path)
            self.assertIn(f"warning: {path}: uncertain: the trace was not closed cleanly",
                          result.errors)

    def test_percent_of_what_is_readable(self):
        whole = self.write(self.lossless().close())
        unclosed = self.write(self.lossless().abandon(), "unclosed")
        count = len(self.run_ok("events", "-f", "csv", whole).csv)
        reason = f"a position in % is a part of the {count} events that can be read"
        for command in ("state --at 50%", "leaks --at 50%", "diff --from 50%", "diff --to 50%"):
            for form in formats(command):
                for path, is_said in ((whole, False), (unclosed, True)):
                    result = self.run_ok(*command.split(), "-f", form, path)
                    self.assertEqual(reason in result.text + result.errors, is_said,
                                     (command, form, path))

    def test_rows_before_a_loss_are_certain(self):
        rows = self.run_ok("events", "-f", "csv", self.write(self.script().close())).csv
        told = [row["certain"] for row in rows]
        self.assertEqual(sorted(set(told)), ["false", "true"])
        first = told.index("false")
        self.assertEqual(set(told[first:]), {"false"})
        self.assertEqual(rows[first]["number"], next(
            row["number"] for row in rows if int(row["time_start"].split(":")[0], 16) >= 8))

    def rows(self, *arguments):
        """Whether each event is certain, by number, in both formats that say it."""
        rows = self.run_ok("events", "-f", "csv", *arguments).csv
        told = {int(row["number"]): row["certain"] == "true" for row in rows}
        rows = self.run_ok("events", "-f", "json", *arguments).json_lines
        self.assertEqual(told, {row["number"]: row["certain"] for row in rows})
        return told

    def test_rows_behind_a_gap_that_is_passed_over(self):
        """A list that begins behind a gap does not make it certain."""
        path = self.flipped(self.write(self.lossless().close()))
        told = self.rows(path)
        self.assertEqual(sorted(set(told.values())), [False, True])
        last = max(told)
        for position in f"#{last - 3}", "90%":
            found = self.rows("--from", position, path)
            self.assertEqual(set(found.values()), {False}, position)

    def test_rows_where_the_list_of_losses_is_damaged(self):
        lossy = self.write(self.script().close())
        damaged = self.flipped(lossy, LOSSES, 0)
        self.assertEqual(set(self.rows(damaged).values()), {False})
        recovered = self.path("recovered")
        run("recover", "-o", recovered, damaged)
        self.assertEqual(set(self.rows(recovered).values()), {False})

    def test_marks(self):
        script = self.lossless()
        script.add("user", position="9:0", data="text", client="client-of-a-test")
        whole = self.write(script.close())
        for path, certain in ((whole, True), (self.flipped(whole), False)):
            for row in self.run_ok("marks", "-f", "csv", path).csv:
                self.assertEqual(row["certain"], str(certain).lower())
            for row in self.run_ok("marks", "-f", "json", path).json_lines:
                self.assertIs(row["certain"], certain)
            self.assertEqual("Uncertain" in self.run_ok("marks", path).text, not certain)

    def test_two_traces(self):
        intact = self.write(self.lossless().close())
        lossy = self.write(self.script().close(), "lossy")
        for old, new in ((intact, intact), (intact, lossy), (lossy, intact)):
            for extra in ("", " --tree top-down"):
                for form in ("text", "json", "csv", "folded"):
                    both = lossy in (old, new)
                    if form == "csv" and not both:
                        continue  # nothing has changed, and there is no row
                    if old == new and form != "folded":
                        self.assertNotIn("ncertain", self.run_ok("diff", old, new, "-f",
                                                                 "text").text)
                        continue
                    told = self.is_told(f"diff{extra} --limit 0", form, [old, new])
                    self.assertIn(told, (both, (both, both)), (old, new, extra, form))

    def test_file_commands(self):
        """A question about the file has its own verdict: the problems, and the status."""
        path = self.flipped(self.write(self.lossless().close()))
        for form in ("text", "json", "csv"):
            result = run("verify", "-f", form, path)
            self.assertEqual(result.status, 1)
            self.assertIn("checksum", result.text)
            self.assertEqual(run("index", "-f", form, path).status, support.DAMAGED)


support.main()
