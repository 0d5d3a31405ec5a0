#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: build.sh --suite S --out DIR [--mirror URL]
#
# Builds the user space of the add-on "storage": Debian's fio, nvme-cli,
# NFS and open-iscsi programs, as user.cpio.zst.  It is laid over a guest made
# by images/build.sh, whose C library and rdma-core it uses.

set -eu

die()
{
    echo "addons/storage: $*" >&2
    exit 1
}

out= suite=trixie mirror=${DEBIAN_MIRROR:-}
while [ $# -gt 0 ]; do
    case $1 in
    --out) out=${2:-}; shift 2 || die "--out needs a value" ;;
    --suite) suite=${2:-}; shift 2 || die "--suite needs a value" ;;
    --mirror) mirror=${2:-}; shift 2 || die "--mirror needs a value" ;;
    *) die "unknown option '$1'" ;;
    esac
done
[ -n "$out" ] || die "--out DIR is missing"
if [ -z "$mirror" ]; then
    # shellcheck disable=SC2016
    mirror=$(apt-get indextargets --format '$(REPO_URI)' \
        'Created-By: Packages' 'Origin: Debian' 'Label: Debian' \
        2> /dev/null | sort -u | head -n 1)
fi
[ -n "$mirror" ] || die "no Debian mirror in apt's sources: set DEBIAN_MIRROR"

case $suite in
trixie) libs=libaio1t64,libnuma1,librdmacm1t64 ;;
bookworm) libs=libaio1,libnuma1,librdmacm1 ;;
*) die "suite '$suite' is not known (trixie, bookworm)" ;;
esac

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
# fio is fetched without what it depends on, see stub-libraries.sh.
mmdebstrap --quiet --variant=extract \
    --aptopt='Apt::Install-Recommends "false"' \
    --aptopt='Acquire::Languages "none"' \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --include="nvme-cli,nfs-common,nfs-kernel-server,open-iscsi,$libs" \
    --include=libibverbs1,zlib1g,gcc,libc6-dev,binutils,dpkg \
    --include=zstd,cpio,dash,base-files,bash,coreutils,findutils,grep,sed,mawk,libc-bin \
    --extract-hook='mkdir -p "$1/build"' \
    --extract-hook='cd "$1/build" && APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" \
        apt-get -qq -o APT::Sandbox::User=root download fio' \
    --extract-hook="upload $here/tools.list /build/tools.list" \
    --extract-hook="upload $here/stub-libraries.sh /build/stub-libraries.sh" \
    --extract-hook="upload $here/chroot-build.sh /build/chroot-build.sh" \
    --extract-hook="chroot \"\$1\" /bin/sh /build/chroot-build.sh" \
    --extract-hook="sync-out /out $out" \
    "$suite" /dev/null "deb $mirror $suite main" > "$out/build.log" 2>&1 ||
    { tail -n 15 "$out/build.log" >&2; die "failed, see $out/build.log"; }

[ -s "$out/user.cpio.zst" ] ||
    die "user.cpio.zst was not made, see $out/build.log"
