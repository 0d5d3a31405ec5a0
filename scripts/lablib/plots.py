# SPDX-License-Identifier: GPL-2.0-or-later
"""What is drawn of an experiment.

Time series show the first seed.  What is averaged shows the 95 % confidence
interval as error bars: as bars if only the algorithm (or a word) varies, else
as lines over the list with most values.
"""

import re

from . import gnuplot, series
from .gnuplot import ALGORITHMS, PALETTE, Figure, Panel
from .metrics import BY_NAME, completions

MAX_PANELS = 24
MAX_CURVES = 16
MAX_GROUPS = 12
# yerrorbars leaves a hole where the value is.
ERROR_BAR = ('using 1:3:(0):($4-$3) with vectors heads size graph 0.008,90 '
             f'lc rgb "{gnuplot.BLACK}" lw 1.2')
UNITS = {'': 1, '%': 0.01, 'ns': 1e-9, 'us': 1e-6, 'ms': 1e-3, 's': 1,
         'bit/s': 1, 'kbit/s': 1e3, 'mbit/s': 1e6, 'gbit/s': 1e9,
         'tbit/s': 1e12, 'b': 1, 'kb': 1e3, 'mb': 1e6, 'gb': 1e9,
         'kib': 1024, 'mib': 2 ** 20, 'gib': 2 ** 30, 'bdp': 1}

check_gnuplot = gnuplot.check


def number(text):
    """(value, unit) of a value in an experiment file, or None."""
    match = re.fullmatch(r'\s*([-+.\deE]+?)\s*([a-zA-Z%/]*)\s*', text)
    try:
        return float(match.group(1)), match.group(2)
    except (AttributeError, ValueError):
        return None


def algorithm_name(name):
    return ALGORITHMS.get(name, (name, gnuplot.BLACK))[0]


def algorithm_colour(name):
    return ALGORITHMS.get(name, (name, gnuplot.BLACK))[1]


def describe(row, axes, without=()):
    """A point in words: "CUBIC, loss = 0.1%" """
    words = [f'{key} = {row["point"][key]}' for key in row['point']
             if key not in ('algorithm', *without)]
    is_swept = any(axis['key'] == 'algorithm' for axis in axes)
    if is_swept or not words:
        words.insert(0, algorithm_name(row['algorithm']))
    return ', '.join(words)


def first_runs(data):
    """The first run of each point"""
    found = {}
    for run in data['runs']:
        found.setdefault((run['algorithm'], *run['point'].values()), run)
    return list(found.values())


def warm_up_us(run):
    return run.get('settings', {}).get('warm-up', 0) / 1e3


def time_unit(last_us):
    for unit, factor in (('s', 1e6), ('ms', 1e3)):
        if last_us >= 2 * factor:
            return unit, factor
    return 'us', 1


def _grid(axes, panels):
    """The panels in rows, and how many columns: the algorithms, or whatever
    varies fastest, side by side if they fit."""
    lengths = [len(axis['values']) for axis in axes]
    fast = lengths[-1] if len(lengths) > 1 else 1
    slow = len(panels) // fast
    if 1 < fast <= 4:
        return panels, fast
    if fast > 4 and 1 < slow <= 4 and slow * fast == len(panels):
        return [panels[k * fast + i] for i in range(fast)
                for k in range(slow)], slow
    return panels, 1 if len(panels) <= 6 else 2


def _top(curves):
    """The largest value, and whether it is that of the warm-up alone."""
    values = [(us >= warm_up, value) for warm_up, some in curves
              for *_, points in some for us, value in points]
    highest = max(value for _, value in values)
    later = max((value for is_later, value in values if is_later),
                default=highest)
    if 0 < later < highest / 4:
        return 1.5 * later, highest
    return highest, None


