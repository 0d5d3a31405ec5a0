#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: half an hour of all at once: traffic, loss, hot-plug, migration
# on demand
"""Two guests with RDMA both ways, over a link that changes, while one after
the other moves to another QEMU or loses its HCA and gets it back.

  --minutes N    30 without
  --seed N       of the plan, 1 without
  --moves N      instead: N moves of each kind with an HCA and without, and
                 what of the time that the monitor waits is the HCA's

Every byte of rping is compared, nothing may stop, resources return to what
they were, and each QEMU's monitor must answer query-status within 100 ms all
the time.
"""

import argparse
import itertools
import pathlib
import random
import signal
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / path) for path in (
    "scripts", "tests/hotplug", "tests/guest", "tests/migration",
    "tests/loss")]

from guestlib import paths                                      # noqa: E402
from guestlib.errors import GuestError                          # noqa: E402
from guestlib.guests import GuestSet                            # noqa: E402
from guestlib.migration import Move                             # noqa: E402
from hotplug import Load, in_use, settles                       # noqa: E402
from links import LINKS                                         # noqa: E402
from monitors import Monitors                                   # noqa: E402
from tap import Tap                                             # noqa: E402
from traffic import Traffic                                     # noqa: E402
import hang                                                     # noqa: E402
import moves                                                    # noqa: E402

# Links over which a connection lives for ever
GOOD = [link for link in LINKS if link.name in (
    "none", "loss 0.1 %", "loss 1 %", "short bursts", "reorder 10 %",
    "duplicate 10 %", "corrupt 2 %", "jitter that reorders")]
LIMIT_MS = 100


class Soak:
    def __init__(self, guests, monitors, seed):
        self.guests, self.monitors = guests, monitors
        self.random = random.Random(seed)
        self.done = dict.fromkeys(("links", "moves", "replugs"), 0)
        self.bytes = 0

    def say(self, text):
        print("# progress: %s" % text, flush=True)

    def change_link(self):
        link = self.random.choice(GOOD)
        for guest, options in zip(self.guests, (link.to_server,
                                                link.to_client)):
            guest.no_netem()
            if options:
                guest.netem("tx", seed=self.random.getrandbits(31), **options)
        self.done["links"] += 1
        return link.name

    def move(self):
        i = self.random.choice((1, 2))
        # Not through a file: peers would have to bear that long a pause.
        with self.monitors.moving(i) as pulse:
            move = Move(self.guests, i)
            pulse.also(move.target)
            move.begin()
            move.finish()
        self.done["moves"] += 1

    def stay(self):
        time.sleep(self.random.uniform(1, 10))

    def life(self):
        """From one unplugging to the next."""
        guests = self.guests
        before = [in_use(g) for g in guests]
        lost = guests[self.random.choice((1, 2))]
        with Load(guests, ("write", "send")) as load:
            with Traffic(guests) as traffic:
                start = sum(traffic.delivered())
                for step in range(self.random.randint(3, 8)):
                    name = self.change_link()
                    kind = self.random.choice((self.move, self.stay))
                    self.say("%s over '%s'" % (kind.__name__, name))
                    kind()
                    self.bytes += traffic.wait_progress(name) - start
                    start = sum(traffic.delivered())
                    load.check()
                    load.flows()
                self.say("%s loses its HCA" % lost.name)
                lost.unplug("hca0")
        for guest in guests:
            guest.no_netem()
        lost.add_hca()
        self.done["replugs"] += 1
        for guest, old in zip(guests, before):
            settles(guest, old)


def soak(tap, seconds, seed):
    """Returns what to say of it."""
    with GuestSet(n=2, movable=True, restrict=True,
                  say=lambda t: print("# " + t, flush=True),
                  logdir=paths.BUILD + "/logs/soak") as guests:
        hang.know(guests[1])
        for guest in guests:
            # perftest may crash when its peer ends; not the kernel's doing.
            guest.run("echo 0 > /proc/sys/debug/exception-trace")
        end = time.monotonic() + seconds
        with Monitors(guests) as monitors:
            run = Soak(guests, monitors, seed)
            why = None
            try:
                for n in itertools.count(1):
                    if time.monotonic() > end:
                        break
                    run.say("life %d" % n)
                    run.life()
            except (GuestError, AssertionError) as e:
                why = str(e)
                if any(hang.hangs(g) for g in guests):
                    why = "the driver has stopped a guest " \
                        "(docs/limitations.md): " + why
        tap.point(not why, "nothing stops and nothing is lost", why)
        monitors.point(tap, LIMIT_MS)
        bad = [x for g in guests for x in g.log_problems()]
        tap.point(not bad, "kernel logs are clean", "\n".join(bad[:30]))
    tap.diag("%d links, %d moves, %d times unplugged and plugged, %.1f MB "
             "of compared traffic" % (*run.done.values(), run.bytes / 1e6))
    tap.diag(monitors.summary())


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--moves", type=int, default=0)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    tap = Tap()
    if args.moves:
        moves.measure(tap, args.moves, LIMIT_MS)
    else:
        soak(tap, args.minutes * 60, args.seed)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
