#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: build QEMU with the erdma device
#: usage: ./erdma build [--sanitize | --fuzz] [--qtests] [--tree] [--quiet]
#:                      [--path]
#:
#: Fetches QEMU 10.0 from Debian (once, into the cache), lays this repository
#: over a copy of it and builds qemu-system-x86_64 and qemu-img in build/.
#: QEMU_SRC=DIR takes another QEMU tree (10.0 to 10.2); it is copied, never
#: written to. The first build takes about 6 minutes on 2 cores, one in a
#: second clone less than a minute, one after an edit seconds.
#:
#:   --sanitize   with ASan and UBSan, in a build directory of its own (twice
#:                the time)
#:   --qtests     build the device's qtests too
#:   --tree       stop when the source tree is ready
#:   --quiet      no message when everything is up to date
#:   --path       print the QEMU program's path and do nothing
#:
#: ERDMA_JOBS=N limits the number of compilers that run at once.

. "$(dirname -- "$(readlink -f -- "$0")")/lib.sh"
. "$root/scripts/lib-qemu.sh"

variant=
qtests=
tree_only=
quiet=
path_only=
for arg; do
    case $arg in
    -h | --help) show_help ;;
    --sanitize | --fuzz)
        [ -z "$variant" ] ||
            die_usage "build: --sanitize and --fuzz are different builds"
        variant=${arg#--}
        ;;
    --qtests) qtests=1 ;;
    --tree) tree_only=1 ;;
    --quiet) quiet=1 ;;
    --path) path_only=1 ;;
    *) die_usage "build: unknown option '$arg' (see ./erdma build -h)" ;;
    esac
done
case ${ERDMA_JOBS:-1} in
*[!0-9]* | 0) die_usage "ERDMA_JOBS=$ERDMA_JOBS is not a number of jobs" ;;
esac

qemu_paths
if [ -n "$path_only" ]; then
    printf '%s\n' "$qemu_bin"
    exit 0
fi

sh "$root/scripts/cmd-deps.sh" --quiet
need_tools gcc ninja pkg-config ccache dpkg-source flock setsid

# ---- the tree ------------------------------------------------------------

# pristine: set $origin (what the tree is a copy of) and $source (its place)
pristine() {
    if [ -n "${QEMU_SRC:-}" ]; then
        source=$qemu_user
        origin=$(cd -- "$source" && find . -name .git -prune -o \
            -path './build*' -prune -o -type f -printf '%P %s %T@\n' |
            sort | sha256sum)
        case $(cat -- "$source/VERSION") in
        10.[0-2].*) ;;
        *) warn "QEMU $(cat -- "$source/VERSION") has not been tried here" ;;
        esac
        return
    fi
    origin=$(cd -- "$qemu_download" && ls qemu_*.dsc)
    origin=${origin#qemu_}
    origin=${origin%.dsc}
    need_space "$cache" 600
    cache_make "qemu-tree-$origin" "unpacking QEMU $origin" \
        sh "$root/scripts/make-qemu-tree.sh" "$qemu_download"
    source=$cache/qemu-tree-$origin/qemu
    case $(cat -- "$source/VERSION") in
    "$qemu_series".*) ;;
    *)
        die "Debian $qemu_suite has QEMU $(cat -- "$source/VERSION")," \
            "not $qemu_series: set QEMU_SRC"
        ;;
    esac
}

# A copy of $source in $qemu_tree. Debian's is made of hard links where it can
# be, since nobody writes into the files; the user's own is really copied.
copy_tree() {
    need_space "$build" 500
    rm -rf -- "$qemu_tree" "$qemu_tree.new"
    if [ -n "${QEMU_SRC:-}" ]; then
        mkdir -p -- "$qemu_tree.new"
        (cd -- "$source" && tar -cf - --exclude=./.git --exclude='./build*' .) |
            tar -xpf - -C "$qemu_tree.new"
    else
        cp -al -- "$source" "$qemu_tree.new" 2>/dev/null || {
            rm -rf -- "$qemu_tree.new"
            cp -a -- "$source" "$qemu_tree.new"
        }
    fi
    mv -- "$qemu_tree.new" "$qemu_tree"
}

# Edits that an older overlay made are not taken back: another overlay means a
# fresh copy.
tree_stamp() {
    printf '%s %s\n' "$origin" "$(cat "$root"/overlay/* | sha256sum)"
}

tree_is_current() {
    [ "$(cat -- "$qemu_tree/.erdma-origin" 2>/dev/null)" = "$(tree_stamp)" ]
}

