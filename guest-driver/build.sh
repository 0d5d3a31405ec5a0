#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds the kernel side of a guest: Debian's kernel of one series, the
# modules a guest may need from it, and erdma.ko and siw.ko made from the
# unmodified sources in Debian's linux-source package.
#
# All work is done in a throw-away Debian root; nothing of the host's
# compiler or kernel takes part.  The result is one directory:
#
#   vmlinux            uncompressed kernel, for -kernel (PVH entry)
#   modules.cpio.zst   initramfs part with /usr/lib/modules/VERSION; it also
#                      has the modules of tests/guest/modules
#   addon-*.cpio.zst   more modules, those of addons/*.list
#   version            the kernel's full version
#   config             the kernel's configuration
#   sources.sha256     checksums of the driver sources that were compiled
#   src/               those sources (drivers/infiniband/{hw/erdma,sw/siw})
#   build.log          the compiler's and modinfo's output
#
# usage: build.sh SERIES DIR; SERIES is 6.1 (bookworm), 6.12 (trixie), 7 or
# 7.N (the newest 7.x in trixie-backports)

. "$(dirname -- "$(readlink -f -- "$0")")/../scripts/lib.sh"
. "$root/scripts/debian-root.sh"

[ $# -eq 2 ] || die_usage "guest-driver/build.sh: SERIES and DIR wanted"
series=$1
out=$(mkdir -p -- "$2" && cd -- "$2" && pwd)
here=$root/guest-driver

# The headers of a kernel ask for the compiler of its own suite.
case $series in
6.1) suite=bookworm; gcc=gcc-12; pool=bookworm; libs=libelf1,libssl3 ;;
6.12) suite=trixie; gcc=gcc-14; pool=trixie; libs=libelf1t64,libssl3t64 ;;
7 | 7.*) suite=trixie; gcc=gcc-14; pool=trixie-backports
         libs=libelf1t64,libssl3t64 ;;
*) die "kernel series '$series' is not known (6.1, 6.12, 7)" ;;
esac
pahole=pahole
[ "$suite" != bookworm ] || pahole=dwarves

[ "$pool" = "$suite" ] || more_sources="deb $mirror $pool main"
export ERDMA_SERIES="$series" ERDMA_JOBS="${ERDMA_JOBS:-$(nproc)}"
debian_root "$out" "$suite" \
    --include="$gcc,make,kmod,xz-utils,zstd,cpio,dpkg,diffutils,$pahole,$libs" \
    --include=mawk,sed,grep,findutils,tar,bash,dash,coreutils,libc-bin \
    --extract-hook="$here/fetch-hook.sh \"\$1\"" \
    --extract-hook="upload $here/chroot-build.sh /chroot-build.sh" \
    --extract-hook="upload $here/modules.list /modules.list" \
    --extract-hook="copy-in $here/addons /" \
    --extract-hook="copy-in $root/tests/guest/modules /" \
    --extract-hook="chroot \"\$1\" /bin/sh /chroot-build.sh"
need_results "$out" vmlinux modules.cpio.zst version sources.sha256