def _panels_of_series(data, name, quantity, unit, read):
    """A panel per point; read(run) gives its curves
    [(title, style, [(us, value)])]."""
    runs = first_runs(data)[:MAX_PANELS]
    curves = [(run, read(run)) for run in runs]
    curves = [(run, some) for run, some in curves
              if any(points for *_, points in some)]
    if not curves:
        return None
    last = max(points[-1][0] for _, some in curves for *_, points in some
               if points)
    x_unit, factor = time_unit(last)
    top, cut = _top([(warm_up_us(run), some) for run, some in curves])
    title = data['title']
    if cut:
        title += f' (start cut off: {cut:.{0 if cut > 99 else 1}f} {unit})'
    n_flows = max(len(run['flows']) for run, _ in curves)
    if name != 'queue' and n_flows > MAX_CURVES:
        title += f' ({MAX_CURVES} of {n_flows} flows)'
    x_label = f'time, {x_unit}'
    if any(warm_up_us(run) for run, _ in curves):
        x_label += ' (grey: warm-up)'
    figure = Figure(name, title, x_label, f'{quantity}, {unit}')
    titles = {}
    for run, some in curves:
        panel = Panel(describe(run, data['axes']))
        panel.shaded = warm_up_us(run) / factor
        for curve, style, points in some:
            block = figure.add_data([(us / factor, value) for us, value
                                     in gnuplot.thin(points)])
            panel.add(block, f'using 1:2 with lines {style}')
            titles.setdefault(curve, style)
        figure.panels.append(panel)
    figure.panels, figure.columns = _grid(data['axes'], figure.panels)
    if len(figure.panels) > 2:
        figure.panel_height = 130 if figure.columns == 1 else 110
    figure.settings = [
        f'set xrange [0:{last / factor:g}]',
        f'set yrange [0:{1.05 * top or 1:g}]', 'set xtics '
        f'{gnuplot.nice_step(last / factor, 8 // figure.columns + 1):g}']
    if top > 0:
        figure.settings.append(
            f'set ytics {gnuplot.nice_step(1.05 * top, 5):g}')
    figure.legend = [(t, s) for t, s in titles.items() if t]
    return figure


def _flow_curves(directory, column, scale):
    """Reads one column for each flow of a run."""
    def read(run):
        rows = series.read(directory / 'series', 'flows', run['label'])
        flows = list(dict.fromkeys(row['flow'] for row in rows))
        rows = series.since_start(rows)
        curves = []
        if column == 'cwnd' and len(flows) == 1:
            points = series.column(rows, 'reference', 'flow', flows[0])
            curves.append(('reference window', f'lc rgb "{gnuplot.GREY}" '
                           'lw 2.5', [(t, v * scale) for t, v in points
                                      if v > 0]))
        for i, flow in enumerate(flows[:MAX_CURVES]):
            points = series.column(rows, column, 'flow', flow)
            colour = algorithm_colour(run['algorithm']) \
                if len(flows) == 1 else PALETTE[i % len(PALETTE)]
            title = f'flow {flow}' if 1 < len(flows) <= len(PALETTE) else ''
            curves.append((title, f'lc rgb "{colour}" '
                           f'lw {1 if len(flows) <= 8 else 0.6}',
                           [(t, v * scale) for t, v in points]))
        return [curve for curve in curves if curve[2]]
    return read


def plot_window(data, directory):
    return _panels_of_series(data, 'window', 'window', 'KB',
                             _flow_curves(directory, 'cwnd', 1e-3))


def plot_rate(data, directory):
    return _panels_of_series(data, 'rate', 'goodput', 'Gbit/s',
                             _flow_curves(directory, 'goodput_bps', 1e-9))


def plot_queue(data, directory):
    def read(run):
        rows = series.read(directory / 'series', 'links', run['label'])
        links = list(dict.fromkeys(row['link'] for row in rows))
        curves = []
        for i, link in enumerate(links):
            colour = PALETTE[i % len(PALETTE)] if len(links) > 1 else \
                algorithm_colour(run['algorithm'])
            curves.append((link if len(links) > 1 else '',
                           f'lc rgb "{colour}" lw 1',
                           [(t, v / 1e3) for t, v in
                            series.column(rows, 'queue', 'link', link)]))
        return curves
    return _panels_of_series(data, 'queue', 'queue', 'KB', read)


