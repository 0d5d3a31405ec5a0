# SPDX-License-Identifier: GPL-2.0-or-later
"""What people reported of other adapters, many times over."""

from guestlib.programs import run_pair
import hotplug
from hotplug import plug_test, traffic


@plug_test("connections", is_short=True)
def connections(ctx):
    """Connect, write, disconnect, again and again: nothing stays."""
    daemon = ctx[1].start("exec verbs-churn server 7010", 0, merge=True)
    ctx[1].wait_until("rdma resource show cm_id | grep -q LISTEN", 20,
                      "the server does not listen")
    result = ctx[2].run("verbs-churn client %s 7010 %d" % (
        ctx[1].ip, hotplug.CYCLES), 60 + hotplug.CYCLES, merge=True)
    print("# " + result.out.splitlines()[-1], flush=True)
    assert daemon.running(), daemon.wait()
    daemon.kill()
    daemon.wait()
    ctx.figures.rounds += hotplug.CYCLES
    traffic(ctx)


@plug_test("many-qps-by-events")
def many_qps_by_events(ctx):
    """16 queue pairs, both directions, completions by events."""
    for _ in range(hotplug.ROUNDS):
        args = "ib_send_bw -R -b -e -q 16 -s 1024 -n %d" % hotplug.CYCLES
        outcome = run_pair(ctx[1], ctx[2], args, "%s %s" % (args, ctx[1].ip),
                           timeout=60 + hotplug.CYCLES)
        assert not outcome.problem, outcome.problem
        ctx.figures.rounds += 1


@plug_test("to-itself")
def to_itself(ctx):
    """Server and client in one guest, over its own address."""
    for _ in range(hotplug.ROUNDS):
        for tool in ("ib_write_bw", "ib_send_bw", "ib_read_bw"):
            args = "%s -R -n 100" % tool
            outcome = run_pair(ctx[1], ctx[1], args,
                               "%s %s" % (args, ctx[1].ip))
            assert not outcome.problem, outcome.problem
        traffic(ctx, server=1, client=1)
        ctx.figures.rounds += 1


@plug_test("two-adapters")
def two_adapters(ctx):
    """Two NICs with an adapter each in one guest, on one network."""
    guest = ctx[1]
    port = guest.machine.base.port
    guest.qmp.command("netdev_add", type="hubport", id="port1", hubid=7)
    guest.qmp.command("netdev_add", type="hubport", id="port2", hubid=7)
    for i in (1, 2):
        guest.qmp.device_add("virtio-net-pci", id="nic%d" % i, romfile="",
                             netdev="port%d" % i, bus=port(2 * i),
                             mac="52:54:00:09:07:%02x" % i)
        guest.wait_until("[ -e /sys/class/net/eth%d ]" % i, 20,
                         "the NIC did not appear")
        guest.run("ip link set eth%d up && ip addr add 10.7.%d.1/24 "
                  "dev eth%d" % (i, i, i))
        guest.add_hca("hca%d" % i, port(2 * i + 1), "nic%d" % i)
    for device, ip in (("erdma_1", "10.7.1.1"), ("erdma_2", "10.7.2.1")):
        for tool in ("ib_write_bw", "ib_send_bw"):
            args = "%s -R -d %s -n 100" % (tool, device)
            outcome = run_pair(guest, guest, args, "%s %s" % (args, ip))
            assert not outcome.problem, outcome.problem
    traffic(ctx)
    for i in (1, 2):
        hotplug.unplug(ctx, guest, "hca%d" % i)
        hotplug.unplug(ctx, guest, "nic%d" % i)
        guest.qmp.command("netdev_del", id="port%d" % i)
