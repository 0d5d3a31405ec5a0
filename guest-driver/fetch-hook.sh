#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs outside the build root (mmdebstrap hook): finds the newest kernel of
# series $ERDMA_SERIES in the configured suites and downloads its packages to
# $1/debs.  They are unpacked in there later, never installed: no initramfs
# tools, no postinst scripts.

set -eu

root=$1
export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG"

# linux-headers-amd64 depends on exactly one kernel version: the suite's own.
version=$(apt-cache show -a linux-headers-amd64 |
    awk -v s="$ERDMA_SERIES." '
        /^Version: / { ok = index($2, s) == 1 }
        ok && /^Depends:/ { print; exit }' |
    grep -o 'linux-headers-[0-9][^ ,]*' | sed 's/^linux-headers-//')
if [ -z "$version" ]; then
    echo "no kernel of series $ERDMA_SERIES on the mirror" >&2
    exit 1
fi
abi=${version%-amd64}
# Debian 12 names it after the kernel's series, later releases after its ABI.
kbuild=$(apt-cache show --no-all-versions "linux-headers-$version" |
    sed -n 's/^Depends:.*\(linux-kbuild-[^ ,]*\).*/\1/p')
number=$(echo "$version" | sed 's/^\([0-9]*\.[0-9]*\).*/\1/')

# From 7.x on the image package only depends on its parts.
case $number in
[1-6].*) image="linux-image-$version" ;;
*) image="linux-base-$version linux-modules-$version
          linux-binary-$version" ;;
esac

mkdir -p "$root/debs"
cd "$root/debs"
# shellcheck disable=SC2086
apt-get -qq -o APT::Sandbox::User=root download \
    "linux-headers-$version" "linux-headers-$abi-common" \
    "$kbuild" "linux-source-$number" $image
printf '%s\n' "$version" > version
printf '%s\n' "$number" > number
