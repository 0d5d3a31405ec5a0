# SPDX-License-Identifier: GPL-2.0-or-later
"""Valkey's server and its own clients over RDMA, beside the same over TCP."""

import csv

from apps import by_rdma, report
from guestlib.programs import wait_listening
from suite import test

TCP, RDMA = "-p 6379", "-p 6380 --rdma"
# What an answer does not fit into 16 KiB of waits for the server's timer, which
# comes 10 times a second unless it is told otherwise.
SERVER = ("exec valkey-server --bind {ip} --protected-mode no --save '' "
          "--hz 500 "
          "--port 6379 --rdma-bind {ip} --rdma-port 6380")
# Values of so many bytes, by so many clients: so many requests of each kind.
BENCHMARKS = ((64, 4, 1000), (4096, 4, 500), (65536, 2, 200))
# Around a page, the server's 16 KiB of answer, and the transfer buffer of
# 1 MiB.
SIZES = (1, 4095, 16385, 1048576, 3000001)


def values(ctx):
    """What is set over RDMA is what both ways tell."""
    cli = "valkey-cli -h %s " % ctx[1].ip
    for size in SIZES:
        ctx[2].run("head -c %d /dev/urandom > /tmp/value" % size)
        sums = [ctx[2].run(command + " | sha256sum", 60).out for command in (
            "cat /tmp/value",
            "%s%s -x set key < /tmp/value > /dev/null && %s%s --raw get key "
            "| head -c %d" % (cli, RDMA, cli, RDMA, size),
            "%s%s --raw get key | head -c %d" % (cli, TCP, size))]
        length = ctx[2].run("%s%s strlen key" % (cli, RDMA)).out.strip()
        ctx.point(len(set(sums)) == 1 and length == str(size),
                  "a value of %d bytes" % size,
                  "\n".join(sums + [length]))


def benchmark(ctx, where, size, clients, n):
    """Requests per second and typical latency, of set and get"""
    out = ctx[2].run("valkey-benchmark -h %s %s -d %d -c %d -n %d -t set,get "
                     "--csv" % (ctx[1].ip, where, size, clients, n), 120,
                     merge=True).out
    # A message about the clock is in front of the table.
    rows = list(csv.DictReader(out[out.index('"test"'):].splitlines()))
    assert [r["test"] for r in rows] == ["SET", "GET"], out
    return " ".join("%.0f/s %s ms" % (float(r["rps"]), r["p50_latency_ms"])
                    for r in rows)


@test("valkey", guests="apps")
def valkey(ctx):
    server = ctx[1].start(SERVER.format(ip=ctx[1].ip), 400, merge=True)
    try:
        ctx[1].wait_until("rdma resource show cm_id | grep -q LISTEN", 20,
                          "valkey-server does not listen")
        wait_listening(ctx[1], "valkey-server")
        with by_rdma(ctx, 2 * sum(SIZES), "the values"):
            values(ctx)
        report("bytes, clients: SET per second, typical latency, GET ...")
        for size, clients, n in BENCHMARKS:
            for name, where in (("TCP", TCP), ("RDMA", RDMA)):
                least = n * size * 2 if where == RDMA else 0
                with by_rdma(ctx, least, "%s, %d bytes," % (name, size)):
                    figures = benchmark(ctx, where, size, clients, n)
                report("%d, %d: %s %s" % (size, clients, name, figures))
        ctx[2].run("valkey-cli -h %s %s shutdown nosave" % (ctx[1].ip, TCP),
                   check=False)
        assert server.wait(30).ok, server.output()[-800:]
        for guest in ctx.guests:
            left = guest.run("rdma resource show qp").out.strip()
            ctx.point(not left, "%s has no QP left" % guest.name, left)
    finally:
        if server.running():
            server.kill()
            server.wait(10)
