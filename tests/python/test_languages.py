# SPDX-License-Identifier: MIT
"""The examples in Lua, Go and Rust: each compiles against the header, and prints what the library
answers to Python."""

import os
import pathlib
import shutil
import subprocess
import unittest

import support
import ttdtrace
from support import TestCase
from test_library import several_kinds

SOURCE = pathlib.Path(os.environ["TTD_SOURCE"])
EXAMPLES = SOURCE / "examples/languages"
LIBRARIES = os.environ["TTD_LIBRARIES"].split(":")
INCLUDES = [f"-I{SOURCE / 'libtrace/include'}", f"-I{SOURCE / 'analyzer/library/include'}"]


def tool(name):
    """A tool of Debian, whatever comes first on the path."""
    return shutil.which(name, path="/usr/bin")


class Languages(TestCase):
    def check(self, *command):
        path = self.write(several_kinds().close())
        with ttdtrace.open(path) as heap:
            expected = "".join(f"{group.bytes} bytes by {group.name}\n"
                               for group in heap.go("50%").groups("stack")[:10])
        self.assertTrue(expected)
        made = subprocess.run([*command, path], capture_output=True, text=True, check=False)
        self.assertEqual((made.returncode, made.stdout, made.stderr), (0, expected, ""))
        made = subprocess.run([*command, "nothing"], capture_output=True, text=True, check=False)
        self.assertEqual((made.returncode, made.stdout), (1, ""))
        self.assertRegex(made.stderr, "^nothing: .*No such file or directory\n$")

    @unittest.skipUnless(tool("luajit"), "no luajit")
    def test_lua(self):
        made = subprocess.run(["cc", "-E", "-P", "-xc", *INCLUDES, "-"], capture_output=True,
                              input="#include <ttdtrace/ttdheap.h>\n", text=True, check=True)
        declarations = self.path("ttdheap.i")
        made = subprocess.run(["sed", "/static inline/,/^}/d"], input=made.stdout, text=True,
                              capture_output=True, check=True)
        pathlib.Path(declarations).write_text(made.stdout)
        self.check(tool("luajit"), EXAMPLES / "sites.lua", declarations)

    @unittest.skipUnless(tool("go"), "no go")
    def test_go(self):
        """A pkg-config of its own stands for the package that is installed."""
        stand_in = self.path("pkg-config")
        links = " ".join([*(f"-L{folder}" for folder in LIBRARIES), "-lttdheap"])
        pathlib.Path(stand_in).write_text(f"""#!/bin/sh
case $1 in --cflags) echo '{" ".join(INCLUDES)}' ;; *) echo '{links}' ;; esac
""")
        os.chmod(stand_in, 0o755)
        program = self.path("sites")
        environment = {**os.environ, "PKG_CONFIG": stand_in, "GO111MODULE": "off",
                       "GOFLAGS": "",
                       "CGO_LDFLAGS": " ".join(f"-Wl,-rpath-link,{folder}" for folder in LIBRARIES),
                       "CGO_LDFLAGS_ALLOW": ".*", "GOCACHE": self.path("cache")}
        subprocess.run([tool("go"), "build", "-o", program, EXAMPLES / "sites.go"], check=True,
                       env=environment)
        self.check(program)

    @unittest.skipUnless(tool("rustc"), "no rustc")
    def test_rust(self):
        program = self.path("sites")
        subprocess.run([tool("rustc"), "--edition=2021", "-Dwarnings", "-o", program,
                        EXAMPLES / "sites.rs", *(f"-L{folder}" for folder in LIBRARIES),
                        "-lttdheap", *(f"-Clink-arg=-Wl,-rpath-link,{folder}"
                                       for folder in LIBRARIES)], check=True)
        self.check(program)


if __name__ == "__main__":
    support.main()
