# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands that fail, take their time, or are never answered."""

from suite import fault

REFUSED = "Input/output error|failed|ADDR_ERROR"


def making_fails(opcode, what):
    @fault("%s fails" % opcode, on="command", opcode=opcode, action="fail",
           status="limit", count=1, short=opcode in ("reg-mr", "create-qp"))
    def refused(ctx):
        line = ctx.refused(REFUSED)
        return "%s: rping says \"%s\"; nothing is left over" % (what, line)


making_fails("alloc-db", "the process gets no context")
making_fails("reg-mr", "no region")
making_fails("create-cq", "no CQ")
making_fails("create-qp", "no QP")


@fault("modify-qp fails", short=False, on="command", opcode="modify-qp",
       action="fail", status="busy", count=1)
def modify_qp(ctx):
    line = ctx.refused("CONNECT_ERROR", timeout=15)
    return "the connection is not made: rping says \"%s\"" % line


@fault("get-stats fails", short=False, on="command", opcode="get-stats",
       action="fail", status="dma")
def get_stats(ctx):
    result = ctx.a.run("cat /sys/class/infiniband/erdma_0/ports/1/"
                       "hw_counters/rx_packets_cnt", check=False, merge=True)
    assert not result.ok and "Input/output error" in result.out, str(result)
    return "reading hw_counters fails with EIO"


@fault("conf-mtu fails", short=False, on="command", opcode="conf-mtu",
       action="fail", status="size", count=1)
def conf_mtu(ctx):
    ctx.a.run("ip link set eth0 mtu 1400 && ip link set eth0 mtu 1500")
    return "the driver does not look at the answer"


def unmaking_fails(opcode, word, executed):
    name = "%s %s" % (opcode, "succeeds, says no" if executed else "fails")

    @fault(name, short=opcode != "dereg-mr" and not executed, reload=True,
           on="command", opcode=opcode, action="fail", status="busy",
           executed=executed, count=1)
    def left(ctx):
        before = ctx.objects()
        ctx.works(count=1)
        kind = {"destroy-qp": "qps", "destroy-cq": "cqs",
                "dereg-mr": "mrs"}[opcode]
        want = before[kind] + (0 if executed else 1)
        ctx.expect_objects(**{kind: want})
        left_over = ctx.a.run("rdma resource show %s" % word).out
        assert "pid" not in left_over, left_over
        return "the guest's %s is gone all the same%s; rmmod works" % (
            word.upper(), "" if executed else ", the HCA's is left")


for _opcode, _word in (("destroy-qp", "qp"), ("destroy-cq", "cq"),
                       ("dereg-mr", "mr")):
    unmaking_fails(_opcode, _word, False)
unmaking_fails("destroy-qp", "qp", True)


@fault("destroy-eq fails", short=False, on="command", opcode="destroy-eq",
       action="fail", status="busy", count=1, known=("dma_pool_destroy",))
def destroy_eq(ctx):
    ctx.unbind()
    ctx.bind_ok()
    return "unbind works; the driver leaks the queue's memory"


@fault("every command takes 20 ms", short=False, on="command", opcode="any",
       action="delay", delay_us=20000)
def all_slow(ctx):
    outcome = ctx.works(count=1)
    return "rping works, and takes %.1f s" % outcome.seconds


@fault("create-qp takes 0.5 s", on="command", opcode="create-qp",
       action="delay", delay_us=500000, count=1)
def create_qp_slow(ctx):
    outcome = ctx.works(count=1)
    assert outcome.seconds > 0.5, "%.1f s" % outcome.seconds
    return "rping waits and works"


@fault("create-qp takes 16 s", short=False, reload=True, on="command",
       opcode="create-qp", action="delay", delay_us=16000000, count=1)
def create_qp_too_slow(ctx):
    line = ctx.refused(REFUSED, timeout=60)
    again = ctx.refused(REFUSED)
    return ("after 15 s: rping says \"%s\"; the driver sends no more "
            "commands (\"%s\") until it is loaded again" % (line, again))


def never_answered(opcode, executed=False):
    name = "%s is never answered" % opcode
    name += ", but done" if executed else ""

    @fault(name, short=False, reload=True, on="command", opcode=opcode,
           action="drop", executed=executed, count=1,
           known=("dma_pool_destroy",))
    def lost(ctx):
        outcome = ctx.rping(count=1, timeout=90, server_ends=False)
        text = outcome.client.out.strip().splitlines()[-1] \
            if outcome.problem else "works"
        again = ctx.refused(REFUSED, timeout=30)
        return ("rping: \"%s\", after %.0f s; then the driver sends no more "
                "commands (\"%s\") until it is loaded again"
                % (text, outcome.seconds, again))


for _opcode in ("create-cq", "create-qp", "destroy-qp", "dereg-mr"):
    never_answered(_opcode)
never_answered("destroy-qp", executed=True)


@fault("a command is answered twice", short=False, on="command",
       opcode="reg-mr", action="duplicate")
def twice(ctx):
    outcome = ctx.rping(count=2, timeout=60, server_ends=False)
    return "works" if not outcome.problem else \
        "rping: " + outcome.problem[:100]
