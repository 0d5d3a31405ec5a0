# SPDX-License-Identifier: GPL-2.0-or-later
"""What an experiment file asks for.

erdma-sim reads the file, for every backend: there is one parser, one list of
keys and one wording of complaints.
"""

import functools
import json
import os
import subprocess

import standalone

from .errors import USAGE, LabError


@functools.lru_cache(None)
def simulator():
    """ERDMA_SIM, or erdma-sim of this tree, built if need be."""
    other = os.environ.get('ERDMA_SIM')
    if other:
        return other
    try:
        where = standalone.build('gcc', ['sim/erdma-sim'])
    except standalone.BuildError as error:
        raise LabError(f'cannot build erdma-sim: {error}',
                       error.status) from error
    return str(where / 'sim' / 'erdma-sim')


class Run:
    """One run: a point of the sweep and a seed."""

    def __init__(self, plan, fields):
        self.plan = plan
        self.label = fields['label']        # fit for file names, unique
        self.algorithm = fields['algorithm']
        self.point = fields['point']        # key -> value as in the file
        self.seed = fields['seed']
        self.bdp = fields['bdp']            # bytes
        # Every key by its name: ns, bytes, bit/s, 0..1, True and False
        self.settings = fields['settings']
        self.flows = fields['flows']        # a group each, likewise

    def has_series(self):
        return self.settings['interval'] > 0


class Plan:
    """A file, what replaces parts of it, and the runs that follow."""

    def __init__(self, path, replacing, section):
        self.path = path
        self.copy = path        # that nobody edits while the runs go on
        self.replacing = list(replacing)
        self.section = section
        fields = json.loads(self._ask('--plan'))
        self.title = fields['title'] or \
            os.path.splitext(os.path.basename(path))[0]
        plots = fields['plots']
        self.plots = [p.strip() for p in plots.split(',')] if plots else None
        self.warnings = fields['warnings']
        self.axes = fields['axes']          # [{key, values}]
        self.runs = [Run(self, run) for run in fields['runs']]

    def _ask(self, option):
        argv = [simulator(), option]
        if self.section == 'guests':
            argv.append('--guests')
        result = subprocess.run([*argv, self.path, *self.replacing],
                                stdout=subprocess.PIPE, text=True,
                                stderr=subprocess.PIPE, check=False)
        if result.returncode:
            raise LabError(result.stderr.strip().removeprefix('erdma-sim: ')
                           or f'erdma-sim died ({result.returncode})',
                           USAGE if result.returncode == 2 else 1)
        return result.stdout

    def points(self):
        """The runs by point, in order: lists that differ in the seed."""
        found = {}
        for run in self.runs:
            found.setdefault((run.algorithm, *run.point.values()),
                             []).append(run)
        return list(found.values())
