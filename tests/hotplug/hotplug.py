# SPDX-License-Identifier: GPL-2.0-or-later
"""What the hot-plug tests share: programs that run meanwhile, what a guest
has in use, how long things took."""

import functools
import itertools
import re
import time

from guestlib.adapter import Adapter
from guestlib.errors import GuestError
from guestlib.guests import Options
from guestlib.programs import (OVERLOOKED, PERFTEST_SET_UP, run_pair,
                               wait_listening)
from guestlib.pulse import HostWait, Pulse
import hang
import suite

suite.SETS.update({
    "plug": Options(n=2, restrict=True),
    "plug-native": Options(n=2, restrict=True, machine="q35-native"),
    "plug-pc": Options(n=2, restrict=True, machine="pc"),
    "plug-storage": Options(n=2, restrict=True, addons=["storage"]),
    "plug-linux7": Options(n=2, restrict=True, kernel="7"),
})
# Machines, as the table has them
WAYS = {"plug": "q35", "plug-native": "q35 native", "plug-pc": "pc",
        "plug-storage": "q35", "plug-linux7": "q35"}
EVERYWHERE = ("plug", "plug-native", "plug-pc")

ROUNDS = None       # of every test, rather than its own number
IS_SHORT = False
SHORT = set()
FIGURES = {}        # (test, machine): Figures

# A guest has this long for what takes it well below a second when the
# machine is idle; what it did take is in the table.
PATIENCE = 60
# Seconds that a guest with a processor for itself has for a removal.  Without
# ACPI it is asked by pressing a button, and Linux gives its user 5 s to think
# twice.
REMOVAL = 5
BUTTON = {"plug-native": 5}

DRIVER = "/sys/bus/pci/drivers/erdma"
PCI = "$(ls %s | grep ^0000)" % DRIVER


class Figures:
    """Of one test: rounds, seconds that each removal took, slowest answer
    of the monitor."""

    def __init__(self):
        self.rounds, self.removals = 0, []
        self.worst, self.answers = 0.0, 0


