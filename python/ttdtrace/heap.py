# SPDX-License-Identifier: MIT
"""A trace, and a position in it."""

import os
import threading

from . import records
from .answers import Answer, Calls, Counted, Groups, Info
from .declarations import ffi
from .errors import ArgumentError, ClosedError, MisuseError, OutOfMemoryError, failure, lib


def _property(by):
    """Returns a member of By for itself, its number or its name in any case."""
    if isinstance(by, str):
        if by.upper() not in records.By.__members__:
            raise ArgumentError(f"unknown property {by!r}; there are "
                                f"{', '.join(name.lower() for name in records.By.__members__)}")
        return records.By[by.upper()]
    return by


def _with_kind(kinds):
    """Returns a function that makes groups whose kind is one of an enum."""
    kind = records.enum_or_number(kinds)

    def convert(group):
        made = records.Group.of(group)
        return made._replace(kind=kind(made.kind))

    return convert


class _Progress:
    """What the library calls while a question reads the trace."""

    def __init__(self, function):
        self.function = function
        self.raised = None

    def report(self, _context, done, total):
        """Passes progress on. Python looks for signals when it runs this."""
        return int(bool(self.function and self.function(done, total)))

    def keep(self, _kind, error, _trace):
        """Keeps an exception of the function, and ends the question."""
        self.raised = error
        return 1


class _Handle:
    """A handle of the library. It is closed when nothing refers to it: no Heap, no answer with texts,
    and no question in another thread."""

    def __init__(self, source, index, progress, steps_max, reads_ahead):
        self._progress = _Progress(progress)
        callback = ffi.callback("int(void *, uint64_t, uint64_t)", self._progress.report,
                                onerror=self._progress.keep)
        options = ffi.new("struct ttdheap_options *", lib.ttdheap_options_default())
        options.progress = callback
        options.steps_max = steps_max
        options.reads_ahead = reads_ahead
        index_path = self._c_path(index) if index is not None else ffi.NULL
        options.index = index_path
        memory, table = None, None
        if isinstance(source, (str, os.PathLike)):
            self.path = os.fsdecode(source)
        else:
            self.path = "memory"
            memory = ffi.from_buffer(source)
            table = ffi.new("struct ttd_input *")
            if lib.ttd_input_memory(memory, len(memory), ffi.NULL, table):
                raise OutOfMemoryError("memory: no memory", self.path)
            options.input = table
        found = ffi.new("struct ttdheap **")
        error = ffi.new("struct ttdheap_error *")
        self.check(lib.ttdheap_open(self._c_path(self.path), options, found, error), error)
        # The memory and the function are needed for as long as the handle.
        self.raw = ffi.gc(found[0], lambda raw, _kept=(callback, memory): lib.ttdheap_close(raw))

    @staticmethod
    def _c_path(path):
        data = os.fsencode(path)
        if b"\0" in data:
            raise ArgumentError("the name of a file has no NUL", os.fsdecode(path))
        return ffi.new("char[]", data)

    def check(self, status, error):
        """Raises what a status stands for, or what the function that shows progress has raised."""
        raised, self._progress.raised = self._progress.raised, None
        if raised is not None:
            raise raised
        if status:
            raise failure(self.path, status, error)


