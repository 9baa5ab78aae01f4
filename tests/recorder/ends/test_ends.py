# SPDX-License-Identifier: MIT
"""The requests of a process that ends to the collector; here a test answers."""

import json
import os
import signal
import struct
import subprocess
import time
import unittest

from support import PATIENCE, program

PRELOAD = os.environ['PRELOAD']
CONTENTS = 3
STATUS = 7
RBX, RBP, RSP, RIP = 3, 6, 7, 16
# The values of `ending` in ends.c in these, and the bytes that it has pushed.
MARKS = {RBX: 0x1003, RBP: 0x1006, 12: 0x100c, 13: 0x100d, 14: 0x100e, 15: 0x100f}
PUSHED = 64
VARIABLES = 1 << 20


class Request:
    """A request of a process that is held."""

    def __init__(self, values):
        self.__dict__.update(values)
        self.registers = {int(number): value for number, value in values['registers'].items()}
        self.live = list(self.acquired)
        for block in self.released:
            if block in self.live:
                self.live.remove(block)

    def words(self, address, count):
        with open(f'/proc/{self.pid}/task/{self.tid}/mem', 'rb') as memory:
            memory.seek(address)
            return struct.unpack(f'={count}Q', memory.read(8 * count))

    def maps(self):
        """The begin, the end and the path of each mapping; a first thread that is gone has none."""
        with open(f'/proc/{self.pid}/task/{self.tid}/maps') as maps:
            lines = [line.split(maxsplit=5) for line in maps]
        return [(*(int(word, 16) for word in line[0].split('-')), line[5].strip())
                if len(line) == 6 else (*(int(word, 16) for word in line[0].split('-')), '')
                for line in lines]

    def mapping(self, address):
        return next((path for begin, end, path in self.maps() if begin <= address < end), None)


class Ended:
    """Runs a program; `answer` gets each request and returns what the answerer is to do."""

    def __init__(self, command, answer=lambda request: 'taken', contents=CONTENTS, environment=None):
        self.requests = []
        report, report_end = os.pipe()
        replies_end, replies = os.pipe()
        self.process = subprocess.Popen(
            [program('answerer'), str(contents), str(report_end), str(replies_end), PRELOAD,
             *command], pass_fds=(report_end, replies_end), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=environment)
        os.close(report_end)
        os.close(replies_end)
        with open(report) as lines, open(replies, 'w', buffering=1) as out:
            for line in lines:
                self.requests.append(Request(json.loads(line)))
                out.write(answer(self.requests[-1]) + '\n')
        self.output, self.errors = self.process.communicate(timeout=PATIENCE)
        self.status = self.process.returncode


def symbols():
    """The addresses, from the first mapping on, and sizes of the program's symbols."""
    listing = subprocess.run(['nm', '-S', program('ends')], capture_output=True, text=True).stdout
    lines = [line.split() for line in listing.splitlines()]
    return {line[3]: (int(line[0], 16), int(line[1], 16)) for line in lines if len(line) == 4}


