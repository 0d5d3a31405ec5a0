#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: work and memory per run with hostile queues and peers
"""Runs the tests of bounds as a guest could have it that uses all there is.

  --qps N    QPs of that guest, 131071 without: as many as there can be

How much is done in one run of the engine is judged, as in the unit suite; how
long that takes is only told. Times are of the processor, in an optimised
build; DMA is a copy here, in QEMU it costs more.
"""

import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'scripts'))
import standalone  # noqa: E402
from tap import Tap, TapReader  # noqa: E402

PROGRAMS = ['test-engine-bounds', 'test-xport-peer']
# What GLib says of itself
NOISE = ('# random seed', '# Start of', '# End of')


def run(tap, program, env):
    result = subprocess.run([program, '--tap', '-k'], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, check=False,
                            errors='replace', env=env, timeout=600)
    reader = TapReader()
    for line in result.stdout.splitlines():
        reader.feed(line)
        if line.startswith('# ') and not line.startswith(NOISE):
            tap.diag(line[2:])
    reader.end(result.returncode)
    for point in reader.points:
        tap.point(point.passed, point.name)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('--qps', type=int, default=131071)
    args = parser.parse_args()
    if not 64 <= args.qps <= 131071:
        parser.error('--qps: 64 to 131071')
    tap = Tap()
    where = standalone.build_point(tap, 'gcc', [f'tests/unit/{name}'
                                                for name in PROGRAMS])
    if where:
        env = dict(os.environ, ERDMA_BOUNDS_QPS=str(args.qps))
        for name in PROGRAMS:
            run(tap, where / 'tests/unit' / name, env)
    return tap.done()


if __name__ == '__main__':
    sys.exit(main())
