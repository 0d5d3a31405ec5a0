# SPDX-License-Identifier: GPL-2.0-or-later
"""One QEMU process with a guest in it, booted or restored from a state.

The base machine has what every guest needs and what is saved: control port,
console, user network, root ports.  Everything else is plugged into the root
ports once the guest runs.
"""

import ctypes
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

from . import paths
from .agent import Agent
from .errors import GuestError
from .qmp import QMP

N_ROOT_PORTS = 8
USER_MAC = "52:54:00:0a:00:01"
BOOT_TIMEOUT = 240
# How a device is plugged: through ACPI, by the port itself, without ports.
MACHINES = {
    "q35": ["-machine", "q35"],
    "q35-native": ["-machine", "q35", "-global",
                   "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off"],
    "pc": ["-machine", "pc"],
}
CMDLINE = ("console=ttyS0 quiet loglevel=5 panic=-1 rdinit=/init "
           "mitigations=off tsc=reliable no_timer_check "
           "rcupdate.rcu_expedited=1 cryptomgr.notests "
           "random.trust_cpu=on net.ifnames=0")

_libc = ctypes.CDLL(None)
_states = {}        # those that this process knows to be whole
_HZ = os.sysconf("SC_CLK_TCK")


def _die_with_parent():
    _libc.prctl(1, signal.SIGKILL)      # PR_SET_PDEATHSIG
    os.setpgid(0, 0)                    # a terminal's Ctrl-C is not for QEMU


def spawn(args, log):
    """Start a process that does not outlive ours.  Main thread only: Linux
    ties the death signal to the thread that forked."""
    try:
        with open(log, "ab") as out:
            return subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=out,
                                    stderr=out, preexec_fn=_die_with_parent)
    except OSError as e:
        raise GuestError("cannot run %s: %s" % (args[0], e.strerror)) from e


def tail(path, lines=8):
    try:
        with open(path, "rb") as f:
            text = f.read()[-4000:].decode(errors="replace")
    except OSError:
        return ""
    # QEMU's command line, at the top of its log, helps nobody here.
    return "\n".join("  | " + x for x in text.splitlines()[-lines:]
                     if len(x) < 600)


def listens(path):
    """Does somebody listen on this unix socket?  The file alone is there a
    moment earlier, and connecting to see would use up a connection."""
    try:
        with open("/proc/net/unix") as f:
            return any(line.split()[3] == "00010000" and
                       line.rstrip("\n").endswith(" " + path) for line in f)
    except OSError:
        return os.path.exists(path)


class Base:
    """What a machine is made of, as far as its saved state depends on it."""

    def __init__(self, series="6.12", qemu=None, accel="tcg", smp=1, mem="1G",
                 cmdline="", machine="q35", suite=""):
        if machine not in MACHINES:
            raise GuestError("no machine '%s' (there are: %s)"
                             % (machine, " ".join(MACHINES)))
        self.qemu = qemu or paths.qemu_binary()
        self.image = paths.image(series, suite=suite)
        self.accel, self.smp, self.mem = accel, smp, mem
        self.machine = machine
        self.cmdline = (CMDLINE + " " + cmdline).strip()
        try:
            self.version = subprocess.check_output(
                [self.qemu, "--version"], text=True).splitlines()[0]
        except (OSError, subprocess.CalledProcessError) as e:
            raise GuestError("%s does not run: %s" % (self.qemu, e)) from e

    def machine_args(self):
        accel = "tcg,thread=multi" if self.accel == "tcg" else self.accel
        args = ["-accel", accel, *MACHINES[self.machine], "-cpu", "max",
                "-smp", str(self.smp), "-m", str(self.mem), "-nodefaults",
                "-display", "none", "-no-reboot", "-monitor", "none",
                "-device", "virtio-serial-pci,id=vser0",
                "-device", "virtserialport,bus=vser0.0,chardev=agent,"
                           "name=erdma.agent",
                "-device", "virtio-net-pci,id=usernic,netdev=user0,mac=%s,"
                           "romfile=" % USER_MAC]
        for i in range(0 if self.machine == "pc" else N_ROOT_PORTS):
            args += ["-device", "pcie-root-port,id=rp%d,chassis=%d,slot=%d"
                     % (i, i + 1, i + 1)]
        return args

    def port(self, i):
        """The bus that the i-th device is plugged into."""
        return "pci.0" if self.machine == "pc" else "rp%d" % i

    def boot_args(self):
        return ["-kernel", os.path.join(self.image, "vmlinux"),
                "-initrd", os.path.join(self.image, "initrd"),
                "-append", self.cmdline]

    def state_name(self):
        what = json.dumps([self.version, self.machine_args(), self.cmdline])
        return "guest-state-%s-%s" % (
            os.path.basename(self.image).replace("guest-image-", ""),
            hashlib.sha256(what.encode()).hexdigest()[:12])

    def arguments(self):
        """These settings for the command line of `savestate` below."""
        return json.dumps({"qemu": self.qemu, "image": self.image,
                           "accel": self.accel, "smp": self.smp,
                           "mem": self.mem, "cmdline": self.cmdline,
                           "machine": self.machine,
                           "version": self.version})

    @classmethod
    def from_arguments(cls, text):
        base = cls.__new__(cls)
        base.__dict__.update(json.loads(text))
        return base

    def saved_state(self):
        """The saved state's file, made if need be; None if that fails."""
        if self.state_name() in _states:
            return _states[self.state_name()]
        try:
            entry = paths.cache_entry(
                self.state_name(), "saved state of a booted guest",
                ["env", "PYTHONPATH=" + os.path.join(paths.ROOT, "scripts"),
                 sys.executable, "-c",
                 "from guestlib.machine import main; main()",
                 self.arguments()])
        except GuestError:
            return None
        _states[self.state_name()] = os.path.join(entry, "state.zst")
        return _states[self.state_name()]


