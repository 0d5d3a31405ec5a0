# SPDX-License-Identifier: GPL-2.0-or-later
"""rdma-core's own tests, in one guest: their QPs connect to each other."""

import pathlib
import sys

from checks import test
from guestlib import addons

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]
                       / 'pyverbs'))
import outcomes                                                 # noqa: E402


@test('pyverbs')
def pyverbs(ctx):
    mode = outcomes.Mode(outcomes.COMPAT)
    addons.install(ctx[1], addons.disks(['pyverbs'], mode.kernel))
    mode.compare(ctx.point, mode.run(ctx[1]))
