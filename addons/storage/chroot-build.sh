#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs inside the build root: puts the add-on's tree together in /tree and
# packs it into /out.

. /build/tree.sh

dpkg-deb -x /build/fio_*.deb /

echo "== programs"
tree_programs /build/tools.list

echo "== libraries"
sonames=$(objdump -p /usr/bin/fio | awk '$1 == "NEEDED" { print $2 }')
for pair in glfs_=libgfapi nbd_=libnbd nfs_=libnfs pmem_=libpmem \
    rados_=librados rbd_=librbd; do
    for so in $sonames; do
        case $so in
        "${pair#*=}".so.*)
            sh /build/stub-libraries.sh /usr/bin/fio "$tree/$lib" \
                "${pair%%=*}=$so"
            ;;
        esac
    done
done
tree_libraries

echo "== configuration"
cp /etc/netconfig "$tree/etc/"
printf '%s\n' 'sunrpc 111/tcp' 'nfs 2049/tcp' 'iscsi-target 3260/tcp' \
    > "$tree/etc/services"
mkdir -p "$tree/etc/iscsi" "$tree/var/lib/nfs"
cp /etc/iscsi/iscsid.conf "$tree/etc/iscsi/"
tree_pack
