# SPDX-License-Identifier: GPL-2.0-or-later
"""What the guest tests share: the list of tests and the booted guests.

    @test("rping", guests="pair")
    def rping(ctx): ...

A test passes by returning, fails by raising GuestError or AssertionError,
and may print points of its own with ctx.point().  Tests that name the same
set of guests share it; a set is started when the first one needs it and
stopped before another one is.
"""

import os
import pathlib
import sys
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from guestlib import paths                                      # noqa: E402
from guestlib.errors import GuestError                          # noqa: E402
from guestlib.guests import GuestSet, Options                   # noqa: E402

# The sets of guests that tests can ask for.
SETS = {
    "pair": Options(n=2, restrict=True),
    "pair-mtu8500": Options(n=2, restrict=True, mtu=8500),
    "pair-e1000e": Options(n=2, restrict=True, nic="e1000e"),
    "pair-dump": Options(n=2, restrict=True, dump=True),
    "hub": Options(n=3, restrict=True),
    None: None,
}

TESTS = []


class Skip(Exception):
    """The test does not apply here."""


def test(name, guests="pair", rdma=("erdma",)):
    """Registers a test.  rdma: the kinds of device that it makes sense for."""
    def register(function):
        TESTS.append((name, guests, rdma, function))
        return function
    return register


class Context:
    """What a test gets: the guests and the means to report."""

    def __init__(self, tap, rdma):
        self.tap, self.rdma = tap, rdma
        self.guests, self.set_name = None, None
        self.name = ""

    def __getitem__(self, i):
        return self.guests[i]

    def point(self, passed, name, why=""):
        self.tap.point(passed, "%s: %s" % (self.name, name), why)

    def skip(self, name, reason):
        self.tap.skip("%s: %s" % (self.name, name), reason)

    def need(self, set_name):
        if set_name == self.set_name:
            return
        self.release()
        options = SETS[set_name]
        if options is None:
            return
        options.rdma = self.rdma
        print("# progress: starting the guests '%s'" % set_name, flush=True)
        began = time.monotonic()
        guests = GuestSet(options, say=lambda t: print("# " + t, flush=True),
                          logdir=os.path.join(paths.BUILD, "logs",
                                              "guest-" + set_name))
        guests.start()
        print("# guests '%s' ready after %.1f s" % (
            set_name, time.monotonic() - began), flush=True)
        self.guests, self.set_name = guests, set_name

    def renew(self):
        """Other guests, whatever state these are in."""
        name, guests = self.set_name, self.guests
        self.guests = self.set_name = None
        guests.stop()
        self.need(name)

    def release(self):
        """Stop the guests; what their kernels complain about is a failure."""
        if not self.guests:
            return
        name, guests = self.set_name, self.guests
        self.guests = self.set_name = None
        try:
            bad = []
            for guest in guests:
                bad += ["%s: %s" % (guest.name, x)
                        for x in guest.log_problems()]
            self.tap.point(not bad, "%s: kernel logs are clean" % name,
                           "\n".join(bad[:30]))
        except GuestError as e:
            self.tap.point(False, "%s: kernel logs are clean" % name, str(e))
        finally:
            guests.stop()


def run(tap, rdma, wanted):
    """Run the tests whose names begin with one of `wanted` (all if none)."""
    ctx = Context(tap, rdma)
    chosen = [t for t in TESTS
              if not wanted or any(t[0].startswith(w) for w in wanted)]
    # The order of the file, but set by set.
    order = list(SETS)
    chosen.sort(key=lambda t: order.index(t[1]))
    try:
        for name, set_name, kinds, function in chosen:
            if rdma not in kinds:
                tap.skip(name, "not for " + rdma)
                continue
            ctx.name = name
            began = time.monotonic()
            try:
                ctx.need(set_name)
                print("# progress: " + name, flush=True)
                function(ctx)
            except Skip as e:
                tap.skip(name, str(e))
            except (GuestError, AssertionError) as e:
                tap.point(False, name, str(e) or traceback.format_exc())
                dead = ctx.guests and not all(
                    g.machine.alive() for g in ctx.guests)
                if dead:
                    tap.diag("a QEMU has ended: new guests for the next test")
                    ctx.release()
            else:
                tap.point(True, name)
            print("# %s took %.1f s" % (name, time.monotonic() - began),
                  flush=True)
    finally:
        ctx.release()
