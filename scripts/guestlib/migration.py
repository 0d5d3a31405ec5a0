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


def _wait(machine, timeout=TIMEOUT):
    """Wait until the source is done; what it says of it."""
    end = time.monotonic() + timeout
    while True:
        info = machine.qmp.command("query-migrate")
        if info.get("status") == "completed":
            return info
        if info.get("status") in ("failed", "cancelled") or \
                time.monotonic() > end:
            raise machine.fail("migration %s: %s" % (
                info.get("status"), info.get("error-desc", "too slow")))
        time.sleep(0.02)


def _wait_running(machine, timeout=TIMEOUT):
    end = time.monotonic() + timeout
    while machine.qmp.command("query-status")["status"] != "running":
        if time.monotonic() > end or not machine.alive():
            raise machine.fail("the guest does not go on")
        time.sleep(0.01)


def _connect_agent(machine):
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(machine.path("agent"))
    return sock


def _receive(target, uri):
    reply = target.qmp.execute({"execute": "migrate-incoming",
                                "arguments": {"uri": uri}})
    if "error" in reply:
        raise target.fail("migrate-incoming: " + reply["error"]["desc"])


def migrate(guests, i, how="unix"):
    """Move guest `i` and return QEMU's account (query-migrate).

    how: "unix" through a socket, "file" through a file, the source having
    stopped before the target begins to read.
    """
    if how not in ("unix", "file"):
        raise GuestError("migrate: no way '%s' (unix, file)" % how)
    guest = guests[i]
    source = guest.machine
    target = guests.make_target(i)
    links = {queue: dict(link.options)
             for queue, link in guest._netem.items()}
    stream = target.path("stream")
    uri = ("unix:" if how == "unix" else "file:") + stream
    try:
        target.start(incoming="defer")
        target.wait_socket("qmp")
        target.wait_socket("agent")
        target.qmp = QMP(target.path("qmp"))
        # Connected before the guest arrives: it sees no change.
        sock = _connect_agent(target)
        for machine in (source, target):
            machine.qmp.command("migrate-set-parameters",
                                max_bandwidth=1 << 40)
        if how == "unix":
            _receive(target, uri)
        source.qmp.command("migrate", uri=uri)
        info = _wait(source)
        if how == "file":
            _receive(target, uri)
        _wait_running(target)
    except GuestError:
        target.stop()
        raise
    target.agent, source.agent = source.agent, None
    target.agent.move(sock)
    guests.replace(i, target)
    if os.path.exists(stream):
        os.unlink(stream)
    guest._netem = {}
    for queue, options in links.items():
        guest.netem(queue, **options)
    return info
