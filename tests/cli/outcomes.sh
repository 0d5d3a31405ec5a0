# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: GPL-2.0-or-later
#
# "check pyverbs" without a guest: every way to end otherwise than the file of
# expected outcomes says is a failure, also a better one.

outcome() { # OUTCOME TEST [REASON]
    printf '%s\t%s\t%s\n' "$1" "$2" "${3-}"
}

compare() { # OUTCOME TEST [REASON]: what is found of the second one of three
    {
        outcome pass test_a.A.test_1
        [ $# -eq 0 ] || outcome "$@"
        outcome error test_a.A.test_3 'no such thing'
    } >"$work/found"
    try python3 "$here/outcomes.py" "$work/expected" "$work/found"
}

expect() { # OUTCOME [REASON]: what the second one is expected to be
    {
        echo '# a comment'
        outcome pass test_a.A.test_1
        outcome "$1" test_a.A.test_2 "${2-}"
        outcome error test_a.A.test_3 'no such thing'
    } >"$work/expected"
}

expect skip 'no memory windows'
compare skip test_a.A.test_2 'no memory windows'
ok "pyverbs: outcomes as expected pass" exits 0
compare pass test_a.A.test_2
ok "pyverbs: one that passes and should not is a failure" exits 1
ok "pyverbs: it is named" says "not ok 2 - test_a.A.test_2: skip"
compare error test_a.A.test_2 'no memory windows'
ok "pyverbs: an error instead of a skip is a failure" exits 1
compare skip test_a.A.test_2 'no atomics'
ok "pyverbs: another reason is a failure" exits 1
ok "pyverbs: both reasons are told" says "no memory windows"
compare
ok "pyverbs: one that is missing is a failure" exits 1
compare skip test_b.B.test_2 'no memory windows'
ok "pyverbs: one that is new is a failure" exits 1

expect pass
for outcome in skip fail error crash stuck; do
    compare $outcome test_a.A.test_2 'a reason'
    ok "pyverbs: $outcome instead of pass is a failure" exits 1
done
