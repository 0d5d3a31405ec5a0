# SPDX-License-Identifier: GPL-2.0-or-later
"""Open MPI through libfabric's verbs provider."""

import re

from apps import by_rdma, refused, report
from suite import test

# Its daemons are started through SSH; the user network is no way between
# guests, as each of them is 10.0.2.15 there.
MPIRUN = ("mpirun --allow-run-as-root --host %s -np %d "
          "--prtemca plm_ssh_agent 'dbclient -y -y' "
          "--prtemca prte_if_include eth0 ")
VERBS = ("--mca pml cm --mca mtl ofi "
         "--mca mtl_ofi_provider_include 'verbs;ofi_rxm' ")


def ssh(ctx):
    """The first guest may run commands in all of them."""
    if ctx[1].run("[ -e /root/.ssh/id_dropbear ]", check=False).ok:
        return
    key = ctx[1].run("mkdir -p /root/.ssh && dropbearkey -t ed25519 "
                     "-f /root/.ssh/id_dropbear 2>&1 | grep ^ssh-", 60).out
    for guest in ctx.guests:
        guest.run("mkdir -p /root/.ssh /etc/dropbear && "
                  "cat > /root/.ssh/authorized_keys && "
                  "chmod -R go= /root && dropbear -R -s < /dev/null", 60,
                  stdin=key.encode())


def mpirun(ctx, how, program):
    ssh(ctx)
    hosts = ",".join(g.name for g in ctx.guests)
    result = ctx[1].run(MPIRUN % (hosts, len(ctx.guests)) + how + program,
                        240, check=False, merge=True)
    assert result.ok, "status %d: %s" % (result.status, result.out[-1500:])
    # The daemons' SSH has something to say, too.
    return "\n".join(line for line in result.out.splitlines()
                     if re.match(r"\d|bytes,", line))


def check(ctx, how, least):
    """Each rank sends at most 1 MiB to each, itself among them."""
    n = len(ctx.guests)
    with by_rdma(ctx, least):
        out = mpirun(ctx, how, "mpi-check")
    ctx.point("%d ranks" % n in out and "are right" in out, "the data", out)
    report(out)


def verbs(ctx):
    n = len(ctx.guests)
    # What the ring, the all-to-all and the sends to rank 0 take at their end.
    check(ctx, VERBS, (n + n * (n - 1) + n - 1) << 20)
    report(mpirun(ctx, VERBS, "mpi-check figures"))


@test("mpi", guests="apps")
def mpi(ctx):
    """Data that is checked between two guests, then figures."""
    verbs(ctx)


@test("mpi-cq-data", guests="apps")
def mpi_cq_data(ctx):
    """libfabric carries no immediate data over iWARP, whatever the HCA does:
    Open MPI does without, and says so when it is told not to."""
    out = ctx[1].run("fi_info -v -p 'verbs;ofi_rxm'", 60).out
    ctx.point("cq_data_size: 0" in out and "cq_data_size: 8" not in out,
              "libfabric offers no CQ data", out[-800:])
    ssh(ctx)
    refused(ctx, ctx[1], MPIRUN % (ctx[1].name, 1) + VERBS +
            "--mca mtl_ofi_tag_mode ofi_tag_full mpi-check",
            "No components were able to be opened")


@test("mpi-ucx", guests="apps")
def mpi_ucx(ctx):
    """Over UCX, the ranks meet by TCP."""
    check(ctx, "--mca pml ucx --mca opal_common_ucx_tls any "
          "--mca opal_common_ucx_devices any -x UCX_NET_DEVICES=eth0 ", 0)


@test("mpi-4", guests="apps-4")
def mpi_4(ctx):
    """The same as with two, with four."""
    verbs(ctx)
