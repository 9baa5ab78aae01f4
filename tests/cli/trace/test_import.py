#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`import` makes traces of other recorders' data, and they are never certain."""

import os
import random
import stat

import support
from support import TestCase, run

HEAPTRACK = """\
v 10400 3
x 8 /bin/pro
X ./pro -x
I 1000 5e2921
m 1 -
m 1 x 5595d7c52000 0 1000 1000 2000
m c /lib/libc.so 7f5e6f4e7000 0 25388
t 5595d7c5320f 0
t 7f5e6f4e7fff 1
+ 64 1 559601c39530
+ 10 2 559601c3a000
c 5
- 559601c39530
+ 20 2 559601c39530
- 559601c3b000
"""

GRID = """\
0:0:000> dx -g @$cursession.TTD.Data.Heap()
=====================================================================================
=                          = Action  = Heap     = Address  = Size = Flags = (+) TimeStart = (+) TimeEnd = Result = PreviousAddress =
=====================================================================================
= [0x0] : [object Object]  - Alloc   - 0xaf0000 - 0xb0cfd0 - 0x4c - 0x0   - FAB:17B1      - FAD:40      -        -                 =
= [0x1] : [object Object]  - Alloc   - 0xaf0000 - 0xb256d8 - 0x3c - 0x8   - E525:174      - E52B:E1     -        -                 =
= [0x2] : [object Object]  - Free    - 0xaf0000 - 0xb0cfd0 -      - 0x0   - E529:1        - E52A:4      - 0x1    -                 =
= [0x3] : [object Object]  - ReAlloc - 0xaf0000 - 0xb30000 - 0x80 - 0x8   - E530:1        - E532:E1     -        - 0xb256d8        =
"""

LIST = """\
@$cursession.TTD.Data.Heap()
    [0x0]            : [object Object]
        Action           : Alloc
        Heap             : 0x172eabe0000
        Address          : 0x172eabed6f0
        Size             : 0xd0
        Flags            : 0xc0000
        TimeStart        : 17B0:19
        TimeEnd          : 17BA:3C
    [0x19]           : [object Object]
        Action           : Free
        Heap             : 0x172eabe0000
        Address          : 0x172eabec380
        Flags            : 0x0
        Result           : 0x1
        TimeStart        : 47:269
        TimeEnd          : 49:1D
"""

CALLS = """\
@$cursession.TTD.Data.Heap()
    [0x0]
        Function         : ntdll!RtlAllocateHeap
        FunctionAddress  : 0x7ffbe3daae00
        ReturnValue      : 0x16c7d7b4050
        Parameters
            [0x0]            : 0x16c7d7b0000
            [0x1]            : 0x8
            [0x2]            : 0x40
        TimeStart        : 50C74:8E
        TimeEnd          : 50C76:3B
    [0x1]
        Function         : ntdll!RtlFreeHeap
        ReturnValue      : 0x1
        Parameters
            [0x0]            : 0x16c7d7b0000
            [0x1]            : 0x0
            [0x2]            : 0x16c7d7b4050
        TimeStart        : 50C76:1E9
        TimeEnd          : 50C78:1D
"""

OLD_GRID = """\
=           = (+) Function               = (+) ReturnValue  = (+) Parameters = (+) TimeStart = (+) TimeEnd =
= [0x0]     - UnknownOrMissingSymbols    - 0x16c7d7b4050    - {...}          - 50C74:8E      - 50C76:3B    =
"""

MTRACE = """\
= Start
@ ./t2:(main+0x1c)[0x11a0] + 0x563630bcc4a0 0x64
@ ./t2:[0x11b5] < 0x563630bcc4a0
@ ./t2:[0x11b5] > 0x563630bcd000 0xc8
@ ./t2:[0x11c0] ! 0x563630bcd000 0xffffffffff
@ ./t2:[0x11e4] + 0x563630bcc2a0 0x5
@ [0x7f0012345678] - 0x563630bcd000
@ ./t2:[0x120c] - 0x563630bcc000
= End
"""

