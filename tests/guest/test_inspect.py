# SPDX-License-Identifier: GPL-2.0-or-later
"""What QEMU shows of the adapter is what the guest's driver shows of it."""

import json
import re
import signal
import subprocess
import time

from guestlib import asleep, paths
from guestlib.adapter import Adapter
from guestlib.programs import wait_listening
from suite import test


def adapter(guest):
    return Adapter(guest.qmp.execute, "hca0")


def rdma(guest, command):
    """Output of the guest's rdma tool"""
    return json.loads(guest.run("rdma -j -d " + command).out or "[]")


def user_objects(guest, kind):
    """What programs made; the kernel's own has no pid."""
    return [o for o in rdma(guest, "resource show " + kind) if "pid" in o]


def wait_moving(guest):
    """Until the guest's one connection has delivered something"""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        for qp in adapter(guest).get("qps"):
            if qp.get("connection", {}).get("delivered-bytes"):
                return
        time.sleep(0.05)
    assert False, "nothing moves"


def expect_same(ctx, guest, objects):
    """One end of a connection that is at rest"""
    qps = user_objects(guest, "qp")
    ctx.point(sorted(qp["lqpn"] for qp in qps) ==
              sorted(qp["qpn"] for qp in objects["qps"]),
              "%s: queue pairs" % guest.name, "%s\n%s" % (qps, objects["qps"]))
    ctx.point(all(qp["state"] == "RTS" for qp in qps) and
              all(qp["state"] == "rts" for qp in objects["qps"]),
              "%s: their states" % guest.name, str(qps))
    cqs = user_objects(guest, "cq")
    ctx.point(len(cqs) == len(objects["cqs"]) and
              all(any(cq["cqe"] <= o["depth"] for o in objects["cqs"])
                  for cq in cqs), "%s: completion queues" % guest.name,
              "%s\n%s" % (cqs, objects["cqs"]))
    ctx.point(any(cq["announced"] for cq in objects["cqs"]) and
              not any(cq["armed"] == "any" and asleep.untold(cq)
                      for cq in objects["cqs"]),
              "%s: every completion was announced" % guest.name,
              str(objects["cqs"]))
    mrs = user_objects(guest, "mr")
    ctx.point(sorted((int(mr["lkey"], 16), mr["mrlen"]) for mr in mrs) ==
              sorted((mr["key"], mr["length"]) for mr in objects["mrs"]
                     if mr["type"] == "normal"),
              "%s: memory regions" % guest.name,
              "%s\n%s" % (mrs, objects["mrs"]))


# The driver's counters, and QEMU's.
COUNTERS = (("tx_reqs_cnt", "tx-requests"), ("tx_packets_cnt", "tx-packets"),
            ("tx_bytes_cnt", "tx-bytes"), ("rx_packets_cnt", "rx-packets"),
            ("rx_bytes_cnt", "rx-bytes"))
# No limit on speed drops anything; the rest is what the device dropped.
ALWAYS_0 = ("tx_disable_drop_cnt", "tx_bps_limit_drop_cnt",
            "tx_pps_limit_drop_cnt", "rx_bps_limit_drop_cnt",
            "rx_pps_limit_drop_cnt")


def expect_counters(ctx, guest):
    """Nothing moves, so both ways of asking tell of the same moment."""
    inside = rdma(guest, "statistic show")[0]
    outside = adapter(guest).get("stats")
    for driver, device in COUNTERS:
        ctx.point(int(inside[driver]) == outside[device] > 0,
                  "%s: %s" % (guest.name, driver),
                  "%s and %s" % (inside[driver], outside[device]))
    drops = sum(n for name, n in outside.items() if name.startswith("drop-"))
    ctx.point(int(inside["rx_disable_drop_cnt"]) == drops and
              not any(int(inside[name]) for name in ALWAYS_0),
              "%s: what is dropped" % guest.name,
              "%s and %s" % (inside, outside))


def tables(text):
    """{title: {heading: [cells]}} of what ./erdma inspect shows"""
    found = {}
    for part in text.split("\n\n"):
        title, *lines = part.splitlines()
        rows = [line.split() for line in lines if line.startswith("  ")]
        # What follows in the same part is of connections.
        rows = [row for row in rows if len(row) == len(rows[0])]
        found[title.partition(":")[0]] = dict(zip(rows[0], zip(*rows[1:])))
    return found


