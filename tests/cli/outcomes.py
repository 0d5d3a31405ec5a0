#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""usage: outcomes.py EXPECTED FOUND

Compares two files of outcomes as the suite "pyverbs" does, without a guest.
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / 'scripts'), str(ROOT / 'tests/pyverbs')]

import outcomes                                                 # noqa: E402
from tap import Tap                                             # noqa: E402


def main():
    expected, found = map(pathlib.Path, sys.argv[1:])
    mode = outcomes.Mode('6.12')
    mode.path = expected
    tap = Tap()
    mode.compare(tap.point, outcomes.parse(found.read_text()))
    return tap.done()


sys.exit(main())
