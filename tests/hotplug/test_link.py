# SPDX-License-Identifier: GPL-2.0-or-later
"""Link, MTU and addresses change while connections are in use."""

import re
import time

from guestlib.guests import address, mac
from guestlib.programs import run_pair
from guestlib.pulse import HostWait
import hotplug
from hotplug import AsyncWatch, Load, plug_test, traffic, unplug

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
        for _ in range(ctx.rounds):
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


@plug_test("port-events", ("plug-linux7",))
def port_events(ctx):
    """A newer driver leaves the port to Linux's RDMA core, which sends one
    event for each change of the NIC's link."""
    guest = ctx[2]
    wanted = []
    with AsyncWatch(guest) as watch:
        for _ in range(ctx.rounds):
            for is_up, event in ((False, "PORT_ERR"), (True, "PORT_ACTIVE")):
                set_link(guest, is_up)
                wanted.append(event)
                # Linux looks at carriers once a second.
                events = watch.wait(*wanted)
            ctx.figures.rounds += 1
        assert len(events) == len(wanted), events
    traffic(ctx)


@plug_test("link-stays-down", rounds=2)
def link_stays_down(ctx):
    """A link that does not come back: the retry error, in bounded time; and
    a new connection when it is there again."""
    guest = ctx[2]
    device = "/machine/peripheral/hca0"
    retries, longest = (guest.qmp.command("qom-get", path=device, property=p)
                        for p in ("retries", "rto-max-us"))
    bound = (retries + 1) * longest / 1e6
    for _ in range(ctx.rounds):
        with Load(ctx, ("write", "send")) as load:
            began, host = time.monotonic(), HostWait(guest.machine)
            set_link(guest, False)
            results = load.ended(guest, bound + hotplug.PATIENCE)
            took = time.monotonic() - began
            own = took - host.seconds()
            set_link(guest, True)
            for name, result in results.items():
                assert re.search(r"status 12", result.out), result
            print("# the retry error came after %.1f s" % took, flush=True)
            assert own < bound, "it came after %.1f s of %.1f s" % (own, took)
        port_is(guest, "ACTIVE")
        traffic(ctx)
        ctx.figures.rounds += 1


@plug_test("netdev-gone", rounds=2)
def netdev_gone(ctx):
    """The NIC's netdev goes under it: a cut cable.  With another one NIC and
    HCA have to be plugged again."""
    guest = ctx[2]
    path = guest.machine.netdevs[0].split("addr.path=")[1]
    for _ in range(ctx.rounds):
        with Load(ctx, ("write",)) as load:
            guest.qmp.command("netdev_del", id="link0")
            (result,) = load.ended(guest).values()
            assert "status 12" in result.out, result
        for ident in ("hca0", "nic0"):
            unplug(ctx, guest, ident)
        guest.qmp.command("netdev_add", type="stream", id="link0",
                          server=False, addr={"type": "unix", "path": path})
        guest.add_nic()
        guest.add_hca()
        ctx.figures.rounds += 1
    traffic(ctx)


@plug_test("interface-down", is_short=True)
def interface_down(ctx):
    """ip link down and up: one event each; connections live on."""
    guest = ctx[2]
    with Load(ctx, ("rping",)) as load, AsyncWatch(guest) as watch:
        for _ in range(ctx.rounds):
            guest.run("ip link set eth0 down")
            port_is(guest, "DOWN")
            load.flows()
            guest.run("ip link set eth0 up")
            port_is(guest, "ACTIVE")
            load.flows()
            ctx.figures.rounds += 1
        load.check()
        events = watch.wait(*["PORT_ERR", "PORT_ACTIVE"] * ctx.rounds)
        ctx.point(len(events) == 2 * ctx.rounds,
                  "one event for each change", repr(events))
    traffic(ctx)


@plug_test("mtu-in-use", is_short=True)
def mtu_in_use(ctx):
    """The MTU changes under traffic, at one end and then at both."""
    with Load(ctx, ("write", "rping")) as load:
        for _ in range(ctx.rounds):
            for value in (1400, 4000, 1500):
                for guest in (ctx[1], ctx[2]):
                    guest.run("ip link set eth0 mtu %d" % value)
                    load.flows()
            ctx.figures.rounds += 1
        load.check()
    traffic(ctx)


@plug_test("ip-address", rounds=2)
def ip_address(ctx):
    """Another address for new connections; old ones go on."""
    guest = ctx[1]
    with Load(ctx, ("send", "rping")) as load:
        for _ in range(ctx.rounds):
            for old, new in ((address(1), "10.9.0.77"),
                             ("10.9.0.77", address(1))):
                guest.run("ip addr del %s/24 dev eth0 && "
                          "ip addr add %s/24 dev eth0" % (old, new))
                load.flows()
                outcome = run_pair(ctx[1], ctx[2], "rping -s -C 5",
                                   "rping -c -a %s -C 5 -V" % new)
                assert not outcome.problem, outcome.problem
            ctx.figures.rounds += 1
        load.check()
    traffic(ctx)


def fails(ctx, server, client, why):
    """A connection fails, in bounded time, with the retry error."""
    outcome = run_pair(ctx[server], ctx[client], "rping -s -C 5",
                       "rping -c -a %s -C 5" % ctx[server].ip, timeout=90,
                       server_ends=False)
    assert outcome.client and not outcome.client.timed_out, outcome
    ctx.point(not outcome.client.ok and "status 12" in outcome.client.out,
              why, repr(outcome.client))


@plug_test("mac-address")
def mac_address(ctx):
    """The adapter keeps the address that the NIC was made with, by which the
    driver knows it.  While the NIC has another one packets for the adapter go
    astray: the retry error; with the old one all is as before."""
    guest = ctx[2]
    guest.run("ip link set eth0 address 52:54:00:09:0f:0f")
    guest.run("ping -c 1 -W 10 %s" % ctx[1].ip, 30)
    fails(ctx, 1, 2, "as a client it is not answered")
    fails(ctx, 2, 1, "as a server it is not reached")
    guest.run("ip link set eth0 address " + mac(2))
    guest.run("ping -c 1 -W 10 %s" % ctx[1].ip, 30)
    traffic(ctx)
    traffic(ctx, server=2, client=1)


@plug_test("vlan")
def vlan(ctx):
    """RDMA is for the network without tags, whatever interface has the
    address: the driver hears at all addresses only of connections that come
    through the adapter's own NIC; a server at the VLAN's address is found, and
    what the adapters send has no tag."""
    with Load(ctx, ("rping",)) as load:
        for guest in (ctx[1], ctx[2]):
            guest.run("modprobe 8021q; ip link add link eth0 name eth0.7 "
                      "type vlan id 7 && ip link set eth0.7 up && "
                      "ip addr add 10.7.0.%d/24 dev eth0.7" % guest.index)
        ctx[2].run("ping -c 1 -W 10 10.7.0.1", 20)
        outcome = run_pair(ctx[1], ctx[2], "rping -s -C 5",
                           "rping -c -a 10.7.0.1 -C 5", timeout=90,
                           server_ends=False)
        assert outcome.client and "REJECTED" in outcome.client.out, outcome
        outcome = run_pair(ctx[1], ctx[2], "rping -s -a 10.7.0.1 -C 5",
                           "rping -c -a 10.7.0.1 -C 5 -V")
        assert not outcome.problem, outcome.problem
        load.flows()
        load.check()
        for guest in (ctx[1], ctx[2]):
            guest.run("ip link del eth0.7")