class Heap:
    """A trace, and a position in it, at first the end. See open().

    Threads wait for each other, question by question. A heap is a context manager.
    """

    def __init__(self, source, *, index=None, progress=None, steps_max=0, reads_ahead=True):
        self._handle = None
        self._lock = threading.RLock()
        self._is_asking = False
        self._handle = _Handle(source, index, progress, steps_max, reads_ahead)
        self.path = self._handle.path
        self._position = records.Position.END

    def __enter__(self):
        self._need()
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        state = f"at {self._position}" if self._handle else "closed"
        return f"<Heap of {self.path!r}, {state}>"

    def close(self):
        """Ends the use of the trace. Answers stay usable; the file is closed when no answer and no
        question needs it. May be called again."""
        self._handle = None

    @property
    def is_closed(self):
        """close() was called."""
        return self._handle is None

    @property
    def at(self):
        """The position that the questions are about."""
        return self._position

    def _need(self):
        handle = self._handle
        if handle is None:
            raise ClosedError(f"{self.path}: the heap is closed", self.path, "the heap is closed")
        return handle

    def _need_idle(self):
        """As _need(). The function that shows progress must not ask."""
        if self._is_asking:
            raise MisuseError(f"{self.path}: a question is being asked", self.path,
                              "a question is being asked")
        return self._need()

    def _call(self, function, *arguments):
        """Calls a function of the library. Returns the handle it was asked of."""
        error = ffi.new("struct ttdheap_error *")
        with self._lock:
            handle = self._need_idle()
            self._is_asking = True
            try:
                status = function(handle.raw, *arguments, error)
                handle.check(status, error)
            finally:
                self._is_asking = False
        return handle

    def _ask(self, kind, function, *arguments):
        found = ffi.new(f"struct ttdheap_{kind} *")
        handle = self._call(function, *arguments, found)
        return found, handle

    # ---- Positions ----

    def info(self):
        """Describes the trace, as an Info; reads all of it."""
        return Info(self._ask("info", lib.ttdheap_info)[0])

    def find(self, text):
        """Returns the Position that a text stands for: "FAB:17B1" (sequence and steps), "start",
        "end", "#1234" (an event by its number), "50%" (of the events), "+1.5s" (after the start),
        "mark:TEXT" (the first mark with this text). Raises NotFoundError if there is no such mark,
        ArgumentError if the text has none of these forms."""
        found = ffi.new("struct ttd_position *")
        self._call(lib.ttdheap_find, self._text(text), found)
        return records.Position(found.sequence, found.steps)

    def find_range(self, begin="start", end="end"):
        """Returns the two positions that bound a range of calls, as find() takes them: for "#1234"
        the range begins with event 1234, or ends before it. Positions are returned as they are."""
        texts = [self._text(str(bound)) for bound in (begin, end)]
        first, last = ffi.new("struct ttd_position *"), ffi.new("struct ttd_position *")
        self._call(lib.ttdheap_find_range, *texts, first, last)
        return (records.Position(first.sequence, first.steps),
                records.Position(last.sequence, last.steps))

    def go(self, position):
        """Goes to a position, or to the one that a text stands for. Returns this heap. Reads nothing
        but what find() needs: the next question does. Answers of before stay as they are."""
        if isinstance(position, str):
            position = self.find(position)
        with self._lock:
            lib.ttdheap_go(self._need_idle().raw, tuple(position))
            self._position = records.Position(*position)
        return self

    def _text(self, text):
        data = text.encode(errors="surrogateescape")
        if b"\0" in data:
            raise ArgumentError(f"{self.path}: the text is no position", self.path,
                                "the text is no position")
        return data

    # ---- The heap at the position ----

    def blocks(self):
        """Lists all blocks that are live at the position, sorted by address: an Answer of Block."""
        return Answer(self._ask("blocks", lib.ttdheap_blocks)[0], records.Block.of)

    def block_at(self, address):
        """Finds the live block that covers an address, the innermost one if blocks lie in each
        other: an Answer with one Block, or with none."""
        return Answer(self._ask_with("blocks", lib.ttdheap_block_at, address)[0], records.Block.of)

    def groups(self, by="stack"):
        """Groups the blocks that are live at the position by a property, a By or its name: Groups of
        Group, the most bytes first. Raises MisuseError by class, if the trace has no snapshot of
        references at the position or before."""
        found, handle = self._ask_with("groups", lib.ttdheap_groups, _property(by))
        return Groups(found, records.Group.of, handle)

    def leaks(self, by="stack"):
        """Classifies the blocks that are live at the position: Groups of Group, by kind, a Leak. By
        size is not possible."""
        found, handle = self._ask_with("groups", lib.ttdheap_leaks, _property(by))
        return Groups(found, _with_kind(records.Leak), handle)

    def diff(self, begin="start", end="end", by="stack"):
        """Compares the heap at two positions, or at those that texts stand for: Groups of Group, by
        kind, a Quadrant. `end` is not part of the range. By class and by size are not possible."""
        bounds = self.find_range(begin, end)
        found, handle = self._ask_with("groups", lib.ttdheap_diff, *map(tuple, bounds), _property(by))
        return Groups(found, _with_kind(records.Quadrant), handle)

    # ---- The whole trace ----

    def moves(self):
        """Lists the stacks that reallocate, in the whole trace: an Answer of Move."""
        return Answer(self._ask("moves", lib.ttdheap_moves)[0], records.Move.of)

    def errors(self):
        """Lists the calls that are errors, in the whole trace: Counted of Finding."""
        found = self._ask("findings", lib.ttdheap_errors)[0]
        return Counted(found, records.Finding.of, found.calls)

    def history(self, first, last=None, limit=1000):
        """Lists the blocks that ever covered an address from `first` to `last`, both included, in
        the whole trace: Counted of Owner, the last `limit` of them."""
        found = self._ask_with("history", lib.ttdheap_history, first,
                               first if last is None else last, limit)[0]
        return Counted(found, records.Owner.of, found.total)

    def frames(self, stack):
        """Lists the frames of a stack, which any answer names, with inlined functions, innermost
        first: an Answer of Frame."""
        found, handle = self._ask_with("frames", lib.ttdheap_frames, stack)
        return Answer(found, records.Frame.of, handle)

    def calls(self, begin="start", end="end", batch=1 << 16):
        """Iterates over the calls in a range, as find_range() takes it: yields Calls of Event, with
        at most `batch` of them. Each answer is certain by itself."""
        if batch < 1:
            raise ArgumentError("a batch has at least one call")
        bounds = [tuple(bound) for bound in self.find_range(begin, end)]
        return self._batches(bounds, batch)

    def _batches(self, bounds, batch):
        first = 0
        while first is not None:
            wanted = ffi.new("struct ttdheap_range *", [*bounds, first, batch])
            calls = Calls(self._ask_with("calls", lib.ttdheap_calls, wanted)[0], records.Event.of)
            yield calls
            first = calls.next

    def _ask_with(self, kind, function, *arguments):
        """Asks a question with arguments; one that does not fit its type is an ArgumentError."""
        try:
            return self._ask(kind, function, *arguments)
        except OverflowError as error:
            raise ArgumentError(f"{self.path}: {error}", self.path, str(error)) from None


def open(source, *, index=None, progress=None, steps_max=0, reads_ahead=True):
    """Opens a trace, which may be growing, damaged or cut short, and returns a Heap at its end.

    source: name of a file, a str or a pathlib.Path; or the trace itself, an object like bytes, which
    must not change. index: name of an index
    that `ttdanalyze index` has made and that the caller trusts; far positions are reached sooner, but
    answers that rest on it are not certain. progress: called now and then with the bytes that a
    question has read and the bytes of the trace; if it returns a true value, the question ends with
    CancelledError, and an exception that it raises is the question's. steps_max: steps from frame to
    frame that all questions together may take; 0 for the default. reads_ahead: use another thread.

    A Heap describes the part of the trace that was in the file when it was opened; a new one has the
    calls that were written since.

    Raises NotATraceError, InputError and other classes of Error.
    """
    return Heap(source, index=index, progress=progress, steps_max=steps_max, reads_ahead=reads_ahead)
