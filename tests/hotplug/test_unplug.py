# SPDX-License-Identifier: GPL-2.0-or-later
"""The HCA is unplugged and plugged again, idle and in use."""

from guestlib.errors import GuestError
import hotplug
from hotplug import AsyncWatch, Load, plug_test, traffic, unplug


def memory(guest):
    """KiB that the kernel has allocated for itself."""
    return int(guest.run(
        "echo 3 > /proc/sys/vm/drop_caches; "
        "awk '/^SUnreclaim|^VmallocUsed|^KernelStack|^PageTables/ "
        "{ n += $2 } END { print n }' /proc/meminfo").out)


def resident(guest):
    """KiB of host memory that this QEMU has."""
    with open("/proc/%d/status" % guest.machine.process.pid) as f:
        return int(next(x for x in f if x.startswith("RssAnon:")).split()[1])


@plug_test("unplug-idle")
def unplug_idle(ctx):
    """Rounds with nothing in use; nothing grows."""
    guest = ctx[2]
    for i in range(hotplug.ROUNDS + 3):
        if i == 3:              # what is allocated once has been allocated
            kernel, qemu = memory(guest), resident(guest)
        unplug(ctx, guest)
        guest.add_hca()
        ctx.figures.rounds += 1
    traffic(ctx)
    kernel, qemu = memory(guest) - kernel, resident(guest) - qemu
    print("# after %d rounds the kernel has %+d KiB, QEMU %+d KiB" % (
        hotplug.ROUNDS, kernel, qemu), flush=True)
    # One HCA's queues are some 500 KiB in the kernel.
    ctx.point(kernel < 4096 + 50 * hotplug.ROUNDS, "the kernel does not grow",
              "%d KiB" % kernel)


def one_round(ctx, names, at):
    """All of `names` run; the HCA at one end goes; everybody notices."""
    guest, peer = ctx[at], ctx[3 - at]
    with Load(ctx, names) as load, AsyncWatch(guest) as watch:
        unplug(ctx, guest)
        watch.wait("DEVICE_FATAL")
        for name, result in load.ended(guest).items():
            assert not result.ok, "%s: %r" % (name, result)
            if name == "rping":
                assert "device removal" in result.out, result
        # Clients see the connection end; servers of perftest, too.
        load.ended(peer)
    guest.add_hca()
    ctx.figures.rounds += 1


@plug_test("unplug-in-use", is_short=True)
def unplug_in_use(ctx):
    """Under rping and perftest, polling and by events, at either end."""
    for i in range(hotplug.ROUNDS):
        one_round(ctx, ("write", "rping"), 2 - i % 2)
    traffic(ctx)


@plug_test("unplug-in-churn")
def unplug_in_churn(ctx):
    """While connections come and go."""
    for i in range(hotplug.ROUNDS):
        guest = ctx[2 - i % 2]
        with Load(ctx, ("churn",)) as load:
            unplug(ctx, guest)
            for result in load.ended(guest).values():
                assert not result.ok, result
            if guest is load.server:
                load.ended(load.client)
        guest.add_hca()
        ctx.figures.rounds += 1
    traffic(ctx)


@plug_test("nic-and-hca", ("plug", "plug-pc"), is_short=True)
def nic_and_hca(ctx):
    """The NIC cannot go before its HCA; both can go and come in order."""
    guest = ctx[2]
    for _ in range(hotplug.ROUNDS):
        try:
            guest.qmp.command("device_del", id="nic0")
        except GuestError as e:
            assert "'hca0', which must be unplugged first" in str(e), e
        else:
            raise AssertionError("the NIC of an HCA can be unplugged")
        unplug(ctx, guest)
        unplug(ctx, guest, "nic0")
        guest.add_nic()
        guest.add_hca()
        ctx.figures.rounds += 1
    traffic(ctx)
    traffic(ctx, server=2, client=1)


@plug_test("unplug-reloaded-driver")
def unplug_reloaded(ctx):
    """Unplugged while no driver is bound, and while one probes."""
    guest = ctx[2]
    for _ in range(hotplug.ROUNDS):
        guest.run("rmmod erdma")
        unplug(ctx, guest)
        guest.qmp.device_add("erdma", id="hca0", eni="nic0",
                             bus=guest.machine.base.port(1))
        guest.run("modprobe erdma")
        guest.wait_active()
        unplug(ctx, guest)
        # Ask for its removal as soon as it is there.
        guest.qmp.device_add("erdma", id="hca0", eni="nic0",
                             bus=guest.machine.base.port(1))
        again(ctx, guest)
        guest.add_hca()
        ctx.figures.rounds += 1
    traffic(ctx)


def again(ctx, guest):
    """A guest that is not done with plugging may miss the request: QEMU
    tells its user to repeat it."""
    for _ in range(10):
        try:
            unplug_once = guest.unplug("hca0", 6)
        except GuestError as e:
            if "no DEVICE_DELETED" not in str(e) and \
                    "already in the process" not in str(e):
                raise
        else:
            ctx.figures.removals.append(unplug_once)
            return
    raise AssertionError("it cannot be unplugged")
