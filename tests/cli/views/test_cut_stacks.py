# SPDX-License-Identifier: MIT
"""A stack that does not reach the function that its thread began with says so; frames below that
function are folded."""

import os
import re
import unittest

import page_support
from support import Script, TestCase

NOTE = ("    (callers unknown: no unwind data in demo, which gcc and\n"
        "    clang write with -fasynchronous-unwind-tables, or a stack of its own)\n")
ANY = "callers unknown"


class Stacks(TestCase):
    def text(self, *functions, options=("--full-stacks",), others=()):
        script = Script()
        for number, path in enumerate(("/opt/demo", "/usr/lib/libc.so.6", *others)):
            begin = (number + 1) << 24
            script.add("module", path=path, bias=begin, begin=begin, end=begin + 0x10000,
                       position="0:0")
        script.add("thread", os=1, position="0:0").add("heap", name="malloc")
        for number, (parent, module, name) in enumerate(functions):
            script.add("stack", parent=parent, module=module, offset=0x10 * (number + 1))
            if name:
                script.add("symbol", module=module, offset=0x10 * (number + 1), frames=f"{name}@x.c@1")
        script.alloc(0x1000, 100, stack=len(functions))
        path = self.write(script.close(), f"{len(os.listdir(self.folder))}.ttd")
        text = self.run_ok("leaks", *options, path).text
        self.check_formats(path, ANY in text)
        return text

    def check_formats(self, path, is_cut):
        """JSON and CSV say the same as text."""
        for arguments in ((), ("--group",)):
            found = self.json_of("leaks", path, *arguments)
            stack = (found.get("groups") or found["sites"])[0]["stack"]
            self.assertEqual([frame.get("callers_unknown") for frame in stack],
                             [None] * (len(stack) - 1) + [True if is_cut else None])
            row = self.run_ok("leaks", "-f", "csv", *arguments, path).csv[0]
            self.assertEqual(row["stack"].split(";")[len(stack):],
                             ["(callers unknown)"] if is_cut else [])


class CutStacks(Stacks):
    OWN = "/usr/lib/ttdtrace/libttdpreload.so",

    def test_cut(self):
        self.assertIn("#0  work (x.c:1) in demo\n" + NOTE,
                      self.text((0, 1, "_start"), (0, 1, "work")))

    def test_code_of_no_module(self):
        self.assertIn("    (callers unknown: code of no module, or a stack of its own)\n",
                      self.text((0, 1, "_start"), (0, 0, None)))

    def test_whole(self):
        for functions in ([(0, 1, "_start"), (1, 1, "work")],
                          [(0, 1, "_start"), (0, 2, "start_thread"), (2, 1, "work")],
                          [(0, 1, "_start"), (0, 1, "main"), (2, 1, "work")],
                          [(0, 1, "_start"), (0, 2, "__start_context"), (2, 1, "work")],
                          # The program is stripped.
                          [(0, 1, None), (1, 2, "__libc_start_call_main"), (2, 1, "work")]):
            with self.subTest(functions):
                self.assertNotIn(ANY, self.text(*functions))

    def test_where_no_stack_has_a_beginning(self):
        """Then a writer that is not ours may leave it out."""
        self.assertNotIn(ANY, self.text((0, 1, "work")))

    def test_where_no_stack_of_the_recorder_has_a_beginning(self):
        """A stripped program without unwind data: all of its stacks are cut."""
        self.assertIn(NOTE, self.text((0, 1, "work"), (1, 1, None), others=self.OWN))

    def test_a_beginning_without_names(self):
        """_start() and the C library's functions."""
        self.assertNotIn(ANY, self.text((0, 1, None), (1, 2, None), (2, 1, None), others=self.OWN))


