# shellcheck shell=sh disable=SC2034,SC2154
# SPDX-License-Identifier: GPL-2.0-or-later
#
# For scripts that make a part of a guest in a throw-away Debian root, of
# packages that are unpacked, not installed. Source lib.sh first.
#
#   debian_root DIR SUITE OPTIONS...  make the root with mmdebstrap's OPTIONS;
#                                     what is in its /out goes to DIR, what
#                                     was said to DIR/build.log
#   need_results DIR FILE...          ends the script unless all were made
#
# $mirror is where packages come from; $more_sources may hold one more line of
# apt's sources.

. "$root/scripts/lib-debian.sh"

need_tools mmdebstrap
mirror=$(debian_mirror)
more_sources=

debian_root() {
    root_dir=$1
    root_suite=$2
    shift 2
    mkdir -p -- "$root_dir"
    mmdebstrap --quiet --variant=extract \
        --aptopt='Apt::Install-Recommends "false"' \
        --aptopt='Acquire::Languages "none"' \
        --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' \
        "$@" --extract-hook="sync-out /out $root_dir" \
        "$root_suite" /dev/null "deb $mirror $root_suite main" \
        ${more_sources:+"$more_sources"} >"$root_dir/build.log" 2>&1 || {
        tail -n 15 "$root_dir/build.log" >&2
        die "the build failed, see $root_dir/build.log"
    }
}

need_results() {
    result_dir=$1
    shift
    for result; do
        [ -s "$result_dir/$result" ] ||
            die "$result was not made, see $result_dir/build.log"
    done
}
