# SPDX-License-Identifier: GPL-2.0-or-later
"""Link, MTU and addresses change while connections are in use."""

import re
import time

from guestlib.guests import address, mac
from guestlib.programs import run_pair
import hotplug
from hotplug import AsyncWatch, Load, plug_test, traffic

STATE = "/sys/class/infiniband/erdma_0/ports/1/state"


def port_is(guest, state):
    guest.wait_until("grep -q %s %s" % (state, STATE), 20,
                     "the port is not " + state)


def set_link(guest, is_up):
    reply = guest.qmp.execute({"execute": "set_link", "arguments": {
        "name": "nic0", "up": is_up}})
    assert "error" not in reply, reply


@plug_test("link-of-nic", is_short=True)
def link_of_nic(ctx):
    """set_link: nothing passes, and then goes on where it was."""
    guest = ctx[2]
    with Load(ctx, ("rping", "send")) as load:
        for _ in range(hotplug.ROUNDS):
            before = guest.hca_stats()
            set_link(guest, False)
            port_is(guest, "DOWN")
            time.sleep(0.5)
            quiet = guest.hca_stats()
            assert quiet["tx-no-wire"] > before["tx-no-wire"]
            set_link(guest, True)
            port_is(guest, "ACTIVE")
            load.flows()
            load.check()
            ctx.figures.rounds += 1
    traffic(ctx)


@plug_test("link-stays-down")
def link_stays_down(ctx):
    """A link that does not come back: the retry error, in bounded time; and
    a new connection when it is there again."""
    guest = ctx[2]
    with Load(ctx, ("write", "send")) as load:
        began = time.monotonic()
        set_link(guest, False)
        results = load.ended(guest)
        took = time.monotonic() - began
        set_link(guest, True)
        for name, result in results.items():
            assert re.search(r"retry|status 12", result.out, re.I), result
        print("# the retry error came after %.1f s" % took, flush=True)
    port_is(guest, "ACTIVE")
    traffic(ctx)


@plug_test("interface-down", is_short=True)
def interface_down(ctx):
    """ip link down and up: one event each; connections live on."""
    guest = ctx[2]
    with Load(ctx, ("rping",)) as load, AsyncWatch(guest) as watch:
        for _ in range(hotplug.ROUNDS):
            guest.run("ip link set eth0 down")
            port_is(guest, "DOWN")
            load.flows()
            guest.run("ip link set eth0 up")
            port_is(guest, "ACTIVE")
            load.flows()
            ctx.figures.rounds += 1
        load.check()
        events = watch.wait(*["PORT_ERR", "PORT_ACTIVE"] * hotplug.ROUNDS)
        ctx.point(len(events) == 2 * hotplug.ROUNDS,
                  "one event for each change", repr(events))
    traffic(ctx)


@plug_test("mtu-in-use", is_short=True)
def mtu_in_use(ctx):
    """The MTU changes under traffic, at one end and then at both."""
    with Load(ctx, ("rping", "write")) as load:
        for _ in range(hotplug.ROUNDS):
            for value in (1400, 4000, 1500):
                for guest in (ctx[1], ctx[2]):
                    guest.run("ip link set eth0 mtu %d" % value)
                    load.flows()
            ctx.figures.rounds += 1
        load.check()
    traffic(ctx)


@plug_test("ip-address")
def ip_address(ctx):
    """Another address for new connections; old ones go on."""
    guest = ctx[1]
    with Load(ctx, ("rping", "send")) as load:
        for _ in range(hotplug.ROUNDS):
            guest.run("ip addr add 10.9.0.77/24 dev eth0 && "
                      "ip addr del %s/24 dev eth0 && "
                      "ip addr add 10.9.0.77/24 dev eth0 2>/dev/null || :"
                      % address(1))
            load.flows()
            outcome = run_pair(ctx[1], ctx[2], "rping -s -C 5",
                               "rping -c -a 10.9.0.77 -C 5 -V")
            assert not outcome.problem, outcome.problem
            guest.run("ip addr add %s/24 dev eth0; "
                      "ip addr del 10.9.0.77/24 dev eth0" % address(1))
            load.flows()
            ctx.figures.rounds += 1
        load.check()
    traffic(ctx)


@plug_test("mac-address")
def mac_address(ctx):
    """The guest gives its NIC another MAC address, and takes it back."""
    guest = ctx[2]
    with Load(ctx, ("rping",)) as load:
        for new in ("52:54:00:09:0f:0f", mac(2)):
            guest.run("ip link set eth0 address " + new)
            guest.run("ping -c 1 -W 5 %s" % ctx[1].ip, 20)
            traffic(ctx)
            traffic(ctx, server=2, client=1)
        load.check()
    traffic(ctx)


@plug_test("vlan")
def vlan(ctx):
    """VLANs are not for RDMA: a connection over one fails in bounded time,
    and the others do not notice."""
    with Load(ctx, ("rping",)) as load:
        for guest in (ctx[1], ctx[2]):
            guest.run("modprobe 8021q; ip link add link eth0 name eth0.7 "
                      "type vlan id 7 && ip link set eth0.7 up && "
                      "ip addr add 10.7.0.%d/24 dev eth0.7" % guest.index)
        ctx[2].run("ping -c 1 -W 5 10.7.0.1", 20)
        outcome = run_pair(ctx[1], ctx[2], "rping -s -C 2",
                           "rping -c -a 10.7.0.1 -C 2", timeout=90,
                           server_ends=False)
        print("# RDMA over a VLAN: %s" % (outcome.problem or "works"),
              flush=True)
        assert outcome.client and not outcome.client.timed_out, outcome
        load.flows()
        load.check()
        for guest in (ctx[1], ctx[2]):
            guest.run("ip link del eth0.7")
    traffic(ctx)
