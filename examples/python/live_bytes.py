#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws the live bytes of a recorded program over time, by function.

    ttdrecord -o trace.ttd -- PROGRAM
    ./live_bytes.py trace.ttd chart.png

It needs the packages python3-ttdtrace and python3-matplotlib. In a notebook, run the lines of
main() one after the other: the chart appears without savefig().
"""

import sys

import matplotlib.pyplot as plt
import ttdtrace

POINTS = 50
FUNCTIONS = 8


def live_bytes(heap, positions):
    """Returns the live bytes by function at each position, a list for each function; and whether all
    answers are certain."""
    lines, certain = {}, True
    for i, position in enumerate(positions):
        groups = heap.go(position).groups("function")
        certain = certain and groups.certain
        for group in groups:
            name = group.name or f"{group.module or '?'}+{group.number:#x}"
            lines.setdefault(name, [0] * len(positions))[i] += group.bytes
    return lines, certain


def draw(lines, certain, title):
    """Draws the functions that ever had the most bytes, and the sum of the others."""
    largest = sorted(lines, key=lambda name: max(lines[name]), reverse=True)
    shown = {name: lines[name] for name in largest[:FUNCTIONS]}
    others = [lines[name] for name in largest[FUNCTIONS:]]
    if others:
        shown["others"] = [sum(column) for column in zip(*others)]
    figure, axes = plt.subplots(figsize=(10, 5))
    count = len(next(iter(shown.values()), [0]))
    percent = [100 * i / max(count - 1, 1) for i in range(count)]
    axes.stackplot(percent, *shown.values(), labels=list(shown))
    axes.set(xlabel="% of the calls", ylabel="live bytes",
             title=title if certain else f"{title} (not certain)")
    axes.legend(loc="upper left", fontsize="small")
    return figure


def main(trace, picture):
    with ttdtrace.open(trace) as heap:
        positions = [heap.find(f"{100 * i / (POINTS - 1):.2f}%") for i in range(POINTS)]
        lines, certain = live_bytes(heap, positions)
    draw(lines, certain, trace).savefig(picture)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} TRACE PICTURE")
    try:
        main(*sys.argv[1:])
    except ttdtrace.Error as error:
        sys.exit(str(error))
