#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: standalone-env.sh
#
# Makes what the standalone build needs (a QEMU tree for its headers, meson)
# and prints NAME=VALUE lines: QEMU_TREE, MESON_PYTHON, ccache's variables.
# Messages go to standard error.

. "$(dirname -- "$(readlink -f -- "$0")")/lib.sh"
. "$root/scripts/lib-qemu.sh"

variant=
qemu_paths
{
    sh "$root/scripts/cmd-build.sh" --tree --quiet
    meson_paths
    ccache_setup
} >&2
echo "QEMU_TREE=$qemu_tree"
echo "MESON_PYTHON=$meson_py"
for name in CCACHE_DIR CCACHE_BASEDIR CCACHE_NOHASHDIR CCACHE_MAXSIZE; do
    eval "echo \"$name=\$$name\""
done
