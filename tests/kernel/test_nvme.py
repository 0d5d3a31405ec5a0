# SPDX-License-Identifier: GPL-2.0-or-later
"""NVMe over RDMA: nvmet-rdma in guest 1, nvme-rdma in guest 2."""

import time

from storage import Counters, Log, configfs, fio, size, storage_test, verified

NAME = "nqn.2024-01.org.example:store"
# Without inline data: that takes as many receive elements as it has pages,
# and the HCA has one.
TARGET = """set -e
modprobe nvmet
modprobe nvmet_rdma
[ -b /dev/ram0 ] || modprobe brd rd_nr=2 rd_size=131072
cd /sys/kernel/config/nvmet
mkdir subsystems/%(name)s
echo 1 > subsystems/%(name)s/attr_allow_any_host
mkdir subsystems/%(name)s/namespaces/1
echo /dev/ram0 > subsystems/%(name)s/namespaces/1/device_path
echo 1 > subsystems/%(name)s/namespaces/1/enable
mkdir ports/1
cd ports/1
echo rdma > addr_trtype
echo ipv4 > addr_adrfam
echo %(ip)s > addr_traddr
echo 4420 > addr_trsvcid
echo 0 > param_inline_data_size
ln -s ../../subsystems/%(name)s subsystems/
"""
LINK = "/sys/kernel/config/nvmet/ports/1/subsystems/" + NAME
UNLINK = "rm " + LINK
RELINK = "ln -s /sys/kernel/config/nvmet/subsystems/%s %s" % (NAME, LINK)
TARGET_OFF = """
cd /sys/kernel/config/nvmet
rm -f ports/1/subsystems/*
rmdir ports/1 subsystems/*/namespaces/1 subsystems/*
rmmod nvmet_rdma
"""
DISK = "--filename=/dev/nvme0n1"


def target(ctx):
    configfs(ctx[1])
    if not ctx[1].run("[ -e %s ]" % LINK, check=False).ok:
        ctx[1].run(TARGET % {"name": NAME, "ip": ctx[1].ip})


def connect(ctx, more=""):
    ctx[2].run("modprobe nvme_rdma; nvme connect -t rdma -a %s -s 4420 -n %s "
               "--hostnqn=%s:host --hostid=%s %s" % (
                   ctx[1].ip, NAME, NAME,
                   "00000000-0000-4000-8000-000000000002", more), 60)
    ctx[2].wait_until("[ -b /dev/nvme0n1 ]", 20, "no namespace appeared")


def disconnect(ctx):
    ctx[2].run("nvme disconnect -n %s" % NAME, 30)
    ctx[2].wait_until("[ ! -e /sys/class/nvme/nvme0 ]", 10,
                      "the controller stays")


@storage_test("nvme")
def nvme(ctx):
    """Data through all operations that the two modules use."""
    log = Log(ctx)
    target(ctx)
    counters = Counters(ctx)
    connect(ctx)
    verified(ctx, ctx[2], DISK, "NVMe")
    same = [g.run("head -c 4194304 %s | sha256sum" % disk, 60).out
            for g, disk in ((ctx[1], "/dev/ram0"), (ctx[2], "/dev/nvme0n1"))]
    ctx.point(same[0] == same[1], "both sides see the same bytes", str(same))
    counters.check({
        1: ["mr-fast-registrations", "mr-read-invalidates"],
        2: ["mr-fast-registrations", "mr-remote-invalidates"]})
    disconnect(ctx)
    log.check()


@storage_test("nvme-verify-fails", is_long=True)
def nvme_verify_fails(ctx):
    """fio finds a byte that has changed in the target's memory."""
    target(ctx)
    connect(ctx)
    job = {"rw": "write", "bs": "64k", "size": "1m", "verify": "crc32c"}
    fio(ctx[2], DISK, "job", **job)
    fio(ctx[2], DISK, "job", verify_only=1, **job)
    ctx[1].run("printf X | dd of=/dev/ram0 bs=1 seek=500000 conv=notrunc "
               "2> /dev/null && sync")
    ctx[2].run("echo 3 > /proc/sys/vm/drop_caches")
    bad = fio(ctx[2], DISK, "job", check=False, verify_only=1, **job)
    disconnect(ctx)
    assert bad is None, "fio did not notice"


@storage_test("nvme-reconnect", is_long=True)
def nvme_reconnect(ctx):
    log = Log(ctx)
    target(ctx)
    for _ in range(size(2, 10)):
        connect(ctx)
        fio(ctx[2], DISK, "job", rw="write", bs="64k", size="1m",
            verify="crc32c")
        disconnect(ctx)
    no_qps(ctx)
    log.check()


def under_io(ctx, seconds):
    """Start I/O that lasts so long."""
    job = ctx[2].start("fio %s --name=job --rw=randrw --bs=16k --size=8m "
                       "--direct=1 --ioengine=libaio --iodepth=32 "
                       "--time_based --runtime=%d" % (DISK, seconds),
                       seconds + 30, merge=True)
    ctx[2].wait_until("awk '$3 == \"nvme0n1\" && $8 > 50 { ok = 1 } "
                      "END { exit !ok }' /proc/diskstats", 20,
                      "fio does not begin")
    return job


def no_qps(ctx):
    for guest in ctx.guests:
        guest.wait_until("[ -z \"$(rdma resource show qp)\" ]", 20,
                         "queue pairs stay")


@storage_test("nvme-target-comes-back", is_long=True)
def nvme_target_comes_back(ctx):
    """The target goes away under I/O and comes back: I/O goes on."""
    target(ctx)
    connect(ctx, "--ctrl-loss-tmo=600 --reconnect-delay=1")
    job = under_io(ctx, 8)
    ctx[1].run(UNLINK)
    time.sleep(1)
    ctx[1].run(RELINK)
    result = job.wait()
    disconnect(ctx)
    assert result.ok, result.out[-500:]


@storage_test("nvme-target-goes")
def nvme_target_goes(ctx):
    """The target goes away under I/O: an error, in bounded time."""
    target(ctx)
    connect(ctx, "--ctrl-loss-tmo=3 --reconnect-delay=1")
    job = under_io(ctx, 60)
    ctx[1].run(UNLINK)
    began = time.monotonic()
    result = job.wait(60)
    took = time.monotonic() - began
    ctx.point(not result.timed_out and not result.ok and took < 40,
              "I/O to a target that is gone ends with an error",
              "status %d after %.0f s" % (result.status, took))
    ctx[2].wait_until("[ ! -e /sys/class/nvme/nvme0 ]", 20,
                      "the controller stays")
    no_qps(ctx)
    # The target can be had again, and both modules can go.
    ctx[1].run(RELINK)
    connect(ctx)
    fio(ctx[2], DISK, "job", rw="write", bs="64k", size="1m", verify="crc32c")
    disconnect(ctx)
    ctx[1].run(TARGET_OFF, 30)
    ctx[2].run("rmmod nvme_rdma")
