#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: join.sh USER KERNEL: puts in the working directory what QEMU's
# -kernel and -initrd want, from the results of the two builds.

set -eu

user=$1
kernel=$2

ln "$kernel/vmlinux" vmlinux 2> /dev/null || cp "$kernel/vmlinux" vmlinux
cp "$kernel/version" version
cp "$user/packages" packages
cp "$kernel/sources.sha256" driver-sources.sha256

# The kernel takes archives one after the other if each starts at a multiple
# of four bytes.
cat "$user/root.cpio.zst" > initrd
size=$(stat -c %s initrd)
head -c $(((4 - size % 4) % 4)) /dev/zero >> initrd
cat "$kernel/modules.cpio.zst" >> initrd
