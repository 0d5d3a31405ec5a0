# SPDX-License-Identifier: GPL-2.0-or-later
"""Completions that lie, come twice or not at all; overrun."""

from suite import fault

# rping's client posts sends, its server reads and writes.
STATUS = {"retry-exc-err": 12, "general-err": 21,
          "recv-stag-invalid-err": 10, "send-wqe-format-err": 2,
          "send-addr-violation-err": 8}


def says(status, number):
    @fault("a send completes with %s" % status, on="cqe", action="status",
           status=status, queue="sq", opcode="send", count=1,
           short=status == "retry-exc-err")
    def with_status(ctx):
        line = ctx.refused("cq completion failed status %d$" % number)
        return "rping: \"%s\"" % line


for _status, _number in STATUS.items():
    says(_status, _number)


@fault("a send's completion comes twice", on="cqe", action="duplicate",
       queue="sq", opcode="send", every=2)
def duplicate(ctx):
    ctx.works(count=10)
    return "rdma-core's provider drops the second: rping works"


@fault("every receive's completion comes twice", short=False, on="cqe",
       action="duplicate", queue="rq")
def duplicate_rq(ctx):
    outcome = ctx.rping(count=10, timeout=4, server_ends=False)
    return ("the provider cannot tell and reports both: rping %s" %
            ("works" if not outcome.problem else
             "hangs" if outcome.client and outcome.client.timed_out else
             "fails"))


# rping's server waits for the completion of what it reads.

@fault("a read's completion has a wrong index", short=False, on="cqe",
       action="index", offset=5000, queue="sq", opcode="read", count=1)
def wrong_index(ctx):
    ctx.hangs(serve=True)
    return ("the provider drops it as out of range: whoever waits for it "
            "waits for ever; killed, it leaves nothing behind")


@fault("a receive's completion has a wrong index", short=False, on="cqe",
       action="index", offset=1, queue="rq", count=1)
def wrong_index_rq(ctx):
    outcome = ctx.rping(count=5, timeout=4, server_ends=False)
    return ("the wr_id is that of another receive: rping %s" %
            ("works, it has only one" if not outcome.problem else "fails"))


@fault("a completion is lost", on="cqe", action="drop", queue="sq",
       opcode="read", count=1)
def lost(ctx):
    ctx.hangs(serve=True)
    return "rping waits for ever; killed, it leaves nothing behind"


@fault("a CQ overruns", short=False, on="cqe", action="overrun", queue="sq",
       opcode="read", count=1)
def overrun(ctx):
    ctx.hangs(serve=True)
    return ("an asynchronous event for the CQ; nothing more is in it, rping "
            "waits for ever; killed, it leaves nothing behind")


@fault("a payload cannot be read", on="dma", action="fail",
       direction="read", min_size=900, count=1)
def dma_read(ctx):
    line = ctx.refused("wait for", size=60000)
    return "the peer's read fails, both ends are told: rping: \"%s\"" % line


@fault("a payload cannot be written", short=False, on="dma", action="fail",
       direction="write", min_size=900, count=1)
def dma_write(ctx):
    line = ctx.refused("wait for", size=60000)
    return "the peer's write fails, both ends are told: rping: \"%s\"" % line


@fault("a request fails", short=False, on="wqe", action="fail",
       status="send-right-violation-err", opcode="send", after=1, count=1)
def request_fails(ctx):
    line = ctx.refused("cq completion failed status")
    return "rping: \"%s\"" % line
