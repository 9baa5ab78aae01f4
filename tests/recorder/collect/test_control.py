# SPDX-License-Identifier: MIT
"""Asking a recorder that runs, from outside: ttdrecord status PID."""

import os
import pathlib
import signal
import socket
import struct
import subprocess
import time
import unittest

from support import (ANALYZER, PATIENCE, RECORDER, Recording, analyze, marks, program,
                     public_recorder, wait_for)

MAGIC = 0x314c4f5254445454
STATUS, MARK, UNKNOWN_COMMAND = 1, 3, 999
DONE, FAILED, UNKNOWN_PROCESS = 0, 1, 2


# Has a file that looks like a channel and, as long as it holds a lease, is opened by nobody.
HOLDER = """
import fcntl, os
open('/proc/self/comm', 'w').write('ttdrecord')
file = os.open(f"/proc/self/fd/{os.memfd_create('ttdrecord')}", os.O_RDWR)
fcntl.fcntl(file, fcntl.F_SETSIG, 28)  # SIGWINCH
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print('ready', flush=True)
input()
"""

# Copies the channel of a recorder, puts itself into it, and a process that it is told; answers
# nobody.
IMPOSTOR = """
import os, socket, struct, sys
recorder = sys.argv[1]
open('/proc/self/comm', 'w').write('ttdrecord')
for file in os.listdir(f'/proc/{recorder}/fd'):
    if os.readlink(f'/proc/{recorder}/fd/{file}') == '/memfd:ttdrecord (deleted)':
        channel = bytearray(open(f'/proc/{recorder}/fd/{file}', 'rb').read(65536))
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind('')
listener.listen(8)
# As in struct channel: the collector's process id, the size of the socket's name, and the name.
assert struct.unpack_from('<I', channel, 28)[0] == int(recorder)
assert channel[56:61] == struct.pack('<I', 6) + b'\\0'
struct.pack_into('<I', channel, 28, os.getpid())
channel[60:66] = listener.getsockname()
copy = os.memfd_create('ttdrecord')
os.write(copy, channel)
print('ready', flush=True)
os.pwrite(copy, struct.pack('<I', int(input())), 4096 + 4)  # of the first slot
print('has it', flush=True)
while True:
    listener.accept()[0].close()
    print('asked', flush=True)
"""


def pack_request(command, pid, size=0, text=b''):
    return struct.pack('<QIII480s4x', MAGIC, command, pid, size, text)


def ask_on_the_command_line(*arguments, **others):
    result = subprocess.run([RECORDER, *map(str, arguments)], capture_output=True, text=True,
                            timeout=PATIENCE, **others)
    return result.returncode, result.stdout, result.stderr


