#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: the laboratory: files, tables, confidence, plots
"""Runs ./erdma lab with short experiments, and its parts by themselves."""

import contextlib
import csv
import io
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import xml.dom.minidom

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'scripts'))
import standalone  # noqa: E402
from lablib import metrics, plots, results, runner, series  # noqa: E402
from lablib import stats, tables  # noqa: E402
from lablib.errors import LabError  # noqa: E402
from tap import Tap  # noqa: E402
import test_guests  # noqa: E402

READY = ['algorithm-comparison', 'burst-loss', 'fair-share', 'hpcc-queue',
         'incast', 'random-loss', 'rtt-unfairness', 'sr-vs-gbn']
ALGORITHMS = ['newreno', 'cubic', 'hpcc_rtt', 'hpcc_ecn', 'hpcc_int']
SHORT = ['duration=1ms', 'warm-up=0', 'interval=100us', 'repetitions=2']
# Loss, marks and INT: something for every algorithm
LOSSY = f"""
title = "Everything", at once
senders = 2
queue = 0.5BDP
ecn-min = 5KB
ecn-max = 60KB
ecn-probability = 0.5
loss = 0.1%
algorithm = {', '.join(ALGORITHMS)}
duration = 3ms
interval = 500us
repetitions = 2
"""


class Lab:
    """The command, with the simulator that was just built."""

    def __init__(self, simulator, scratch):
        os.environ['ERDMA_SIM'] = str(simulator)
        self.env = dict(os.environ, ERDMA_SIM=str(simulator))
        self.scratch = scratch

    def __call__(self, *args, **env):
        return subprocess.run(
            [sys.executable, str(ROOT / 'scripts' / 'cmd-lab.py'),
             *map(str, args)], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
            env=dict(self.env, **env), cwd=self.scratch, timeout=600)

    def inside(self, path, where, *keys, jobs=2):
        """lab run --no-plots in this process, which starts no Python.

        Returns what went wrong, or None.
        """
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                runner.run(str(path), list(keys), 'sim', where, False, False,
                           jobs, lambda text: None)
        except LabError as error:
            return str(error)
        return None

    def file(self, name, text):
        path = self.scratch / name
        path.write_text(text)
        return path

    def sim(self, *args):
        return subprocess.run([self.env['ERDMA_SIM'], *map(str, args)],
                              stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.PIPE, check=False)


def rows_of(path):
    with open(path, newline='') as file:
        return list(csv.DictReader(file))


def close(a, b, share=1e-3):
    return abs(a - b) <= share * max(abs(a), abs(b))


def check_stats(tap):
    """Against values worked out by hand, and tables of Student's t."""
    mean, ci = stats.mean_ci([1, 2, 3, 4, 5])
    tap.point(mean == 3 and close(ci, 2.7764 * math.sqrt(2.5 / 5)),
              'confidence of 1 to 5: 3 +- 1.963', (mean, ci))
    mean, ci = stats.mean_ci([10, 12])
    tap.point(mean == 11 and close(ci, 12.7062), 'of 10 and 12: 11 +- 12.7',
              (mean, ci))
    tap.point(stats.mean_ci([7]) == (7, None) and
              stats.mean_ci([]) == (None, None) and
              stats.mean_ci([None, 4, None]) == (4, None) and
              stats.mean_ci([5, 5, 5]) == (5, 0),
              'of one value, none, and the same ones')
    book = {1: 12.706, 4: 2.776, 10: 2.228, 30: 2.042, 31: 2.0395,
            40: 2.021, 60: 2.000, 120: 1.980, 10000: 1.960}
    tap.point(all(close(stats.student_t95(n), t, 5e-4)
                  for n, t in book.items()), "Student's t as in books",
              {n: stats.student_t95(n) for n in book})
    tap.point(stats.percentile([4, 1, 3, 2], 0.5) == 2.5 and
              stats.percentile([1, 2, 3], 1) == 3 and
              stats.percentile([9], 0.99) == 9 and
              stats.percentile([], 0.5) is None, 'percentiles')
    metric = metrics.BY_NAME['goodput_bps']
    tap.point(tables.cell(metric, 9.8765e9, 0.0234e9) == '9.877 ± 0.023' and
              tables.cell(metric, 1.5e9, None) == '1.5' and
              tables.cell(metric, 0, 0) == '0' and
              tables.cell(metric, None, None) == '-',
              'digits that are written', tables.cell(metric, 9.8765e9, 2.34e7))


