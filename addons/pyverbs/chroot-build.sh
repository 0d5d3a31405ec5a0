#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs inside the build root: puts the add-on's tree together in /tree and
# packs it into /out.

. /build/tree.sh

echo "== Python"
cp -L /usr/bin/python3.[0-9]* "$tree/usr/bin/python3"
cp -r /usr/lib/python3.[0-9]* /usr/lib/python3 "$tree/usr/lib/"
rm -rf "$tree"/usr/lib/python3.*/test "$tree"/usr/lib/python3.*/ensurepip

echo "== tests"
tests=$tree/usr/share/pyverbs
mkdir -p "$tests"
tar -xf /build/rdma-core_*.orig.tar.* -C "$tests" --strip-components 1 \
    --wildcards 'rdma-core-*/tests'
# Other vendors' tests want their devices already when they are loaded.
rm -f "$tests"/tests/test_mlx5* "$tests"/tests/test_efa* \
    "$tests"/tests/test_cuda*
cp /build/pyverbs-outcomes "$tree/usr/bin/"
chmod 755 "$tree/usr/bin/pyverbs-outcomes"

tree_libraries
tree_pack