class Trees(Stacks):
    """A tree from main() on shows stacks that end early below a node of their own."""

    def write_stacks(self, *begins):
        """Each a stack of two frames; all have the same functions."""
        script = Script()
        script.add("module", path="/opt/demo", bias=1 << 24, begin=1 << 24, end=2 << 24,
                   position="0:0")
        script.add("thread", os=1, position="0:0").add("heap", name="malloc")
        for number, name in enumerate(begins):
            script.add("stack", parent=0, module=1, offset=0x10 * (number + 1))
            script.add("symbol", module=1, offset=0x10 * (number + 1), frames=f"{name}@x.c@1")
            script.add("stack", parent=2 * number + 1, module=1, offset=0x100)
        script.add("symbol", module=1, offset=0x100, frames="work@x.c@2")
        for number in range(len(begins)):
            script.alloc(0x1000 * (number + 1), 100, stack=2 * number + 2)
        return self.write(script.close(), f"{len(os.listdir(self.folder))}.ttd")

    def tree(self, path, shape="top-down", *options):
        return [(node["depth"], node["function"], node["count"])
                for node in self.json_of("leaks", path, "--tree", shape, *options)["nodes"]]

    def test_a_tree(self):
        path = self.write_stacks("_start", "make", "take")
        self.assertEqual(self.tree(path), [
            (0, "(callers unknown)", 2), (1, "make", 1), (2, "work", 1), (1, "take", 1),
            (2, "work", 1), (0, "_start", 1), (1, "work", 1)])
        self.assertIn("  - (callers unknown)\n",
                      self.run_ok("leaks", "--tree", "top-down", path).text)
        self.assertEqual(self.run_ok("leaks", "--tree", "top-down", "-f", "folded", path).text,
                         "(callers unknown);make;work 100\n(callers unknown);take;work 100\n"
                         "_start;work 100\n")

    def test_outwards(self):
        """The node stands at the end of each of these stacks, whether a part of it is shared."""
        path = self.write_stacks("_start", "make", "take")
        self.assertEqual(self.tree(path, "bottom-up"), [
            (0, "work", 3), (1, "_start", 1), (1, "make", 1), (2, "(callers unknown)", 1),
            (1, "take", 1), (2, "(callers unknown)", 1)])
        self.assertEqual(self.tree(path, "bottom-up", "--depth", "2"), [
            (0, "work", 3), (1, "_start", 1), (1, "make", 1), (1, "take", 1)])
        self.assertEqual(self.tree(self.write_stacks("make"), "bottom-up"),
                         [(0, "work", 1), (1, "make", 1)])
        self.assertEqual(self.tree(self.write_stacks("make", "_start"), "bottom-up")[2:],
                         [(2, "(callers unknown)", 1), (1, "_start", 1)])

    def test_page(self):
        """The callers of two of three stacks are unknown."""
        page = f"{self.folder}/page.html"
        self.run_ok("report", "-o", page, self.write_stacks("_start", "make", "take"))
        calls = page_support.Calls(page_support.parts_of(page)["calls"])
        stacks = [[frame["function"] for frame in calls.stack(node + 1)]
                  for node in range(len(calls.part["nodes"]["up"]))]
        for expected in (["work", "_start"], ["work", "make", "(callers unknown)"],
                         ["work", "take", "(callers unknown)"]):
            self.assertIn(expected, stacks)
        self.assertIn(["(callers unknown)"], stacks)

    def test_files(self):
        path = self.write_stacks("_start", "make")
        self.assertEqual(self.run_ok("leaks", "--tree", "top-down", "--by", "file", "-f", "folded",
                                     path).text, "x.c 100\n(callers unknown);x.c 100\n")

    def test_where_no_stack_has_a_beginning(self):
        self.assertEqual(self.tree(self.write_stacks("make")), [(0, "make", 1), (1, "work", 1)])

    def test_whole(self):
        self.assertEqual(self.tree(self.write_stacks("_start", "main")),
                         [(0, "_start", 1), (1, "work", 1), (0, "main", 1), (1, "work", 1)])


