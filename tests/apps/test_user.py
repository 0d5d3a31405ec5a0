# SPDX-License-Identifier: GPL-2.0-or-later
"""Users other than root, and what they may lock."""

from apps import refused
from guestlib.programs import wait_listening
from suite import test


def as_user(locked, command):
    """The command with a user's rights and `locked` KiB of locked memory"""
    return "exec su user -c 'ulimit -l %d; exec %s'" % (locked, command)


def pair(ctx, locked, server, client):
    daemon = ctx[1].start(as_user(locked, server), 60, merge=True)
    wait_listening(ctx[1], server)
    out = ctx[2].run(as_user(locked, client), 60, merge=True).out
    result = daemon.wait(20)
    assert result.ok, "status %d: %s" % (result.status, result.out[-800:])
    return out


def add_user(ctx):
    for guest in ctx.guests:
        guest.run("grep -q ^user: /etc/passwd || "
                  "echo 'user:x:1000:1000::/tmp:/bin/sh' >> /etc/passwd")
        assert "uid=1000" in guest.run("su user -c id").out


@test("user", guests="apps")
def user(ctx):
    """What fits into the locked memory works, the rest fails in words."""
    add_user(ctx)
    out = pair(ctx, 64, "rping -s -C 5 -a " + ctx[1].ip,
               "rping -c -C 5 -V -v -a " + ctx[1].ip)
    ctx.point("ping data: rdma-ping-4" in out, "rping with 64 KiB", out)
    out = pair(ctx, 8192, "ib_send_lat -R -n 20",
               "ib_send_lat -R -n 20 " + ctx[1].ip)
    # perftest asks the device, not a list of devices that it knows.
    ctx.point("Max inline data : 96[B]" in out, "ib_send_lat's inline data",
              out)
    server = ctx[1].start("exec ib_send_bw -R -n 20 -s 1048576", 60,
                          merge=True)
    try:
        wait_listening(ctx[1], "ib_send_bw")
        refused(ctx, ctx[2], as_user(
            64, "ib_send_bw -R -n 20 -s 1048576 " + ctx[1].ip),
            "allocate MR")
    finally:
        server.kill()
        server.wait(10)


@test("user-without-doorbells", guests="no-ext-db")
def without_doorbells(ctx):
    """Without doorbell pages of his own, only root may use the HCA."""
    add_user(ctx)
    out = ctx[1].run("ibv_devinfo", 60).out
    ctx.point("PORT_ACTIVE" in out, "root may", out)
    refused(ctx, ctx[1], as_user(64, "ibv_devinfo"), "Failed to open device")
