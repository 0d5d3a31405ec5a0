#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: make-cross-root.sh
#
# Fills the working directory, a new cache entry, with root/: a Debian tree
# with compilers for s390x and i386, GLib for both, and QEMU's user emulators,
# for tests/cross.

. "$(dirname -- "$(readlink -f -- "$0")")/lib.sh"
. "$root/scripts/lib-debian.sh"

need_tools mmdebstrap
need_space "$PWD" 3000
mirror=$(debian_mirror)
# Bookworm's packages of all three are there as a whole; of later suites some
# of s390x are missing from mirrors.
mmdebstrap --quiet --variant=extract --architectures=amd64,s390x,i386 \
    --aptopt='Apt::Install-Recommends "false"' \
    --aptopt='Acquire::Languages "none"' \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --include=gcc-s390x-linux-gnu,libc6-dev-s390x-cross \
    --include=gcc-i686-linux-gnu,libc6-dev-i386-cross \
    --include=libglib2.0-dev:s390x,libglib2.0-dev:i386 \
    --include=meson,ninja-build,pkg-config,qemu-user-static \
    --include=python3-minimal,dash,coreutils \
    bookworm root "deb $mirror bookworm main" >build.log 2>&1 || {
    tail -n 15 build.log >&2
    die "could not make a root for cross compilers"
}
mkdir -p root/src root/qemu root/dev root/proc root/tmp
