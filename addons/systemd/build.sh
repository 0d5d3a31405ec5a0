#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: build.sh SUITE DIR
#
# Builds the add-on "systemd": Debian's system manager, to be run in namespaces
# of its own, as user.cpio.zst.

. "$(dirname -- "$(readlink -f -- "$0")")/../../scripts/lib.sh"
. "$root/scripts/debian-root.sh"

[ $# -eq 2 ] || die_usage "addons/systemd/build.sh: SUITE and DIR wanted"
suite=$1
out=$(mkdir -p -- "$2" && cd -- "$2" && pwd)
here=$root/addons/systemd

debian_root "$out" "$suite" \
    --include=systemd,zstd,cpio,dash,base-files \
    --include=bash,coreutils,findutils,grep,sed,mawk,libc-bin \
    --extract-hook='mkdir -p "$1/build"' \
    --extract-hook="upload $root/addons/tree.sh /build/tree.sh" \
    --extract-hook="upload $here/enter-systemd /build/enter-systemd" \
    --extract-hook="upload $here/chroot-build.sh /build/chroot-build.sh" \
    --extract-hook="chroot \"\$1\" /bin/sh /build/chroot-build.sh"
need_results "$out" user.cpio.zst
