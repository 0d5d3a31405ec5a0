# SPDX-License-Identifier: GPL-2.0-or-later
"""verbs-check: every operation of an RC connection, by its effects."""

import re

from guestlib.programs import OVERLOOKED, PORT_TAKEN
from suite import test

ALL = ("erdma", "siw", "rxe")
BY_CHANCE = re.compile("^not ok (\\S+) - .*(?:%s|%s).*\n"
                       % (OVERLOOKED, PORT_TAKEN), re.M)


def run_client(guest, ip, prefixes, timeout):
    """What fails by chance, and not by us, gets one more."""
    command = "verbs-check client %s " % ip
    result = guest.run(command + prefixes, timeout, check=False, merge=True)
    unlucky = [found.group(1) for found in BY_CHANCE.finditer(result.out)]
    if unlucky:
        print("# once more: " + " ".join(unlucky), flush=True)
        again = guest.run(command + " ".join(unlucky), timeout, check=False,
                          merge=True)
        result.out = BY_CHANCE.sub("", result.out) + again.out
    return result


def verbs_check(ctx, prefixes="", timeout=600, server=1, client=2):
    """One point per case of the program."""
    daemon = ctx[server].start("exec verbs-check server", timeout + 60,
                               merge=True)
    try:
        result = run_client(ctx[client], ctx[server].ip, prefixes, timeout)
    finally:
        daemon.kill()
    n = 0
    for line in result.out.splitlines():
        if line.startswith("ok ") and "# SKIP" in line:
            name, _, reason = line[3:].partition(" # SKIP ")
            ctx.skip(name, reason)
        elif line.startswith("ok "):
            ctx.point(True, line[3:])
            n += 1
        elif line.startswith("not ok "):
            name, _, why = line[7:].partition(" - ")
            ctx.point(False, name, why)
    assert not result.timed_out, "verbs-check took more than %d s" % timeout
    assert n > 0, "verbs-check checked nothing: %s" % result
    assert result.status in (0, 1), str(result)


@test("verbs", rdma=ALL)
def verbs(ctx):
    verbs_check(ctx)


@test("verbs-reversed")
def verbs_reversed(ctx):
    """The other guest serves: neither end is special."""
    verbs_check(ctx, "send/ write/ read/ cas faa", server=2, client=1)


@test("verbs-mtu8500", guests="pair-mtu8500")
def verbs_large_mtu(ctx):
    verbs_check(ctx, "send write read both mixed")


@test("verbs-e1000e", guests="pair-e1000e")
def verbs_e1000e(ctx):
    verbs_check(ctx, "send/ write/ read/ cas faa both")
