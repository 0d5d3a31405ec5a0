# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that Linux's driver has stopped.

The 6.12 driver takes a lock with interrupts on that its event handlers take,
too (docs/limitations.md).  A guest which that has hit does not answer any
more, and its processor spins in the lock for ever: it is told from all other
guests that do not answer, and the test is done again with new guests.
"""

import re
import time

from guestlib.errors import GuestError

SPIN = "native_queued_spin_lock_slowpath"
SPIN_BYTES = 0x400      # that function is somewhat smaller
_spin = {}              # kernel: where that is


def know(guest):
    """To be called while it is well."""
    series = guest.options.kernel
    if series not in _spin:
        text = guest.run("grep ' %s$' /proc/kallsyms" % SPIN).out
        _spin[series] = int(text.split()[0], 16)


def rip(guest):
    text = guest.qmp.command("human-monitor-command",
                             command_line="info registers")
    return int(re.search(r"RIP=([0-9a-f]{16})", text).group(1), 16)


def hangs(guest):
    """Does it spin in a lock, and nothing else?"""
    start = _spin[guest.options.kernel]
    try:
        if guest.run("true", 5, check=False).ok:
            return False
        places = []
        for _ in range(5):
            places.append(rip(guest))
            time.sleep(0.5)
    except GuestError:          # its QEMU has ended
        return False
    return all(start <= x < start + SPIN_BYTES for x in places)


def again(ctx, run):
    """run(), and once more if the driver has stopped a guest."""
    know(ctx[1])
    try:
        return run()
    except (GuestError, AssertionError) as e:
        if not any(hangs(g) for g in ctx.guests):
            raise
        print("# the driver has stopped a guest (docs/limitations.md); again, "
              "since: %s" % str(e).splitlines()[0], flush=True)
        ctx.renew()
    return run()
