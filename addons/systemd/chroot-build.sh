#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs inside the build root: puts the add-on's tree together in /tree and
# packs it into /out.

. /build/tree.sh

echo "== systemd"
system=usr/lib/systemd/system
mkdir -p "$tree/$system"
cp /usr/lib/systemd/systemd "$tree/usr/lib/systemd/"
for f in systemd-executor systemd-shutdown; do
    [ ! -e "/usr/lib/systemd/$f" ] ||
        cp "/usr/lib/systemd/$f" "$tree/usr/lib/systemd/"
done
cp /usr/bin/systemctl /build/enter-systemd "$tree/usr/bin/"
chmod 755 "$tree/usr/bin/enter-systemd"
# No service of its own: what a unit depends on by default, and no more.
for t in sysinit basic sockets timers paths slices shutdown umount final \
    local-fs local-fs-pre swap multi-user network; do
    cp "/$system/$t.target" "$tree/$system/"
done

tree_libraries
tree_pack