def x_axis(axes):
    """The axis that makes the best x: numbers, and as many as possible."""
    best = None
    for axis in axes:
        numbers = [number(value) for value in axis['values']]
        if axis['key'] == 'algorithm' or None in numbers:
            continue
        if len({unit for _, unit in numbers} - {''}) > 1:
            numbers = None
        if best is None or len(axis['values']) > len(best[0]['values']):
            best = axis, numbers
    return best


def _label(metric):
    return f'{metric.title}, {metric.unit}' if metric.unit else metric.title


def _value(row, metric):
    """(mean, low, high) to draw, or None"""
    mean, ci = row['mean'][metric.name], row['ci95'][metric.name] or 0
    if mean is None:
        return None
    return (mean * metric.scale, (mean - ci) * metric.scale,
            (mean + ci) * metric.scale)


def _y_range(metric, values):
    top = max(high for _, _, high in values)
    if metric.name == 'jain':
        return '[0:1.1]'
    if metric.name == 'utilisation':
        return '[0:110]'
    return f'[0:{1.15 * top or 1:g}]'


def _name_places(figure, labels):
    """Words below 1, 2, ... of the x axis"""
    figure.settings.append('set xtics (' + ', '.join(
        f'{gnuplot.quote(label)} {i + 1}'
        for i, label in enumerate(labels)) + ')')
    longest = max(map(len, labels))
    if longest * len(labels) > 90:
        figure.settings.append('set xtics rotate by -30')
        figure.bottom = 30 + 5 * longest


def _bars(data, name, metric):
    rows = [(row, _value(row, metric)) for row in data['summary']]
    rows = [(row, value) for row, value in rows if value]
    if len(rows) < 2:
        return None
    figure = Figure(name, data['title'], '', _label(metric))
    panel = Panel()
    labels = [describe(row, data['axes']) for row, _ in rows]
    figure.settings = [
        'set xrange [0.4:%g]' % (len(rows) + 0.6),
        'set yrange ' + _y_range(metric, [value for _, value in rows]),
        'set grid noxtics']
    _name_places(figure, labels)
    for i, (row, (mean, low, high)) in enumerate(rows):
        block = figure.add_data([(i + 1, mean, low, high)])
        colour = algorithm_colour(row['algorithm'])
        panel.add(block, f'using 1:2:(0.6) with boxes lc rgb "{colour}" '
                  f'fillstyle solid 0.6 border lc rgb "{colour}"')
        if low != high:
            panel.add(block, ERROR_BAR)
        text = f'{mean:.3g}'
        panel.add(block, f'using 1:4:({gnuplot.quote(text)}) with labels '
                  'offset 0,0.7')
    figure.panels.append(panel)
    return figure


def _x_values(axis, numbers):
    """Positions of the values, the settings of the axis, its unit"""
    texts = axis['values']
    if numbers:
        values = [value for value, _ in numbers]
        unit = next((u for _, u in numbers if u), '')
        steps = [b / a for a, b in zip(values, values[1:]) if a > 0]
        if all(v > 0 for v in values) and steps and min(steps) > 1.5:
            tics = ', '.join(f'{gnuplot.quote(t)} {v:g}'
                             for t, v in zip(texts, values))
            return values, ['set logscale x', f'set xtics ({tics})',
                            f'set xrange [{min(values) / 1.3:g}:'
                            f'{max(values) * 1.3:g}]'], unit
        if 0 not in values or not steps or max(steps) < 3:
            span = (max(values) - min(values)) or 1
            settings = [f'set xrange [{min(values) - 0.05 * span:g}:'
                        f'{max(values) + 0.05 * span:g}]']
            gaps = [b - a for a, b in zip(sorted(values),
                                          sorted(values)[1:])]
            if min(gaps, default=span) > span / 20:
                settings.append('set xtics (' + ', '.join(
                    f'{v:g}' for v in values) + ')')
            return values, settings, unit
    tics = ', '.join(f'{gnuplot.quote(t)} {i}' for i, t in enumerate(texts))
    return list(range(len(texts))), [
        f'set xtics ({tics})', f'set xrange [-0.3:{len(texts) - 0.7:g}]'], ''


