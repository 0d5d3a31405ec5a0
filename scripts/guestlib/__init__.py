# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests for tests, demo, bench and the command line.

    with GuestSet(n=2) as guests:
        print(guests[1].run("ibv_devinfo").out)
"""

from .agent import Command, Result
from .errors import GuestError
from .guests import Guest, GuestSet, Options

__all__ = ["Command", "Guest", "GuestError", "GuestSet", "Options", "Result"]
