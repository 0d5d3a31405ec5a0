# SPDX-License-Identifier: GPL-2.0-or-later
"""Queue pairs that fail, here or at the peer, or fall silent."""

from suite import fault

SILENT = ("its requests are flushed, the peer is told and flushes, too; rping "
          "waits for the disconnection that nobody asks for; killed, it "
          "leaves nothing behind")


@fault("a QP fails at a request", on="wqe", action="qp-fatal", after=2,
       count=1)
def fatal(ctx):
    ctx.hangs()
    return SILENT


@fault("a QP fails at a message", short=False, on="message", action="qp-fatal",
       after=2, count=1)
def message_fatal(ctx):
    ctx.hangs()
    return SILENT


@fault("a QP falls silent", short=False, on="wqe", action="qp-dead", after=1,
       count=1)
def dead(ctx):
    ctx.hangs()
    return "rping waits for ever; killed, it leaves nothing behind"


@fault("the peer's QP falls silent", short=False, on="message",
       action="qp-dead", after=2, count=1)
def peer_dead(ctx):
    line = ctx.refused("cq completion failed status 12", serve=True,
                       timeout=40)
    return "the other end retries, gives up, and its rping: \"%s\"" % line
