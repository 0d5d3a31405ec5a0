# SPDX-License-Identifier: GPL-2.0-or-later
"""./erdma guests, as a script uses it."""

import os
import subprocess
import tempfile
import time

from suite import ROOT, test

SCRIPT = r"""
set -e
e=./erdma
$e guests start -n 1 --restrict > /dev/null
set +e
check() { echo "$1=$2"; }
out=$($e guests exec 1 'echo out; echo err >&2; exit 7' 2> "$ERR")
check status $?
check out "$out"
check err "$(cat "$ERR")"
check stdin "$(echo hello | $e guests exec -i 1 'tr a-z A-Z')"
$e guests exec --timeout 1 1 'sleep 30' 2> /dev/null
check limit $?
$e guests exec 9 true 2> /dev/null
check no-guest $?
check background "$($e guests exec 1 'sleep 60 & echo started')"
check binary "$($e guests exec 1 'head -c 300000 /dev/zero' | wc -c)"
check qmp "$($e guests qmp 1 query-status | grep -c running)"
check console "$(echo 'echo $((40 + 2))' | $e guests console 1 |
                 grep -c '^42')"
check again "$($e guests start 2>&1 | grep -c 'running already')"
check status-line "$($e guests status | grep -c '^guest1 .*running')"
check inspect "$($e inspect 1 | grep -cE \
    '^(device: ready|event queues: [1-9]|completion|queue|memory|  EQN )')"
check inspect-json "$($e inspect --json 1 qps eqs | python3 -c \
    'import json, sys; print(json.load(sys.stdin).keys() == {"qps", "eqs"})')"
$e inspect --device hca9 1 2> /dev/null
check inspect-none $?
check hostname "$($e guests exec 1 hostname)"
check pid "$($e guests status --json | sed -n 's/.*"pid": \([0-9]*\).*/\1/p' |
             tail -n 1)"
"""


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@test("commands", guests=None)
def commands(ctx):
    with tempfile.TemporaryDirectory() as tmp:
        env = dict(os.environ, ERDMA_GUESTS=tmp, ERR=tmp + "/err")
        run = subprocess.run(["sh", "-c", SCRIPT], cwd=ROOT, env=env,
                             capture_output=True, text=True, timeout=600)
        got = dict(line.split("=", 1) for line in run.stdout.splitlines()
                   if "=" in line)
        for key, value in (
                ("status", "7"), ("out", "out"), ("err", "err"),
                ("stdin", "HELLO"), ("limit", "124"), ("no-guest", "125"),
                ("background", "started"), ("binary", "300000"),
                ("qmp", "2"), ("console", "1"), ("again", "1"),
                ("status-line", "1"), ("hostname", "guest1"),
                ("inspect", "6"), ("inspect-json", "True"),
                ("inspect-none", "1")):
            ctx.point(got.get(key) == value, key, "%r instead of %r\n%s" % (
                got.get(key), value, run.stderr))
        assert got.get("pid"), run.stderr
        pid, end = int(got["pid"]), time.monotonic() + 10
        while alive(pid) and time.monotonic() < end:
            time.sleep(0.1)
        ctx.point(not alive(pid), "guests end with their script")


def expect_status(ctx, env, args, status):
    run = subprocess.run(["./erdma", *args], cwd=ROOT, env=env,
                         capture_output=True, text=True, timeout=300)
    ctx.point(run.returncode == status and "Traceback" not in run.stderr,
              " ".join(args),
              "status %d\n%s" % (run.returncode, run.stderr))


@test("command-errors", guests=None)
def command_errors(ctx):
    """One line and the right status for what a user gets wrong."""
    with tempfile.TemporaryDirectory() as tmp:
        env = dict(os.environ, ERDMA_GUESTS=tmp)
        for args, status in (
                (["exec", "1", "true"], 125), (["qmp", "1", "x"], 1),
                (["status"], 1), (["stop"], 0), (["start", "-n", "0"], 2),
                (["start", "--kernel", "5.5"], 1), (["exec", "x", "y"], 2),
                (["start", "-n", "1", "--device", "no-such=1"], 1),
                (["start", "-n", "1", "--qemu=-no-such-option"], 1),
                (["start", "-n", "1", "--netem", "los"], 2),
                (["start", "-n", "1", "--netem", "2:loss=1"], 2),
                (["start", "-n", "1", "--netem", "loss=2"], 1),
                (["start", "-n", "1", "--netem", "los=1"], 1),
                (["frobnicate"], 2), ([], 2)):
            expect_status(ctx, env, ["guests", *args], status)
        for args, status in (
                ([], 2), (["1"], 1), (["x"], 2), (["1", "everything"], 2),
                (["--qmp", tmp + "/none"], 1), (["--bad"], 2)):
            expect_status(ctx, env, ["inspect", *args], status)
