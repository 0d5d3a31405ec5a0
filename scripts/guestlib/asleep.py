# SPDX-License-Identifier: GPL-2.0-or-later
"""A program waits for an event and nothing moves: whose doing is it?

What the device says of its queues tells a program that was told of everything
and left completions in its queue from one that an event was kept from. See
"What to look at" in docs/introspection.md.
"""

INDEX_MASK = 0xffffff           # of the index that an arm tells

# perftest's bandwidth tests poll for so many completions at once.
PERFTEST_BATCH = 16
# Up to this version they did so once per event, and then waited for the next
# one: linux-rdma/perftest pull request 203. Release 4.5 calls itself 6.06,
# 25.01 calls itself 6.24.
PERFTEST_POLLS_ONCE = (6, 6)


def left(cq):
    """What was written after the consumer's last look that it told of"""
    return (cq["pi"] - cq.get("ci", 0)) & INDEX_MASK


def untold(cq):
    """Of that, what no event has told of"""
    return min(left(cq), (cq["pi"] - cq["announced"]) & 0xffffffff)


def device_faults(found):
    """What the device owes the guest, when nothing moves any more.

    found: {"cqs": [...], "qps": [...], "eqs": [...]}, as the device has them,
    and "waits": does the program wait for a completion event?
    """
    faults = []
    for cq in found["cqs"]:
        if cq["armed"] == "any" and untold(cq):
            faults.append("CQ %d: armed, and no event for %d completions" % (
                cq["cqn"], untold(cq)))
        # One that does not wait had its event and needs no other.
        if cq["armed"] == "none" and "ci" in cq and found["waits"]:
            faults.append("CQ %d: an event was sent, and it was not armed "
                          "again" % cq["cqn"])
        if cq["event-held"]:
            faults.append("CQ %d: its event waits" % cq["cqn"])
        if cq["broken"]:
            faults.append("CQ %d is broken" % cq["cqn"])
    for eq in found["eqs"]:
        if eq["pending"]:
            faults.append("EQ %d: %d events were not fetched" % (
                eq["eqn"], eq["pending"]))
    for qp in found["qps"]:
        if qp["sends"] or qp["sq-pi"] != qp["sq-next"]:
            faults.append("QP %d: requests are not done" % qp["qpn"])
    return faults


def overslept(client, server, version):
    """Does perftest of this version, as it calls itself, wait for what it was
    told of before?

    client, server: see device_faults(). Returns whether it is so, or None if
    the device is at fault, and what was seen.
    """
    faults = ["%s: %s" % (name, fault)
              for name, found in (("client", client), ("server", server))
              for fault in device_faults(found)]
    if faults:
        return None, "; ".join(faults)
    if not client["waits"]:
        return False, "the client does not wait for an event"
    asleep = [cq for cq in client["cqs"]
              if cq["armed"] == "any" and left(cq) > PERFTEST_BATCH]
    if not asleep:
        return False, "no completions are left in the client's queues"
    seen = "; ".join("CQ %d: armed at index %d, %d of %d announced" % (
        cq["cqn"], cq["ci"], cq["announced"], cq["pi"]) for cq in asleep)
    if version > PERFTEST_POLLS_ONCE:
        return False, seen + ", and this perftest empties its queues"
    return True, seen
