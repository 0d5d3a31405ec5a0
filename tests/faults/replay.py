# SPDX-License-Identifier: GPL-2.0-or-later
"""A failure that is recorded in a real guest, and replayed (-icount rr=).

The guest boots, talks to itself until an injected fault ends that, and powers
off.  The replays have to repeat all events of the device, in their order.
"""

import hashlib
import os
import re
import subprocess
import tempfile

from guestlib.machine import Base, CMDLINE, tail

TIMEOUT = 400
REPLAYS = 2
RULE = ("on=cqe,action=status,status=retry-exc-err,queue=sq,opcode=send,"
        "probability=0.05,seed=3")
# Process 1, instead of the image's own
INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /busybox /proc /sys /dev
/bin/busybox --install -s /busybox
export PATH=/usr/sbin:/usr/bin:/busybox
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/shm
mount -t tmpfs tmpfs /dev/shm
ulimit -l unlimited
ip link set lo up
for m in virtio_net ib_uverbs rdma_ucm erdma; do modprobe $m; done
until [ -e /sys/class/net/eth0 ]; do sleep 0.1; done
ip addr add 10.9.0.1/24 dev eth0
ip link set eth0 up
until grep -q ACTIVE /sys/class/infiniband/*/ports/1/state; do sleep 0.1; done
timeout 60 rping -s -a 10.9.0.1 -C 50 &
sleep 1
timeout 20 rping -c -V -a 10.9.0.1 -C 50
echo "replay: status $?"
poweroff -f
"""


class ReplayError(Exception):
    pass


def make_initrd(base, work):
    """The image's, with INIT behind it as another archive"""
    path = os.path.join(work, "rr-init")
    with open(path, "w", encoding="ascii") as f:
        f.write(INIT)
    os.chmod(path, 0o755)
    more = subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], cwd=work,
                          input=b"rr-init\n", stdout=subprocess.PIPE,
                          check=True).stdout
    initrd = os.path.join(work, "initrd")
    with open(os.path.join(base.image, "initrd"), "rb") as old, \
            open(initrd, "wb") as new:
        data = old.read()
        new.write(data + bytes(-len(data) % 4) + more)
    return initrd


class Run:
    """One boot, which writes or follows the log rr.bin."""

    def __init__(self, base, work, mode):
        log, trace, console = (os.path.join(work, x)
                               for x in ("log", "trace", "console"))
        args = [base.qemu, "-accel", "tcg", "-icount",
                "shift=auto,rr=%s,rrfile=%s" % (mode, os.path.join(
                    work, "rr.bin")),
                "-machine", "q35", "-cpu", "max", "-m", "512M", "-nodefaults",
                "-display", "none", "-no-reboot", "-serial",
                "file:" + console, "-kernel",
                os.path.join(base.image, "vmlinux"), "-initrd",
                os.path.join(work, "initrd"), "-append",
                CMDLINE.replace("rdinit=/init", "rdinit=/rr-init"),
                "-netdev", "user,id=n0,restrict=on",
                "-object", "filter-replay,id=rr0,netdev=n0",
                "-device", "virtio-net-pci,netdev=n0,id=nic0,romfile=",
                "-device", "erdma,id=hca0,eni=nic0,seed=1",
                "-object", "erdma-fault,id=f0,device=hca0," + RULE,
                "-D", trace, "-trace", "erdma_*"]
        with open(log, "wb") as f:
            result = subprocess.run(args, stdin=subprocess.DEVNULL, stdout=f,
                                    stderr=f, timeout=TIMEOUT, check=False)
        if result.returncode:
            raise ReplayError("%s: status %d\n%s" % (mode, result.returncode,
                                                     tail(log)))
        with open(trace, encoding="ascii", errors="replace") as f:
            self.events = re.findall(r"\berdma_.*", f.read())
        with open(console, encoding="ascii", errors="replace") as f:
            self.said = f.read()

    def hash(self):
        return hashlib.sha256("\n".join(self.events).encode()).hexdigest()

    def first_difference(self, other):
        for i, pair in enumerate(zip(self.events, other.events)):
            if pair[0] != pair[1]:
                return "event %d: %s, then %s" % (i, *pair)
        return "%d events, then %d" % (len(self.events), len(other.events))


def check():
    """Returns what happened; raises ReplayError."""
    base = Base()
    with tempfile.TemporaryDirectory(prefix="erdma-replay-") as work:
        make_initrd(base, work)
        first = Run(base, work, "record")
        if not re.search("cq completion failed status 12", first.said) or \
                not any(x.startswith("erdma_fault") for x in first.events):
            raise ReplayError("no failure to replay: " + first.said[-500:])
        for _ in range(REPLAYS):
            again = Run(base, work, "replay")
            if again.hash() != first.hash():
                raise ReplayError(first.first_difference(again))
            if again.said != first.said:
                raise ReplayError("the console differs:\n" + again.said)
    return "%d events, %s, %d times again" % (
        len(first.events), first.hash()[:12], REPLAYS)