class Machine:
    """A QEMU process.  start() in the main thread, then connect()."""

    def __init__(self, base, name, rundir, logdir, netdevs=(), extra=(),
                 restrict=False):
        self.base, self.name = base, name
        self.rundir, self.logdir = rundir, logdir
        self.netdevs, self.extra = list(netdevs), list(extra)
        self.restrict = restrict
        self.console_log = os.path.join(logdir, name + ".console.log")
        self.qemu_log = os.path.join(logdir, name + ".qemu.log")
        self.process = self.qmp = self.agent = None
        self.restored = False

    def path(self, what):
        return os.path.join(self.rundir, "%s.%s" % (self.name, what))

    def start(self, state=None, incoming=None):
        """From a saved state, for what comes in (-incoming), or boot."""
        self.restored = state is not None
        args = [self.base.qemu, "-name", self.name, *self.base.machine_args(),
                "-netdev", "user,id=user0,restrict=%s"
                           % ("on" if self.restrict else "off")]
        for kind in ("agent", "console"):
            args += ["-chardev", "socket,id=%s,path=%s,server=on,wait=off%s"
                     % (kind, self.path(kind), ",logfile=" + self.console_log
                        if kind == "console" else "")]
        args += ["-serial", "chardev:console"]
        for monitor in ("qmp", "watch"):
            args += ["-qmp", "unix:%s,server=on,wait=off"
                     % self.path(monitor)]
        for netdev in self.netdevs:
            args += ["-netdev", netdev]
        args += self.base.boot_args() + self.extra
        if state:
            incoming = "exec:exec zstd -qdc %s" % state
        if incoming:
            args += ["-incoming", incoming]
        with open(self.qemu_log, "wb") as log:
            log.write((" ".join("'%s'" % a if " " in a else a for a in args)
                       + "\n").encode())
        self.started = time.monotonic()
        self.process = spawn(args, self.qemu_log)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def state_is_bad(self):
        """Did it end because the saved state does not fit?  (Not because of
        an argument that QEMU does not like.)"""
        if not self.restored or self.agent or self.alive():
            return False
        text = tail(self.qemu_log, 30)
        return any(word in text for word in (
            "load of migration failed", "error while loading state",
            "Missing section", "Unknown savevm section", "zstd:",
            "Not a migration stream", "Unknown ramblock"))

    def fail(self, what):
        """A GuestError that says where to look."""
        where = self.qemu_log
        text = tail(self.qemu_log, 4)
        if self.alive():
            where = self.console_log
            text = tail(self.console_log)
        return GuestError("%s: %s (log: %s)\n%s" % (self.name, what, where,
                                                    text))

    def wait_socket(self, what, timeout=20):
        end = time.monotonic() + timeout
        while not listens(self.path(what)):
            if not self.alive():
                raise self.fail("QEMU ended with status %d"
                                % self.process.returncode)
            if time.monotonic() > end:
                raise self.fail("QEMU does not come up")
            time.sleep(0.01)

    def connect(self, boot_timeout=BOOT_TIMEOUT):
        """Wait until the guest answers."""
        self.wait_socket("qmp")
        self.wait_socket("agent")
        try:
            self.qmp = QMP(self.path("qmp"))
        except GuestError as e:
            if not self.alive():
                raise self.fail("QEMU ended") from e
            raise
        if self.restored:
            self._finish_restore()
        self.agent = Agent(self.path("agent"), self.name)
        if not self.restored:
            self._wait_boot(boot_timeout)
        if not self.agent.wait_ready(30, self.alive):
            raise self.fail("the guest does not answer")
        self.ready_after = time.monotonic() - self.started

    def _wait_boot(self, timeout):
        end = time.monotonic() + timeout
        while not self.agent.wait_hello(0.2):
            if not self.alive():
                raise self.fail("QEMU ended with status %d"
                                % self.process.returncode)
            if time.monotonic() > end:
                raise self.fail("the guest did not boot within %d s"
                                % timeout)

    def reset(self):
        """Press the reset button; returns when the guest has booted again."""
        self.qmp.command("set-action", reboot="reset")      # not -no-reboot
        self.restart(lambda: self.qmp.command("system_reset"))

    def restart(self, how, boot_timeout=BOOT_TIMEOUT):
        """Call how(), which makes the guest boot again, and return when it
        has.  What was running is gone."""
        agent, self.agent = self.agent, None
        agent.close()
        how()
        self.agent = Agent(self.path("agent"), self.name)
        self._wait_boot(boot_timeout)
        if not self.agent.wait_ready(30, self.alive):
            raise self.fail("the guest does not answer after its restart")

    def _finish_restore(self):
        end = time.monotonic() + 60
        while True:
            try:
                status = self.qmp.command("query-status")["status"]
            except GuestError as e:
                self.process.wait(5)
                raise self.fail("the saved state does not load") from e
            if status not in ("inmigrate", "prelaunch"):
                break
            if time.monotonic() > end:
                raise self.fail("the saved state takes too long to load")
            time.sleep(0.01)
        self.qmp.command("cont")

    def cpu_seconds(self):
        """Host CPU time that this QEMU has used."""
        with open("/proc/%d/stat" % self.process.pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / _HZ

    def stop(self):
        """End it at once; there is nothing on a disk to lose."""
        if self.agent:
            self.agent.close()
        if self.qmp:
            self.qmp.close()
        if self.process:
            self.process.kill()
            self.process.wait()


def save_state(base, out):
    """Boot once and save the state to out/state.zst."""
    with tempfile.TemporaryDirectory(prefix="erdma-") as rundir:
        machine = Machine(base, "guest", rundir, rundir)
        machine.start()
        try:
            machine.connect()
            done = machine.agent.start(
                "sync; echo 3 > /proc/sys/vm/drop_caches; sleep 1").wait()
            if not done.ok:
                raise machine.fail("the booted guest does not run commands")
            machine.qmp.command("stop")
            machine.qmp.command("migrate-set-parameters",
                                max_bandwidth=1 << 40)
            machine.qmp.command("migrate", uri="exec:exec zstd -q -3 -o "
                                + os.path.join(out, "state.zst"))
            end = time.monotonic() + 120
            while True:
                info = machine.qmp.command("query-migrate")
                if info.get("status") == "completed":
                    break
                if info.get("status") == "failed" or time.monotonic() > end:
                    raise machine.fail("saving the state failed: %s"
                                       % info.get("error-desc", "too slow"))
                time.sleep(0.05)
            print("booted in %.1f s, saved" % machine.ready_after)
        finally:
            machine.stop()


def main():
    """What makes a cache entry: the state goes to the working directory."""
    try:
        save_state(Base.from_arguments(sys.argv[1]), os.getcwd())
    except GuestError as error:
        sys.exit(str(error))