def check_ready(tap, lab):
    """Every ready file, shortened"""
    listed = lab('list')
    tap.point([line.split()[0] for line in listed.stdout.splitlines()]
              == READY, 'list', listed.stdout + listed.stderr)
    for name in READY:
        path = ROOT / 'experiments' / f'{name}.conf'
        plain = lab.sim('-c', path)
        guests = lab.sim('-c', '--guests', path)
        tap.point(not plain.returncode and not plain.stderr and
                  not guests.returncode and not guests.stderr,
                  f'{name}: parses, nothing to warn of, guests too',
                  plain.stderr + guests.stderr)
        keys = SHORT + (['flows.message=5KB', 'senders=2,4'] if
                        name == 'incast' else []) + \
            (['flows.stagger=100us'] if name == 'algorithm-comparison'
             else [])
        out = lab.scratch / name
        problem = lab.inside(path, out, *keys)
        if tap.point(problem is None, f'{name}: runs', problem):
            check_directory(tap, name, out)


def check_directory(tap, name, out):
    """All tables against results.json"""
    data = json.loads((out / 'results.json').read_text())
    manifest = json.loads((out / 'manifest.json').read_text())
    labels = [run['label'] for run in data['runs']]
    points = math.prod(len(axis['values']) for axis in data['axes'])
    runs = rows_of(out / 'runs.csv')
    tap.point(len(labels) == len(set(labels)) == 2 * points and
              [row['label'] for row in runs] == labels,
              f'{name}: {points} points, two runs of each', labels)
    summary = rows_of(out / 'summary.csv')
    means = [stats.mean_ci([float(a['goodput_bps']), float(b['goodput_bps'])])
             for a, b in zip(runs[::2], runs[1::2])]
    tap.point(len(summary) == points and all(
        close(float(row['goodput_bps']), mean) and
        abs(float(row['goodput_bps_ci95']) - ci) <= 1e-6 * mean
        for row, (mean, ci) in zip(summary, means)),
              f'{name}: the summary is that of the runs', summary[:1])
    per_flow = rows_of(out / 'flow_summary.csv')
    total = sum(float(row['goodput_bps']) for row in per_flow)
    tap.point(len(per_flow) == sum(len(run['flows']) for run in
                                   data['runs'][::2]) and
              close(total, sum(mean for mean, _ in means)),
              f'{name}: means of flows add up', total)
    bad = []
    for run in data['runs']:
        flows = series.read(out / 'series', 'flows', run['label'])
        links = series.read(out / 'series', 'links', run['label'])
        times = {row['time_us'] for row in flows}
        if not flows or list(flows[0]) != series.FLOW_COLUMNS or \
                list(links[0]) != series.LINK_COLUMNS or \
                len(flows) != len(times) * len(run['flows']) or \
                len(links) != len(times) * len(run['links']):
            bad.append(run['label'])
    tap.point(not bad, f'{name}: a row per flow, link and interval', bad)
    there = {str(path.relative_to(out)) for path in out.rglob('*')
             if path.is_file()}
    tap.point(set(manifest['files']) == there and manifest['complete'],
              f'{name}: the manifest lists what is there',
              there ^ set(manifest['files']))


