# SPDX-License-Identifier: GPL-2.0-or-later
"""Migrations that do not come to their end, long stops."""

import time

from guestlib.migration import Move

from cases import case
from held import Held
from traffic import Traffic, check_works

MB = 1 << 20
STOP = 30               # seconds
# Time-outs in a row that last for longer: the greatest is 4 s
MANY_RETRIES = "retries=20"


def goes_on(guests, how_ends):
    """Under traffic, a migration of each guest that ends so, and a good one
    after it."""
    def check(_guests, series):
        with Traffic(guests) as traffic:
            before = sum(traffic.delivered())
            for i in (1, 2):
                how_ends(i)
                status = guests[i].qmp.command("query-status")["status"]
                assert status == "running", "the source is " + status
                traffic.wait_progress("guest%d, given up" % i)
                series.move(guests, i)
                series.bytes = traffic.wait_progress("guest%d" % i) - before
    return check


def under_way(guests, i):
    """A move that will take a while yet"""
    move = Move(guests, i)
    move.begin(bandwidth=8 * MB)
    move.wait("active")
    time.sleep(0.5)
    return move


@case("cancelled", is_short=True)
def cancelled(guests, series):
    def cancel(i):
        under_way(guests, i).cancel()
    goes_on(guests, cancel)(guests, series)


@case("the target dies")
def target_dies(guests, series):
    def kill(i):
        move = under_way(guests, i)
        move.abandon()
        move.wait("failed")
    goes_on(guests, kill)(guests, series)


def refuse(guests, i, return_path):
    move = Move(guests, i, device="max-qp=1023")
    try:
        move.begin(return_path=return_path)
        # Only a source that waits for it is sure to hear of the refusal.
        wanted = ("failed",) if return_path else ("failed", "completed")
        is_unheard = move.wait(*wanted)["status"] == "completed"
        end = time.monotonic() + 60
        while move.target.alive():
            assert time.monotonic() < end, "the target goes on"
            time.sleep(0.02)
        with open(move.target.qemu_log, encoding="utf-8",
                  errors="replace") as f:
            assert "property 'max-qp'" in f.read(), "it does not say why"
        if is_unheard:
            move.source.qmp.command("cont")
    finally:
        move.abandon()


@case("the target refuses")
def target_refuses(guests, series):
    goes_on(guests, lambda i: refuse(guests, i, True))(guests, series)


@case("the target refuses, unheard")
def target_refuses_unheard(guests, series):
    goes_on(guests, lambda i: refuse(guests, i, False))(guests, series)


def stop_one(guests, i, seconds):
    guests[i].qmp.command("stop")
    time.sleep(seconds)
    guests[i].qmp.command("cont")


@case("stopped for 2 s")
def short_stop(guests, series):
    with Traffic(guests) as traffic:
        before = sum(traffic.delivered())
        stop_one(guests, 1, 2)
        series.bytes = traffic.wait_progress("afterwards") - before


@case("stopped for %d s" % STOP)
def long_stop(guests, _series):
    """Longer than the peer is patient, who has sent something: it gets the
    retry error, and new connections work."""
    with Held(guests, 1, 2, "held-dead/write/100000") as held:
        guests[1].qmp.command("stop")
        began = time.monotonic()
        held.go()
        held.wait("done")
        time.sleep(max(0, began + STOP - time.monotonic()))
        guests[1].qmp.command("cont")
        held.finish()
    check_works(guests)


@case("stopped for %d s, %s" % (STOP, MANY_RETRIES))
def patient_stop(guests, series):
    """Both get patience by moving, and then it harms nobody."""
    with Traffic(guests) as traffic:
        before = sum(traffic.delivered())
        for i in (1, 2):
            series.move(guests, i, device=MANY_RETRIES)
        stop_one(guests, 1, STOP)
        series.bytes = traffic.wait_progress("afterwards") - before
