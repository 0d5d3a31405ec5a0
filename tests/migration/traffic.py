# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs while guests move, and what is measured of it."""

import itertools
import re
import time

from guestlib.errors import GuestError
from guestlib.migration import migrate
from guestlib.programs import OVERLOOKED, run_pair

SIZE = 20000            # bytes of a ping
SETTLE = 60             # seconds for traffic to be seen again
# A port is in use for a while after its last connection.
ports = itertools.count(7000)


def start_rping(server, client, ip, count):
    """Both ends of it; each ends with the first completion in error, and the
    client with the first wrong byte."""
    port = next(ports)
    common = "-a %s -p %d -V -S %d" % (ip, port, SIZE)
    commands = [server.start("rping -s " + common, timeout=0, merge=True)]
    server.wait_until("rdma res show cm_id | grep -q 'LISTEN.*:%d '" % port,
                      20, "no rping server")
    return commands + [client.start("rping -c %s -C %d" % (common, count),
                                    timeout=0, merge=True)]


def check_works(guests):
    """New connections, both ways"""
    for server, client in ((1, 2), (2, 1)):
        outcome = run_pair(guests[server], guests[client], "rping -s -C 3",
                           "rping -c -V -a %s -C 3" % guests[server].ip)
        assert not outcome.problem, outcome.problem


class Traffic:
    """rping -V both ways: sends, reads and writes, and it compares."""

    def __init__(self, guests):
        self.guests, self.commands = guests, []
        try:
            self.start()
        except GuestError as e:
            if not re.search(OVERLOOKED, str(e)):
                raise
            self.start()

    def start(self):
        try:
            for server, client in ((self.guests[1], self.guests[2]),
                                   (self.guests[2], self.guests[1])):
                self.commands += start_rping(server, client, server.ip,
                                             100000000)
            self.wait_progress("the start")
        except BaseException:
            self.stop()
            self.commands = []
            raise

    def delivered(self):
        return [g.hca_stats()["rx-payload-bytes"] for g in self.guests]

    def check_alive(self, when):
        if all(command.running() for command in self.commands):
            return
        time.sleep(1)       # the other end's word on it
        ended = [c.wait(5) for c in self.commands if not c.running()]
        raise GuestError("%s: %s" % (when, "; ".join(
            "`%s` ended with status %d: %s" % (
                x.command, x.status, (x.out + x.err)[-400:])
            for x in ended)))

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

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.stop()


class Series:
    """Moves of one kind, for the table"""

    def __init__(self, title):
        self.title, self.downtimes, self.bytes = title, [], 0

    def move(self, guests, i, how="unix", device=""):
        info = migrate(guests, i, how, device)
        self.downtimes.append(info.get("downtime", 0))
        print("# %s: guest%d, downtime %s ms" % (
            self.title, i, info.get("downtime")), flush=True)
        return info

    def row(self):
        times = sorted(self.downtimes)
        return "| %s | %d | %d | %d | %d | %s |" % (
            self.title, len(times), times[0], times[len(times) // 2],
            times[-1], "%.1f MB" % (self.bytes / 1e6) if self.bytes else "")
