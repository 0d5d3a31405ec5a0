#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: start, use and stop linked guests
"""Linked guests that a script or a person can use.

usage: ./erdma guests start [-n N] [--kernel SERIES] [--device OPTS]
                            [--netem OPTS]... [--qemu ARG]... [--mtu M]
                            [--no-device] [...]
       ./erdma guests exec [--timeout S] [-i] I 'COMMAND'
       ./erdma guests qmp I JSON
       ./erdma guests console I
       ./erdma guests status [--json]
       ./erdma guests stop

Guest I (1, 2, ...) is called guestI and has 10.9.0.I on eth0, the link
between the guests, and 10.0.2.15 on user0, QEMU's user network.

The guests end when the process that called `guests start` ends: the script
or the shell.  In a subshell say --watch $$; --detach keeps them until
`guests stop`.  Several sets can run: give each its --state DIR or set
ERDMA_GUESTS (default: build/guests).
"""

import argparse
import json
import os
import select
import socket
import sys
import termios
import threading
import time
import tty

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from arguments import Parser                                    # noqa: E402
from guestlib import paths                                      # noqa: E402
from guestlib.agent import STATUS_FAILED                        # noqa: E402
from guestlib.client import Client                              # noqa: E402
from guestlib.errors import GuestError                          # noqa: E402
from guestlib import netem                                      # noqa: E402
from guestlib.guests import GuestSet, Options                   # noqa: E402
from guestlib.machine import MACHINES                           # noqa: E402
from guestlib import supervisor as sup                          # noqa: E402


def die(text, status=1):
    print("erdma: guests: " + text, file=sys.stderr)
    sys.exit(status)


def caller():
    """The process whose end ends the guests: who called ./erdma."""
    pid = os.getppid()
    return pid if pid > 1 else None


def cmd_start(args):
    if sup.read_info(args.state):
        die("guests are running already (./erdma guests stop ends them)")
    watch = None
    if not args.detach:
        watch = args.watch or caller()
        if watch is None:
            die("the caller cannot be watched: use --watch PID or --detach")
    try:
        netem.plan(args.netem, args.n)
    except GuestError as e:
        die(str(e), 2)
    options = Options(
        n=args.n, kernel=args.kernel, suite=args.suite, rdma=args.rdma,
        device=args.device, nic=args.nic, mtu=args.mtu, smp=args.smp,
        mem=args.mem, accel=args.accel, qemu=args.qemu, cmdline=args.append,
        restrict=args.restrict, cold=args.cold, dump=args.dump,
        netem=args.netem, addons=args.addon, machine=args.machine)
    # What takes long when it is not cached: here, where it is seen.
    GuestSet(options).prepare()
    began = time.monotonic()
    sup.launch(args.state, options, watch)
    status = Client(args.state).ask("status")
    for g in status["guests"]:
        print("%s: %s, console log %s" % (g["name"], g["address"],
                                          g["console_log"]))
    print("%d guest%s ready after %.1f s%s" % (
        args.n, "" if args.n == 1 else "s", time.monotonic() - began,
        "" if watch else " (until ./erdma guests stop)"))


def cmd_exec(args):
    client = Client(args.state)
    client.request("exec", guest=args.guest, command=" ".join(args.command),
                   timeout=args.timeout, stdin=args.stdin)
    if args.stdin:
        threading.Thread(target=send_stdin, args=(client.sock,),
                         daemon=True).start()

    def output(kind, data):
        stream = sys.stderr if kind == b"E" else sys.stdout
        stream.buffer.write(data)
        stream.buffer.flush()

    reply = client.answer(output)
    if reply["problem"]:
        print("erdma: guest%d: %s" % (args.guest, reply["problem"]),
              file=sys.stderr)
    sys.exit(reply["status"])


def send_stdin(sock):
    try:
        while True:
            data = os.read(0, 65536)
            sup.send_frame(sock, b"I", data)
            if not data:
                return
    except OSError:
        pass


def cmd_qmp(args):
    text = args.request
    try:
        request = json.loads(text) if text.lstrip().startswith("{") \
            else {"execute": text}
    except ValueError as e:
        die("not JSON: %s" % e, 2)
    reply = Client(args.state).ask("qmp", guest=args.guest, request=request)
    reply = reply["reply"]
    print(json.dumps(reply.get("return", reply.get("error")), indent=2))
    sys.exit(1 if "error" in reply else 0)


def cmd_console(args):
    status = Client(args.state).ask("status")
    guests = {g["guest"]: g for g in status["guests"]}
    if args.guest not in guests:
        die("no guest %d" % args.guest)
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.connect(guests[args.guest]["console"])
    except OSError as e:
        die("console: %s" % e)
    is_tty = os.isatty(0)
    if is_tty:
        print("console of guest%d: Ctrl-] leaves" % args.guest)
        old = termios.tcgetattr(0)
        tty.setraw(0)
        sock.sendall(b"\r")
    try:
        fds = [sock, 0]
        while True:
            ready = select.select(fds, [], [], None if 0 in fds else 1.0)[0]
            if not ready:
                return
            if sock in ready:
                data = sock.recv(65536)
                if not data:
                    return
                os.write(1, data)
            if 0 in ready:
                data = os.read(0, 4096)
                if is_tty and b"\x1d" in data:
                    return
                if not data:
                    fds.remove(0)   # stay a second for what it prints
                sock.sendall(data)
    except OSError as e:
        die("console: %s" % e)
    finally:
        if is_tty:
            termios.tcsetattr(0, termios.TCSADRAIN, old)
            print()


