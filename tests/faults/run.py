#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: injected faults, and what the guest's driver does
"""Injects every fault of docs/faults.md under a real guest's driver.

  --short           a selection of a minute; without it when the suite is named
  --list            list the tests
  --markdown FILE   the table of docs/faults.md
  NAME...           only these (or how they begin); "replay": only that
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "loss")]

from guestlib import paths                                      # noqa: E402
from guestlib.guests import GuestSet                            # noqa: E402
from tap import Tap                                             # noqa: E402

import replay                                                   # noqa: E402
import suite                                                    # noqa: E402
import test_commands                                            # noqa: E402
import test_completions                                         # noqa: E402
import test_events                                              # noqa: E402
import test_init                                                # noqa: E402
import test_qps                                                 # noqa: E402

ORDER = [m.__name__ for m in (test_init, test_commands, test_completions,
                              test_events, test_qps)]


def chosen(args):
    tests = sorted(suite.TESTS, key=lambda t: ORDER.index(
        t.function.__module__))
    return [t for t in tests
            if (any(t.name.startswith(n) for n in args.names) if args.names
                else t.short or not args.short)]


def row(test, did, messages):
    """A line of the table: the rule, what happened, what the kernel said."""
    rules = "<br>".join("`%s`" % suite.text_of(r) for r in test.rules)
    said = "<br>".join("`%s`" % x.replace("|", "\\|")
                       for x in dict.fromkeys(messages))
    return "| %s | %s | %s | %s |" % (test.name, rules, did, said)


def check_replay(tap):
    print("# progress: a failure is recorded and replayed", flush=True)
    why = ""
    try:
        print("# " + replay.check(), flush=True)
    except (replay.ReplayError, subprocess.TimeoutExpired) as e:
        why = str(e)
    tap.point(not why, "a failure is recorded and replayed", why)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--short", action="store_true",
                        default=not os.environ.get("ERDMA_CHECK_NAMED", "1"))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    tests = chosen(args)
    if args.list:
        for test in tests:
            print(test.name, "(short)" if test.short else "")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if args.names == ["replay"]:
        tap = Tap()
        check_replay(tap)
        return tap.done()
    if not tests:
        parser.error("no such test: " + ", ".join(args.names))
    tap, rows = Tap(), []
    with GuestSet(n=2, restrict=True, logdir=paths.BUILD + "/logs/faults",
                  say=lambda t: print("# " + t, flush=True)) as guests:
        ctx = suite.Context(guests)
        for test in tests:
            print("# progress: " + test.name, flush=True)
            began = time.monotonic()
            why, did, messages = suite.try_test(ctx, test)
            tap.point(why is None, test.name, why or "")
            print("# %s (%.1f s)" % (did, time.monotonic() - began))
            for line in messages:
                print("#   " + line, flush=True)
            rows.append(row(test, did, messages))
            if args.markdown:
                args.markdown.write_text("\n".join(rows) + "\n")
        tap.point(not ctx.b.log_problems(), "guest 2's kernel log is clean")
    if not args.short and not args.names:
        check_replay(tap)
        example = subprocess.run([ROOT / "docs/examples/faults-ci.sh"],
                                 cwd=ROOT, timeout=600, text=True,
                                 stdout=subprocess.PIPE, check=False,
                                 stderr=subprocess.STDOUT)
        tap.point(example.returncode == 0 and
                  example.stdout.endswith("faults-ci: PASS\n"),
                  "the example of docs/faults.md", example.stdout[-500:])
    return tap.done()


sys.exit(main())
