#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs inside the build root: turns the packages in /debs into /out.

set -eu

export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
version=$(cat /debs/version)
number=$(cat /debs/number)
out=/out
src=/src/linux-source-$number/drivers/infiniband
work=/work
mkdir -p $out $work /src /kernel /tmp

ldconfig
# Packages are unpacked, not configured: no alternatives system made this.
ln -sf mawk /usr/bin/awk

echo "== unpack $version"
for deb in /debs/linux-headers-* /debs/linux-kbuild-*; do
    dpkg-deb -x "$deb" /
done
for deb in /debs/linux-image-* /debs/linux-base-* /debs/linux-modules-* \
    /debs/linux-binary-*; do
    [ ! -e "$deb" ] || dpkg-deb -x "$deb" /kernel
done
# Packages of older kernels still carry /lib/modules.
if [ -d /kernel/lib ] && [ ! -h /kernel/lib ]; then
    mkdir -p /kernel/usr/lib
    cp -a /kernel/lib/. /kernel/usr/lib/
    rm -rf /kernel/lib
fi
ln -sfn usr/lib /kernel/lib

echo "== driver sources"
# Only these two folders are taken out of the kernel's source archive.
dpkg-deb --fsys-tarfile "/debs/linux-source-${number}_"*.deb |
    tar -xO "./usr/src/linux-source-$number.tar.xz" |
    xz -dc -T2 |
    tar -x -C /src --wildcards \
        "linux-source-$number/drivers/infiniband/hw/erdma/*" \
        "linux-source-$number/drivers/infiniband/sw/siw/*"

echo "== modules"
cp -r "$src/hw/erdma" "$src/sw/siw" /modules/* $work/
own=$(ls /modules)
(cd $work && printf 'obj-m += %s/\n' *) > /Kbuild
mv /Kbuild $work/
[ -e /proc/self ] || mount -t proc proc /proc
# The two symbols are off in Debian's configuration.  On make's command line
# they switch the drivers' own, untouched Makefiles on.
make -s -j"${ERDMA_JOBS:-2}" -C "/usr/src/linux-headers-$version" M=$work \
    CONFIG_INFINIBAND_ERDMA=m CONFIG_RDMA_SIW=m modules

echo "== proof: what was compiled is what Debian ships"
for pair in hw/erdma:erdma sw/siw:siw; do
    for f in "$src/${pair%:*}"/*.[ch] "$src/${pair%:*}/Makefile"; do
        cmp "$f" "$work/${pair#*:}/${f##*/}"
    done
done
mkdir -p $out/src/drivers/infiniband/hw $out/src/drivers/infiniband/sw
cp -r "$src/hw/erdma" $out/src/drivers/infiniband/hw/
cp -r "$src/sw/siw" $out/src/drivers/infiniband/sw/
(cd $out/src && find . -type f | LC_ALL=C sort | xargs sha256sum) \
    > $out/sources.sha256

echo "== kernel"
cat > /extract.sh <<'EOS'
# The payload of a bzImage is one compressed ELF file, found by its magic.
for magic in '\x28\xb5\x2f\xfd' '\xfd7zXZ\x00' '\x1f\x8b\x08'; do
    case $magic in
    *xb5*) tool='zstd -dc' ;;
    *7zXZ*) tool='xz -dc' ;;
    *) tool='gzip -dc' ;;
    esac
    for at in $(LC_ALL=C grep -aboP "$magic" "$1" | cut -d: -f1); do
        tail -c +$((at + 1)) "$1" | $tool > "$2" 2> /dev/null || :
        if [ "$(head -c 4 "$2" | tail -c 3)" = ELF ]; then
            exit 0
        fi
    done
done
exit 1
EOS
bz=
for f in /kernel/boot/vmlinuz-* "/kernel/usr/lib/modules/$version/vmlinuz"; do
    [ ! -e "$f" ] || bz=$f
done
sh /extract.sh "$bz" /vmlinux
strip -o $out/vmlinux --strip-debug /vmlinux 2> /dev/null ||
    cp /vmlinux $out/vmlinux
for f in /kernel/boot/config-* "/kernel/usr/lib/modules/$version/config"; do
    [ ! -e "$f" ] || cp "$f" $out/config
done

echo "== module tree"
from=/kernel/usr/lib/modules/$version
tree=/tree/usr/lib/modules/$version
mkdir -p "$tree/updates"
ln -s usr/lib /tree/lib     # depmod looks there
depmod -b /kernel "$version"
# Prints where in the tree it is.
put()
{
    rel=${1#"$from"/}
    rel=${rel#/kernel/lib/modules/"$version"/}
    rel=${rel%.xz}
    echo "./${tree#/tree/}/$rel"
    [ ! -e "$tree/$rel" ] || return 0
    mkdir -p "$tree/${rel%/*}"
    case $1 in
    *.xz) xz -dc "$1" > "$tree/$rel" ;;
    *) cp "$1" "$tree/$rel" ;;
    esac
}
deps()
{
    modprobe -d /kernel -S "$version" --show-depends "$1" 2> /dev/null |
        awk '$1 == "insmod" { print $2 }'
}
wanted=$(grep -v '^#' /modules.list)
for m in erdma siw $own; do
    strip --strip-debug -o "$tree/updates/$m.ko" "$work/$m/$m.ko"
    modinfo "$tree/updates/$m.ko"
    wanted="$wanted $(modinfo -F depends "$tree/updates/$m.ko" | tr , ' ')"
done
put_all()
{
    for m; do
        files=$(deps "$m")
        if [ -z "$files" ]; then
            grep -q "/${m}\.ko" "$from/modules.builtin" ||
                echo "no module $m in this kernel" >&2
        fi
        for f in $files; do
            put "$f"
        done
    done
}
# shellcheck disable=SC2086
put_all $wanted | LC_ALL=C sort -u > /base.txt
for list in /addons/*.list; do
    # shellcheck disable=SC2046
    put_all $(grep -v '^#' "$list") | LC_ALL=C sort -u |
        LC_ALL=C comm -13 /base.txt - > "$list.files"
done
cp "$from/modules.order" "$from/modules.builtin" "$tree/"
[ ! -e "$from/modules.builtin.modinfo" ] ||
    cp "$from/modules.builtin.modinfo" "$tree/"
# The guest's own index knows the add-ons' modules, too: there is no need to
# run depmod in a guest.
depmod -b /tree "$version"
rm /tree/lib
for list in /addons/*.list; do
    name=$(basename "$list" .list)
    (cd /tree && cpio --quiet -o -H newc -R 0:0) < "$list.files" \
        > "/$name.cpio"
    zstd -q -f -9 -T0 "/$name.cpio" -o "$out/addon-$name.cpio.zst"
done
cat /addons/*.files | (cd /tree && xargs rm -f)
(cd /tree && find . -mindepth 1 | LC_ALL=C sort |
    cpio --quiet -o -H newc -R 0:0) > /modules.cpio
zstd -q -f -9 -T0 /modules.cpio -o $out/modules.cpio.zst
printf '%s\n' "$version" > $out/version
echo "$(find /tree -name '*.ko' | wc -l) modules"
