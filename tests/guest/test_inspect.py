# SPDX-License-Identifier: GPL-2.0-or-later
"""What QEMU shows of the adapter is what the guest's driver shows of it."""

import json
import signal
import time

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
    mrs = user_objects(guest, "mr")
    ctx.point(sorted((int(mr["lkey"], 16), mr["mrlen"]) for mr in mrs) ==
              sorted((mr["key"], mr["length"]) for mr in objects["mrs"]
                     if mr["type"] == "normal"),
              "%s: memory regions" % guest.name,
              "%s\n%s" % (mrs, objects["mrs"]))


def expect_counters(ctx, guest):
    """Nothing moves, so both ways of asking tell of the same moment."""
    inside = rdma(guest, "statistic show")[0]
    outside = adapter(guest).get("stats")
    for driver, device in (("tx_reqs_cnt", "tx-requests"),
                           ("tx_packets_cnt", "tx-packets"),
                           ("rx_packets_cnt", "rx-packets")):
        ctx.point(int(inside[driver]) == outside[device] > 0,
                  "%s: %s" % (guest.name, driver),
                  "%s and %s" % (inside[driver], outside[device]))


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
