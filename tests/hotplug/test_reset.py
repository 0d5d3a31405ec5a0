# SPDX-License-Identifier: GPL-2.0-or-later
"""Resets: of the function, of the machine."""

import gzip
import os
import pathlib
import subprocess
import tempfile

from guestlib.errors import GuestError
from hotplug import DRIVER, PCI, Load, plug_test, traffic

FUNCTION = "/sys/bus/pci/devices/" + PCI


@plug_test("flr", ("plug", "plug-native"), is_short=True)
def flr(ctx):
    """A function-level reset between unbind and bind."""
    guest = ctx[2]
    methods = guest.run("cat %s/reset_method" % FUNCTION).out.split()
    ctx.point("flr" in methods, "the function can be reset", repr(methods))
    for _ in range(ctx.rounds):
        guest.run("p=%s; d=/sys/bus/pci/devices/$p; echo $p > %s/unbind; "
                  "echo 1 > $d/reset; echo $p > %s/bind" % (PCI, DRIVER,
                                                           DRIVER), 60)
        guest.wait_active()
        ctx.figures.rounds += 1
    traffic(ctx)


@plug_test("flr-in-use")
def flr_in_use(ctx):
    """A function-level reset under driver and programs.  The driver has no
    handler for it: its next command times out, it gives the device up, and
    unbinding and binding it again makes all good."""
    guest = ctx[2]
    with Load(ctx, ("send", "rping")) as load:
        guest.run("echo 1 > %s/reset" % FUNCTION)
        load.stop()
    guest.run("p=%s; echo $p > %s/unbind; echo $p > %s/bind"
              % (PCI, DRIVER, DRIVER), 120)
    guest.wait_active()
    traffic(ctx)
    bad = guest.log_problems()
    for line in bad:
        assert "erdma" in line and "Call Trace" not in line, line


@plug_test("system-reset", rounds=1)
def system_reset(ctx):
    """The machine's reset button, under traffic.  Nobody tells the peer: who
    only waits for something goes on waiting, who sends finds out."""
    waiter, sender = ctx[1], ctx[2]
    for _ in range(ctx.rounds):
        with Load(ctx, ("write", "rping")) as load:
            sender.reset()
            load.waits(waiter, "write")     # rping sends now and then
        both_ways(ctx)
        with Load(ctx, ("write",)) as load:
            waiter.reset()
            (result,) = load.ended(sender).values()
            assert not result.ok, result
        both_ways(ctx)
        ctx.figures.rounds += 1


def kexec_boot():
    """The program, for any x86-64 guest."""
    source = pathlib.Path(__file__).with_name("kexec-boot.c")
    with tempfile.TemporaryDirectory(prefix="erdma-") as where:
        program = os.path.join(where, "kexec-boot")
        done = subprocess.run(
            ["gcc", "-std=gnu11", "-O2", "-Wall", "-Werror", "-static",
             "-o", program, str(source)], capture_output=True, text=True)
        assert not done.returncode, done.stderr
        return pathlib.Path(program).read_bytes()


@plug_test("kexec", rounds=1)
def kexec(ctx):
    """The guest's next kernel starts without a reset of anything: its driver
    finds the adapter as the last one left it, with queue pairs in use.  (It
    has lost its access to memory on the way, which peers may hear of.)"""
    guest, base = ctx[2], ctx[2].machine.base
    guest.qmp.events.clear()
    files = {"kexec-boot": kexec_boot()}
    for name in ("vmlinux", "initrd"):
        files[name] = pathlib.Path(base.image, name).read_bytes()
    for _ in range(ctx.rounds):
        for name, data in files.items():
            guest.run("gunzip > /tmp/" + name, 120,
                      stdin=gzip.compress(data, 1))
        guest.run("cd /tmp && chmod +x kexec-boot && "
                  "./kexec-boot vmlinux initrd '%s'" % base.cmdline)
        with Load(ctx, ("write", "rping")):
            guest.start("sleep 1; /tmp/kexec-boot --go", 0)
            guest.machine.restart(lambda: None)
            guest.restarted()
        both_ways(ctx)
        ctx.figures.rounds += 1
    try:
        guest.qmp.wait_event("RESET", 0.1)
    except GuestError:
        return
    raise AssertionError("the machine was reset")


def both_ways(ctx):
    ctx[2].run("ping -c 1 -W 10 %s" % ctx[1].ip, 30)
    traffic(ctx)
    traffic(ctx, server=2, client=1)
