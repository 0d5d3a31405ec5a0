# SPDX-License-Identifier: GPL-2.0-or-later
"""What people reported of other adapters, many times over."""

from guestlib.programs import run_pair
from hotplug import plug_test, traffic, unplug


@plug_test("connections", is_short=True, rounds=(50, 10000))
def connections(ctx):
    """Connect, write, disconnect, again and again: nothing stays."""
    daemon = ctx[1].start("exec verbs-churn server 7010", 0, merge=True)
    ctx[1].wait_until("rdma resource show cm_id | grep -q LISTEN", 20,
                      "the server does not listen")
    result = ctx[2].run("verbs-churn client %s 7010 %d" % (
        ctx[1].ip, ctx.rounds), 60 + ctx.rounds, merge=True)
    print("# " + result.out.splitlines()[-1], flush=True)
    assert daemon.running(), daemon.wait()
    daemon.kill()
    daemon.wait()
    ctx.figures.rounds += ctx.rounds
    traffic(ctx)


def pair_of(ctx, args, server, client, target):
    outcome = run_pair(ctx[server], ctx[client], args,
                       "%s %s" % (args, target), timeout=300)
    assert not outcome.problem, "%s: %s" % (args, outcome.problem)


@plug_test("many-qps-by-events", rounds=50)
def many_qps_by_events(ctx):
    """16 queue pairs, both directions, completions by events; and with events
    that are late.  The receive queues have room for everything: perftest
    waits for ever when it runs out of credits with -e."""
    for i in range(ctx.rounds):
        args = "ib_send_bw -R -b -e -q 16 -s 1024 -n 500 -r 512"
        pair_of(ctx, args, 1, 2, ctx[1].ip)
        ctx.figures.rounds += 1
    with ctx[1].fault(on="ceqe", action="delay", vector=1, delay_us=5000), \
            ctx[2].fault(on="ceqe", action="delay", vector=1, delay_us=5000):
        pair_of(ctx, args, 1, 2, ctx[1].ip)


@plug_test("to-itself", rounds=30)
def to_itself(ctx):
    """Server and client in one guest, over its own address."""
    for i in range(ctx.rounds):
        tool = ("ib_write_bw", "ib_send_bw", "ib_read_bw")[i % 3]
        pair_of(ctx, tool + " -R -n 100", 1, 1, ctx[1].ip)
        ctx.figures.rounds += 1
    traffic(ctx, server=1, client=1)


@plug_test("two-adapters", rounds=2)
def two_adapters(ctx):
    """Two NICs with an adapter each in one guest, on one network."""
    guest = ctx[1]
    port = guest.machine.base.port
    for i in (1, 2):
        guest.qmp.command("netdev_add", type="hubport", id="port%d" % i,
                          hubid=7)
        guest.qmp.device_add("virtio-net-pci", id="nic%d" % i, romfile="",
                             netdev="port%d" % i, bus=port(2 * i),
                             mac="52:54:00:09:07:%02x" % i)
        guest.wait_until("[ -e /sys/class/net/eth%d ]" % i, 20,
                         "the NIC did not appear")
        guest.run("ip link set eth%d up && ip addr add 10.7.%d.1/24 dev eth%d"
                  % (i, i, i))
        guest.add_hca("hca%d" % i, port(2 * i + 1), "nic%d" % i)
    for _ in range(ctx.rounds):
        for i in (1, 2):
            for tool in ("ib_write_bw", "ib_send_bw"):
                pair_of(ctx, "%s -R -d erdma_%d -n 100" % (tool, i), 1, 1,
                        "10.7.%d.1" % i)
        ctx.figures.rounds += 1
    traffic(ctx)
    for i in (1, 2):
        unplug(ctx, guest, "hca%d" % i)
        unplug(ctx, guest, "nic%d" % i)
        guest.qmp.command("netdev_del", id="port%d" % i)
