# SPDX-License-Identifier: GPL-2.0-or-later
"""qperf, of which two tests fit this HCA."""

import re

from apps import by_rdma, refused, report
from guestlib.programs import wait_listening
from suite import test

# The driver creates no QP without receive entries, which most tests of qperf
# ask for; without RDMA_CM (-cm 1) qperf connects QPs itself.
REFUSED = (
    ("-cm 1", "rc_bw", "failed to create QP: Invalid argument"),
    ("-cm 1", "rc_rdma_write_bw", "failed to create QP: Invalid argument"),
    ("-cm 1", "rc_rdma_read_bw", "failed to create QP: Invalid argument"),
    ("-cm 1", "rc_compare_swap_mr", "failed to create QP: Invalid argument"),
    ("", "ud_lat", "failed to create QP: Operation not supported"),
    ("", "rc_lat", "failed to modify QP to RTS: Invalid argument"),
)


# qperf's server tells its port before it listens there. The client waits when it
# opens RDMA_CM's device to connect, or else it is often refused.
LATER = ("strace -f --seccomp-bpf -o /dev/null -P /dev/infiniband/rdma_cm "
         "-e trace=openat -e inject=openat:delay_exit=300000 ")


def measure(ctx, name, unit):
    for _ in range(5):
        result = ctx[2].run(LATER + "qperf -t 1 -cm 1 %s %s" % (
            ctx[1].ip, name), 60, check=False, merge=True)
        if "Event rejected" not in result.out:
            break
    figure = re.search(r"%s\s+=\s+([\d.]+ \S+)" % unit, result.out)
    ctx.point(result.ok and figure, name, result.out)
    return figure and figure.group(1)


@test("qperf", guests="apps")
def qperf(ctx):
    """Latency, both ways at once, and how the others are refused."""
    server = ctx[1].start("exec qperf", 240, merge=True)
    try:
        wait_listening(ctx[1], "qperf")
        for name, unit in (("rc_lat", "latency"), ("rc_bi_bw", "bw")):
            with by_rdma(ctx, 10, name):
                report("qperf %s: %s" % (name, measure(ctx, name, unit)))
        for options, name, words in REFUSED:
            refused(ctx, ctx[2], "qperf -t 1 %s %s %s" % (
                options, ctx[1].ip, name), words, 1)
        ctx.name += ", afterwards"      # The server is none the worse for it.
        measure(ctx, "rc_lat", "latency")
    finally:
        server.kill()
        server.wait(10)