class FoldedStacks(Stacks):
    THREAD = (0, 2, "clone3"), (1, 2, "start_thread")

    def folded(self, *functions):
        """Each frame, and the line about those that are left out."""
        text = self.text(*functions, options=())
        return [line.split(" (x.c:1)")[0].split(maxsplit=1)[1] for line in text.splitlines()
                if line.startswith("    ")]

    def test_a_thread(self):
        self.assertEqual(self.folded(*self.THREAD, (2, 1, "work"), (3, 1, "allocate")),
                         ["allocate", "work", "2 frames below work"])

    def test_a_thread_of_cxx(self):
        """Between the thread's begin and the program's function are templates in the program."""
        native = (2, 2, "execute_native_thread_routine")
        run = (3, 1, "_ZNSt6thread11_State_implINS_8_InvokerISt5tupleIJPFvvEEEEEE6_M_runEv")
        invoke = (4, 1, "_ZSt13__invoke_implIvPFvvEJEET_St14__invoke_otherOT0_DpOT1_")
        self.assertEqual(self.folded(*self.THREAD, native, run, invoke, (5, 1, "_ZN4shop6workerEv")),
                         ["shop::worker()", "5 frames below shop::worker()"])

    def test_a_lambda_in_a_thread(self):
        """Functions of the library that take its type have no mangled names."""
        run, invoke = (3, 1, "_ZNSt6thread11_State_implIvE6_M_runEv"), (4, 1, "std::__invoke<f()::<lambda()> >()")
        self.assertEqual(self.folded(*self.THREAD, (2, 2, None), run, invoke, (5, 1, "work")),
                         ["work", "5 frames below work"])

    def test_a_stripped_program(self):
        self.assertEqual(self.folded(*self.THREAD, (2, 1, None)),
                         ["demo+0x30", "2 frames below it"])

    def test_only_frames_of_runtimes(self):
        self.assertEqual(self.folded(*self.THREAD, (2, 2, "setlocale")),
                         ["setlocale", "start_thread", "clone3"])

    def test_a_stack_that_begins_in_the_program(self):
        self.assertEqual(self.folded((0, 1, "work"), (1, 2, "qsort"), (2, 1, "compare")),
                         ["compare", "qsort", "work"])

    def test_main_in_a_thread(self):
        self.assertEqual(self.folded((0, 1, "_start"), (1, 1, "main"), (2, 1, "work")),
                         ["work", "main", "1 frame below main"])


