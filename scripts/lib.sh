# shellcheck shell=sh disable=SC2034
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What every script here shares; source it first thing:
#
#     . "$(dirname -- "$(readlink -f -- "$0")")/lib.sh"
#
# Paths (read only for the sourcing script)
#   $root     the clone             $build   its build directory
#   $logs     logs of this clone    $cache   what clones share, $ERDMA_CACHE
#   $PYTHON   the python3 to use: the system's, since QEMU's build wants venv
#
# Functions
#   say / warn TEXT          a line "erdma: TEXT" on stdout / stderr
#   die TEXT                 failure: the line, exit 1
#   die_usage TEXT           wrong usage: the line, exit 2
#   die_env TEXT             the machine lacks something: the line, exit 3
#   show_help                print the script's "#:" lines, exit 0
#   need_tools TOOL...       exit 3 unless all are in PATH
#   need_space DIR MIB       exit 3 unless DIR's file system has MIB free
#   run_logged LABEL LOG CMD...   run quietly, with signs of life
#   cache_valid NAME         is the cache entry complete and unharmed?
#   cache_make NAME LABEL CMD...  make the entry unless it is valid
#   scratch_dir              set $scratch to a directory that dies with us
#   take_lock FILE LABEL     hold FILE's lock until the end of the script, or
#                            until release_lock; LABEL says what others wait for
#   on_exit CMD              run CMD (a string) when the script ends
#
# A script that sources this file must not set its own EXIT, INT, TERM or HUP
# trap (use on_exit), nor use file descriptors 8 and 9.

set -eu

root=$(cd -P -- "$(dirname -- "$(readlink -f -- "$0")")" && pwd)
while [ ! -f "$root/scripts/lib.sh" ]; do
    if [ "$root" = / ]; then
        echo "erdma: $0 is not inside the repository" >&2
        exit 1
    fi
    root=$(dirname -- "$root")
