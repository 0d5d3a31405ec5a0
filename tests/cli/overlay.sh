# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The overlay, on a tree that has just the files it touches.

overlay=$root/overlay/overlay.sh

tiny_tree() { # DIR
    rm -rf "$1"
    mkdir -p "$1/hw" "$1/configs/devices/x86_64-softmmu" "$1/net" "$1/qapi" \
        "$1/system" "$1/tests/qtest/libqos" "$1/tests/qtest/fuzz"
    echo '        g_str_equal(type, "filter-dump") ||' >"$1/system/vl.c"
    echo 10.0.99 >"$1/VERSION"
    : >"$1/configure"
    echo 'source net/Kconfig' >"$1/hw/Kconfig"
    echo "subdir('net')" >"$1/hw/meson.build"
    printf '%s\n' 'first' "subdir('trace')" 'last' >"$1/meson.build"
    printf '%s\n' 'qtests_x86_64 = qtests_i386' 'qtest_executables = {}' \
        'foreach' >"$1/tests/qtest/meson.build"
    printf '%s\n' '# @FilterRedirectorProperties:' "    'filter-redirector'," \
        "      'filter-redirector':          'FilterRedirectorProperties'," \
        >"$1/qapi/qom.json"
    echo "{ 'include': 'uefi.json' }" >"$1/qapi/qapi-schema.json"
    echo "    'uefi'," >"$1/qapi/meson.build"
    printf '%s\n' 'Visitor *' \
        '    ov->visitor.type_size   = &opts_type_size;' \
        >"$1/qapi/opts-visitor.c"
    echo '        .name = "virtio-net-pci-slirp",' \
        >"$1/tests/qtest/fuzz/generic_fuzz_configs.h"
}

# content and times of every file: links too
state_of() { # DIR
    (cd "$1" && find . -type l -printf '%p %l %T@\n' -o \
        -printf '%p %s %T@\n' | sort && find . -type f -exec sha256sum {} +)
}

tree=$work/tree
tiny_tree "$tree"
cp -al "$tree" "$work/copy"
pristine=$(state_of "$tree")

try sh "$overlay" "$work/copy"
ok "the overlay fits a tree" exits 0
ok "... with the device linked in" \
    test "$(readlink "$work/copy/hw/erdma")" = "$root/hw/erdma"
ok "... with its line before the anchor" test \
    "$(grep -n -A 1 "hw/erdma" "$work/copy/meson.build" | tail -n 1)" = \
    "3-subdir('trace')"
ok "... not writing through hard links" \
    test "$(state_of "$tree")" = "$pristine"
ok "... with a fragment whole" test "$(sed -n '/FilterNetem/,/^$/p' \
    "$work/copy/qapi/qom.json" | head -n 3)" = \
    "$(head -n 3 "$root/overlay/qom-netem.json")"
once=$(state_of "$work/copy")
try sh "$overlay" "$work/copy"
ok "the overlay twice is the overlay once" \
    test "$(state_of "$work/copy")" = "$once"

ln -s "$root/tests/qtest/erdma-gone-test.c" \
    "$work/copy/tests/qtest/erdma-gone-test.c"
try sh "$overlay" "$work/copy"
ok "a link to a file that is gone goes" \
    test ! -L "$work/copy/tests/qtest/erdma-gone-test.c"

refused() { # NAME FILE TEXT: the tree is refused, naming both, and unchanged
    before=$(state_of "$tree")
    try sh "$overlay" "$tree"
    ok "$1: refused" refuses 1 "$2"
    ok "$1: the line is named" errs "$3"
    ok "$1: nothing is written" test "$(state_of "$tree")" = "$before"
}

tiny_tree "$tree"
printf 'first\nlast\n' >"$tree/meson.build"
refused "a missing anchor" "meson.build: 0 lines" "subdir('trace')"
tiny_tree "$tree"
echo "subdir('trace')" >>"$tree/meson.build"
refused "an anchor that is there twice" "meson.build: 2 lines" \
    "subdir('trace')"
tiny_tree "$tree"
rm "$tree/tests/qtest/meson.build"
refused "a missing file" "tests/qtest/meson.build" "no such file"
tiny_tree "$tree"
rm "$tree/VERSION"
refused "no QEMU tree" "is not a QEMU source tree" "$tree"

# The same through ./erdma build, which must not keep the copy either.
tiny_tree "$tree"
printf 'first\nlast\n' >"$tree/meson.build"
mkdir -p "$ERDMA_CACHE"
# The downloads are not what is tested here: borrow them.
for name in "$user_cache"/qemu-download-* "$user_cache"/meson-*; do
    [ ! -d "$name" ] || ln -s "$name" "$ERDMA_CACHE/"
done
before=$(state_of "$tree")
try QEMU_SRC="$tree" "$work/repo/erdma" build
ok "build refuses a tree without the anchor" exits 1
ok "... naming file and anchor" errs "meson.build: 0 lines 'subdir('trace')'"
ok "... and leaves the user's tree alone" \
    test "$(state_of "$tree")" = "$before"
