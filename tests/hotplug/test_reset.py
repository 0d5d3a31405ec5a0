# SPDX-License-Identifier: GPL-2.0-or-later
"""Resets of the function."""

import hotplug
from hotplug import DRIVER, PCI, Load, plug_test, traffic

FUNCTION = "/sys/bus/pci/devices/" + PCI


@plug_test("flr", is_short=True)
def flr(ctx):
    """A function-level reset between unbind and bind."""
    guest = ctx[2]
    methods = guest.run("cat %s/reset_method" % FUNCTION).out.split()
    ctx.point("flr" in methods, "the function can be reset", repr(methods))
    for _ in range(hotplug.ROUNDS):
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
