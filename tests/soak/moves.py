# SPDX-License-Identifier: GPL-2.0-or-later
"""How long a move keeps the monitor waiting, with an HCA and without.

Both guests write to their memory all the time, and with HCAs rping runs both
ways besides.  QEMU stops the guest for the last round of a migration, and holds
its big lock from then until all is sent, so no monitor answers meanwhile: that
takes what `downtime-limit` allows it to take, whatever devices there are.
"""

import contextlib
import re
import time

from guestlib import paths
from guestlib.guests import GuestSet
from guestlib.migration import DOWNTIME_MS, Move
from guestlib.pulse import Pulse
from traffic import Traffic

QEMU_DOWNTIME_MS = 300          # QEMU's own
WRITE = "while :; do dd if=/dev/zero of=/dev/shm/x bs=1M count=40; done"
TRACE = ["-trace", "vmstate_downtime_save", "-trace", "vmstate_downtime_load"]


def device_us(machine, what):
    """What the HCA had of the downtime, as QEMU traces it; None: no HCA"""
    with open(machine.qemu_log, encoding="utf-8", errors="replace") as f:
        found = re.findall(r"vmstate_downtime_%s type=\S+ idstr=\S*erdma "
                           r"instance_id=\d+ downtime=(\d+)" % what, f.read())
    return int(found[-1]) if found else None


class Row:
    """Moves of one kind"""

    def __init__(self, has_hca, downtime_ms):
        self.has_hca, self.downtime_ms = has_hca, downtime_ms
        self.downtimes, self.answers, self.own = [], [], []
        self.saved, self.loaded = [], []

    def move(self, guests, i):
        source = guests[i].machine
        pulse = Pulse(guests[i])
        move = Move(guests, i)
        pulse.also(move.target)
        move.begin(downtime_ms=self.downtime_ms)
        info = move.finish()
        pulse.stop()
        self.downtimes.append(info["downtime"])
        self.answers.append(pulse.worst * 1000)
        self.own.append(pulse.own_worst * 1000)
        for machine, what, times in ((source, "save", self.saved),
                                     (guests[i].machine, "load",
                                      self.loaded)):
            us = device_us(machine, what)
            if us is not None:
                times.append(us)

    def text(self):
        def ms(values):
            values = sorted(values)
            return "%.0f | %.0f" % (values[len(values) // 2], values[-1])

        return "| %s | %d | %d | %s | %s | %s | %s |" % (
            "HCA" if self.has_hca else "none", self.downtime_ms,
            len(self.answers), ms(self.downtimes), ms(self.answers),
            ms(self.own), "%.1f | %.1f" % (max(self.saved) / 1000,
                                           max(self.loaded) / 1000)
            if self.saved and self.loaded else "- | -")


HEAD = """\
| Device | downtime-limit | Moves | Downtime, median | most | Slowest answer, \
median | most | not waiting for a processor, median | most | \
of the downtime: HCA saves, at most | loads |
|---|---|---|---|---|---|---|---|---|---|---|"""


def rows(has_hca, n):
    """One after the other, so that a busy host is so for both limits"""
    made = [Row(has_hca, ms) for ms in (QEMU_DOWNTIME_MS, DOWNTIME_MS)]
    with GuestSet(n=2, movable=True, restrict=True, qemu=TRACE,
                  rdma="erdma" if has_hca else "none",
                  logdir=paths.BUILD + "/logs/soak") as guests, \
            Traffic(guests) if has_hca else contextlib.nullcontext():
        for guest in guests:
            guest.start(WRITE, 0)
        for k in range(n):
            for row in made:
                row.move(guests, k % 2 + 1)
                time.sleep(0.5)
    return made


def measure(tap, n, limit_ms):
    """The table; judged is what this repository's own moves do."""
    made = rows(True, n) + rows(False, n)
    for line in HEAD.splitlines() + [row.text() for row in made]:
        tap.diag(line)
    for row in made:
        if row.downtime_ms == DOWNTIME_MS:
            name = "query-status is answered within %d ms, %s HCA" % (
                limit_ms, "with" if row.has_hca else "without")
            tap.point(max(row.own) <= limit_ms, name, row.text())
    # Wall-clock time: on a busy host it is the median that says something.
    own = sorted(us for row in made for us in row.saved + row.loaded)
    tap.point(own and own[len(own) // 2] <= 1000 * limit_ms / 10,
              "the HCA takes little of the downtime", str(own))
