#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: build.sh SUITE DIR
#
# Builds the add-on "apps": Debian's Open MPI, libfabric, UCX, Redis and an SSH
# server, gloo's benchmark from its source package, and mpi-check, as
# user.cpio.zst.

. "$(dirname -- "$(readlink -f -- "$0")")/../../scripts/lib.sh"
. "$root/scripts/debian-root.sh"

[ $# -eq 2 ] || die_usage "addons/apps/build.sh: SUITE and DIR wanted"
suite=$1
out=$(mkdir -p -- "$2" && cd -- "$2" && pwd)
here=$root/addons/apps
[ "$suite" = trixie ] ||
    die "the add-on 'apps' is for a user space of trixie, not of $suite"

more_sources="deb-src $mirror $suite main"
debian_root "$out" "$suite" \
    --include=openmpi-bin,libopenmpi-dev,libfabric-bin,ucx-utils,dropbear-bin \
    --include=redis-server,redis-tools,libgloo-dev,libhiredis-dev \
    --include=librdmacm-dev,libibverbs-dev,gcc,g++,libc6-dev,binutils \
    --include=zstd,cpio,tar,xz-utils,dash,base-files \
    --include=bash,coreutils,findutils,grep,sed,mawk,libc-bin \
    --extract-hook='mkdir -p "$1/build"' \
    --extract-hook='cd "$1/build" && APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" \
        apt-get -qq -o APT::Sandbox::User=root \
        source --download-only --tar-only gloo' \
    --extract-hook="upload $root/addons/tree.sh /build/tree.sh" \
    --extract-hook="copy-in $here/programs /build" \
    --extract-hook="upload $here/tools.list /build/tools.list" \
    --extract-hook="upload $here/chroot-build.sh /build/chroot-build.sh" \
    --extract-hook="chroot \"\$1\" /bin/sh /build/chroot-build.sh"
need_results "$out" user.cpio.zst
