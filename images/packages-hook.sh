#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs outside the build root (mmdebstrap hook): writes name and version of
# the packages that make the image what it is to $1/out/packages.

set -eu

root=$1
shift
APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-cache show --no-all-versions \
    ibverbs-providers ibverbs-utils rdmacm-utils perftest iproute2 iperf3 \
    busybox "$@" |
    sed -n 's/^Package: //p; s/^Version: //p' | paste -d ' ' - - |
    sort > "$root/out/packages"
