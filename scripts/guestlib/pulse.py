# SPDX-License-Identifier: GPL-2.0-or-later
"""Does QEMU's main loop live?  Asks the monitor all the time."""

import glob
import itertools
import threading
import time

from .errors import GuestError
from .qmp import QMP


class HostWait:
    """What the threads of these QEMUs wait for a processor from now on."""

    def __init__(self, *machines):
        self.machines = machines
        self.before = self._all()

    def _all(self):
        waits = {}
        for path in itertools.chain.from_iterable(
                glob.glob("/proc/%d/task/*/schedstat" % machine.process.pid)
                for machine in self.machines):
            try:
                with open(path, encoding="ascii") as f:
                    waits[path] = int(f.read().split()[1])
            except (OSError, IndexError):   # it has ended; it is not known
                pass
        return waits

    def seconds(self):
        """So long until now, all threads together"""
        return sum(ns - self.before.get(path, 0)
                   for path, ns in self._all().items()) / 1e9


class Pulse:
    """While it exists the guest's second monitor answers `query-status` over
    and over; `worst` is the longest that an answer took, in seconds, and
    `own_worst` the same without what QEMU waited for a processor meanwhile,
    and the QEMUs of also(), from which it waits for an answer.

        with Pulse(guest) as pulse: ...
        print(pulse.worst, pulse.count)
    """

    EVERY = 0.02

    def __init__(self, guest):
        self.machine, self.machines = guest.machine, (guest.machine,)
        self.worst, self.own_worst = 0.0, 0.0
        self.count, self.problem = 0, None
        self._stop = threading.Event()
        self._qmp = QMP(self.machine.path("watch"))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def also(self, machine):
        """The guest moves there: its QEMU holds everything up until that one
        has taken the last of it."""
        self.machines += (machine,)

    def _run(self):
        while not self._stop.wait(self.EVERY):
            host, began = HostWait(*self.machines), time.monotonic()
            try:
                self._qmp.command("query-status", timeout=120)
            except GuestError as e:
                self.problem = str(e)
                return
            seconds = time.monotonic() - began
            self.worst = max(self.worst, seconds)
            if seconds > self.own_worst:
                self.own_worst = max(self.own_worst,
                                     seconds - host.seconds())
            self.count += 1
            self._qmp.events.clear()

    def stop(self):
        self._stop.set()
        self._thread.join()
        self._qmp.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.stop()
