#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: applications: Open MPI, libfabric, Valkey, fio, qperf, rsockets
# on demand
"""Runs Debian's RDMA applications between guests; what they measure is shown
as comments.

Arguments: names of tests, or how they begin (list: --list).
"""

import argparse
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "guest"))

import suite                                                    # noqa: E402
from tap import Tap                                             # noqa: E402

import test_mpi                 # noqa: E402,F401  they register themselves
import test_libfabric                                       # noqa: E402,F401
import test_valkey                                          # noqa: E402,F401
import test_fio                                             # noqa: E402,F401
import test_qperf                                           # noqa: E402,F401
import test_sockets                                         # noqa: E402,F401
import test_user                                            # noqa: E402,F401
import test_ucx                                             # noqa: E402,F401


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if args.list:
        for name, *_ in suite.TESTS:
            print(name)
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    tap = Tap()
    suite.run(tap, "erdma", args.names)
    return tap.done()


sys.exit(main())