def cmd_status(args):
    status = Client(args.state).ask("status")
    if args.json:
        print(json.dumps(status, indent=2))
        return
    for g in status["guests"]:
        print("%-8s %-10s %-8s pid %-7d %s after %.1f s (%s)" % (
            g["name"], g["address"], "running" if g["alive"] else "ended",
            g["pid"], "restored" if g["restored"] else "booted",
            g["ready_after"], g["accel"]))
    print("logs: %s" % status["logs"])
    print("ends with: %s" % ("process %d" % status["watch"]
                             if status["watch"] else "./erdma guests stop"))


def cmd_stop(args):
    info = sup.read_info(args.state)
    if not info:
        print("no guests are running")
        return
    Client(args.state).ask("stop")
    end = time.monotonic() + 20
    while sup.start_time(info["pid"]) == info["start"]:
        if time.monotonic() > end:
            die("the supervisor (process %d) does not end" % info["pid"])
        time.sleep(0.02)


def positive(text):
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def parse():
    parser = Parser(
        prog="./erdma guests", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter, add_help=True)
    parser.add_argument("--state", metavar="DIR")
    subs = parser.add_subparsers(dest="action", metavar="ACTION")
    subs.required = True

    def sub(name, text, function):
        p = subs.add_parser(name, help=text, description=text)
        p.add_argument("--state", metavar="DIR", default=argparse.SUPPRESS,
                       help="where this set keeps its files")
        p.set_defaults(function=function)
        return p

    p = sub("start", "start linked guests", cmd_start)
    p.add_argument("-n", type=positive, default=2, metavar="N",
                   help="number of guests (2)")
    p.add_argument("--kernel", default="6.12", metavar="SERIES",
                   help="kernel series: 6.12, 6.1 or 7")
    p.add_argument("--suite", default="", metavar="SUITE",
                   help="Debian's release of the user space: bookworm, "
                        "trixie or forky (that of the kernel)")
    p.add_argument("--device", default="", metavar="OPTS",
                   help="more properties of -device erdma, a=b,c=d")
    p.add_argument("--no-device", dest="rdma", action="store_const",
                   const="none", help="no HCA")
    p.add_argument("--rdma", choices=["erdma", "siw", "rxe", "none"],
                   help="the HCA, a software RDMA device, or nothing")
    p.add_argument("--nic", default="virtio-net-pci", metavar="MODEL",
                   help="model of the link's NIC (virtio-net-pci)")
    p.add_argument("--qemu", action="append", default=[], metavar="ARG",
                   help="one more argument for QEMU; write --qemu=ARG")
    p.add_argument("--netem", action="append", default=[], metavar="OPTS",
                   help="emulated link: [I:][tx:|rx:]loss=0.01,delay-us=500; "
                   "to every guest, or to (tx) or from (rx) guest I")
    p.add_argument("--mtu", type=positive, default=1500, metavar="M")
    p.add_argument("--smp", type=positive, default=1, metavar="N")
    p.add_argument("--mem", default="1G", metavar="SIZE")
    p.add_argument("--machine", default="q35", choices=list(MACHINES))
    p.add_argument("--accel", default="tcg", choices=["tcg", "kvm", "auto"],
                   help="auto: KVM if a guest really runs with it")
    p.add_argument("--addon", action="append", default=[], metavar="NAME",
                   help="an add-on to the image: storage (fio, nvme, NFS, "
                        "iSCSI)")
    p.add_argument("--append", default="", metavar="ARGS",
                   help="more kernel parameters")
    p.add_argument("--restrict", action="store_true",
                   help="the user network ends at its gateway")
    p.add_argument("--cold", action="store_true",
                   help="boot instead of restoring a saved state")
    p.add_argument("--dump", action="store_true",
                   help="write the link's frames to guestI.pcap in the logs")
    p.add_argument("--watch", type=positive, metavar="PID",
                   help="end the guests when this process ends")
    p.add_argument("--detach", action="store_true",
                   help="keep them until `guests stop`")
    p.set_defaults(rdma="erdma")

    p = sub("exec", "run a shell command in a guest; its output and exit "
            "status pass through (124: time limit, 125: it did not run)",
            cmd_exec)
    p.add_argument("--timeout", type=float, default=300, metavar="S",
                   help="time limit in seconds (300), 0: none")
    p.add_argument("-i", "--stdin", action="store_true",
                   help="pass our stdin to it")
    p.add_argument("guest", type=positive, metavar="I")
    p.add_argument("command", nargs="+", metavar="COMMAND")

    p = sub("qmp", "send a QMP command to a guest's QEMU", cmd_qmp)
    p.add_argument("guest", type=positive, metavar="I")
    p.add_argument("request", metavar="JSON",
                   help="a QMP request, or only the name of a command")

    p = sub("console", "a shell on a guest's serial console", cmd_console)
    p.add_argument("guest", type=positive, metavar="I")

    p = sub("status", "show the guests", cmd_status)
    p.add_argument("--json", action="store_true")

    sub("stop", "end the guests", cmd_stop)
    args = parser.parse_args()
    args.state = os.path.abspath(
        getattr(args, "state", None) or os.environ.get("ERDMA_GUESTS")
        or os.path.join(paths.BUILD, "guests"))
    return args


def main():
    args = parse()
    try:
        args.function(args)
    except GuestError as e:
        die(str(e), STATUS_FAILED if args.action == "exec" else 1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(141)


main()
