# SPDX-License-Identifier: GPL-2.0-or-later
"""The HCA goes under NVMe over RDMA, at the initiator and at the target."""

import pathlib
import sys

from hotplug import PATIENCE, plug_test, unplug
import suite

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] /
                       "kernel"))

# The suite "kernel" has what starts target and initiator.  Its tests, which
# register themselves, are not ours.
_ours = list(suite.TESTS)
import test_nvme as nvme                                        # noqa: E402
suite.TESTS[:] = _ours


def verify(ctx):
    nvme.fio(ctx[2], nvme.DISK, "job", rw="write", bs="64k", size="1m",
             verify="crc32c")


def target_off(ctx):
    """The kernel keeps the CQs that its users share until the device goes."""
    ctx[1].run(nvme.TARGET_OFF, 30)
    ctx[2].run("rmmod nvme_rdma nvme_fabrics")
    for guest in ctx.guests:
        unplug(ctx, guest)
        guest.add_hca()


@plug_test("unplug-initiator", ("plug-storage",))
def unplug_initiator(ctx):
    """I/O ends with errors, the controller goes; with an HCA all is well."""
    nvme.target(ctx)
    for _ in range(ctx.rounds):
        nvme.connect(ctx)
        job = nvme.under_io(ctx, 300)
        unplug(ctx, ctx[2])
        result = job.wait(PATIENCE)
        assert not result.ok and not result.timed_out, result
        ctx[2].wait_until("[ ! -e /sys/class/nvme/nvme0 ]", 20,
                          "the controller stays")
        ctx[2].add_hca()
        ctx.figures.rounds += 1
    nvme.connect(ctx)
    verify(ctx)
    nvme.disconnect(ctx)
    target_off(ctx)


@plug_test("unplug-target", ("plug-storage",), rounds=3)
def unplug_target(ctx):
    """The target's HCA goes and another one comes.  nvmet does not listen
    again by itself; with its port set up anew I/O goes on."""
    nvme.target(ctx)
    nvme.connect(ctx, "--ctrl-loss-tmo=600 --reconnect-delay=1")
    for _ in range(ctx.rounds):
        job = nvme.under_io(ctx, 15)
        unplug(ctx, ctx[1])
        ctx[1].add_hca()
        ctx[1].run(nvme.UNLINK)
        ctx[1].run(nvme.RELINK)
        result = job.wait(15 + PATIENCE)
        assert result.ok, result
        ctx.figures.rounds += 1
    verify(ctx)
    nvme.disconnect(ctx)
    target_off(ctx)
