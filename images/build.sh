#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds the user space of a guest: an initramfs part with Debian's rdma-core,
# perftest and friends, init, the agent, compat mode and our test programs.
#
# All work is done in a throw-away Debian root (packages are unpacked, not
# installed).  The result is one directory:
#
#   root.cpio.zst      the initramfs part; a kernel's modules are another one
#   packages           name and version of each package it was made from
#   build.log
#
# usage: build.sh SUITE DIR, SUITE is bookworm, trixie or forky

. "$(dirname -- "$(readlink -f -- "$0")")/../scripts/lib.sh"
. "$root/scripts/debian-root.sh"

[ $# -eq 2 ] || die_usage "images/build.sh: SUITE and DIR wanted"
suite=$1
out=$(mkdir -p -- "$2" && cd -- "$2" && pwd)
here=$root/images

case $suite in
trixie | forky) rdmacm=librdmacm1t64 ;;
bookworm) rdmacm=librdmacm1 ;;
*) die "suite '$suite' is not known (bookworm, trixie, forky)" ;;
esac

# Mirrors may be weeks behind with a suite that is not released; what they
# have is signed all the same.
set --
[ "$suite" != forky ] ||
    set -- --aptopt='Acquire::Check-Valid-Until "false"'

# Debian 12's packages still have files in /bin, /lib and /sbin; these have to
# be links, which every later release brings itself.
debian_root "$out" "$suite" "$@" \
    --setup-hook='for d in bin sbin lib lib64; do
        mkdir -p "$1/usr/$d" && ln -s "usr/$d" "$1/$d" || exit; done' \
    --include="busybox,kmod,libibverbs1,ibverbs-providers,$rdmacm" \
    --include=ibverbs-utils,rdmacm-utils,perftest,qperf,iproute2,iperf3 \
    --include=iputils-ping,ethtool,strace,netcat-openbsd,libgcc-s1 \
    --include=gcc,libc6-dev,libibverbs-dev,librdmacm-dev \
    --include=zstd,cpio,dash,bash,coreutils,findutils,grep,sed,mawk,libc-bin \
    --extract-hook='mkdir -p "$1/build"' \
    --extract-hook="upload $here/agent.c /build/agent.c" \
    --extract-hook="upload $here/init /build/init" \
    --extract-hook="upload $here/tools.list /build/tools.list" \
    --extract-hook="upload $here/chroot-build.sh /build/chroot-build.sh" \
    --extract-hook="copy-in $here/../tests/guest/programs /build" \
    --extract-hook="copy-in $here/../guest-driver/compat /build" \
    --extract-hook="chroot \"\$1\" /bin/sh /build/chroot-build.sh" \
    --extract-hook="$here/packages-hook.sh \"\$1\" $rdmacm"
need_results "$out" root.cpio.zst
