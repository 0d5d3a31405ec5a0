# shellcheck shell=sh disable=SC2034
# SPDX-License-Identifier: GPL-2.0-or-later
#
# For the scripts of this suite: run something, then ask about it.
#
#   try [VAR=VALUE...] CMD...  run it; sets $status, and $out, $err (files)
#   ok NAME TEST...            a point: does the command TEST succeed?
#   says TEXT / errs TEXT      is TEXT in the last output / error output?
#   one_line                   was the last error output exactly one line?
#   exits N                    was that the last exit status?

set -u

points=0
failures=0
work=$(mktemp -d "${TMPDIR:-/tmp}/erdma-cli.XXXXXXXX") || exit 3
trap 'rm -rf -- "$work"' EXIT
trap 'exit 143' TERM INT HUP
out=$work/out
err=$work/err

# Nothing here may touch the user's cache or build.
user_cache=${ERDMA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/qemu-erdma}
ERDMA_CACHE=$work/cache
export ERDMA_CACHE
unset QEMU_SRC ERDMA_JOBS DEBIAN_MIRROR

try() {
    status=0
    env "$@" >"$out" 2>"$err" </dev/null || status=$?
}

ok() {
    points=$((points + 1))
    name=$1
    shift
    if "$@"; then
        echo "ok $points - $name"
    else
        failures=$((failures + 1))
        echo "not ok $points - $name"
        echo "# failed: $*; status $status"
        tail -n 8 "$out" | sed 's/^/# out: /'
        tail -n 8 "$err" | sed 's/^/# err: /'
    fi
}

says() {
    grep -qF -- "$1" "$out"
}

errs() {
    grep -qF -- "$1" "$err"
}

one_line() {
    [ "$(wc -l <"$err")" -eq 1 ] && grep -q '^erdma: ' "$err"
}

exits() {
    [ "$status" -eq "$1" ]
}

not() {
    ! "$@"
}

# One clear line on standard error and an exit code, as the issue wants it.
refuses() { # CODE TEXT
    exits "$1" && one_line && errs "$2"
}

done_testing() {
    echo "1..$points"
    [ "$failures" -eq 0 ]
}