class Ways(unittest.TestCase):
    """Each way to end the process, by the call of a function that has marks in its registers."""
    SYMBOLS = symbols()

    def look(self, request):
        """Adds what is known only while the process is held."""
        base = request.maps()[0][0]
        request.sp, = request.words(base + self.SYMBOLS['ending_sp'][0], 1)
        request.stack = request.words(request.stack_pointer, 4)
        request.code = [request.mapping(pc - 1) for pc, _ in request.frames]
        request.functions = [
            next((name for name, (begin, size) in self.SYMBOLS.items()
                  if base + begin < pc <= base + begin + size), None) for pc, _ in request.frames]
        return 'taken'

    def end(self, way, count=1, status=STATUS):
        ended = Ended([program('ends'), way], self.look)
        native = subprocess.run([program('ends'), way], capture_output=True, text=True)
        self.assertEqual((ended.status, native.returncode), (status, status))
        self.assertEqual((ended.output, ended.errors), (native.stdout, native.stderr))
        self.assertEqual(len(ended.requests), count)
        for request in ended.requests:
            self.assertEqual((request.reason, request.contents, request.signal),
                             (4, CONTENTS, 0))
        return ended.requests

    def assert_called(self, request, has_main):
        """From where the C library was called, the stack is as it was."""
        self.assertEqual(request.stack_pointer, request.sp)
        self.assertEqual(request.frames[0][1], request.sp + PUSHED)
        for number, value in MARKS.items():
            self.assertEqual(request.registers[number], value, number)
        self.assertEqual(request.registers[RSP], request.stack_pointer)
        self.assertEqual(request.registers[RIP], request.frames[0][0])
        self.assertEqual(request.functions[0], 'ending')
        self.assertEqual('main' in request.functions, has_main)
        addresses = [cfa for _, cfa in request.frames[:-1]]
        self.assertEqual(addresses, sorted(addresses))
        self.assertTrue(all(addresses))

    def test_calls(self):
        for way in ('exit', '_exit', '_Exit', 'quick_exit'):
            with self.subTest(way):
                request, = self.end(way)
                self.assertEqual(request.tid, request.pid)
                self.assert_called(request, True)

    def test_from_another_thread(self):
        for way in ('exit', '_exit', 'quick_exit'):
            with self.subTest(way):
                request, = self.end('thread ' + way)
                self.assertNotEqual(request.tid, request.pid)
                self.assert_called(request, False)

    def test_from_a_handler(self):
        request, = self.end('handler')
        self.assert_called(request, True)

    def test_from_within_the_c_library(self):
        """error() calls exit() itself: its frames do not count, nor the registers that it changes
        (all of which it saves)."""
        request, = self.end('error')
        self.assertLess(request.stack_pointer, request.sp)
        self.assertNotIn('libc', request.code[0])
        self.assertGreater(len(request.frames), 3)
        for number in (RBX, 12, 13, 14, 15):
            self.assertIn(request.registers[number], (MARKS[number], STATUS))

    def test_return_from_main(self):
        """Nothing of main() is left: what counts begins in the code that called the C library."""
        request, = self.end('return')
        self.assertEqual(len(request.frames), 1)
        self.assertIn('/ends', request.code[0])
        self.assertEqual(request.frames[0][1], 0)
        # It has aligned the stack below the number of arguments and the first argument.
        self.assertIn(2, request.stack)

    def test_last_thread_ends(self):
        request, = self.end('pthread_exit', status=0)
        self.assertNotEqual(request.tid, request.pid)
        self.assertEqual((request.frames, request.registers), ([], {}))

    def test_memory_shared_with_a_child(self):
        for way in ('vfork', 'clone'):
            with self.subTest(way):
                request, = self.end(way)
                self.assertEqual(request.tid, request.pid)

    def test_child(self):
        requests = self.end('fork', count=2)
        self.assertEqual(len({request.pid for request in requests}), 2)


class Order(unittest.TestCase):
    """All that the program runs at its end has run."""

    def blocks(self, way):
        ended = Ended([program('endings'), way])
        self.assertEqual(ended.status, STATUS)
        request, = ended.requests
        blocks = dict(line.split(': ') for line in ended.output.splitlines())
        return {name for name, block in blocks.items() if int(block) in request.live}

    def test_return_and_exit(self):
        for way in ('return', 'exit'):
            with self.subTest(way):
                self.assertEqual(self.blocks(way), {'kept', 'quick handler'})

    def test_thread(self):
        """The first thread's own objects are destroyed only when that ends."""
        self.assertEqual(self.blocks('thread'), {'kept', 'quick handler', 'thread-local'})

    def test_quick_exit(self):
        self.assertEqual(self.blocks('quick_exit'),
                         {'kept', 'handler', 'last handler', 'thread-local', 'module',
                          'static of the program', 'static of the library'})


