#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs inside the build root: puts the guest's tree together in /tree and
# packs it into /out.

set -eu

export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
tree=/tree
out=/out
lib=usr/lib/x86_64-linux-gnu
mkdir -p $out /tmp
# Packages are unpacked, not configured: no alternatives system made this.
ln -sf mawk /usr/bin/awk
ldconfig

mkdir -p $tree/usr/bin $tree/usr/sbin $tree/usr/lib64 $tree/$lib \
    $tree/etc $tree/proc $tree/sys $tree/dev $tree/run $tree/tmp \
    $tree/root $tree/busybox $tree/var/tmp
for l in bin sbin lib lib64; do
    ln -s usr/$l $tree/$l
done

echo "== our programs"
warn="-Wall -Wextra -Wno-unused-parameter -Werror"
# shellcheck disable=SC2086
gcc -O2 $warn -static -s -o $tree/usr/sbin/agent /build/agent.c
for d in /build/programs/*/; do
    name=$(basename "$d")
    common=
    ! grep -q '"../common.h"' "$d"*.c || common=/build/programs/common.c
    # shellcheck disable=SC2086
    gcc -O2 $warn -s -pthread -o "$tree/usr/bin/$name" "$d"*.c $common \
        -Wl,--as-needed -lrdmacm -libverbs
done
# shellcheck disable=SC2086
gcc -std=gnu11 -O2 $warn -s -fPIC -fvisibility=hidden -shared -pthread \
    -o $tree/usr/lib/liberdma-compat.so /build/compat/*.c
cp /build/compat/erdma-compat $tree/usr/bin/

echo "== Debian's programs"
for t in $(grep -v '^#' /build/tools.list); do
    for d in usr/bin usr/sbin; do
        if [ -e "/$d/$t" ]; then
            cp -L "/$d/$t" "$tree/$d/$t"
            continue 2
        fi
    done
    echo "no program $t in this suite"
done
ln -s busybox $tree/usr/bin/sh
for t in modprobe insmod lsmod rmmod depmod modinfo; do
    ln -s ../bin/kmod $tree/usr/sbin/$t
done

echo "== libraries"
mkdir -p $tree/$lib/libibverbs $tree/$lib/rsocket $tree/etc/libibverbs.d
for p in erdma rxe siw; do
    cp /$lib/libibverbs/lib$p-rdmav*.so $tree/$lib/libibverbs/
    cp /etc/libibverbs.d/$p.driver $tree/etc/libibverbs.d/
done
cp -L /$lib/rsocket/librspreload.so* $tree/$lib/rsocket/
# Loaded by dlopen(), so no link names them.
cp -L /$lib/libgcc_s.so.1 $tree/$lib/
cp -L /usr/lib64/ld-linux-x86-64.so.2 $tree/usr/lib64/ 2> /dev/null ||
    cp -L /lib64/ld-linux-x86-64.so.2 $tree/usr/lib64/
find $tree/usr -type f | while read -r f; do
    /lib64/ld-linux-x86-64.so.2 --list "$f" 2> /dev/null || :
done | awk '$2 == "=>" { print $3 }' | sort -u | while read -r l; do
    [ -e "$tree/$lib/${l##*/}" ] || cp -L "$l" "$tree/$lib/"
done

echo "== configuration"
echo 'root:x:0:0:root:/root:/bin/sh' > $tree/etc/passwd
echo 'root:x:0:' > $tree/etc/group
: > $tree/etc/ld.so.conf
{
    echo '127.0.0.1 localhost'
    i=1
    while [ $i -le 64 ]; do
        echo "10.9.0.$i guest$i"
        i=$((i + 1))
    done
} > $tree/etc/hosts
cat > $tree/etc/profile <<'EOS'
export PATH=/usr/sbin:/usr/bin:/busybox HOME=/root
PS1='\h:\w# '
EOS
cp /build/init $tree/init
chmod 755 $tree/init

(cd $tree && find . -mindepth 1 | sort | cpio --quiet -o -H newc -R 0:0) \
    > /root.cpio
zstd -q -f -9 -T0 /root.cpio -o $out/root.cpio.zst
ls -l $out
