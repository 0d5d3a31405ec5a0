# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs over a bad link: programs, each of which must succeed, and with
the right bytes where it can tell."""

import re

from guestlib.programs import (OVERLOOKED, PERFTEST_SET_UP, PORT_TAKEN,
                               run_pair)

TIMEOUT = 240
# What a lost packet of RDMA_CM's TCP connection does to perftest, too
SET_UP = PERFTEST_SET_UP + "|does not listen"
ATTEMPTS = 3


class Failed(Exception):
    """Did not complete, or with wrong bytes."""


def pair(guests, server, client, server_ends=True):
    outcome = run_pair(guests[1], guests[2], server, client, TIMEOUT,
                       server_ends)
    if outcome.problem:
        raise Failed(outcome.problem)
    return outcome


def perftest(tool, share=1.0):
    def run(guests, messages):
        command = "%s -R -n %d" % (tool, max(5, int(messages * share)))
        client = "%s %s" % (command, guests[1].ip)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return pair(guests, command, client)
            except Failed as e:
                if attempt == ATTEMPTS or not re.search(SET_UP, str(e)):
                    raise
                print("# again, since %s: %s" % (command, e), flush=True)
    return run


def rping(guests, messages):
    """Bytes there and back, compared (-V)."""
    outcome = pair(guests, "rping -s -C %d -S 20000" % max(5, messages // 5),
                   "rping -c -a %s -C %d -S 20000 -V" % (
                       guests[1].ip, max(5, messages // 5)))
    if "error" in outcome.client.out:
        raise Failed(outcome.client.out)


def verbs(*cases):
    """Each operation by its effects: content, order, exactly once."""
    def run(guests, _messages):
        daemon = guests[1].start("exec verbs-check server", TIMEOUT + 60,
                                 merge=True)
        command = "verbs-check client %s %s" % (guests[1].ip, " ".join(cases))
        try:
            result = guests[2].run(command, TIMEOUT, check=False, merge=True)
            if re.search(OVERLOOKED + "|" + PORT_TAKEN, result.out):
                print("# once more, since " +
                      result.out[-300:].replace("\n", " / "), flush=True)
                result = guests[2].run(command, TIMEOUT, check=False,
                                       merge=True)
        finally:
            daemon.kill()
            daemon.wait(10)
        if not result.ok or "ok " not in result.out:
            raise Failed(str(result))
    return run


def rcopy(guests, messages):
    """A file over rsockets, compared by checksum."""
    guests[2].run("head -c %d /dev/urandom > /tmp/sent" % (messages * 10007))
    guests[1].run("rm -f /tmp/received")
    pair(guests, "cd /tmp && exec rcopy",
         "rcopy /tmp/sent %s:/tmp/received" % guests[1].ip, server_ends=False)
    sums = (guests[2].run("sha256sum < /tmp/sent").out,
            guests[1].run("sha256sum < /tmp/received").out)
    if sums[0] != sums[1]:
        raise Failed("the received file differs")


SHORT = {
    "ib_send_bw": perftest("ib_send_bw"),
    "ib_read_bw": perftest("ib_read_bw"),
    "verbs-check": verbs("write/65536", "send/65536", "faa/carry"),
}
FULL = {
    "ib_write_bw": perftest("ib_write_bw"),
    "ib_read_bw": perftest("ib_read_bw"),
    "ib_send_bw": perftest("ib_send_bw"),
    "ib_atomic_bw": perftest("ib_atomic_bw"),
    "rping": rping,
    "verbs-check": verbs("send/65536", "send/1048577", "write/65536",
                         "write/1048577", "read/65536", "read/1048577",
                         "cas", "faa", "both-ways", "mixed-order"),
    "rcopy": rcopy,
}
