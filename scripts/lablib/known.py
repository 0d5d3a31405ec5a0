# SPDX-License-Identifier: GPL-2.0-or-later
"""./erdma lab known-answers: experiments whose results formulas predict.

--sim runs tests/sim's suite, in virtual time, with its tolerances.  --guests
runs those that linked guests can give (6, 7, 8, 9, 11, 12, 17), with the
unmodified driver, filter-netem as the links, and the tolerances for virtual
machines; the row's median over the repeats counts.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

import standalone
from arguments import Parser
from guestlib import paths
from guestlib.errors import GuestError
from guestlib.guests import GuestSet, Options

from . import answers, verdict
from .dumbbell import Dumbbell
from .errors import LabError

SIM_NUMBERS = range(1, 21)


def _say(text):
    print(f'erdma: lab: {text}', file=sys.stderr, flush=True)


def _simulator():
    """tests/sim's program, built if need be"""
    try:
        where = standalone.build('gcc', ['tests/sim/known-answers'])
    except standalone.BuildError as error:
        raise LabError(f'cannot build the known answers: {error}',
                       error.status) from error
    return where / 'tests' / 'sim' / 'known-answers'


def _run_simulator(numbers, options):
    return subprocess.run([_simulator(), *options, *map(str, numbers)],
                          stdout=subprocess.PIPE, text=True, check=False)


def run_sim(args):
    options = ['-l'] if args.long else []
    if args.markdown:
        result = _run_simulator(args.numbers, [*options, '-t'])
        pathlib.Path(args.markdown).write_text(result.stdout)
        points = [line.rsplit('|', 2)[1].strip()
                  for line in result.stdout.splitlines()[2:]]
        passed = points.count('yes')
        failed = len(points) - passed
    else:
        result = _run_simulator(args.numbers, options)
        points = [line.split()[0] for line in result.stdout.splitlines()
                  if line.startswith(('ok ', 'not ok '))]
        passed = points.count('ok')
        failed = len(points) - passed
    print(result.stdout, end='')
    if result.returncode not in (0, 1) or not points:
        _say(f'the simulator ended with status {result.returncode}')
        return 1
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


class Record:
    """Runs of rows, kept in a file if so asked, so that a long measurement
    can be done in parts."""

    FORMAT = 1

    def __init__(self, path):
        self.path = path
        self.runs = {number: [] for number in answers.ALL}
        if path and os.path.exists(path):
            try:
                kept = json.loads(pathlib.Path(path).read_text())
                if kept['format'] != self.FORMAT:
                    raise ValueError('another format')
                for number, runs in kept['runs'].items():
                    self.runs[int(number)] = [
                        [_row_from(fields) for fields in run]
                        for run in runs]
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise GuestError(f'{path}: not a record of known answers: '
                                 f'{error}') from error

    def add(self, number, rows):
        self.runs[number].append(rows)
        if self.path:
            kept = {'format': self.FORMAT, 'runs': {
                number: [[_row_fields(row) for row in run] for run in runs]
                for number, runs in self.runs.items() if runs}}
            part = f'{self.path}.part'
            pathlib.Path(part).write_text(json.dumps(kept, indent=1) + '\n')
            os.replace(part, self.path)

    def next(self, numbers, repeats):
        """Whose turn it is: the first that has the fewest runs, or None"""
        number = min(numbers, key=lambda n: len(self.runs[n]))
        return number if len(self.runs[number]) < repeats else None

    def rows(self, numbers):
        rows = []
        for number in numbers:
            rows += verdict.merge(self.runs[number])
        return rows


_FIELDS = ('name', 'what', 'unit', 'text', 'sim_scale', 'values')


def _row_fields(row):
    fields = {name: getattr(row, name) for name in _FIELDS}
    # JSON has no infinity.
    fields['low'] = None if row.low == float('-inf') else row.low
    fields['high'] = None if row.high == float('inf') else row.high
    return fields


def _row_from(fields):
    row = verdict.Row(
        fields['name'], fields['what'], fields['unit'],
        float('-inf') if fields['low'] is None else fields['low'],
        float('inf') if fields['high'] is None else fields['high'],
        fields['text'], fields['sim_scale'])
    row.values = list(fields['values'])
    return row


def _measure(args, record):
    """Runs what is asked for, a repeat after the other."""
    with GuestSet(Options(n=2, rdma='none', restrict=True),
                  logdir=os.path.join(paths.BUILD, 'logs', 'known-answers'),
                  say=_say) as guests:
        net = Dumbbell(guests)
        while (number := record.next(args.numbers, args.repeats)):
            began = time.monotonic()
            seed = 1 + len(record.runs[number])
            rows = answers.ALL[number](answers.Lab(net, seed, _say))
            record.add(number, rows)
            for row in rows:
                _say(f'{row.key}: {row.values[-1]:.5g} '
                     f'(expected {row.text})')
            _say(f'KA-{number}, run {seed} of {args.repeats} took '
                 f'{time.monotonic() - began:.0f} s')
        for guest in guests:
            for problem in guest.log_problems():
                _say(f'warning: {guest.name}: {problem}')


def run_guests(args):
    record = Record(args.record)
    if record.next(args.numbers, args.repeats):
        if not os.environ.get('ERDMA_QEMU'):
            paths.step('build')
        _measure(args, record)
    rows = record.rows(args.numbers)
    if not args.no_sim:
        _say('the simulator\'s values')
        verdict.add_simulator(rows, _run_simulator(args.numbers, []).stdout)
    text = '\n'.join(verdict.table(rows))
    print(text)
    if args.markdown:
        pathlib.Path(args.markdown).write_text(text + '\n')
    passed, failed = verdict.counts(rows)
    print(f'{passed} passed, {failed} failed')
    return 1 if failed or not rows else 0


def _parser():
    parser = Parser(prog='./erdma lab known-answers', description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    where = parser.add_mutually_exclusive_group()
    where.add_argument('--sim', action='store_true',
                       help='in the simulator (default)')
    where.add_argument('--guests', action='store_true',
                       help='in two linked guests')
    parser.add_argument('numbers', nargs='*', type=int, metavar='NUMBER',
                        help='only these, e.g. 8 for KA-8')
    parser.add_argument('--markdown', metavar='FILE',
                        help='the table goes there, too')
    parser.add_argument('--long', action='store_true',
                        help='--sim: more loss cycles, more cases')
    parser.add_argument('--repeats', type=int, default=3, metavar='N',
                        help='--guests: runs of each (3)')
    parser.add_argument('--record', metavar='FILE',
                        help='--guests: keep the runs there, and count those '
                             'that it has: one can stop and go on')
    parser.add_argument('--no-sim', action='store_true',
                        help='--guests: leave the simulator\'s column out')
    return parser


def main(argv):
    parser = _parser()
    args = parser.parse_args(argv)
    known = list(answers.ALL) if args.guests else list(SIM_NUMBERS)
    for number in args.numbers:
        if number not in known:
            parser.error(f'{number}: no such known answer here, there are '
                         + ', '.join(map(str, known)))
    args.numbers = args.numbers or known
    if not 1 <= args.repeats <= 100:
        parser.error('--repeats: 1 to 100')
    try:
        return run_guests(args) if args.guests else run_sim(args)
    except GuestError as error:
        _say(f'failed: {error}')
        return 1
