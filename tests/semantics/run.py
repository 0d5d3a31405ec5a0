#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: what verbs mean: every size and SGE count, deep queues, memory, limits
"""Runs the program verbs-check's cases that are many or large, see
docs/compatibility/semantics.md and limits.md.

  --short   a selection of half a minute; without it when the suite is named
  --list    list the tests
  NAME...   only these (or how they begin)
"""

import argparse
import os
import pathlib
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "guest"))

import suite                                                    # noqa: E402
from kverbs import kernel_verbs                                 # noqa: E402
from guestlib.adapter import Adapter                            # noqa: E402
from tap import Tap                                             # noqa: E402
from test_verbs import verbs_check                              # noqa: E402

SMALL = "profile=small,rnr-timeout-ms=300"
DOORBELL_PAGES = 390            # the default; three for each context
HOLD_SECONDS = 60

# page size (at least), levels of the page table
KINDS = {
    "one-page": (4096, 0),
    "level-0": (4096, 0),
    "level-1": (4096, 1),
    "level-2": (4096, 2),
    "level-2-unaligned": (4096, 2),
    "level-3": (4096, 3),
    "above-4-gib": (4096, 3),
    "huge-pages": (2 << 20, 0),
    "huge-pages-unaligned": (2 << 20, 0),
}
# The driver takes larger pages where huge ones happen to be neighbours.
LARGEST_PAGE = 2 << 30
SHORT_KINDS = [k for k in KINDS if k not in ("one-page", "above-4-gib")]


def sweep(mtu):
    def run(ctx):
        for guest in ctx.guests:
            guest.run("ip link set eth0 mtu %d" % mtu)
        before = ctx[2].hca_stats()
        try:
            verbs_check(ctx, "sweep/ read/ cas faa signal-every/")
        finally:
            for guest in ctx.guests:
                guest.run("ip link set eth0 mtu 1500")
        after = ctx[2].hca_stats()
        payload, packets = (after[k] - before[k] for k in
                            ("tx-payload-bytes", "tx-data-packets"))
        ctx.point(payload / packets < mtu, "packets of at most %d bytes" % mtu,
                  "%d bytes in %d packets" % (payload, packets))
    return run


def many(ctx):
    verbs_check(ctx, "many/qps many/deep many/event many/solicited")


def cq_entries(ctx):
    """A million completions."""
    verbs_check(ctx, "many/cq-entries")


def wait_held(client, count):
    """Until the program has stopped `count` times; false if it has ended."""
    end = time.monotonic() + HOLD_SECONDS
    while time.monotonic() < end and client.running():
        if len(re.findall("^# registered", client.output(), re.M)) >= count:
            return True
        time.sleep(0.01)
    return False


def region(ctx, kind):
    """Runs the cases of one kind; what the device says of the region, and
    what the program says in the end."""
    client = ctx[2].start("exec verbs-check client %s held-memory/%s"
                          % (ctx[1].ip, kind), 120, merge=True, stdin=True)
    regions = []
    # level-2 is how level-2-unaligned begins.
    while wait_held(client, len(regions) + 1):
        mrs = Adapter(ctx[2].qmp.execute, "hca0").get("mrs")
        regions.append(max(mrs, key=lambda m: m["index"]))
        client.feed(b"\n")
    return regions, client.wait()


def as_expected(mr, page_bytes, levels):
    largest = LARGEST_PAGE if page_bytes > 4096 else page_bytes
    return (page_bytes <= mr["page-bytes"] <= largest and
            mr["table-levels"] == levels)


def memory(kinds):
    def run(ctx):
        daemon = ctx[1].start("exec verbs-check server", 600, merge=True)
        try:
            for kind in kinds:
                regions, result = region(ctx, kind)
                ctx.point(re.search("^ok held-memory/%s$" % kind, result.out,
                                    re.M), kind + ": contents", str(result))
                ctx.point(regions and as_expected(regions[0], *KINDS[kind]),
                          "%s: pages of %d, table of %d levels"
                          % (kind, *KINDS[kind]), str(regions))
        finally:
            daemon.kill()
    return run


def limits(ctx):
    """Every object to exhaustion, every limit and one more."""
    text = ctx[1].run("ibv_devinfo -v").out
    for key, value in (("max_qp", 1023), ("max_cq", 2047), ("max_mr", 2048),
                       ("max_mr_size", 0x80000000)):
        found = re.search(r"^\s*%s:\s*(\w+)$" % key, text, re.M)
        ctx.point(found and int(found.group(1), 0) == value,
                  "ibv_devinfo: %s is %d" % (key, value),
                  found.group(0) if found else text[:300])
    verbs_check(ctx, "limits/", server=1, client=1)


def contexts(ctx):
    """Each user of the device takes three doorbell pages."""
    daemon = ctx[1].start("exec verbs-check server", 60, merge=True)
    try:
        out = ctx[1].run("verbs-check client %s limits/contexts"
                         % ctx[1].ip, 60, merge=True).out
    finally:
        daemon.kill()
    found = re.search(r"^ok limits/contexts \((\d+),", out, re.M)
    # The one that asks has its own.
    assert found and int(found.group(1)) == DOORBELL_PAGES // 3 - 1, out


def kernel(ctx):
    """The kernel's own queue pairs"""
    kernel_verbs(ctx)


def no_receive(ctx):
    verbs_check(ctx, "no-receive", server=1, client=1)


# name, guests, part of the short form (None: of nothing else), function
TESTS = (
    ("many", "pair", True, many),
    ("cq-entries", "pair", False, cq_entries),
    ("memory", "pair", False, memory(KINDS)),
    ("memory-short", "pair", None, memory(SHORT_KINDS)),
    ("kernel", "pair", True, kernel),
    ("sweep-mtu1400", "pair", True, sweep(1400)),
    ("sweep-mtu1500", "pair", False, sweep(1500)),
    ("sweep-mtu8500", "pair", False, sweep(8500)),
    ("limits", "small", True, limits),
    ("contexts", "small", True, contexts),
    ("no-receive", "small", True, no_receive),
)


def register(is_short, names):
    del suite.TESTS[:]
    suite.SETS["small"] = suite.Options(n=1, restrict=True, device=SMALL)
    for name, guests, short, function in TESTS:
        if names:
            wanted = any(name == n or short is not None and
                         name.startswith(n) for n in names)
        elif is_short:
            wanted = short is not False
        else:
            wanted = short is not None
        if wanted:
            suite.test(name, guests=guests)(function)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--short", action="store_true",
                        default=not os.environ.get("ERDMA_CHECK_NAMED", "1"))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    for name in args.names:
        if not any(t[0].startswith(name) for t in TESTS):
            parser.error("no such test: " + name)
    register(args.short, args.names)
    if args.list:
        for name, guests, _, _ in suite.TESTS:
            print(name, guests)
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    tap = Tap()
    suite.run(tap, "erdma", [])
    return tap.done()


sys.exit(main())
