#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: guests over links that lose, reorder and repeat packets
"""Real guests, the unmodified driver, and a bad link between them.

Every transfer completes with the right bytes, or ends in the retry error
within the configured bound; counters show that the link was bad and what
repaired it.  Without arguments a short form, a minute.

  --full            every link, every program
  --markdown FILE   the table of docs/congestion-control/guests-under-loss.md
  NAME...           links and tests whose names begin so
"""

import argparse
import pathlib
import signal
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from guestlib import paths                                      # noqa: E402
from guestlib.errors import GuestError                          # noqa: E402
from guestlib.guests import GuestSet, mac                       # noqa: E402
from tap import Tap                                             # noqa: E402

import held                                                     # noqa: E402
import table                                                    # noqa: E402
import transfers                                                # noqa: E402
from links import LINKS, Totals                                 # noqa: E402

SEED = 1
RETRIES, RTO_MAX = 7, 4.0     # the device's defaults


def hca_stats(guests):
    stats = [g.hca_stats() for g in guests]
    return {name: sum(s[name] for s in stats) for name in stats[0]}


def difference(new, old):
    return {name: new[name] - old[name] for name in new}


def link_stats(guests):
    stats = [g.netem().stats() for g in guests]
    return {name: sum(s[name] for s in stats) for name in stats[0]}


class Suite:
    def __init__(self, args):
        self.args = args
        self.tap = Tap()
        self.guests = None
        self.rows = []

    def wants(self, name, in_short):
        if self.args.names:
            return any(name.startswith(x) for x in self.args.names)
        return self.args.full or in_short

    def attempt(self, name, function, *args):
        """One point; returns whether it passed."""
        began = time.monotonic()
        print("# progress: " + name, flush=True)
        try:
            note = function(*args)
        except (transfers.Failed, GuestError) as e:
            return self.tap.point(False, name, str(e))
        print("# %s: %s%.1f s" % (
            name, note + ", " if isinstance(note, str) else "",
            time.monotonic() - began), flush=True)
        return self.tap.point(True, name)

    def fresh_link(self, to_server=None, to_client=None):
        for guest, options in zip(self.guests, (to_server or {},
                                                to_client or {})):
            guest.no_netem()
            guest.netem("tx", seed=SEED + guest.index, **options)

    def run_link(self, link, programs):
        self.fresh_link(link.to_server, link.to_client)
        totals, before = Totals(), hca_stats(self.guests)
        began = time.monotonic()
        for name, function in programs.items():
            totals.tried += 1
            totals.completed += self.attempt(
                "%s: %s" % (link.name, name), function, self.guests,
                link.messages)
        totals.seconds = time.monotonic() - began
        totals.hca = difference(hca_stats(self.guests), before)
        totals.link = link_stats(self.guests)
        self.rows.append((link, totals))
        if link.drops:
            self.tap.point(totals.link[link.drops] > 0,
                           "%s: the link's %s" % (link.name, link.drops))
        for name in link.shown:
            self.tap.point(totals.hca[name] > 0, "%s: the HCAs' %s"
                           % (link.name, name))
        print("# %s: link %s, HCAs %s" % (
            link.name, *({k: v for k, v in x.items() if v}
                         for x in (totals.link, totals.hca))), flush=True)

    def on_good_link(self, name, in_short, function, *args):
        if self.wants(name, in_short):
            self.fresh_link()
            self.attempt(name, function, self.guests, *args)

    def run_held(self):
        for server, client in ((1, 2), (2, 1)):
            way = "guest%d to guest%d" % (client, server)
            for case in ("write/8", "send/8", "read/8", "faa/8",
                         "write/4000", "send/4000", "read/4000"):
                self.on_good_link(
                    "last ack of a %s lost, %s" % (case, way),
                    (server, case) in ((1, "write/4000"), (2, "read/8")),
                    held.last_ack, server, client, "held/" + case)
            self.on_good_link(
                "last ack of a send lost, then closed, " + way, server == 1,
                held.last_ack_close, server, client)
        for case in ("write", "send", "read"):
            self.on_good_link(
                "a link down for 1 s in a " + case, False, held.blackout,
                1, 2, "held/%s/1048576" % case, 1.0)
        for text, ways, case in (
                ("nothing passes", (1, 2), "write/65536"),
                ("nothing passes", (1, 2), "read/8"),
                ("nothing comes back", (2,), "write/65536"),
                ("nothing comes back", (2,), "faa/8"),
                ("nothing gets there", (1,), "send/65536")):
            self.on_good_link(
                "%s: a %s ends in the retry error" % (text, case), False,
                held.dead, 1, 2, "held-dead/" + case, ways, RETRIES,
                RTO_MAX)
        self.on_good_link("with retries=2 after 2 time-outs", False,
                          self.other_retries)
        # It works on, as if nothing had been.
        self.on_good_link("afterwards", True, transfers.rping, 20)

    def other_retries(self, guests):
        self.replug("retries=2,rto-max-us=100000")
        try:
            return held.dead(guests, 1, 2, "held-dead/write/65536", (1, 2),
                             2, 0.1)
        finally:
            self.replug("")

    def replug(self, properties):
        """Another HCA in guest 2."""
        guest = self.guests[2]
        guest.qmp.command("device_del", id="hca0")
        guest.qmp.wait_event("DEVICE_DELETED", 20,
                             lambda d: d.get("device") == "hca0")
        guest.wait_until("[ ! -e /sys/class/infiniband/erdma_0 ]", 10,
                         "the RDMA device did not go")
        guest.add_hca(more=properties)

    def run(self):
        self.guests = GuestSet(
            n=2, restrict=True, say=lambda t: print("# " + t, flush=True),
            logdir=paths.BUILD + "/logs/loss")
        with self.guests as guests:
            for guest, other in ((guests[1], guests[2]),
                                 (guests[2], guests[1])):
                # ARP would mix with the packets that we count.
                guest.run("ip neigh replace %s lladdr %s nud permanent dev "
                          "eth0" % (other.ip, mac(other.index)))
            self.run_held()
            programs = transfers.FULL if self.args.full else transfers.SHORT
            for link in LINKS:
                if self.wants(link.name, link.in_short):
                    self.run_link(link, programs)
            bad = [x for g in guests for x in g.log_problems()]
            self.tap.point(not bad, "kernel logs are clean",
                           "\n".join(bad[:30]))
        if self.args.markdown:
            self.args.markdown.write_text(table.markdown(self.rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--markdown", metavar="FILE", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    suite = Suite(parser.parse_args())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    suite.run()
    return suite.tap.done()


sys.exit(main())
