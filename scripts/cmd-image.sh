#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: make the guest image (Debian user space, kernel, erdma.ko)
#: usage: ./erdma image [--kernel SERIES] [--suite SUITE] [--addon NAME] [--path]
#:
#: Makes what a guest boots from: Debian's kernel, the unmodified erdma and siw
#: modules built for it, and a small user space with rdma-core and perftest.
#: The result is kept in the cache and made again only when a recipe changed.
#:
#:   --kernel SERIES  6.12 (trixie, default), 6.1 (bookworm) or 7 (backports)
#:   --suite SUITE    Debian's release for the user space: bookworm (rdma-core
#:                    44), trixie (56), forky (the newest when it is made).
#:                    Default: the release of the kernel
#:   --addon NAME     an add-on for guests of that kernel instead of the image:
#:                    storage (fio, NVMe over fabrics, NFS, iSCSI), pyverbs
#:                    (rdma-core's tests), apps (Open MPI, Redis, ...), systemd
#:   --path           only print where the image (the add-on) is or would be

. "$(dirname -- "$(readlink -f -- "$0")")/lib.sh"

series=6.12
suite=
addon=
only_path=
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) show_help ;;
    --kernel)
        [ $# -ge 2 ] || die_usage "image: --kernel needs a value"
        series=$2
        shift 2
        ;;
    --suite)
        [ $# -ge 2 ] || die_usage "image: --suite needs a value"
        suite=$2
        shift 2
        ;;
    --addon)
        [ $# -ge 2 ] || die_usage "image: --addon needs a value"
        addon=$2
        shift 2
        ;;
    --path)
        only_path=1
        shift
        ;;
    *) die_usage "image: unknown option '$1' (see ./erdma image -h)" ;;
    esac
done
case $series in
6.1) own_suite=bookworm ;;
6.12 | 7 | 7.*) own_suite=trixie ;;
*) die_usage "image: unknown kernel series '$series' (6.1, 6.12 or 7)" ;;
esac
suite=${suite:-$own_suite}
case $suite in
bookworm | trixie | forky) ;;
*) die_usage "image: unknown suite '$suite' (bookworm, trixie or forky)" ;;
esac
case $addon in
'' | storage | pyverbs | apps | systemd) ;;
*) die_usage "image: unknown add-on '$addon' (storage, pyverbs, apps," \
    "systemd)" ;;
esac

# The name of an entry says what it was made from. The exact kernel and package
# versions are the mirror's at that time; the entry says which they were.
key() {
    find "$@" -type f -print0 | sort -z | xargs -0 cat -- | sha256sum |
        cut -c 1-12
}

recipe=$root/scripts/debian-root.sh
if [ -n "$addon" ]; then
    user_script=$root/addons/$addon/build.sh
    user_key=$(key "$root/addons/$addon" "$root/addons/tree.sh" "$recipe")
    user_entry=guest-addon-$addon-$suite-$user_key
    user_label="guest add-on $addon ($suite)"
    what=addon-$addon
else
    user_script=$root/images/build.sh
    user_key=$(key "$root/images" "$root/tests/guest/programs" \
        "$root/guest-driver/compat" "$recipe")
    user_entry=guest-user-$suite-$user_key
    user_label="guest user space ($suite)"
    what=image
fi
# Compat mode is user space.
kernel_key=$(key "$root"/guest-driver/*.* "$root/guest-driver/addons" \
    "$root/tests/guest/modules" "$recipe")
kernel_entry=guest-kernel-$series-$kernel_key
[ "$suite" = "$own_suite" ] || what=$what-$suite
entry=guest-$what-$series-$user_key-$kernel_key
if [ -n "$addon" ] && [ ! -e "$root/guest-driver/addons/$addon.list" ]; then
    # It has no modules: the same for all kernels of the suite.
    kernel_entry=
    entry=guest-addon-$addon-disk-$suite-$user_key
fi

if [ -n "$only_path" ]; then
    printf '%s\n' "$cache/$entry"
    exit 0
fi
! cache_valid "$entry" || exit 0

need_tools mmdebstrap zstd flock
need_space "$cache" 3000
need_space "${TMPDIR:-/tmp}" 3000

if [ -z "$kernel_entry" ]; then
    cache_make "$user_entry" "$user_label" sh "$user_script" "$suite" .
    cache_make "$entry" "disk of the $user_label" \
        sh "$root/addons/join.sh" "$cache/$user_entry/user.cpio.zst"
    say "guest add-on $addon is ready"
    exit 0
fi

# Both parts download and unpack a lot, each with one thread: at the same time.
sh "$root/scripts/cache.sh" make "$user_entry" \
    "$user_label" sh "$user_script" "$suite" . &
user_job=$!
status=0
sh "$root/scripts/cache.sh" make "$kernel_entry" \
    "guest kernel $series and its modules" \
    sh "$root/guest-driver/build.sh" "$series" . || status=$?
wait "$user_job" || status=$?
[ "$status" -eq 0 ] || exit "$status"

if [ -n "$addon" ]; then
    cache_make "$entry" "guest add-on $addon for kernel $series" \
        sh "$root/addons/join.sh" "$cache/$user_entry/user.cpio.zst" \
        "$cache/$kernel_entry/addon-$addon.cpio.zst"
    say "guest add-on $addon is ready"
    exit 0
fi
cache_make "$entry" "guest image for kernel $series" \
    sh "$root/images/join.sh" "$cache/$user_entry" "$cache/$kernel_entry"
say "guest image with kernel $(cat "$cache/$entry/version") is ready"
