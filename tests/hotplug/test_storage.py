# SPDX-License-Identifier: GPL-2.0-or-later
"""The HCA goes under NVMe over RDMA, at the initiator and at the target."""

import pathlib
import sys

import hotplug
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
    ctx[1].run(nvme.TARGET_OFF, 30)
    ctx[2].run("rmmod nvme_rdma nvme_fabrics")


@plug_test("unplug-initiator", ("plug-storage",))
def unplug_initiator(ctx):
    """I/O ends with errors, the controller goes; with an HCA all is well."""
    nvme.target(ctx)
    for _ in range(hotplug.ROUNDS):
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


@plug_test("unplug-target", ("plug-storage",))
def unplug_target(ctx):
    """The target's HCA goes and another one comes: I/O goes on."""
    nvme.target(ctx)
    nvme.connect(ctx, "--ctrl-loss-tmo=600 --reconnect-delay=1")
    for _ in range(hotplug.ROUNDS):
        job = nvme.under_io(ctx, 25)
        unplug(ctx, ctx[1])
        ctx[1].add_hca()
        result = job.wait(25 + PATIENCE)
        assert result.ok, result
        ctx.figures.rounds += 1
    verify(ctx)
    nvme.disconnect(ctx)
    target_off(ctx)
