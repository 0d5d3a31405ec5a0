#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: rdma-core's own tests (pyverbs) in a guest
# on demand
"""Runs rdma-core's tests in a guest: each must end as tests/pyverbs/expected
says, be it with success, skipped or with an error.

  --kernel SERIES  only with this kernel; can be repeated
  --compat         in compat mode (which "check compat" does, too), kernel 6.12
  --write          make the expected-outcome files, then compare
  NAME...          only these: MODULE[.CLASS[.TEST]]
"""

import argparse
import pathlib
import signal
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'scripts'))
from guestlib import paths                                      # noqa: E402
from guestlib.errors import GuestError                          # noqa: E402
from guestlib.guests import GuestSet, Options                   # noqa: E402
from tap import Tap                                             # noqa: E402

import outcomes                                                 # noqa: E402

KERNELS = ('6.12', '6.1', '7')


def is_named(names):
    return lambda test: not names or any(
        f'{test}.'.startswith(f'{name}.') for name in names)


def run(tap, name, args):
    """All tests as in one file of expected outcomes."""
    mode = outcomes.Mode(name)
    print(f'# progress: {name}', flush=True)
    try:
        options = Options(n=1, kernel=mode.kernel, suite=outcomes.SUITE,
                          restrict=True, addons=['pyverbs'])
        with GuestSet(options, say=tap.diag,
                      logdir=f'{paths.BUILD}/logs/pyverbs-{name}') as guests:
            found = mode.run(guests[1], args.names)
            if args.write:
                mode.write(found)
            mode.compare(
                lambda passed, what, why='': tap.point(
                    passed, f'{name}: {what}', why),
                found, is_named(args.names))
            bad = guests[1].log_problems()
            tap.point(not bad, f'{name}: kernel log is clean',
                      '\n'.join(bad[:30]))
    except (GuestError, OSError) as error:
        tap.point(False, f'{name}: tests run', str(error))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('--kernel', action='append', choices=KERNELS)
    parser.add_argument('--compat', action='store_true')
    parser.add_argument('--write', action='store_true')
    parser.add_argument('names', nargs='*')
    args = parser.parse_args()
    if args.write and args.names:
        parser.error('--write wants all tests')
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    tap = Tap()
    chosen = args.kernel or ([] if args.compat else outcomes.kernels())
    for name in [*chosen, *([outcomes.COMPAT] if args.compat else [])]:
        run(tap, name, args)
    return tap.done()


sys.exit(main())
