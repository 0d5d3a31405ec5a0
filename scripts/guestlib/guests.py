# SPDX-License-Identifier: GPL-2.0-or-later
"""A set of linked guests.

Guest I (from 1) is guestI, 10.9.0.I on its interface eth0 (the link, MAC
52:54:00:09:00:I) and 10.0.2.15 on user0 (QEMU's user network).  Its HCA is
the device hca0 of QEMU, sharing the NIC nic0.
"""

import concurrent.futures
import os
import re
import shutil
import tempfile
import time
from dataclasses import dataclass, field

from . import accel, addons, faults, netem, paths
from .agent import STATUS_TIMEOUT
from .errors import GuestError
from .machine import Base, Machine, listens, spawn, tail

MAX_GUESTS = 64
DEFAULT_MTU = 1500
HCA_TIMEOUT = 30

# Kernel messages that say nothing about the device: every module of ours is
# out of tree, the driver has no IPv6 (an application that listens on both
# families hears of it), and perftest crashes when its first connection is
# refused, which its exit status tells, too.
HARMLESS = ("loading out-of-tree module", "module verification failed",
            "cma_listen_on_dev, error -97", "traps: ib_",
            # ib_core asks a device that is going
            "ib_query_port failed (-19)")


@dataclass
class Options:
    n: int = 2
    kernel: str = "6.12"
    suite: str = ""             # of the user space; "": the kernel's own
    rdma: str = "erdma"         # erdma, siw, rxe or none
    device: str = ""            # more properties of -device erdma
    nic: str = "virtio-net-pci"
    mtu: int = DEFAULT_MTU
    smp: int = 1
    mem: str = "1G"
    accel: str = "tcg"          # tcg, kvm or auto
    machine: str = "q35"        # see machine.MACHINES
    qemu: list = field(default_factory=list)    # more QEMU arguments
    cmdline: str = ""           # more kernel parameters
    restrict: bool = False      # the user network ends at its gateway
    addons: list = field(default_factory=list)  # see guestlib/addons.py
    cold: bool = False          # boot, whether or not there is a saved state
    dump: bool = False          # the link's frames go to LOGDIR/guestI.pcap
    movable: bool = False       # each may migrate, see guestlib/migration.py
    # Emulated links, each "[GUEST:][tx:|rx:]NAME=VALUE,...", see netem.py.
    netem: list = field(default_factory=list)


def mac(i):
    return "52:54:00:09:00:%02x" % i


def address(i):
    return "10.9.0.%d" % i


def make_rundir():
    """A directory for sockets, named after us; dead runs' ones are removed."""
    parent = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    for name in os.listdir(parent):
        match = re.fullmatch(r"erdma-guests-(\d+)-\w+", name)
        if match and not os.path.exists("/proc/" + match.group(1)):
            shutil.rmtree(os.path.join(parent, name), ignore_errors=True)
    return tempfile.mkdtemp(prefix="erdma-guests-%d-" % os.getpid(),
                            dir=parent)


