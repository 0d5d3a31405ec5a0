# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: GPL-2.0-or-later
#
# When perftest waits for an event for ever: only what an old perftest does by
# itself is run again, what the device owes is a failure.

judge() {
    try python3 "$here/asleep.py" "$@"
}

fails() { # NAME WHAT ARGUMENTS...
    name=$1
    what=$2
    shift 2
    judge "$@"
    ok "perftest -e: $name is a failure" exits 1
    ok "perftest -e: $name: it is told" says "$what"
}

judge 6.06
ok "perftest -e: it left completions that it was told of" exits 0
ok "perftest -e: the indices are told" \
    says "CQ 315: armed at index 135, 200 of 200 announced"
judge 6.06 client.cqs.pi=16777220 client.cqs.announced=16777220 \
    client.cqs.ci=16777190
ok "perftest -e: the same where 24 bits of the index wrap" exits 0

fails "a newer one that sleeps" "empties its queues" 6.24
fails "an event that was not sent" "no event for 1 completions" \
    6.06 client.cqs.announced=199
fails "an event that was not sent for what an arm found" \
    "no event for 65 completions" 6.06 client.cqs.announced=100
fails "an event that did not arrive" "was not armed again" \
    6.06 client.cqs.armed='"none"'
fails "an event that nobody fetched" "events were not fetched" \
    6.06 client.eqs.pending=1
fails "an event that waits" "its event waits" 6.06 client.cqs.event-held=true
fails "a CQ that broke" "is broken" 6.06 client.cqs.broken=true
fails "a request without a completion" "requests are not done" \
    6.06 client.qps.sends=1
fails "a request that was not fetched" "requests are not done" \
    6.06 client.qps.sq-next=398
fails "an event that the server did not get" "server: CQ 315" \
    6.06 server.cqs.armed='"any"' server.cqs.pi=1
fails "a queue that one poll empties" "no completions are left" \
    6.06 client.cqs.ci=184
fails "a client that does not wait" "does not wait" 6.06 client.waits=false

# A server that has all its messages does not arm again.
served() {
    judge 6.06 server.cqs.armed='"none"' server.cqs.ci=7 server.cqs.pi=7 "$@"
}

served server.waits=false
ok "perftest -e: a server that is done waits for no event" exits 0
served
ok "perftest -e: a server that waits for an event that it had" exits 1
# What is before its last look was not for any event to tell.
judge 6.06 server.cqs.armed='"any"' server.cqs.pi=7 server.cqs.ci=7
ok "perftest -e: completions that were polled need no event" exits 0

# ib_send_bw waits for credit, which completes nothing.
credit='words=Total Received=199, Total Iters received=200'
judge 6.24 client.cqs.ci=200 "$credit"
ok "perftest -e: it waits for credit" exits 0
judge 6.24 client.cqs.ci=100 client.cqs.announced=199 "$credit"
ok "perftest -e: it waits for credit, and an event was lost" exits 1

# The other words of perftest count only when it ended by itself.
judge 6.06 killed=0
ok "perftest: a failed set-up is run again" exits 0
judge 6.06 client.cqs.announced=100
ok "perftest: a killed client's is no failed set-up" exits 1
judge 6.06 killed=0 words='completion with error'
ok "perftest: other failures are failures" exits 1
