# SPDX-License-Identifier: GPL-2.0-or-later
"""fio's RDMA engine."""

import json

from apps import by_rdma, pair, report
from suite import test

MIB = 8
JOB = ("fio --name=job --ioengine=rdma --port=7000 --bs=64k --size=%dm "
       "--iodepth=8 --randseed=7 --verify_state_save=0 "
       "--output-format=json " % MIB)


@test("fio", guests="apps")
def fio(ctx):
    """Sends, whose receiver verifies each block's checksum; writes and reads
    of the server's memory, which fio cannot verify."""
    for verb, server, client in (
            ("send", "--verb=send --rw=read --verify=crc32c",
             "--rw=write --verify=crc32c --do_verify=0"),
            ("write", "--rw=read", "--rw=write"),
            ("read", "--rw=read", "--rw=write")):
        with by_rdma(ctx, MIB << 20, verb):
            out = pair(ctx, "exec " + JOB + server, JOB + client +
                       " --verb=%s --hostname=%s" % (verb, ctx[1].ip))
        job = json.loads(out[out.index("{"):])["jobs"][0]
        ctx.point(job["error"] == 0 and
                  job["write"]["io_bytes"] == MIB << 20, verb, out[-800:])
        report("fio %s, 64 KiB, 8 in flight: %.1f MiB/s" % (
            verb, job["write"]["bw"] / 1024))
