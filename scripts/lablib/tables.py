# SPDX-License-Identifier: GPL-2.0-or-later
"""Results as tables: CSV for programs, Markdown for people."""

import csv
import io
import math

from .metrics import FLOW_MEANS, METRICS, measure

# What a person looks at first; FCT only where flows have an end.
SHOWN = ['goodput_bps', 'utilisation', 'jain', 'queue_mean_bytes',
         'queue_max_bytes', 'loss_share', 'retransmits', 'rtos']
SHOWN_FCT = ['completed', 'fct_p50_us', 'fct_p99_us']


def _csv(header, rows):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator='\n')
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def _number(value):
    """As short as it is exact enough to compute with; None is empty."""
    if value is None:
        return ''
    if isinstance(value, float):
        return f'{value:.9g}'
    return str(value)


def _axes(axes):
    """The keys that are varied, but for the algorithm"""
    return [axis['key'] for axis in axes if axis['key'] != 'algorithm']


def runs_csv(axes, results):
    keys = _axes(axes)
    header = ['label', 'algorithm', *keys, 'seed', 'hash', 'measured_s',
              *[metric.name for metric in METRICS]]
    rows = []
    for run in results:
        values = measure(run)
        rows.append([run['label'], run['algorithm'],
                     *[run['point'][key] for key in keys], run['seed'],
                     run['hash'] or '', _number(run['measured_s']),
                     *[_number(values[m.name]) for m in METRICS]])
    return _csv(header, rows)


FLOW_FIELDS = ['goodput_bps', 'delivered', 'messages', 'completion_us',
               'sent', 'retransmits', 'lost', 'spurious', 'probes', 'rtos',
               'marks', 'failed']


def flows_csv(axes, results):
    keys = _axes(axes)
    rows = []
    for run in results:
        for flow in run['flows']:
            rows.append([run['label'], *[run['point'][key] for key in keys],
                         run['seed'], flow['flow'], flow['algorithm'],
                         *[_number(flow.get(name)) for name in FLOW_FIELDS]])
    return _csv(['label', *keys, 'seed', 'flow', 'algorithm', *FLOW_FIELDS],
                rows)


def summary_csv(axes, rows):
    keys = _axes(axes)
    header = ['algorithm', *keys, 'runs']
    for metric in METRICS:
        header += [metric.name, metric.name + '_ci95']
    lines = []
    for row in rows:
        line = [row['algorithm'], *[row['point'][key] for key in keys],
                row['runs']]
        for metric in METRICS:
            line += [_number(row['mean'][metric.name]),
                     _number(row['ci95'][metric.name])]
        lines.append(line)
    return _csv(header, lines)


def flow_summary_csv(axes, rows):
    keys = _axes(axes)
    header = ['algorithm', *keys, 'flow', 'flow_algorithm', 'runs']
    for name in FLOW_MEANS:
        header += [name, name + '_ci95']
    lines = []
    for row in rows:
        line = [row['algorithm'], *[row['point'][key] for key in keys],
                row['flow'], row['flow_algorithm'], row['runs']]
        for name in FLOW_MEANS:
            line += [_number(row['mean'][name]), _number(row['ci95'][name])]
        lines.append(line)
    return _csv(header, lines)


def _places(mean, ci):
    """Decimal places: two digits of the confidence, five of the value."""
    places = 5 if mean == 0 else 4 - math.floor(math.log10(abs(mean)))
    if ci:
        places = min(places, 1 - math.floor(math.log10(ci)))
    return max(0, min(places, 6))


def cell(metric, mean, ci):
    """A value with its confidence, as in 9.88 ± 0.02"""
    if mean is None:
        return '-'
    mean *= metric.scale
    if not ci:
        text = f'{mean:.5g}'
        return text if ci is None or not mean else text + ' ± 0'
    ci *= metric.scale
    places = _places(mean, ci)
    return f'{mean:.{places}f} ± {ci:.{places}f}'


def _shown(rows):
    has_end = any(row['mean']['completed'] for row in rows)
    names = SHOWN + (SHOWN_FCT if has_end else [])
    # It says nothing of single flows, nor of flows that end when they like.
    if has_end or not any(row['mean']['spread'] for row in rows):
        names = [name for name in names if name != 'jain']
    return [metric for metric in METRICS if metric.name in names]


def markdown(rows):
    """Lines of a table that can be read as it is."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ['| ' + ' | '.join(text.ljust(width) for text, width
                               in zip(row, widths)) + ' |' for row in rows]
    lines.insert(1, '|' + '|'.join('-' * (width + 2) for width in widths)
                 + '|')
    return lines


def summary_table(axes, rows):
    keys = _axes(axes)
    shown = _shown(rows)
    table = [['algorithm', *keys,
              *[f'{m.title}, {m.unit}' if m.unit else m.title
                for m in shown]]]
    for row in rows:
        table.append([row['algorithm'], *[row['point'][k] for k in keys],
                      *[cell(m, row['mean'][m.name], row['ci95'][m.name])
                        for m in shown]])
    return markdown(table)


def summary_md(plan, backend, rows, total_hash):
    runs = sorted({row['runs'] for row in rows})
    lines = [f'# {plan.title}', '', *summary_table(plan.axes, rows), '',
             f'Mean of {" or ".join(map(str, runs))} '
             f'{"run" if runs == [1] else "runs"} per row'
             + (', ± half of the 95 % confidence interval (Student\'s t)'
                if runs != [1] else '')
             + f'. Backend: {backend}.'
             + (f' Hash: {total_hash}.' if total_hash else ''), '']
    if plan.warnings:
        lines += ['Warnings:', '', *[f'* {text}' for text in plan.warnings],
                  '']
    return '\n'.join(lines)
