# SPDX-License-Identifier: MIT
"""Makes the module `declarations` of the Python package from ttdtrace/ttdheap.h and the headers that
it includes: types and functions for cffi, constants, and the comments of struct members.

make_declarations.py OUTPUT LIBRARY VERSION INCLUDE_FOLDER... -- COMPILER...
"""

import contextlib
import io
import pathlib
import re
import subprocess
import sys

import cffi

HEADER = "ttdtrace/ttdheap.h"
CONSTANTS = ["TTD_NONE", "TTD_NOWHERE", "TTD_SEQUENCE_INVALID", "TTD_SEQUENCE_MAX", "TTD_UNKNOWN",
             "TTDHEAP_STEPS_MAX"]


def preprocess(compiler, folders):
    """Returns the lines of the header, and of those of ttdtrace that it includes, as the compiler
    sees them; and the constants as expressions."""
    source = f"#include <{HEADER}>\n" + "".join(f'"{name}" = {name};\n' for name in CONSTANTS)
    made = subprocess.run([*compiler, "-E", "-xc", *(f"-I{folder}" for folder in folders), "-"],
                          input=source, capture_output=True, text=True, check=True)
    lines, names, is_ours = [], [], False
    for line in made.stdout.splitlines():
        marker = re.match(r'# \d+ "(.*)"', line)
        if marker:
            is_ours = "ttdtrace/" in marker[1]
            if is_ours and pathlib.Path(marker[1]) not in names:
                names.append(pathlib.Path(marker[1]))
        elif is_ours:
            lines.append(line)
    without_markers = re.sub(r"(?m)^# .*\n", "", made.stdout)
    values = dict(re.findall(r'(?s)"(\w+)" = (.*?);', without_markers))
    return "\n".join(lines), values, names


def declarations(text):
    """Returns C that cffi understands: without attributes and bodies of functions."""
    text = re.sub(r"__attribute__\s*\(\(.*?\)\)\)?", "", text)
    return re.sub(r"(?s)static inline [^{;]*\{.*?\n\}", "", text)


def number(expression):
    """Returns the value of a constant, such as ((ttd_id)0) or (18446744073709551615UL - 1)."""
    expression = re.sub(r"\(\s*ttd_id\s*\)|(?<=\d)[UL]+|\s", "", expression)
    if not re.fullmatch(r"[\d()+\-<>]+", expression):
        raise SystemExit(f"no number: {expression}")
    return eval(expression)


def members(body):
    """Yields the name of each member of a struct, and the comment right in front of it, or ""."""
    comment = ""
    for part in re.findall(r"(?s)/\*\*.*?\*/|[^;/]+;", body):
        if part.startswith("/**"):
            comment = " ".join(re.sub(r"(?m)^\s*\* ?", " ", part[3:-2]).split())
        else:
            name = re.search(r"(\w+)(?:\[[^]]*\])?;|\(\*(\w+)\)", part)
            yield name[1] or name[2], comment
            comment = ""


def comments(names):
    """Returns the comments of the members of all structs."""
    found = {}
    for path in names:
        for name, body in re.findall(r"(?ms)^struct (\w+) \{\n(.*?)^\};", path.read_text()):
            found[name] = dict(members(body))
    return found


def main():
    output, library, version, *rest = sys.argv[1:]
    end = rest.index("--")
    text, values, names = preprocess(rest[end + 1:], rest[:end])
    ffi = cffi.FFI()
    ffi.cdef(declarations(text))
    ffi.set_source("ttdtrace.declarations", None)
    with contextlib.redirect_stdout(io.StringIO()):
        ffi.emit_python_code(output)
    with open(output, "a") as file:
        file.write(f"\nLIBRARY = {library!r}\nVERSION = {version!r}\n")
        for name, value in values.items():
            file.write(f"{name} = {number(value)}\n")
        file.write(f"COMMENTS = {comments(names)!r}\n")


if __name__ == "__main__":
    main()
