# SPDX-License-Identifier: MIT
"""Traces with snapshots of memory"""

from support import Script

PAGE = 512
MEMORY, REFERENCES = 4, 2


def text_of(data):
    """Bytes as tracegen takes them."""
    return "".join(f"%{byte:02x}" for byte in data)


class Snapshots(Script):
    """Pages are numbered from 3; each snapshot of memory is taken at the end of a tick."""

    taken = 0

    def pages(self, *pages):
        return self.add("pages", size=PAGE, texts=",".join(text_of(page) for page in pages))

    def memory(self, *runs, is_complete=True, **fields):
        """Runs are (address, pages, id)."""
        self.taken += 1
        self.clock += 4 - self.clock % 4
        position = f"{self.clock // 4:X}:0"
        self.add("map", snapshot=self.taken, size=PAGE, position=position,
                 runs=",".join(":".join(map(str, run)) for run in runs))
        if is_complete:
            self.add("snapshot", number=self.taken, position=position, contents=MEMORY, **fields)
        return position
