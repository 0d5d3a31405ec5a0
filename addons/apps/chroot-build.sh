#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs inside the build root: builds what Debian has as source only, and puts the
# add-on's tree together in /tree and packs it into /out.

. /build/tree.sh

mpi=/$lib/openmpi
ln -sf gcc /usr/bin/cc
ln -sf g++ /usr/bin/c++

echo "== gloo"
mkdir -p /build/gloo
tar -xf /build/gloo_*.orig.tar.* -C /build/gloo gloo/benchmark
g++ -std=c++17 -O1 -DNDEBUG -s -w -I/build/gloo -I/usr/include/hiredis \
    -I"$mpi/include" \
    -o "$tree/usr/bin/gloo-benchmark" \
    /build/gloo/gloo/benchmark/main.cc \
    /build/gloo/gloo/benchmark/options.cc \
    /build/gloo/gloo/benchmark/runner.cc \
    -L"$mpi/lib" -lgloo -lhiredis -libverbs -lmpi

echo "== valkey"
# Without it, the packages' programs have no RDMA.
mkdir -p /build/valkey
tar -xf /build/valkey_*.orig.tar.* -C /build/valkey --strip-components=1
valkey="valkey-server valkey-cli valkey-benchmark"
# shellcheck disable=SC2086
make -s -C /build/valkey/src -j "$(nproc)" MALLOC=libc BUILD_RDMA=yes \
    OPTIMIZATION=-O1 DEBUG= USE_SYSTEMD=no $valkey
for t in $valkey; do
    strip -o "$tree/usr/bin/$t" "/build/valkey/src/$t"
done

echo "== our program"
gcc -O2 -Wall -Wextra -Werror -s -I"$mpi/include" \
    -o "$tree/usr/bin/mpi-check" /build/programs/mpi-check.c \
    -L"$mpi/lib" -lmpi

echo "== Debian's programs"
tree_programs /build/tools.list
cp -L /usr/bin/mpirun.openmpi "$tree/usr/bin/mpirun"
mkdir -p "$tree/usr/share" "$tree/$lib/pmix2/lib" "$tree/$lib/ucx"
cp -r /usr/share/openmpi /usr/share/prte "$tree/usr/share/"
cp -r /etc/openmpi "$tree/etc/"
cp -r "/$lib/pmix2/share" "$tree/$lib/pmix2/"
cp -r "/$lib/pmix2/lib/pmix" "$tree/$lib/pmix2/lib/"
for m in ib rdmacm cma; do
    cp -L "/$lib/ucx/libuct_$m.so.0" "$tree/$lib/ucx/"
done

tree_libraries
tree_pack
