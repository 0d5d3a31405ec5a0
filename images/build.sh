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

set -eu

usage()
{
    cat <<EOT
usage: build.sh --out DIR [--suite S] [--mirror URL]
  --out DIR     new directory for the result
  --suite S     Debian suite: trixie (default) or bookworm
  --mirror URL  Debian mirror (default: DEBIAN_MIRROR, or apt's own)
EOT
}

die()
{
    echo "images: $*" >&2
    exit 1
}

out= suite=trixie mirror=${DEBIAN_MIRROR:-}
while [ $# -gt 0 ]; do
    case $1 in
    --out) out=${2:-}; shift 2 || die "--out needs a value" ;;
    --suite) suite=${2:-}; shift 2 || die "--suite needs a value" ;;
    --mirror) mirror=${2:-}; shift 2 || die "--mirror needs a value" ;;
    -h | --help) usage; exit 0 ;;
    *) die "unknown option '$1'" ;;
    esac
done
[ -n "$out" ] || { usage >&2; exit 2; }
command -v mmdebstrap > /dev/null || die "mmdebstrap is not installed"

here=$(cd "$(dirname "$0")" && pwd)
if [ -z "$mirror" ]; then
    # shellcheck disable=SC2016
    mirror=$(apt-get indextargets --format '$(REPO_URI)' \
        'Created-By: Packages' 'Origin: Debian' 'Label: Debian' \
        2> /dev/null | sort -u | head -n 1)
fi
[ -n "$mirror" ] || die "no Debian mirror in apt's sources: set DEBIAN_MIRROR"

case $suite in
trixie) rdmacm=librdmacm1t64 ;;
bookworm) rdmacm=librdmacm1 ;;
*) die "suite '$suite' is not known (trixie, bookworm)" ;;
esac

mkdir -p "$out"
out=$(cd "$out" && pwd)
mmdebstrap --quiet --variant=extract \
    --aptopt='Apt::Install-Recommends "false"' \
    --aptopt='Acquire::Languages "none"' \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
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
    --extract-hook="$here/packages-hook.sh \"\$1\" $rdmacm" \
    --extract-hook="sync-out /out $out" \
    "$suite" /dev/null "deb $mirror $suite main" > "$out/build.log" 2>&1 ||
    { tail -n 15 "$out/build.log" >&2; die "failed, see $out/build.log"; }

[ -s "$out/root.cpio.zst" ] ||
    die "root.cpio.zst was not made, see $out/build.log"
