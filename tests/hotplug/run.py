#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: hot-plug, reset, link, MTU and address changes in real guests
"""Plugs, unplugs, resets and disturbs the adapter under an unmodified guest.

  --short          a selection of a minute; without it when the suite is named
  --rounds N       of each test (each has its own number; --short: 1 of most)
  --markdown FILE  the table of docs/hotplug.md
  --list           list the tests
  NAME...          only these (or how they begin)
"""

import argparse
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "guest"))

import suite                                                    # noqa: E402
from tap import Tap                                             # noqa: E402

import hotplug                                                  # noqa: E402
import test_unplug              # noqa: E402,F401  they register themselves
import test_pairing                                         # noqa: E402,F401
import test_reset                                           # noqa: E402,F401
import test_link                                            # noqa: E402,F401
import test_storage                                         # noqa: E402,F401
import test_cases                                           # noqa: E402,F401


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--short", action="store_true",
                        default=not os.environ.get("ERDMA_CHECK_NAMED", "1"))
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if args.list:
        for name, *_ in suite.TESTS:
            print(name + (" (short)" if name in hotplug.SHORT else ""))
        return 0
    unknown = [x for x in args.names
               if not any(t[0].startswith(x) for t in suite.TESTS)]
    if unknown:
        parser.error("no such test: " + ", ".join(unknown))
    if args.short and not args.names:
        suite.TESTS[:] = [t for t in suite.TESTS if t[0] in hotplug.SHORT]
    hotplug.ROUNDS, hotplug.IS_SHORT = args.rounds, args.short
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    tap = Tap()
    suite.run(tap, "erdma", args.names)
    table = hotplug.markdown()
    print("\n".join("# " + line for line in table.splitlines()), flush=True)
    if args.markdown:
        args.markdown.write_text(table)
    return tap.done()


sys.exit(main())
