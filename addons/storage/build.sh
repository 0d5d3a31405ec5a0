#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: build.sh SUITE DIR
#
# Builds the user space of the add-on "storage": Debian's fio, nvme-cli,
# NFS and open-iscsi programs, as user.cpio.zst.  It is laid over a guest made
# by images/build.sh, whose C library and rdma-core it uses.

. "$(dirname -- "$(readlink -f -- "$0")")/../../scripts/lib.sh"
. "$root/scripts/debian-root.sh"

[ $# -eq 2 ] || die_usage "addons/storage/build.sh: SUITE and DIR wanted"
suite=$1
out=$(mkdir -p -- "$2" && cd -- "$2" && pwd)
here=$root/addons/storage

case $suite in
trixie) libs=libaio1t64,libnuma1,librdmacm1t64 ;;
bookworm) libs=libaio1,libnuma1,librdmacm1 ;;
*) die "suite '$suite' is not known (trixie, bookworm)" ;;
esac

# fio is fetched without what it depends on, see stub-libraries.sh.
debian_root "$out" "$suite" \
    --include="nvme-cli,nfs-common,nfs-kernel-server,open-iscsi,$libs" \
    --include=libibverbs1,zlib1g,gcc,libc6-dev,binutils,dpkg \
    --include=zstd,cpio,dash,base-files,bash,coreutils,findutils,grep,sed,mawk,libc-bin \
    --extract-hook='mkdir -p "$1/build"' \
    --extract-hook='cd "$1/build" && APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" \
        apt-get -qq -o APT::Sandbox::User=root download fio' \
    --extract-hook="upload $root/addons/tree.sh /build/tree.sh" \
    --extract-hook="upload $here/tools.list /build/tools.list" \
    --extract-hook="upload $here/stub-libraries.sh /build/stub-libraries.sh" \
    --extract-hook="upload $here/chroot-build.sh /build/chroot-build.sh" \
    --extract-hook="chroot \"\$1\" /bin/sh /build/chroot-build.sh"
need_results "$out" user.cpio.zst