def _lines(data, name, metric, axis, numbers):
    key = axis['key']
    places, settings, unit = _x_values(axis, numbers)
    at = dict(zip(axis['values'], places))
    curves = {}
    for row in data['summary']:
        value = _value(row, metric)
        if value:
            curves.setdefault(describe(row, data['axes'], [key]),
                              []).append((row, value))
    if not curves:
        return None
    has_unit = settings[0].startswith('set xrange')
    figure = Figure(name, data['title'],
                    f'{key}, {unit}' if unit and has_unit else key,
                    _label(metric))
    figure.settings = settings + ['set yrange ' + _y_range(
        metric, [value for some in curves.values() for _, value in some])]
    panel = Panel()
    is_by_algorithm = len({some[0][0]['algorithm']
                           for some in curves.values()}) == len(curves)
    for i, (title, some) in enumerate(list(curves.items())[:MAX_CURVES]):
        colour = algorithm_colour(some[0][0]['algorithm']) \
            if is_by_algorithm else PALETTE[i % len(PALETTE)]
        block = figure.add_data(sorted(
            (at[row['point'][key]], *value) for row, value in some))
        kind = gnuplot.POINT_TYPES[i % len(gnuplot.POINT_TYPES)]
        style = f'lc rgb "{colour}" lw 1.4'
        panel.add(block, f'using 1:2 with lines {style}')
        panel.add(block, f'using 1:2:3:4 with yerrorbars {style} pt {kind} '
                  'ps 0.8')
        figure.legend.append((title, style))
    if len(figure.legend) == 1:
        figure.legend = []
    figure.panels.append(panel)
    return figure


def _summary_plot(metric_name):
    def plot(data, directory, name):
        metric = BY_NAME[metric_name]
        axis = x_axis(data['axes'])
        if axis:
            return _lines(data, name, metric, *axis)
        return _bars(data, name, metric)
    return plot


def plot_flows(data, directory):
    """Mean goodput of each flow, a group of bars per point"""
    groups = {}
    for row in data['flow_summary']:
        groups.setdefault((row['algorithm'], *row['point'].values()),
                          []).append(row)
    n = max(map(len, groups.values()))
    if not 2 <= n <= len(PALETTE) or len(groups) > MAX_GROUPS:
        return None
    figure = Figure('flows', data['title'], '', 'goodput, Gbit/s')
    panel = Panel()
    width, top, labels = 0.8 / n, 0, []
    for k, rows in enumerate(groups.values()):
        labels.append(describe(rows[0], data['axes']))
        for i, row in enumerate(rows):
            mean = (row['mean']['goodput_bps'] or 0) / 1e9
            ci = (row['ci95']['goodput_bps'] or 0) / 1e9
            top = max(top, mean + ci)
            block = figure.add_data([(k + 1 + (i + 0.5 - len(rows) / 2)
                                      * width,
                                      mean, mean - ci, mean + ci)])
            panel.add(block, f'using 1:2:({0.9 * width:.3f}) with boxes lc '
                      f'rgb "{PALETTE[i]}" fillstyle solid 0.6 border lc rgb '
                      f'"{PALETTE[i]}"')
            if ci:
                panel.add(block, ERROR_BAR)
    figure.settings = ['set xrange [0.4:%g]' % (len(groups) + 0.6),
                       f'set yrange [0:{1.05 * top or 1:g}]',
                       'set grid noxtics']
    _name_places(figure, labels)
    figure.legend = [(f'flow {i}', f'lc rgb "{PALETTE[i]}" lw 4')
                     for i in range(n)]
    figure.panels.append(panel)
    return figure


def _cdf(times, last):
    """Steps from 0 to 100 % at these times, on to the last time of all"""
    return [(times[0], 0),
            *[(time, 100 * (i + 1) / len(times))
              for i, time in enumerate(times)], (last, 100)]


