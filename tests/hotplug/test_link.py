# SPDX-License-Identifier: GPL-2.0-or-later
"""Link and MTU change while connections are in use."""

import time

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
    with Load(ctx, ("send", "rping")) as load:
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
    with Load(ctx, ("write", "rping")) as load:
        for _ in range(hotplug.ROUNDS):
            for value in (1400, 4000, 1500):
                for guest in (ctx[1], ctx[2]):
                    guest.run("ip link set eth0 mtu %d" % value)
                    load.flows()
            ctx.figures.rounds += 1
        load.check()
    traffic(ctx)
