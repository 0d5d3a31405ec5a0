# SPDX-License-Identifier: GPL-2.0-or-later
"""query-status of every QEMU that a guest is in, all the time."""

import contextlib

from guestlib.pulse import Pulse


class Monitors:
    """Pulses that follow the guests; answers of all of them together."""

    def __init__(self, guests):
        self.guests = guests
        self.pulses = {g.index: Pulse(g) for g in guests}
        self.answers, self.problems = 0, []
        self.worst, self.own_worst = 0.0, 0.0

    def _stop(self, i, has_ended=False):
        pulse = self.pulses.pop(i)
        pulse.stop()
        self.answers += pulse.count
        self.worst = max(self.worst, pulse.worst)
        self.own_worst = max(self.own_worst, pulse.own_worst)
        if pulse.problem and not has_ended:
            self.problems.append(pulse.problem)

    @contextlib.contextmanager
    def moving(self, i):
        """The old QEMU is asked until it has ended, the new one as soon as
        the guest is there."""
        pulse = self.pulses[i]
        yield pulse
        # It was stopped: that its monitor went with it is no news.
        self._stop(i, has_ended=True)
        self.pulses[i] = Pulse(self.guests[i])

    def summary(self):
        return "%d answers to query-status, the slowest after %.0f ms; at " \
            "most %.0f ms that QEMU did not wait for a processor" % (
                self.answers, self.worst * 1000, self.own_worst * 1000)

    def point(self, tap, limit_ms):
        why = list(self.problems)
        if self.own_worst * 1000 > limit_ms:
            why.append(self.summary())
        tap.point(not why, "query-status is answered within %d ms" % limit_ms,
                  "\n".join(why))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for i in list(self.pulses):
            self._stop(i)
