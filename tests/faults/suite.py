# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of faults share: the guests, and what a driver may do.

    @fault("init fails", on="init", action="fail", count=1)
    def init_fails(ctx):
        ...
        return "what the driver did"

The rule acts on the HCA of guest 1 (ctx.a) for as long as the test takes, and
must have fired.  The test passes by returning, fails by AssertionError or
GuestError.  Afterwards nothing may be left: guest 1 talks to guest 2 again,
with a driver loaded anew if the test asks for it, and its kernel is sound.
"""

import re
import time

from guestlib.errors import GuestError
from guestlib.programs import run_pair
from transfers import Failed

TESTS = []
DRIVER = "/sys/bus/pci/drivers/erdma/"
# Kernel messages that say that something broke
BROKEN = ("WARNING:", "BUG:", "Oops", "Call Trace", "KASAN", "refcount_t",
          "UBSAN", "general protection", "unable to handle", "soft lockup",
          "Kernel panic", "blocked for more than")


class Test:
    def __init__(self, name, function, short, rules, known, reload):
        self.name, self.function, self.short = name, function, short
        self.rules, self.known, self.reload = rules, known, reload


def fault(name, short=True, known=(), reload=False, also=None, **rule):
    """Registers a test.  known: messages of a kernel that is not well and
    that are facts about its driver; also: a second rule; no rule: the test
    makes its own."""
    def register(function):
        rules = [x for x in (rule, also) if x]
        TESTS.append(Test(name, function, short, rules, known, reload))
        return function
    return register


def text_of(rule):
    """A rule as it stands on a command line"""
    return ",".join("%s=%s" % (k.replace("_", "-"),
                               "on" if v is True else v)
                    for k, v in rule.items() if v is not False)


class Context:
    """Guest 1 and its HCA, guest 2 to talk to"""

    def __init__(self, guests):
        self.guests, self.a, self.b = guests, guests[1], guests[2]
        self.pci = self.a.run("ls %s | grep ^0000" % DRIVER).out.strip()
        self.seen, self.heard = 0, []
        self.messages()

    # ---- the kernel's log

    def messages(self):
        """Guest 1's kernel messages about the device since the test began,
        without times."""
        lines = self.a.run("dmesg").out.splitlines()
        new, self.seen = lines[self.seen:], len(lines)
        texts = [re.sub(r"^\[[ 0-9.]*\] ", "", x) for x in new]
        self.heard += [x for x in texts if "enabling device" not in x and (
            "erdma" in x.lower() or any(word in x for word in BROKEN))]
        return self.heard

    # ---- traffic

    def rping(self, count=5, size=1000, timeout=30, serve=False,
              run="", server_ends=True):
        """Guest 1 is the client, or with serve the server."""
        server, client = (self.a, self.b) if serve else (self.b, self.a)
        return run_pair(server, client, "rping -s -C %d -S %d" % (count, size),
                        "%srping -c -a %s -C %d -S %d -V" % (
                            run, server.ip, count, size),
                        timeout, server_ends)

    def works(self, **how):
        outcome = self.rping(**how)
        assert not outcome.problem, outcome.problem
        return outcome

    def refused(self, pattern, **how):
        """rping must fail and say so; returns the line.  Its status is 0
        when the other end has disconnected."""
        outcome = self.rping(server_ends=False, **how)
        assert outcome.client, outcome.problem
        found = re.search("^.*(?:%s).*$" % pattern, outcome.client.out, re.M)
        assert found and not outcome.client.timed_out, "rping: %s" % (
            outcome.problem or outcome.client.out[-300:])
        return found.group(0).strip()

    def hangs(self, seconds=3, **how):
        """rping must still be waiting then; it is killed."""
        outcome = self.rping(server_ends=False, timeout=seconds, **how)
        assert outcome.client and outcome.client.timed_out, (
            outcome.problem or "rping succeeded")

    # ---- the driver

    def unbind(self):
        self.a.run("echo %s > %sunbind" % (self.pci, DRIVER), 60)

    def bind(self, timeout=60):
        """(seconds, None or why not)"""
        began = time.monotonic()
        result = self.a.run("echo %s > %sbind" % (self.pci, DRIVER), timeout,
                            check=False, merge=True)
        assert not result.timed_out, "bind took more than %d s" % timeout
        why = None if result.ok else \
            result.out.strip().splitlines()[-1].rpartition(": ")[2]
        return time.monotonic() - began, why

    def rebind(self):
        self.unbind()
        return self.bind()

    def active(self):
        self.a.wait_until("grep -q ACTIVE "
                          "/sys/class/infiniband/*/ports/1/state", 20,
                          "the port did not become active")

    def bind_ok(self):
        seconds, why = self.bind()
        assert why is None, "bind: %s" % why
        self.active()
        return seconds

    def reload_driver(self):
        self.a.run("rmmod erdma && modprobe erdma", 90)
        self.active()

    def objects(self):
        """What is alive in the HCA, kernel's own excluded"""
        n = self.a.qmp.command("qom-get", path="/machine/peripheral/hca0",
                               property="objects")
        return {k: n[k] for k in ("cqs", "qps", "mrs")}

    def expect_objects(self, **want):
        """Kernel work may still be on its way."""
        end = time.monotonic() + 10
        while True:
            have = self.objects()
            if all(have[k] == v for k, v in want.items()):
                return
            assert time.monotonic() < end, "the HCA has %s" % have
            time.sleep(0.1)


def broken(messages):
    return [x for x in messages if any(word in x for word in BROKEN)]


def run_test(ctx, test):
    """Returns what the driver did; raises."""
    ctx.messages()
    ctx.heard = []
    before = ctx.objects()
    rules = [ctx.a.fault(**rule) for rule in test.rules]
    try:
        did = test.function(ctx) or ""
        fired = [r.fired() for r in rules]
    except AssertionError as e:
        raise AssertionError("%s (rules matched and fired: %s)" % (
            e, [(r.get("matched"), r.fired()) for r in rules])) from e
    finally:
        for rule in rules:
            rule.remove()
    assert all(fired), "rules fired %s times" % fired
    if test.reload:
        ctx.reload_driver()
    # As good as before
    if not ctx.a.run("ls /sys/class/infiniband").out.strip():
        ctx.bind_ok()
    ctx.active()
    ctx.works(count=1)
    ctx.expect_objects(**before)
    bad = [x for x in broken(ctx.messages())
           if not any(word in x for word in test.known)]
    assert not bad, "the kernel: %s" % " / ".join(bad[:5])
    return did


def try_test(ctx, test):
    """(None or why not, what the driver did, its messages)"""
    try:
        did = run_test(ctx, test)
        return None, did, list(ctx.heard)
    except (AssertionError, GuestError, Failed) as e:
        try:
            ctx.messages()
            ctx.reload_driver()
        except GuestError as again:
            return "%s; and then %s" % (e, again), "", list(ctx.heard)
        return str(e), "", list(ctx.heard)
