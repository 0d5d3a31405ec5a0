# SPDX-License-Identifier: GPL-2.0-or-later
"""What people reported of other adapters, many times over: connections."""

import hotplug
from hotplug import plug_test, traffic


@plug_test("connections", is_short=True)
def connections(ctx):
    """Connect, write, disconnect, again and again: nothing stays."""
    daemon = ctx[1].start("exec verbs-churn server 7010", 0, merge=True)
    ctx[1].wait_until("rdma resource show cm_id | grep -q LISTEN", 20,
                      "the server does not listen")
    result = ctx[2].run("verbs-churn client %s 7010 %d" % (
        ctx[1].ip, hotplug.CYCLES), 60 + hotplug.CYCLES, merge=True)
    print("# " + result.out.splitlines()[-1], flush=True)
    assert daemon.running(), daemon.wait()
    daemon.kill()
    daemon.wait()
    ctx.figures.rounds += hotplug.CYCLES
    traffic(ctx)
