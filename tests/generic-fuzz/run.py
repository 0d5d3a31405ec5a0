#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: QEMU's own generic fuzzer on the device
# on demand
"""Builds QEMU's fuzzing program and runs its target generic-fuzz-erdma.

  --seconds N    60 without
  --seed N       of the mutations, 1 without; 0 draws one

Inputs are accesses to registers, doorbells and PCI configuration space, and
what the device reads from memory. Seeds are the conversation of an unmodified
driver, tests/fuzz/seeds.py. The corpus is kept in build/fuzz/generic-fuzz;
findings go to build/fuzz/findings.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'scripts'))
from tap import Tap  # noqa: E402

WORK = ROOT / 'build' / 'fuzz'
SEEDS = ROOT / 'tests' / 'fuzz' / 'seeds' / 'generic-fuzz'
# An input that takes longer than this many seconds is a finding.
SLOW = 20
# What must have run, or else it was not our device that was fuzzed
REACHED = ('erdma_regs_write', 'erdma_doorbell_write', 'erdma_engine_reset',
           'erdma_cmd_create_qp', 'erdma_decode_sqe', 'erdma_conn_tx_data')


def build():
    command = ['sh', str(ROOT / 'scripts/cmd-build.sh'), '--fuzz']
    status = subprocess.call([*command, '--quiet'])
    if status:
        return status, None
    return 0, subprocess.check_output([*command, '--path'],
                                      text=True).strip()


def covered(output):
    """The device's functions that some input has reached"""
    return set(re.findall(r'^COVERED_FUNC: .* (\w+) \S*hw/erdma/', output,
                          re.M))


def fuzz(tap, program, args):
    corpus, findings = WORK / 'generic-fuzz', WORK / 'findings'
    for directory in (corpus, findings):
        directory.mkdir(parents=True, exist_ok=True)
    env = dict(os.environ, ASAN_OPTIONS='detect_leaks=0',
               UBSAN_OPTIONS='halt_on_error=1:print_stacktrace=1')
    with open(WORK / 'generic-fuzz.log', 'w+', errors='replace',
              encoding='utf-8') as log:
        process = subprocess.Popen(
            [program, '--fuzz-target=generic-fuzz-erdma', str(corpus),
             f'-max_total_time={args.seconds}', f'-seed={args.seed}',
             f'-timeout={SLOW}', '-rss_limit_mb=4000', '-print_coverage=1',
             f'-artifact_prefix={findings}/generic-fuzz-',
             '-print_final_stats=1', str(SEEDS)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
        # Unlike Popen.wait() this tells the time of the processor
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        log.seek(0)
        output = log.read()
    count = re.search(r'number_of_executed_units: *(\d+)', output)
    tap.point(status == 0 and count,
              f'{args.seconds} s without a finding', '\n'.join(
                  [f'status {status}'] + output.splitlines()[-40:]))
    functions = covered(output)
    missing = [name for name in REACHED if name not in functions]
    tap.point(not missing, 'the device was reached',
              'not run: ' + ', '.join(missing))
    if count:
        tap.diag(f'{count.group(1)} inputs, {len(functions)} functions, '
                 f'{usage.ru_utime + usage.ru_stime:.0f} s of CPU time')


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('--seconds', type=int, default=60)
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args()
    tap = Tap()
    status, program = build()
    if status == 3:
        return status
    if tap.point(program, 'QEMU\'s fuzzing program builds'):
        fuzz(tap, program, args)
    return tap.done()


if __name__ == '__main__':
    sys.exit(main())
