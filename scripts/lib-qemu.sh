# shellcheck shell=sh disable=SC2034
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Where the QEMU build of this clone is. Source lib.sh first.
#
#   qemu_paths         from QEMU_SRC and $variant (empty, sanitize or fuzz) set
#                      $qemu_tree, $qemu_build, $qemu_bin
#   meson_paths        make the download and meson's environment if need be,
#                      set $qemu_download and $meson_py
#   ccache_setup       set ccache's environment

qemu_suite=trixie
qemu_series=10.0

# Debian's tree and each tree of the user's have directories of their own, so
# that going back and forth costs nothing.
qemu_paths() {
    qemu_key=
    if [ -n "${QEMU_SRC:-}" ]; then
        qemu_user=$(readlink -f -- "$QEMU_SRC") && [ -d "$qemu_user" ] ||
            die "QEMU_SRC=$QEMU_SRC is not a directory"
        if [ ! -f "$qemu_user/VERSION" ] || [ ! -f "$qemu_user/configure" ] ||
            [ ! -f "$qemu_user/hw/Kconfig" ]; then
            die "QEMU_SRC=$QEMU_SRC is not a QEMU source tree"
        fi
        qemu_key=-$(printf %s "$qemu_user" | sha256sum | cut -c 1-8)
    fi
    qemu_tree=$build/qemu-src$qemu_key
    qemu_build=$build/qemu$qemu_key${variant:+-$variant}
    qemu_bin=$qemu_build/qemu-system-x86_64
    [ "$variant" != fuzz ] || qemu_bin=$qemu_build/qemu-fuzz-x86_64
}

meson_paths() {
    cache_valid "qemu-download-$qemu_suite" || need_space "$cache" 200
    cache_make "qemu-download-$qemu_suite" \
        "downloading QEMU's source (40 MB) and meson from Debian $qemu_suite" \
        sh "$root/scripts/make-qemu-download.sh" "$qemu_suite"
    qemu_download=$cache/qemu-download-$qemu_suite
    meson_version=$(cd -- "$qemu_download" && ls meson_*.deb)
    meson_version=$(printf %s "$meson_version" | cut -d_ -f2)
    meson_name=meson-$meson_version-py$("$PYTHON" -c \
        'import sys; print("%d.%d.%d" % sys.version_info[:3])')
    cache_make "$meson_name" "preparing meson" \
        sh "$root/scripts/make-meson.sh" "$qemu_download"
    meson_py=$cache/$meson_name/bin/python3
}

# The same objects for every clone: paths below it are made relative, and the
# directory does not count.
ccache_setup() {
    CCACHE_DIR=$cache/ccache
    CCACHE_BASEDIR=$root
    CCACHE_NOHASHDIR=1
    CCACHE_MAXSIZE=3G
    export CCACHE_DIR CCACHE_BASEDIR CCACHE_NOHASHDIR CCACHE_MAXSIZE
    mkdir -p -- "$CCACHE_DIR" || die_env "cannot write to the cache $cache"
}