class Control(Recording):

    def setUp(self):
        super().setUp()
        self.recorder = subprocess.Popen([RECORDER, '-q', '-o', str(self.trace), 'cat'],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(self.end_program)
        self.recorder.stdin.write(b'begin\n')
        self.recorder.stdin.flush()
        self.recorder.stdout.readline()
        children = pathlib.Path(f'/proc/{self.recorder.pid}/task/{self.recorder.pid}/children')
        self.program = next(int(child) for child in children.read_text().split()
                            if pathlib.Path(f'/proc/{child}/comm').read_text() == 'cat\n')
        deadline = time.monotonic() + PATIENCE
        while ask_on_the_command_line('status', self.program)[0] and time.monotonic() < deadline:
            time.sleep(0.05)

    def end_program(self):
        self.recorder.stdin.close()
        self.recorder.wait(PATIENCE)
        self.recorder.stdout.close()

    def address(self):
        """The name of the socket, as `struct channel` has it in its first bytes."""
        files = pathlib.Path(f'/proc/{self.recorder.pid}/fd')
        for file in files.iterdir():
            if os.readlink(file) == '/memfd:ttdrecord (deleted)':
                head = file.open('rb').read(128)
                # Behind the process ids: one of 0x600 to 0x6ff looks the same.
                at = head.index(struct.pack('<I', 6) + b'\0', 56) + 4
                return head[at:at + 6]
        raise AssertionError('the recorder has no channel')

    def connect(self):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(connection.close)
        connection.settimeout(PATIENCE)
        connection.connect(self.address())
        return connection

    def ask(self, packet):
        """The result and the text of the answer to a packet; None if there is none."""
        connection = self.connect()
        connection.send(packet)
        answer = connection.recv(4096)
        if not answer:
            return None
        magic, result, size = struct.unpack_from('<QII', answer)
        self.assertEqual(magic, MAGIC)
        return result, answer[16:16 + size].decode()

    def request(self, command=STATUS):
        return pack_request(command, self.program)

    def finish(self):
        """Lets the program end; its recording must be as if nobody had asked."""
        self.end_program()
        self.assertEqual(self.recorder.returncode, 0)
        self.assert_sound()

    def intervals(self):
        """How many snapshots were taken at intervals."""
        return sum(snapshot['reason'] == 'interval'
                   for snapshot in analyze('snapshots', self.trace)['snapshots'])

    def test_snapshots_at_intervals(self):
        """They begin and end while the program runs."""
        status, text, _ = ask_on_the_command_line('snapshots', self.program, '--every', '0.01')
        self.assertEqual((status, text), (0, f"'{self.trace}': a snapshot every 0.01 s\n"))
        deadline = time.monotonic() + PATIENCE
        while self.intervals() < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        status, text, _ = ask_on_the_command_line('snapshots', self.program, '--every=off')
        self.assertEqual((status, text),
                         (0, f"'{self.trace}': no more snapshots at intervals\n"))
        taken = self.intervals()
        self.assertGreaterEqual(taken, 2)
        time.sleep(0.2)
        self.assertEqual(self.intervals(), taken)
        for wrong in ['--every'], ['--every', '-1'], ['--every', '1', '2'], ['--everyone', '1']:
            status, text, said = ask_on_the_command_line('snapshots', self.program, *wrong)
            self.assertEqual((status, text), (125, ''))
            self.assertNotEqual(said, '')
        self.finish()

    def test_status(self):
        code, text, _ = ask_on_the_command_line('status', self.program)
        self.assertEqual(code, 0)
        self.assertRegex(text, r"trace\.bin': [1-9]\d* events .*, 0 lost, 1 thread\n$")
        self.finish()

    def test_a_process_that_is_not_recorded(self):
        code, text, reason = ask_on_the_command_line('status', os.getpid())
        self.assertEqual((code, text), (125, ''))
        self.assertIn('is not being recorded by this user', reason)

    @unittest.skipIf(os.geteuid() != 0, 'only root can be another user')
    def test_another_user(self):
        environment, recorder = public_recorder(self.directory)
        result = subprocess.run([recorder, 'status', str(self.program)], user=65534, cwd='/',
                                env=environment, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, 125)
        self.assertIn('is not being recorded by this user', result.stderr)
        # Even one who knows the socket.
        script = ('import socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); '
                  's.settimeout(60); s.connect(bytes.fromhex(sys.argv[1])); '
                  's.send(bytes.fromhex(sys.argv[2])); print(len(s.recv(4096)))')
        result = subprocess.run(['/usr/bin/python3', '-c', script, self.address().hex(),
                                 self.request().hex()], user=65534, cwd='/', capture_output=True,
                                text=True, timeout=PATIENCE)
        self.assertNotRegex(result.stdout, '[1-9]')

    def test_hostile_packets(self):
        right = self.request()
        for packet in [b'x', b'\0' * 16, right[:-1], right + b'x', right * 9]:
            with self.subTest(size=len(packet)):
                self.assertIsNone(self.ask(packet))
        self.assertEqual(self.ask(self.request(UNKNOWN_COMMAND))[0], FAILED)
        self.assertEqual(self.ask(pack_request(STATUS, 1))[0], UNKNOWN_PROCESS)
        self.assertEqual(self.ask(pack_request(MARK, self.program, 481, b'x' * 480))[0], FAILED)
        self.assertEqual(self.ask(right)[0], DONE)
        self.finish()

    def test_who_connects_and_is_silent_does_not_keep_others_away(self):
        idle = [self.connect() for _ in range(8)]
        self.assertEqual(self.ask(self.request())[0], DONE)
        self.assertEqual(len(idle), 8)
        self.finish()

    def test_a_recorder_that_ends_is_not_the_last_one_asked(self):
        """Something that looks like a recorder closes the connection; a later one has the answer.
        Process ids begin anew now and then: those of the next pair are in order again."""
        for _ in range(3):
            impostor = subprocess.Popen(
                ['/usr/bin/python3', '-c', IMPOSTOR, str(self.recorder.pid)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
            self.addCleanup(impostor.stdout.close)
            self.addCleanup(impostor.stdin.close)
            self.addCleanup(impostor.wait)
            self.addCleanup(impostor.kill)
            self.assertEqual(impostor.stdout.readline(), b'ready\n')
            second = Control('test_status')
            second.setUp()
            self.addCleanup(second.doCleanups)
            if second.recorder.pid > impostor.pid:
                break
        self.assertGreater(second.recorder.pid, impostor.pid)
        impostor.stdin.write(b'%d\n' % second.program)
        self.assertEqual(impostor.stdout.readline(), b'has it\n')
        code, text, reason = ask_on_the_command_line('status', second.program)
        self.assertEqual((code, reason), (0, ''))
        self.assertEqual(impostor.stdout.readline(), b'asked\n')

    def test_a_recorder_that_hangs_keeps_only_its_own_waiting(self):
        """Whether it is asked first or last: process ids may begin anew."""
        others = [Control('test_status') for _ in range(2)]
        for other in others:
            other.setUp()
            self.addCleanup(other.doCleanups)
        self.recorder.send_signal(signal.SIGSTOP)
        self.addCleanup(self.recorder.send_signal, signal.SIGCONT)
        for other in others:
            code, text, reason = ask_on_the_command_line('status', other.program)
            self.assertEqual((code, reason), (0, ''))
            self.assertIn('events', text)
        _, _, reason = ask_on_the_command_line('status', os.getpid())
        self.assertIn('is not being recorded by this user', reason)

    def test_a_program_that_is_stopped(self):
        """Its recorder has stopped with it: whoever asks is told, and is answered later."""
        state = pathlib.Path(f'/proc/{self.recorder.pid}/stat')
        for stopped in self.program, self.recorder.pid:
            os.kill(stopped, signal.SIGSTOP)
            wait_for(lambda: ') T' in state.read_text(), 'it goes on')
            with subprocess.Popen([RECORDER, 'snapshot', str(self.program)], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE) as asker:
                reason = asker.stderr.readline()
                os.kill(stopped, signal.SIGCONT)
                self.assertIn(f"kill -CONT {stopped}'", reason)
                self.assertIn(': snapshot ', asker.communicate(timeout=PATIENCE)[0])
        self.finish()

    def test_what_looks_like_a_channel_and_blocks(self):
        with subprocess.Popen(['/usr/bin/python3', '-c', HOLDER], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as holder:
            self.assertEqual(holder.stdout.readline(), b'ready\n')
            begin = time.monotonic()
            code, _, reason = ask_on_the_command_line('status', holder.pid)
            self.assertLess(time.monotonic() - begin, 20)
            holder.stdin.close()
        self.assertEqual(code, 125)
        self.assertIn('is not being recorded', reason)

    def test_a_program_of_that_name_is_recorded(self):
        path = self.directory / 'status'
        path.symlink_to('/bin/echo')
        result = subprocess.run([RECORDER, '-q', '-o', str(self.directory / 'other.bin'),
                                 '--', 'status', str(self.program)], capture_output=True,
                                env=dict(os.environ, PATH=str(self.directory)), timeout=PATIENCE)
        self.assertEqual(result.stdout.decode(), f'{self.program}\n')


class Live(Recording):
    """Requests to the recording of a program that goes on."""

    LOOP = 'while read line; do words[line]=$line; echo $line; done'

    def setUp(self):
        super().setUp()
        self.recorder = subprocess.Popen(
            [RECORDER, '-q', '-o', str(self.trace), 'bash', '-c', self.LOOP],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.recorder.stdout.close)
        self.work(1)
        children = pathlib.Path(f'/proc/{self.recorder.pid}/task/{self.recorder.pid}/children')
        self.program = next(int(child) for child in children.read_text().split()
                            if pathlib.Path(f'/proc/{child}/comm').read_text() == 'bash\n')

    def work(self, number):
        """Has the program execute its loop once more."""
        self.recorder.stdin.write(f'{number}\n')
        self.recorder.stdin.flush()
        self.assertEqual(self.recorder.stdout.readline(), f'{number}\n')

    def ask(self, command, *arguments):
        status, output, errors = ask_on_the_command_line(command, self.program, *arguments)
        return status, output or errors

    def finish(self):
        self.recorder.stdin.close()
        self.assertEqual(self.recorder.wait(PATIENCE), 0)

    def events_between(self, first, last):
        result = subprocess.run([ANALYZER, 'events', '--format', 'csv', '--from', f'mark:{first}',
                                 '--to', f'mark:{last}', self.trace], capture_output=True,
                                text=True, timeout=PATIENCE, check=True)
        return len(result.stdout.splitlines()) - 1

    def test_marks(self):
        for text in ('begin', 'end', ''):
            self.assertEqual(self.ask('mark', text), (0, f"'{self.trace}': marked\n"))
            self.work(len(text) + 2)
        self.assertEqual(self.ask('mark', 'x' * 480)[0], 0)
        self.assertEqual(self.ask('mark', 'x' * 481)[0], 125)
        self.finish()
        self.assertEqual([(mark['kind'], mark['text'], mark['thread']) for mark in
                          marks(self.trace)],
                         [('mark', text, 0) for text in ('begin', 'end', '', 'x' * 480)])
        self.assertGreater(self.events_between('begin', 'end'), 0)
        self.assertTrue(analyze('leaks', self.trace)['certain'])

    def test_pause(self):
        self.assertEqual(self.ask('resume')[0], 125)
        self.assertEqual(self.ask('pause'), (0, f"'{self.trace}': paused\n"))
        self.assertEqual(self.ask('pause')[0], 125)
        self.assertIn(', paused', self.ask('status')[1])
        self.work(2)
        self.ask('mark', 'a')
        self.work(3)
        self.ask('mark', 'b')
        self.assertEqual(self.ask('resume'), (0, f"'{self.trace}': resumed\n"))
        self.work(4)
        self.ask('mark', 'c')
        self.work(5)
        self.ask('mark', 'd')
        self.finish()
        self.assertEqual(self.events_between('a', 'b'), 0)
        self.assertGreater(self.events_between('c', 'd'), 0)
        kinds = [mark['kind'] for mark in marks(self.trace) if mark['kind'] != 'mark']
        self.assertEqual(sorted(kinds), ['paused', 'paused', 'resumed', 'resumed'])
        self.assertFalse(analyze('leaks', self.trace)['certain'])


class Order(Recording):

    def test_marks_stand_where_they_belong(self):
        """Marks from outside come into the file after all that happened before, and no sooner."""
        texts = [str(i) for i in range(40)]
        recorder = subprocess.Popen([RECORDER, '-o', str(self.trace), program('talker')],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE)
        recorder.stdout.readline()
        children = pathlib.Path(f'/proc/{recorder.pid}/task/{recorder.pid}/children')
        pid = next(int(child) for child in children.read_text().split()
                   if pathlib.Path(f'/proc/{child}/comm').read_text() == 'talker\n')
        for text in texts:
            self.assertEqual(ask_on_the_command_line('mark', pid, text)[0], 0)
        for command in 'pause', 'resume':
            self.assertEqual(ask_on_the_command_line(command, pid)[0], 0)
            time.sleep(0.5)
        _, messages = recorder.communicate(timeout=PATIENCE)
        self.assertEqual(recorder.returncode, 0)
        self.assertRegex(messages.decode(), r'recording was off \d times?: calls made')
        told = list(marks(self.trace))
        self.assertEqual([mark['text'] for mark in told if mark['kind'] == 'mark'], texts)
        positions = [tuple(int(part, 16) for part in mark['position'].split(':'))
                     for mark in told]
        self.assertEqual(positions, sorted(positions))


if __name__ == '__main__':
    unittest.main()
