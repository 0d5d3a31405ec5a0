# SPDX-License-Identifier: GPL-2.0-or-later
"""What the guests' HCAs say to each other, seen by filter-dump and dissected
by tools/wireshark/erdma.lua."""

import importlib.util
import os
import pathlib
import shutil

from guestlib.programs import run_pair
from suite import Skip, test

ROOT = pathlib.Path(__file__).resolve().parents[2]

PROGRAMS = [
    ("rping -s -a {ip} -C 5", "rping -c -a {ip} -C 5"),
    ("ib_write_bw -R -n 20", "ib_write_bw -R -n 20 {ip}"),
    ("ib_atomic_bw -R -n 20", "ib_atomic_bw -R -n 20 {ip}"),
]
# DATA, ACK, PING, TERM, TERM_ACK; SEND, WRITE, READ, FAA and the answers
TYPES = {"1", "2", "3", "4", "5"}
OPS = {"1", "4", "6", "7", "9", "10"}


def dissector():
    spec = importlib.util.spec_from_file_location(
        "dissector", ROOT / "tests" / "dissector" / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@test("capture", guests="pair-dump")
def capture(ctx):
    if not shutil.which("tshark"):
        raise Skip("tshark is missing")
    for server, client in PROGRAMS:
        outcome = run_pair(ctx[1], ctx[2], server.format(ip=ctx[1].ip),
                           client.format(ip=ctx[1].ip), 60)
        assert not outcome.problem, outcome.problem
    tools = dissector()
    for guest in ctx.guests:
        path = os.path.join(ctx.guests.logdir, guest.name + ".pcap")
        tools.check_capture(ctx.tap, pathlib.Path(path), TYPES, OPS)
