#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: guests that move to another QEMU with RDMA under way
"""Streams of a device without a guest; then two guests do RDMA in both
directions, with every byte checked, and move.

Each round one of them goes on in another QEMU process.  No program sees an
error, every one gets on afterwards.  In the ordinary check a short form; named
on the command line (./erdma check migration) 50 rounds, 10 of them with loss,
through a file, at awkward moments, and migrations that do not come to an end.

  --markdown FILE   the table of docs/migration.md
  --rounds N        so many under load, and a fifth of it with loss
  --list            list the cases
  NAME...           what begins so, in the long form
"""

import argparse
import os
import pathlib
import signal
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "loss")]

from guestlib import paths                                      # noqa: E402
from guestlib.errors import GuestError                          # noqa: E402
from guestlib.guests import GuestSet                            # noqa: E402
from tap import Tap                                             # noqa: E402
from transfers import Failed                                    # noqa: E402

import breaks                                             # noqa: E402,F401
import cases                                                    # noqa: E402
import snapshots                                          # noqa: E402,F401
from streams import Streams                                     # noqa: E402
from traffic import Series, Traffic                             # noqa: E402

SEED = 1
# A network for a second NIC
SPARE = ["-netdev", "hubport,id=spare0,hubid=7"]


def under_load(how, n):
    """A case: n rounds, guest 1 and guest 2 in turn."""
    def rounds(guests, series):
        with Traffic(guests) as traffic:
            before = sum(traffic.delivered())
            for i in range(n):
                moved = 1 + i % 2
                series.move(guests, moved, how)
                series.bytes = traffic.wait_progress(
                    "round %d, guest%d" % (i + 1, moved)) - before
    return rounds


def with_loss(n):
    def rounds(guests, series):
        for guest in guests:
            guest.netem("tx", seed=SEED + guest.index, loss=0.01)
        try:
            under_load("unix", n)(guests, series)
        finally:
            for guest in guests:
                guest.no_netem()
    return rounds


def all_cases(n):
    n_loss = (n + 4) // 5
    return [
        cases.Case("under load", under_load("unix", n - n_loss), True),
        cases.Case("under load, 1 % loss each way", with_loss(n_loss), True),
        cases.Case("through a file", under_load("file", 4), False),
        cases.Case("-incoming with a socket", under_load("incoming", 4),
                   False),
    ] + cases.CASES


class Suite:
    def __init__(self, args):
        self.args = args
        self.tap = Tap()
        self.is_long = bool(os.environ.get("ERDMA_CHECK_NAMED") or args.names)
        self.rows = []
        self.cases = all_cases(args.rounds or (50 if self.is_long else 3))

    def chosen(self):
        if self.args.names:
            return [c for c in self.cases
                    if c.name.startswith(tuple(self.args.names))]
        return [c for c in self.cases if self.is_long or c.is_short]

    def attempt(self, case, guests):
        series = Series(case.name)
        began = time.monotonic()
        why = None
        print("# progress: " + case.name, flush=True)
        try:
            case.function(guests, series)
        except (AssertionError, Failed, GuestError) as e:
            why = str(e)
        print("# %s: %.1f s" % (case.name, time.monotonic() - began),
              flush=True)
        self.tap.point(not why, case.name, why)
        if series.downtimes:
            self.rows.append(series.row())
        return not why

    def run(self):
        if not self.args.names:
            Streams(self.tap, paths.qemu_binary()).run(self.is_long)
        with GuestSet(n=2, movable=True, restrict=True, qemu=SPARE,
                      say=lambda t: print("# " + t, flush=True),
                      logdir=paths.BUILD + "/logs/migration") as guests:
            for case in self.chosen():
                self.attempt(case, guests)
            bad = [x for g in guests for x in g.log_problems()]
            self.tap.point(not bad, "kernel logs are clean",
                           "\n".join(bad[:30]))
        if self.args.markdown:
            self.args.markdown.write_text(
                "| | Moves | Least ms | Median | Most | Checked |\n"
                "|---|---|---|---|---|---|\n" + "\n".join(self.rows) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", metavar="FILE", type=pathlib.Path)
    parser.add_argument("--rounds", metavar="N", type=int)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("names", nargs="*")
    suite = Suite(parser.parse_args())
    if not suite.chosen():
        parser.error("no such case")
    if suite.args.list:
        for case in suite.cases:
            print(case.name, "(short)" if case.is_short else "")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    suite.run()
    return suite.tap.done()


sys.exit(main())
