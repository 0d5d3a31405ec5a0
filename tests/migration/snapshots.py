# SPDX-License-Identifier: GPL-2.0-or-later
"""Snapshots (savevm, loadvm) of running guests."""

import time

from guestlib.errors import GuestError

from cases import case, end_all
from traffic import SIZE, Traffic, check_works, start_rping

TIMES = 3               # that each is loaded


class Disk:
    """A disk that nothing but snapshots is on"""

    def __init__(self, guest):
        self.guest, self.n_jobs = guest, 0
        if any(node["node-name"] == "disk0" for node in guest.qmp.command(
                "query-named-block-nodes")):
            return
        qcow2 = guest.machine.path("qcow2")
        self._create(driver="file", filename=qcow2, size=0)
        self._add(driver="file", node_name="raw0", filename=qcow2)
        self._create(driver="qcow2", file="raw0", size=1 << 20)
        self._add(driver="qcow2", node_name="disk0", file="raw0")

    def _add(self, **options):
        self.guest.qmp.command("blockdev-add", **options)

    def _create(self, **options):
        self._job("blockdev-create", options=options)

    def _job(self, command, **arguments):
        self.n_jobs += 1
        ident = "job%d" % self.n_jobs
        qmp = self.guest.qmp
        qmp.command(command, job_id=ident, **arguments)
        end = time.monotonic() + 120
        while True:
            job = next(x for x in qmp.command("query-jobs")
                       if x["id"] == ident)
            if job["status"] == "concluded":
                break
            if time.monotonic() > end:
                raise GuestError("%s takes too long" % command)
            time.sleep(0.02)
        qmp.command("job-dismiss", id=ident)
        if "error" in job:
            raise GuestError("%s: %s" % (command, job["error"]))

    def save(self, tag):
        self._job("snapshot-save", tag=tag, vmstate="disk0",
                  devices=["disk0"])

    def load(self, tag):
        self._job("snapshot-load", tag=tag, vmstate="disk0",
                  devices=["disk0"])


def wait_alone(guest, commands, when):
    """The guest's talk with itself goes on."""
    before = guest.hca_stats()["rx-payload-bytes"]
    end = time.monotonic() + 60
    while guest.hca_stats()["rx-payload-bytes"] < before + 20 * SIZE:
        for command in commands:
            assert command.running(), (when, command.wait())
        assert time.monotonic() < end, when + ": nothing moves"
        time.sleep(0.05)


@case("savevm and loadvm of one end")
def one_end(guests, _series):
    """A guest that talks to itself does not notice.  What it has said to
    others since then is unsaid, so they must begin anew."""
    guest = guests[1]
    disk = Disk(guest)
    talk = start_rping(guest, guest, guest.ip, 100000000)
    try:
        wait_alone(guest, talk, "the start")
        with Traffic(guests) as traffic:
            disk.save("alone")
            traffic.wait_progress("saved")
        for n in range(TIMES):
            disk.load("alone")
            guest.run("pkill -f 'rping.*-a %s '" % guests[2].ip, check=False)
            wait_alone(guest, talk, "loaded %d times" % (n + 1))
    finally:
        end_all(talk)
        guest.run("pkill rping", check=False)
    check_works(guests)


@case("savevm and loadvm of both ends")
def both_ends(guests, series):
    """While both are stopped: their connections are whole when both are
    loaded."""
    disks = [Disk(guest) for guest in guests]

    def both(action, tag):
        for guest in guests:
            guest.qmp.command("stop")
        for disk in disks:
            getattr(disk, action)(tag)
        for guest in guests:
            guest.qmp.command("cont")

    with Traffic(guests) as traffic:
        before = sum(traffic.delivered())
        both("save", "both")
        series.bytes = traffic.wait_progress("saved") - before
        for n in range(TIMES):
            both("load", "both")
            traffic.wait_progress("loaded %d times" % (n + 1))
