# SPDX-License-Identifier: MIT
"""`import` of what the other recorders write here and now: heaptrack, glibc's mtrace, LTTng. Each trace
has the calls of a program that counts them, and the sums that heaptrack's own tool prints"""

import os
import pathlib
import re
import shutil
import subprocess
import time

import support
from support import TestCase

INTERPRETER = "/usr/lib/heaptrack/libexec/heaptrack_interpret"
MTRACE = "/usr/lib/x86_64-linux-gnu/libc_malloc_debug.so.0"
LTTNG = "/usr/lib/x86_64-linux-gnu/liblttng-ust-libc-wrapper.so.1"
PATIENCE = 120
# Sizes that nothing else has: 9 blocks of 54321 bytes, of which 4 stay; one that grows to 234567; 3 of
# 7 x 7777 bytes.
PROGRAM = """
#include <mcheck.h>
#include <stdlib.h>

static void *blocks[9];

int main(int count, char **arguments)
{
    (void)arguments;
    if (count > 1)
        mtrace();
    for (int i = 0; i < 9; i++)
        blocks[i] = malloc(54321);
    for (int i = 4; i < 9; i++)
        free(blocks[i]);
    free(realloc(malloc(123456), 234567));
    for (int i = 4; i < 7; i++)
        blocks[i] = calloc(7, 7777);
    return !blocks[6];
}
"""


class Tools(TestCase):
    def program(self, *arguments, recorder=(), preload=None, **environment):
        """Compiles the program and runs it, below a recorder if there is one."""
        compiler = shutil.which("cc")
        if not compiler:
            self.skipTest("there is no compiler")
        subprocess.run([compiler, "-O0", "-x", "c", "-", "-o", self.path("program")],
                       input=PROGRAM.encode(), check=True)
        variables = {**os.environ, **environment}
        variables.pop("MALLOC_PERTURB_", None)
        if preload:
            variables["LD_PRELOAD"] = preload
        subprocess.run([*recorder, self.path("program"), *arguments], check=True, env=variables,
                       capture_output=True, timeout=PATIENCE)

    def made(self, form, source):
        trace = self.path("made.ttd")
        self.run_ok("import", form, source, "-o", trace)
        self.run_ok("verify", trace)
        return trace

    def check(self, trace):
        """The calls of the program, each by its size; a block that stays is live at the end."""
        def count(sql):
            return self.run_ok("query", "-f", "json", f"SELECT count(*) AS n FROM {sql}",
                               trace).json["rows"][0]["n"]

        self.assertEqual(count("events WHERE action = 'Alloc' AND size = 54321"), 9)
        self.assertEqual(count("live WHERE size = 54321"), 4)
        self.assertEqual(count("blocks WHERE size = 54321 AND released IS NOT NULL"), 5)
        self.assertEqual(count("blocks WHERE size = 234567 AND released IS NOT NULL"), 1)
        self.assertEqual(count("live WHERE size = 7 * 7777"), 3)
        self.assertIs(self.json_of("leaks", trace)["certain"], False)

    def test_heaptrack(self):
        if not shutil.which("heaptrack"):
            self.skipTest("heaptrack is not installed")
        self.program("a line\n- 5", recorder=("heaptrack", "--raw", "-o", self.path("h")))
        packed = pathlib.Path(self.path("h.raw.zst"))
        raw = subprocess.run(["zstd", "-dcq", packed], capture_output=True, check=True).stdout
        source = self.path("raw.txt")
        pathlib.Path(source).write_bytes(raw)
        trace = self.made("heaptrack", source)
        self.check(trace)
        command = {"key": "command", "value": self.path("program") + " a line\n- 5"}
        self.assertIn(command, self.json_of("info", trace)["metadata"])
        if not os.path.exists(INTERPRETER):
            self.skipTest("heaptrack_interpret is not where Debian has it")
        found = subprocess.run([INTERPRETER], input=raw, capture_output=True, check=True)
        sums = dict(re.findall(r"(allocations|leaked allocations): +\t?(\d+)", found.stderr.decode()))
        state = self.json_of("state", trace)
        self.assertEqual(self.json_of("info", trace)["allocs"], int(sums["allocations"]))
        self.assertEqual(state["live_blocks"], int(sums["leaked allocations"]))

    def test_mtrace(self):
        if not os.path.exists(MTRACE):
            self.skipTest("the C library has no libc_malloc_debug")
        log = self.path("mtrace.txt")
        self.program("mtrace", preload=MTRACE, MALLOC_TRACE=log)
        self.check(self.made("mtrace", log))

    def wait_for(self, command, environment):
        """Runs a command until the server that it needs is there."""
        end = time.monotonic() + PATIENCE
        while subprocess.run(command, env=environment, capture_output=True, check=False,
                             timeout=PATIENCE).returncode != 0:
            self.assertLess(time.monotonic(), end, command)
            time.sleep(0.2)

    def test_lttng(self):
        if not (os.path.exists(LTTNG) and shutil.which("lttng") and shutil.which("babeltrace2")):
            self.skipTest("lttng-tools, its wrapper of the C library, or babeltrace2 is not installed")
        environment = {**os.environ, "LTTNG_HOME": self.folder}
        server = subprocess.Popen(["lttng-sessiond", "--quiet", "--no-kernel"], env=environment,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait, PATIENCE)
        self.addCleanup(server.terminate)
        name = f"heap{os.getpid()}"
        self.wait_for(["lttng", "create", name, f"--output={self.path('lttng')}"], environment)
        for command in (["enable-event", "-u", "lttng_ust_libc:*"],
                        ["add-context", "-u", "-t", "vpid", "-t", "vtid"], ["start"]):
            subprocess.run(["lttng", *command], env=environment, capture_output=True, check=True,
                           timeout=PATIENCE)
        self.program(preload=LTTNG, LTTNG_HOME=self.folder)
        subprocess.run(["lttng", "destroy"], env=environment, capture_output=True, check=True,
                       timeout=PATIENCE)
        text = subprocess.run(["babeltrace2", self.path("lttng")], capture_output=True, check=True)
        source = self.path("lttng.txt")
        pathlib.Path(source).write_bytes(text.stdout)
        self.check(self.made("lttng", source))


if __name__ == "__main__":
    support.main()
