# SPDX-License-Identifier: MIT
"""The heap of a recorded program, at any position of its trace.

A trace is a recording of all calls that allocate and release memory in one process, made by
ttdrecord or by any program that writes the format with libtrace. The ten functions with the most
live bytes at half of a trace:

    import ttdtrace

    with ttdtrace.open("trace.bin") as heap:
        for group in heap.go("50%").groups("function")[:10]:
            print(f"{group.bytes:12}  {group.name}")

Heap has the questions, which are those of libttdheap (man ttdheap); `ttdanalyze` gives the same
answers. Each answer is an Answer: a sequence of records that knows how certain it is. Its columns
are memory of the library, which NumPy takes without copying:

    import numpy

    blocks = heap.blocks()
    numpy.asarray(blocks.column("size")).sum()
    numpy.asarray(blocks)["size"].sum()

A column keeps its answer alive, and an answer what it needs of its trace: they may outlive the
closing of the heap. Failures are exceptions of the class Error, which have the file, the offset and
the reason.
"""

from .answers import Answer, Calls, Groups, Info
from .errors import (ArgumentError, CancelledError, ClosedError, CorruptError, Error, InputError,
                     LimitError, MisuseError, NotATraceError, NotFoundError, OutOfMemoryError,
                     TruncatedError, UnsupportedError)
from .heap import Heap, open
from .records import (Action, Api, Block, By, Call, Event, Finding, Frame, Group, Growth, Leak, Move,
                      Owner, Position, Quadrant)
from .declarations import VERSION as __version__

__all__ = ["Action", "Answer", "Api", "ArgumentError", "Block", "By", "Call", "Calls",
           "CancelledError", "ClosedError", "CorruptError", "Error", "Event", "Finding", "Frame",
           "Group", "Groups", "Growth", "Heap", "Info", "InputError", "Leak", "LimitError",
           "MisuseError", "Move", "NotATraceError", "NotFoundError", "OutOfMemoryError", "Owner",
           "Position", "Quadrant", "TruncatedError", "UnsupportedError", "open"]
