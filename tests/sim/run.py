#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: known answers of congestion control, in the simulator
"""Runs tests/sim's known answers: experiments that formulas predict.

  --long      more cycles and more cases (minutes)
  NUMBER...   only these, 1 to 20

Some of them run a second time in a build with sanitizers.
"""

import importlib.util
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'scripts'))
from tap import Tap  # noqa: E402

ALL = range(1, 21)
# Short ones, which between them use every part of the simulator
SANITIZED = ['1', '2', '6', '7', '18']


def unit_suite():
    """The unit suite's runner: the builds are the same."""
    spec = importlib.util.spec_from_file_location(
        'unit_run', ROOT / 'tests' / 'unit' / 'run.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    tap = Tap()
    options = ['-l'] if '--long' in sys.argv[1:] else []
    numbers = [word for word in sys.argv[1:] if word != '--long']
    builds = unit_suite().build_all(tap, ['gcc', 'sanitize'])
    if builds['gcc']:
        program = builds['gcc'] / 'tests' / 'sim' / 'known-answers'
        for number in numbers or ALL:
            print(f'# progress: KA-{number}', flush=True)
            tap.program('simulator', [str(program), *options, str(number)],
                        timeout=3600)
    if builds['sanitize'] and not numbers:
        env = dict(os.environ, UBSAN_OPTIONS='halt_on_error=1')
        program = builds['sanitize'] / 'tests' / 'sim' / 'known-answers'
        tap.program('sanitizers', [str(program), *SANITIZED], env=env,
                    timeout=3600)
    return tap.done()


if __name__ == '__main__':
    sys.exit(main())
