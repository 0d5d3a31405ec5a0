#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: two and more guests with the unmodified driver
"""Runs the guest tests.

Arguments: names of tests, or how they begin (list: --list); --rdma siw or
rxe runs those that make sense for a software device, to check the tests.
"""

import argparse
import signal
import sys

import suite
import test_capture             # noqa: F401  the tests register themselves
import test_commands            # noqa: F401
import test_driver              # noqa: F401
import test_inspect             # noqa: F401
import test_lab                 # noqa: F401
import test_programs            # noqa: F401
import test_verbs               # noqa: F401
from tap import Tap             # suite has put scripts/ into the path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rdma", default="erdma",
                        choices=["erdma", "siw", "rxe"])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if args.list:
        for name, guests, _, _ in suite.TESTS:
            print("%-30s %s" % (name, guests or "own guests"))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    tap = Tap()
    suite.run(tap, args.rdma, args.names)
    return tap.done()


sys.exit(main())
