# SPDX-License-Identifier: GPL-2.0-or-later
"""The simulator as a backend: a process of erdma-sim per run."""

import json
import subprocess

from .errors import LabError
from .plan import simulator


class Backend:
    section = None
    max_jobs = None

    def prepare(self, plan, say):
        pass

    def run(self, run, directory, say):
        argv = [simulator(), '--run', run.label, '-o', str(directory),
                run.plan.path, *run.plan.replacing]
        result = subprocess.run(argv, stdout=subprocess.PIPE, text=True,
                                stderr=subprocess.PIPE, check=False,
                                stdin=subprocess.DEVNULL)
        if result.returncode:
            raise LabError(f'{run.label}: '
                           + (result.stderr.strip() or
                              f'erdma-sim died ({result.returncode})'))
        return json.loads(result.stdout)[0]

    def close(self):
        pass
