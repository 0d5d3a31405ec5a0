#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: NVMe, NFS and iSCSI over RDMA, the kernel's own users
"""Runs storage between two guests, the target in one, the initiator in the
other, with the kernel's unmodified modules.

Arguments: names of tests, or how they begin (list: --list); --full runs all
tests, with more data.
"""

import argparse
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "guest"))

import suite                                                    # noqa: E402
from tap import Tap                                             # noqa: E402

import storage                                                  # noqa: E402
import test_nvme                # noqa: E402,F401  they register themselves
import test_nfs                                             # noqa: E402,F401
import test_iser                                            # noqa: E402,F401


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if args.list:
        for name, *_ in suite.TESTS:
            print(name + (" (--full)" if name in storage.LONG else ""))
        return 0
    if not args.full and not args.names:
        suite.TESTS[:] = [t for t in suite.TESTS if t[0] not in storage.LONG]
    storage.FULL = args.full
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    tap = Tap()
    suite.run(tap, "erdma", args.names)
    return tap.done()


sys.exit(main())
