#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: known answers of congestion control, in the simulator
"""Runs tests/sim's known answers: experiments that formulas predict.

  --long      more cycles and more cases (minutes)
  NUMBER...   only these, 1 to 20

Some of them run a second time in a build with sanitizers.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'scripts'))
import standalone  # noqa: E402
from tap import Tap  # noqa: E402

ALL = range(1, 21)
TARGETS = ['sim/erdma-sim', 'tests/sim/known-answers']
# Short ones, which between them use every part of the simulator
SANITIZED = ['1', '2', '6', '7', '18']


EXPERIMENT = """
senders = 4
queue = 0.5BDP
ecn-min = 20KB
ecn-max = 80KB
ecn-probability = 0.2
loss = 0.1%
algorithm = newreno, cubic, hpcc_rtt, hpcc_ecn, hpcc_int
duration = 4ms
interval = 500us
[flows]
message = 100KB
start = 100us
"""

# What is wrong, and what the complaint has to contain
MISTAKES = [
    ('rtt = 40', [':1: rtt:', 'unit', 'us']),
    ('\n# text\nfoo = 1', [":3: unknown key 'foo'", 'allowed', 'topology']),
    ('loss = 101%', [':1: loss:', '0% to 100%']),
    ('algorithm = cubic, bbr', [':1: algorithm:', 'hpcc_int']),
    ('senders', [':1:', 'key = value']),
    ('[flows]\nrtt = 1us', [":2: unknown key 'rtt'", 'message']),
    ('ecn = maybe', [':1: ecn:', 'on or off']),
    ('rate = -1Gbit/s', [':1: rate:', 'Gbit/s']),
    ('warm-up = 1s', [':1: warm-up:', 'duration']),
    ('[flows]\nfirst = 9', [':2: first:', 'senders 0 to 0']),
    ('[flows]\n[flows]\ndepth = 0', [':3: depth:', '1 to 4096']),
    ('rtt = 1ns', [':1: rtt:', 'shorter']),
    ('loss = 0, 1%, 0', [':1: loss:', "'0' is twice"]),
    ('loss = 0, 2', [':1: loss:', "'2'", '0% to 100%']),
    ('mtu = 9KB\nmtu = 1KB', [':2: mtu:', 'line 1']),
    ('seed = 1, 2', [':1: seed:', 'whole number']),
    ('ecn-min = 9KB\necn-max = 8KB', [':1: ecn-min:', 'ecn-max']),
    ('rto-max = 1ms\nrto-min = 2ms', [':1: rto-max:', 'rto-min']),
    ('eta = 2', [':1: eta:', '0.1 to 1']),
    ('[guests]\nrate = 5', [':2: rate:', 'Gbit/s']),
    ('plots = pie', [':1: plots:', 'window']),
]


def run_experiment(program, text, *args):
    return subprocess.run([str(program), *args], input=text, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=600)


def check_program(tap, program):
    """erdma-sim: files in, files out."""
    first = run_experiment(program, EXPERIMENT, '-')
    tap.point(first.returncode == 0, 'erdma-sim: an experiment',
              first.stderr)
    runs = json.loads(first.stdout or '[]')
    hashes = [one['hash'] for one in runs]
    tap.point(len(set(hashes)) == 5, 'erdma-sim: five algorithms, five '
              'different traces', hashes)
    tap.point(all(flow['messages'] and not flow['failed']
                  for one in runs for flow in one['flows']),
              'erdma-sim: every flow completes messages', first.stdout)
    with tempfile.TemporaryDirectory() as scratch:
        run_experiment(program, EXPERIMENT, '-o', scratch, '-')
        again = json.loads(pathlib.Path(scratch, 'summary.json').read_text())
        tap.point(again == runs, 'erdma-sim: the same file, the same hashes')
        rows = pathlib.Path(scratch, 'flows-cubic-1.csv').read_text()
        lines = [line.split(',') for line in rows.splitlines()]
        tap.point(len(lines) == 1 + 4 * 8 and
                  {len(line) for line in lines} == {len(lines[0])},
                  'erdma-sim: a row per flow and interval', rows)
    other = run_experiment(program, EXPERIMENT, '-', 'seed=2')
    tap.point([one['hash'] for one in json.loads(other.stdout)] != hashes,
              'erdma-sim: another seed, another trace')
    warned = run_experiment(program, 'rto-min = 1us\nnic-rate = 25Gbit/s',
                            '-c', '-')
    tap.point(warned.returncode == 0 and 'rto-min' in warned.stderr and
              'bottleneck' in warned.stderr,
              'erdma-sim: warns of what cannot work', warned.stderr)
    for text, words in MISTAKES:
        result = run_experiment(program, text, '-')
        tap.point(result.returncode != 0 and
                  all(word in result.stderr for word in words),
                  f'erdma-sim: complains about {text!r}', result.stderr)


def main():
    tap = Tap()
    options = ['-l'] if '--long' in sys.argv[1:] else []
    numbers = [word for word in sys.argv[1:] if word != '--long']
    builds = {name: standalone.build_point(tap, name, TARGETS)
              for name in ('gcc', 'sanitize')}
    if builds['gcc']:
        program = builds['gcc'] / 'tests' / 'sim' / 'known-answers'
        for number in numbers or ALL:
            print(f'# progress: KA-{number}', flush=True)
            tap.program('simulator', [str(program), *options, str(number)],
                        timeout=3600)
    if builds['sanitize'] and not numbers:
        check_program(tap, builds['sanitize'] / 'sim' / 'erdma-sim')
        env = dict(os.environ, UBSAN_OPTIONS='halt_on_error=1')
        program = builds['sanitize'] / 'tests' / 'sim' / 'known-answers'
        tap.program('sanitizers', [str(program), *SANITIZED], env=env,
                    timeout=3600)
    return tap.done()


if __name__ == '__main__':
    sys.exit(main())
