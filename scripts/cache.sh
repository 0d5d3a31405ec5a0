#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The cache for scripts that are not shell:
#: usage: scripts/cache.sh path NAME              print the entry's directory
#:        scripts/cache.sh valid NAME             is it whole? (exit status)
#:        scripts/cache.sh make NAME LABEL CMD... make it unless it is valid
#: CMD runs in a new empty directory and fills it; see scripts/lib.sh.

. "$(dirname -- "$(readlink -f -- "$0")")/lib.sh"

case ${1:-} in
-h) show_help ;;
path) [ $# -eq 2 ] && printf '%s\n' "$cache/$2" ;;
valid) [ $# -eq 2 ] && cache_valid "$2" ;;
make)
    [ $# -ge 4 ] || die_usage "cache.sh make: NAME, LABEL and CMD wanted"
    shift
    cache_make "$@"
    ;;
*) die_usage "cache.sh: unknown action '${1:-}'" ;;
esac
