#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: make-kernel-headers.sh SUITE PACKAGE
#
# Fills the working directory, a new cache entry, with the headers of the
# erdma driver out of a Debian kernel source package. The package is streamed:
# only these few files get unpacked.

. "$(dirname -- "$(readlink -f -- "$0")")/lib.sh"
. "$root/scripts/lib-debian.sh"

need_space "$PWD" 400
debian_apt_init "$PWD/apt" "$1"
debian_apt download "$2" || die_env "cannot download $2"
rm -rf apt
dpkg-deb --fsys-tarfile "$2"_*.deb | tar -xO "./usr/src/$2.tar.xz" |
    xz -dc | tar -x --strip-components=5 --wildcards \
    "$2/drivers/infiniband/hw/erdma/*.h"
rm -f "$2"_*.deb
test -s erdma_hw.h || die "$2 has no erdma driver"
