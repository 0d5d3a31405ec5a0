# SPDX-License-Identifier: GPL-2.0-or-later
"""One request of verbs-check, held before and after, so that the link can be
spoilt at exactly one packet or for exactly as long as we want."""

import re
import time

from guestlib.programs import wait_listening
from transfers import Failed

TIMEOUT = 240
ATTEMPTS = 8


class Held:
    """A client that has stopped before its request."""

    def __init__(self, guests, server, client, case):
        self.case = case
        self.daemon = guests[server].start("exec verbs-check server",
                                           TIMEOUT + 60, merge=True)
        self.client = None
        wait_listening(guests[server], "verbs-check")
        self.client = guests[client].start(
            "exec verbs-check client %s %s" % (guests[server].ip, case),
            TIMEOUT, merge=True, stdin=True)
        self.wait("held")

    def wait(self, word):
        """Until it stops at `word`; returns what it says there (ms)."""
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            found = re.search(r"^# %s (\d+)$" % word, self.client.output(),
                              re.M)
            if found:
                return int(found.group(1))
            if not self.client.running():
                break
            time.sleep(0.01)
        raise Failed("%s did not come to '%s': %s" % (
            self.case, word, self.client.output()[-300:]))

    def go(self):
        self.client.feed(b"\n")

    def finish(self):
        """The rest; the case must have passed."""
        self.go()
        result = self.client.wait()
        if not result.ok or not re.search("^ok " + self.case, result.out,
                                          re.M):
            raise Failed(str(result))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for command in (self.client, self.daemon):
            if command:
                command.kill()
                command.wait(10)


def settle(links):
    """Wait until nothing moves on these links."""
    seen, since = None, time.monotonic()
    while time.monotonic() < since + 0.4:
        now = [link.counters("arrivals", "queue-bytes") for link in links]
        if now != seen:
            seen, since = now, time.monotonic()
        time.sleep(0.05)


def repairs(guests):
    """Probes and time-outs of both ends so far."""
    return sum(g.hca_stats()[x] for g in guests for x in ("probes", "rtos"))


def acks_of(guests, server, client, case, links, acks):
    """Run the case on a good link; how many packets go the acks' way?"""
    with Held(guests, server, client, case) as held:
        settle(links)
        before = acks.get("arrivals")
        held.go()
        held.wait("done")
        settle(links)
        count = acks.get("arrivals") - before
        held.finish()
    return count


def last_ack(guests, server, client, case):
    """Lose exactly the last ack of a transfer.

    Which packet that is, the run before tells; it is not always the same, as
    packets that arrive together get one ack.  It was the last one if nothing
    but a probe or a time-out could find out that all had arrived; if another
    ack did, we try again.
    """
    to_requester = case.split("/")[1] not in ("read", "faa")
    links = {i: guests[i].netem() for i in (server, client)}
    acks = links[client if to_requester else server]
    count = acks_of(guests, server, client, case, links.values(), acks)
    for _ in range(ATTEMPTS):
        with Held(guests, server, client, case) as held:
            settle(links.values())
            base, old = acks.get("arrivals"), repairs(guests)
            lost = acks.get("drop-listed")
            acks.set(drop_list=str(base + count - 1))
            held.go()
            held.wait("done")
            # A read is complete before its answer is acked.
            end = time.monotonic() + 5
            while repairs(guests) == old and time.monotonic() < end:
                time.sleep(0.05)
            new = repairs(guests) - old
            lost = acks.get("drop-listed") - lost
            settle(links.values())
            total = acks.get("arrivals") - base
            held.finish()
            if lost == 1 and new:
                return "ack %d, repaired by %d probe%s" % (
                    count, new, "" if new == 1 else "s")
            count = total
    raise Failed("could not hit the last ack in %d attempts" % ATTEMPTS)


def last_ack_close(guests, server, client):
    """... and the peer closes as soon as it has the message."""
    acks = guests[client].netem()
    links = [guests[server].netem(), acks]
    with Held(guests, server, client, "held-close/8") as held:
        settle(links)
        # One packet there, so the first one back is its ack.
        acks.set(drop_list=str(acks.get("arrivals")))
        held.go()
        took = held.wait("done")
        held.finish()
    if acks.get("drop-listed") != 1:
        raise Failed("no packet was dropped")
    return "%d ms" % took


def blackout(guests, server, client, case, seconds):
    """Nothing passes for a while, and then it does again."""
    links = [guests[i].netem(rate=10000000) for i in (server, client)]
    rtos = sum(g.hca_stats()["rtos"] for g in guests)
    with Held(guests, server, client, case) as held:
        settle(links)
        start = sum(x.get("arrivals") for x in links)
        held.go()
        while sum(x.get("arrivals") for x in links) < start + 100:
            time.sleep(0.005)
        for link in links:
            link.set(loss=1)
        time.sleep(seconds)
        for link in links:
            link.set(loss=0)
        took = held.wait("done")
        held.finish()
    if sum(g.hca_stats()["rtos"] for g in guests) == rtos:
        raise Failed("no time-out")
    return "%d ms" % took


def dead(guests, server, client, case, ways, retries, rto_max):
    """Nothing passes any more: the retry error, after as many time-outs as
    are configured, and no later than they can take."""
    links = {i: guests[i].netem() for i in (server, client)}
    with Held(guests, server, client, case) as held:
        settle(links.values())
        rtos = guests[client].hca_stats()["rtos"]
        for i in ways:
            links[i].set(loss=1)
        held.go()
        took = held.wait("done")
        rtos = guests[client].hca_stats()["rtos"] - rtos
        for i in ways:
            links[i].set(loss=0)
        held.finish()
    if rtos != retries:
        raise Failed("%d time-outs instead of %d" % (rtos, retries))
    # What a loaded machine adds is not the device's.
    if took > 1000 * rto_max * (retries + 1) + 10000:
        raise Failed("%d ms" % took)
    return "%d ms, %d time-outs" % (took, rtos)
