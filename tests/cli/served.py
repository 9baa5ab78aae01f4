# SPDX-License-Identifier: MIT
"""Programs that start once, and run in a child of theirs for each command line: see serve.c.

A child has the environment and the working directory of its test, and limits, umask and signals as
they were at the test's first call. A test that changes these gives an option of subprocess.run()."""

import atexit
import os
import selectors
import signal
import socket
import struct
import subprocess
import time

LIBRARY = os.environ.get("SERVE")
# Variables that act before main(), when a served program has started already.
EARLY = ("LD_", "MALLOC_", "GLIBC_", "ASAN_", "LSAN_", "UBSAN_")

servers = {}


def early(environment):
    return {k: v for k, v in environment.items() if k.startswith(EARLY)}


class Server:
    """A program that has started."""

    def __init__(self, program):
        self.program = program
        self.connection, other = socket.socketpair()
        with other:
            # A symbol is looked up once, and not in each child.
            environment = {**os.environ, "LD_PRELOAD": LIBRARY, "LD_BIND_NOW": "1",
                           "SERVE_SOCKET": str(other.fileno())}
            self.process = subprocess.Popen([program], stdin=subprocess.DEVNULL,
                                            pass_fds=[other.fileno()], env=environment)
        self.nothing = os.open(os.devnull, os.O_RDONLY)
        atexit.register(self.stop)

    def stop(self):
        self.connection.close()
        self.process.wait()

    def start(self, arguments, environment, directory, descriptors):
        """Returns the process id of the child."""
        variables = [f"{k}={v}" for k, v in environment.items()]
        data = b"".join(os.fsencode(text) + b"\0"
                        for text in (directory, self.program, *arguments, *variables))
        header = struct.pack("=III", len(data), 1 + len(arguments), len(variables))
        socket.send_fds(self.connection, [header], descriptors)
        self.connection.sendall(data)
        return self.receive()

    def receive(self):
        data = self.connection.recv(4, socket.MSG_WAITALL)
        if len(data) != 4:
            raise RuntimeError(f"{self.program} ended as a server: {self.process.wait()}")
        return struct.unpack("=i", data)[0]


def input_file(server, data):
    """A descriptor of a file that has the data."""
    if data is None:
        return os.dup(server.nothing)
    descriptor = os.memfd_create("input")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def read_all(descriptors, deadline):
    """The output in pipes until all are closed, or None if the deadline passes before."""
    parts = {descriptor: [] for descriptor in descriptors}
    with selectors.PollSelector() as selector:
        for descriptor in descriptors:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(deadline - time.monotonic())
            if not ready:
                return None
            for key, _ in ready:
                part = os.read(key.fd, 65536)
                parts[key.fd].append(part)
                if not part:
                    selector.unregister(key.fd)
    return [b"".join(parts[descriptor]) for descriptor in descriptors]


def can_serve(options):
    """Whether a child can be started with these options of subprocess.run()."""
    return LIBRARY and options.keys() <= {"env", "cwd", "input"} and \
        early(options.get("env", os.environ)) == early(os.environ)


def run(arguments, timeout=120, **options):
    """subprocess.run(arguments, capture_output=True, stdin=DEVNULL or the input), by a server if it
    can have the options."""
    if not can_serve(options):
        if "input" not in options:
            options["stdin"] = subprocess.DEVNULL
        return subprocess.run(arguments, capture_output=True, timeout=timeout, check=False,
                              **options)
    program = arguments[0]
    if program not in servers:
        servers[program] = Server(program)
    server = servers[program]
    output, errors = os.pipe(), os.pipe()
    given = [input_file(server, options.get("input")), output[1], errors[1]]
    try:
        child = server.start(arguments[1:], options.get("env", os.environ),
                             os.path.join(os.getcwd(), options.get("cwd") or ""), given)
        for descriptor in given:
            os.close(descriptor)
        texts = read_all([output[0], errors[0]], time.monotonic() + timeout)
        if texts is None:
            os.kill(child, signal.SIGKILL)
    finally:
        os.close(output[0])
        os.close(errors[0])
    status = os.waitstatus_to_exitcode(server.receive())
    if texts is None:
        raise subprocess.TimeoutExpired(arguments, timeout)
    return subprocess.CompletedProcess(arguments, status, *texts)
