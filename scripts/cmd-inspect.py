#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: show the state of a guest's adapter
"""Shows what the adapter of a guest of `./erdma guests` has: its own state,
event queues, completion queues, queue pairs with their connections, memory
regions.

usage: ./erdma inspect [--state DIR] [--device ID] [--json] I [WHAT]...
       ./erdma inspect --qmp SOCKET --device ID [--json] [WHAT]...

WHAT is any of device, eqs, cqs, qps, mrs, stats; without it all but stats.
The second form asks any QEMU that has -qmp unix:SOCKET,server=on,wait=off.

Columns are explained in docs/introspection.md, every field in
qapi/erdma.json.
"""

import argparse
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from arguments import Parser  # noqa: E402
from guestlib import paths  # noqa: E402
from guestlib.adapter import PARTS, Adapter  # noqa: E402
from guestlib.client import Client  # noqa: E402
from guestlib.errors import GuestError  # noqa: E402
from guestlib.qmp import QMP  # noqa: E402

def die(text, status=1):
    print("erdma: inspect: %s" % text, file=sys.stderr)
    sys.exit(status)


# ---- numbers for people ------------------------------------------------


def time_of(ns):
    for unit, factor in (("s", 10**9), ("ms", 10**6), ("us", 1000)):
        if ns >= factor:
            return "%.3g%s" % (ns / factor, unit)
    return "%dns" % ns


