# SPDX-License-Identifier: GPL-2.0-or-later
"""Who can carry out an experiment.

A backend is a module below with a class Backend:

  section    which section of the file replaces the rest for it ('guests'),
             or None
  max_jobs   how many runs at once make sense at most, or None
  prepare(plan, say)
             before the first run; say(text) shows progress
  run(run, directory, say)
             carries out a plan.Run, writes directory/flows-LABEL.csv and
             links-LABEL.csv (see series.py) if run.has_series(), and returns
             the run's result as a dict (see metrics.py)
  close()    after the last run, or to end those that are under way

What it cannot do with a plan it refuses in prepare(), as a LabError.
"""

import importlib

# option -> module, what the help says.  The first is the default.
BACKENDS = {
    'sim': ('sim', 'in the simulator, in virtual time (default)'),
    'guests': ('guests', 'in linked guests, with perftest, in real time'),
}


def load(name):
    module = importlib.import_module('.' + BACKENDS[name][0], __package__)
    return module.Backend()
