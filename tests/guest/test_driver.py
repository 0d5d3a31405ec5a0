# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver comes, goes and comes back."""

import re

from guestlib.programs import run_pair
from suite import test

PCI = "$(ls /sys/bus/pci/drivers/erdma | grep ^0000)"


def traffic(ctx):
    outcome = run_pair(ctx[1], ctx[2], "rping -s -C 5 -S 20000",
                       "rping -c -a %s -C 5 -S 20000 -V" % ctx[1].ip)
    assert not outcome.problem, outcome.problem


def active(guest):
    guest.wait_until("grep -q ACTIVE /sys/class/infiniband/*/ports/1/state",
                     20, "the port did not become active")


@test("probe")
def probe(ctx):
    """What the device says of itself reaches the application."""
    text = ctx[1].run("ibv_devinfo -v").out
    for key, value in (("transport", r"iWARP"), ("fw_ver", r"0\.2\.34"),
                       ("vendor_id", "0x1ded"), ("vendor_part_id", "4223"),
                       ("max_qp", "131071"), ("max_qp_wr", "8192|32768"),
                       ("max_cqe", "1048576"),
                       ("num_comp_vectors", "[1-9]"),
                       ("state", "PORT_ACTIVE"), ("max_sge_rd", "[1-9]")):
        found = re.search(r"^\s*%s:\s*(.*)$" % key, text, re.M)
        ctx.point(bool(found) and re.search(value, found.group(1)) is not None,
                  "%s is %s" % (key, value),
                  found.group(0) if found else "not in ibv_devinfo")


@test("vectors")
def vectors(ctx):
    """The driver has its interrupts."""
    lines = ctx[1].run("grep -c erdma /proc/interrupts").out
    assert int(lines) >= 2, "%s interrupts" % lines


@test("unbind-bind")
def unbind_bind(ctx):
    for _ in range(3):
        ctx[1].run("p=%s; echo $p > /sys/bus/pci/drivers/erdma/unbind && "
                   "[ ! -e /sys/class/infiniband/erdma_0 ] && "
                   "echo $p > /sys/bus/pci/drivers/erdma/bind" % PCI, 30)
        active(ctx[1])
        traffic(ctx)


@test("rmmod-modprobe")
def rmmod_modprobe(ctx):
    for guest in (ctx[1], ctx[2], ctx[1]):
        guest.run("rmmod erdma && [ ! -e /sys/class/infiniband/erdma_0 ] && "
                  "modprobe erdma", 30)
        active(guest)
        traffic(ctx)


@test("device-del-add")
def device_del_add(ctx):
    """The HCA is unplugged and plugged again."""
    guest = ctx[2]
    guest.qmp.command("device_del", id="hca0")
    guest.qmp.wait_event("DEVICE_DELETED", 20,
                         lambda d: d.get("device") == "hca0")
    guest.wait_until("[ ! -e /sys/class/infiniband/erdma_0 ]", 10,
                     "the RDMA device did not go")
    guest.add_hca()
    traffic(ctx)


@test("link-down-up")
def link_down_up(ctx):
    """The port follows the NIC's link."""
    ctx[1].run("ip link set eth0 down")
    ctx[1].wait_until("grep -q DOWN /sys/class/infiniband/erdma_0/ports/1/"
                      "state", 10, "the port did not go down")
    ctx[1].run("ip link set eth0 up")
    active(ctx[1])
    traffic(ctx)


def fills_packets(ctx, mtu):
    """64 KiB messages leave in packets as large as the MTU allows (but for
    the few that perftest sets itself up with)."""
    before = ctx[2].hca_stats()
    outcome = run_pair(ctx[1], ctx[2], "ib_write_bw -R -s 65536 -n 20",
                       "ib_write_bw -R -s 65536 -n 20 %s" % ctx[1].ip)
    assert not outcome.problem, outcome.problem
    after = ctx[2].hca_stats()
    payload, packets = (after[key] - before[key] for key in
                        ("tx-payload-bytes", "tx-data-packets"))
    assert 0.8 * mtu < payload / packets < mtu, \
        "%d bytes in %d packets at MTU %d" % (payload, packets, mtu)


@test("mtu")
def mtu(ctx):
    """A new MTU of the interface is taken while the device is in use."""
    for value in (1400, 4000, 1500):
        for guest in (ctx[1], ctx[2]):
            guest.run("ip link set eth0 mtu %d" % value)
        traffic(ctx)
        fills_packets(ctx, value)


@test("mtu-at-start", guests="pair-mtu8500")
def mtu_at_start(ctx):
    fills_packets(ctx, 8500)
