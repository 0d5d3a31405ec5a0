#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: overlay/overlay.sh QEMU-TREE
#
# Lays this repository over a QEMU source tree: symlinks to our files, and a
# handful of lines in QEMU's own. Doing it again changes nothing. A tree in
# which an anchor is missing, or is there twice, is refused before anything is
# written.
#
# The tree may consist of hard links to a pristine one: a changed file is
# written beside the old and renamed over it, never written into.

set -eu

repo=$(cd -P -- "$(dirname -- "$(readlink -f -- "$0")")/.." && pwd)

refuse() {
    echo "erdma: overlay: $*" >&2
    exit 1
}

[ $# -eq 1 ] || refuse "usage: overlay.sh QEMU-TREE"
tree=$1
if [ ! -f "$tree/VERSION" ] || [ ! -f "$tree/hw/Kconfig" ] ||
    [ ! -f "$tree/configure" ]; then
    refuse "$tree is not a QEMU source tree"
fi

# ---- the kinds of edit; $mode is "check" or "apply" ----------------------

replace() { # FILE: standard input becomes FILE's content
    cat >"$tree/$1.overlay"
    chmod --reference="$tree/$1" "$tree/$1.overlay"
    mv -- "$tree/$1.overlay" "$tree/$1"
}

want_file() {
    [ -f "$tree/$1" ] || refuse "$1: no such file in this QEMU"
}

want_anchor() { # FILE ANCHOR
    want_file "$1"
    n=$(grep -cxF -- "$2" "$tree/$1") || :
    [ "$n" = 1 ] || refuse "$1: $n lines '$2', want 1"
}

append() { # FILE LINE: LINE is the file's last, unless it is in there
    want_file "$1"
    if [ "$mode" = apply ] && ! grep -qxF -- "$2" "$tree/$1"; then
        { cat -- "$tree/$1"; printf '%s\n' "$2"; } | replace "$1"
    fi
}

insert() { # FILE ANCHOR LINE: LINE goes before the one line ANCHOR
    want_file "$1"
    ! grep -qxF -- "$3" "$tree/$1" || return 0
    want_anchor "$1" "$2"
    if [ "$mode" = apply ]; then
        A=$2 L=$3 awk '$0 == ENVIRON["A"] { print ENVIRON["L"] } { print }' \
            "$tree/$1" | replace "$1"
    fi
}

# The same for several lines, from a file in overlay/. Its first line tells
# whether they are in there already, so it must be one of a kind.
insert_file() { # FILE ANCHOR FRAGMENT
    want_file "$1"
    ! grep -qxF -- "$(head -n 1 "$repo/overlay/$3")" "$tree/$1" || return 0
    want_anchor "$1" "$2"
    if [ "$mode" = apply ]; then
        A=$2 F=$repo/overlay/$3 awk '
            $0 == ENVIRON["A"] {
                while ((getline line < ENVIRON["F"]) > 0) {
                    print line
                }
            }
            { print }' "$tree/$1" | replace "$1"
    fi
}

link() { # SOURCE-IN-REPOSITORY NAME-IN-TREE
    [ -d "$tree/$(dirname -- "$2")" ] ||
        refuse "$(dirname -- "$2"): no such directory in this QEMU"
    if [ "$mode" = apply ] &&
        [ "$(readlink -- "$tree/$2" || :)" != "$repo/$1" ]; then
        ln -sfn -- "$repo/$1" "$tree/$2"
    fi
}

# A link whose file is gone from the repository goes too.
unlink_stale() { # DIRECTORY-IN-TREE PATTERN
    for stale in "$tree/$1"/$2; do
        if [ -L "$stale" ] && [ ! -e "$stale" ]; then
            rm -f -- "$stale"
        fi
    done
}

# ---- the edits -----------------------------------------------------------

edits() {
    link hw/erdma hw/erdma
    append hw/Kconfig 'source erdma/Kconfig'
    append hw/meson.build "subdir('erdma')"
    insert meson.build "subdir('trace')" \
        "trace_events_subdirs += have_system ? ['hw/erdma'] : []"
    # -object filter-netem
    insert_file qapi/qom.json '# @FilterRedirectorProperties:' qom-netem.json
    insert qapi/qom.json "    'filter-redirector'," "    'filter-netem',"
    insert qapi/qom.json \
        "      'filter-redirector':          'FilterRedirectorProperties'," \
        "      'filter-netem':               'FilterNetemProperties',"
    # It names a netdev, so it has to wait until there are some.
    insert system/vl.c '        g_str_equal(type, "filter-dump") ||' \
        '        g_str_equal(type, "filter-netem") ||'

    # -object erdma-fault
    insert_file qapi/qom.json '# @FilterRedirectorProperties:' qom-fault.json
    insert qapi/qom.json "    'filter-redirector'," "    'erdma-fault',"
    insert qapi/qom.json \
        "      'filter-redirector':          'FilterRedirectorProperties'," \
        "      'erdma-fault':                'ErdmaFaultProperties',"

    # QEMU's parser of -object crashes at a number with a fraction.
    insert_file qapi/opts-visitor.c 'Visitor *' opts-number.frag
    insert qapi/opts-visitor.c \
        '    ov->visitor.type_size   = &opts_type_size;' \
        '    ov->visitor.type_number = &opts_type_number;'

    # What introspection of the device returns
    link qapi/erdma.json qapi/erdma.json
    insert qapi/qapi-schema.json "{ 'include': 'uefi.json' }" \
        "{ 'include': 'erdma.json' }"
    insert qapi/meson.build "    'uefi'," "    'erdma',"

    # QEMU's generic fuzzer
    insert_file tests/qtest/fuzz/generic_fuzz_configs.h \
        '        .name = "virtio-net-pci-slirp",' generic-fuzz.frag

    link overlay/erdma.mak configs/devices/x86_64-softmmu/erdma.mak

    # Our qtests are listed in our tests/qtest/meson.build, which QEMU's reads
    # as tests/qtest/erdma; their files must be where QEMU's own are.
    link tests/qtest tests/qtest/erdma
    insert tests/qtest/meson.build 'qtest_executables = {}' "subdir('erdma')"
    for file in "$repo"/tests/qtest/erdma-*-test.c \
        "$repo"/tests/qtest/libqos/*.[ch]; do
        [ ! -e "$file" ] ||
            link "${file#"$repo/"}" "${file#"$repo/"}"
    done
    if [ "$mode" = apply ]; then
        unlink_stale tests/qtest 'erdma-*-test.c'
        unlink_stale tests/qtest/libqos '*.[ch]'
    fi
}

mode=check
edits
mode=apply
edits