class Collector(unittest.TestCase):
    """Whatever the collector does, the process ends as it would."""

    def end(self, *answers, way='exit', status=STATUS):
        answers = list(answers)
        ended = Ended([program('ends'), way], lambda request: answers.pop(0))
        self.assertEqual((ended.status, ended.output), (status, 'the output\n'))
        self.assertEqual(answers, [])
        return ended.requests

    def test_refuses(self):
        self.end('refused')

    def test_may_not_look(self):
        """Then the process permits it, and asks once more."""
        first, second = self.end('denied', 'taken')
        self.assertEqual((first.has_permitted, second.has_permitted), (0, 1))
        self.end('denied', 'denied')

    def test_stalls(self):
        began = time.monotonic()
        self.end('stalled')
        self.assertGreater(time.monotonic() - began, 1)

    def test_dies(self):
        command = ['sh', '-c', program('ends') + ' exit; echo $?']
        ended = Ended(command, lambda request: 'dead')
        self.assertEqual(ended.output, f'the output\n{STATUS}\n')

    def test_wants_none(self):
        ended = Ended([program('ends'), 'exit'], contents=0)
        self.assertEqual((ended.status, ended.requests), (STATUS, []))


class Signals(unittest.TestCase):
    """They are late, if they come in the moment in which the process is held."""

    def test_handled(self):
        def answer(request):
            os.kill(request.pid, signal.SIGUSR1)
            time.sleep(.1)
            with open(f'/proc/{request.pid}/status') as status:
                pending = next(line for line in status if line.startswith('ShdPnd'))
            self.assertEqual(int(pending.split()[1], 16), 1 << signal.SIGUSR1 - 1)
            return 'taken'
        ended = Ended([program('ends'), 'signals'], answer)
        self.assertEqual((ended.status, ended.output), (STATUS, 'handled\nthe output\n'))

    def test_that_end_the_program(self):
        """Nobody waits for a snapshot who wants the program to end."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            def answer(request, number=number):
                os.kill(request.pid, number)
                return 'silent'
            with self.subTest(number):
                # One that is ignored here, as by nohup, is ignored by the program.
                self.addCleanup(signal.signal, number, signal.signal(number, signal.SIG_DFL))
                began = time.monotonic()
                self.assertEqual(Ended([program('ends'), 'exit'], answer).status, 128 + number)
                self.assertLess(time.monotonic() - began, 10)


class Limits(unittest.TestCase):
    def test_no_calls(self):
        ended = Ended(['/bin/true'])
        self.assertEqual((ended.status, ended.requests), (0, []))

    def test_confined(self):
        """No system call is made that might be forbidden."""
        for way in ('prctl', 'syscall'):
            ended = Ended([program('strict'), way, '1000'])
            if ended.status == 77:
                self.skipTest('no seccomp here')
            self.assertEqual((ended.status, ended.requests), (STATUS, []))


class OwnMemory(unittest.TestCase):
    def look(self, request):
        """All parts of the list, and the mappings that are of no file, shared ones too."""
        request.own, part = [], request.own_memory
        while part != 0:
            words = request.words(part, 512)
            request.own += [(words[i], words[i] + words[i + 1]) for i in range(2, 512, 2)
                            if words[i + 1] != 0]
            part = words[0]
        request.mapped = []
        for begin, end, path in request.maps():
            if path not in ('', '/dev/zero (deleted)'):
                continue
            if request.mapped and request.mapped[-1][1] == begin:
                begin = request.mapped.pop()[0]  # a stack and its guard
            request.mapped.append((begin, end))
        return 'taken'

    def test_all_is_listed(self):
        environment = dict(os.environ, MALLOC_ARENA_MAX='1')
        ended = Ended([program('ends'), 'threads'], self.look, environment=environment)
        native = subprocess.run([program('ends'), 'threads'], capture_output=True, text=True,
                                env=environment)
        self.assertEqual(ended.status, STATUS)
        request, = ended.requests
        self.assertGreater(len(request.own), 300)
        for begin, end in request.own:
            self.assertTrue(any(low <= begin and end <= high for low, high in request.mapped))
        recorded, alone = (int(output.split()[-1]) for output in (ended.output, native.stdout))
        own = sum(end - begin for begin, end in request.own)
        # The rest is what the library has without asking for it: its variables.
        self.assertGreater(own, 4 * VARIABLES)
        self.assertLess(abs(recorded - alone - own), VARIABLES)


if __name__ == '__main__':
    unittest.main()
