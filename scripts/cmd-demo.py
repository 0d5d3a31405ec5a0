#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: boot two guests and show RDMA between them
"""Two guests with the unmodified Linux driver do RDMA.

usage: ./erdma demo [--kernel SERIES] [--rdma erdma|siw|rxe] [--mtu M]

Makes what is missing (packages, QEMU, guest image), starts two guests and
runs Debian's RDMA programs between them.  Ends with `demo: PASS`, or names
what failed.
"""

import argparse
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from arguments import Parser                                    # noqa: E402
from guestlib import paths, programs                            # noqa: E402
from guestlib.errors import GuestError                          # noqa: E402
from guestlib.guests import GuestSet, Options                   # noqa: E402

FILE_SIZE = 8 << 20


class Demo:
    def __init__(self, guests, rdma):
        self.a, self.b = guests[1], guests[2]
        self.rdma = rdma
        self.rows, self.failed = [], []

    def wire(self):
        """Packets that both HCAs (or NICs) have sent so far."""
        if self.rdma != "erdma":
            return self.a.wire_packets() + self.b.wire_packets()
        return sum(g.hca_stats()["tx-packets"] for g in (self.a, self.b))

    def step(self, name, server, client, bandwidth=None, latency=None,
             check=None, server_ends=True, timeout=90):
        """One program pair, one row of the table."""
        print("  %-14s" % name, end="", flush=True)
        before = self.wire()
        outcome = programs.run_pair(self.a, self.b, server, client, timeout,
                                    server_ends)
        problem, bw, lat = outcome.problem, "", ""
        if not problem:
            try:
                text = outcome.client.out
                if bandwidth:
                    bw = "%.1f MiB/s" % bandwidth(outcome)
                if latency:
                    lat = "%.0f us" % latency(text)
                problem = check(outcome) if check else None
            except GuestError as e:
                problem = str(e)
        packets = self.wire() - before
        if not problem and packets < 2:
            problem = "it passed without a packet on the wire"
        self.rows.append((name, "failed" if problem else "ok", bw, lat,
                          str(packets)))
        if problem:
            self.failed.append(name)
        print("%s (%.1f s)%s" % ("FAILED" if problem else "ok",
                                 outcome.seconds,
                                 ": " + problem if problem else ""))

    def perftest(self, tool, options, bandwidth=False):
        command = "%s -R %s" % (tool, options)
        self.step(tool, command, "%s %s" % (command, self.a.ip),
                  bandwidth=(lambda o: programs.perftest_bandwidth(
                      o.client.out)) if bandwidth else None,
                  latency=None if bandwidth else programs.perftest_latency)

    def file_copy(self):
        """rcopy sends a file over an rsocket; sha256 is the judge."""
        self.b.run("head -c %d /dev/urandom > /tmp/sent" % FILE_SIZE)

        def check(outcome):
            sums = [g.run("sha256sum < " + f).out for g, f in
                    ((self.b, "/tmp/sent"), (self.a, "/tmp/received"))]
            if sums[0] != sums[1]:
                return "the received file differs"
            return None

        self.step("rsocket file", "cd /tmp && exec rcopy",
                  "rcopy /tmp/sent %s:/tmp/received" % self.a.ip,
                  bandwidth=lambda o: FILE_SIZE / o.seconds / (1 << 20),
                  check=check, server_ends=False)

    def run(self):
        devinfo = self.a.run("ibv_devinfo -v", check=False)
        if not devinfo.ok:
            self.failed.append("ibv_devinfo")
            print(devinfo)
            return
        print("guest1$ ibv_devinfo")
        for line in self.a.run("ibv_devinfo").out.splitlines():
            print("  " + line)
        print("\nguest1 serves, guest2 asks:")
        rounds = 100
        self.step("rping", "rping -s -C %d -S 4096" % rounds,
                  "rping -c -a %s -C %d -S 4096 -V" % (self.a.ip, rounds))
        self.step("rdma_client", "rdma_server",
                  "rdma_client -s %s" % self.a.ip)
        self.perftest("ib_write_bw", "-s 65536 -n 1000", bandwidth=True)
        self.perftest("ib_read_bw", "-s 65536 -n 1000", bandwidth=True)
        self.perftest("ib_send_lat", "-s 8 -n 1000")
        if self.rdma != "siw":
            self.perftest("ib_atomic_bw", "-n 1000", bandwidth=True)
        self.file_copy()

    def table(self):
        rows = [("program", "result", "bandwidth", "latency", "packets")]
        rows += self.rows
        widths = [max(len(r[i]) for r in rows) for i in range(5)]
        print()
        for i, row in enumerate(rows):
            print("  " + "  ".join(
                c.ljust(w) if k < 2 else c.rjust(w)
                for k, (c, w) in enumerate(zip(row, widths))).rstrip())
            if i == 0:
                print("  " + "  ".join("-" * w for w in widths))
        print()


def main():
    parser = Parser(
        prog="./erdma demo", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", default="6.12", metavar="SERIES")
    parser.add_argument("--rdma", default="erdma",
                        choices=["erdma", "siw", "rxe"])
    parser.add_argument("--mtu", type=int, default=1500, metavar="M")
    args = parser.parse_args()
    began = time.monotonic()
    demo = None
    guests = None
    try:
        if not os.environ.get("ERDMA_QEMU"):
            paths.step("deps")
            paths.step("build")
        guests = GuestSet(Options(n=2, kernel=args.kernel, rdma=args.rdma,
                                  mtu=args.mtu, restrict=True),
                          logdir=os.path.join(paths.BUILD, "logs", "demo"),
                          say=print)
        print("demo: starting two guests")
        start = time.monotonic()
        guests.start()
        print("demo: both are ready after %.1f s" % (time.monotonic() - start))
        print("guest1$ uname -sr; modinfo -n erdma")
        print("  " + guests[1].run("uname -sr; modinfo -n erdma").out
              .strip().replace("\n", "\n  "))
        demo = Demo(guests, args.rdma)
        demo.run()
        demo.table()
        for guest in guests:
            problems = guest.log_problems()
            if problems:
                demo.failed.append("kernel log of %s" % guest.name)
                for line in problems[:20]:
                    print("  %s: %s" % (guest.name, line))
    except GuestError as e:
        print("demo: FAILED: %s" % e)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        if guests:
            guests.stop()
    if demo.failed:
        print("demo: FAILED: %s (logs: %s)" % (", ".join(demo.failed),
                                               guests.logdir))
        sys.exit(1)
    print("demo: took %.0f s" % (time.monotonic() - began))
    print("demo: PASS")


main()
