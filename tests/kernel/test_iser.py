# SPDX-License-Identifier: GPL-2.0-or-later
"""iSCSI extensions for RDMA: LIO in guest 1, open-iscsi in guest 2."""

from storage import Counters, Log, configfs, storage_test, verified

NAME = "iqn.2024-01.org.example:store"
# What targetcli would write to configfs, but for one thing: LIO opens a portal
# for TCP before it can be told to use iSER, and iWARP wants the same TCP port.
# So the portal begins its life in another network namespace.
TARGET = """set -e
mkdir -p /etc/target
modprobe target_core_iblock
modprobe iscsi_target_mod
modprobe ib_isert
[ -b /dev/ram0 ] || modprobe brd rd_nr=2 rd_size=131072
cd /sys/kernel/config/target
mkdir -p core/iblock_0/disk
echo udev_path=/dev/ram1 > core/iblock_0/disk/control
echo 1 > core/iblock_0/disk/enable
mkdir -p iscsi/%(name)s/tpgt_1/lun/lun_0
cd iscsi/%(name)s/tpgt_1
ln -s /sys/kernel/config/target/core/iblock_0/disk lun/lun_0/disk
echo 0 > attrib/authentication
echo 1 > attrib/generate_node_acls
echo 0 > attrib/demo_mode_write_protect
unshare -n sh -c "ip addr add %(ip)s/32 dev lo && ip link set lo up &&
    mkdir np/%(ip)s:3260"
echo 1 > np/%(ip)s:3260/iser
echo 1 > enable
"""
TARGET_OFF = """set -e
cd /sys/kernel/config/target/iscsi/%(name)s
echo 0 > tpgt_1/enable
rm tpgt_1/lun/lun_0/disk
rmdir tpgt_1/lun/lun_0 tpgt_1/np/* tpgt_1
cd ..
rmdir %(name)s
cd ..
rmdir core/iblock_0/disk core/iblock_0 iscsi
rmmod ib_isert
"""
INITIATOR = """set -e
modprobe ib_iser
modprobe sd_mod
mkdir -p /etc/iscsi /run/lock/iscsi /var/lib/iscsi
echo InitiatorName=iqn.2024-01.org.example:host > /etc/iscsi/initiatorname.iscsi
iscsid
"""


def admin(ctx, words, timeout=60):
    return ctx[2].run("iscsiadm -m node -T %s -p %s:3260 %s"
                      % (NAME, ctx[1].ip, words), timeout)


@storage_test("iser")
def iser(ctx):
    log = Log(ctx)
    configfs(ctx[1])
    ctx[1].run(TARGET % {"name": NAME, "ip": ctx[1].ip}, 60)
    ctx[2].run(INITIATOR, 60)
    counters = Counters(ctx)
    admin(ctx, "-o new -I iser")
    admin(ctx, "-l")
    ctx[2].wait_until("ls /sys/block/sd* > /dev/null 2>&1", 20,
                      "no disk appeared")
    verified(ctx, ctx[2], "--filename=/dev/sda", "iSER")
    same = [g.run("head -c 4194304 %s | sha256sum" % disk, 60).out
            for g, disk in ((ctx[1], "/dev/ram1"), (ctx[2], "/dev/sda"))]
    ctx.point(same[0] == same[1], "both sides see the same bytes", str(same))
    # The disk goes first: when the end of a session takes it away, the kernel
    # may warn of a flush of power management's work queue, over any transport.
    ctx[2].run("echo 1 > /sys/block/sda/device/delete", 20)
    admin(ctx, "-u")
    counters.check({
        1: ["mr-fast-registrations", "mr-read-invalidates"],
        2: ["mr-fast-registrations", "mr-remote-invalidates"]})
    ctx[2].run("iscsiadm -k 0; rmmod ib_iser")
    ctx[1].run(TARGET_OFF % {"name": NAME}, 60)
    log.check()
