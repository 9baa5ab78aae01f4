# SPDX-License-Identifier: MIT
"""Findings in the formats of services that run tests: SARIF, JUnit and annotations of GitHub."""

import json
import os
import shutil
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree

from support import Script, TestCase, npm_package, run

HOSTILE = "f<script>\"'&%25,:]]>\\x"
LEAKS = "leaks", "--errors-for", "definite,possible"
# Fails with the violations of the published schema, which an npm package has beside its validator.
VALIDATE = """
const {createRequire} = require('module');
const inside = createRequire(process.argv[1] + '/package.json');
const Validator = inside('ajv');
const validator = new Validator({schemaId: 'auto', validateSchema: false});
validator.addMetaSchema(inside('ajv/lib/refs/json-schema-draft-04.json'));
const check = validator.compile(inside('./lib/schemas/sarif-2.1.0-rtm.5.json'));
for (const path of process.argv.slice(2))
    if (!check(JSON.parse(require('fs').readFileSync(path))))
        throw new Error(path + ': ' + JSON.stringify(check.errors));
"""


class Services(TestCase):
    def script(self, function="make", file="/src/a.c", line=7, inlined=""):
        script = Script()
        script.add("module", path="/opt/demo", bias=1 << 24, begin=1 << 24, end=2 << 24,
                   position="0:0")
        script.add("thread", os=1, position="0:0").add("heap", name="malloc")
        for number, frames in enumerate((f"main@{file}@3", f"{function}@{file}@{line}")):
            script.add("stack", parent=number, module=1, offset=0x10 * (number + 1))
            escaped = "".join(c if c.isalnum() or c in "@/._" else f"%{ord(c):02x}" for c in frames)
            script.add("symbol", module=1, offset=0x10 * (number + 1), frames=(inlined if number else "") + escaped)
        return script

    def leaking(self, **names):
        script = self.script(**names)
        script.alloc(0x1000, 100)
        script.alloc(0x2000, 50)
        return self.write(script.close(), f"{len(os.listdir(self.folder))}.ttd")

    def twice_released(self):
        script = self.script()
        script.alloc(0x1000, 100)
        script.free(0x1000)
        script.free(0x1000)
        return self.write(script.close(), "twice.ttd")

    def sarif(self, path, *arguments, **options):
        found = self.run_ok(*arguments, "-f", "sarif", path, **options).json
        self.assertEqual((found["version"], len(found["runs"])), ("2.1.0", 1))
        run = found["runs"][0]
        self.assertEqual(run["tool"]["driver"]["name"], "ttdanalyze")
        return run

    def junit(self, path, *arguments):
        suite, = ElementTree.fromstring(self.run_ok(*arguments, "-f", "junit", path).raw)
        self.assertEqual(int(suite.get("tests")), len(suite))
        self.assertEqual(int(suite.get("failures")), len(suite.findall("*/failure")))
        self.assertEqual(int(suite.get("skipped")), len(suite.findall("*/skipped")))
        return suite

    def github(self, path, *arguments, **options):
        return self.run_ok(*arguments, "-f", "github", path, **options).text.splitlines()

    def test_a_leak(self):
        """Without a snapshot it is not known what is lost."""
        path = self.leaking()
        result, = self.sarif(path, *LEAKS)["results"]
        self.assertEqual((result["ruleId"], result["level"]), ("never-released", "warning"))
        self.assertEqual(result["message"]["text"], "150 bytes in 2 blocks never released")
        place = result["locations"][0]["physicalLocation"]
        self.assertEqual((place["artifactLocation"]["uri"], place["region"]["startLine"]),
                         ("file:///src/a.c", 7))
        self.assertEqual([frame["location"]["logicalLocations"][0]["name"]
                          for frame in result["stacks"][0]["frames"]], ["make", "main"])
        suite = self.junit(path, *LEAKS)
        self.assertEqual([test.get("name") for test in suite], ["never-released in make", "certainty"])
        self.assertEqual(suite[0][0].get("message"),
                         "uncertain: 150 bytes in 2 blocks never released by make (/src/a.c:7)")
        self.assertEqual(suite[0][0].text, "\n#0  make (/src/a.c:7)\n#1  main (/src/a.c:3)\n")
        self.assertEqual(self.github(path, *LEAKS), [
            "::warning title=never-released,file=/src/a.c,line=7::uncertain: 150 bytes in 2 blocks "
            "never released by make"])

    def test_the_place_is_of_the_program(self):
        """Not of the standard library, inlined or not, nor of a wrapper of an allocator."""
        library = "_ZNSt15__new_allocatorIiE8allocateEmPKv@/usr/include/c++/12/a.h@137,"
        for number, (inlined, function, *expected) in enumerate((
                (library, "make", "make", 7), ("xmalloc@/src/x.c@2,", "make", "make", 7),
                ("", "xmalloc", "main", 3))):
            script = self.script(function=function, inlined=inlined)
            script.alloc(0x1000, 100)
            result, = self.sarif(self.write(script.close(), f"{number}.ttd"), *LEAKS)["results"]
            place = result["locations"][0]
            self.assertEqual((place["logicalLocations"][0]["name"],
                              place["physicalLocation"]["artifactLocation"]["uri"],
                              place["physicalLocation"]["region"]["startLine"]),
                             (expected[0], "file:///src/a.c", expected[1]))

    def test_an_error(self):
        path = self.twice_released()
        result, = self.sarif(path, "errors")["results"]
        self.assertEqual((result["ruleId"], result["level"]), ("double-free", "error"))
        self.assertEqual(self.junit(path, "errors")[0][0].get("message"),
                         "free(0x1000) by main (/src/a.c:3)")
        self.assertEqual(self.github(path, "errors"), [
            "::error title=double-free,file=/src/a.c,line=3::free(0x1000) by main"])

    def test_nothing(self):
        path = self.write(self.script().close())
        self.assertEqual(self.sarif(path, "errors")["results"], [])
        self.assertEqual([test.get("name") for test in self.junit(path, "errors")], ["certainty"])
        self.assertEqual(self.github(path, "errors"), [])

    def test_paths_below_the_current_directory_are_relative(self):
        path = self.leaking(file=f"{os.path.realpath(self.folder)}/s/b%c.c")
        result, = self.sarif(path, *LEAKS, cwd=self.folder)["results"]
        self.assertEqual(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
                         "s/b%25c.c")
        self.assertIn(",file=s/b%25c.c,line=7::", self.github(path, *LEAKS, cwd=self.folder)[0])

    def test_a_place_without_file_or_module(self):
        script = self.script(line=0)
        script.add("stack", parent=2, module=0, offset=0x50)
        script.alloc(0x1000, 100, stack=3)
        path = self.write(script.close(), "nowhere.ttd")
        frames = self.sarif(path, *LEAKS)["results"][0]["stacks"][0]["frames"]
        self.assertEqual([frame.get("module", "none") for frame in frames],
                         ["none", "/opt/demo", "/opt/demo"])
        self.assertNotIn(":0)", self.junit(path, *LEAKS)[0][0].text)
        self.assertTrue(self.github(self.leaking(line=0), *LEAKS)[0].startswith(
            "::warning title=never-released,file=/src/a.c::"))

    def test_what_is_uncertain_does_not_pass(self):
        script = self.script()
        script.alloc(0x1000, 100)
        script.free(0x1000)
        script.add("loss", reason=1, first="0:0", last="9:0", count=3)
        script.free(0x1000)
        path = self.write(script.close(), "lost.ttd")
        run = self.sarif(path, "errors")
        self.assertNotEqual(run["invocations"][0]["toolExecutionNotifications"], [])
        self.assertNotIn("error", [result["level"] for result in run["results"]])
        suite = self.junit(path, "errors")
        self.assertIn("uncertain: ", suite[-1][0].get("message"))
        self.assertEqual([line.split(" ")[0] for line in self.github(path, "errors")],
                         ["::warning"] * (len(run["results"]) + 1))

    def test_hostile_names(self):
        path = self.leaking(function=HOSTILE)
        shown = HOSTILE.replace("\\", "\\\\")
        result, = self.sarif(path, *LEAKS)["results"]
        self.assertEqual(result["locations"][0]["logicalLocations"][0]["name"], HOSTILE)
        self.assertEqual(self.junit(path, *LEAKS)[0].get("name"), f"never-released in {shown}")
        line, = self.github(path, *LEAKS)
        self.assertEqual(line.split(" by ")[1], shown.replace("%", "%25"))

    def test_a_baseline_that_has_grown(self):
        baseline = self.path("baseline")
        script = self.script()
        script.alloc(0x1000, 100)
        self.run_ok("leaks", "--write-baseline", baseline, self.write(script.close(), "old.ttd"))
        path = self.leaking()
        for options, level in (((), "note"), (("--fail-on-growth",), "error")):
            found = run("leaks", "-f", "sarif", "--baseline", baseline, *options, path)
            self.assertEqual(found.status, len(options))
            result, = found.json["runs"][0]["results"]
            self.assertEqual((result["ruleId"], result["message"]["text"], result["level"]),
                             ("grown", "2 blocks where the baseline has 1", level))

    def of_every_kind(self, form):
        """The files of a leak, of an error, of neither, of an uncertain answer, of hostile names,
        of places that are unknown and of a baseline that has grown."""
        leaking, baseline = self.leaking(), self.path("baseline")
        grown = self.script()
        grown.alloc(0x1000, 100)
        self.run_ok("leaks", "--write-baseline", baseline, self.write(grown.close(), "less.ttd"))
        nowhere = self.script(line=0)
        nowhere.add("stack", parent=2, module=0, offset=0x50)
        nowhere.alloc(0x1000, 100, stack=3)
        nowhere.alloc(0x2000, 100, stack=0)
        lost = self.script()
        lost.add("loss", reason=1, first="0:0", last="9:0", count=3)
        lost.free(0x1000)
        for number, arguments in enumerate((
                (*LEAKS, leaking), ("leaks", leaking), ("errors", self.twice_released()),
                ("errors", leaking), (*LEAKS, "--baseline", baseline, leaking),
                ("errors", self.write(lost.close(), "lost.ttd")),
                (*LEAKS, self.leaking(function=HOSTILE, file="/s/ä%&<.c")),
                (*LEAKS, self.write(nowhere.close(), "nowhere.ttd")))):
            path = self.path(f"{number}.{form}")
            with open(path, "wb") as file:
                file.write(self.run_ok(*arguments, "-f", form).raw)
            yield path

    def test_the_schema_of_sarif(self):
        package = npm_package("@microsoft/jest-sarif")
        if not package:
            self.skipTest("the npm package @microsoft/jest-sarif is not installed")
        def violations(paths):
            return subprocess.run(["node", "-e", VALIDATE, str(package), *paths],
                                  capture_output=True, text=True).stderr
        paths = list(self.of_every_kind("sarif"))
        self.assertEqual(violations(paths), "")
        with open(paths[0], encoding="utf-8") as file:
            document = json.load(file)
        document["runs"][0]["results"][0]["level"] = "fatal"
        with open(paths[0], "w", encoding="utf-8") as file:
            json.dump(document, file)
        self.assertIn("should be equal to one of the allowed values", violations(paths))

    def test_the_schema_of_junit(self):
        if not shutil.which("xmllint"):
            self.skipTest("xmllint is not installed")
        schema = os.path.join(os.environ["TTD_SOURCE"], "tests/cli/output/junit.xsd")
        for path in self.of_every_kind("junit"):
            found = subprocess.run(["xmllint", "--noout", "--schema", schema, path],
                                   capture_output=True, text=True)
            self.assertEqual(found.returncode, 0, found.stderr)

    def test_more_than_the_limit(self):
        script = self.script()
        for number in range(30):
            script.add("stack", parent=1, module=1, offset=0x1000 + number)
            script.alloc(0x1000 * (number + 1), 100, stack=number + 3)
        path = self.write(script.close())
        self.assertEqual(len(self.sarif(path, *LEAKS, "--limit", "2")["results"]), 30)

    def test_refused(self):
        path = self.leaking()
        for arguments, reason in ((("hot",), "works only with leaks and errors"),
                                  (("leaks", "--by", "function"), "neither --tree nor --by"),
                                  (("leaks", "--tree", "top-down"), "neither --tree nor --by"),
                                  (("errors", "--group"), "not for --group")):
            result = run(*arguments, "-f", "sarif", path)
            self.assertEqual(result.status, 2, result.errors)
            self.assertIn(reason, result.errors)


if __name__ == "__main__":
    unittest.main()