def size_of(n):
    for unit, factor in (("G", 2**30), ("M", 2**20), ("K", 2**10)):
        if n >= factor and n % factor == 0:
            return "%d%s" % (n // factor, unit)
    return str(n)


def rate_of(bps):
    if not bps:
        return "-"
    for unit, factor in (("G", 10**9), ("M", 10**6), ("k", 1000)):
        if bps >= factor:
            return "%.3g%s" % (bps / factor, unit)
    return str(bps)


def yes(value):
    return "yes" if value else "-"


def table(title, columns, rows):
    """columns: (heading, value of a row); numbers to the right"""
    print("%s: %d" % (title, len(rows)))
    if not rows:
        return
    cells = [[heading for heading, _ in columns]]
    cells += [[str(value(row)) for _, value in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    for line in cells:
        print("  " + "  ".join(cell.rjust(width) for cell, width
                               in zip(line, widths)).rstrip())


def field(name, shown=str):
    return lambda row: shown(row[name]) if name in row else "-"


def behind(pi, ci):
    """Entries between two free-running 16-bit indices"""
    return lambda row: (row[pi] - row[ci]) & 0xffff


# ---- the tables --------------------------------------------------------


def show_device(dev):
    print("device: %s, MAC %s, IP MTU %d, algorithm %s" % (
        "ready" if dev["ready"] else "not initialised by a driver",
        dev["mac"], dev["mtu"], dev["algorithm"]))
    print("  " + ", ".join("%s %d of %d" % (name, dev[key], dev["max-" + key])
                           for name, key in (
                               ("QPs", "qps"), ("CQs", "cqs"),
                               ("MRs", "mrs"),
                               ("doorbell pages", "doorbell-pages"))))
    print("  commands: %d, %d waiting, latest refused: %s" % (
        dev["commands"],
        (dev["command-pi"] - dev["command-ci"]) & 0xffff,
        dev.get("refused-command", "none")))
    print("  guest errors: %d%s" % (
        dev["guest-errors"],
        ", latest: " + dev["guest-error"] if "guest-error" in dev else ""))


EQS = [("EQN", field("eqn")), ("KIND", field("kind")),
       ("VECTOR", field("vector")), ("DEPTH", field("depth")),
       ("PI", field("pi")), ("CI", field("ci")),
       ("PENDING", field("pending")), ("ARMED", field("armed", yes)),
       ("HELD", field("held")), ("IRQS", field("interrupts"))]

CQS = [("CQN", field("cqn")), ("EQN", field("eqn")),
       ("DEPTH", field("depth")), ("PI", field("pi")), ("CI", field("ci")),
       ("ANNOUNCED", field("announced")),
       ("ARMED", field("armed")), ("EVENTS", field("events")),
       ("HELD", field("event-held", yes)), ("BROKEN", field("broken", yes))]

QPS = [("QPN", field("qpn")), ("STATE", field("state")),
       ("OWNER", field("kernel", lambda k: "kernel" if k else "user")),
       ("PD", field("pdn")), ("SCQ", field("sq-cqn")),
       ("RCQ", field("rq-cqn")),
       ("SQ", field("sq-depth")), ("PI", field("sq-pi")),
       ("CI", field("sq-ci")), ("POSTED", behind("sq-pi", "sq-next")),
       ("SENDS", field("sends")), ("READS", field("reads")),
       ("WAIT", field("sq-wait")),
       ("RQ", field("rq-depth")), ("PI", field("rq-pi")),
       ("CI", field("rq-ci")), ("RECVS", behind("rq-pi", "rq-ci")),
       ("ERROR", field("last-error"))]


def end(side):
    return lambda c: "%s:%d" % (c[side + "-address"], c[side + "-port"])


CONNECTIONS = [
    ("QPN", field("qpn")), ("LOCAL", end("local")), ("PEER", end("peer")),
    ("ALGORITHM", field("algorithm")), ("CWND", field("cwnd-bytes")),
    ("SSTHRESH", field("ssthresh-bytes")),
    ("REFERENCE", field("reference-bytes")),
    ("PACING", field("pacing-bps", rate_of)),
    ("INFLIGHT", field("inflight-bytes")), ("SRTT", field("srtt-ns", time_of)),
    ("MINRTT", field("min-rtt-ns", time_of)), ("RTO", field("rto-ns", time_of)),
    ("U", field("utilisation", "{:.3f}".format)),
    ("ALPHA", field("alpha", "{:.3f}".format))]

COUNTERS = [
    ("QPN", field("qpn")), ("SENT", field("tx-packets")),
    ("RECEIVED", field("rx-packets")),
    ("DELIVERED", field("delivered-bytes")),
    ("CONSUMED", field("received-bytes")),
    ("RETRANS", field("retransmits")), ("LOST", field("lost")),
    ("SPURIOUS", field("spurious")), ("PROBES", field("probes")),
    ("RTOS", field("rtos")), ("MARKS", field("marks")),
    ("INT", field("int-samples")), ("EPISODES", field("loss-episodes")),
    ("UNDOS", field("undos"))]

MRS = [("INDEX", field("index")), ("KEY", field("key", "0x{:08x}".format)),
       ("TYPE", field("type")), ("VALID", field("valid", yes)),
       ("PD", field("pdn")), ("ACCESS", field("access")),
       ("START", field("start", "0x{:x}".format)),
       ("LENGTH", field("length")), ("PAGE", field("page-bytes", size_of)),
       ("PAGES", field("pages")), ("LEVELS", field("table-levels"))]


def show_qps(qps):
    table("queue pairs", QPS, qps)
    connections = [{"qpn": qp["qpn"], **qp["connection"]} for qp in qps
                   if "connection" in qp]
    table("connections", CONNECTIONS, connections)
    if connections:
        table("counters of connections", COUNTERS, connections)


def show_stats(stats):
    print("counters:")
    for name, value in sorted(stats.items()):
        print("  %-24s %d" % (name, value))


SHOW = {"device": show_device, "qps": show_qps, "stats": show_stats,
        "eqs": lambda rows: table("event queues", EQS, rows),
        "cqs": lambda rows: table("completion queues", CQS, rows),
        "mrs": lambda rows: table("memory regions", MRS, rows)}


# ---- the command -------------------------------------------------------


def parse():
    p = Parser(prog="./erdma inspect", description=__doc__,
               formatter_class=argparse.RawDescriptionHelpFormatter,
               usage=argparse.SUPPRESS)
    p.add_argument("--state", metavar="DIR",
                   help="of the guests (default: $ERDMA_GUESTS, build/guests)")
    p.add_argument("--qmp", metavar="SOCKET", help="QMP socket of any QEMU")
    p.add_argument("--device", metavar="ID", default="hca0",
                   help="id= or QOM path of the adapter (default: hca0)")
    p.add_argument("--json", action="store_true",
                   help="all fields, as QEMU names them")
    p.add_argument("words", nargs="*", metavar="I [WHAT]...",
                   help="the guest's number; what to show")
    args = p.parse_args()
    args.guest = None
    if not args.qmp:
        if not args.words or not args.words[0].isdigit():
            p.error("which guest? Give its number, or --qmp SOCKET")
        args.guest = int(args.words.pop(0))
    for word in args.words:
        if word not in PARTS:
            p.error("'%s' is not one of %s" % (word, ", ".join(PARTS)))
    args.words = args.words or [part for part in PARTS if part != "stats"]
    return args


def connection(args):
    """A function that sends one request"""
    if args.qmp:
        return QMP(args.qmp).execute
    state = os.path.abspath(
        args.state or os.environ.get("ERDMA_GUESTS") or
        os.path.join(paths.BUILD, "guests"))
    # One connection has one request.
    return lambda request: Client(state).ask("qmp", guest=args.guest,
                                             request=request)["reply"]


def main():
    args = parse()
    try:
        adapter = Adapter(connection(args), args.device)
        found = {part: adapter.get(part) for part in args.words}
    except (GuestError, OSError) as e:
        die(str(e))
    if args.json:
        print(json.dumps(found, indent=2))
        return
    for i, part in enumerate(args.words):
        if i:
            print()
        SHOW[part](found[part])


if __name__ == "__main__":
    main()