done
build=$root/build
logs=$build/logs
cache=${ERDMA_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/qemu-erdma}
case $cache in
/*) ;;
*) cache=$PWD/$cache ;;
esac
# Sub-processes must see the same cache whatever directory they run in.
ERDMA_CACHE=$cache
PYTHON=/usr/bin/python3
[ -x "$PYTHON" ] || PYTHON=python3
LC_ALL=C.UTF-8
export ERDMA_CACHE PYTHON LC_ALL

say() {
    printf 'erdma: %s\n' "$*"
}

warn() {
    printf 'erdma: %s\n' "$*" >&2
}

die() {
    warn "$@"
    exit 1
}

die_usage() {
    warn "$@"
    exit 2
}

die_env() {
    warn "$@"
    exit 3
}

show_help() {
    sed -n 's/^#: \{0,1\}//p' "$0"
    exit 0
}

need_tools() {
    need_missing=
    for need_tool; do
        command -v "$need_tool" >/dev/null 2>&1 ||
            need_missing="$need_missing $need_tool"
    done
    [ -z "$need_missing" ] ||
        die_env "missing tool:$need_missing (run ./erdma deps)"
}

need_space() {
    need_dir=$1
    while [ ! -d "$need_dir" ]; do
        need_dir=$(dirname -- "$need_dir")
    done
    need_free=$(df -Pk -- "$need_dir" | awk 'NR == 2 { print int($4 / 1024) }')
    [ "$need_free" -ge "$2" ] ||
        die_env "not enough disk space for $1: $2 MiB wanted," \
            "$need_free MiB free"
}

# ---- what happens at the end of a script -------------------------------

lib_job=
lib_tmp=
lib_exit_cmds=

on_exit() {
    lib_exit_cmds="$1
$lib_exit_cmds"
}

# The job may not have made its process group yet: then it is alone.
lib_kill_group() {
    # This form is the one that dash, bash and busybox all understand.
    kill -s TERM -- "-$1" 2>/dev/null || kill -s TERM "$1" 2>/dev/null || :
}

lib_exit() {
    lib_rc=$?
    trap - EXIT
    trap '' INT TERM HUP
    if [ -n "$lib_job" ]; then
        lib_kill_group "$lib_job"
        wait "$lib_job" 2>/dev/null || :
    fi
    [ -z "$lib_tmp" ] || rm -rf -- "$lib_tmp"
    eval "$lib_exit_cmds" || :
    exit "$lib_rc"
}

trap lib_exit EXIT
trap 'warn interrupted; exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

scratch_dir() {
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/erdma.XXXXXXXX") ||
        die_env "cannot make a temporary directory"
    on_exit "rm -rf -- '$scratch'"
}

take_lock() {
    exec 8>"$1" || die_env "cannot write $1"
    if ! flock -n 8; then
        say "waiting for another run: $2"
        flock 8
    fi
}

release_lock() {
    exec 8>&-
}

# ---- long steps ----------------------------------------------------------

# run_logged LABEL LOG CMD...: run CMD with its output in LOG. Says LABEL at
# the start and once a minute; on failure shows the log's tail and its path and
# returns CMD's status. CMD has a process group of its own, which is killed
# when this script is. With $announce_late set, a step of under two seconds
# goes unmentioned.
announce_late=
run_logged() {
    lib_label=$1
    lib_log=$2
    shift 2
    mkdir -p -- "$(dirname -- "$lib_log")" ||
        die_env "cannot write to $(dirname -- "$lib_log")"
    [ -n "$announce_late" ] || say "$lib_label (log: $lib_log)"
    setsid -- "$@" >"$lib_log" 2>&1 </dev/null 8>&- 9>&- &
    lib_job=$!
    # No helper process for the signs of life: it could outlive us.
    lib_ticks=0
    while kill -0 "$lib_job" 2>/dev/null; do
        if [ "$lib_ticks" -lt 20 ]; then
            sleep 0.1
        else
            sleep 1
        fi
        lib_ticks=$((lib_ticks + 1))
        if [ "$lib_ticks" -eq 20 ] && [ -n "$announce_late" ]; then
            say "$lib_label (log: $lib_log)"
        fi
        if [ $((lib_ticks % 60)) -eq 0 ]; then
            say "... $((lib_ticks / 60)) min:" \
                "$(tail -n 1 -- "$lib_log" | tr '\r' '\n' | tail -n 1 |
                    cut -c 1-60)"
        fi
    done
    lib_status=0
    wait "$lib_job" || lib_status=$?
    lib_job=
    if [ "$lib_status" -eq 3 ] && grep -q '^erdma: ' "$lib_log"; then
        # The machine lacks something, and the step has said what.
        grep '^erdma: ' "$lib_log" | tail -n 1 >&2
    elif [ "$lib_status" -ne 0 ]; then
        tail -n 15 "$lib_log" | cut -c 1-300 | sed 's/^/  | /' >&2
        warn "failed with status $lib_status: $lib_label" \
            "(whole log: $lib_log)"
    fi
    return "$lib_status"
}

# ---- the cache -----------------------------------------------------------
#
# An entry is a directory $cache/NAME. It is made under a lock in a directory
# beside it and renamed when it is whole, so nobody sees a half-made one. The
# stamp .complete says what belongs in it:
#   - the entry holds a file .verify: sha256 of the files listed there (one
#     path a line, relative to the entry), nothing else
#   - else: the path and size of every file, and sha256 of those at the top
# An entry that does not match its stamp is thrown away and made again.

# lib_fingerprint DIR: what the stamp of DIR has to say
lib_fingerprint() (
    cd -- "$1"
    if [ -f .verify ]; then
        tr '\n' '\0' <.verify | xargs -0 -r sha256sum -- || exit 1
    else
        find . -type f ! -path ./.complete -printf '%P %s\n' | sort |
            sha256sum
        find . -maxdepth 1 -type f ! -name .complete -print0 | sort -z |
            xargs -0 -r sha256sum -- || exit 1
    fi
)

cache_valid() {
    [ -f "$cache/$1/.complete" ] || return 1
    lib_print=$(lib_fingerprint "$cache/$1" 2>/dev/null) || return 1
    [ "$lib_print" = "$(cat -- "$cache/$1/.complete")" ]
}

# cache_make NAME LABEL CMD...: CMD runs with a new empty directory as its
# working directory and fills it. NAME may hold slashes. Ends the script with
# CMD's status when it fails; then the entry does not exist. CMD is a program,
# not a shell function, so that "set -e" works in it.
cache_make() {
    lib_name=$1
    lib_what=$2
    shift 2
    ! cache_valid "$lib_name" || return 0

    mkdir -p -- "$cache/.locks" 2>/dev/null ||
        die_env "cannot write to the cache $cache (set ERDMA_CACHE)"
    exec 9>"$cache/.locks/$(printf %s "$lib_name" | tr / _)"
    if ! flock -n 9; then
        say "waiting for another run: $lib_what"
        flock 9
    fi
    # Another run may have made it while this one waited.
    if cache_valid "$lib_name"; then
        exec 9>&-
        return 0
    fi
    if [ -e "$cache/$lib_name" ]; then
        warn "the cached $lib_name is incomplete or damaged: making it again"
    fi
    lib_parent=$(dirname -- "$cache/$lib_name")
    mkdir -p -- "$lib_parent"
    # Left over by a run that was killed: nobody else can be in it, we hold
    # the lock.
    rm -rf -- "${cache:?}/$lib_name" "$lib_parent/.tmp.${lib_name##*/}"
    lib_tmp=$lib_parent/.tmp.${lib_name##*/}
    mkdir -- "$lib_tmp"
    lib_status=0
    run_logged "$lib_what" "$cache/logs/$(printf %s "$lib_name" | tr / _).log" \
        sh -c 'cd -- "$1" && shift && exec "$@"' make "$lib_tmp" "$@" ||
        lib_status=$?
    if [ "$lib_status" -ne 0 ]; then
        exit "$lib_status" # lib_exit removes the directory
    fi
    lib_print=$(lib_fingerprint "$lib_tmp") ||
        die "the new cache entry $lib_name lacks a file named in its .verify"
    printf '%s\n' "$lib_print" >"$lib_tmp/.complete"
    mv -- "$lib_tmp" "$cache/$lib_name"
    lib_tmp=
    exec 9>&-
}
