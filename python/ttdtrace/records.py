# SPDX-License-Identifier: MIT
"""Records of answers, as tuples with names. Their members, and the values of enums, are those of the
C header: a struct ttdheap_block becomes a Block."""

import collections
import enum
import operator

from .declarations import COMMENTS, TTD_SEQUENCE_INVALID, TTD_SEQUENCE_MAX, ffi
from .errors import ArgumentError, lib


class Position(collections.namedtuple("Position", ["sequence", "steps"])):
    """A position in a trace: the sequence of a fragment, and the steps in it. Its text is the one
    that ttdanalyze prints, such as "1A29:3F7". Positions are ordered."""

    __slots__ = ()

    @classmethod
    def parse(cls, text):
        """Returns the position of a text such as "1A29:3F7"."""
        found = ffi.new("struct ttd_position *")
        if "\0" in text or not lib.ttd_position_parse(text.encode(), found):
            raise ArgumentError(f"the text is no position: {text!r}")
        return cls(found.sequence, found.steps)

    def __str__(self):
        return f"{self.sequence:X}:{self.steps:X}"


Position.START = Position(0, 0)
Position.END = Position(TTD_SEQUENCE_MAX, 2**64 - 1)


def _enum(name, prefix, documentation, c_name):
    values = {member.removeprefix(prefix): value
              for member, value in ffi.typeof(f"enum {c_name}").relements.items()
              if member.startswith(prefix) and not member.endswith("_COUNT")}
    made = enum.IntEnum(name, sorted(values.items(), key=lambda pair: pair[1]), module=__name__)
    made.__doc__ = documentation
    return made


By = _enum("By", "TTDHEAP_BY_", "Properties that blocks are grouped by.", "ttdheap_by")
Quadrant = _enum("Quadrant", "TTDHEAP_", """Blocks allocated inside (AI) or outside (AO) of a range, and
released inside (FI) or outside (FO) of it.""", "ttdheap_quadrant")
Leak = _enum("Leak", "TTDHEAP_", "Kinds of live blocks by the pointers to them.", "ttdheap_leak")
Growth = _enum("Growth", "TTDHEAP_GROWTH_", "Patterns of growth of reallocated blocks.",
               "ttdheap_growth")
Action = _enum("Action", "TTD_ACTION_", "Effects of calls.", "ttd_action")
Api = _enum("Api", "TTD_API_", "Functions that were called.", "ttd_api")


def enum_or_number(kind):
    """Returns a function from numbers to members; a number that is none stays a number."""
    members = {int(member): member for member in kind}
    return lambda number: members.get(number, number)


def text(string):
    """Returns a struct ttd_string as a str; bytes that are no UTF-8 become surrogates."""
    return ffi.buffer(string.data, string.size)[:].decode(errors="surrogateescape") \
        if string.size else ""


def position(found):
    """Returns a struct ttd_position as a Position; None if it is invalid."""
    return None if found.sequence == TTD_SEQUENCE_INVALID else Position(found.sequence, found.steps)


def _parameters(event):
    return tuple(event.parameters[i] for i in range(event.parameter_count))


HIDDEN = ("answer", "parameter_count", "address_ordinal", "base_ordinal")
ENUMS = {"action": enum_or_number(Action), "api": enum_or_number(Api),
         "growth": enum_or_number(Growth)}
BY_TYPE = {"struct ttd_string": text, "struct ttd_position": position,
           "struct ttd_group": lambda group: bytes(group.bytes)}


def _converter(name, field):
    """Returns a function from a struct to a member of its tuple, which refers to no memory of the
    library."""
    if name in ENUMS:
        convert = ENUMS[name]
    elif field.kind == "pointer" and field.item.cname == "char":
        convert = lambda pointer: ffi.string(pointer).decode()
    else:
        convert = BY_TYPE.get(field.cname)
    if name == "parameters":
        return _parameters
    if convert:
        return lambda record: convert(getattr(record, name))
    if field.kind not in ("primitive", "enum"):
        raise TypeError(f"{name} is of an unknown type, {field.cname}")
    return operator.attrgetter(name)


def _record(name, c_name, documentation):
    """Makes the class of tuples for a struct. Its method of() makes a tuple of a struct."""
    fields = [(field, kind.type) for field, kind in ffi.typeof(f"struct {c_name}").fields
              if field not in HIDDEN and not field.startswith("reserved")]
    names = [field for field, _ in fields]
    converters = [_converter(*field) for field in fields]
    made = collections.namedtuple(name, names, module=__name__)
    made.of = classmethod(lambda cls, record: cls._make([get(record) for get in converters]))
    made.of.__func__.__doc__ = "Makes the tuple of a struct."
    comments = COMMENTS[c_name]
    made.__doc__ = "\n\n".join(
        [documentation] + [f"{field}: {comments[field]}" if comments.get(field) else field
                           for field in names])
    BY_TYPE[f"struct {c_name}"] = made.of
    return made


Block = _record("Block", "ttdheap_block", "A block.")
Group = _record("Group", "ttdheap_group", """Blocks that have a property in common. `kind` is a
Quadrant of Heap.diff(), a Leak of Heap.leaks(), and 0 without a meaning of Heap.groups().""")
Move = _record("Move", "ttdheap_move", "Reallocations by one stack.")
Call = _record("Call", "ttdheap_call", "A call, as far as an answer describes it.")
Finding = _record("Finding", "ttdheap_finding", """An error of the program: all calls with the same
error and the same stacks.""")
Owner = _record("Owner", "ttdheap_owner", "A block that covers, or covered, an address.")
Frame = _record("Frame", "ttdheap_frame", "A frame of a stack. Unknown texts are empty.")
Event = _record("Event", "ttd_event", "A call of an allocation function.")
Trace = _record("Trace", "ttd_trace", "Properties of the whole trace.")
End = _record("End", "ttd_end", "The end of the recording.")
