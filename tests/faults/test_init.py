# SPDX-License-Identifier: GPL-2.0-or-later
"""Initialisation: slow, failing, no function at all, too few vectors."""

from suite import fault


def comes_back(ctx):
    """A second bind works."""
    ctx.bind_ok()
    ctx.works(count=1)


@fault("init fails", short=False, on="init", action="fail", count=1)
def init_fails(ctx):
    seconds, why = ctx.rebind()
    assert why == "Connection timed out", "bind: %s" % why
    assert any("wait init done failed" in x for x in ctx.messages())
    comes_back(ctx)
    return ("probe gives up after %.0f s with ETIMEDOUT; the next one works"
            % seconds)


@fault("init takes 5 s", short=False, on="init", action="delay",
       delay_us=5000000)
def init_slow(ctx):
    ctx.unbind()
    seconds = ctx.bind_ok()
    assert seconds >= 4.9, "%.1f s" % seconds
    return "probe waits and works"


@fault("init takes 0.3 s", on="init", action="delay", delay_us=300000)
def init_slower(ctx):
    ctx.unbind()
    seconds = ctx.bind_ok()
    assert seconds >= 0.3, "%.1f s" % seconds
    return "probe waits and works"


@fault("init takes 30 s", short=False, on="init", action="delay",
       delay_us=30000000, count=1)
def init_too_slow(ctx):
    seconds, why = ctx.rebind()
    assert why == "Connection timed out", "bind: %s" % why
    comes_back(ctx)
    return ("longer than the driver's patience of %.0f s: ETIMEDOUT; the "
            "next probe works" % seconds)


@fault("version 0", on="version", action="absent", count=1)
def version(ctx):
    _, why = ctx.rebind()
    assert why == "No such device", "bind: %s" % why
    comes_back(ctx)
    return "probe ends with ENODEV, without a word; the next one works"


def replug(ctx, properties):
    """Another HCA in the same place"""
    ctx.a.qmp.command("device_del", id="hca0")
    ctx.a.qmp.wait_event("DEVICE_DELETED", 20,
                         lambda d: d.get("device") == "hca0")
    ctx.a.wait_until("[ ! -e /sys/class/infiniband/erdma_0 ]", 10,
                     "the RDMA device did not go")
    ctx.a.add_hca(more=properties)


@fault("one MSI-X vector", short=False)
def one_vector(ctx):
    replug(ctx, "vectors=1")
    try:
        text = ctx.a.run("ibv_devinfo -v").out
        assert "num_comp_vectors:\t\t0" in text, "ibv_devinfo: " + text
        line = ctx.refused("ibv_create_cq failed|setup_qp failed")
    finally:
        replug(ctx, "")
    return ("`-device erdma,vectors=1`: probe works, num_comp_vectors is 0 "
            "and no CQ can be made (rping: %s)" % line)


def probe_fails(opcode, count=1):
    @fault("%s fails in probe" % opcode, on="command", opcode=opcode,
           action="fail", status="limit", count=count,
           short=opcode == "query-device")
    def command_fails(ctx):
        _, why = ctx.rebind()
        assert why == "Input/output error", "bind: %s" % why
        comes_back(ctx)
        return "probe ends with EIO; the next one works"


for _opcode in ("create-eq", "query-device", "query-fw-info", "conf-device"):
    probe_fails(_opcode)


@fault("query-device is never answered", short=False, on="command",
       opcode="query-device", action="drop", count=1)
def query_device_lost(ctx):
    seconds, why = ctx.rebind()
    assert why == "Timer expired", "bind: %s" % why
    comes_back(ctx)
    return ("probe gives up after %.0f s with ETIME; the next one works"
            % seconds)
