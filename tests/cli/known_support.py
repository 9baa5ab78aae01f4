# SPDX-License-Identifier: MIT
"""Random traces, and rules with a matcher that tries everything"""

import re

from support import Script, TestCase

NAMES = {"_Z1gi": "g(int)", "_ZN1f3runEv": "f::run()", "main": "main", "g_malloc": "g_malloc",
         "worker": "worker", "a*b": "a*b", "lib$x": "lib$x"}
FUNCTIONS = {1: "malloc", 2: "calloc", 16: "_Znwm", 20: "_Znam"}


def api_of(stack):
    """One function for each stack, so that it is known of groups."""
    return list(FUNCTIONS)[stack % len(FUNCTIONS)]


def random_script(chance):
    script = Script().add("thread", os=1, name="main", position="0:0").add("heap", name="malloc")
    for number, path in enumerate(("/opt/app/demo", "/usr/lib/libwork.so.1")):
        begin = (number + 1) << 24
        script.add("module", path=path, bias=begin, begin=begin, end=begin + 0x10000,
                   position="0:0")
    for stack in range(30):
        script.add("stack", parent=chance.randrange(stack + 1), module=chance.randrange(3),
                   offset=0x100 * chance.randrange(1, 9))
    for module in (1, 2):
        for offset in range(1, 8):
            frames = [chance.choice(list(NAMES))
                      + chance.choice(["", f"@src/{chance.choice('ab')}.c@{chance.randrange(1, 4)}"])
                      for _ in range(chance.choice([1, 1, 2]))]
            script.add("symbol", module=module, offset=0x100 * offset, frames=",".join(frames))
    for number in range(40):
        stack = chance.randrange(31)
        script.event("Alloc", address=0x1000 * (number + 1), size=chance.randrange(1, 100),
                     stack=stack, api=api_of(stack))
    return script.close()


def glob(pattern, marks=True):
    parts = (".*" if c == "*" else "." if c == "?" and marks else re.escape(c) for c in pattern)
    return re.compile("".join(parts) + r"\Z", re.DOTALL)


def sanitizer_matches(pattern, frames):
    body = pattern[1:] if pattern[0] == "^" else "*" + pattern
    body = body[:-1] if body[-1] == "$" else body + "*"
    return any(glob(body, False).match(text) for frame in frames for text in
               (frame["function"], frame["raw"], frame["file"], frame["module"]) if text)


def line_matches(line, frame):
    kind, _, pattern = line.partition(":")
    if kind == "obj":
        return bool(glob(pattern).match(frame["module"] or "???"))
    if kind == "fun":
        return any(glob(pattern).match(frame[name] or "???") for name in ("raw", "function"))
    number = re.search(r":(\d+)$", pattern)
    if number:
        pattern = pattern[:number.start()]
        if frame["line"] != int(number[1]):
            return False
    return bool(frame["file"]) and any(glob(pattern).match(text) for text in
                                       (frame["file"], frame["file"].rpartition("/")[2]))


def valgrind_matches(lines, frames):
    """By all ways there are."""
    if not lines:
        return True
    if lines[0] == "...":
        return any(valgrind_matches(lines[1:], frames[i:]) for i in range(len(frames) + 1))
    return bool(frames) and line_matches(lines[0], frames[0]) and \
        valgrind_matches(lines[1:], frames[1:])


def frames_of(group):
    raw = {display: name for name, display in NAMES.items()}
    return [dict(frame, raw=raw.get(frame["function"])) for frame in group["stack"]]


def rule_matches(rule, group):
    if rule[0] == "leak":
        return sanitizer_matches(rule[1], frames_of(group))
    name = FUNCTIONS[api_of(group["stack_id"])]
    spelled = {"_Znwm": "operator new", "_Znam": "operator new[]"}.get(name, name)
    called = {"function": spelled, "raw": name, "module": "vgpreload_memcheck", "file": None,
              "line": None}
    return valgrind_matches(rule[2], [called] + frames_of(group))


def random_rule(chance, number):
    words = list(NAMES) + list(NAMES.values()) + ["work", "lib", "demo", "src", ".c", "m*n", "un",
                                                  "/opt/*/demo", "a.c", "main*", "*", "g?", "f::*"]
    if chance.random() < 0.4:
        return ("leak", chance.choice(["", "", "^"]) + chance.choice(words)
                + chance.choice(["", "", "$"]))
    lines = [chance.choice(["fun:malloc", "fun:*alloc", "fun:_Zn?m", "...", "fun:*"])]
    for _ in range(chance.randrange(4)):
        lines.append(chance.choice(
            ["...", "fun:" + chance.choice(words), "obj:*" + chance.choice(["work*", "demo", "???"]),
             "src:" + chance.choice(["a.c", "*b.c", "src/?.c", "a.c:2"]), "obj:*", "fun:*"]))
    return ("valgrind", f"rule {number}", lines)


def rule_text(rule):
    if rule[0] == "leak":
        return f"leak:{rule[1]}\n"
    return "{\n   " + "\n   ".join([rule[1], "Memcheck:Leak", *rule[2]]) + "\n}\n"


class Files(TestCase):
    def file(self, text, name="rules"):
        path = self.path(name)
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return path
