#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: build.sh SUITE DIR
#
# Builds the add-on "pyverbs": Debian's Python and pyverbs, and the tests from
# rdma-core's source package of the same version, as user.cpio.zst.

. "$(dirname -- "$(readlink -f -- "$0")")/../../scripts/lib.sh"
. "$root/scripts/debian-root.sh"

[ $# -eq 2 ] || die_usage "addons/pyverbs/build.sh: SUITE and DIR wanted"
suite=$1
out=$(mkdir -p -- "$2" && cd -- "$2" && pwd)
here=$root/addons/pyverbs

more_sources="deb-src $mirror $suite main"
status=0
(debian_root "$out" "$suite" \
    --include=python3-minimal,libpython3-stdlib,python3-pyverbs \
    --include=ibverbs-providers,zstd,cpio,tar,gzip,xz-utils,dash,base-files \
    --include=bash,coreutils,findutils,grep,sed,mawk,libc-bin \
    --extract-hook='mkdir -p "$1/build"' \
    --extract-hook='cd "$1/build" && APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" \
        apt-get -qq -o APT::Sandbox::User=root \
        source --download-only --tar-only rdma-core' \
    --extract-hook="upload $root/addons/tree.sh /build/tree.sh" \
    --extract-hook="upload $here/pyverbs-outcomes /build/pyverbs-outcomes" \
    --extract-hook="upload $here/chroot-build.sh /build/chroot-build.sh" \
    --extract-hook="chroot \"\$1\" /bin/sh /build/chroot-build.sh") ||
    status=$?
if [ "$status" -ne 0 ]; then
    # Mirrors keep the packages of old releases longer than the sources.
    ! grep -q '^E: .*fetch.*/rdma-core_.*404' "$out/build.log" ||
        die "the mirror lacks the source of rdma-core of $suite, which has" \
            "the tests: use --suite trixie, with any kernel, or set" \
            "DEBIAN_MIRROR to one that has it"
    exit "$status"
fi
need_results "$out" user.cpio.zst