class Guest:
    """One guest; commands run in it through run() and start()."""

    def __init__(self, index, machine, options):
        self.index, self.machine, self.options = index, machine, options
        self.name, self.ip = machine.name, address(index)
        self._log_mark = 0
        self._netem = {}
        self._plugged = {}      # id: its -device, in the order of plugging
        self.moves, self.place = 0, 0   # targets so far; where at the hub
        self.n_addon_disks = 0  # see addons.install()

    @property
    def qmp(self):
        return self.machine.qmp

    def start(self, command, timeout=60, **how):
        """Start a command and return it (agent.Command)."""
        return self.machine.agent.start(command, timeout, **how)

    def run(self, command, timeout=60, check=True, stdin=None, merge=False):
        """Run a command; with check its failure is a GuestError."""
        cmd = self.machine.agent.start(command, timeout, merge=merge,
                                       stdin=stdin is not None)
        if stdin is not None:
            cmd.feed(stdin)
            cmd.end_stdin()
        result = cmd.wait()
        if check and not result.ok:
            raise GuestError(
                "%s: `%s` %s: %s" % (
                    self.name, command,
                    "timed out" if result.status == STATUS_TIMEOUT
                    else "ended with status %d" % result.status,
                    (result.out[-400:] + result.err[-400:]).strip()))
        return result

    def wait_until(self, test, timeout, what):
        """Poll the shell expression `test` in the guest."""
        loop = "until %s; do sleep 0.05; done" % test
        if not self.run(loop, timeout, check=False).ok:
            raise self.machine.fail("%s within %d s" % (what, timeout))

    def setup(self):
        """Plug the NIC and the HCA, and wait until both can be used."""
        o = self.options
        self.machine.agent.setup(self.name)
        self.add_nic()
        if o.rdma == "erdma":
            self.add_hca()
        elif o.rdma in ("siw", "rxe"):
            self.add_soft_rdma(o.rdma)

    def _nic(self):
        """Properties of the link's NIC"""
        nic = self.options.nic
        return dict({"romfile": ""} if "net" in nic or "e1000" in nic else {},
                    id="nic0", bus=self.machine.base.port(0), netdev="link0",
                    mac=mac(self.index))

    def _hca(self, ident="hca0", bus=None, eni="nic0", more=None):
        """-device's argument for an HCA"""
        properties = ["erdma", "id=" + ident, "eni=" + eni,
                      "bus=" + (bus or self.machine.base.port(1))]
        if self.options.mtu != DEFAULT_MTU:
            # The driver tells the HCA of changes, not of what it finds.
            properties.append("mtu=%d" % self.options.mtu)
        properties += filter(None, [self.options.device if more is None
                                    else more])
        return ",".join(properties)

    def device_args(self, more=""):
        """QEMU's arguments for what is plugged now; `more` are properties
        that HCAs get in addition."""
        return [arg for text in self._plugged.values() for arg in (
            "-device", text + more * text.startswith("erdma,"))]

    def plug(self, driver, **properties):
        """Plug a device; properties as in QMP, with an id."""
        self.qmp.device_add(driver, **properties)
        self._plugged[properties["id"]] = ",".join(
            [driver] + ["%s=%s" % item for item in properties.items()])

    def add_nic(self):
        """Plug the link's NIC and bring it up."""
        self.plug(self.options.nic, **self._nic())
        self.wait_until("[ -e /sys/class/net/eth0 ]", 20,
                        "the NIC did not appear")
        self.bring_up_link()

    def bring_up_link(self):
        self.run("ip link set eth0 mtu %d && ip link set eth0 up && "
                 "ip addr add %s/24 dev eth0" % (self.options.mtu, self.ip))

    def unplug(self, ident, timeout=60):
        """Unplug a device; returns the seconds that it took the guest."""
        began = time.monotonic()
        self.qmp.command("device_del", id=ident)
        self.qmp.wait_event("DEVICE_DELETED", timeout,
                            lambda data: data.get("device") == ident)
        self._plugged.pop(ident, None)
        return time.monotonic() - began

    def reset(self):
        """Reset the machine, see restarted()."""
        self.machine.reset()
        self.restarted()

    def restarted(self):
        """The guest has booted again: wait until NIC and HCA, which stay
        plugged, can be used again."""
        self._log_mark = 0
        self.machine.agent.setup(self.name)
        self.run("grep -l %s /sys/class/net/*/address | cut -d/ -f5 | "
                 "{ read n; [ $n = eth0 ] || ip link set $n name eth0; }"
                 % mac(self.index))
        self.bring_up_link()
        if self.options.rdma == "erdma":
            self.wait_active()

    def wait_active(self, timeout=HCA_TIMEOUT):
        """Wait until an RDMA device has an active port."""
        self.wait_until(
            "grep -q ACTIVE /sys/class/infiniband/*/ports/1/state "
            "2>/dev/null", timeout, "no RDMA port became active")

    def add_hca(self, ident="hca0", bus=None, eni="nic0", more=None):
        """Plug an erdma HCA and wait for an active port."""
        known = self.rdma_devices()
        text = self._hca(ident, bus, eni, more)
        self.qmp.device_add_text(text)
        self._plugged[ident] = text
        old = "|".join(known) or "-"
        self.wait_until(
            "cat $(ls -d /sys/class/infiniband/* 2>/dev/null | "
            "grep -vE '/(%s)$' | sed 's,$,/ports/1/state,') /dev/null "
            "2>/dev/null | grep -q ACTIVE" % old,
            HCA_TIMEOUT, "no RDMA device with an active port appeared")

    def rdma_devices(self):
        return self.run("ls /sys/class/infiniband 2>/dev/null || :") \
            .out.split()

    def add_soft_rdma(self, kind):
        """A siw or rxe device over eth0, named siw0 or rxe0."""
        self.run("modprobe %s && rdma link add %s0 type %s netdev eth0"
                 % ({"rxe": "rdma_rxe"}.get(kind, kind), kind, kind))

    def del_soft_rdma(self, kind):
        self.run("rdma link delete %s0" % kind)

    def netem(self, queue="tx", **options):
        """The emulated link to ("tx") or from ("rx") this guest, made if it
        is not there; options are set.  See netem.Netem."""
        link = self._netem.get(queue)
        if link is None:
            link = self._netem[queue] = netem.Netem(self, queue, options)
        elif options:
            link.set(**options)
        return link

    def no_netem(self):
        """Take its emulated links away."""
        while self._netem:
            self._netem.popitem()[1].remove()

    def fault(self, device="hca0", **options):
        """Something that this HCA does wrong, until it is removed; see
        faults.Fault."""
        return faults.Fault(self, device, options)

    def log_problems(self):
        """Kernel messages of level warning and worse since the last call,
        and whatever looks like an oops."""
        lines = self.run("dmesg -r", check=False).out.splitlines()
        new, self._log_mark = lines[self._log_mark:], len(lines)
        bad = []
        for line in new:
            level, _, text = line.partition(">")
            try:
                priority = int(level.lstrip("<")) & 7
            except ValueError:
                priority = 6
            if any(word in text for word in HARMLESS):
                continue
            if (priority <= 4 and "erdma" in text.lower()) or any(
                    word in text for word in
                    ("WARNING:", "BUG:", "Oops", "Call Trace", "KASAN",
                     "refcount_t", "UBSAN", "blocked for more than",
                     "general protection", "unable to handle",
                     "soft lockup", "Kernel panic")):
                bad.append(text.strip())
        return bad

    def hca_stats(self, ident="hca0"):
        """The HCA's counters (its QOM property stats)."""
        return self.qmp.command("qom-get", path="/machine/peripheral/" + ident,
                                property="stats")

    def wire_packets(self):
        """Frames that the link's NIC has sent, as the guest counts them."""
        return int(self.run("cat /sys/class/net/eth0/statistics/tx_packets")
                   .out)


