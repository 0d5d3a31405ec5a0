# SPDX-License-Identifier: GPL-2.0-or-later
"""Add-ons: more programs and kernel modules for guests that want them.

The image of all guests stays small: an add-on reaches a running guest as
read-only disks that hold archives, one on each of the last root ports.
"""

import glob
import os

from . import paths
from .errors import GuestError
from .machine import N_ROOT_PORTS

NAMES = ("storage", "pyverbs", "apps", "systemd")
# The HCA and its NIC have the first two ports; leave some to the user.
MAX_DISKS = 4


def disks(names, kernel, suite=""):
    """The disk files of these add-ons, made if need be."""
    files = []
    for name in dict.fromkeys(names):
        if name not in NAMES:
            raise GuestError("no add-on '%s' (there are: %s)"
                             % (name, " ".join(NAMES)))
        entry = paths.image(kernel, name, suite)
        files += sorted(glob.glob(os.path.join(entry, "*.cpio")))
    if len(files) > MAX_DISKS:
        raise GuestError("these add-ons need %d disks: %d are possible"
                         % (len(files), MAX_DISKS))
    return files


def install(guest, files):
    """Unpack disk files into a guest; what is there already stays."""
    if not files:
        return
    first = guest.n_addon_disks
    guest.n_addon_disks += len(files)
    for i, path in enumerate(files, first):
        node = "addon%d" % i
        guest.qmp.command("blockdev-add", driver="file", node_name=node,
                          filename=path, read_only=True)
        guest.qmp.device_add("virtio-blk-pci", id=node, drive=node,
                             serial=node,
                             bus=guest.machine.base.port(N_ROOT_PORTS - 1 - i))
    guest.run("modprobe virtio_blk", 20)
    for i in range(first, guest.n_addon_disks):
        guest.run(
            "until d=$(grep -lx addon%d /sys/block/vd*/serial 2>/dev/null); "
            "do sleep 0.02; done; d=${d%%/serial}; "
            "cd / && cpio -id < /dev/${d##*/} 2>/dev/null" % i, 60)