LTTNG = """\
[23:59:59.999999000] (+?.?????????) vm lttng_ust_libc:calloc: { cpu_id = 1 }, { vpid = 7633, vtid = 7634, \
procname = "t1", ip = 139934232532923 }, { nmemb = 100, size = 2, ptr = 0x5647DB447540 }
[00:00:00.000001000] (+0.000002000) vm lttng_ust_libc:realloc: { cpu_id = 1 }, { vpid = 7633, vtid = 7633, \
procname = "t1", ip = 139934232533191 }, { in_ptr = 0x5647DB447540, size = 48, ptr = 0x5647DB4475B0 }
[00:00:00.000002000] (+0.000001000) vm lttng_ust_libc:posix_memalign: { cpu_id = 1 }, { vpid = 7633, \
vtid = 7633 }, { out_ptr = 0x0, size = 48, alignment = 3, result = 22 }
[00:00:00.000003000] (+0.000001000) vm lttng_ust_libc:malloc: { cpu_id = 1 }, { vpid = 7633, vtid = 7633 }, \
{ size = 16, ptr = 0x5647DB448000 }
[00:00:00.000004000] (+0.000001000) vm lttng_ust_libc:realloc: { cpu_id = 1 }, { vpid = 7633, vtid = 7633 }, \
{ in_ptr = 0x5647DB448000, size = 0, ptr = 0x0 }
[00:00:00.000005000] (+0.000001000) vm other:event: { cpu_id = 1 }, { vpid = 7633 }, { x = 1 }
"""

# Made from the documented names of the events: no such text is published.
XPERF = """\
BeginHeader
      P-Start,  TimeStamp,     Process Name ( PID),  ParentPID
    HeapAlloc,  TimeStamp,     Process Name ( PID),   ThreadID, HeapHandle, AllocSize, AllocAddress, SourceId
  HeapRealloc,  TimeStamp,     Process Name ( PID),   ThreadID, HeapHandle, NewAllocAddress, OldAllocAddress, \
NewAllocSize, OldAllocSize, SourceId
     HeapFree,  TimeStamp,     Process Name ( PID),   ThreadID, HeapHandle, FreeAddress, SourceId
EndHeader
      P-Start,         10, a, b.exe (x) (4711),          1
    HeapAlloc,        100,      note (1).exe (4711),        815, 0x1f0000, 64, 0x1f1000, 1
    HeapAlloc,        120,      note (1).exe (4711),        815, 0x1f0000, 32, 0x1f2000, 1
  HeapRealloc,        130,      note (1).exe (4711),        816, 0x1f0000, 0x1f3000, 0x1f1000, 128, 64, 1
     HeapFree,        140,      note (1).exe (4711),        816, 0x1f0000, 0x1f2000, 1
"""


