#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: run the built QEMU
#: usage: ./erdma qemu [QEMU-ARGUMENTS]
#:
#: Runs qemu-system-x86_64 with the arguments as they are; builds it first if
#: there is none yet. "./erdma qemu -device erdma,help" lists the device's
#: properties. For QEMU's own help: ./erdma qemu --help

. "$(dirname -- "$(readlink -f -- "$0")")/lib.sh"
. "$root/scripts/lib-qemu.sh"

[ "${1:-}" != -h ] || show_help
variant=
qemu_paths
[ -x "$qemu_bin" ] || sh "$root/scripts/cmd-build.sh" >&2
exec "$qemu_bin" "$@"
