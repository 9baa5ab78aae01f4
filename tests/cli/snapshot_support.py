# SPDX-License-Identifier: MIT
"""Traces with snapshots of references."""

from support import Script, TestCase

HEAP, MODULE, STACK, REGISTERS, TLS, ANONYMOUS, FILE = range(1, 8)
STOPPED, INCOMPLETE = 1, 2
HEAP_BEGIN, HEAP_SIZE = 0x10000, 0x10000000
# A line of the script has a megabyte at the most.
WORDS_A_RECORD = 10000

# The numbers of the regions that each snapshot here has.
IN_HEAP, IN_BSS, IN_STACK, IN_REGISTERS, IN_OTHER_STACK, IN_TLS, IN_FILE = range(1, 8)


class SnapshotScript(Script):
    """Words are what a snapshot finds: (address, value) in the heap, (region, offset, value)
    elsewhere."""

    taken = 0

    def snapshot(self, *words, classes=(), regions=None, position=None, headers=None, **fields):
        """Takes a snapshot now. Thread 1 ends the program. `headers` are of blocks: the address of
        the first one, flags, and the headers."""
        self.taken += 1
        if position is None:
            self.clock += 4 - self.clock % 4
            position = f"{self.clock // 4:X}:0"
        if regions is None:
            regions = [(HEAP, HEAP_BEGIN, HEAP_SIZE), (MODULE, 0x600000000, 0x1000, 0, 1, ".bss"),
                       (STACK, 0x7ff000000, 0x1000, 1), (REGISTERS, 0, 17 * 8, 1),
                       (STACK, 0x7fe000000, 0x1000, 2), (TLS, 0x7fd000000, 0x1000, 1),
                       (FILE, 0x500000000, 0x1000)]
        self.add("regions", snapshot=self.taken, regions=",".join(
            ":".join(str(part) for part in region) for region in regions))
        found = sorted(word if len(word) == 3 else (IN_HEAP, word[0] - HEAP_BEGIN, word[1])
                       for word in words)
        for i in range(0, len(found), WORDS_A_RECORD):
            self.add("references", snapshot=self.taken, words=",".join(
                ":".join(str(part) for part in word) for word in found[i:i + WORDS_A_RECORD]))
        if classes:
            self.add("classes", snapshot=self.taken, classes=",".join(
                f"{address}:{name}" for address, name in classes))
        if headers:
            begin, flags, values = headers
            self.add("block_headers", snapshot=self.taken, begin=begin, flags=flags,
                     headers=",".join(str(value) for value in values))
        self.add("snapshot", number=self.taken, position=position, **fields)
        return self


class SnapshotCase(TestCase):
    def classes(self, script, *arguments, name="trace.ttd"):
        """Sums of the classes as (blocks, bytes), without those of nothing."""
        found = self.json_of("leaks", self.write(script, name), *arguments)
        return {name: (of["blocks"], of["bytes"]) for name, of in found["classes"].items()
                if of["blocks"]}
