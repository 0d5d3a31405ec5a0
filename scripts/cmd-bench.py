#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: measure erdma beside TCP, rxe and siw
"""Bandwidth, latency and host CPU time: TCP, rxe, siw and erdma in one run.

usage: ./erdma bench [--quick] [--runs N] [--mtu M]... [--json FILE]
                     [--markdown FILE] [--only KIND]...

The same pair of guests measures them one after the other, each value is the
median of at least 3 runs.  The table goes to stdout; JSON with all runs and
the ratios goes to build/bench.json, or where --json says.
"""

import argparse
import json
import os
import platform
import re
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from arguments import Parser                                    # noqa: E402
from guestlib import paths, programs                            # noqa: E402
from guestlib.errors import GuestError                          # noqa: E402
from guestlib.guests import GuestSet, Options                   # noqa: E402

KINDS = ["tcp", "rxe", "siw", "erdma"]
# name, perftest tool, options, unit; the iterations are set by a trial run.
BANDWIDTHS = [
    ("write-64K", "ib_write_bw", 65536), ("write-4K", "ib_write_bw", 4096),
    ("read-64K", "ib_read_bw", 65536), ("read-4K", "ib_read_bw", 4096),
]
LATENCIES = [("send-8", "ib_send_lat", 8), ("write-8", "ib_write_lat", 8)]
FAST_RUN = 64 << 20         # bytes; slower devices get less
SLOW_RUN = 12 << 20
ATTEMPTS = 2                # perftest over rxe and siw hangs now and then


class Bench:
    def __init__(self, guests, runs, scale, say):
        self.guests = guests
        self.a, self.b = guests[1], guests[2]
        self.runs, self.scale, self.say = runs, scale, say

    def cpu(self):
        return sum(g.machine.cpu_seconds() for g in self.guests)

    def pair(self, command, kind, timeout=90):
        """A perftest pair; its client's output and the host CPU seconds."""
        problem = ""
        for _ in range(ATTEMPTS):
            before = self.cpu()
            outcome = programs.run_pair(
                self.a, self.b, command, "%s %s" % (command, self.a.ip),
                timeout)
            if not outcome.problem:
                return outcome.client.out, self.cpu() - before
            problem = outcome.problem
            self.say("%s: %s: %s" % (kind, command, problem))
            time.sleep(1)
        raise GuestError("%s: no value for %s" % (kind, command))

    def tcp(self):
        """iperf3: bandwidth, and CPU time per GiB."""
        size = int(SLOW_RUN * 3 * self.scale)
        before = self.cpu()
        server = self.a.start("exec iperf3 -s -1", 120, merge=True)
        programs.wait_listening(self.a, "iperf3")
        text = self.b.run("iperf3 -c %s -n %d -J" % (self.a.ip, size),
                          120).out
        server.wait()
        done = json.loads(text)["end"]["sum_received"]
        return (done["bits_per_second"] / 8 / (1 << 20),
                (self.cpu() - before) / (size / (1 << 30)))

    def tcp_latency(self):
        """A round trip of ping, halved as perftest does."""
        text = self.b.run("ping -q -i 0.002 -s 16 -c 300 %s" % self.a.ip,
                          60).out
        return float(re.search(r"= [\d.]+/([\d.]+)/", text).group(1)) \
            * 1000 / 2

    def bandwidth(self, kind, tool, size):
        total = (FAST_RUN if kind == "erdma" else SLOW_RUN) * self.scale
        if size <= 4096:
            total /= 2
        n = max(100, int(total / size))
        text, cpu = self.pair("%s -R -F -s %d -n %d" % (tool, size, n), kind)
        return programs.perftest_bandwidth(text), cpu / (n * size / (1 << 30))

    def latency(self, kind, tool, size):
        n = max(200, int(1000 * self.scale))
        text, _ = self.pair("%s -R -F -s %d -n %d" % (tool, size, n), kind)
        return programs.perftest_latency(text)

    def measure(self, kind):
        """All values of one kind of device: name -> list of runs."""
        got = {}

        def add(name, value):
            got.setdefault(name, []).append(value)
            if "CPU" not in name:
                self.say("%s run %d: %s %.1f" % (kind, run + 1, name, value))

        for run in range(self.runs):
            if kind == "tcp":
                mib, cpu = self.tcp()
                add("stream MiB/s", mib)
                add("stream CPU s/GiB", cpu)
                add("ping us", self.tcp_latency())
                continue
            for name, tool, size in BANDWIDTHS:
                try:
                    mib, cpu = self.bandwidth(kind, tool, size)
                except GuestError as e:
                    self.say(str(e))
                    continue
                add(name + " MiB/s", mib)
                add(name + " CPU s/GiB", cpu)
            for name, tool, size in LATENCIES:
                try:
                    add(name + " us", self.latency(kind, tool, size))
                except GuestError as e:
                    self.say(str(e))
        return {k: {"median": statistics.median(v), "runs": v}
                for k, v in got.items()}


ROWS = [
    ("64 KiB write, MiB/s", "write-64K MiB/s", "stream MiB/s"),
    ("4 KiB write, MiB/s", "write-4K MiB/s", None),
    ("64 KiB read, MiB/s", "read-64K MiB/s", None),
    ("4 KiB read, MiB/s", "read-4K MiB/s", None),
    ("8 B send, us", "send-8 us", "ping us"),
    ("8 B write, us", "write-8 us", None),
    ("host CPU s per GiB, 64 KiB write", "write-64K CPU s/GiB",
     "stream CPU s/GiB"),
    ("host CPU s per GiB, 64 KiB read", "read-64K CPU s/GiB", None),
]


