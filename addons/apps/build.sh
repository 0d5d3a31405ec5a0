#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: build.sh SUITE DIR
#
# Builds the add-on "apps": Debian's Open MPI, libfabric, UCX, fio, iperf, Redis
# and an SSH server, gloo's benchmark and Valkey with RDMA from their source
# packages, and mpi-check, as user.cpio.zst.

. "$(dirname -- "$(readlink -f -- "$0")")/../../scripts/lib.sh"
. "$root/scripts/debian-root.sh"

[ $# -eq 2 ] || die_usage "addons/apps/build.sh: SUITE and DIR wanted"
suite=$1
out=$(mkdir -p -- "$2" && cd -- "$2" && pwd)
here=$root/addons/apps
[ "$suite" = trixie ] ||
    die "the add-on 'apps' is for a user space of trixie, not of $suite"

# Valkey's client programs can do RDMA since 9; trixie has 8.1. Mirrors may be
# weeks behind with a suite that is not released.
more_sources="deb-src $mirror $suite main
deb-src $mirror forky main"
debian_root "$out" "$suite" \
    --aptopt='Acquire::Check-Valid-Until "false"' \
    --include=openmpi-bin,libopenmpi-dev,libfabric-bin,ucx-utils,dropbear-bin \
    --include=fio,iperf,netcat-traditional,redis-server,redis-tools \
    --include=libgloo-dev,libhiredis-dev \
    --include=librdmacm-dev,libibverbs-dev,gcc,g++,make,libc6-dev,binutils \
    --include=zstd,cpio,tar,gzip,xz-utils,dash,base-files \
    --include=bash,coreutils,findutils,grep,sed,mawk,libc-bin \
    --extract-hook='mkdir -p "$1/build"' \
    --extract-hook='cd "$1/build" && APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" \
        apt-get -qq -o APT::Sandbox::User=root \
        source --download-only --tar-only "gloo/'"$suite"'" valkey/forky' \
    --extract-hook="upload $root/addons/tree.sh /build/tree.sh" \
    --extract-hook="copy-in $here/programs /build" \
    --extract-hook="upload $here/tools.list /build/tools.list" \
    --extract-hook="upload $here/chroot-build.sh /build/chroot-build.sh" \
    --extract-hook="chroot \"\$1\" /bin/sh /build/chroot-build.sh"
need_results "$out" user.cpio.zst
