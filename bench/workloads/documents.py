# SPDX-License-Identifier: MIT
"""Builds trees of dictionaries and takes them through JSON."""
import json
import sys

def tree(depth):
    if depth == 0:
        return {"leaf": [str(i) for i in range(3)]}
    return {"left": tree(depth - 1), "right": tree(depth - 1), "depth": depth}

def work(rounds):
    kept = []
    for i in range(rounds):
        data = tree(9)
        text = json.dumps(data)
        again = json.loads(text)
        if i % 10 == 0:
            kept.append(again)
    return len(kept)

print(work(int(sys.argv[1]) if len(sys.argv) > 1 else 60))