lay_tree() {
    if ! tree_is_current; then
        [ -n "$quiet" ] || say "laying the device over QEMU"
        copy_tree
    fi
    sh "$root/overlay/overlay.sh" "$qemu_tree" || {
        rm -f -- "$qemu_tree/.erdma-origin"
        die "this QEMU ($(cat -- "$source/VERSION")) cannot take the device"
    }
    tree_stamp >"$qemu_tree/.erdma-origin"
}

# ---- the build -----------------------------------------------------------

# Every "auto" feature and every device is off unless named here or in
# overlay/erdma.mak. A change here costs everybody a full build.
#
# vhost: "eni=" must refuse a NIC whose packets bypass QEMU, tests show it.
# tools: qemu-img, for saved states in qcow2; only what is named gets built.
# pixman, fdt: not needed for these machines.
# firmwarepath: Debian's source package comes without any firmware.
configure_flags() {
    cat <<END
--target-list=x86_64-softmmu
--without-default-features
--without-default-devices
--with-devices-x86_64=erdma
--enable-tcg
--enable-kvm
--enable-slirp
--enable-vhost-kernel
--enable-vhost-net
--enable-vhost-user
--enable-tools
--enable-werror
--disable-docs
--disable-download
--disable-fdt
--disable-install-blobs
--firmwarepath=/usr/share/seabios:/usr/share/qemu:/usr/lib/ipxe/qemu
END
    if [ -n "$variant" ]; then
        printf '%s\n' --enable-asan --enable-ubsan
    fi
    if [ "$variant" = fuzz ]; then
        printf '%s\n' --enable-fuzzing
    fi
}

configure() {
    # The directories are part of the configuration: a clone may be moved.
    want=$(configure_flags && printf '%s\n' "$meson_py" "$qemu_tree" "$origin")
    [ "$(cat -- "$qemu_build/.erdma-flags" 2>/dev/null)" != "$want" ] ||
        return 0
    need_space "$build" 800
    rm -rf -- "$qemu_build"
    mkdir -p -- "$qemu_build/qemu-bundle/usr/share" \
        "$qemu_build/qemu-bundle/usr/lib"
    # In its build directory QEMU looks for firmware below qemu-bundle only.
    ln -s /usr/share/seabios "$qemu_build/qemu-bundle/usr/share/seabios"
    ln -s /usr/share/qemu "$qemu_build/qemu-bundle/usr/share/qemu"
    ln -s /usr/lib/ipxe "$qemu_build/qemu-bundle/usr/lib/ipxe"

    compiler=gcc
    [ "$variant" != fuzz ] || compiler=clang
    # shellcheck disable=SC2046 # one word a line, none has a blank
    run_logged "configuring QEMU" "$logs/${qemu_build##*/}-configure.log" \
        sh -c 'cd -- "$1" && shift && exec "$@"' configure "$qemu_build" \
        "../${qemu_tree##*/}/configure" --cc="ccache $compiler" \
        --python="$meson_py" $(configure_flags) ||
        die "QEMU's configure failed"
    printf '%s\n' "$want" >"$qemu_build/.erdma-flags"
}

build_targets() {
    if [ "$variant" = fuzz ]; then
        echo qemu-fuzz-x86_64
        return
    fi
    echo qemu-system-x86_64
    echo qemu-img
    if [ -n "$qtests" ]; then
        sed -n "s|^ *'\(erdma-[a-z0-9-]*-test\)',.*|tests/qtest/\1|p" \
            "$root/tests/qtest/meson.build"
    fi
}

build() {
    set -- ${ERDMA_JOBS:+-j "$ERDMA_JOBS"}
    # shellcheck disable=SC2046 # names without blanks
    set -- ninja -C "$qemu_build" "$@" $(build_targets)
    label="building QEMU"
    if [ ! -e "$qemu_bin" ]; then
        label="$label (about 6 min the first time, 1 min with a warm cache)"
    else
        # Nothing to do is the common case: do not even say so.
        # shellcheck disable=SC2034 # run_logged reads it
        announce_late=$quiet
    fi
    run_logged "$label" "$logs/${qemu_build##*/}-build.log" "$@" ||
        die "QEMU's build failed"
}

mkdir -p -- "$build" || die_env "cannot write to $build"
meson_paths
pristine
# Headers can be had while another run builds.
[ -z "$tree_only" ] || ! tree_is_current || exit 0
take_lock "$build/.lock" "building in $build"
lay_tree
[ -z "$tree_only" ] || exit 0
ccache_setup
configure
build
[ -n "$quiet" ] || say "built $qemu_bin"