def _fct_groups(data):
    """Times by panel (what is varied but the algorithm) and curve"""
    is_swept = any(axis['key'] == 'algorithm' for axis in data['axes'])
    groups = {}
    for run in data['runs']:
        words = [f'{key} = {value}' for key, value in run['point'].items()
                 if key != 'algorithm']
        name = algorithm_name(run['algorithm'])
        panel = ', '.join(words) if is_swept else ''
        curve = name if is_swept or not words else ', '.join(words)
        groups.setdefault(panel, {}).setdefault(
            curve, (run['algorithm'], []))[1].extend(completions(run))
    return groups


def plot_fct(data, directory):
    """The share of flows that were done within a time"""
    groups = {panel: {curve: (algorithm, sorted(times)) for
                      curve, (algorithm, times) in curves.items() if times}
              for panel, curves in list(_fct_groups(data).items())
              [:MAX_PANELS]}
    every = [times for curves in groups.values()
             for _, times in curves.values()]
    if not every:
        return None
    first, last = min(t[0] for t in every), max(t[-1] for t in every)
    unit, factor = time_unit(last)
    figure = Figure('fct', data['title'], f'flow completion time, {unit}',
                    'share of flows, %')
    figure.settings = ['set yrange [0:102]', 'set ytics 25']
    figure.settings.append('set logscale x' if last > 50 * first else
                           f'set xrange [0:{1.02 * last / factor:g}]')
    if len(groups) > 2:
        figure.panel_height = 130
    legend = {}
    for title, curves in groups.items():
        panel = Panel(title)
        for i, (curve, (algorithm, times)) in enumerate(curves.items()):
            colour = algorithm_colour(algorithm) if len(groups) > 1 or \
                curve == algorithm_name(algorithm) else \
                PALETTE[i % len(PALETTE)]
            style = f'lc rgb "{colour}" lw 1.4'
            steps = [(t / factor, share) for t, share
                     in _cdf(times, 1.02 * last)]
            panel.add(figure.add_data(steps), f'using 1:2 with steps {style}')
            legend.setdefault(curve, style)
        figure.panels.append(panel)
    figure.legend = list(legend.items()) if len(legend) > 1 else []
    return figure


SERIES = {'window': plot_window, 'rate': plot_rate, 'queue': plot_queue}
SUMMARIES = {name: _summary_plot(metric) for name, metric in (
    ('utilisation', 'utilisation'), ('goodput', 'goodput_bps'),
    ('jain', 'jain'), ('queue-mean', 'queue_mean_bytes'),
    ('retransmits', 'retransmitted_share'))}
OTHERS = {'flows': plot_flows, 'fct': plot_fct}
PLOTS = [*SERIES, *SUMMARIES, *OTHERS]


def make(name, data, directory):
    """The figure, or None if the results have nothing for it."""
    if name in SUMMARIES:
        return SUMMARIES[name](data, directory, name)
    return {**SERIES, **OTHERS}[name](data, directory)


def draw(out, data, say):
    """Draws what the file asks for, or all that there is something for."""
    wanted = data['plots'] or PLOTS
    drawn = []
    for name in wanted:
        if name == 'none':
            continue
        figure = make(name, data, out.path)
        if figure and len(figure.panels) == MAX_PANELS < \
                len(data['summary']):
            say(f'warning: plots: {name}: shows {MAX_PANELS} of '
                f'{len(data["summary"])} points')
        if figure is None:
            if data['plots']:
                say(f'warning: plots: {name}: the results have nothing for '
                    'it' + (' (interval is not set)' if name in SERIES
                            else ''))
            continue
        out.own(*[f'plots/{name}.{kind}' for kind in ('gp', 'png', 'svg')])
        out.write_script(f'plots/{name}.gp', figure.script())
        gnuplot.draw(out.path / 'plots', figure)
        drawn.append(name)
    if drawn:
        say(f'plots: {", ".join(drawn)} (PNG, SVG) in {out.path}/plots')
