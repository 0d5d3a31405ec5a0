#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: kernels 6.1, 6.12 and 7 crossed with rdma-core of three releases
"""Runs the same tests in each cell of kernel and user space: what the device
says of itself, rping, perftest in polling and event mode, unbind and bind,
removal of the module, clean kernel logs.

  --short   one cell of each kernel that no other suite runs, and fewer runs;
            without it when the suite is named
  --list    list the cells
  CELL...   only these: KERNEL, SUITE or KERNEL/SUITE
"""

import argparse
import os
import pathlib
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "guest"))

import suite                                                    # noqa: E402
from kverbs import kernel_verbs                                 # noqa: E402
from tap import Tap                                             # noqa: E402
import test_driver                                              # noqa: E402
import test_programs                                            # noqa: E402

KERNELS = ("6.1", "6.12", "7")
SUITES = ("bookworm", "trixie", "forky")
CELLS = ["%s/%s" % (k, s) for k in KERNELS for s in SUITES]
# 6.12 with trixie is what all the other suites run on.
SHORT_CELLS = ["6.1/bookworm", "7/trixie"]

RUNS = ("ib_write_bw -n 200", "ib_send_bw -n 200 -e -Q 1",
        "ib_read_lat -n 100", "ib_send_lat -n 100 -e")
MORE_RUNS = ("ib_write_bw -n 100 -q 8", "ib_read_bw -n 200",
             "ib_read_bw -n 200 -e -Q 1", "ib_send_bw -n 200",
             "ib_send_bw -n 200 -b", "ib_write_lat -n 100",
             "ib_send_lat -n 100", "ib_read_lat -n 100 -e")
ATOMIC_RUNS = ("ib_atomic_bw -n 200", "ib_atomic_lat -n 100")


def identity(ctx, cell):
    """Kernel, driver and provider are the ones that the cell is named for."""
    kernel, release = cell.split("/")
    running = ctx[1].run("uname -r").out.strip()
    where = suite.paths.image(kernel, suite=release)
    with open(os.path.join(where, "packages"), encoding="ascii") as f:
        packages = dict(line.split() for line in f)
    with open(os.path.join(where, "version"), encoding="ascii") as f:
        built_for = f.read().strip()
    print("# cell %s: Linux %s, rdma-core %s, perftest %s" % (
        cell, running, packages["ibverbs-providers"], packages["perftest"]),
        flush=True)
    assert running == built_for and running.startswith(kernel + "."), running
    magic = ctx[1].run("modinfo -F vermagic erdma").out.split()[0]
    assert magic == running, "erdma.ko is for " + magic


def has_atomics(ctx):
    """Linux 6.1's driver has none, whatever the device offers."""
    text = ctx[1].run("ibv_devinfo -v").out
    found = re.search(r"atomic_cap:\s*(\w+)", text)
    assert found, "ibv_devinfo does not tell about atomics"
    return found.group(1) != "ATOMIC_NONE"


def probe(ctx, cell):
    test_driver.probe(ctx)
    expected = not cell.startswith("6.1/")
    assert has_atomics(ctx) == expected, "atomics: %s" % (not expected)


def rping(ctx, _cell):
    for size in (23, 65535):
        outcome = test_programs.pair(
            ctx, "rping -s -C 10 -S %d" % size,
            "rping -c -a %s -C 10 -S %d -V" % (ctx[1].ip, size))
        assert "error" not in outcome.client.out, outcome.client.out


def perftest(runs):
    def run_all(ctx, _cell):
        for run in runs:
            tool, _, options = run.partition(" ")
            try:
                test_programs.perftest(ctx, tool, options)
            except (AssertionError, suite.GuestError) as e:
                ctx.point(False, run, str(e))
            else:
                ctx.point(True, run)
    return run_all


def atomics(ctx, cell):
    if not has_atomics(ctx):
        raise suite.Skip("the driver has none")
    perftest(ATOMIC_RUNS)(ctx, cell)


def kernel_qps(ctx, _cell):
    """The kernel's own QPs: its driver differs from kernel to kernel."""
    kernel_verbs(ctx)


def unbind_bind(ctx, _cell):
    test_driver.unbind_bind(ctx)


def rmmod_modprobe(ctx, _cell):
    test_driver.rmmod_modprobe(ctx)


def register(cells, is_short):
    """Makes the tests of these cells the only ones."""
    tests = [("identity", identity), ("probe", probe), ("rping", rping),
             ("perftest", perftest(RUNS))]
    if not is_short:
        tests += [("perftest-more", perftest(MORE_RUNS)),
                  ("atomics", atomics), ("kernel-qps", kernel_qps)]
    tests += [("unbind-bind", unbind_bind), ("rmmod-modprobe", rmmod_modprobe)]
    del suite.TESTS[:]
    for cell in cells:
        kernel, release = cell.split("/")
        guests = "cell-" + cell.replace("/", "-")
        suite.SETS[guests] = suite.Options(n=2, restrict=True, kernel=kernel,
                                           suite=release)
        for what, function in tests:
            def run(ctx, function=function, cell=cell):
                function(ctx, cell)
            suite.test("%s %s" % (cell, what), guests=guests)(run)


def chosen(names, parser, default):
    for name in names:
        if name not in KERNELS + SUITES + tuple(CELLS):
            parser.error("no such cell: %s (%s)" % (name, " ".join(CELLS)))
    return [c for c in CELLS if c in names or
            set(c.split("/")) & set(names)] if names else default


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--short", action="store_true",
                        default=not os.environ.get("ERDMA_CHECK_NAMED", "1"))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("cells", nargs="*")
    args = parser.parse_args()
    cells = chosen(args.cells, parser, SHORT_CELLS if args.short else CELLS)
    if args.list:
        for cell in cells:
            print(cell, "(short)" if cell in SHORT_CELLS else "")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    register(cells, args.short)
    tap = Tap()
    suite.run(tap, "erdma", [])
    return tap.done()


sys.exit(main())
