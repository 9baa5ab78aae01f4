# SPDX-License-Identifier: MIT
"""Each answer of the Python package is the one of the command that prints the same: the tests of the
library, with questions that Python asks."""

import support
import test_library
import ttdtrace


def plain(value):
    """A value as the JSON of heapdump has it."""
    if isinstance(value, ttdtrace.Position):
        return str(value)
    if isinstance(value, str):
        # Bytes that are no text are a character each there.
        return value.encode(errors="surrogateescape").decode("latin-1")
    return value


def answer_of(found, **members):
    return {"certain": found.certain, "reasons": found.reasons, "position": plain(found.position),
            **{name: plain(value) for name, value in members.items()}}


def block_of(block):
    return {"address": hex(block.address), "size": block.size, "allocated": plain(block.allocated),
            "number": block.event, "heap_id": block.heap, "thread": block.thread,
            "stack_id": block.stack, "unknown": block.is_unknown}


def call_of(call):
    return {"action": call.action, "position": plain(call.position), "stack_id": call.stack,
            "thread": call.thread}


def record_of(record, **renamed):
    """A record by the names of its members, some of which have other names in the JSON."""
    return {renamed.get(name, name): plain(value) for name, value in record._asdict().items()}


def groups_of(groups):
    return answer_of(groups, runtime_blocks=groups.runtime_blocks, runtime_bytes=groups.runtime_bytes,
                     live_blocks=groups.blocks, live_bytes=groups.bytes,
                     groups=[record_of(group, number="id", stack="stack_id") for group in groups])


def blocks_of(blocks):
    return answer_of(blocks, blocks=[block_of(block) for block in blocks])


def errors_of(errors):
    findings = [{"kind": f.kind, "certain": f.is_certain, "address": hex(f.address), "count": f.count,
                 "call": call_of(f.call)} for f in errors]
    return answer_of(errors, calls=errors.total, findings=findings)


def history_of(history):
    owners = [{**block_of(o.block), "ordinal": o.ordinal, "previous": hex(o.previous_address),
               "released": call_of(o.released)} for o in history]
    return answer_of(history, total=history.total, owners=owners)


def info_of(info):
    return answer_of(info, closed=info.is_closed, has_index=info.has_index, events=info.events)


def calls_of(calls):
    # "Alloc" is ALLOC here.
    words = {"ALLOC": "Alloc", "REALLOC": "ReAlloc", "FREE": "Free", "CREATE": "Create",
             "PROTECT": "Protect", "LOCK": "Lock", "UNLOCK": "Unlock", "DESTROY": "Destroy"}
    return answer_of(calls, calls=[{"number": c.number, "action": words[c.action.name],
                                    "start": plain(c.time_start), "size": c.size,
                                    "parameters": list(c.parameters)} for c in calls])


def ask(heap, question):
    """The answers to a question as heapdump takes it, such as "groups/stack"."""
    word, *arguments = [part for part in question.split("/") if part]
    if word == "go":
        return [{"at": str(heap.go(*(arguments or [" "])).at)}]
    if word == "calls":
        return [calls_of(c) for c in heap.calls(*arguments[1:], batch=int(arguments[0]))]
    if word == "diff":
        return [groups_of(heap.diff(*arguments[1:], by=arguments[0]))]
    if word in ("groups", "leaks"):
        return [groups_of(getattr(heap, word)(*arguments))]
    if word == "block":
        return [blocks_of(heap.block_at(int(arguments[0], 0)))]
    if word == "frames":
        frames = heap.frames(int(arguments[0]))
        return [answer_of(frames, frames=[record_of(f, is_inlined="inlined") for f in frames])]
    if word == "moves":
        moves = heap.moves()
        return [answer_of(moves, groups=[record_of(m, stack="stack_id", is_inferred="inferred",
                                                   calls="reallocs") for m in moves])]
    if word == "history":
        return [history_of(heap.history(*map(int, arguments)))]
    return [{"blocks": blocks_of, "errors": errors_of, "info": info_of}[word](getattr(heap, word)())]


def grow(path, size):
    """Appends the next bytes of the file PATH.whole to the trace."""
    with open(path, "ab") as trace, open(f"{path}.whole", "rb") as whole:
        whole.seek(trace.seek(0, 2))
        trace.write(whole.read(size))


STATUSES = {ttdtrace.NotFoundError: 1, ttdtrace.ArgumentError: 9, ttdtrace.MisuseError: 10}


class Python(test_library.Library):
    def ask(self, path, *questions, status=0):
        answers, last = [], 0
        index = None
        if questions[0].startswith("index/"):
            index, questions = questions[0].removeprefix("index/"), questions[1:]
        with ttdtrace.open(path, index=index) as heap:
            for question in questions:
                if question.startswith("grow/"):
                    grow(path, int(question.removeprefix("grow/")))
                    continue
                try:
                    answers += ask(heap, question)
                except ttdtrace.Error as error:
                    last = STATUSES[type(error)]
                    answers.append({"status": last, "what": str(error)})
        self.assertEqual(last, status)
        return answers

    def open_failure(self, path):
        with self.assertRaises(ttdtrace.Error) as raised:
            ttdtrace.open(path)
        self.assertEqual(raised.exception.path, path)
        return {ttdtrace.NotATraceError: 2, ttdtrace.InputError: 8}[type(raised.exception)], \
            str(raised.exception)


if __name__ == "__main__":
    support.main()
