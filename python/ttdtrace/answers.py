# SPDX-License-Identifier: MIT
"""Answers: sequences of records, whose columns are memory of the library."""

import collections.abc
import sys

from . import records
from .declarations import ffi
from .errors import ArgumentError, lib

# Characters by which memoryview.cast() and NumPy know the types of columns.
FORMATS = {"uint64_t": ("Q", "u8"), "int64_t": ("q", "i8"), "uint32_t": ("I", "u4"),
           "uint8_t": ("B", "u1"), "uint16_t": ("H", "u2"), "_Bool": ("?", "b1"),
           "double": ("d", "f8")}
ORDER = "<" if sys.byteorder == "little" else ">"


def _columns(kind, prefix="", begin=0):
    """Yields name, offset and format of each number in a struct; of structs in it too."""
    for name, field in kind.fields:
        if field.type.kind == "struct":
            yield from _columns(field.type, f"{prefix}{name}.", begin + field.offset)
        elif field.type.cname in FORMATS:
            yield f"{prefix}{name}", begin + field.offset, FORMATS[field.type.cname]


def _description(kind):
    """Returns the members of a struct as NumPy's descr; texts and pointers are left out."""
    description, end = [], 0
    for name, field in kind.fields:
        if field.type.kind == "struct" and field.type.cname != "struct ttd_string":
            entry = (name, _description(field.type))
        elif field.type.cname in FORMATS:
            order = "|" if ffi.sizeof(field.type) == 1 else ORDER
            entry = (name, order + FORMATS[field.type.cname][1])
        else:
            continue
        if field.offset > end:
            description.append(("", f"|V{field.offset - end}"))
        description.append(entry)
        end = field.offset + ffi.sizeof(field.type)
    if ffi.sizeof(kind) > end:
        description.append(("", f"|V{ffi.sizeof(kind) - end}"))
    return description


class _Certainty:
    """How certain an answer is.

    certain: nothing that the trace leaves open could change the answer. reasons: why it is not
    certain, texts. position: the Position of the last effect that the answer rests on.
    """

    def __init__(self, answer):
        self.certain = answer.is_certain
        self.reasons = [ffi.string(answer.reasons[i]).decode(errors="surrogateescape")
                        for i in range(answer.reason_count)]
        self.position = records.position(answer.position)


def _own(found):
    """Returns the struct of an answer with its release, which happens once nothing refers to it."""
    return ffi.gc(found, lambda answer: lib.ttdheap_free(ffi.addressof(answer, "answer")))


class Answer(_Certainty, collections.abc.Sequence):
    """A sequence of records, all of one class.

    Records are made when they are asked for. numpy.asarray(answer) is an array of all records, and
    numpy.asarray(answer.column(name)) of one member; neither copies. An answer is released when it,
    its columns and the arrays that rest on them are no longer used. Different threads may use it.
    """

    def __init__(self, found, convert, handle=None):
        super().__init__(found.answer)
        self._owner = owner = _own(found)
        self._kind = ffi.typeof(found.items).item
        self._convert = convert
        self._count = found.count
        # Refers to the owner for as long as itself is referred to, by a column for example.
        self._items = ffi.gc(found.items, lambda items, owner=owner: None)
        self._handle = handle
        self._formats = {name: (offset, form) for name, offset, form in _columns(self._kind)
                         if not name.rpartition(".")[2].startswith("reserved")}
        self.columns = tuple(self._formats)

    def __len__(self):
        return self._count

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self._convert(self._items[i]) for i in range(*index.indices(self._count))]
        index = range(self._count)[index]
        return self._convert(self._items[index])

    def __iter__(self):
        for i in range(self._count):
            yield self._convert(self._items[i])

    def __repr__(self):
        certainty = "certain" if self.certain else f"not certain: {'; '.join(self.reasons)}"
        return f"<{type(self).__name__} of {self._count} records, {certainty}>"

    def _memory(self):
        return memoryview(ffi.buffer(self._items, self._count * ffi.sizeof(self._kind))
                          if self._count else b"").toreadonly()

    def column(self, name):
        """Returns the values of one member in all records: a read-only memoryview of the library's
        memory. `columns` has the names; a member of a member has a dot, as in
        "allocated.sequence"."""
        if name not in self._formats:
            raise ArgumentError(f"no column {name!r}; there are {', '.join(self.columns)}")
        offset, (form, _) = self._formats[name]
        values = self._memory().cast(form)
        return values[offset // values.itemsize::ffi.sizeof(self._kind) // values.itemsize]

    @property
    def __array_interface__(self):
        """The records for NumPy, which refers to this answer for as long as it uses them."""
        # NumPy refuses NULL even for no records.
        first = self._items if self._count else self._owner
        return {"version": 3, "shape": (self._count,), "descr": _description(self._kind),
                "typestr": f"|V{ffi.sizeof(self._kind)}",
                "data": (int(ffi.cast("uintptr_t", first)), True)}


class Groups(Answer):
    """Groups of blocks.

    blocks, bytes: sums over all groups. runtime_blocks, runtime_bytes: blocks that the C and C++
    runtimes keep until the end, which are in no group.
    """

    def __init__(self, found, convert, handle):
        super().__init__(found, convert, handle)
        self.blocks = found.blocks
        self.bytes = found.bytes
        self.runtime_blocks = found.runtime_blocks
        self.runtime_bytes = found.runtime_bytes


class Counted(Answer):
    """Records, and a number of which they may be a part. total: of Heap.history() the owners that
    there were, of Heap.errors() the erroneous calls."""

    def __init__(self, found, convert, total):
        super().__init__(found, convert)
        self.total = total


class Calls(Answer):
    """Calls in the order of their effects. next: number of the first event behind them, or None."""

    __slots__ = ("next",)

    def __init__(self, found, convert):
        super().__init__(found, convert)
        self.next = None if found.next == 2**64 - 1 else found.next


class Info(_Certainty):
    """Properties of a trace."""

    def __init__(self, found):
        super().__init__(found.answer)
        self.trace = records.Trace.of(found.trace)
        self.end = records.End.of(found.end) if found.is_closed else None
        self.calls = {action: found.calls[action] for action in records.Action}
        for name, field in ffi.typeof("struct ttdheap_info").fields:
            if field.type.kind == "primitive":
                setattr(self, name, getattr(found, name))
        _own(found)
