# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# For the part of an add-on's recipe that runs inside the build root, where it
# is /build/tree.sh: puts the add-on's tree together and packs it. To be
# sourced.
#
#   tree_programs FILE       copy the programs that FILE lists
#   tree_libraries           copy what the tree's programs and libraries are
#                            linked to, but for what is the guest's own
#   tree_pack                make /out/user.cpio.zst

set -eu

export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
tree=/tree
lib=usr/lib/x86_64-linux-gnu
mkdir -p /out /tmp $tree/usr/bin $tree/usr/sbin $tree/$lib $tree/etc
# Packages are unpacked, not configured: no alternatives system made this.
ln -sf mawk /usr/bin/awk
ldconfig

tree_programs() {
    grep -v '^#' "$1" | while read -r t; do
        for d in usr/bin usr/sbin; do
            if [ -e "/$d/$t" ]; then
                cp -L "/$d/$t" "$tree/$d/$t"
                continue 2
            fi
        done
        echo "no program $t in this suite" >&2
        exit 1
    done
}

tree_libraries() {
    find $tree -type f \( -perm /111 -o -name '*.so*' \) | while read -r f; do
        LD_LIBRARY_PATH=$tree/$lib /lib64/ld-linux-x86-64.so.2 \
            --list "$f" 2> /dev/null || :
    done | awk '$2 == "=>" { print $3 }' | sort -u | while read -r l; do
        # What belongs together stays together: these are the guest's own.
        case ${l##*/} in
        libc.so.* | libm.so.* | libibverbs.so.* | librdmacm.so.* | libnl-*) ;;
        *) [ -e "$tree/$lib/${l##*/}" ] || cp -L "$l" "$tree/$lib/" ;;
        esac
    done
}

tree_pack() {
    (cd $tree && find . -mindepth 1 | sort |
        cpio --quiet -o -H newc -R 0:0) > /user.cpio
    zstd -q -f -9 -T0 /user.cpio -o /out/user.cpio.zst
    ls -l /out
}
