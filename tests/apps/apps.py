# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of applications share."""

import contextlib

from guestlib.guests import Options
from guestlib.programs import run_pair
import suite

suite.SETS["apps"] = Options(n=2, restrict=True, addons=["apps"])
suite.SETS["apps-4"] = Options(n=4, restrict=True, addons=["apps"])
suite.SETS["no-ext-db"] = Options(n=1, restrict=True, device="ext-db=off")

# Sockets of a program that knows of none but TCP's become RDMA's.
RSOCKET = ("export LD_PRELOAD=/usr/lib/x86_64-linux-gnu/rsocket/"
           "librspreload.so && exec ")


def report(text):
    """What was measured, as a comment in the log."""
    for line in text.strip().splitlines():
        print("# " + line, flush=True)


def no_time_wait(ctx):
    """An RDMA connection takes a TCP port, which RDMA_CM chooses without
    asking TCP: with those that wait for their end, some are in use."""
    for guest in ctx.guests:
        guest.run("echo 0 > /proc/sys/net/ipv4/tcp_max_tw_buckets")


@contextlib.contextmanager
def by_rdma(ctx, least, what="it"):
    """What is done here moves at least so many bytes through the HCAs; 0:
    none at all."""
    no_time_wait(ctx)

    def moved():
        return sum(g.hca_stats()["tx-payload-bytes"] for g in ctx.guests)
    before = moved()
    yield
    n = moved() - before
    if least:
        ctx.point(n >= least, what + " went through the HCA",
                  "%d bytes of %d" % (n, least))
    else:
        ctx.point(n == 0, what + " went past the HCA", "%d bytes" % n)


def pair(ctx, server, client, timeout=120):
    """What the client printed; the server must end well, too."""
    outcome = run_pair(ctx[1], ctx[2], server, client, timeout)
    assert not outcome.problem, outcome.problem
    return outcome.client.out


def refused(ctx, guest, command, words, status=None):
    """The command ends by itself with an error and says why."""
    result = guest.run(command, 60, check=False, merge=True)
    ctx.point(not result.ok and not result.timed_out and words in result.out
              and status in (None, result.status),
              "`%s` is refused: %s" % (command, words),
              "status %d: %s" % (result.status, result.out[-800:]))
