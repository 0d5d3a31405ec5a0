# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of applications share."""

import contextlib

from guestlib.guests import Options
import suite

suite.SETS["apps"] = Options(n=2, restrict=True, addons=["apps"])


def report(text):
    """What was measured, as a comment in the log."""
    for line in text.strip().splitlines():
        print("# " + line, flush=True)


@contextlib.contextmanager
def by_rdma(ctx, least):
    """What is done here moves at least so many bytes through the HCAs."""
    def moved():
        return sum(g.hca_stats()["tx-payload-bytes"] for g in ctx.guests)
    before = moved()
    yield
    n = moved() - before
    ctx.point(n >= least, "it went through the HCA",
              "%d bytes of %d" % (n, least))