def check_determinism(tap, lab):
    path = lab.file('lossy.conf', LOSSY)
    first, again, other = (lab.scratch / name for name in 'abc')
    lab.inside(path, first)
    lab('run', path, '--no-plots', '-o', again, '-j', '1')
    lab.inside(path, other, 'seed=7')
    data, same, seeds = (json.loads((out / 'results.json').read_text())
                         for out in (first, again, other))
    hashes = [json.loads((out / 'manifest.json').read_text())['hash']
              for out in (first, again, other)]
    tap.point(hashes[0] and hashes[0] == hashes[1] and data == same,
              'the same seeds, the same hash and results', hashes)
    tap.point(hashes[0] != hashes[2] and not
              {run['hash'] for run in data['runs']} &
              {run['hash'] for run in seeds['runs']},
              'other seeds, other traces', hashes)
    traces = {}
    for name in ALGORITHMS:
        rows = series.read(first / 'series', 'flows', f'{name}-1')
        traces[name] = tuple(row['cwnd'] for row in rows)
    tap.point(len(set(traces.values())) == 5 and
              len({run['hash'] for run in data['runs']}) == 10,
              'five algorithms, five different windows over time', traces)
    signals = [(run['label'], *(sum(flow[name] for flow in run['flows'])
                                for name in ('retransmits', 'marks')))
               for run in data['runs']]
    tap.point(all(lost and marked for _, lost, marked in signals),
              'all of them saw losses and marks', signals)
    keys = ['file_sha256', 'command', 'seeds', 'version', 'replaced']
    manifest = json.loads((other / 'manifest.json').read_text())
    tap.point(all(key in manifest for key in keys) and
              manifest['seeds'] == [7, 8] and
              manifest['replaced'] == ['seed=7'] and
              (again / 'experiment.conf').read_bytes() == path.read_bytes(),
              'the manifest says how to do it again', manifest)


# What is wrong, and what the complaint has to contain
MISTAKES = [
    ('rtt = 40', [], [':1: rtt:', "'40'", 'us']),
    ('\nbandwidth = 1Gbit/s', [], [":2: unknown key 'bandwidth'", 'rate']),
    ('senders = 2, none', [], [':1: senders:', "'none'"]),
    ('plots = window, pie', [], [':1: plots:', 'queue-mean']),
    ('burst-share = 1%', [], [':1: burst-share:', 'burst-length']),
    ('[flows]\nmessage = 0', [], [':2: message:', '1 B']),
    ('repetitions = 1000\nloss = ' + ', '.join(f'{i}%' for i in range(11)),
     [], ['10000 runs']),
    ('', ['loss=2'], ['command line: loss:', '0% to 100%']),
    ('', ['loss'], ['loss']),
    ('', ['flows.size=1KB'], ['flows.size', 'message']),
]


def check_mistakes(tap, lab):
    path = lab.scratch / 'bad.conf'
    for text, keys, words in MISTAKES:
        path.write_text(text)
        problem = lab.inside(path, lab.scratch / 'never', *keys)
        tap.point(problem and len(problem.splitlines()) == 1 and
                  all(word in problem for word in words),
                  f'complains of {(text, keys)!r:.60}', problem)
    result = lab('run', 'bad.conf', 'x', '-o', 'never', 'flows.size=1KB')
    tap.point(result.returncode == 2 and "erdma: lab: command line: 'x'" in
              result.stderr and len(result.stderr.splitlines()) == 1,
              'with one line and status 2', result.stderr)
    result = lab('run', 'missing.conf')
    tap.point(result.returncode == 2 and 'missing.conf' in result.stderr,
              'complains of a file that is not there', result.stderr)
    path.write_text('rto-min = 10us\nsenders = 2\nsend-jitter = 0\n'
                    'nic-rate = 1Gbit/s\nalgorithm = hpcc_ecn\n'
                    'duration = 1ms\nburst-length = 4')
    result = lab('run', 'bad.conf', '--no-plots', '-o', 'warned')
    found = [line for line in result.stderr.splitlines()
             if 'warning: ' in line]
    tap.point(result.returncode == 0 and all(
        any(f'bad.conf:{place}:' in line for line in found) for place in
        ('1: rto-min', '3: send-jitter', '5: algorithm',
         '7: burst-length')) and
              any('bottleneck' in line for line in found) and
              'rto-min' in (lab.scratch / 'warned/summary.md').read_text(),
              'warns by name of what cannot work', result.stderr)
    tap.point(not (lab.scratch / 'never').exists(),
              'a mistake leaves no directory behind')


