#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: guests that move to another QEMU with RDMA under way
"""Streams of a device without a guest; then two guests do RDMA in both
directions, with every byte checked, and move.

Each round one of them goes on in another QEMU process.  No program sees an
error, every one gets on afterwards.  In the ordinary check a short form; named
on the command line (./erdma check migration) 50 rounds, 10 with loss, through
a file, and with a guest that is stopped in between.

  --markdown FILE   the table of docs/migration.md
  --rounds N        so many without loss, and a fifth of it with
  NAME...           what begins so, in the long form
"""

import argparse
import os
import pathlib
import signal
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from guestlib import paths                                      # noqa: E402
from guestlib.errors import GuestError                          # noqa: E402
from guestlib.guests import GuestSet                            # noqa: E402
from guestlib.migration import migrate                          # noqa: E402
from tap import Tap                                             # noqa: E402

from streams import Streams                                     # noqa: E402

SIZE = 20000            # bytes of a ping
SETTLE = 60             # seconds for traffic to be seen again
SEED = 1


class Traffic:
    """rping -V both ways: sends, reads and writes, and it compares.  It ends
    with the first completion in error and with the first wrong byte."""

    def __init__(self, guests):
        self.guests, self.commands = guests, []
        for server, client in ((guests[1], guests[2]),
                               (guests[2], guests[1])):
            port = 7000 + server.index
            common = "-a %s -p %d -V -S %d" % (server.ip, port, SIZE)
            self.commands.append(server.start("rping -s " + common,
                                              timeout=0, merge=True))
            server.wait_until("grep -q ':%04X 00000000:0000 0A' "
                              "/proc/net/tcp || rdma res show cm_id | "
                              "grep -q LISTEN" % port, 10, "no rping server")
            self.commands.append(client.start(
                "rping -c %s -C 100000000" % common, timeout=0, merge=True))
        self.wait_progress("the start")

    def delivered(self):
        return [g.hca_stats()["rx-payload-bytes"] for g in self.guests]

    def check_alive(self, when):
        for command in self.commands:
            if not command.running():
                result = command.wait(5)
                raise GuestError("%s: `%s` ended with status %d: %s" % (
                    when, command.command, result.status,
                    (result.out + result.err)[-400:]))

    def wait_progress(self, when):
        """Both ends get some ten pings more; returns the bytes until now."""
        began = self.delivered()
        end = time.monotonic() + SETTLE
        while True:
            self.check_alive(when)
            now = self.delivered()
            if all(b - a > 10 * SIZE for a, b in zip(began, now)):
                return sum(now)
            if time.monotonic() > end:
                raise GuestError("%s: nothing moves any more: %s, then %s"
                                 % (when, began, now))
            time.sleep(0.1)

    def stop(self):
        for command in reversed(self.commands):
            command.kill()
            command.wait(10)


class Series:
    """Rounds of one kind, for the table"""

    def __init__(self, title):
        self.title, self.downtimes, self.bytes = title, [], 0

    def row(self):
        times = sorted(self.downtimes)
        return "| %s | %d | %d | %d | %d | %.1f MB |" % (
            self.title, len(times), times[0], times[len(times) // 2],
            times[-1], self.bytes / 1e6)


class Suite:
    def __init__(self, args):
        self.args = args
        self.tap = Tap()
        self.is_long = bool(os.environ.get("ERDMA_CHECK_NAMED") or args.names)
        self.rows = []

    def attempt(self, name, function, *args):
        if self.args.names and not name.startswith(tuple(self.args.names)):
            return True
        began = time.monotonic()
        print("# progress: " + name, flush=True)
        try:
            function(*args)
        except GuestError as e:
            return self.tap.point(False, name, str(e))
        print("# %s: %.1f s" % (name, time.monotonic() - began), flush=True)
        return self.tap.point(True, name)

    def rounds(self, guests, series, n, how="unix"):
        traffic = Traffic(guests)
        before = sum(traffic.delivered())
        for i in range(n):
            moved = 1 + i % 2
            what = "round %d, guest%d" % (i + 1, moved)
            info = migrate(guests, moved, how)
            series.bytes = traffic.wait_progress(what) - before
            series.downtimes.append(info.get("downtime", 0))
            print("# %s: %s, downtime %s ms" % (series.title, what,
                                                info.get("downtime")),
                  flush=True)
        traffic.stop()

    def series(self, guests, title, n, how="unix"):
        series = Series(title)
        self.rows.append(series)
        self.attempt("%s: %d rounds" % (title, n), self.rounds, guests,
                     series, n, how)

    def pause(self, guests):
        """A stop shorter than the retry limit harms nobody."""
        traffic = Traffic(guests)
        guests[1].qmp.command("stop")
        time.sleep(2)
        guests[1].qmp.command("cont")
        traffic.wait_progress("after a stop of 2 s")
        traffic.stop()

    def run(self):
        if not self.args.names:
            Streams(self.tap, paths.qemu_binary()).run(self.is_long)
        with GuestSet(n=2, movable=True, restrict=True,
                      say=lambda t: print("# " + t, flush=True),
                      logdir=paths.BUILD + "/logs/migration") as guests:
            n = self.args.rounds or (50 if self.is_long else 2)
            self.series(guests, "no loss", n)
            if self.is_long:
                self.series(guests, "through a file", 4, "file")
                self.attempt("stopped for 2 s", self.pause, guests)
            for guest in guests:
                guest.netem("tx", seed=SEED + guest.index, loss=0.01)
            self.series(guests, "1 % loss each way", (n + 4) // 5)
            bad = [x for g in guests for x in g.log_problems()]
            self.tap.point(not bad, "kernel logs are clean",
                           "\n".join(bad[:30]))
        if self.args.markdown:
            self.args.markdown.write_text(
                "| Wire | Rounds | Least ms | Median | Most | Checked |\n"
                "|---|---|---|---|---|---|\n" +
                "".join(s.row() + "\n" for s in self.rows if s.downtimes))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", metavar="FILE", type=pathlib.Path)
    parser.add_argument("--rounds", metavar="N", type=int)
    parser.add_argument("names", nargs="*")
    suite = Suite(parser.parse_args())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    suite.run()
    return suite.tap.done()


sys.exit(main())
