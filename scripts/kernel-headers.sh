#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: kernel-headers.sh
#
# Prints the directory with the Linux driver's own headers, of the kernel that
# the guests run. Where a guest's modules have been built already, theirs are
# taken; else Debian's kernel source is downloaded. Messages go to standard
# error.

. "$(dirname -- "$(readlink -f -- "$0")")/lib.sh"

for dir in "$cache"/guest-kernel-6.12-*/src/drivers/infiniband/hw/erdma; do
    if [ -f "$dir/erdma_hw.h" ] && [ -f "$dir/erdma_verbs.h" ]; then
        printf '%s\n' "$dir"
        exit 0
    fi
done
cache_make kernel-headers-6.12 \
    "downloading the Linux driver's headers (140 MB)" \
    sh "$root/scripts/make-kernel-headers.sh" trixie linux-source-6.12 >&2
printf '%s\n' "$cache/kernel-headers-6.12"