class GuestSet:
    """N linked guests; also a context manager.  guests[1] is the first."""

    def __init__(self, options=None, logdir=None, say=lambda text: None,
                 **keywords):
        self.options = options or Options(**keywords)
        self.logdir = logdir or os.path.join(paths.BUILD, "logs", "guests")
        self.say = say
        self.guests = {}
        self.rundir = None
        self._hub = None

    def __getitem__(self, i):
        if i not in self.guests:
            raise GuestError("no guest %r (there are 1 to %d)"
                             % (i, len(self.guests)))
        return self.guests[i]

    def __iter__(self):
        return iter(self.guests.values())

    def __len__(self):
        return len(self.guests)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.stop()

    def prepare(self):
        """Make what is not cached yet; returns the base and its state."""
        o = self.options
        base = Base(o.kernel, None, "tcg", o.smp, o.mem, o.cmdline,
                    o.machine, o.suite)
        base.accel = accel.choose(o.accel, base)
        self._addons = addons.disks(o.addons, o.kernel, o.suite)
        return base, None if o.cold else base.saved_state()

    def start(self):
        o = self.options
        if not 1 <= o.n <= MAX_GUESTS:
            raise GuestError("%d guests: 1 to %d are possible"
                             % (o.n, MAX_GUESTS))
        self._links = netem.plan(o.netem, o.n)
        base, state = self.prepare()
        os.makedirs(self.logdir, exist_ok=True)
        try:
            self._start(base, state)
        except GuestError as e:
            if state is None or not any(
                    m.state_is_bad() for m in self._machines):
                self.stop()
                raise
            self.say("%s: booting instead" % str(e).splitlines()[0])
            self.stop()
            paths.cache_drop(base.state_name())
            try:
                self._start(base, None)
            except GuestError:
                self.stop()
                raise
        return self

    def _start(self, base, state):
        o = self.options
        self._machines = []
        # Short: the path of a unix socket has room for 107 characters.
        self.rundir = make_rundir()
        if self._has_hub():
            self._start_hub(base)
        for i in range(1, o.n + 1):
            machine = Machine(base, "guest%d" % i, self.rundir, self.logdir,
                              [self._netdev(i)], self._extra(i), o.restrict)
            for log in (machine.console_log,):
                if os.path.exists(log):
                    os.unlink(log)
            self._machines.append(machine)
            machine.start(state)
            if o.n == 2 and i == 1 and not self._has_hub():
                self._wait_path(self._link_path(2), machine)
        with concurrent.futures.ThreadPoolExecutor(o.n) as pool:
            list(pool.map(self._bring_up, range(1, o.n + 1)))
        self._check_link()
        # Last, so that a bad link does not keep the guests from starting and
        # the first packet on it is the first of what the guests are for.
        for (i, queue), options in self._links.items():
            self.guests[i].netem(queue, **options)

    def _bring_up(self, i):
        machine = self._machines[i - 1]
        machine.connect()
        guest = Guest(i, machine, self.options)
        guest.setup()
        addons.install(guest, self._addons)
        self.guests[i] = guest
        self.guests = dict(sorted(self.guests.items()))

    def _link_path(self, i):
        return os.path.join(self.rundir, "link%s" % i)

    def make_target(self, i, device=""):
        """A machine that guest i can migrate to, not started; `device` are
        properties that its HCAs get in addition."""
        if not self.options.movable:
            raise GuestError("the guests were not started as movable")
        guest = self.guests[i]
        guest.moves += 1
        return Machine(guest.machine.base, "guest%d-%d" % (i, guest.moves),
                       self.rundir, self.logdir,
                       [self._netdev(i, 1 - guest.place)],
                       guest.device_args(device and "," + device) +
                       self._extra(i), self.options.restrict)

    def replace(self, i, machine):
        """Guest i has moved there: the old one ends."""
        guest = self.guests[i]
        self._machines[self._machines.index(guest.machine)] = machine
        guest.machine.stop()
        guest.machine, guest.place = machine, 1 - guest.place

    def _has_hub(self):
        return self.options.n > 2 or self.options.movable

    def _places(self):
        """The hub's, two for each guest that may move"""
        return [(i, place) for i in range(1, self.options.n + 1)
                for place in range(2 if self.options.movable else 1)]

    def _netdev(self, i, place=0):
        """Two guests are linked directly, more by a hub."""
        if self._has_hub():
            return "stream,id=link0,server=off,addr.type=unix,addr.path=%s" \
                % self._link_path("%d-%d" % (i, place))
        if self.options.n == 1:
            # Nobody is there, but frames must have somewhere to go.
            return "user,id=link0,restrict=on,net=10.9.0.0/24," \
                   "host=10.9.0.254,dhcpstart=10.9.0.200,dns=10.9.0.253"
        return "stream,id=link0,server=%s,addr.type=unix,addr.path=%s" % (
            "on" if i == 1 else "off", self._link_path(2))

    def _extra(self, i):
        extra = list(self.options.qemu)
        if self.options.dump:
            extra += ["-object", "filter-dump,id=dump0,netdev=link0,file=%s"
                      % os.path.join(self.logdir, "guest%d.pcap" % i)]
        return extra

    def _start_hub(self, base):
        """A QEMU without a machine whose hub joins all links, so that no
        guest depends on another one's process."""
        args = [base.qemu, "-machine", "none", "-nodefaults", "-display",
                "none", "-monitor", "none"]
        for n, (i, place) in enumerate(self._places()):
            path = self._link_path("%d-%d" % (i, place))
            args += ["-netdev", "stream,id=s%d,server=on,addr.type=unix,"
                                "addr.path=%s" % (n, path),
                     "-netdev", "hubport,id=h%d,hubid=0,netdev=s%d" % (n, n)]
        self._hub_log = os.path.join(self.logdir, "hub.log")
        self._hub = spawn(args, self._hub_log)
        self._wait_path(path, None)

    def _wait_path(self, path, machine):
        end = time.monotonic() + 20
        while not listens(path):
            if machine and not machine.alive():
                raise machine.fail("QEMU ended with status %d"
                                   % machine.process.returncode)
            if self._hub and self._hub.poll() is not None:
                raise GuestError("the hub ended (log: %s)\n%s" % (
                    self._hub_log, tail(self._hub_log)))
            if time.monotonic() > end:
                raise GuestError("the link did not come up (%s)" % path)
            time.sleep(0.01)

    def _check_link(self):
        for guest in list(self)[1:]:
            result = guest.run("ping -c 1 -W 5 %s" % address(1), 20,
                               check=False)
            if not result.ok:
                raise guest.machine.fail("it does not reach guest1")

    def stop(self):
        for machine in getattr(self, "_machines", []):
            machine.stop()
        if self._hub:
            self._hub.kill()
            self._hub.wait()
            self._hub = None
        if self.rundir:
            shutil.rmtree(self.rundir, ignore_errors=True)
            self.rundir = None
        self.guests = {}
