# SPDX-License-Identifier: GPL-2.0-or-later
"""Events late, lost, repeated and made up; interrupts."""

import time

import held
from suite import fault


@fault("events are 20 ms late", short=False, on="ceqe", action="delay",
       vector=1, delay_us=20000)
def late(ctx):
    outcome = ctx.works(count=3)
    return "rping works, and takes %.1f s" % outcome.seconds


@fault("events are late, their CQ is gone", on="ceqe", action="delay",
       vector=1, delay_us=1500000)
def late_gone(ctx):
    for _ in range(2):
        ctx.hangs(seconds=1)        # killed before its first event
    time.sleep(1.5)
    return "the driver drops an event of a CQ that it does not know"


@fault("an event is lost", short=False, on="ceqe", action="drop", vector=1,
       count=1)
def lost(ctx):
    ctx.hangs()
    return "rping waits for ever; killed, it leaves nothing behind"


@fault("the command queue's event is lost", short=False, reload=True,
       on="ceqe", action="drop", vector=0, count=1,
       known=("dma_pool_destroy",))
def lost_command(ctx):
    line = ctx.refused("failed|error", timeout=60)
    return ("the driver does not see the answer: rping says \"%s\" after "
            "15 s" % line)


@fault("events come twice", short=False, on="ceqe", action="duplicate")
def twice(ctx):
    ctx.works(count=5)
    return "works"


@fault("interrupts are 5 ms late", on="interrupt", action="delay",
       delay_us=5000)
def interrupt_late(ctx):
    outcome = ctx.works(count=2)
    return "rping works, and takes %.1f s" % outcome.seconds


@fault("a completion vector is masked", reload=True, on="interrupt",
       action="drop", vector=1, count=1)
def masked(ctx):
    ctx.hangs()
    return ("nobody looks at the queue again: all of its CQs are without "
            "events until the driver is loaded again")


@fault("the command vector is masked", short=False, reload=True,
       on="interrupt", action="drop", vector=0, known=("dma_pool_destroy",))
def masked_commands(ctx):
    line = ctx.refused("failed|error", timeout=60)
    return ("the driver does not see the answer: rping says \"%s\" after "
            "15 s, and no more commands until it is loaded again" % line)


@fault("interrupts without a reason", short=False, on="timer",
       action="interrupt", period_us=2000)
def storm(ctx):
    ctx.works(count=3)
    ctx.reload_driver()
    ctx.works(count=1)
    return "works, and so do rmmod and modprobe meanwhile"


@fault("events without a reason", short=False, on="timer", action="ceqe",
       period_us=2000)
def event_storm(ctx):
    # rping's thread for events is not ready for one as it ends.
    outcome = ctx.rping(count=3, server_ends=False)
    assert outcome.client.status in (0, 139), outcome.problem
    return ("the driver passes them on; rping works, and sometimes dies of "
            "one (SIGSEGV) as it ends")


@fault("an AEQE for a QP that is being destroyed", on="command",
       opcode="destroy-qp", action="aeqe")
def aeqe_destroy(ctx):
    for _ in range(3):
        ctx.works(count=1)
    return "works"


@fault("AEQEs for objects that do not exist", short=False, on="timer",
       action="aeqe", qpn=100000, period_us=5000)
def aeqe_nobody(ctx):
    ctx.works(count=3)
    return "the driver drops them"


TRACING = "/sys/kernel/tracing"
HANDLERS = ("ib_uverbs_qp_event_handler", "ib_uverbs_cq_event_handler")


def trace_handlers(ctx):
    """From now on the kernel notes who is told of asynchronous events."""
    ctx.a.run("mount -t tracefs none %s 2>/dev/null; cd %s && "
              "echo %s > set_ftrace_filter && echo function > current_tracer "
              "&& echo > trace" % (TRACING, TRACING, " ".join(HANDLERS)))


def traced(ctx):
    """How often each of HANDLERS was called"""
    text = ctx.a.run("cat %s/trace" % TRACING).out
    return [text.count(name + " <-") for name in HANDLERS]


def event(name, is_cq=False, short=False):
    """A program holds a QP and two CQs; the driver must tell it."""
    @fault("AEQE %s" % name, short=short)
    def heard(ctx):
        with held.Held(ctx.guests, 2, 1, "held/write/8") as program:
            trace_handlers(ctx)
            try:
                with ctx.a.fault(on="timer", action="aeqe",
                                 event=name) as rule:
                    end = time.monotonic() + 10
                    while not traced(ctx)[is_cq]:
                        assert time.monotonic() < end, "nobody is told"
                    assert rule.fired() == 1
                qps, cqs = traced(ctx)
            finally:
                ctx.a.run("echo nop > %s/current_tracer" % TRACING)
            assert (qps, cqs > 0) == (0 if is_cq else 1, is_cq), (qps, cqs)
            # It was a rumour: the connection is as good as ever.
            program.go()
            program.wait("done")
            program.finish()
        return "`on=timer,action=aeqe,event=%s`: the program gets %s" % (
            name, "IBV_EVENT_CQ_ERR for each of its CQs" if is_cq
            else "IBV_EVENT_QP_FATAL")


for _name in ("qp-fatal", "erq-err", "acc-err", "other"):
    event(_name)
event("cq-err", is_cq=True, short=True)
