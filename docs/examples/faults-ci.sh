#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A CI job for a driver: does it live with a QP that cannot be destroyed, and
# with an initialisation that fails once?  Ends with "faults-ci: PASS" and 0,
# or says what is wrong.
#
# usage: docs/examples/faults-ci.sh, from the top of the repository

set -eu

ERDMA_GUESTS=$(mktemp -d)
export ERDMA_GUESTS
log=$ERDMA_GUESTS/rping.log

finish() {
    ./erdma guests stop >/dev/null 2>&1 || :
    rm -rf -- "$ERDMA_GUESTS"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

fail() {
    echo "faults-ci: FAIL: $*" >&2
    exit 1
}

guest() { # COMMAND: in the guest whose driver is tested
    ./erdma guests exec --timeout 60 1 "$1"
}

add() { # ID NAME=VALUE...: JSON members of the rule
    id=$1
    shift
    ./erdma guests qmp 1 "{\"execute\": \"object-add\", \"arguments\":
        {\"qom-type\": \"erdma-fault\", \"id\": \"$id\",
         \"device\": \"hca0\", $*}}" >/dev/null
}

fired() { # ID
    ./erdma guests qmp 1 "{\"execute\": \"qom-get\", \"arguments\":
        {\"path\": \"/objects/$1\", \"property\": \"fired\"}}" | tr -dc 0-9
}

traffic() {
    ./erdma guests exec --timeout 60 2 'rping -s -C 3' >"$log" 2>&1 &
    server=$!
    # The server may need a moment.
    n=0
    until guest 'rping -c -a 10.9.0.2 -C 3' >/dev/null 2>&1; do
        n=$((n + 1))
        [ $n -lt 10 ] || fail "no traffic: $(cat "$log")"
        sleep 1
    done
    wait $server || fail "the server of rping: $(cat "$log")"
}

./erdma guests start --watch $$ -n 2

# DESTROY_QP fails: the guest must get rid of the QP all the same.
add f0 '"opcode": "destroy-qp", "action": "fail", "status": "busy"'
traffic
[ "$(fired f0)" -ge 1 ] || fail "the fault did not happen"
left=$(guest 'rdma resource show qp | grep -c pid || :')
[ "$left" = 0 ] || fail "$left queue pairs are left in the guest"
guest 'dmesg | grep -q "failed to destroy QP"' ||
    fail "the driver does not say that a QP could not be destroyed"

# The first initialisation fails, the second must work.
add f1 '"on": "init", "action": "fail", "count": 1'
if guest 'rmmod erdma && modprobe erdma && ls /sys/class/infiniband |
          grep -q .'; then
    fail "the driver did not notice that initialisation failed"
fi
guest 'rmmod erdma && modprobe erdma'
guest 'until grep -q ACTIVE /sys/class/infiniband/*/ports/1/state; do
           sleep 0.1
       done'
traffic

if guest 'dmesg | grep -E "BUG:|WARNING:|Oops|Call Trace"'; then
    fail "the guest's kernel is not well"
fi
echo "faults-ci: PASS"
