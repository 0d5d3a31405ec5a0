# SPDX-License-Identifier: GPL-2.0-or-later
"""kverbs-check: a kernel module that tests the kernel's own QPs while it is
loaded (tests/guest/modules/kverbs-check)."""

PREFIX = "kverbs-check: "


def kernel_verbs(ctx, cases=(), timeout=120):
    """One point per case; all cases unless some are named."""
    guest = ctx[1]
    command = "modprobe kverbs-check addr=%s" % guest.ip
    if cases:
        command += " cases=" + ",".join(cases)
    guest.run("rmmod kverbs-check 2> /dev/null", check=False)
    seen = len(lines(guest))
    guest.run(command, timeout)
    new = lines(guest)[seen:]
    assert new and new[-1] == "done", "no end: %s" % new
    for line in new[:-1]:
        if line.startswith("skip "):
            ctx.skip(line[5:], "the driver has none")
            continue
        name, _, why = line.removeprefix("not ").removeprefix("ok ").partition(
            ": ")
        ctx.point(line.startswith("ok "), name, why)
    assert len(new) > max(1, len(cases)), "some did not run: %s" % new


def lines(guest):
    """What the module has said since the guest booted"""
    text = guest.run("dmesg").out
    return [line.partition(PREFIX)[2] for line in text.splitlines()
            if PREFIX in line]
