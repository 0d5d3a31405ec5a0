# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: GPL-2.0-or-later
#
# "./erdma check" itself: it must count, and must notice what is missing.

suite() { # NAME BODY
    mkdir -p "$work/repo/tests/$1"
    printf '#!/bin/sh\n# summary: a test\n%s\n' "$2" \
        >"$work/repo/tests/$1/run.sh"
}

last_line() {
    [ "$(tail -n 1 "$out")" = "$1" ]
}

rm -rf "$work/repo/tests"
suite good 'echo "ok 1 - one"; echo "ok 2 - two"; echo 1..2'
try "$work/repo/erdma" check
ok "check passes when all pass" exits 0
ok "check counts points" last_line "2 passed, 0 failed"

suite bad 'echo "ok 1 - one"; echo "not ok 2 - why"; echo "# because"
echo 1..2; exit 1'
try "$work/repo/erdma" check
ok "check fails when a point fails" exits 1
ok "check sums up the suites" last_line "3 passed, 1 failed"
ok "check names what failed" says "not ok: why"
ok "check says why" says "# because"
try "$work/repo/erdma" check good
ok "check runs the suite named" last_line "2 passed, 0 failed"

suite bad 'echo "ok 1 - one"; echo "ok 2 - later # SKIP no room"; echo 1..2'
try "$work/repo/erdma" check bad
ok "check counts what was skipped" last_line "1 passed, 0 failed, 1 skipped"
suite bad 'echo "ok 1 - one"; echo "ok 2 - two"; echo 1..3'
try "$work/repo/erdma" check bad
ok "points that are missing are a failure" last_line "2 passed, 1 failed"
suite bad 'echo "ok 1 - one"; kill -s KILL $$'
try "$work/repo/erdma" check bad
ok "a suite that dies is a failure" last_line "1 passed, 1 failed"
suite bad 'echo "ok 1 - one"; echo 1..1; exit 5'
try "$work/repo/erdma" check bad
ok "a suite with a bad exit status is a failure" \
    last_line "1 passed, 1 failed"
suite bad 'echo 1..0'
try "$work/repo/erdma" check bad
ok "nothing tested is not a success" exits 1
suite bad 'echo "not ok 1 - one # TODO one day"; echo 1..1; exit 1'
try "$work/repo/erdma" check bad
ok "TODO excuses nothing" last_line "0 passed, 1 failed"
suite bad 'echo "$*" >"$ERDMA_CACHE/args"; echo "ok 1 - one"; echo 1..1'
try "$work/repo/erdma" check bad -- --only x
ok "arguments reach the suite" grep -qxF -- '--only x' "$ERDMA_CACHE/args"

rm -rf "$work/repo/tests"
wait_for() { # FILE
    # shellcheck disable=SC2016 # the suite expands it
    printf 'n=0; while [ ! -e "$ERDMA_CACHE/%s" ] && [ $n -lt 100 ]; do
n=$((n + 1)); sleep 0.1; done; [ -e "$ERDMA_CACHE/%s" ]' "$1" "$1"
}
suite aside "# beside others
$(wait_for guests-run) && echo 'ok 1 - one'
: >\"\$ERDMA_CACHE/aside-ran\"; echo 'not ok 2 - two'; echo 1..2; exit 1"
suite guest ": >\"\$ERDMA_CACHE/guests-run\"
$(wait_for aside-ran) && echo 'ok 1 - one'; echo 1..1"
try "$work/repo/erdma" check
ok "a patient suite runs beside guests" last_line "2 passed, 1 failed"
ok "and a failure there is one" exits 1
rm -f "$ERDMA_CACHE/guests-run" "$ERDMA_CACHE/aside-ran"