def check_places(tap, lab):
    """Nothing of the user's is lost"""
    path = lab.file('tiny.conf', 'duration = 1ms\ninterval = 100us')
    run = ['run', path, '--no-plots', '-o']
    for place in ('/dev/null/out', path):
        result = lab(*run, place)
        tap.point(result.returncode in (1, 2) and str(place) in result.stderr
                  and len(result.stderr.splitlines()) == 1,
                  f'a place that cannot be: {place}', result.stderr)
    mine = lab.scratch / 'mine'
    mine.mkdir()
    (mine / 'thesis.tex').write_text('x')
    result = lab(*run, mine, '--replace')
    tap.point(result.returncode == 2 and 'not empty' in result.stderr and
              [p.name for p in mine.iterdir()] == ['thesis.tex'],
              'somebody else\'s directory is left alone', result.stderr)
    out = lab.scratch / 'out'
    lab(*run, out)
    before = (out / 'results.json').read_text()
    result = lab(*run, out, 'seed=2')
    tap.point(result.returncode == 2 and '--replace' in result.stderr and
              (out / 'results.json').read_text() == before,
              'earlier results are not replaced unasked', result.stderr)
    (out / 'series' / 'notes').write_text('x')
    result = lab(*run, out, '--replace', 'algorithm=newreno', 'interval=0')
    left = {str(p.relative_to(out)) for p in (out / 'series').iterdir()}
    tap.point(result.returncode == 0 and left == {'series/notes'},
              '--replace removes the lab\'s files only', left)
    evil = lab.scratch / 'evil'
    evil.mkdir()
    (evil / 'manifest.json').write_text(json.dumps(
        # Files of this test only: a guard that fails must do no harm.
        {'made_by': results.MAKER, 'files': [
            '../tiny.conf', str(mine / 'thesis.tex'), 'manifest.json']}))
    lab(*run, evil, '--replace')
    tap.point(path.exists() and (mine / 'thesis.tex').exists(),
              'a manifest names nothing outside')


def check_plots(tap, lab):
    missing = lab('run', 'incast', '-o', 'nogp', GNUPLOT='no-such-gnuplot')
    tap.point(missing.returncode == 3 and 'deps' in missing.stderr and
              '--no-plots' in missing.stderr and
              not (lab.scratch / 'nogp').exists(),
              'no gnuplot: says so at once', missing.stderr)
    named = lab.sim('-c', lab.file('plots.conf', 'plots = x')).stderr
    tap.point(all(name in named for name in plots.PLOTS) and
              not lab.sim('-c', lab.file(
                  'plots.conf', 'plots = ' + ', '.join(plots.PLOTS))).stderr,
              'erdma-sim knows the same plots', named)
    if not shutil.which('gnuplot'):
        tap.skip('plots', 'no gnuplot')
        return
    path = lab.file('lossy.conf', LOSSY)
    draw(tap, lab, path, 'bars', ['window', 'queue', 'jain', 'flows'],
         'plots=window,queue,jain,flows')
    draw(tap, lab, ROOT / 'experiments/incast.conf', 'lines',
         ['fct', 'rate', 'goodput'], 'senders=2,4,8', 'flows.message=20KB',
         'algorithm=cubic,hpcc_int', 'plots=fct,rate,goodput')
    script = lab.scratch / 'bars' / 'plots' / 'jain.gp'
    script.write_text(script.read_text() + '# mine\n')
    result = lab('plot', 'bars')
    kept = script.with_name('jain.edited1.gp')
    tap.point(result.returncode == 0 and kept.exists() and
              '# mine' in kept.read_text(),
              'an edited script is kept', result.stderr)
    result = lab('plot', 'mine')
    tap.point(result.returncode == 2 and 'no results' in result.stderr,
              'plot: no results there', result.stderr)


