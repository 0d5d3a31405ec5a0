# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that move at awkward moments.

A case takes the guests, and a Series that counts its moves; it passes by
returning, fails by GuestError, AssertionError or Failed.
"""

import itertools
import re
import time

from guestlib.adapter import Adapter
from guestlib.programs import OVERLOOKED, PORT_TAKEN
from held import Held

from traffic import Traffic, ports, start_rping

CASES = []
# Long enough that a move happens in between: one of 1 MiB takes 2 s
SLOW = 4000000          # bit/s
FAR = 150000            # us each way


class Case:
    def __init__(self, name, function, is_short):
        self.name, self.function, self.is_short = name, function, is_short


def case(name, is_short=False):
    """Registers a case."""
    def register(function):
        CASES.append(Case(name, function, is_short))
        return function
    return register


def in_between(guests, series, request, movers, **link):
    """A request is under way; these guests move, one after the other."""
    for guest in guests:
        guest.netem(**link)
    try:
        with Held(guests, 1, 2, request) as held:
            held.go()
            time.sleep(0.2)
            for i in movers:
                assert "# done" not in held.client.output(), "it was too fast"
                series.move(guests, i)
            held.wait("done")
            for guest in guests:
                guest.no_netem()
            held.finish()
    finally:
        for guest in guests:
            guest.no_netem()


def request_under_way(request, movers, is_short=False, **link):
    who = "both ends" if len(movers) > 1 else \
        "the requester" if movers == (2,) else "the responder"

    @case("%s, %s" % (request, who), is_short)
    def moves(guests, series):
        in_between(guests, series, request, movers, **link)


for _op in ("write", "send", "read"):
    for _movers in ((2,), (1,)):
        request_under_way("held/%s/1048576" % _op, _movers, rate=SLOW,
                          is_short=_op == "read" and _movers == (1,))
request_under_way("held/read/1048576", (2, 1), rate=SLOW // 2)
for _movers in ((2,), (1,)):
    request_under_way("held/faa/8", _movers, delay_us=FAR)


VERBS = ("cas", "faa", "wrap", "events", "signal-every", "fence", "send-sol",
         "both-ways", "mixed", "violation", "late-receive", "flush", "works",
         "many/qps", "many/event", "many/sol")
BETWEEN = 1.5           # seconds from one move to the next: TCP needs a chance


def listening(guest, command):
    """It and its server"""
    daemon = guest.start(command, 0, merge=True)
    guest.wait_until("ss -ltnp | grep -q verbs-check", 20,
                     "verbs-check does not listen")
    return daemon


def run_moving(guests, series, command):
    """Both move until it ends."""
    client = guests[2].start(command, 280, merge=True)
    try:
        for i in itertools.cycle((1, 2)):
            series.move(guests, i)
            time.sleep(BETWEEN)
            if not client.running():
                return client.wait()
    finally:
        end_all([client])


@case("verbs-check")
def verbs_check(guests, series):
    """Atomics, fences, violations, flushes, missing receives, events, ..."""
    command = "exec verbs-check client %s %s" % (guests[1].ip, " ".join(VERBS))
    server = listening(guests[1], "exec verbs-check server")
    try:
        result = run_moving(guests, series, command)
        chance = re.search(OVERLOOKED + "|" + PORT_TAKEN, result.out)
        if chance:
            print("# once more: " + chance.group(0), flush=True)
            result = run_moving(guests, series, command)
        assert result.ok and "not ok" not in result.out, result
        assert len(series.downtimes) > 3, "it was too fast"
    finally:
        end_all([server])


def end_all(commands):
    for command in reversed(commands):
        command.kill()
        command.wait(10)


def is_waiting(guest):
    """Is there a message that lacks a receive?"""
    return any(qp["receive-missing"]
               for qp in Adapter(guest.qmp.execute, "hca0").get("qps"))


@case("a message without a receive")
def no_receive(guests, series):
    """The sender asks and asks; then the error that is due."""
    commands = [listening(guests[1], "exec verbs-check server")]
    try:
        client = guests[2].start("exec verbs-check client %s no-receive"
                                 % guests[1].ip, 100, merge=True)
        commands.append(client)
        end = time.monotonic() + 30
        while not is_waiting(guests[1]):
            assert time.monotonic() < end and client.running(), client.wait()
            time.sleep(0.05)
        for i in (1, 2):
            series.move(guests, i)
        assert is_waiting(guests[1]), "it does not wait any more"
        result = client.wait()
        assert result.ok and "\nok no-receive" in "\n" + result.out, result
    finally:
        end_all(commands)


def connections(guest):
    """Each has one write, and nothing else."""
    return guest.hca_stats()["rx-data-packets"]


class Churn:
    """One guest connects to the other, writes, disconnects and destroys all
    the time.  Only a connection that the driver has overlooked
    (docs/limitations.md) may be without its bytes."""

    def __init__(self, server, client):
        port = next(ports)
        self.commands = [server.start("exec verbs-churn server %d" % port, 0,
                                      merge=True)]
        server.wait_until("rdma res show cm_id | grep -q 'LISTEN.*:%d '"
                          % port, 20, "verbs-churn does not listen")
        self.commands.append(client.start(
            "exec verbs-churn client %s %d 1000000" % (server.ip, port), 0,
            merge=True))

    def check(self):
        said = [command.output() for command in self.commands]
        assert all(command.running() for command in self.commands), said
        late = re.findall(r"^timed out: (\d+)$", said[1], re.M)
        empty = re.findall(r"^empty: (\d+)$", said[0], re.M)
        assert len(late) <= 2 and set(empty) <= set(late), said

    def stop(self):
        end_all(self.commands)


@case("connections come and go", is_short=True)
def churn(guests, series):
    both = []
    try:
        both = [Churn(guests[1], guests[2]), Churn(guests[2], guests[1])]
        for i in (1, 2, 1, 2):
            made = connections(guests[i])
            series.move(guests, i)
            end = time.monotonic() + 90
            while connections(guests[i]) < made + 10:
                for one in both:
                    one.check()
                assert time.monotonic() < end, "no connection any more"
                time.sleep(0.05)
    finally:
        for one in both:
            one.stop()


@case("the peer is stopped")
def peer_stopped(guests, series):
    with Traffic(guests) as traffic:
        before = sum(traffic.delivered())
        guests[2].qmp.command("stop")
        series.move(guests, 1)
        guests[2].qmp.command("cont")
        series.bytes = traffic.wait_progress("afterwards") - before


@case("a second adapter")
def two_adapters(guests, series):
    """With a NIC of its own, in a conversation with itself."""
    guest = guests[1]
    port = guest.machine.base.port
    ip = "10.7.0.1"
    guest.plug("virtio-net-pci", id="nic1", netdev="spare0", romfile="",
               mac="52:54:00:09:07:01", bus=port(2))
    try:
        guest.wait_until("[ -e /sys/class/net/eth1 ]", 20,
                         "the NIC did not appear")
        guest.run("ip link set eth1 up && ip addr add %s/24 dev eth1" % ip)
        guest.add_hca("hca1", port(3), "nic1")
        with Traffic(guests) as traffic:
            traffic.commands += start_rping(guest, guest, ip, 100000000)
            for i in (1, 2, 1):
                before = guest.hca_stats("hca1")["rx-payload-bytes"]
                began = sum(traffic.delivered())
                series.move(guests, i)
                series.bytes += traffic.wait_progress("afterwards") - began
                end = time.monotonic() + 30
                while guest.hca_stats("hca1")["rx-payload-bytes"] < \
                        before + 100000:
                    traffic.check_alive("afterwards")
                    assert time.monotonic() < end, "hca1 is silent"
                    time.sleep(0.05)
    finally:
        guest.run("ip link set eth1 down", check=False)
        guest.unplug("hca1")
        guest.unplug("nic1")


@case("an adapter that was plugged again")
def plugged_again(guests, series):
    guest = guests[1]
    guest.unplug("hca0")
    guest.add_hca()
    with Traffic(guests) as traffic:
        before = sum(traffic.delivered())
        series.move(guests, 1)
        series.bytes = traffic.wait_progress("afterwards") - before


@case("interrupts and events are late")
def late_events(guests, series):
    """What a fault has put off is delivered before the guest moves."""
    with Traffic(guests) as traffic:
        before = sum(traffic.delivered())
        for i in (1, 2):
            for on in ("interrupt", "ceqe", "command"):
                guests[i].fault(on=on, action="delay", delay_us=30000)
            time.sleep(0.3)
            series.move(guests, i)
        series.bytes = traffic.wait_progress("afterwards") - before
