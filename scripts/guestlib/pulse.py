# SPDX-License-Identifier: GPL-2.0-or-later
"""Does QEMU's main loop live?  Asks the monitor all the time."""

import threading
import time

from .errors import GuestError
from .qmp import QMP


class Pulse:
    """While it exists the guest's second monitor answers `query-status` over
    and over; `worst` is the longest that an answer took, in seconds.

        with Pulse(guest) as pulse: ...
        print(pulse.worst, pulse.count)
    """

    EVERY = 0.02

    def __init__(self, guest):
        self.guest = guest
        self.worst, self.count, self.problem = 0.0, 0, None
        self._stop = threading.Event()
        self._qmp = QMP(guest.machine.path("watch"))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._stop.wait(self.EVERY):
            began = time.monotonic()
            try:
                self._qmp.command("query-status", timeout=120)
            except GuestError as e:
                self.problem = str(e)
                return
            self.worst = max(self.worst, time.monotonic() - began)
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