def draw(tap, lab, path, where, names, *keys):
    result = lab('run', path, '-o', where, *keys)
    found = lab.scratch / where / 'plots'
    tap.point(result.returncode == 0 and {p.stem for p in found.iterdir()}
              == set(names), f'plots: {", ".join(names)}', result.stderr)
    bad = []
    for name in names:
        png = (found / f'{name}.png').read_bytes()
        svg = xml.dom.minidom.parse(str(found / f'{name}.svg'))
        texts = ' '.join(
            node.data for element in svg.getElementsByTagName('text')
            for node in element.childNodes if node.nodeType == node.TEXT_NODE)
        if not png.startswith(b'\x89PNG') or len(png) < 10000 or \
                len(svg.getElementsByTagName('path')) < 5:
            bad.append(name)
        if name in ('window', 'rate', 'queue') and 'time, ' not in texts:
            bad.append(f'{name}: {texts}')
    tap.point(not bad, f'{where}: PNG and SVG have something in them', bad)


def check_effects(tap, lab):
    """Two of the ready files against their formulas, quickly"""
    out = lab.scratch / 'gbn'
    lab.inside(ROOT / 'experiments/sr-vs-gbn.conf', out, 'loss=1e-2',
               'duration=30ms', 'interval=0', 'repetitions=1')
    sr, gbn = (float(row['goodput_bps']) / 1e9
               for row in rows_of(out / 'summary.csv'))
    tap.point(close(sr, 9.44, 0.02) and close(gbn, 2.68, 0.15),
              'selective repeat 9.44, go-back-N 2.68 Gbit/s', (sr, gbn))
    out = lab.scratch / 'int'
    lab.inside(ROOT / 'experiments/hpcc-queue.conf', out, 'duration=6ms',
               'warm-up=3ms', 'w-ai=100B,1600B', 'interval=0',
               'repetitions=1')
    low, high = rows_of(out / 'summary.csv')
    tap.point(0.94 < float(low['utilisation']) < 0.98 and
              abs(float(high['queue_mean_bytes']) - 19350) < 4400,
              'HPCC-INT: utilisation 0.963, queue 19.4 KB',
              (low['utilisation'], high['queue_mean_bytes']))


def check_unknown(tap, lab):
    """A backend that cannot know everything, as guests cannot"""
    path = lab.file('lossy.conf', LOSSY)
    out = lab.scratch / 'unknown'
    lab.inside(path, out, 'algorithm=newreno,cubic')
    data = json.loads((out / 'results.json').read_text())
    for run in data['runs']:
        run['hash'] = run['jain'] = None
        for part in run['links'] + run['flows']:
            for name in ('queue_mean', 'drop_loss', 'spurious',
                         'utilisation', 'completion_us'):
                part.pop(name, None)
    values = metrics.measure(data['runs'][0])
    tap.point(values['queue_mean_bytes'] is None and values['loss_share']
              is None and values['goodput_bps'] and
              results.total_hash(data['runs']) is None,
              'what a backend does not know stays unknown', values)
    text = tables.runs_csv(data['axes'], data['runs'])
    row = next(csv.DictReader(text.splitlines()))
    tap.point(row['jain'] == row['hash'] == row['spurious'] == '' and
              row['rtos'] == '0', 'and is empty in tables', row)


def main():
    tap = Tap()
    try:
        where = standalone.build('gcc', ['sim/erdma-sim'])
    except standalone.BuildError as error:
        if error.status != 1:
            return error.status
        tap.point(False, 'build', str(error))
        return tap.done()
    check_stats(tap)
    for check in test_guests.CHECKS:
        check(tap)
    with tempfile.TemporaryDirectory() as scratch:
        lab = Lab(where / 'sim' / 'erdma-sim', pathlib.Path(scratch))
        for check in (check_ready, check_determinism, check_mistakes,
                      check_places, check_plots, check_effects,
                      check_unknown):
            print(f'# progress: {check.__name__}', flush=True)
            check(tap, lab)
    return tap.done()


if __name__ == '__main__':
    sys.exit(main())
