# SPDX-License-Identifier: GPL-2.0-or-later
"""Client of the agent in a guest; images/agent.c describes the protocol."""

import itertools
import os
import socket
import struct
import threading
import time

from .errors import GuestError

MAGIC = 0x61677265
HEADER = struct.Struct("<IIII")
EXEC, STDIN, SIGNAL, SETUP, PING, POWEROFF = range(1, 7)
HELLO, STDOUT, STDERR, EXIT, ACK, CREDIT = range(0x81, 0x87)
EXITED, KILLED, TIMED_OUT, NOT_STARTED = range(4)
MERGE_STDERR, HAS_STDIN = 1, 2
STDIN_WINDOW = 256 << 10
CHUNK = 32 << 10

# Exit statuses of our own, as timeout(1) and env(1) use them.
STATUS_TIMEOUT = 124
STATUS_FAILED = 125

# The guest keeps the time limit; this long after it we stop waiting for that.
GRACE = 20


class Result:
    """How a command ended; out and err are text."""

    def __init__(self, command, status, out, err):
        self.command, self.status, self.out, self.err = \
            command, status, out, err

    @property
    def ok(self):
        return self.status == 0

    @property
    def timed_out(self):
        return self.status == STATUS_TIMEOUT

    def __repr__(self):
        return "%r: status %d\n%s%s" % (self.command, self.status, self.out,
                                        self.err)


class Command:
    """A command that runs in the guest."""

    def __init__(self, agent, ident, command, timeout, on_output):
        self.command, self.timeout = command, timeout
        self._agent, self._id = agent, ident
        self._on_output = on_output
        self._parts = {STDOUT: [], STDERR: []}
        self._done = threading.Event()
        self._window = threading.Condition()
        self._in_flight = 0
        self._status = None
        self.problem = None

    # Called by the agent's reader thread.
    def _message(self, kind, data):
        if kind in self._parts:
            self._parts[kind].append(data)
            if self._on_output:
                self._on_output(kind == STDERR, data)
        elif kind == CREDIT:
            with self._window:
                self._in_flight -= struct.unpack("<I", data)[0]
                self._window.notify_all()
        elif kind == EXIT:
            how, value = struct.unpack("<II", data)
            if how == EXITED:
                self._finish(value)
            elif how == KILLED:
                self._finish(128 + value)
            elif how == TIMED_OUT:
                self._finish(STATUS_TIMEOUT, "time limit of %g s reached%s" % (
                    self.timeout, ", and it hangs in the kernel" if value
                    else ""))
            else:
                self._finish(STATUS_FAILED, "the guest could not start it: "
                             + os.strerror(value))

    def _finish(self, status, problem=None):
        if self._status is None:
            self._status, self.problem = status, problem
        self._done.set()
        with self._window:
            self._window.notify_all()

    def feed(self, data):
        """Give it stdin; waits while the guest has enough."""
        view = memoryview(data)
        while view:
            part = view[:CHUNK]
            with self._window:
                while self._in_flight + len(part) > STDIN_WINDOW and \
                        not self._done.is_set():
                    self._window.wait(1)
                if self._done.is_set():
                    return
                self._in_flight += len(part)
            self._agent._send(STDIN, self._id, bytes(part))
            view = view[len(part):]

    def end_stdin(self):
        if not self._done.is_set():
            self._agent._send(STDIN, self._id)

    def signal(self, number):
        if not self._done.is_set():
            self._agent._send(SIGNAL, self._id, struct.pack("<I", number))

    def kill(self):
        self.signal(9)

    def running(self):
        return not self._done.is_set()

    def ends_within(self, seconds):
        """Wait, but leave it alone if it goes on."""
        return self._done.wait(seconds)

    def output(self):
        """What it has written so far (stdout)."""
        return b"".join(self._parts[STDOUT]).decode(errors="replace")

    def wait(self, timeout=None):
        """Wait for its end; the result as text."""
        if timeout is None and self.timeout:
            timeout = self.timeout + GRACE
        if not self._done.wait(timeout):
            self._finish(STATUS_TIMEOUT, "no answer from the guest")
        err = b"".join(self._parts[STDERR]).decode(errors="replace")
        if self.problem:
            err += "(%s)\n" % self.problem
        return Result(self.command, self._status, self.output(), err)


