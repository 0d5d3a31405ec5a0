# SPDX-License-Identifier: GPL-2.0-or-later
"""UCX, which wants what the HCA has not."""

from suite import test


@test("ucx", guests="apps")
def ucx(ctx):
    """UCX wants shared receive queues: it does without the HCA."""
    out = ctx[1].run("ucx_info -d", 60).out
    ctx.point("Transport: tcp" in out and "rc_verbs" not in out and
              "ud_verbs" not in out, "it offers no verbs transport", out)