def inspect_text(guest, *parts):
    """What the command prints; the guest's other monitor is taken."""
    result = subprocess.run(
        [paths.ERDMA, "inspect", "--qmp", guest.machine.path("watch"),
         "--device", "hca0", *parts], text=True, timeout=60, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert result.returncode == 0, result.stdout
    return result.stdout


def expect_shown(ctx, guest):
    """What people read has the driver's numbers, too."""
    text = inspect_text(guest, "qps", "cqs", "mrs")
    shown = tables(text)
    qps, cqs, mrs = (user_objects(guest, kind) for kind in ("qp", "cq", "mr"))
    for what, here, there in (
            ("QPN", shown["queue pairs"]["QPN"],
             [str(qp["lqpn"]) for qp in qps]),
            ("STATE", shown["queue pairs"]["STATE"],
             [qp["state"].lower() for qp in qps]),
            ("CQN", shown["completion queues"]["CQN"],
             shown["queue pairs"]["SCQ"]),
            ("ANNOUNCED", shown["completion queues"]["ANNOUNCED"],
             [str(cq["announced"]) for cq in adapter(guest).get("cqs")]),
            ("KEY", shown["memory regions"]["KEY"],
             ["0x%08x" % int(mr["lkey"], 16) for mr in mrs]),
            ("LENGTH", shown["memory regions"]["LENGTH"],
             [str(mr["mrlen"]) for mr in mrs])):
        ctx.point(sorted(here) == sorted(there) and here,
                  "%s: inspect shows %s" % (guest.name, what),
                  "%s\n%s" % (there, text))
    ctx.point(len(cqs) == len(shown["completion queues"]["CQN"]),
              "%s: inspect shows the CQs" % guest.name, str(cqs))
    text = inspect_text(guest, "stats")
    inside = rdma(guest, "statistic show")[0]
    ctx.point(all(re.search(r"^ +%s +%s$" % (device, inside[driver]), text,
                            re.M) for driver, device in COUNTERS),
              "%s: inspect shows the counters" % guest.name,
              "%s\n%s" % (inside, text))


@test("inspect")
def inspect(ctx):
    """A connection that is stopped in the middle, seen from both sides"""
    server = ctx[1].start("exec rping -s -S 1000", 120, merge=True)
    wait_listening(ctx[1], "rping")
    client = ctx[2].start("exec rping -c -a %s -S 1000" % ctx[1].ip, 120,
                          merge=True)
    for guest in (ctx[1], ctx[2]):
        wait_moving(guest)
    client.signal(signal.SIGSTOP)
    server.signal(signal.SIGSTOP)
    time.sleep(0.5)             # what is under way arrives
    try:
        found = [{part: adapter(guest).get(part)
                  for part in ("device", "qps", "cqs", "mrs", "eqs")}
                 for guest in (ctx[1], ctx[2])]
        for guest, objects in zip((ctx[1], ctx[2]), found):
            expect_same(ctx, guest, objects)
            expect_counters(ctx, guest)
            expect_shown(ctx, guest)
            ctx.point(objects["device"]["ready"] and
                      objects["device"]["guest-errors"] == 0,
                      "%s: device" % guest.name, str(objects["device"]))
        ends = [objects["qps"][0]["connection"] for objects in found]
        ctx.point(ends[0]["local-address"] == ends[1]["peer-address"] ==
                  ctx[1].ip and ends[0]["local-port"] ==
                  ends[1]["peer-port"] == 7174 and
                  ends[0]["peer-cookie"] == ends[1]["local-cookie"],
                  "both ends know each other", str(ends))
        ctx.point(ends[0]["delivered-bytes"] == ends[1]["received-bytes"] > 0,
                  "what one end delivered the other one received", str(ends))
    finally:
        client.signal(signal.SIGCONT)
        server.signal(signal.SIGCONT)
        client.kill()
        server.kill()
        client.wait(20)
        server.wait(20)
    ctx[1].wait_until("! rdma resource show qp | grep -q pid", 20,
                      "QPs are left")
    for guest in (ctx[1], ctx[2]):
        ctx.point(not adapter(guest).get("qps"),
                  "%s: no queue pair is left" % guest.name)
