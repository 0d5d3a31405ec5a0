# SPDX-License-Identifier: GPL-2.0-or-later
"""Scripts for gnuplot, each with its data inside: PNG and SVG of a plot.

Sizes are those of the SVG, in pixels; the PNG has twice as many.  Legends are
below the axes, so they cover nothing.
"""

import math
import os
import shutil
import subprocess

from .errors import FAILED, MACHINE, LabError

# Okabe and Ito's colours, which all common kinds of sight tell apart
BLUE, ORANGE, GREEN, PURPLE = '#0072B2', '#D55E00', '#009E73', '#CC79A7'
SKY, AMBER, BLACK, GREY = '#56B4E9', '#E69F00', '#000000', '#999999'
PALETTE = [BLUE, ORANGE, GREEN, PURPLE, SKY, AMBER, BLACK, GREY]
ALGORITHMS = {
    'newreno': ('NewReno', BLUE), 'cubic': ('CUBIC', ORANGE),
    'hpcc_rtt': ('HPCC-RTT', GREEN), 'hpcc_ecn': ('HPCC-ECN', PURPLE),
    'hpcc_int': ('HPCC-INT', AMBER), 'none': ('fixed window', GREY),
    'mixed': ('mixed', BLACK),
}
POINT_TYPES = [7, 5, 9, 11, 13, 6, 4, 8]
WIDTH = 800
LEFT, RIGHT = 80, 20
MAX_POINTS = 600        # of a curve; more cannot be seen


def program():
    return os.environ.get('GNUPLOT', 'gnuplot')


def check():
    """Is there a gnuplot?"""
    if shutil.which(program()) is None:
        raise LabError(
            f'{program()} is not installed, which draws the plots: run '
            './erdma deps, or do without plots (--no-plots)', MACHINE)


def quote(text):
    """In single quotes gnuplot interprets nothing but a doubled quote."""
    return "'" + str(text).replace("'", "''").replace('\n', ' ') + "'"


def nice_step(top, tics):
    """1, 2 or 5 times a power of ten, for at most that many tics"""
    step = 10 ** math.floor(math.log10(top / tics))
    return next(step * k for k in (1, 2, 5, 10) if top <= step * k * tics)


