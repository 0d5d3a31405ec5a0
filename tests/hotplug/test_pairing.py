# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver pairs the HCA with a NIC: in any order, or not at all; and it
comes and goes by itself."""

import hotplug
from hotplug import DRIVER, PCI, Load, plug_test, traffic, unplug

NIC = "/sys/bus/pci/drivers/virtio-pci"
# PCI function of eth0
ETH = "$(readlink -f /sys/class/net/eth0/device/.. | sed 's,.*/,,')"


def waits(guest):
    """Has the driver deferred its probe?"""
    guest.wait_until("grep -q . /sys/kernel/debug/devices_deferred", 20,
                     "the driver does not wait")
    assert not guest.rdma_devices(), guest.rdma_devices()


@plug_test("hca-before-nic", ("plug", "plug-native"), is_short=True)
def hca_before_nic(ctx):
    """The NIC's driver comes after the HCA: the probe waits for it."""
    guest = ctx[2]
    for _ in range(ctx.rounds):
        unplug(ctx, guest)
        nic = guest.run("p=%s; echo $p; echo $p > %s/unbind" % (ETH, NIC)) \
            .out.strip()
        guest.qmp.device_add("erdma", id="hca0", eni="nic0",
                             bus=guest.machine.base.port(1))
        guest.wait_until("grep -q 107f /sys/bus/pci/devices/*/device", 20,
                         "the HCA did not appear")
        waits(guest)
        guest.run("echo %s > %s/bind" % (nic, NIC))
        guest.wait_until("[ -e /sys/class/net/eth0 ]", 20,
                         "the NIC did not appear")
        guest.bring_up_link()
        guest.wait_active()
        ctx.figures.rounds += 1
    traffic(ctx)


@plug_test("wrong-mac", is_short=True)
def wrong_mac(ctx):
    """An HCA whose address no NIC has waits; with the NIC it comes up."""
    guest = ctx[2]
    for _ in range(ctx.rounds):
        unplug(ctx, guest)
        for port in ("port1", "port2"):
            guest.qmp.command("netdev_add", type="hubport", id=port, hubid=7)
        guest.qmp.device_add("erdma", id="hca1", netdev="port1",
                             mac="52:54:00:09:07:07",
                             bus=guest.machine.base.port(2))
        waits(guest)
        guest.qmp.device_add("virtio-net-pci", id="nic1", netdev="port2",
                             mac="52:54:00:09:07:07", romfile="",
                             bus=guest.machine.base.port(3))
        guest.wait_until("[ -e /sys/class/infiniband/erdma_0 ]", 20,
                         "the HCA does not come up with its NIC")
        for ident in ("hca1", "nic1"):
            unplug(ctx, guest, ident)
        for port in ("port1", "port2"):
            guest.qmp.command("netdev_del", id=port)
        guest.add_hca()
        ctx.figures.rounds += 1
    traffic(ctx)


@plug_test("unbind-in-use")
def unbind_in_use(ctx):
    """unbind and bind under traffic."""
    guest = ctx[2]
    for _ in range(ctx.rounds):
        with Load(ctx, ("send", "rping")) as load:
            guest.run("p=%s; echo $p > %s/unbind; echo $p > %s/bind"
                      % (PCI, DRIVER, DRIVER), hotplug.PATIENCE)
            load.lost(guest)
        guest.wait_active()
        ctx.figures.rounds += 1
    traffic(ctx)


@plug_test("rmmod-in-use")
def rmmod_in_use(ctx):
    """rmmod while programs have the device open and events come all the
    time: the driver can let go of them, and they end."""
    guest = ctx[2]
    for _ in range(ctx.rounds):
        with Load(ctx, ("churn", "rping")) as load:
            guest.run("rmmod erdma; modprobe erdma", hotplug.PATIENCE)
            load.lost(guest)
        guest.wait_active()
        ctx.figures.rounds += 1
    traffic(ctx)


@plug_test("rescan-polled", is_short=True)
def rescan_polled(ctx):
    """The function is removed and found again while a program asks for the
    devices all the time: it sees the last one."""
    guest = ctx[2]
    poller = guest.start("exec verbs-churn devices 86400", 0, merge=True)
    guest.run("d=$(readlink -f /sys/bus/pci/devices/%s); "
              "for i in $(seq %d); do echo 1 > $d/remove; "
              "echo 1 > /sys/bus/pci/rescan; done"
              % (PCI, ctx.rounds * 3), hotplug.PATIENCE * ctx.rounds)
    ctx.figures.rounds += 3 * ctx.rounds
    guest.wait_active()
    text = guest.run("verbs-churn devices 1").out
    assert text.split()[-1].startswith("erdma_"), text
    guest.run("sleep 0.5")
    assert poller.running(), poller.wait()
    assert poller.output().split()[-1].startswith("erdma_"), poller.output()
    poller.kill()
    poller.wait()
    traffic(ctx)
