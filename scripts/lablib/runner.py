# SPDX-License-Identifier: GPL-2.0-or-later
"""From a file to a directory of results."""

import concurrent.futures
import json
import time

from . import backends, metrics, plots, results, tables
from .errors import FAILED, USAGE, LabError
from .plan import Plan

QUIET = 1.0         # seconds between lines of progress


class Progress:
    """A line per run, but not too many of them."""

    def __init__(self, total, say):
        self.total = total
        self.say = say
        self.done = 0
        self.last = 0.0

    def note(self, result):
        self.done += 1
        now = time.monotonic()
        if self.done < self.total and now - self.last < QUIET:
            return
        self.last = now
        jain = result['jain']
        self.say(f'run {self.done} of {self.total}: {result["label"]}: '
                 f'{result["goodput_bps"] / 1e9:.3f} Gbit/s'
                 + (f', Jain {jain:.3f}' if jain is not None else ''))


def _carry_out(plan, backend, directory, jobs, say):
    """The results of all runs, in the plan's order"""
    progress = Progress(len(plan.runs), say)
    jobs = min(jobs, backend.max_jobs or jobs, len(plan.runs))
    done = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(backend.run, run, directory, say): run
                   for run in plan.runs}
        try:
            for future in concurrent.futures.as_completed(waiting):
                done[waiting[future].label] = future.result()
                progress.note(future.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            backend.close()         # else the pool waits for what is running
            raise
    return [dict(done[run.label], settings=run.settings, groups=run.flows)
            for run in plan.runs]


def _read(path):
    try:
        with open(path, 'rb') as file:
            return file.read()
    except OSError as error:
        raise LabError(f'{path}: {error.strerror}', USAGE) from error


def _write_tables(out, plan, name, runs):
    rows = metrics.summarise(plan, runs)
    axes = plan.axes
    out.write('runs.csv', tables.runs_csv(axes, runs))
    out.write('flows.csv', tables.flows_csv(axes, runs))
    flow_rows = metrics.summarise_flows(plan, runs)
    out.write('flow_summary.csv', tables.flow_summary_csv(axes, flow_rows))
    out.write('summary.csv', tables.summary_csv(axes, rows))
    out.write('summary.md', tables.summary_md(plan, name, rows,
                                              results.total_hash(runs)))
    out.write('results.json', json.dumps(
        {'title': plan.title, 'plots': plan.plots, 'axes': axes,
         'backend': name, 'warnings': plan.warnings, 'summary': rows,
         'flow_summary': flow_rows,
         'runs': runs}, indent=1) + '\n')
    return rows


def run(path, replacing, name, directory, may_replace, has_plots, jobs, say):
    """All of "./erdma lab run"; returns the exit status."""
    backend = backends.load(name)
    content = _read(path)
    plan = Plan(path, replacing, backend.section)
    for text in plan.warnings:
        say(f'warning: {text}')
    if has_plots:
        plots.check_gnuplot()
    results.claim(directory, may_replace)
    out = results.Directory(directory, plan, name)
    out.keep_experiment(content)
    plan.copy = directory / 'experiment.conf'
    out.own(*[f'series/{what}-{run.label}.csv' for run in plan.runs
              if run.has_series() for what in ('flows', 'links')])
    say(f'{plan.title}: {len(plan.runs)} runs')
    began = time.monotonic()
    try:
        backend.prepare(plan, say)
        runs = _carry_out(plan, backend, directory / 'series', jobs, say)
    finally:
        backend.close()
    rows = _write_tables(out, plan, name, runs)
    total = out.finish(runs)
    say(f'took {time.monotonic() - began:.0f} s')
    if has_plots:
        plots.draw(out, json.loads((directory / 'results.json').read_text()),
                   say)
    print('\n'.join(tables.summary_table(plan.axes, rows)))
    if total:
        print(f'hash {total}')
    print(f'results in {directory}')
    failed = [r['label'] for r in runs
              if any(flow.get('failed') for flow in r['flows'])]
    if failed:
        say(f'warning: flows gave up (retries) in {", ".join(failed[:3])}'
            + (' ...' if len(failed) > 3 else ''))
    return 0


def plot(directory, say):
    """All of "./erdma lab plot"; returns the exit status."""
    again = results.Again(directory)
    plots.check_gnuplot()
    plots.draw(again, again.results, say)
    return 0
