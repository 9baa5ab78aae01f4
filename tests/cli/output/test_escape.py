# SPDX-License-Identifier: MIT
"""Names from a trace are any bytes: whatever they are, each is written in a way of its own, without
characters that nobody sees, and as no formula."""

import csv
import re
import unicodedata

import support
from support import Script, TestCase

# Names in pairs or more that look alike, if one is not escaped, and such as are dangerous.
NAMES = [
    rb"a\x1bb", b"a\x1bb", rb"a\\x1bb", b"a\\", b"a\\\\", "zero​width".encode(), b"zerowidth",
    rb"zero\xe2\x80\x8bwidth", "tag\U000e0041\U000e007f".encode(), b"tag", "a‮b⁦c".encode(),
    "soft­hyphen".encode(), "join‍er️".encode(), "ﾠfiller⁢".encode(),
    b"=1+1", b"+1", b"-1", b"@SUM(A1)", b"\t=1", b"\r=1", "＝1".encode(), b"\\x3d1+1",
    b" =1", b"  +1", "\u00a0@1".encode(), "\u3000\u2002=1".encode(), b" x", b' "=1', b"  ",
    b"x;=1+1", b'x";"=1+1', b'"=1"', b"x,=1", b"x =1", b"x:=1", rb"x\x3b=1", b"operator=",
    "é漢字".encode(), b"\xff", b"\xc3\xa9", b"\xc0\x80", "￿".encode(),
]


def encode(name):
    return "".join(f"%{byte:02x}" for byte in name)


def decode(text):
    """The text behind an escaped one."""
    parts = re.split(rb"(\\\\|\\x[0-9a-f]{2})", text)
    return b"".join(b"\\" if part == rb"\\" else bytes([int(part[2:], 16)])
                    if part.startswith(rb"\x") else part for part in parts)


def hidden(text):
    """Characters of a text that nobody sees; spaces and new lines are seen."""
    ignorable = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0"
                           "\ufff0-\ufff8\U000e0000-\U000e0fff]")
    return [c for c in text if c != "\n" and
            (unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") or ignorable.match(c))]


class Escape(TestCase):
    def trace(self):
        """A stack for each name, whose function, file, module and thread have it."""
        script = Script()
        for i, name in enumerate(NAMES):
            script.add("module", path="%2f" + encode(name), bias=i << 16, begin=i << 16,
                       end=(i << 16) + 4096, position="0:0")
            script.add("thread", os=i + 1, name=encode(name), position="0:0")
            script.add("stack", module=i + 1, offset=16)
            script.add("symbol", module=i + 1, offset=16,
                       frames=f"{encode(name)}@{encode(name)}@1")
        for i, name in enumerate(NAMES):
            script.add("heap", handle=0x100000 * i, name=encode(name))
        script.add("metadata", key=encode(b"=1"), value=encode(b"@1"))
        for i in range(len(NAMES)):
            script.alloc(0x1000 * (i + 1), 1, stack=i + 1, thread=i + 1, heap=i + 1)
        return self.write(script.close())

    def test_each_is_written_in_its_own_way(self):
        path = self.trace()
        names = sorted(set(NAMES))
        folded = [line.rsplit(b" ", 1)[0] for line in
                  self.run_ok("leaks", "-f", "folded", path).raw.splitlines()]
        self.assertEqual(sorted(map(decode, folded)), names)
        for by, column in (("function", "function"), ("file", "file"), ("thread", "name"),
                           ("stack", "stack")):
            rows = self.run_ok("leaks", "-f", "csv", "--by", by, "--limit", 0, path).csv
            self.assertEqual(sorted(decode(row[column].encode()) for row in rows), names, by)
        text = self.run_ok("leaks", "--by", "file", "--limit", 0, path).raw
        lines = [line[4:] for line in text.splitlines() if line.startswith(b"    ")]
        self.assertEqual(sorted(map(decode, lines)), names)

    def test_json_is_exact(self):
        groups = self.json_of("leaks", self.trace(), "--by", "file", "--limit", 0)["groups"]
        self.assertEqual(sorted(group["file"] for group in groups),
                         sorted(name.decode(errors="replace") for name in set(NAMES)))

    def test_nothing_is_hidden(self):
        path = self.trace()
        for command in ("leaks", "info", "state", "moves", "hot", "errors", "events --stacks",
                        "leaks --tree top-down", "leaks --by thread"):
            for form in ("text", "json", "csv", "folded"):
                if form == "folded" and command.split()[0] in ("info", "errors", "events"):
                    continue
                raw = self.run_ok(*command.split(), "-f", form, path).raw
                self.assertEqual(hidden(raw.decode()), [], (command, form))

    def test_no_cell_is_a_formula(self):
        """Whichever separator a spreadsheet takes; what we write ourselves is a number at most."""
        path = self.trace()
        for command in ("leaks", "info", "state", "hot", "events --stacks", "timeline",
                        "leaks --tree bottom-up", "leaks --by thread", "leaks --by module",
                        "leaks --by heap", "query heaps", "query live_sites", "query threads"):
            words = command.replace("query ", "query SELECT*FROM\t").split(" ")
            lines = self.run_ok(*words, "-f", "csv", path).text.splitlines()
            for separator in ",;\t":
                for cell in sum(csv.reader(lines, delimiter=separator), []):
                    self.assertNotRegex(cell, r"^\s*(?!-?[0-9.]+$)[=+@＝＋－＠-]", command)
            for cell in re.split("[;\t]", "\t".join(lines)):
                self.assertNotRegex(cell, r'^["\s]*[=+@＝＋－＠-]', command)


support.main()
