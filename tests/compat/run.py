#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: compat mode: out-of-band connections on the unmodified driver
"""Runs the tests of compat mode.

  --short      a selection of a minute; without it when the suite is named
  --list       list the tests
  NAME...      only these (or how they begin)
"""

import argparse
import os
import pathlib
import signal
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'scripts'))
from tap import Tap             # noqa: E402

import checks                   # noqa: E402


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('--short', action='store_true',
                        default=not os.environ.get('ERDMA_CHECK_NAMED', '1'))
    parser.add_argument('--list', action='store_true')
    parser.add_argument('names', nargs='*')
    args = parser.parse_args()
    if args.list:
        for test in checks.TESTS:
            print(test.name, '(short)' if test.is_short else '')
        return 0
    unknown = [name for name in args.names
               if not any(t.name.startswith(name) for t in checks.TESTS)]
    if unknown:
        parser.error(f'no such test: {", ".join(unknown)}')
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    tap = Tap()
    checks.run(tap, args.names, args.short)
    return tap.done()


sys.exit(main())
