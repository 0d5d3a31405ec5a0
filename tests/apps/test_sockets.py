# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that know of TCP only, under librdmacm's preload library."""

import re

from apps import RSOCKET, by_rdma, pair, report
from suite import test

SIZE = 5000001


def sha256(guest, path):
    return guest.run("sha256sum < " + path).out.split()[0]


@test("rsocket-netcat", guests="apps")
def netcat(ctx):
    """A file in each direction."""
    for sender in (1, 2):
        receiver = 3 - sender
        ctx[sender].run("head -c %d /dev/urandom > /tmp/sent" % SIZE)
        # The sender ends after its input, the receiver after the sender.
        ends = {sender: " -q 5 < /tmp/sent",
                receiver: " < /dev/null > /tmp/received"}
        nc = "%snc.traditional -n " % RSOCKET
        with by_rdma(ctx, SIZE, "guest%d's file" % sender):
            pair(ctx, "%s-l -p 7002 -s %s%s" % (nc, ctx[1].ip, ends[1]),
                 "%s%s 7002%s" % (nc, ctx[1].ip, ends[2]))
        ctx.point(sha256(ctx[sender], "/tmp/sent") ==
                  sha256(ctx[receiver], "/tmp/received"),
                  "guest%d's file is what guest%d has" % (sender, receiver))


@test("rsocket-iperf", guests="apps")
def iperf(ctx):
    with by_rdma(ctx, 8 << 20, "iperf's data"):
        out = pair(ctx, "%siperf -s -P 1" % RSOCKET,
                   "%siperf -c %s -n 8M -f M" % (RSOCKET, ctx[1].ip))
    rate = re.search(r"8.00 MBytes\s+(\S+ MBytes/sec)", out)
    ctx.point(rate, "iperf measures", out)
    report("iperf: %s" % (rate and rate.group(1)))


@test("redis", guests="apps")
def redis(ctx):
    """The preload library has no epoll, without which Redis stops at once."""
    result = ctx[1].run(
        RSOCKET + "redis-server --bind %s --protected-mode no --save '' "
        "--crash-memcheck-enabled no" % ctx[1].ip, 60, check=False, merge=True)
    words = "Unrecoverable error creating tcp listener accept handler"
    ctx.point(not result.ok and not result.timed_out and words in result.out
              and "multiplexing_api:epoll" in result.out,
              "under librspreload it ends: " + words,
              "status %d: %s" % (result.status, result.out[-800:]))
