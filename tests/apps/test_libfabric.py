# SPDX-License-Identifier: GPL-2.0-or-later
"""libfabric's own ping-pong, which compares what it gets (-c)."""

from apps import by_rdma, pair, refused, report
from suite import test

SIZES = 64 + 256 + 1024 + 4096 + 65536 + 1048576
ROUNDS = 5


def ping_pong(ctx, provider, kind):
    command = "fi_pingpong -c -I %d -p '%s' -e %s" % (ROUNDS, provider, kind)
    # Each side sends all of them.
    with by_rdma(ctx, 2 * ROUNDS * SIZES, provider):
        out = pair(ctx, command, "%s %s" % (command, ctx[1].ip))
    rows = [line.split() for line in out.splitlines() if "=%d" % ROUNDS in line]
    ctx.point(len(rows) == 6, "%s: all sizes" % provider, out)
    report("%s: size, MB/s, us:\n" % provider +
           "\n".join(" ".join((r[0], r[5], r[6])) for r in rows))


@test("libfabric", guests="apps")
def libfabric(ctx):
    """Messages of the verbs provider and datagrams that the layer above it
    makes of them; datagrams of verbs itself would be UD."""
    ping_pong(ctx, "verbs", "msg")
    ping_pong(ctx, "verbs;ofi_rxm", "rdm")
    refused(ctx, ctx[2], "fi_info -p verbs -t FI_EP_DGRAM",
            "No data available")
