#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: stub-libraries.sh PROGRAM DIR PREFIX=LIBRARY...
#
# Debian's fio is linked to the client libraries of several storage clusters:
# 60 MB that have to be there when it starts and that nothing here calls.
# Libraries that have the same names and the symbols it wants, and that end the
# program if one is called, take their place in DIR.  PREFIX is how the symbols
# begin that PROGRAM takes from LIBRARY.

set -eu

program=$1
dir=$2
shift 2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

for pair; do
    prefix=${pair%%=*}
    nm -D --undefined-only "$program" |
        awk -v p="$prefix" '$1 == "U" && index($2, p) == 1 { print $2 }' |
        sort -u > "$tmp/wanted"
    [ -s "$tmp/wanted" ] || {
        echo "$program takes nothing that begins with $prefix" >&2
        exit 1
    }
    sed 's/@.*//; s/.*/void &(void) { __builtin_trap(); }/' "$tmp/wanted" \
        > "$tmp/stub.c"
    # A version that the program asks for must exist, or the loader complains.
    awk -F @ '
        NF > 1 { names[$2] = names[$2] " " $1 ";" }
        END { for (v in names) print v " {" names[v] " };" }
    ' "$tmp/wanted" > "$tmp/versions"
    set -- -shared -fPIC -nostdlib -s -Wl,-soname,"${pair#*=}"
    [ ! -s "$tmp/versions" ] || set -- "$@" -Wl,--version-script,"$tmp/versions"
    gcc "$@" -o "$dir/${pair#*=}" "$tmp/stub.c"
done
