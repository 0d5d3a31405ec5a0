# SPDX-License-Identifier: GPL-2.0-or-later
"""The one exception of this package: its text is what a user is told."""

FAILED = 1
USAGE = 2
MACHINE = 3


class LabError(Exception):
    """str() is one clear line; status is what the program exits with."""

    def __init__(self, text, status=FAILED):
        super().__init__(text)
        self.status = status
