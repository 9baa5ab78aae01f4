# SPDX-License-Identifier: MIT
"""The Python package: lifetimes, columns, exceptions, threads, damaged files, documentation."""

import concurrent.futures
import gc
import inspect
import io
import mmap
import os
import pathlib
import pickle
import random
import re
import subprocess
import sys
import threading
import unittest.mock
import weakref

import numpy
import support
import ttdtrace
from support import Script, TestCase
from test_library import several_kinds
from ttdtrace import declarations, errors


class Package(TestCase):
    def several(self):
        return self.write(several_kinds().close())

    def many(self, events=2000):
        script = Script(events_per_chunk=50).basics()
        for i in range(events):
            script.alloc(0x100000 + 64 * i, 1 + i % 50, stack=1 + i % 4)
        return self.write(script.close(), "many.ttd")

    # ---- Columns ----

    def test_numpy_does_not_copy(self):
        """Columns and records are memory of the library: equal addresses, and read-only."""
        with ttdtrace.open(self.many()) as heap:
            blocks = heap.blocks()
            interface = blocks.__array_interface__
            base, read_only = interface["data"]
            self.assertTrue(read_only)
            records = numpy.asarray(blocks)
            self.assertEqual(records.__array_interface__["data"], (base, True))
            for name in blocks.columns:
                column = numpy.asarray(blocks.column(name))
                address = column.__array_interface__["data"][0]
                field = records
                for part in name.split("."):
                    field = field[part]
                self.assertEqual(address, field.__array_interface__["data"][0], name)
                self.assertEqual(column.dtype, field.dtype, name)
                self.assertEqual(column.strides, field.strides)
                self.assertTrue(numpy.array_equal(column, field))
                self.assertFalse(column.flags.writeable)
                with self.assertRaises(TypeError):
                    blocks.column(name)[0] = 0
            self.assertEqual(records["size"].sum(), sum(block.size for block in blocks))
            self.assertEqual(records["allocated"]["sequence"].tolist(),
                             [block.allocated.sequence for block in blocks])

    def test_columns_of_every_answer(self):
        """Each column has the values of the records, whatever their type."""
        with ttdtrace.open(self.several()) as heap:
            for answer in (heap.blocks(), heap.groups(), heap.leaks(), heap.diff(), heap.moves(),
                           heap.errors(), heap.history(0x26000), heap.frames(2), *heap.calls()):
                self.assertTrue(len(answer), answer)
                self.assertTrue(answer.columns)
                array = numpy.asarray(answer)
                for name in answer.columns:
                    values, field = answer.column(name), array
                    for part in name.split("."):
                        field = field[part]
                    self.assertEqual(values.tolist(), field.tolist(), name)
                    head, _, tail = name.partition(".")
                    if not tail and hasattr(answer[0], head):
                        self.assertEqual(values.tolist(), [getattr(r, head) for r in answer], name)

    def test_empty_answers(self):
        with ttdtrace.open(self.several()) as heap:
            for answer in (heap.go("start").blocks(), heap.history(1), heap.frames(0),
                           heap.block_at(1), *heap.calls("0:0", "0:1")):
                self.assertEqual(len(answer), 0)
                self.assertEqual(list(answer), [])
                self.assertEqual(numpy.asarray(answer).shape, (0,))
                for name in answer.columns:
                    self.assertEqual(numpy.asarray(answer.column(name)).shape, (0,))

    def test_unknown_column(self):
        with ttdtrace.open(self.several()) as heap:
            with self.assertRaisesRegex(ttdtrace.ArgumentError, "no column 'nothing'; there are a"):
                heap.blocks().column("nothing")

    # ---- Lifetimes ----

    def test_column_keeps_its_owner(self):
        """A column and an array outlive the answer, the heap and its closing."""
        heap = ttdtrace.open(self.many())
        answer = heap.blocks()
        expected = [block.size for block in answer]
        column = answer.column("size")
        array = numpy.asarray(answer)
        strided = numpy.asarray(answer.column("size"))[::2]
        gone = weakref.ref(answer)
        heap.close()
        del answer, heap
        gc.collect()
        churn = [bytes([0xee]) * (56 * 2000) for _ in range(50)]
        self.assertEqual(column.tolist(), expected)
        self.assertEqual(array["size"].tolist(), expected)
        self.assertEqual(strided.tolist(), expected[::2])
        self.assertIsNotNone(gone())
        del array, churn
        gc.collect()
        self.assertIsNone(gone())
        self.assertEqual(column.tolist(), expected)

    def test_memory_is_released(self):
        """Each answer is released once nothing refers to it, without a collection of cycles."""
        released = []
        whole = errors.lib.ttdheap_free
        gc.disable()
        self.addCleanup(gc.enable)
        with ttdtrace.open(self.many()) as heap:
            class Counting:
                def __getattr__(self, name):
                    return getattr(errors.lib, name)

                def ttdheap_free(self, answer):
                    released.append(1)
                    whole(answer)

            with unittest.mock.patch("ttdtrace.answers.lib", Counting()):
                for _ in range(3):
                    answer = heap.blocks()
                    column = answer.column("size")
                    del answer
                    held = len(released)
                    del column
                    self.assertEqual(len(released), held + 1)
                heap.groups()
                heap.info()
                list(heap.calls(batch=500))
        self.assertEqual(len(released), 3 + 2 + 4)

    def descriptors(self, path):
        found = []
        for number in os.listdir("/proc/self/fd"):
            try:
                found.append(os.readlink(f"/proc/self/fd/{number}"))
            except FileNotFoundError:
                pass
        return found.count(os.path.realpath(path))

    def test_close(self):
        """After close() each question is a ClosedError; answers keep their texts, and the file is
        closed with the last of them."""
        path = self.several()
        gc.disable()
        self.addCleanup(gc.enable)
        with ttdtrace.open(path) as heap:
            self.assertEqual(self.descriptors(path), 1)
            groups = heap.groups("function")
            names = [group.name for group in groups]
            batches = heap.calls(batch=2)
            next(batches)
        self.assertTrue(heap.is_closed)
        self.assertIn("closed", repr(heap))
        heap.close()
        for ask in (heap.info, heap.blocks, heap.groups, heap.leaks, heap.diff, heap.moves,
                    heap.errors, heap.calls, heap.__enter__, lambda: heap.go((1, 1)),
                    lambda: heap.find("end"), lambda: heap.block_at(1), lambda: heap.history(1),
                    lambda: heap.frames(1), lambda: next(batches)):
            with self.assertRaisesRegex(ttdtrace.ClosedError, f"{path}: the heap is closed"):
                ask()
        self.assertIsInstance(ttdtrace.ClosedError("x"), ValueError)
        self.assertEqual([group.name for group in groups], names)
        self.assertEqual(self.descriptors(path), 1)
        del groups
        self.assertEqual(self.descriptors(path), 0)

    def test_memory_as_a_trace(self):
        path = self.several()
        data = pathlib.Path(path).read_bytes()
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as map:
            for source in (data, bytearray(data), memoryview(data), map, pathlib.Path(path)):
                with ttdtrace.open(source) as heap, ttdtrace.open(path) as other:
                    del source
                    self.assertEqual(list(heap.blocks()), list(other.blocks()))
                    del heap
        with self.assertRaises(TypeError):
            ttdtrace.open(5)
        with self.assertRaises(TypeError):
            ttdtrace.open(io.BytesIO(data))
        with self.assertRaises(ttdtrace.NotATraceError):
            ttdtrace.open(b"")

    # ---- Failures ----

    def test_exceptions(self):
        nothing = self.path("nothing")
        with self.assertRaises(ttdtrace.InputError) as raised:
            ttdtrace.open(nothing)
        error = raised.exception
        self.assertIsInstance(error, OSError)
        self.assertEqual((error.errno, error.path, error.filename), (2, nothing, nothing))
        self.assertIn("No such file", str(error))
        path = self.several()
        heap = ttdtrace.open(path)
        for ask, kind, text in (
                (lambda: heap.find("nowhere"), ttdtrace.ArgumentError, "is no position"),
                (lambda: heap.find("a\0b"), ttdtrace.ArgumentError, "is no position"),
                (lambda: heap.find("mark:x"), ttdtrace.NotFoundError, "no mark"),
                (lambda: heap.groups("colour"), ttdtrace.ArgumentError, "there are stack, function"),
                (lambda: heap.groups(99), ttdtrace.ArgumentError, "unknown property"),
                (lambda: heap.diff("end", "start"), ttdtrace.ArgumentError, "range is empty"),
                (lambda: heap.diff(by="size"), ttdtrace.ArgumentError, "no groups by"),
                (lambda: heap.go("0:1").groups("class"), ttdtrace.MisuseError, "no snapshot"),
                (lambda: heap.block_at(-1), ttdtrace.ArgumentError, "negative"),
                (lambda: heap.block_at(2**64), ttdtrace.ArgumentError, "too big"),
                (lambda: heap.history(2, 1), ttdtrace.ArgumentError, "no addresses"),
                (lambda: heap.calls(batch=0), ttdtrace.ArgumentError, "at least one"),
                (lambda: ttdtrace.open("a\0b"), ttdtrace.ArgumentError, "NUL"),
                (lambda: ttdtrace.Position.parse("5"), ttdtrace.ArgumentError, "no position")):
            with self.assertRaisesRegex(kind, text):
                ask()
        with self.assertRaises(TypeError):
            heap.block_at("5")
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(copy), copy.path, copy.errno), (str(error), nothing, 2))

    def test_offset(self):
        """The place of damage is that of the library's struct."""
        error = declarations.ffi.new("struct ttdheap_error *")
        what = declarations.ffi.new("char[]", b"payload checksum")
        error.text = b"t.ttd: payload checksum, at offset 4096"
        error.detail.offset, error.detail.chunk, error.detail.what = 4096, 2**64 - 1, what
        made = errors.failure("t.ttd", 3, error)
        self.assertIs(type(made), ttdtrace.CorruptError)
        self.assertEqual((made.path, made.reason, made.offset, made.chunk),
                         ("t.ttd", "payload checksum", 4096, None))

    def test_every_status_has_a_class(self):
        statuses = set(declarations.ffi.typeof("enum ttd_status").relements)
        self.assertEqual(set(errors.CLASSES), statuses - {"TTD_OK"})

    def test_progress(self):
        path, seen = self.many(), []
        with ttdtrace.open(path, progress=lambda done, total: seen.append((done, total))) as heap:
            plain = heap.groups()
            self.assertTrue(seen)
            self.assertTrue(all(done <= total == os.path.getsize(path) for done, total in seen))
        with ttdtrace.open(path, progress=lambda done, total: True) as heap:
            with self.assertRaisesRegex(ttdtrace.CancelledError, "cancelled"):
                heap.groups()

        def fail(done, total):
            raise fail.error

        with ttdtrace.open(path, progress=fail) as heap:
            for fail.error in (ZeroDivisionError("mine"), KeyboardInterrupt()):
                with self.assertRaises(type(fail.error)) as raised:
                    heap.groups()
                self.assertIs(raised.exception, fail.error)
        with ttdtrace.open(path, progress=lambda done, total: ask()) as heap:
            for ask in (heap.blocks, lambda: heap.go((1, 1))):
                with self.assertRaisesRegex(ttdtrace.MisuseError, "a question is being asked"):
                    heap.groups()
            ask = heap.close
            self.assertEqual(list(heap.groups()), list(plain))
            self.assertTrue(heap.is_closed)

    def test_steps(self):
        with ttdtrace.open(self.several(), steps_max=1) as heap:
            with self.assertRaises(ttdtrace.LimitError):
                heap.groups("function")

    def test_damaged_files(self):
        """Any bytes: an Error or an answer that is not certain and wrong, never anything else."""
        whole = pathlib.Path(self.several()).read_bytes()
        with ttdtrace.open(whole) as heap:
            right = [list(heap.blocks()), list(heap.groups("function")), list(heap.leaks())]
        luck = random.Random(7)
        opened = certain = 0
        for _ in range(300):
            data = bytearray(whole)
            for _ in range(luck.choice((1, 1, 2, 20))):
                data[luck.randrange(len(data))] = luck.randrange(256)
            if luck.random() < 0.2:
                del data[luck.randrange(len(data)):]
            try:
                with ttdtrace.open(data) as heap:
                    opened += 1
                    answers = [heap.blocks(), heap.groups("function"), heap.leaks()]
                    for other in (heap.errors(), heap.moves(), heap.history(0, 2**64 - 1),
                                  *heap.calls(batch=5)):
                        list(other)
                    heap.info()
                    for answer, expected in zip(answers, right):
                        found = list(answer)
                        certain += answer.certain
                        self.assertTrue(not answer.certain or found == expected)
                        self.assertTrue(answer.certain or answer.reasons)
            except ttdtrace.Error as error:
                self.assertEqual(error.path, "memory")
                self.assertTrue(error.reason)
        self.assertGreater(opened, 50)

    # ---- Threads ----

    def test_threads_share_a_heap(self):
        with ttdtrace.open(self.many()) as heap:
            expected = list(heap.groups()), heap.blocks().column("size").tolist()

            def ask(_):
                return list(heap.groups()), heap.blocks().column("size").tolist()

            with concurrent.futures.ThreadPoolExecutor(8) as threads:
                for found in threads.map(ask, range(64)):
                    self.assertEqual(found, expected)

    def test_close_while_threads_ask(self):
        """Each question is answered or a ClosedError."""
        path = self.many()
        for _ in range(20):
            heap = ttdtrace.open(path)
            results = []

            def ask():
                try:
                    while True:
                        results.append(len(list(heap.groups("function"))))
                except ttdtrace.ClosedError:
                    results.append("closed")

            threads = [threading.Thread(target=ask) for _ in range(4)]
            for thread in threads:
                thread.start()
            heap.close()
            for thread in threads:
                thread.join()
            self.assertEqual(results.count("closed"), 4)

    def test_questions_let_other_threads_run(self):
        """A question in progress does not hold Python's lock: others run meanwhile."""
        ran = threading.Event()
        go = threading.Event()

        def progress(done, total):
            go.set()
            return not ran.wait(20)

        with ttdtrace.open(self.many(), progress=progress) as heap:
            thread = threading.Thread(target=lambda: (go.wait(), ran.set()))
            thread.start()
            heap.groups()
            thread.join()

    # ---- The end of the interpreter ----

    def test_end(self):
        """Objects still open at the end do no harm."""
        program = ("import sys, ttdtrace, numpy\nheap = ttdtrace.open(sys.argv[1])\n"
                   "blocks = heap.blocks()\ncolumn = blocks.column('size')\n"
                   "sys.modules['kept'] = heap, numpy.asarray(blocks), heap.groups('function')\n")
        made = subprocess.run([sys.executable, "-X", "dev", "-c", program, self.many()],
                              capture_output=True, text=True, check=False)
        self.assertEqual((made.returncode, made.stderr), (0, ""))

    # ---- Facts of the header ----

    def test_members_are_those_of_the_header(self):
        """The package's texts about records stand in the header, by name and by comment."""
        folder = pathlib.Path(os.environ["TTD_SOURCE"])
        header = (folder / "analyzer/library/include/ttdtrace/ttdheap.h").read_text()
        for kind, name in ((ttdtrace.Block, "block"), (ttdtrace.Group, "group"),
                           (ttdtrace.Move, "move"), (ttdtrace.Finding, "finding"),
                           (ttdtrace.Owner, "owner"), (ttdtrace.Frame, "frame")):
            body = header.partition(f"struct ttdheap_{name} {{")[2].partition("};")[0]
            for field in kind._fields:
                self.assertRegex(body, rf"\b{field};")
                own = re.search(rf"\*/\s*[\w *]+\b{field};", body)
                self.assertRegex(kind.__doc__, rf"(?m)^{field}{':' if own else '$'}")
        self.assertIn("It may have been released where its thread was not recorded.",
                      ttdtrace.Block.__doc__)
        functions = {name for name in dir(errors.lib) if name.startswith("ttdheap_")}
        questions = {f"ttdheap_{name}" for name, _ in inspect.getmembers(ttdtrace.Heap)}
        self.assertEqual(functions - questions - {"ttdheap_open"},
                         {"ttdheap_free", "ttdheap_options_default"})

    def test_documentation(self):
        """Each public name has a docstring."""
        self.assertTrue(ttdtrace.__doc__)
        for name in ttdtrace.__all__:
            found = getattr(ttdtrace, name)
            self.assertTrue(inspect.getdoc(found), name)
            if not inspect.isclass(found):
                continue
            for member, value in vars(found).items():
                is_function = inspect.isfunction(value) or isinstance(value, (property, classmethod))
                if is_function and not member.startswith("_"):
                    self.assertTrue(inspect.getdoc(getattr(found, member)), f"{name}.{member}")

    def test_positions(self):
        self.assertEqual(str(ttdtrace.Position(0x1a29, 0x3f7)), "1A29:3F7")
        self.assertEqual(ttdtrace.Position.parse("1a29:3F7"), (0x1a29, 0x3f7))
        self.assertLess(ttdtrace.Position.START, ttdtrace.Position.parse("0:1"))
        with ttdtrace.open(self.several()) as heap:
            self.assertEqual(heap.at, ttdtrace.Position.END)
            self.assertEqual(heap.find("end"), ttdtrace.Position.END)
            self.assertEqual(heap.find("start"), ttdtrace.Position.START)
            whole = list(heap.diff())
            self.assertEqual(list(heap.diff(ttdtrace.Position.START, ttdtrace.Position.END)), whole)


if __name__ == "__main__":
    support.main()
