# SPDX-License-Identifier: GPL-2.0-or-later
"""Running a server in one guest and its client in another."""

import re
import time
from dataclasses import dataclass

from .agent import STATUS_TIMEOUT
from .errors import GuestError


# perftest's own set-up and tear-down went wrong, in its words.  Its client may
# connect before its server listens (they last meet before the server begins
# with that), and its retry then uses what it has freed already:
# create_rdma_cm_connection(), rdma_cm_client_connection().  With rxe and siw
# it fails now and then, too.
PERFTEST_SET_UP = ("CM event|(connect|create) RDMA CM|exchange data|"
                   "Failed to sync")

# ib_send_bw -e: a client that is the number of the server's receives ahead
# sleeps until a completion comes, but what it needs is credit, which the
# server writes and which completes nothing.  All but the last message of each
# queue pair are through then, and after 120 s the server says so.
PERFTEST_STALL = r"Total Received=(\d+), Total Iters \w+=(\d+)"
PERFTEST_STALL_SECONDS = 150


# What rping, verbs-check, perftest, verbs-churn and rcopy say when the driver
# has overlooked the peer's MPA reply: see "Faults of the Linux driver" in
# docs/limitations.md.
OVERLOOKED = ("RDMA_CM_EVENT_UNREACHABLE"
              "(, error -110| \\(-110\\)|; error: -110)|"
              "r(dma_)?connect: Connection timed out")
# And when the port that RDMA_CM has chosen is a TCP connection's, see there
PORT_TAKEN = "connection to itself: Address already in use"


def perftest_stalled(command, problem):
    """Did this run end so?"""
    found = re.search(PERFTEST_STALL, problem)
    if not found or not re.search(r"ib_send_bw.* -e\b", command):
        return False
    qps = re.search(r" -q (\d+)", command)
    missing = int(found.group(2)) - int(found.group(1))
    return 1 <= missing <= (int(qps.group(1)) if qps else 1)


@dataclass
class Outcome:
    """What a pair of programs did; problem is None if all went well."""
    client: object
    server: object
    seconds: float
    problem: str
    killed: bool = False    # the client, since it took too long
    seen: object = None     # what look() found before that


def perftest_fault(command, outcome):
    """Was it perftest's own doing that a run failed, as its words or what was
    seen (asleep.overslept()) tell? Why, or None."""
    if outcome.seen and outcome.seen[0] is None:
        return None
    if perftest_stalled(command, outcome.problem):
        return "it waits for credit"
    if not outcome.killed:
        # When the client was killed, the server's words tell nothing.
        found = re.search(PERFTEST_SET_UP, outcome.problem)
        return "its own set-up failed" if found else None
    if outcome.seen and outcome.seen[0]:
        return "it sleeps with completions in its queue: " + outcome.seen[1]
    return None


def wait_listening(guest, program, timeout=20):
    """Wait until `program` listens, through RDMA_CM or TCP."""
    name = program.split()[0].split("/")[-1][:15]
    test = ("{ rdma resource show cm_id; ss -ltnpH | tr '(\"' '  '; } "
            "2>/dev/null | grep -E 'LISTEN.* %s( |$)' | grep -q ." % name)
    loop = "until %s; do sleep 0.05; done" % test
    if not guest.run(loop, timeout, check=False).ok:
        raise GuestError("%s: %s does not listen" % (guest.name, name))


def run_pair(server_guest, client_guest, server, client, timeout=60,
             server_ends=True, look=lambda: None):
    """Start `server`, wait until it listens, run `client`.

    With server_ends the server must end by itself and with status 0;
    otherwise it is killed afterwards.  A client that takes longer than
    `timeout` is killed; look() is called before that.  A connection that was
    OVERLOOKED is tried once more.
    """
    args = (server_guest, client_guest, server, client, timeout, server_ends,
            look)
    outcome = _run_pair(*args)
    if outcome.client and re.search(OVERLOOKED, outcome.client.out):
        print("# once more, since %s: %s" % (
            client, outcome.client.out[-300:].replace("\n", " / ")),
            flush=True)
        outcome = _run_pair(*args)
    return outcome


def _run_pair(server_guest, client_guest, server, client, timeout,
              server_ends, look):
    daemon = server_guest.start(server, timeout + 60, merge=True)
    began = time.monotonic()
    problem, killed, seen = None, False, None
    try:
        wait_listening(server_guest, _program(server))
        began = time.monotonic()
        command = client_guest.start(client, timeout + 30, merge=True)
        if not command.ends_within(timeout):
            killed = True
            try:
                seen = look()
            finally:
                command.kill()
        c = command.wait()
        if killed:
            c.status = STATUS_TIMEOUT
        seconds = time.monotonic() - began
        if c.timed_out:
            problem = "the client took more than %d s; the server: %s" % (
                timeout, _last_words(daemon.output()))
        elif not c.ok:
            problem = "the client ended with status %d: %s; the server: %s" % (
                c.status, _last_words(c.out), _last_words(daemon.output()))
        if server_ends and not problem:
            s = daemon.wait(15)
            if not s.ok:
                problem = "the server %s: %s" % (
                    "did not end" if s.timed_out
                    else "ended with status %d" % s.status,
                    _last_words(s.out))
    except GuestError as e:
        c, seconds = None, time.monotonic() - began
        problem = "%s: %s" % (e, _last_words(daemon.output()))
    if daemon.running():
        daemon.kill()
    return Outcome(c, daemon.wait(5), seconds, problem, killed, seen)


def _program(command):
    """The program's name in a command like `A=b cd /tmp && exec prog -x`."""
    for word in command.split("&&")[-1].split():
        if word != "exec" and "=" not in word:
            return word
    return command


def _last_words(text):
    """What a program complained of, and the end of what it said.

    The order tells nothing: standard output is buffered, errors are not.
    """
    lines = [x.strip() for x in text.splitlines() if x.strip().strip("-")]
    complaints = [x for x in lines if re.search(
        r"error|fail|could|unable|invalid|status|unexpected|received=", x,
        re.I)]
    return " / ".join(complaints[:4] + lines[-2:])[-500:]


def perftest_result(text):
    """The numbers of the result lines: a list of lists of floats.

    perftest's deviation is -nan when one latency is far from the others.
    """
    return [[float(x) for x in line.split()]
            for line in text.splitlines()
            if re.fullmatch(r"\s*\d+(\s+([\d.]+|-?nan)){3,}\s*", line)]


def perftest_bandwidth(text):
    """Average bandwidth in MiB/s of a perftest bandwidth run."""
    rows = perftest_result(text)
    if not rows or len(rows[-1]) < 5:
        raise GuestError("no result in perftest's output: "
                         + _last_words(text))
    return rows[-1][3]


def perftest_latency(text):
    """Typical latency in microseconds of a perftest latency run."""
    rows = perftest_result(text)
    if not rows or len(rows[-1]) < 6:
        raise GuestError("no result in perftest's output: "
                         + _last_words(text))
    return rows[-1][4]
