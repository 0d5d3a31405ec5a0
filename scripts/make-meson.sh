#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: make-meson.sh DOWNLOAD
#
# Makes a Python environment with the downloaded meson in a new cache entry:
# the host's meson may be too old for QEMU, and nothing gets installed. QEMU's
# configure knows how to nest its own environment in this one.

. "$(dirname -- "$(readlink -f -- "$0")")/lib.sh"

"$PYTHON" -m venv --without-pip .
dpkg-deb -x "$1"/meson_*.deb deb
for site in lib/python3*/site-packages; do
    cp -r deb/usr/lib/python3/dist-packages/. "$site/"
done
rm -rf deb
bin/python3 -m mesonbuild.mesonmain --version
# Python adds compiled files later: only what matters is compared.
ls pyvenv.cfg lib/python3*/site-packages/mesonbuild/mesonmain.py >.verify
