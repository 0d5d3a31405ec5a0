#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: make-qemu-download.sh SUITE
#
# Fills the working directory, a new cache entry, with the suite's QEMU source
# package and its meson package. apt checks both against the signed index.

. "$(dirname -- "$(readlink -f -- "$0")")/lib.sh"
. "$root/scripts/lib-debian.sh"

debian_apt_init "$PWD/apt" "$1"
debian_apt source --download-only qemu ||
    die_env "cannot download QEMU's source package"
debian_apt download meson ||
    die_env "cannot download the meson package"
rm -rf apt
set -- qemu_*.dsc
[ $# -eq 1 ] && [ -f "$1" ] || die "not one .dsc file but: $*"
