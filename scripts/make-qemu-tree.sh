#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: make-qemu-tree.sh DOWNLOAD
#
# Unpacks Debian's QEMU source, with Debian's patches (they make the stripped
# tarball buildable), into the directory "qemu" of a new cache entry. apt has
# checked the files' hashes, hence --no-check.

. "$(dirname -- "$(readlink -f -- "$0")")/lib.sh"

dpkg-source --no-check -x "$1"/qemu_*.dsc qemu
test -s qemu/VERSION