class Import(TestCase):
    def saved(self, data, name):
        path = self.path(name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def made(self, form, text):
        """The path of the trace of a text; it is intact."""
        source = self.saved(text.encode(), "source.txt")
        trace = self.path("made.ttd")
        self.run_ok("import", form, source, "-o", trace)
        self.run_ok("verify", trace)
        return trace

    def events(self, trace):
        events = self.run_ok("events", "-f", "json", trace).json_lines
        return [(event["action"], event.get("address") or event["base_address"],
                 event["time_start"], event["time_end"]) for event in events]

    def refused(self, form, text, *reasons, status=4):
        source = self.saved(text if isinstance(text, bytes) else text.encode(), "bad.txt")
        trace = self.path("bad.ttd")
        found = run("import", form, source, "-o", trace)
        self.assertEqual(found.status, status, found.text)
        for reason in reasons:
            self.assertIn(reason, found.errors)
        self.assertFalse(os.path.exists(trace))

    def test_heaptrack(self):
        trace = self.made("heaptrack", HEAPTRACK)
        self.assertEqual(stat.S_IMODE(os.stat(trace).st_mode), 0o600)
        info = self.json_of("info", trace)
        self.assertEqual((info["allocs"], info["frees"], info["trace"]["process_id"]), (3, 2, None))
        self.assertEqual({entry["key"]: entry["value"] for entry in info["metadata"]},
                         {"imported": "from heaptrack 1.4.0", "command": "./pro -x"})
        self.assertEqual([module["path"] for module in info["module_list"]],
                         ["/bin/pro", "/lib/libc.so"])
        found = self.json_of("leaks", trace)
        self.assertFalse(found["certain"])
        self.assertEqual((found["total_blocks"], found["total_bytes"]), (2, 0x30))
        text = self.run_ok("leaks", trace).text
        self.assertIn("libc.so+0x1000", text)
        self.assertIn("pro+0x1210", text)

    def test_heaptrack_command(self):
        """Arguments may have line breaks, and lines that look like records."""
        for command in ("pro a\n- 5\nb", "pro \n\n+ 10 1 1000\n\nI 1", "pro \n"):
            trace = self.made("heaptrack", HEAPTRACK.replace("./pro -x", command))
            info = self.json_of("info", trace)
            self.assertIn({"key": "command", "value": command}, info["metadata"])
            self.assertEqual((info["allocs"], info["frees"]), (3, 2))
            os.remove(trace)
        for command, reason in (("pro\nI 1 1\nm 1 -", "a second line of the system"),
                                ("pro\n" + "x\n" * 5000, "line of the system was expected"),
                                ("pro\nI 1 1\nX y", "a second command")):
            self.refused("heaptrack", HEAPTRACK.replace("./pro -x", command), "line ", reason)
        self.refused("heaptrack", HEAPTRACK.split("I 1000")[0], "the command has no end")
        earlier = HEAPTRACK.replace("10400 3", "10100 1").replace("x 8 ", "x ").replace("m 1 ", "m ")
        trace = self.made("heaptrack", earlier.replace("m c ", "m ").replace("I 1000 5e2921\n", ""))
        self.assertEqual(self.json_of("info", trace)["allocs"], 3)

    def test_no_answer_is_certain(self):
        """Each trace has a loss without an end."""
        for form, text in (("heaptrack", HEAPTRACK), ("windbg", GRID), ("mtrace", MTRACE),
                           ("lttng", LTTNG), ("xperf", XPERF)):
            trace = self.made(form, text)
            for command in "leaks", "errors", "hot", "peak", "state", "moves", "summary", "diff":
                with self.subTest(form=form, command=command):
                    self.assertIs(self.json_of(command, trace)["certain"], False)
            os.unlink(trace)

    def test_grid(self):
        """Rows are sorted by effect: an Alloc takes effect at its end."""
        trace = self.made("windbg", GRID)
        self.assertEqual(self.events(trace),
                         [("Alloc", "0xb0cfd0", "FAB:17B1", "FAD:40"),
                          ("Free", "0xb0cfd0", "E529:1", "E52A:4"),
                          ("Alloc", "0xb256d8", "E525:174", "E52B:E1"),
                          ("ReAlloc", "0xb30000", "E530:1", "E532:E1")])
        self.assertEqual(self.json_of("moves", trace)["moved"], 1)
        self.assertEqual(self.json_of("leaks", trace)["total_bytes"], 0x80)
        self.assertIsNone(self.json_of("info", trace)["trace"]["time_unit_ns"])

    def test_rows_in_any_order(self):
        """Rows are sorted by effect, then by start, then by their order in the text; numbers of all
        widths survive."""
        chance = random.Random(5)

        def number():
            return chance.getrandbits(chance.choice((1, 7, 8, 14, 15, 32, 56, 63, 64)))

        rows = []
        for index in range(400):
            start = chance.randrange(1, 60) << chance.choice((0, 0, 50)), chance.randrange(2)
            end = start[0] + chance.randrange(3), 2 + chance.randrange(2)
            rows.append((chance.choice(("Alloc", "Free")), start, end, number() or 1, number(), number()))
        text = "= = Action = Heap = Address = Size = Flags = TimeStart = TimeEnd =\n"
        for index, (action, start, end, address, size, flags) in enumerate(rows):
            cell = f"{size:#x}" if action == "Alloc" else ""
            text += (f"= [{index:#x}] : - {action} - 0x{index % 3 + 1}000 - {address:#x} - {cell} - "
                     f"{flags:#x} - {start[0]:X}:{start[1]:X} - {end[0]:X}:{end[1]:X} =\n")
        by_effect = sorted(enumerate(rows), key=lambda row: (
            row[1][2] if row[1][0] == "Alloc" else row[1][1], row[1][1], row[0]))
        found = self.run_ok("events", "-f", "json", self.made("windbg", text)).json_lines
        self.assertEqual(
            [(event["action"], event["heap"], event.get("address") or event["base_address"],
              str(event.get("size")), event["flags"], event["time_start"], event["time_end"])
             for event in found],
            [(action, f"0x{index % 3 + 1}000", f"{address:#x}", str(size if action == "Alloc" else None),
              f"{flags:#x}", f"{start[0]:X}:{start[1]:X}", f"{end[0]:X}:{end[1]:X}")
             for index, (action, start, end, address, size, flags) in by_effect])

    def test_list(self):
        """Objects that are not in the text are named."""
        trace = self.made("windbg", LIST)
        self.assertEqual(self.events(trace), [("Free", "0x172eabec380", "47:269", "49:1D"),
                                              ("Alloc", "0x172eabed6f0", "17B0:19", "17BA:3C")])
        self.assertIn("24 of 26 heap objects", self.run_ok("info", trace).text)
        os.unlink(trace)
        trace = self.made("windbg", LIST + "    [...]\n")
        self.assertIn("behind the first 2: dx has left them out", self.run_ok("info", trace).text)

    def test_calls(self):
        trace = self.made("windbg", CALLS)
        self.assertEqual(self.events(trace), [("Alloc", "0x16c7d7b4050", "50C74:8E", "50C76:3B"),
                                              ("Free", "0x16c7d7b4050", "50C76:1E9", "50C78:1D")])
        self.refused("windbg", OLD_GRID, "line 2", "symbols of ntdll", status=3)
        self.refused("windbg", OLD_GRID.replace("UnknownOrMissingSymbols", "ntdll!RtlFreeHeap"),
                     "dx -r3", status=3)

    def test_mtrace(self):
        trace = self.made("mtrace", MTRACE)
        found = [event[:2] for event in self.events(trace)]
        self.assertEqual(found, [("Alloc", "0x563630bcc4a0"), ("ReAlloc", "0x563630bcd000"),
                                 ("ReAlloc", "0x0"), ("Alloc", "0x563630bcc2a0"),
                                 ("Free", "0x563630bcd000"), ("Free", "0x563630bcc000")])
        self.assertEqual(self.json_of("info", trace)["failed"], 1)
        text = self.run_ok("events", "--stacks", trace).text
        for caller in "main", "t2+0x11b5", "0x7f0012345678":
            self.assertIn(caller, text)
        found = self.json_of("leaks", trace)
        self.assertEqual((found["total_blocks"], found["total_bytes"]), (1, 5))
        findings = self.json_of("errors", trace)["findings"]
        self.assertEqual([(finding["kind"], finding["certain"]) for finding in findings],
                         [("failed-call", True), ("invalid-free", False)])

    def test_lttng(self):
        """A realloc to size 0 releases; midnight is no step back."""
        trace = self.made("lttng", LTTNG)
        events = self.run_ok("events", "-f", "json", trace).json_lines
        self.assertEqual([(event["action"], event["api"], event["result"]) for event in events],
                         [("Alloc", "calloc", 1), ("ReAlloc", "realloc", 1),
                          ("Alloc", "posix_memalign", 0), ("Alloc", "malloc", 1),
                          ("Free", "realloc", 1)])
        self.assertEqual(events[0]["size"], 200)
        self.assertEqual([event["wall_time_ns"] for event in events], [0, 2000, 3000, 4000, 5000])
        self.assertEqual([entry["os_id"] for entry in self.json_of("info", trace)["thread_list"]],
                         [7634, 7633])
        self.assertEqual(self.json_of("leaks", trace)["total_bytes"], 48)

    def test_xperf(self):
        trace = self.made("xperf", XPERF)
        self.assertEqual([event[:2] for event in self.events(trace)],
                         [("Alloc", "0x1f1000"), ("Alloc", "0x1f2000"), ("ReAlloc", "0x1f3000"),
                          ("Free", "0x1f2000")])
        self.assertEqual(self.json_of("leaks", trace)["total_bytes"], 128)
        self.assertEqual(self.json_of("info", trace)["last_wall_time_ns"], 40000)
        self.refused("xperf", XPERF.replace("4711),        816", "4712),        816"),
                     "a second process", status=3)
        self.refused("xperf", XPERF.replace("64, 0x1f1000", "x, 0x1f1000"), "line 8", "column 6")
        self.refused("xperf", XPERF.replace("FreeAddress", "Where"), "columns of HeapFree", status=3)

    def test_refused(self):
        """Bad text makes no trace, and its line is named."""
        for line, reason in (("+ 10 9 1000", "stack of an allocation"), ("+ 10 1", "were expected"),
                             ("t 10 7", "parent of a stack"), ("- xyz", "address was expected"),
                             ("c 11111111111111111", "time in milliseconds"),
                             ("m 1 x 1 ffffffff ffffffffffffffff", "beyond the last address"),
                             ("Y" * 70000, "longer than 65536"),
                             ("m fffff a", "path of a module")):
            with self.subTest(line=line[:20]):
                self.refused("heaptrack", HEAPTRACK + line + "\n", "line 16, offset", reason)
        self.refused("windbg", GRID.replace("FAB:17B1", "FAE:17B1"), "TimeEnd before its TimeStart")
        self.refused("windbg", GRID.replace("0x4c", "0x4z"), "value of Size is not valid")
        self.refused("windbg", GRID[:-2], "cut off")
        for line, reason in (("@ ./t2:[0x1] ? 0x10", "none of + - < > !"),
                             ("@ ./t2:[0x1] + 0x10", "an address and a size"),
                             ("@ ./t2 + 0x10 0x5", "a caller was expected")):
            self.refused("mtrace", MTRACE + line + "\n", "line 10, offset", reason)
        self.refused("lttng", LTTNG + LTTNG.replace("7633", "7639"), "a second process", status=3)
        self.refused("lttng", LTTNG.replace("size = 48, ", ""), "fields is missing")
        for text, reason in ((b"heap_v2/524288\n", "sums of samples"),
                             (b"heap profile: 1: 2 [ 3: 4] @ heap_v2/1\n", "sums of samples"),
                             (b"\x28\xb5\x2f\xfd0000", "zstd -dc"), (b"", "nothing in it"),
                             (b"\xff\xfev\0", "UTF-16"), (b"hello\n", "")):
            with self.subTest(text=text):
                self.refused("heaptrack", text, reason, status=3)
        self.assertIn("no format that can be imported",
                      run("import", "tea", "/dev/null", "-o", self.path("x")).errors)

    def test_summary(self):
        source = self.saved(HEAPTRACK.encode(), "source.txt")
        found = self.run_ok("import", "-f", "json", "-o", self.path("made.ttd"), "heaptrack",
                            source).json
        self.assertEqual((found["events"], found["lines"], found["ignored"]), (5, 15, 1))


if __name__ == "__main__":
    support.main()
