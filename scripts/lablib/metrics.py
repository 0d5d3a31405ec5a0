# SPDX-License-Identifier: GPL-2.0-or-later
"""What is measured in a run, and summaries over repetitions.

A run's result is a dict, as erdma-sim prints it and other backends build it:

  label, algorithm, point, seed, bdp (bytes), hash (None: not reproducible)
  measured_s, goodput_bps, jain
  links  [{link, utilisation, queue_mean, queue_max, arrivals, drop_queue,
           drop_loss, marks}]
  flows  [{flow, algorithm, goodput_bps, delivered, messages, completion_us
           (-1: has no end, or did not come to it), sent, retransmits, lost,
           spurious, probes, rtos, marks, failed}]

All of it is about the time after the warm-up; None stands for "not known".
"""

from .stats import mean_ci, percentile


class Metric:
    def __init__(self, name, title, unit, scale, of):
        self.name = name        # of the columns in CSV files
        self.title = title      # in tables and plots
        self.unit = unit        # there, too
        self.scale = scale      # factor to that unit
        self.of = of            # the run's value


def _sum(run, part, name):
    values = [one.get(name) for one in run[part]]
    return None if None in values else sum(values)


def _share(run, part, names, whole):
    parts = [_sum(run, part, name) for name in names]
    total = _sum(run, part, whole)
    if None in parts or total is None:
        return None
    return sum(parts) / total if total else 0.0


def _over_links(run, name, fold):
    values = [link.get(name) for link in run['links']]
    return fold(values) if values and None not in values else None


def _mean(values):
    return sum(values) / len(values)


def completions(run):
    """Flow completion times in us, of the flows that ended."""
    return [flow['completion_us'] for flow in run['flows']
            if (flow.get('completion_us') or -1) >= 0]


def _fct(share):
    return lambda run: percentile(completions(run), share)


def _queue_bdp(run):
    mean = _over_links(run, 'queue_mean', max)
    return None if mean is None or not run['bdp'] else mean / run['bdp']


def _spread(run):
    rates = [flow['goodput_bps'] for flow in run['flows']]
    if None in rates or len(rates) < 2 or min(rates) <= 0:
        return None
    return max(rates) / min(rates)


METRICS = [
    Metric('goodput_bps', 'goodput', 'Gbit/s', 1e-9,
           lambda run: run['goodput_bps']),
    Metric('utilisation', 'utilisation', '%', 100,
           lambda run: _over_links(run, 'utilisation', _mean)),
    Metric('jain', "Jain's index", '', 1, lambda run: run['jain']),
    Metric('spread', 'fastest / slowest flow', '', 1, _spread),
    Metric('queue_mean_bytes', 'mean queue', 'KB', 1e-3,
           lambda run: _over_links(run, 'queue_mean', max)),
    Metric('queue_mean_bdp', 'mean queue', 'BDP', 1, _queue_bdp),
    Metric('queue_max_bytes', 'longest queue', 'KB', 1e-3,
           lambda run: _over_links(run, 'queue_max', max)),
    Metric('loss_share', 'loss', '%', 100,
           lambda run: _share(run, 'links', ['drop_queue', 'drop_loss'],
                              'arrivals')),
    Metric('marked_share', 'marked', '%', 100,
           lambda run: _share(run, 'links', ['marks'], 'arrivals')),
    Metric('retransmitted_share', 'retransmitted', '%', 100,
           lambda run: _share(run, 'flows', ['retransmits'], 'sent')),
    Metric('retransmits', 'retransmits', '', 1,
           lambda run: _sum(run, 'flows', 'retransmits')),
    Metric('spurious', 'spurious', '', 1,
           lambda run: _sum(run, 'flows', 'spurious')),
    Metric('probes', 'probes', '', 1,
           lambda run: _sum(run, 'flows', 'probes')),
    Metric('rtos', 'RTOs', '', 1, lambda run: _sum(run, 'flows', 'rtos')),
    Metric('failed', 'failed flows', '', 1,
           lambda run: _sum(run, 'flows', 'failed')),
    Metric('completed', 'completed flows', '', 1,
           lambda run: len(completions(run))),
    Metric('fct_p50_us', 'FCT median', 'us', 1, _fct(0.5)),
    Metric('fct_p95_us', 'FCT 95 %', 'us', 1, _fct(0.95)),
    Metric('fct_p99_us', 'FCT 99 %', 'us', 1, _fct(0.99)),
    Metric('fct_max_us', 'FCT longest', 'us', 1, _fct(1)),
]
BY_NAME = {metric.name: metric for metric in METRICS}


def measure(run):
    """metric -> value of a run"""
    return {metric.name: metric.of(run) for metric in METRICS}


def summarise(plan, results):
    """A row per point: algorithm, point, runs, and per metric the mean and
    half of its 95 % confidence interval."""
    by_label = {result['label']: result for result in results}
    rows = []
    for runs in plan.points():
        values = [measure(by_label[run.label]) for run in runs]
        row = {'algorithm': runs[0].algorithm, 'point': runs[0].point,
               'runs': len(runs), 'mean': {}, 'ci95': {}}
        for metric in METRICS:
            mean, ci = mean_ci([v[metric.name] for v in values])
            row['mean'][metric.name] = mean
            row['ci95'][metric.name] = ci
        rows.append(row)
    return rows


FLOW_MEANS = ['goodput_bps', 'completion_us', 'retransmits', 'rtos']


def _flow_value(flow, name):
    value = flow.get(name)
    return None if name == 'completion_us' and (value or -1) < 0 else value


def summarise_flows(plan, results):
    """The same for each flow: a row per point and flow, with FLOW_MEANS."""
    by_label = {result['label']: result for result in results}
    rows = []
    for runs in plan.points():
        flows = [by_label[run.label]['flows'] for run in runs]
        for same in zip(*flows):
            row = {'algorithm': runs[0].algorithm, 'point': runs[0].point,
                   'flow': same[0]['flow'], 'runs': len(runs),
                   'flow_algorithm': same[0]['algorithm'],
                   'mean': {}, 'ci95': {}}
            for name in FLOW_MEANS:
                row['mean'][name], row['ci95'][name] = mean_ci(
                    [_flow_value(flow, name) for flow in same])
            rows.append(row)
    return rows
