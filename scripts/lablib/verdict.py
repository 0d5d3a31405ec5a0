# SPDX-License-Identifier: GPL-2.0-or-later
"""Known answers as rows: what is expected, what came out, is that met.

A row's numbers are free of scale (shares, packets, round trips), so that the
simulator's value and the guests' stand beside each other.  Several runs of
one row count as their median.
"""

import re
import statistics


class Row:
    """One number that is known beforehand."""

    def __init__(self, name, what, unit, low, high, text, sim_scale=1.0):
        self.name = name            # of the known answer, "KA-8 recovery"
        self.what = what            # as tests/sim calls it, too
        self.unit = unit
        self.low, self.high = low, high
        self.text = text            # what is expected, for people
        self.sim_scale = sim_scale  # the simulator's number is this larger
        self.sim = None             # the simulator's value, if known
        self.values = []            # one per run

    @property
    def key(self):
        return f'{self.name}, {self.what}'

    @property
    def median(self):
        return statistics.median(self.values) if self.values else None

    @property
    def is_met(self):
        """The median is within bounds; nothing measured is a failure."""
        return bool(self.values) and self.low <= self.median <= self.high

    def merge(self, other):
        """The same row of another run"""
        assert self.key == other.key
        self.values += other.values


def _number(value):
    if value is None:
        return '-'
    return f'{value:.0f}' if abs(value) >= 1000 else f'{value:.4g}'


def near(name, what, unit, expected, share, **more):
    """Within a share of what is expected"""
    return Row(name, what, unit, expected - abs(share * expected),
               expected + abs(share * expected),
               f'{_number(expected)} ± {_number(share * 100)} %', **more)


def within(name, what, unit, expected, below, above, **more):
    text = (f'± {_number(above)}' if below == above else
            f'-{_number(below)} +{_number(above)}')
    return Row(name, what, unit, expected - below, expected + above,
               f'{_number(expected)} {text}', **more)


def at_least(name, what, unit, bound, **more):
    return Row(name, what, unit, bound, float('inf'),
               f'at least {_number(bound)}', **more)


def at_most(name, what, unit, bound, **more):
    return Row(name, what, unit, float('-inf'), bound,
               f'at most {_number(bound)}', **more)


def exactly(name, what, unit, number, **more):
    return Row(name, what, unit, number, number, _number(number), **more)


def merge(runs):
    """Rows of several runs of the same experiments, in the first's order"""
    rows = {}
    for run in runs:
        for row in run:
            if row.key in rows:
                rows[row.key].merge(row)
            else:
                rows[row.key] = row
    return list(rows.values())


_POINT = re.compile(r'(?:not )?ok \d+ - (.*): ([-+.\de]+)[^:]*'
                    r'\(expected .*\)$')


def simulator_values(tap):
    """What tests/sim's program printed: key -> value"""
    found = {}
    for line in tap.splitlines():
        match = _POINT.match(line)
        if match:
            found[match.group(1)] = float(match.group(2))
    return found


def add_simulator(rows, tap):
    found = simulator_values(tap)
    for row in rows:
        if row.key in found:
            row.sim = found[row.key] / row.sim_scale


def _cells(row):
    unit = ' ' + row.unit if row.unit else ''
    guests = '-'
    if row.values:
        guests = _number(row.median)
        if min(row.values) != max(row.values):
            guests += (f' ({_number(min(row.values))} to '
                       f'{_number(max(row.values))})')
        guests += unit
    return [row.name, row.what, row.text + unit,
            _number(row.sim) + unit if row.sim is not None else '-',
            guests, 'yes' if row.is_met else '**no**']


def table(rows):
    """Markdown that can be read as it is"""
    cells = [['', 'What', 'Expected', 'Simulator', 'Guests', 'Met'],
             *[_cells(row) for row in rows]]
    widths = [max(len(line[i]) for line in cells) for i in range(6)]
    lines = ['| ' + ' | '.join(text.ljust(width) for text, width
                               in zip(line, widths)) + ' |'
             for line in cells]
    lines.insert(1, '|' + '|'.join('-' * (width + 2) for width in widths)
                 + '|')
    return lines


def counts(rows):
    """How many rows are met, how many are not"""
    met = sum(row.is_met for row in rows)
    return met, len(rows) - met


def jain(values):
    """Jain's index of fairness: 1 when all are equal, 1 / n when one has
    everything; None if there is nothing to share."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else None
