#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: fuzzers of the gates, a minute each
# beside others
"""Runs the fuzzers with libFuzzer, ASan and UBSan (clang).

  --seconds N    each, 60 without
  --jobs N       at a time, 2 without
  --seed N       of the mutations, 1 without, so that a first run tries the
                 same inputs everywhere; 0 draws one
  --coverage     no fuzzing: which lines of engine, transport and emulated
                 link the corpora reach (gcc, gcov)
  NAME...        only these

Corpora are kept in build/fuzz/NAME and grow with every run; findings go to
build/fuzz/findings and are to be put into tests/fuzz/findings/NAME once
they are fixed, where the unit suite replays them.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'scripts'))
import standalone  # noqa: E402
from tap import Tap  # noqa: E402

WORK = ROOT / 'build' / 'fuzz'
SEEDS = ROOT / 'tests' / 'fuzz' / 'seeds'
# How long inputs may get; libFuzzer would begin with a few bytes and take
# hours until there is room for what most of these play
LENGTHS = {'commands': 16384, 'compat': 256, 'driver': 32768, 'netem': 4096,
           'packet': 2048, 'plan': 8192, 'record': 32768, 'requests': 2048,
           'snapshot': 800, 'xport': 2048}
NAMES = list(LENGTHS)
# An input that takes longer than this many seconds, beside others, is a finding
SLOW = 40
OPTIONS = ['-Db_sanitize=address,undefined', '-Db_lundef=false', '-Dfuzz=true',
           '-Dc_args=-fsanitize=fuzzer-no-link']
COVERED = ['engine', 'xport', 'netem']


def frames(capture):
    """The frames of a pcap file in our own byte order."""
    data = capture.read_bytes()
    at = 24
    while at + 16 <= len(data):
        length = struct.unpack_from('<I', data, at + 8)[0]
        yield data[at + 16:at + 16 + length]
        at += 16 + length


def seed_packets(directory):
    """Packets of every type, from the dissector's samples and, if the guest
    suite ran, of real drivers."""
    captures = [WORK / 'samples.pcap']
    subprocess.run([directory / 'tests/fuzz/packet-samples', captures[0],
                    WORK / 'samples.expected'], check=True)
    captures += (ROOT / 'build' / 'logs').glob('guest-*/*.pcap')
    for number, capture in enumerate(captures):
        for index, frame in zip(range(500), frames(capture)):
            seed = WORK / 'packet' / f'seed-{number}-{index}'
            # Flags as fuzz-packet.c reads them: checksums are made right
            seed.write_bytes(b'\6' + frame)


def seed_plans():
    """The experiments that are in the repository, for both who run them"""
    for path in sorted((ROOT / 'experiments').glob('*.conf')):
        for whom in b'\0', b'\1':
            seed = WORK / 'plan' / f'seed-{path.stem}-{whom[0]}'
            seed.write_bytes(whom + path.read_bytes())


def fuzz(directory, name, seconds, seed):
    """Returns (passed, figures or what was found)."""
    env = dict(os.environ,
               UBSAN_OPTIONS='halt_on_error=1:print_stacktrace=1',
               ASAN_OPTIONS='detect_leaks=1')
    findings = WORK / 'findings'
    log = WORK / f'{name}.log'
    seeds = [SEEDS / name] if (SEEDS / name).is_dir() else []
    with log.open('w', encoding='utf-8') as out:
        process = subprocess.Popen(
            [directory / f'tests/fuzz/fuzz-{name}', WORK / name,
             f'-max_total_time={seconds}', f'-seed={seed}', f'-timeout={SLOW}',
             '-rss_limit_mb=3000', f'-max_len={LENGTHS[name]}',
             # To count how rare a feature is takes most of the time
             '-len_control=0', '-entropic=0',
             f'-artifact_prefix={findings}/{name}-', '-print_final_stats=1',
             *seeds],
            stdout=out, stderr=subprocess.STDOUT, env=env)
        # Unlike Popen.wait() this tells the time of the processor, which is
        # what counts beside others
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    text = log.read_text(encoding='utf-8', errors='replace')
    count = re.search(r'number_of_executed_units: *(\d+)', text)
    cover = re.findall(r'cov: (\d+)', text)
    if process.returncode or not count or not int(count.group(1)):
        lines = [line for line in text.splitlines()
                 if not line.startswith('#')]
        return False, '\n'.join(lines[-60:])
    return True, (f'{count.group(1)} inputs, {cover[-1] if cover else "?"} '
                  f'edges, {usage.ru_utime + usage.ru_stime:.0f} s of CPU time')


def run_fuzzers(tap, args):
    names = args.names or NAMES
    targets = [f'tests/fuzz/fuzz-{name}' for name in names]
    directory = standalone.build_point(
        tap, 'fuzz', [*targets, 'tests/fuzz/packet-samples'], 'clang', OPTIONS)
    if not directory:
        return
    for name in [*names, 'findings']:
        (WORK / name).mkdir(parents=True, exist_ok=True)
    if 'packet' in names:
        seed_packets(directory)
    if 'plan' in names:
        seed_plans()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        runs = {pool.submit(fuzz, directory, name, args.seconds,
                            args.seed): name
                for name in names}
        for run in concurrent.futures.as_completed(runs):
            passed, text = run.result()
            tap.point(passed, f'{runs[run]}: {args.seconds} s without a '
                      'finding', text)
            if passed:
                tap.diag(f'{runs[run]}: {text}')


def source_lines(report):
    """path -> [reached, all] of one gcov report"""
    for entry in report['files']:
        path = entry['file']
        for part in COVERED:
            if f'hw/erdma/{part}/' in path and path.endswith('.c'):
                yield f'{part}/{pathlib.Path(path).name}', {
                    line['line_number']: line['count'] > 0
                    for line in entry['lines']}


def coverage(tap, args):
    """A table of what the corpora reach."""
    names = args.names or NAMES
    directory = standalone.build_point(
        tap, 'coverage', [f'tests/fuzz/fuzz-{name}' for name in names], 'gcc',
        ['-Db_coverage=true'])
    if not directory:
        return
    for data in directory.rglob('*.gcda'):
        data.unlink()
    for name in names:
        if not (WORK / name).is_dir():
            tap.point(False, f'{name}: the corpus replays',
                      'there is none yet: run the fuzzer first')
            continue
        tap.command(f'{name}: the corpus replays',
                    [directory / f'tests/fuzz/fuzz-{name}', WORK / name,
                     *SEEDS.glob(name)])
    reached = {}
    for data in directory.rglob('*.gcda'):
        text = subprocess.run(['gcov', '--json-format', '--stdout', data],
                              stdout=subprocess.PIPE, check=True,
                              cwd=directory).stdout
        for line in text.splitlines():
            for path, lines in source_lines(json.loads(line)):
                known = reached.setdefault(path, {})
                for number, hit in lines.items():
                    known[number] = known.get(number, False) or hit
    total = [0, 0]
    for path in sorted(reached):
        hit, lines = sum(reached[path].values()), len(reached[path])
        missed = sorted(n for n, was in reached[path].items() if not was)
        tap.diag(f'{path:24} {hit:5} of {lines:5} lines, '
                 f'{100 * hit / lines:5.1f} %  missed: {missed}')
        total[0] += hit
        total[1] += lines
    tap.point(total[1] > 0, 'coverage was measured')
    if total[1]:
        tap.diag(f'all: {total[0]} of {total[1]} lines, '
                 f'{100 * total[0] / total[1]:.1f} %')


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('--seconds', type=int, default=60)
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--coverage', action='store_true')
    parser.add_argument('names', nargs='*')
    args = parser.parse_args()
    unknown = set(args.names) - set(NAMES)
    if unknown:
        parser.error(f'no such fuzzer: {", ".join(unknown)}')
    tap = Tap()
    if args.coverage:
        coverage(tap, args)
    else:
        run_fuzzers(tap, args)
    return tap.done()


if __name__ == '__main__':
    sys.exit(main())
