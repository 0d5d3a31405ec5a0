# SPDX-License-Identifier: GPL-2.0-or-later
"""Where things are, and the steps of ./erdma that make them."""

import functools
import os
import subprocess
import sys

from .errors import GuestError

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build")
ERDMA = os.path.join(ROOT, "erdma")
BUILT_QEMU = os.path.join(BUILD, "qemu", "qemu-system-x86_64")


def cache_dir():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.abspath(os.environ.get("ERDMA_CACHE")
                           or os.path.join(base, "qemu-erdma"))


def step(*args):
    """Run a sub-command; what it says goes to our stderr."""
    status = subprocess.call([ERDMA, *args], stdout=sys.stderr,
                             stdin=subprocess.DEVNULL)
    if status:
        raise GuestError("./erdma %s failed" % " ".join(args))


@functools.lru_cache(None)
def qemu_binary():
    """ERDMA_QEMU, or the QEMU of this tree, built if it is not there."""
    other = os.environ.get("ERDMA_QEMU")
    if other:
        return other
    if not os.path.exists(BUILT_QEMU):
        step("build")
    return BUILT_QEMU


@functools.lru_cache(None)
def image(series, addon=None, suite=""):
    """The directory of the guest image for this kernel, or of an add-on to
    it, made if need be; suite: Debian's release for its user space."""
    args = ["image", "--kernel", series]
    if suite:
        args += ["--suite", suite]
    if addon:
        args += ["--addon", addon]
    step(*args)
    return subprocess.check_output([ERDMA, *args, "--path"],
                                   text=True).strip()


def cache_entry(name, label, command):
    """Make cache entry `name` with `command` unless it is whole."""
    script = os.path.join(ROOT, "scripts", "cache.sh")
    status = subprocess.call(["sh", script, "make", name, label, *command],
                             stdout=sys.stderr, stdin=subprocess.DEVNULL)
    if status:
        raise GuestError("could not make the cached %s" % label)
    return os.path.join(cache_dir(), name)


def cache_drop(name):
    """Make sure that the entry is not taken for whole any more."""
    try:
        os.unlink(os.path.join(cache_dir(), name, ".complete"))
    except FileNotFoundError:
        pass
