# SPDX-License-Identifier: GPL-2.0-or-later
"""The simulator as a backend: a process of erdma-sim per run."""

import json
import subprocess
import threading

from .errors import LabError
from .plan import simulator


class Backend:
    section = None
    max_jobs = None

    def __init__(self):
        self.lock = threading.Lock()
        self.running = set()        # processes; None: no more of them

    def prepare(self, plan, say):
        pass

    def _start(self, argv):
        with self.lock:
            if self.running is None:
                raise LabError('stopped')
            process = subprocess.Popen(argv, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True,
                                       stdin=subprocess.DEVNULL)
            self.running.add(process)
            return process

    def run(self, run, directory, say):
        process = self._start([simulator(), '--run', run.label, '-o',
                               str(directory), str(run.plan.copy),
                               *run.plan.replacing])
        out, complaint = process.communicate()
        with self.lock:
            if self.running is not None:
                self.running.discard(process)
        if process.returncode:
            raise LabError(f'{run.label}: '
                           + (complaint.strip() or
                              f'erdma-sim died ({process.returncode})'))
        return json.loads(out)[0]

    def close(self):
        with self.lock:
            for process in self.running or ():
                process.kill()
            self.running = None
