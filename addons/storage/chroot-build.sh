#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs inside the build root: puts the add-on's tree together in /tree and
# packs it into /out.

set -eu

export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
tree=/tree
lib=usr/lib/x86_64-linux-gnu
mkdir -p /out /tmp $tree/usr/bin $tree/usr/sbin $tree/$lib $tree/etc
# Packages are unpacked, not configured: no alternatives system made this.
ln -sf mawk /usr/bin/awk
ldconfig
dpkg-deb -x /build/fio_*.deb /

echo "== programs"
for t in $(grep -v '^#' /build/tools.list); do
    for d in usr/bin usr/sbin; do
        if [ -e "/$d/$t" ]; then
            cp -L "/$d/$t" "$tree/$d/$t"
            continue 2
        fi
    done
    echo "no program $t in this suite" >&2
    exit 1
done

echo "== libraries"
sonames=$(objdump -p /usr/bin/fio | awk '$1 == "NEEDED" { print $2 }')
for pair in glfs_=libgfapi nbd_=libnbd nfs_=libnfs pmem_=libpmem \
    rados_=librados rbd_=librbd; do
    for so in $sonames; do
        case $so in
        "${pair#*=}".so.*)
            sh /build/stub-libraries.sh /usr/bin/fio $tree/$lib \
                "${pair%%=*}=$so"
            ;;
        esac
    done
done
export LD_LIBRARY_PATH=$tree/$lib
find $tree/usr/bin $tree/usr/sbin -type f | while read -r f; do
    /lib64/ld-linux-x86-64.so.2 --list "$f"
done | awk '$2 == "=>" { print $3 }' | sort -u | while read -r l; do
    # What belongs together stays together: these are the guest's own.
    case ${l##*/} in
    libc.so.* | libm.so.* | libibverbs.so.* | librdmacm.so.* | libnl-*) ;;
    *) [ -e "$tree/$lib/${l##*/}" ] || cp -L "$l" "$tree/$lib/" ;;
    esac
done

echo "== configuration"
cp /etc/netconfig $tree/etc/
printf '%s\n' 'sunrpc 111/tcp' 'nfs 2049/tcp' 'iscsi-target 3260/tcp' \
    > $tree/etc/services
mkdir -p $tree/etc/iscsi $tree/var/lib/nfs
cp /etc/iscsi/iscsid.conf $tree/etc/iscsi/

(cd $tree && find . -mindepth 1 | sort | cpio --quiet -o -H newc -R 0:0) \
    > /user.cpio
zstd -q -f -9 -T0 /user.cpio -o /out/user.cpio.zst
ls -l /out