def cell(results, kind, key, tcp_key):
    key = tcp_key if kind == "tcp" else key
    value = results.get(kind, {}).get(key) if key else None
    if value is None:
        return "-"
    value = value["median"]
    return "%.0f" % value if value >= 100 else "%.1f" % value


def ratios(results):
    """erdma against each other kind, > 1 is better for erdma."""
    out = {}
    ours = results.get("erdma", {})
    for kind in ("rxe", "siw"):
        for key, value in results.get(kind, {}).items():
            if key in ours and value["median"] and ours[key]["median"]:
                r = ours[key]["median"] / value["median"]
                out["%s vs %s" % (key, kind)] = round(
                    r if key.endswith("MiB/s") else 1 / r, 2)
    if "tcp" in results and "write-64K MiB/s" in ours:
        out["write-64K MiB/s vs tcp"] = round(
            ours["write-64K MiB/s"]["median"] /
            results["tcp"]["stream MiB/s"]["median"], 2)
    return out


def tables(report):
    """The report as Markdown, which is readable as it is."""
    lines = []
    for mtu, results in report["mtu"].items():
        kinds = [k for k in KINDS if k in results["kinds"]]
        rows = [["MTU " + mtu] + kinds]
        for title, key, tcp_key in ROWS:
            rows.append([title] + [cell(results["kinds"], k, key, tcp_key)
                                   for k in kinds])
        widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
        for i, row in enumerate(rows):
            lines.append("| " + " | ".join(
                c.ljust(w) if k == 0 else c.rjust(w)
                for k, (c, w) in enumerate(zip(row, widths))) + " |")
            if i == 0:
                lines.append("|" + "|".join(
                    "-" * (w + 2) if k == 0 else "-" * (w + 1) + ":"
                    for k, w in enumerate(widths)) + "|")
        wanted = results["ratios"]
        lines.append("")
        lines.append("Ratios (above 1: erdma is better): " + ", ".join(
            "%s %s" % (k, v) for k, v in wanted.items()
            if "64K MiB/s" in k or k.startswith("send-8")) + ".")
        lines.append("Two guests start in %.1f s." % results["start"])
        lines.append("")
    return "\n".join(lines)


def measure_mtu(args, mtu, say):
    results = {}
    guest_set = GuestSet(Options(n=2, rdma="erdma", mtu=mtu, restrict=True),
                         logdir=os.path.join(paths.BUILD, "logs", "bench"),
                         say=say)
    guest_set.prepare()
    began = time.monotonic()
    with guest_set as guests:
        for guest in guests:
            guest.run("true")
        start = time.monotonic() - began
        say("MTU %d: two guests, from nothing to a shell and an RDMA port: "
            "%.1f s" % (mtu, start))
        bench = Bench(guests, args.runs, 0.2 if args.quick else 1.0,
                      say)
        for guest in guests:
            # One device at a time: the programs take the one they find.
            guest.qmp.command("device_del", id="hca0")
            guest.qmp.wait_event("DEVICE_DELETED", 20,
                                 lambda d: d.get("device") == "hca0")
        for kind in args.only or KINDS:
            began = time.monotonic()
            for guest in guests:
                if kind == "erdma":
                    guest.add_hca()
                elif kind != "tcp":
                    guest.add_soft_rdma(kind)
            results[kind] = bench.measure(kind)
            for guest in guests:
                if kind == "erdma":
                    guest.qmp.command("device_del", id="hca0")
                elif kind != "tcp":
                    guest.del_soft_rdma(kind)
            say("MTU %d: %s took %.0f s" % (mtu, kind,
                                            time.monotonic() - began))
    return {"kinds": results, "ratios": ratios(results), "start": start}


def main():
    parser = Parser(
        prog="./erdma bench", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true",
                        help="a fifth of the data")
    parser.add_argument("--runs", type=int, default=3, metavar="N")
    parser.add_argument("--mtu", type=int, action="append", metavar="M",
                        help="1500 and 8500 if not given")
    parser.add_argument("--json", metavar="FILE",
                        default=os.path.join(paths.BUILD, "bench.json"))
    parser.add_argument("--markdown", metavar="FILE")
    parser.add_argument("--only", action="append", choices=KINDS,
                        metavar="KIND", help="tcp, rxe, siw or erdma")
    args = parser.parse_args()

    def say(text):
        print("bench: " + text, file=sys.stderr, flush=True)

    try:
        if not os.environ.get("ERDMA_QEMU"):
            paths.step("build")
        began = time.monotonic()
        report = {
            "when": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
            "host": "%d CPUs, load %.1f at the start, Linux %s" % (
                os.cpu_count(), os.getloadavg()[0], platform.release()),
            "guest": "1 vCPU, TCG, kernel 6.12, virtio-net over a unix "
                     "stream socket",
            "runs": args.runs, "quick": args.quick, "mtu": {},
        }
        for mtu in args.mtu or [1500, 8500]:
            report["mtu"][str(mtu)] = measure_mtu(args, mtu, say)
    except GuestError as e:
        say("failed: %s" % e)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    text = "%s; host: %s; guests: %s; medians of %d runs%s.\n\n%s" % (
        report["when"], report["host"], report["guest"], args.runs,
        ", a fifth of the data" if args.quick else "", tables(report))
    print(text)
    for path, content in ((args.json, json.dumps(report, indent=2) + "\n"),
                          (args.markdown, text)):
        if path:
            os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
            with open(path, "w") as f:
                f.write(content)
    say("took %.0f s, details in %s" % (time.monotonic() - began, args.json))


main()
