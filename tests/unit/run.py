#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: engine and transport without QEMU, under ASan and UBSan
"""Builds meson.build's tests three ways and runs them.

Arguments, if any, are names of the tests to run (as in meson.build).
"""

import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'scripts'))
import standalone  # noqa: E402
from tap import Tap  # noqa: E402


def tests_in(directory):
    """name -> argv of each test that meson.build declares."""
    info = directory / 'meson-info' / 'intro-tests.json'
    return {test['name']: test['cmd']
            for test in json.loads(info.read_text())}


def main():
    tap = Tap()
    wanted = sys.argv[1:]
    directory = {name: standalone.build_point(tap, name)
                 for name in standalone.BUILDS}['sanitize']
    if directory:
        env = dict(os.environ,
                   ASAN_OPTIONS='detect_leaks=1:abort_on_error=0',
                   UBSAN_OPTIONS='halt_on_error=1:print_stacktrace=1')
        tests = tests_in(directory)
        for name in wanted or tests:
            if name not in tests:
                tap.point(False, name, 'no such test in meson.build')
                continue
            tap.program(name, tests[name], env=env)
    return tap.done()


if __name__ == '__main__':
    sys.exit(main())