class Agent:
    """Connection to one guest's agent.  Any thread may use it."""

    def __init__(self, path, name):
        self.name = name
        self.uptime = None
        self._ids = itertools.count(int.from_bytes(os.urandom(3), "little")
                                    * 64 + 1)
        self._commands = {}
        self._acks = {}
        self._lock = threading.Lock()
        self._hello = threading.Event()
        self.closed = False
        self._sock = socket.socket(socket.AF_UNIX)
        self._sock.connect(path)
        threading.Thread(target=self._reader, daemon=True).start()

    def _send(self, kind, ident, data=b""):
        with self._lock:
            try:
                self._sock.sendall(HEADER.pack(MAGIC, kind, ident, len(data))
                                   + data)
            except OSError as e:
                raise GuestError("%s: control port: %s" % (self.name, e)) \
                    from e

    def move(self, sock):
        """The guest has moved: its end of the port is at another socket,
        which was connected when it arrived.  Commands go on."""
        with self._lock:
            old, self._sock = self._sock, sock
        old.shutdown(socket.SHUT_RDWR)

    def _reader(self):
        buf, sock = b"", self._sock
        while True:
            try:
                data = sock.recv(65536)
            except OSError:
                data = b""
            if not data:
                with self._lock:
                    if sock is self._sock:
                        break
                    sock.close()
                    sock = self._sock
                continue
            buf += data
            while len(buf) >= HEADER.size:
                magic, kind, ident, length = HEADER.unpack_from(buf)
                if magic != MAGIC or length > 1 << 20:
                    buf = buf[1:]
                    continue
                if len(buf) < HEADER.size + length:
                    break
                self._dispatch(kind, ident,
                               buf[HEADER.size:HEADER.size + length])
                buf = buf[HEADER.size + length:]
        self.closed = True
        for command in list(self._commands.values()):
            command._finish(STATUS_FAILED, "the guest is gone")
        for event, _ in list(self._acks.values()):
            event.set()

    def _dispatch(self, kind, ident, data):
        if kind == HELLO:
            self.uptime = struct.unpack_from("<II", data)[1] / 1000
            self._hello.set()
        elif kind == ACK:
            waiter = self._acks.get(ident)
            if waiter:
                waiter[1].append(struct.unpack("<I", data)[0])
                waiter[0].set()
        else:
            command = self._commands.get(ident)
            if command:
                if kind == EXIT:
                    del self._commands[ident]
                command._message(kind, data)

    def _ask(self, kind, data, timeout):
        ident, event, answer = next(self._ids), threading.Event(), []
        self._acks[ident] = (event, answer)
        try:
            self._send(kind, ident, data)
            return answer[0] if event.wait(timeout) and answer else None
        finally:
            del self._acks[ident]

    def wait_hello(self, timeout):
        return self._hello.wait(timeout)

    def wait_ready(self, timeout, alive=lambda: True):
        """Wait until it answers; `alive` says whether there is hope."""
        end = time.monotonic() + timeout
        while time.monotonic() < end and alive() and not self.closed:
            if self._ask(PING, b"", 0.5) == 0:
                return True
        return False

    def setup(self, hostname):
        """Clock, random pool and name: a restored guest needs its own."""
        data = struct.pack("<Q", time.time_ns()) + os.urandom(32) + \
            hostname.encode()
        error = self._ask(SETUP, data, 10)
        if error != 0:
            raise GuestError("%s: set-up failed: %s" % (
                self.name, "no answer" if error is None
                else os.strerror(error)))

    def start(self, command, timeout=60, merge=False, stdin=False,
              on_output=None):
        """Start a command; see Command.  timeout 0: none."""
        ident = next(self._ids)
        cmd = Command(self, ident, command, timeout, on_output)
        if self.closed:
            raise GuestError("%s is gone" % self.name)
        self._commands[ident] = cmd
        flags = (MERGE_STDERR if merge else 0) | (HAS_STDIN if stdin else 0)
        self._send(EXEC, ident, struct.pack("<II", int(timeout * 1000), flags)
                   + command.encode())
        return cmd

    def poweroff(self):
        self._send(POWEROFF, 0)

    def close(self):
        self.closed = True
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._sock.close()
