#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: the scripts: bad input, the cache, the overlay

here=$(cd -P -- "$(dirname -- "$0")" && pwd)
root=$(cd -P -- "$here/../.." && pwd)
. "$here/lib.sh"
erdma=$root/erdma

# ---- usage ---------------------------------------------------------------

try "$erdma" -h
ok "-h succeeds" exits 0
for file in "$root"/scripts/cmd-*; do
    case $file in
    *.sh | *.py) ;;
    *) continue ;;
    esac
    sub=${file##*/cmd-}
    sub=${sub%.*}
    try "$erdma" -h
    ok "-h lists $sub" says "  $sub "
    try "$erdma" "$sub" -h
    ok "$sub -h succeeds" exits 0
    ok "$sub -h tells the usage" says "usage: ./erdma $sub"
    # QEMU's options are QEMU's business.
    [ "$sub" != qemu ] || continue
    action=
    [ "$sub" != guests ] || action=status
    # shellcheck disable=SC2086 # none or one
    try "$erdma" "$sub" $action --no-such-option
    ok "$sub refuses an unknown option" refuses 2 --no-such-option
done

try "$erdma"
ok "no sub-command is refused" exits 2
try "$erdma" frobnicate
ok "an unknown sub-command is refused" \
    refuses 2 "unknown sub-command 'frobnicate'"
try "$erdma" --frobnicate
ok "an unknown option is refused" refuses 2 "'--frobnicate'"
try "$erdma" ../lib
ok "a path is no sub-command" refuses 2 "'../lib'"
try "$erdma" check no-such-suite
ok "check refuses an unknown suite" refuses 2 "no suite 'no-such-suite'"
try ERDMA_JOBS=many "$erdma" build
ok "a wrong ERDMA_JOBS is refused" refuses 2 ERDMA_JOBS=many

ln -s "$erdma" "$work/link"
try "$work/link" build --path
ok "it works through a symbolic link" says "$root/build/qemu/"

# ---- the other parts -----------------------------------------------------

. "$here/cache.sh"
. "$here/machine.sh"
. "$here/overlay.sh"
. "$here/check.sh"
. "$here/outcomes.sh"
. "$here/asleep.sh"

done_testing
