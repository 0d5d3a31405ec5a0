# SPDX-License-Identifier: GPL-2.0-or-later
"""Live migration: a guest goes on in another QEMU process of this host.

The guests must have been started as movable: each then has two places at the
hub, and the new process takes the one that is free.  Commands that run in the
guest go on; the caller's Guest object is the same.
"""

import os
import socket
import time

from .errors import GuestError
from .qmp import QMP

TIMEOUT = 120
# QEMU stops the guest when it expects to send the rest within so long, and
# its monitor does not answer until that is done.  QEMU's own is 300.
DOWNTIME_MS = 30


def _connect_agent(machine):
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(machine.path("agent"))
    return sock


class Move:
    """One migration, step by step: Move(), begin(), then finish() or abandon().

    how: "unix" through a socket, "incoming" the same with -incoming SOCKET on
    the target's command line, "file" through a file, the source having stopped
    before the target begins to read.  `device` are properties that the
    target's HCAs get in addition.
    """

    HOWS = ("unix", "incoming", "file")

    def __init__(self, guests, i, how="unix", device=""):
        if how not in self.HOWS:
            raise GuestError("migrate: no way '%s' (%s)"
                             % (how, ", ".join(self.HOWS)))
        self.guests, self.guest, self.how = guests, guests[i], how
        self.source = self.guest.machine
        self.target = guests.make_target(i, device)
        self.stream = self.target.path("stream")
        self.uri = ("file:" if how == "file" else "unix:") + self.stream
        try:
            self.target.start(incoming=self.uri if how == "incoming"
                              else "defer")
            self.target.wait_socket("qmp")
            self.target.wait_socket("agent")
            self.target.qmp = QMP(self.target.path("qmp"))
            # Connected before the guest arrives: it sees no change.
            self.agent_socket = _connect_agent(self.target)
            if how == "unix":
                self._receive()
        except GuestError:
            self.target.stop()
            raise

    def _receive(self):
        self.target.qmp.command("migrate-incoming", uri=self.uri)

    def begin(self, bandwidth=1 << 40, return_path=False,
              downtime_ms=DOWNTIME_MS):
        """The source starts to send, at so many bytes per second.  With
        return_path it waits for the target to have loaded all."""
        self.source.qmp.command("migrate-set-capabilities", capabilities=[
            {"capability": "return-path", "state": return_path}])
        for machine in (self.source, self.target):
            machine.qmp.command("migrate-set-parameters",
                                max_bandwidth=bandwidth,
                                downtime_limit=downtime_ms)
        self.source.qmp.command("migrate", uri=self.uri)

    def status(self):
        """QEMU's account of the source's migration (query-migrate)"""
        return self.source.qmp.command("query-migrate")

    def wait(self, *wanted, timeout=TIMEOUT):
        """Wait for one of these states of the source's migration."""
        end = time.monotonic() + timeout
        while True:
            info = self.status()
            state = info.get("status")
            if state in wanted:
                return info
            if state in ("completed", "failed", "cancelled") or \
                    time.monotonic() > end:
                raise self.source.fail("migration %s: %s" % (
                    state, info.get("error-desc", "too slow")))
            time.sleep(0.02)

    def _wait_running(self):
        end = time.monotonic() + TIMEOUT
        while self.target.qmp.command("query-status")["status"] != "running":
            if time.monotonic() > end or not self.target.alive():
                raise self.target.fail("the guest does not go on")
            time.sleep(0.01)

    def finish(self):
        """Wait until the guest runs there; QEMU's account of it."""
        try:
            info = self.wait("completed")
            if self.how == "file":
                self._receive()
            self._wait_running()
        except GuestError:
            self.abandon()
            raise
        self._hand_over()
        return info

    def _hand_over(self):
        guest, target = self.guest, self.target
        links = {queue: dict(link.options)
                 for queue, link in guest._netem.items()}
        target.agent, self.source.agent = self.source.agent, None
        target.agent.move(self.agent_socket)
        self.guests.replace(guest.index, target)
        self._clean()
        guest._netem = {}
        for queue, options in links.items():
            guest.netem(queue, **options)

    def cancel(self):
        """The source goes on, the target ends."""
        self.source.qmp.command("migrate_cancel")
        self.wait("cancelled")
        self.abandon()

    def abandon(self):
        """The target ends, whatever it is doing."""
        self.target.stop()
        self.agent_socket.close()
        self._clean()

    def _clean(self):
        if os.path.exists(self.stream):
            os.unlink(self.stream)


def migrate(guests, i, how="unix", device=""):
    """Move guest `i` and return QEMU's account (query-migrate)."""
    move = Move(guests, i, how, device)
    try:
        move.begin()
    except GuestError:
        move.abandon()
        raise
    return move.finish()