class DeepStacks(Stacks):
    """Text has both ends of a deep stack, and a recursion once."""

    def lines(self, *names, others=(), options=()):
        """The frames of a stack, outermost first; names may begin with the number of a module."""
        functions = []
        for depth, name in enumerate(names):
            module, _, rest = name.rpartition(":")
            functions.append((depth, int(module or 1), rest))
        text = self.text(*functions, options=options, others=others)
        return re.findall(r"(?m)^    (#\d+ +\w+|….*)", text.split("\n\n", 1)[1])

    def test_both_ends(self):
        names = ["main", *(f"3:f{number}" for number in range(20, 0, -1))]
        head = [f"#{number:<2} f{number + 1}" for number in range(8)]
        tail = [f"#{number} f{number + 1}" for number in range(17, 20)] + ["#20 main"]
        libraries = ("/opt/libwork.so",)
        self.assertEqual(self.lines(*names, others=libraries), head + ["… 9 frames"] + tail)
        self.assertEqual(len(self.lines(*names, others=libraries, options=("--full-stacks",))), 21)

    def test_few_frames_are_not_left_out(self):
        for count, line in ((14, "#8  f9"), (15, "… 3 frames")):
            names = ["main", *(f"3:f{number}" for number in range(count - 1, 0, -1))]
            self.assertEqual(self.lines(*names, others=("/opt/libwork.so",))[8], line)

    def test_the_programs_own_frames_stay(self):
        """Behind frames of libraries, and in the middle of a stack."""
        names = ["main", *(f"3:f{number}" for number in range(30, 20, -1)), "own",
                 *(f"2:__libc_f{number}" for number in range(20, 0, -1))]
        lines = self.lines(*names, others=("/opt/libwork.so",))
        self.assertEqual(lines[:5], ["#0  __libc_f1", "… 18 frames", "#19 __libc_f20", "#20 own",
                                     "#21 f21"])
        names = ["main", *(f"3:f{number}" for number in range(30, 20, -1)), "own",
                 *(f"3:f{number}" for number in range(20, 0, -1))]
        lines = self.lines(*names, others=("/opt/libwork.so",))
        self.assertEqual(lines[8:11], ["… 12 frames", "#20 own", "… 7 frames"])
        names = ["main", "own", *(f"3:f{number}" for number in range(10, 0, -1)),
                 *(f"2:__libc_f{number}" for number in range(20, 0, -1))]
        lines = self.lines(*names, others=("/opt/libwork.so",))
        self.assertEqual(lines[:4], ["#0  __libc_f1", "… 18 frames", "#19 __libc_f20", "#20 f1"])
        self.assertEqual(lines[-3:], ["#29 f10", "#30 own", "#31 main"])

    def test_other_code_is_left_out_first(self):
        """As the C++ library's, between two functions of the program."""
        names = ["main", *(f"own{number}" for number in range(9, 4, -1)),
                 *(f"2:__libc_f{number}" for number in range(20, 10, -1)), "callback",
                 *(f"2:__libc_f{number}" for number in range(3, 0, -1)), "2:malloc"]
        head = ["#0  malloc", "#1  __libc_f1", "#2  __libc_f2", "#3  __libc_f3", "#4  callback",
                "… 9 frames", "#14 __libc_f20"]
        tail = [f"#{15 + number} own{5 + number}" for number in range(5)] + ["#20 main"]
        self.assertEqual(self.lines(*names), head + tail)

    def test_frames_that_were_not_recorded(self):
        """They are said, however deep they are."""
        script = Script().basics()
        for depth in range(14):
            script.add("stack", parent=1 if not depth else 4 + depth, module=2, offset=0x400 + depth)
        script.add("stack", parent=18, module=0, offset=0xfffffffffffffff9)
        for depth in range(14):
            script.add("stack", parent=19 + depth, module=2, offset=0x500 + depth)
        script.alloc(0x1000, 100, stack=33)
        text = self.run_ok("leaks", self.write(script.close(), "gap")).text
        self.assertRegex(text, r"… \d frames\n    … 7 frames were not recorded\n    … \d+ frames\n")

    def recursion(self, name, *functions):
        """The frames below main of a stack of named functions, outermost first."""
        script = Script().basics()
        known = sorted(set(functions))
        for number, function in enumerate(known):
            script.add("symbol", module=1, offset=0x500 + number, frames=f"{function}@x.c@1")
        for depth, function in enumerate(functions):
            script.add("stack", parent=4 + depth if depth else 1, module=1,
                       offset=0x500 + known.index(function))
        script.alloc(0x1000, 100, stack=4 + len(functions))
        text = self.run_ok("leaks", self.write(script.close(), name)).text
        return re.findall(r"(?m)^    (#\d+ +\w+|….*)", text.split("\n\n", 1)[1])

    def test_recursion(self):
        """It is one line, wherever the middle of the stack begins."""
        self.assertEqual(self.recursion("one", "start", *["walk"] * 9, "leaf"),
                         ["#0  leaf", "#1  walk", "… 8 × walk", "#10 start", "#11 main"])
        pairs = ["even", "odd"] * 6
        self.assertEqual(self.recursion("two", *pairs, "leaf"),
                         ["#0  leaf", "#1  odd", "#2  even", "… 5 × the 2 frames above", "#13 main"])
        inner = [f"f{number}" for number in range(7)]
        self.assertEqual(self.recursion("deep", *pairs, *inner)[7:],
                         ["#7  odd", "#8  even", "… 5 × the 2 frames above", "#19 main"])


if __name__ == "__main__":
    unittest.main()
