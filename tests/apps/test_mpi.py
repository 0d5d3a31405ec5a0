# SPDX-License-Identifier: GPL-2.0-or-later
"""Open MPI through libfabric's verbs provider."""

from apps import by_rdma, report
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


def mpirun(ctx, program):
    ssh(ctx)
    hosts = ",".join(g.name for g in ctx.guests)
    result = ctx[1].run(MPIRUN % (hosts, len(ctx.guests)) + VERBS + program,
                        240, check=False, merge=True)
    assert result.ok, "status %d: %s" % (result.status, result.out[-1500:])
    return result.out


@test("mpi", guests="apps")
def mpi(ctx):
    """A ring and an all-to-all that check their data, then figures."""
    n = len(ctx.guests)
    # 1 MiB at the end alone, from each to each but itself.
    with by_rdma(ctx, n * n * 1048576):
        out = mpirun(ctx, "mpi-check")
    report(out)
    assert "%d ranks" % n in out and "are right" in out, out
    report(mpirun(ctx, "mpi-check figures"))
