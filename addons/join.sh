#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: join.sh ARCHIVE.cpio.zst...: puts the disks of an add-on in the
# working directory.  A guest unpacks 0.cpio, 1.cpio, ... from block devices,
# which have whole sectors.

set -eu

n=0
for archive; do
    zstd -q -d "$archive" -o $n.cpio
    size=$(stat -c %s $n.cpio)
    truncate -s $(((size + 511) / 512 * 512)) $n.cpio
    n=$((n + 1))
done
