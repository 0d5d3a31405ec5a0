# SPDX-License-Identifier: GPL-2.0-or-later
"""What the storage tests share: fio, the HCA's counters, the kernel's log."""

import json

from guestlib.errors import GuestError
from guestlib.guests import Options
import suite

suite.SETS["storage"] = Options(n=2, restrict=True, addons=["storage"])

FULL = False        # --full

# Messages of level warning and worse that say nothing about the test.
HARMLESS = ("out-of-tree module", "module verification failed",
            "iwpm_register_pid", "cma_listen_on_dev, error -97",
            "legacy client tracking", "state recovery directory",
            "second grace period", "hrtimer: interrupt took",
            "Unable to load target_core_", "MODE SENSE: unimplemented")


LONG = set()        # tests that run with --full, or when named


def storage_test(name, is_long=False):
    """Registers a test: ctx[1] is the target, ctx[2] the initiator."""
    if is_long:
        LONG.add(name)
    return suite.test(name, guests="storage")


def size(short, full):
    return full if FULL else short


def fio(guest, where, name, timeout=120, check=True, **options):
    """Run fio; the result of its job, or None if it failed and may."""
    options = {"ioengine": "libaio", "direct": 1, "iodepth": 32,
               "verify_fatal": 1, **options}
    command = "fio --output-format=json %s --name=%s %s" % (
        where, name, " ".join("--%s=%s" % i for i in options.items()))
    result = guest.run(command, timeout, check=False)
    text = result.out[result.out.find("{"):]
    if not result.ok:
        if check:
            raise GuestError("%s: %s: status %d: %s" % (
                guest.name, command, result.status,
                (result.out[:300] + result.err[-500:]).strip()))
        return None
    return json.loads(text)["jobs"][0]


def report(ctx, what, job):
    """What a job measured, as a comment in the log."""
    for way in ("read", "write"):
        part = job[way]
        if part["total_ios"]:
            print("# %s: %s: %.1f MiB/s, %.0f operations/s, mean latency "
                  "%.2f ms" % (what, way, part["bw_bytes"] / 1048576,
                               part["iops"],
                               part["lat_ns"]["mean"] / 1e6), flush=True)


def verified(ctx, guest, where, title):
    """Writes and reads back, small at random and large in order."""
    jobs = (("random 4k", "randwrite", "4k", size("1m", "64m"), "crc32c"),
            ("sequential 1M", "write", "1m", size("4m", "96m"), "sha256"))
    if FULL:
        jobs += (("random 4k mix", "randrw", "4k", "32m", "sha256"),
                 ("sequential 64k", "write", "64k", "96m", "crc32c"))
    for name, rw, bs, amount, verify in jobs:
        job = fio(guest, where, "job", rw=rw, bs=bs, size=amount,
                  verify=verify)
        report(ctx, "%s, %s" % (title, name), job)
        assert job["error"] == 0, job["error"]
        ctx.point(job["read"]["io_bytes"] > 0 and
                  job["write"]["io_bytes"] > 0,
                  "%s: %s is verified with %s" % (title, name, verify),
                  "read %d bytes, wrote %d" % (job["read"]["io_bytes"],
                                               job["write"]["io_bytes"]))


class Counters:
    """How far the counters of both HCAs have moved since."""

    def __init__(self, ctx):
        self._ctx = ctx
        self._start = {g.index: g.hca_stats() for g in ctx.guests}

    def moved(self, index, name):
        return self._ctx[index].hca_stats()[name] - self._start[index][name]

    def check(self, wanted):
        """wanted: {guest: counters that must have moved}; none may fail."""
        for index, names in wanted.items():
            for name in names:
                n = self.moved(index, name)
                self._ctx.point(n > 0, "guest%d's HCA counted %s"
                                % (index, name), "it did not move")
        for index in (1, 2):
            for name in ("dma-errors", "commands-refused"):
                n = self.moved(index, name)
                self._ctx.point(n == 0, "guest%d's HCA counted no %s"
                                % (index, name), "%d" % n)


class Log:
    """The kernel's complaints in both guests since."""

    def __init__(self, ctx):
        self._ctx = ctx
        self._start = {g.index: len(self._lines(g)) for g in ctx.guests}

    @staticmethod
    def _lines(guest):
        return guest.run("dmesg -r").out.splitlines()

    def check(self):
        bad = []
        for guest in self._ctx.guests:
            for line in self._lines(guest)[self._start[guest.index]:]:
                level, _, text = line.partition(">")
                if level.lstrip("<").isdigit() and \
                        int(level.lstrip("<")) & 7 <= 4 and \
                        not any(word in text for word in HARMLESS):
                    bad.append("%s: %s" % (guest.name, text))
        self._ctx.point(not bad, "no kernel complains", "\n".join(bad[:20]))


def configfs(guest):
    """Configfs is a module, and not there when a guest starts."""
    guest.run("grep -q ^configfs /proc/mounts || { modprobe configfs && "
              "mount -t configfs configfs /sys/kernel/config; }")
