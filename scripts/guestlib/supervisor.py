# SPDX-License-Identifier: GPL-2.0-or-later
"""The process that holds the guests of `./erdma guests`.

It starts them, serves the command line over a unix socket, and ends them
when it is told to, or when the process that it watches (the script or the
shell that called `guests start`) is gone.  The QEMUs die with it.

A client sends one line of JSON.  The answer is frames: one byte of kind, a
length (u32, big endian), data.  Kinds: O and E output, X the end (JSON);
the client sends I (stdin; empty = its end) while a command runs.
"""

import json
import os
import select
import signal
import socket
import struct
import sys
import threading
import time

from .agent import STATUS_FAILED
from .errors import GuestError
from .guests import GuestSet, Options

FRAME = struct.Struct(">cI")
INFO = "supervisor.json"


def recv_exact(sock, n):
    data = b""
    while len(data) < n:
        part = sock.recv(n - len(data))
        if not part:
            raise ConnectionError("closed")
        data += part
    return data


def recv_frame(sock):
    kind, length = FRAME.unpack(recv_exact(sock, FRAME.size))
    return kind, recv_exact(sock, length)


def send_frame(sock, kind, data=b""):
    sock.sendall(FRAME.pack(kind, len(data)) + data)


def start_time(pid):
    """When a process started: with the pid it names it for good."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return int(f.read().rsplit(")", 1)[1].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def read_info(state):
    """What is known of a living supervisor in this state directory."""
    try:
        with open(os.path.join(state, INFO)) as f:
            info = json.load(f)
        if start_time(info["pid"]) == info["start"]:
            return info
    except (OSError, ValueError, KeyError):
        pass
    return None


class Supervisor:
    def __init__(self, state, options, watch):
        self.state, self.options, self.watch = state, options, watch
        self.guests = None
        self.stopped = threading.Event()
        self.started_at = time.time()
        self._wake, self._waker = os.pipe()

    # ---- requests ----

    def _serve(self, sock):
        with sock:
            try:
                line = sock.makefile("rb", buffering=0).readline()
                request = json.loads(line)
                answer = getattr(self, "do_" + request["op"])(sock, request)
            except GuestError as e:
                answer = {"error": str(e)}
            except (OSError, ConnectionError, ValueError, KeyError,
                    AttributeError) as e:
                answer = {"error": "bad request: %r" % e}
            try:
                send_frame(sock, b"X", json.dumps(answer).encode())
            except OSError:
                pass
            if answer.get("bye"):
                self.shutdown()

    def do_exec(self, sock, request):
        guest = self.guests[request["guest"]]
        lock = threading.Lock()

        def output(is_err, data):
            try:
                with lock:
                    send_frame(sock, b"E" if is_err else b"O", data)
            except OSError:
                command.kill()

        command = guest.start(request["command"], request["timeout"],
                              stdin=request["stdin"], on_output=output)
        reader = threading.Thread(target=self._client_input, daemon=True,
                                  args=(sock, command))
        reader.start()
        result = command.wait()
        with lock:
            return {"status": result.status, "problem": command.problem,
                    "failed": result.status == STATUS_FAILED and
                    bool(command.problem)}

    @staticmethod
    def _client_input(sock, command):
        try:
            while True:
                kind, data = recv_frame(sock)
                if kind == b"I" and data:
                    command.feed(data)
                elif kind == b"I":
                    command.end_stdin()
        except (OSError, ConnectionError):
            command.kill()          # Ctrl-C at the other end
        except GuestError:
            pass

    def do_qmp(self, sock, request):
        guest = self.guests[request["guest"]]
        return {"reply": guest.qmp.execute(request["request"])}

    def do_status(self, sock, request):
        return {
            "pid": os.getpid(), "watch": self.watch,
            "since": self.started_at, "logs": self.guests.logdir,
            "guests": [{
                "guest": g.index, "name": g.name, "address": g.ip,
                "alive": g.machine.alive(), "pid": g.machine.process.pid,
                "ready_after": round(g.machine.ready_after, 2),
                "restored": g.machine.restored,
                "accel": g.machine.base.accel,
                "console": g.machine.path("console"),
                "qmp": g.machine.path("qmp"),
                "console_log": g.machine.console_log,
                "qemu_log": g.machine.qemu_log,
            } for g in self.guests]}

    def do_stop(self, sock, request):
        return {"bye": True}

    # ---- life ----

    def shutdown(self):
        self.stopped.set()
        os.write(self._waker, b"x")

    def _write_info(self, path):
        info = {"pid": os.getpid(), "start": start_time(os.getpid()),
                "socket": path, "n": self.options.n}
        tmp = os.path.join(self.state, INFO + ".new")
        with open(tmp, "w") as f:
            json.dump(info, f)
        os.rename(tmp, os.path.join(self.state, INFO))

    def run(self, report):
        """Start, call report(None or an error text), serve until the end."""
        signal.signal(signal.SIGTERM, lambda *_: self.shutdown())
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, lambda *_: self.shutdown())
        watched = None
        if self.watch:
            try:
                watched = os.pidfd_open(self.watch)
            except OSError:
                report("process %d, whose end should end the guests, is gone"
                       % self.watch)
                return
        self.guests = GuestSet(self.options,
                               logdir=os.path.join(self.state, "logs"),
                               say=lambda t: print(t, flush=True))
        try:
            self.guests.start()
            path = os.path.join(self.guests.rundir, "supervisor")
            server = socket.socket(socket.AF_UNIX)
            server.bind(path)
            server.listen(64)
            self._write_info(path)
            report(None)
            while not self.stopped.is_set():
                fds = [server, self._wake] + ([watched] if watched else [])
                ready = select.select(fds, [], [])[0]
                if watched in ready:
                    break
                if server in ready:
                    sock, _ = server.accept()
                    threading.Thread(target=self._serve, args=(sock,),
                                     daemon=True).start()
        except GuestError as e:
            report(str(e))
        finally:
            self.guests.stop()
            try:
                os.unlink(os.path.join(self.state, INFO))
            except OSError:
                pass


def launch(state, options, watch):
    """Start a supervisor in the background; returns when its guests are
    ready.  Raises GuestError with what it said if they are not."""
    os.makedirs(os.path.join(state, "logs"), exist_ok=True)
    rd, wr = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        os.close(wr)
        with os.fdopen(rd) as f:
            answer = f.read()
        os.waitpid(pid, 0)
        if answer != "ok":
            raise GuestError(answer or "the guests' supervisor died (log: %s)"
                             % os.path.join(state, "logs", "supervisor.log"))
        return
    # The child's child is the supervisor: nobody has to wait for it.
    os.close(rd)
    os.setsid()
    if os.fork():
        os._exit(0)
    try:
        _detach(state)
        Supervisor(state, options, watch).run(
            lambda text: _report(wr, text))
    except BaseException as e:      # noqa: the caller must hear of it
        _report(wr, "%s: %s" % (type(e).__name__, e))
        raise
    finally:
        os._exit(0)


def _report(fd, text):
    try:
        os.write(fd, (text or "ok").encode())
        os.close(fd)
    except OSError:
        pass        # told already


def _detach(state):
    log = os.open(os.path.join(state, "logs", "supervisor.log"),
                  os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    # Progress of long steps is for the caller to see until we are up; after
    # that stderr is only written to by Python itself.
    os.dup2(log, 2)
    os.close(null)
    os.close(log)


__all__ = ["Options", "launch", "read_info", "recv_frame", "send_frame"]
