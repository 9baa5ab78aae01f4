# SPDX-License-Identifier: MIT
"""The doubt that an index brings: an answer from one is as good as that of a replay, but uncertain."""

import json

DOUBT = "the index was used, and not compared with the trace: '--no-index' reads the whole trace"


def without_doubt(path, result):
    """Output and messages of a command, as they would be if it was certain of the index."""
    text = result.text.replace(f"Uncertain: {DOUBT}\n", "")
    errors = result.errors.replace(f"ttdanalyze: warning: {path}: uncertain: {DOUBT}\n", "")
    if text.startswith("{"):
        data = json.loads(text)
        if DOUBT in data.get("reasons", ()):
            assert data["certain"] is False
            data["reasons"].remove(DOUBT)
            data["certain"] = not data["reasons"]
        text = json.dumps(data)
    elif errors != result.errors:
        text = text.replace(",false\n", ",true\n")
    return text, errors
