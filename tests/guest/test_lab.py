# SPDX-License-Identifier: GPL-2.0-or-later
"""./erdma lab with guests: that it works, not how well a busy machine does.
"""

import csv
import json
import os
import pathlib
import subprocess
import tempfile

from suite import ROOT, test

EXPERIMENT = """
senders = 2
rate = 20Mbit/s
nic-rate = 80Mbit/s
rtt = 20ms
queue = 1BDP
loss = 1%
algorithm = newreno, hpcc_int
duration = 3s
warm-up = 1s
interval = 200ms
rto-min = 500ms
rto-initial = 500ms
"""

# A flow that starts later than the other, and comes to its end
TIMED = """
senders = 2
rate = 20Mbit/s
rtt = 20ms
queue = 2BDP
algorithm = cubic
duration = 6s
interval = 200ms
rto-min = 500ms
rto-initial = 500ms
[flows]
message = 100KB
messages = 3
stagger = 500ms
"""


def lab(tmp, *args, text=None):
    file = pathlib.Path(tmp) / "experiment.conf"
    if text:
        file.write_text(text)
        args = [*args[:1], str(file), *args[1:]]
    return subprocess.run(["./erdma", "lab", *args], cwd=ROOT, text=True,
                          capture_output=True, timeout=280, env=os.environ)


def rows_of(out, what):
    rows = []
    for path in sorted((out / "series").glob(what + "-*.csv")):
        with open(path, newline="") as file:
            rows += list(csv.DictReader(file))
    return rows


@test("lab-run", guests=None)
def lab_run(ctx):
    with tempfile.TemporaryDirectory() as tmp:
        out = pathlib.Path(tmp) / "out"
        run = lab(tmp, "run", "--guests", "--no-plots", "-o", str(out),
                  text=EXPERIMENT)
        assert run.returncode == 0, run.stderr + run.stdout
        runs = json.loads((out / "results.json").read_text())["runs"]
        ctx.point([r["algorithm"] for r in runs] == ["newreno", "hpcc_int"],
                  "a run per algorithm", str([r["label"] for r in runs]))
        ctx.point(all(len(r["flows"]) == 2 and all(
            f["delivered"] > 0 and f["algorithm"] == r["algorithm"] and
            not f["failed"] for f in r["flows"]) for r in runs),
            "both flows work, with that algorithm", json.dumps(runs)[:1500])
        ctx.point(all(r["links"][0]["drop_loss"] > 0 and sum(
            f["retransmits"] for f in r["flows"]) > 0 for r in runs),
            "what the link loses is sent again")
        flows, links = rows_of(out, "flows"), rows_of(out, "links")
        ctx.point(len(links) >= 10 and len(flows) == 2 * len(links),
                  "time series", "%d and %d rows" % (len(flows), len(links)))
        ctx.point(any(float(r["u"]) > 0 for r in flows
                      if r["algorithm"] == "hpcc_int") and
                  all(int(r["cwnd"]) > 0 for r in flows),
                  "windows, and HPCC's U")


@test("lab-run-timed", guests=None)
def lab_run_timed(ctx):
    with tempfile.TemporaryDirectory() as tmp:
        out = pathlib.Path(tmp) / "out"
        run = lab(tmp, "run", "--guests", "--no-plots", "-o", str(out),
                  text=TIMED)
        assert run.returncode == 0, run.stderr + run.stdout
        result, = json.loads((out / "results.json").read_text())["runs"]
        ctx.point(all(f["delivered"] == 300000 and f["completion_us"] > 0
                      for f in result["flows"]),
                  "flows come to their end", json.dumps(result)[:1500])
        first = {}
        for row in rows_of(out, "flows"):
            if int(row["delivered"]) > 0:
                first.setdefault(row["flow"], float(row["time_us"]))
        ctx.point(first["1"] > first["0"] and first["1"] >= 500000,
                  "and start when they should", str(first))


@test("lab-refuses", guests=None)
def lab_refuses(ctx):
    with tempfile.TemporaryDirectory() as tmp:
        for name, change in (("topology", "topology = parking-lot"),
                             ("rate", "rate = 25Gbit/s"),
                             ("rtt", "rtt = 40us")):
            key = change.split(" = ")[0] + " ="
            text = "\n".join([line for line in EXPERIMENT.splitlines()
                              if not line.startswith(key) and
                              not (name == "topology" and
                                   line.startswith("senders"))] + [change])
            run = lab(tmp, "run", "--guests", "--no-plots", "-o",
                      tmp + "/out-" + name, text=text)
            ctx.point(run.returncode == 2 and name + ":" in run.stderr and
                      "Traceback" not in run.stderr, name,
                      "status %d\n%s" % (run.returncode, run.stderr))


@test("lab-known-answers", guests=None)
def lab_known_answers(ctx):
    """KA-7, a packet of a hundred lost: counters are exact on any machine,
    times are not."""
    with tempfile.TemporaryDirectory() as tmp:
        run = lab(tmp, "known-answers", "--guests", "--no-sim", "--repeats",
                  "1", "--record", tmp + "/record", "7")
        lines = run.stdout.splitlines()
        ctx.point(lines and lines[-1].endswith(" failed"),
                  "comes to its end", run.stderr[-2000:])
        for what in ("packet 50 lost, dropped", "last packet lost, dropped",
                     "packet 50 lost, retransmissions"):
            row = [line for line in lines if " %s " % what in line]
            ctx.point(len(row) == 1 and "| yes |" in row[0], what, run.stdout)
