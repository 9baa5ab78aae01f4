# SPDX-License-Identifier: MIT
"""The members that spec/json.md documents."""

import os
import re


def documented():
    """Members by table, a table being known by what comes before it."""
    tables = {}
    section = title = None
    with open(os.path.join(os.environ["TTD_SOURCE"], "spec", "json.md"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("## "):
                section = title = line[3:].strip()
            named = re.match(r"By `(\w+)`:", line) or re.match(r"(?:Element of )?`(\w+)`[^|]*:", line) or \
                re.match(r"Element of `(\w+)`", line)
            if named:
                title = f"{section}.{named[1]}"
            member = re.match(r"\| `(\w+)` \|", line)
            if member:
                tables.setdefault(title, []).append(member[1])
    return tables
