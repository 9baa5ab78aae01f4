# SPDX-License-Identifier: MIT
"""The example that draws live bytes by function: the data that is drawn is what the command says."""

import os
import pathlib
import subprocess
import sys
import unittest.mock

import support
from support import Script, TestCase

FOLDER = pathlib.Path(os.environ["TTD_SOURCE"]) / "examples/python"
sys.path.insert(0, str(FOLDER))

import live_bytes


def grown():
    """A trace with twelve functions, the first of which releases what it had."""
    script = Script().basics()
    for i in range(12):
        script.add("stack", parent=1, module=1, offset=0x1000 + i)
        script.add("symbol", module=1, offset=0x1000 + i, frames=f"function{i}@main.c@{i + 1}")
    for turn in range(30):
        script.alloc(0x100000 + 0x1000 * turn, 100 + turn * 7, stack=5 + turn % 12)
        if turn >= 20:
            script.free(0x100000 + 0x1000 * (turn - 20))
    return script


class Chart(TestCase):
    def test_drawn_data(self):
        path = self.write(grown().close())
        drawn = []
        whole = live_bytes.draw

        def draw(lines, certain, title):
            drawn.append((lines, certain, whole(lines, certain, title)))
            return drawn[-1][2]

        picture = self.path("chart.png")
        with unittest.mock.patch("live_bytes.draw", draw):
            live_bytes.main(path, picture)
        [(lines, certain, figure)] = drawn
        self.assertTrue(certain)
        self.assertEqual(pathlib.Path(picture).read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        states = []
        for i in range(live_bytes.POINTS):
            at = f"{100 * i / (live_bytes.POINTS - 1):.2f}%"
            found = self.json_of("state", path, "--at", at, "--by", "function", "--limit", "0")
            states.append({g["function"]: g["bytes"] for g in found["groups"]})
        for name, values in lines.items():
            self.assertEqual(values, [state.get(name, 0) for state in states], name)
        self.assertEqual(set(lines), {name for state in states for name in state})
        # Each area of the picture lies on the one before; its upper edge is the sum so far.
        [axes] = figure.axes
        self.assertEqual(len(axes.collections), live_bytes.FUNCTIONS + 1)
        largest = sorted(lines, key=lambda name: max(lines[name]), reverse=True)
        sums = [0.0] * live_bytes.POINTS
        for number, area in enumerate(axes.collections):
            names = [area.get_label()] if number < live_bytes.FUNCTIONS else largest[number:]
            sums = [total + sum(lines[name][i] for name in names) for i, total in enumerate(sums)]
            [path_drawn] = area.get_paths()
            edge = {x: max(y for x2, y in path_drawn.vertices if x2 == x)
                    for x in path_drawn.vertices[:, 0]}
            self.assertEqual([edge[x] for x in sorted(edge)], sums, names)
        self.assertEqual(sums, [float(sum(state.values())) for state in states])

    def test_command(self):
        path, picture = self.write(grown().close()), self.path("chart.svg")
        made = subprocess.run([sys.executable, FOLDER / "live_bytes.py", path, picture],
                              capture_output=True, text=True, check=False)
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        self.assertIn("<svg", pathlib.Path(picture).read_text())
        made = subprocess.run([sys.executable, FOLDER / "live_bytes.py", "nothing", picture],
                              capture_output=True, text=True, check=False)
        self.assertEqual(made.returncode, 1)
        self.assertRegex(made.stderr, "^nothing: .*No such file or directory\n$")


if __name__ == "__main__":
    support.main()
