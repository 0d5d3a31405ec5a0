# SPDX-License-Identifier: GPL-2.0-or-later
"""The HCA is unplugged and plugged again, idle and in use."""

from guestlib.errors import GuestError
from hotplug import EVERYWHERE, AsyncWatch, Load, plug_test, traffic, unplug


def memory(guest):
    """KiB that the kernel has allocated for itself."""
    return int(guest.run(
        "echo 3 > /proc/sys/vm/drop_caches; "
        "awk '/^SUnreclaim|^VmallocUsed|^KernelStack|^PageTables/ "
        "{ n += $2 } END { print n }' /proc/meminfo").out)


def resident(guest):
    """KiB of memory that this QEMU has for itself: without the guest's memory
    and the translated code, which are the large mappings."""
    total = size = 0
    with open("/proc/%d/smaps" % guest.machine.process.pid) as f:
        for line in f:
            name, *values = line.split()
            if name == "Size:":
                size = int(values[0])
            elif name == "Anonymous:" and size < 256 << 10:
                total += int(values[0])
    return total


@plug_test("unplug-idle", EVERYWHERE, rounds=100)
def unplug_idle(ctx):
    """Rounds with nothing in use; nothing grows."""
    guest = ctx[2]
    for i in range(ctx.rounds + 3):
        if i == 3:              # what is allocated once has been allocated
            traffic(ctx)
            kernel, qemu = memory(guest), resident(guest)
        unplug(ctx, guest)
        guest.add_hca()
        ctx.figures.rounds += 1
    traffic(ctx)
    kernel, qemu = memory(guest) - kernel, resident(guest) - qemu
    print("# after %d rounds the kernel has %+d KiB, QEMU %+d KiB" % (
        ctx.rounds, kernel, qemu), flush=True)
    # An HCA's queues are some 500 KiB in the kernel.
    ctx.point(kernel < 1024 + 8 * ctx.rounds, "the kernel does not grow",
              "%d KiB" % kernel)
    ctx.point(qemu < 6144 + 8 * ctx.rounds, "QEMU does not grow",
              "%d KiB" % qemu)


def one_round(ctx, names, at):
    """All of `names` run; the HCA at one end goes; everybody notices."""
    guest, peer = ctx[at], ctx[3 - at]
    with Load(ctx, names) as load, AsyncWatch(guest) as watch:
        unplug(ctx, guest)
        watch.wait("DEVICE_FATAL")
        for name, result in load.lost(guest).items():
            assert not result.ok, "%s: %r" % (name, result)
            if name == "rping":
                assert "device removal" in result.out, result
        # Clients see the connection end; servers of perftest, too.
        load.ended(peer)
    guest.add_hca()
    ctx.figures.rounds += 1


@plug_test("unplug-in-use", EVERYWHERE, is_short=True, rounds=20)
def unplug_in_use(ctx):
    """Under rping and perftest, polling and by events, at either end."""
    for i in range(ctx.rounds):
        one_round(ctx, ("write", "rping"), 2 - i % 2)
    traffic(ctx)


@plug_test("unplug-in-churn")
def unplug_in_churn(ctx):
    """While connections come and go."""
    for i in range(ctx.rounds):
        guest = ctx[2 - i % 2]
        with Load(ctx, ("churn",)) as load:
            unplug(ctx, guest)
            ended = load.lost if guest is load.client else load.ended
            for result in ended(load.client).values():
                assert not result.ok, result
            # A server hears of it if it has a connection just now.
            (_, _, server), *_ = load.running
            assert server.running() or not server.wait().ok, server.wait()
        guest.add_hca()
        ctx.figures.rounds += 1
    traffic(ctx)


@plug_test("nic-and-hca", EVERYWHERE, is_short=True)
def nic_and_hca(ctx):
    """The NIC cannot go before its HCA; both can go and come in order."""
    guest = ctx[2]
    for _ in range(ctx.rounds):
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
    for _ in range(ctx.rounds):
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
