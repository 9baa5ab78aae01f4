# SPDX-License-Identifier: MIT
"""Traces of two builds of one program"""

import re

from support import Script


def other_build(script):
    """The same program loaded elsewhere, its modules and stacks in another order, other lines."""
    script.add("module", path="/build/libwork.so", bias=0x9000000, begin=0x9000000, end=0x9100000,
               position="0:0")
    script.add("module", path="/usr/lib/libother.so", bias=0xa000000, begin=0xa000000,
               end=0xa100000, position="0:0")
    script.add("module", path="/home/me/demo", bias=0x5550000, begin=0x5550000, end=0x5560000,
               position="0:0")
    script.add("thread", os=2000, position="0:0")
    script.add("thread", os=2001, position="0:0")
    script.add("heap", name="malloc")
    script.add("heap", handle=0xc00000, name="private")
    script.add("stack", parent=0, module=3, offset=0x120)       # 1: main
    script.add("stack", parent=1, module=1, offset=0x300)       # 2: main > ?
    script.add("stack", parent=2, module=0, offset=0xbeef)      # 3: main > ? > nowhere
    script.add("stack", parent=1, module=3, offset=0x280)       # 4: main > f (with an inlined g)
    script.add("symbol", module=3, offset=0x120, frames="main@main.c@99")
    script.add("symbol", module=3, offset=0x280,
               frames="_Z1gi@g.h@7,_ZN1f3runEv.constprop.0@f.cc@21")
    return script

# Stacks of Script.basics(), by what they have become there.
MOVED = {0: 0, 1: 1, 3: 2, 4: 3, 2: 4}


def rebuilt(script):
    """The same events of that other build."""
    lines = [line for line in script.lines
             if line.split()[0] not in ("trace", "module", "thread", "heap", "stack", "symbol")]

    def moved(match):
        return f"stack={MOVED[int(match[1], 16)]}"

    found = other_build(Script(id=0x777, events_per_chunk=5))
    found.lines += [re.sub(r"\bstack=(?:0x)?(\w+)", moved, line) for line in lines]
    return found


def paths(nodes, apart, name=lambda label: label):
    """Nodes by what leads to them, without the members `apart` in their names."""
    found, way = {}, []
    for node in nodes:
        label = name({k: v for k, v in node.items() if k not in apart})
        way[node["depth"]:] = [tuple(sorted(label.items(), key=str))]
        found.setdefault(tuple(way), []).append(node)
    return found
