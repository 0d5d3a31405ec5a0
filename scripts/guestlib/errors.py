# SPDX-License-Identifier: GPL-2.0-or-later
"""The one exception of this package: its text is what a user is told."""


class GuestError(Exception):
    """Something about a guest failed; str() is one clear line or a few."""