def plug_test(name, sets=("plug",), is_short=False, rounds=5):
    """Registers a test for each of these sets of guests.

    rounds: of the long form, with the first of the sets, a tenth of that with
    the others; or (of the short form, of the long form).
    """
    short, long = rounds if isinstance(rounds, tuple) else (1, rounds)

    def register(function):
        for set_name in sets:
            full = name if set_name == sets[0] else name + "-" + \
                set_name.replace("plug-", "")
            if is_short and set_name == sets[0]:
                SHORT.add(full)
            suite.test(full, guests=set_name)(watched(
                function, name, set_name, short,
                long if set_name == sets[0] else max(long // 10, 1)))
        return function
    return register


def watched(function, name, set_name, short, long):
    """The test, with the monitor's answers timed, and a look at what is left
    in use afterwards."""
    @functools.wraps(function)
    def run(ctx):
        ctx.button = BUTTON.get(set_name, 0)
        ctx.rounds = ROUNDS or (short if IS_SHORT else long)
        hang.again(ctx, lambda: run_once(ctx, function,
                                         (name, WAYS[set_name])))
    return run


def run_once(ctx, function, key):
    figures = ctx.figures = FIGURES[key] = Figures()
    for guest in ctx.guests:
        # perftest may crash when its peer ends; that is not the kernel's.
        guest.run("echo 0 > /proc/sys/debug/exception-trace")
        mend(guest)
    before = [in_use(g) for g in ctx.guests]
    pulses = [Pulse(g) for g in ctx.guests]
    try:
        function(ctx)
    finally:
        for pulse in pulses:
            pulse.stop()
            figures.worst = max(figures.worst, pulse.worst)
            figures.answers += pulse.count
    for pulse in pulses:
        assert not pulse.problem, pulse.problem
    for guest, old in zip(ctx.guests, before):
        settles(guest, old)


def mend(guest):
    """A test before this one may have failed in the middle."""
    if guest.rdma_devices():
        return
    guest.run("modprobe erdma")
    if "hca0" in [x["name"] for x in guest.qmp.command(
            "qom-list", path="/machine/peripheral")]:
        guest.wait_active()
    else:
        guest.add_hca()


def in_use(guest):
    """What the guest's RDMA stack and the adapter have allocated."""
    text = guest.run(
        "for i in qp cq pd mr cm_id ctx; do echo $i $(rdma resource show $i "
        "| wc -l); done; grep -c erdma /proc/interrupts; "
        "ls /sys/class/infiniband; lsmod | grep ^erdma").out
    objects = guest.qmp.command("qom-get", property="objects",
                                path="/machine/peripheral/hca0")
    return text, objects


def settles(guest, before):
    """Wait until no more is in use than was."""
    end = time.monotonic() + PATIENCE
    while True:
        now = in_use(guest)
        if now == before:
            return
        if time.monotonic() > end:
            raise AssertionError("%s: in use before: %r, afterwards: %r" % (
                guest.name, before, now))
        time.sleep(0.1)


def markdown():
    """The table of docs/hotplug.md."""
    lines = ["| Test | Machine | Rounds | Removal: median, longest | Slowest "
             "`query-status` |", "|---|---|---|---|---|"]
    for (name, how), f in FIGURES.items():
        times = sorted(f.removals)
        took = "%.2f s, %.2f s" % (times[len(times) // 2], times[-1]) \
            if times else ""
        lines.append("| `%s` | %s | %s | %s | %.0f ms of %d |" % (
            name, how, f.rounds or 1, took, f.worst * 1000, f.answers))
    return "\n".join(lines) + "\n"


def traffic(ctx, server=1, client=2):
    """A connection with data, to see that all works."""
    outcome = run_pair(ctx[server], ctx[client], "rping -s -C 5 -S 20000",
                       "rping -c -a %s -C 5 -S 20000 -V" % ctx[server].ip)
    assert not outcome.problem, outcome.problem


def unplug(ctx, guest, ident="hca0"):
    """Unplug it; how long that took goes into the table."""
    host = HostWait(guest.machine)
    seconds = guest.unplug(ident, PATIENCE)
    ctx.figures.removals.append(seconds)
    # Not the guest's are the seconds that its QEMU waited for a processor.
    own = seconds - ctx.button - host.seconds()
    assert own < REMOVAL, "removal took %.1f s of %.1f s" % (own, seconds)
    if ident == "hca0":
        assert not guest.rdma_devices(), guest.rdma_devices()


class Load:
    """Programs that go on for ever, between server and client.

    What waits for events starts last: 6.12's driver takes a lock to create a
    CQ that its event handler takes, too, and does not keep interrupts off.
    """

    # Name: server, client, queue pairs of each.  rping waits for events, the
    # others poll; ib_send_bw with events does not go on for ever, for when it
    # is out of credits it waits for a completion that is not due.
    PROGRAMS = {
        "rping": ("rping -s -a {ip} -p {port} -S 30000",
                  "rping -c -a {ip} -p {port} -S 30000", 1),
        "write": ("ib_write_bw -R -p {port} -D 600 -s 4096",
                  "ib_write_bw -R -p {port} -D 600 -s 4096 {ip}", 2),
        "send": ("ib_send_bw -R -p {port} -D 600 -s 1024",
                 "ib_send_bw -R -p {port} -D 600 -s 1024 {ip}", 2),
        "churn": ("verbs-churn server {port}",
                  "verbs-churn client {ip} {port} 1000000", 0),
    }
    POLLING = ("write", "send", "churn")
    # A port is in use for a while after its last connection.
    ports = itertools.count(7100)

    def __init__(self, ctx, names=("write", "rping"), server=1, client=2):
        self.server, self.client = ctx[server], ctx[client]
        self.names, self.running = names, []
        try:
            for name in names:
                self._start(name)
        except BaseException:
            self.stop()
            raise

    def _start(self, name):
        """Once more if perftest's own set-up went wrong."""
        n_before = len(self.running)
        try:
            self._start_once(name)
        except AssertionError as e:
            if not re.search(PERFTEST_SET_UP + "|" + OVERLOOKED, str(e)):
                raise
            print("# again, since %s" % " / ".join(str(e).splitlines()[:4]),
                  flush=True)
            for _, _, command in self.running[n_before:]:
                command.kill()
                command.wait(10)
            del self.running[n_before:]
            self._start_once(name)

    def _start_once(self, name):
        port = next(self.ports)
        at_server, at_client = (text.format(ip=self.server.ip, port=port)
                                for text in self.PROGRAMS[name][:2])
        before = len(self._connections())
        daemon = self.server.start("exec " + at_server, 0, merge=True)
        self.running.append((name, self.server, daemon))
        wait_listening(self.server, at_server, PATIENCE)
        client = self.client.start("exec " + at_client, 0, merge=True)
        self.running.append((name, self.client, client))
        end = time.monotonic() + PATIENCE
        while len(self._connections()) < before + self.PROGRAMS[name][2]:
            self.check()
            if time.monotonic() > end:
                raise AssertionError(name + " does not connect")
            time.sleep(0.05)
        self.flows()

    def _connections(self):
        """Packets that the client's established queue pairs have sent."""
        return {q["qpn"]: q["connection"]["tx-packets"]
                for q in Adapter(self.client.qmp.execute, "hca0").get("qps")
                if q.get("connection") and q["state"] == "rts"}

    def flows(self, packets=20, timeout=PATIENCE):
        """Wait until each program has sent so much from now on."""
        want = len([x for x in self.running if x[1] is self.client and
                    x[0] != "churn"])
        old, end = self._connections(), time.monotonic() + timeout
        while True:
            now = self._connections()
            busy = [n for n in now if now[n] >= old.get(n, 0) + packets]
            if len(busy) >= want:
                return
            self.check()
            if time.monotonic() > end:
                raise AssertionError("%d of %d connections send: %r, %r" % (
                    len(busy), want, old, now))
            time.sleep(0.05)

    def check(self):
        """All of them still run."""
        for name, guest, command in self.running:
            assert command.running(), "%s at %s: %r" % (
                name, guest.name, command.wait())

    def waits(self, guest, *names):
        """These of this guest have heard of nothing."""
        for name, where, command in self.running:
            assert where is not guest or name not in names or \
                command.running(), "%s at %s ended: %r" % (
                    name, guest.name, command.wait())

    def ended(self, guest, timeout=PATIENCE):
        """Those of this guest end by themselves; their results."""
        results = self._ended(guest, timeout)
        for name, where, command in self.running:
            assert where is not guest or name in results, \
                "%s at %s goes on: %s" % (name, guest.name,
                                          command.output()[-300:])
        return results

    def lost(self, guest):
        """This guest's HCA is gone.  Who waits for an event ends.  Who only
        polls finds what was posted flushed; if nothing was, as the adapter
        was done with it while the guest's processor saw to the removal, it
        may poll for ever.  Results of those that ended."""
        for name, where, command in self.running:
            if where is guest and name not in self.POLLING:
                self._ended(guest, PATIENCE, name)
                assert not command.running(), name + " goes on"
        results = self._ended(guest, 5)
        for name, where, command in self.running:
            if where is guest and name not in results:
                print("# %s at %s polls on" % (name, guest.name), flush=True)
        return results

    def _ended(self, guest, timeout, *names):
        end = time.monotonic() + timeout
        commands = {name: command for name, where, command in self.running
                    if where is guest and (not names or name in names)}
        while time.monotonic() < end and \
                any(c.running() for c in commands.values()):
            time.sleep(0.05)
        return {name: c.wait() for name, c in commands.items()
                if not c.running()}

    def stop(self):
        for _, _, command in self.running:
            if command.running():
                command.kill()
        for _, _, command in self.running:
            command.wait(10)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.stop()


class AsyncWatch:
    """ibv_asyncwatch in a guest; events() are those that it saw."""

    def __init__(self, guest):
        self.command = guest.start("exec ibv_asyncwatch -d erdma_0", 0,
                                   merge=True)
        end = time.monotonic() + PATIENCE
        while "async event FD" not in self.command.output():
            if not self.command.running() or time.monotonic() > end:
                raise GuestError("ibv_asyncwatch: " + self.command.output())
            time.sleep(0.02)

    def events(self):
        return [line.split("event_type", 1)[1].strip()
                for line in self.command.output().splitlines()
                if "event_type" in line]

    def wait(self, *words):
        """Until the events contain these words, in order; returns them."""
        end = time.monotonic() + PATIENCE
        while True:
            events = self.events()
            left = list(words)
            for event in events:
                if left and left[0] in event:
                    left.pop(0)
            if not left:
                return events
            if time.monotonic() > end:
                raise AssertionError("no %s in %r" % (left[0], events))
            time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.command.kill()
        self.command.wait(10)