def thin(points):
    """Not more points than can be seen, but every peak."""
    if len(points) <= MAX_POINTS:
        return points
    size = -(-len(points) * 2 // MAX_POINTS)
    kept = []
    for i in range(0, len(points), size):
        part = points[i:i + size]
        ends = {part.index(min(part, key=lambda p: p[1])),
                part.index(max(part, key=lambda p: p[1]))}
        kept += [part[k] for k in sorted(ends)]
    return kept


class Panel:
    """One pair of axes."""

    def __init__(self, title=''):
        self.title = title
        self.shaded = 0         # grey up to this x
        self.curves = []        # (data name, style)
        self.settings = []      # lines of gnuplot

    def add(self, data, style):
        self.curves.append((data, style))


class Figure:
    """A plot: data, panels below each other in columns, one legend."""

    def __init__(self, name, title, xlabel, ylabel):
        self.name = name
        self.title = title
        self.xlabel = xlabel
        self.ylabel = ylabel
        self.panels = []
        self.data = []          # lines of the script
        self.n_data = 0
        self.settings = []      # for all panels
        self.legend = []        # (title, style) in a row below
        self.panel_height = 260
        self.columns = 1
        self.bottom = 36        # for tic labels and xlabel

    def add_data(self, rows):
        """Makes a data block; returns its name."""
        self.n_data += 1
        name = f'$d{self.n_data}'
        self.data.append(f'{name} << EOD')
        self.data += [' '.join(_value(v) for v in row) for row in rows]
        self.data.append('EOD')
        return name

    def _rows(self):
        return -(-len(self.panels) // self.columns)

    def height(self):
        return self._head() + self._rows() * (self.panel_height + 26) + \
            self.bottom + 22 * self._legend_shape()[1]

    def _head(self):
        """Room for the title, and for those of the first panels"""
        return 56 if any(panel.title for panel in self.panels) else 40

    def _legend_shape(self):
        """How many entries beside and below each other"""
        if not self.legend:
            return 1, 0
        longest = max(len(title) for title, _ in self.legend)
        fit = max(1, (WIDTH - LEFT - RIGHT) // (56 + 8 * longest))
        rows = -(-len(self.legend) // fit)
        return -(-len(self.legend) // rows), rows

    def _place(self, index, height):
        """Margins of a panel, as shares of the picture"""
        row, column = index // self.columns, index % self.columns
        gap = 30
        width = (WIDTH - LEFT - RIGHT - gap * (self.columns - 1)) \
            / self.columns
        left = LEFT + column * (width + gap)
        top = height - self._head() - row * (self.panel_height + 26)
        return [f'set lmargin at screen {left / WIDTH:.5f}',
                f'set rmargin at screen {(left + width) / WIDTH:.5f}',
                f'set tmargin at screen {top / height:.5f}',
                f'set bmargin at screen '
                f'{(top - self.panel_height) / height:.5f}']

    def _panel(self, index, height):
        panel = self.panels[index]
        is_last = index >= len(self.panels) - self.columns
        lines = self._place(index, height)
        lines += self.settings + panel.settings
        if panel.title:
            lines.append(f'set label 98 {quote(panel.title)} at graph 0,'
                         f'{1 + 11 / self.panel_height:.4f} left font '
                         f'",{9 if self.columns > 2 else 11}"')
        lines.append(f'set xlabel {quote(self.xlabel)}' if is_last
                     else 'unset xlabel')
        if not is_last:
            lines.append('set format x ""')
        if index % self.columns:
            lines.append('set format y ""')     # as in the first column
        if panel.shaded:
            lines.append('set object 1 rectangle from graph 0,0 to first '
                         f'{panel.shaded:g}, graph 1 fillcolor rgb "#eeeeee" '
                         'fillstyle solid noborder behind')
        lines.append('plot ' + ', '.join(
            f'{data} {style} notitle' for data, style in panel.curves))
        lines += ['set format', 'unset object']
        return lines

    def _legend(self, height):
        """Samples and names in rows below, placed by hand"""
        lines = []
        in_row, rows = self._legend_shape()
        step = (WIDTH - LEFT - RIGHT) / in_row
        for i, (title, style) in enumerate(self.legend):
            x = (LEFT + i % in_row * step + 10) / WIDTH
            y = (12 + 22 * (rows - 1 - i // in_row)) / height
            lines += [
                f'set arrow {i + 1} from screen {x:.4f},{y:.4f} rto screen '
                f'{26 / WIDTH:.4f},0 nohead {style}',
                f'set label {i + 1} {quote(title)} at screen '
                f'{x + 34 / WIDTH:.4f},{y:.4f} left']
        return lines

    def script(self):
        height = self.height()
        body = [
            f'set multiplot title {quote(self.title)} font ",13"',
            'set tics nomirror out', 'set border 3 lw 0.8',
            'set grid lc rgb "#dddddd" lw 0.6 lt 1', 'unset key',
            f'set label 99 {quote(self.ylabel)} at screen '
            f'{16 / WIDTH:.4f},0.5 center rotate by 90']
        body += self._legend(height)
        for i in range(len(self.panels)):
            body += self._panel(i, height)
            if i == 0:
                body += ['unset label 99', 'unset arrow'] + [
                    f'unset label {k + 1}' for k in range(len(self.legend))]
        body += ['unset multiplot', 'unset output']
        return '\n'.join([
            f'# gnuplot {self.name}.gp draws {self.name}.png and '
            f'{self.name}.svg', *self.data, 'do for [i = 1:2] {', 'reset',
            'if (i == 1) {',
            f'set terminal pngcairo noenhanced size {2 * WIDTH},{2 * height} '
            'font "DejaVu Sans,11" fontscale 1.8 linewidth 2 pointscale 2',
            f"set output '{self.name}.png'", '} else {',
            f'set terminal svg noenhanced size {WIDTH},{height} dynamic '
            'font "sans-serif,12" background "white"',
            f"set output '{self.name}.svg'", '}', *body, '}', ''])


def _value(value):
    """A number, or a text in quotes"""
    if value is None:
        return 'NaN'
    if isinstance(value, str):
        return '"' + value.replace('"', "'") + '"'
    return f'{value:.6g}'


def draw(directory, figure):
    """Runs the script that is in the directory."""
    try:
        result = subprocess.run(
            [program(), f'{figure.name}.gp'], cwd=directory, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    except OSError as error:
        raise LabError(f'{program()}: {error.strerror}', MACHINE) from error
    if result.returncode:
        last = (result.stdout.strip().splitlines() or ['no message'])[-1]
        raise LabError(f'{directory}/{figure.name}.gp: {last}', FAILED)
    return result.stdout
