# SPDX-License-Identifier: GPL-2.0-or-later
"""KVM or TCG?

TCG is the default: it runs everywhere and gives the same guest everywhere.
/dev/kvm says little, e.g. a nested one may open and then fail in the middle
of a kernel; so "auto" boots a guest once and remembers whether that worked.
"""

import hashlib
import os
import platform
import tempfile

from . import paths
from .errors import GuestError


def choose(wanted, base):
    if wanted == "tcg":
        return "tcg"
    if wanted not in ("kvm", "auto"):
        raise GuestError("unknown accelerator '%s' (tcg, kvm or auto)"
                         % wanted)
    works = os.access("/dev/kvm", os.R_OK | os.W_OK) and _probe(base)
    if wanted == "kvm" and not works:
        raise GuestError("KVM does not run a guest on this machine")
    return "kvm" if works else "tcg"


def _probe(base):
    from .machine import Base, Machine

    key = hashlib.sha256(repr((base.version, os.path.basename(base.image),
                               platform.release())).encode()).hexdigest()
    answer = os.path.join(paths.cache_dir(), "kvm-probe-" + key[:12])
    if os.path.exists(answer):
        with open(answer) as f:
            return f.read().strip() == "yes"
    trial = Base.from_arguments(base.arguments())
    trial.accel = "kvm"
    works = False
    with tempfile.TemporaryDirectory(prefix="erdma-") as rundir:
        machine = Machine(trial, "probe", rundir, rundir)
        try:
            machine.start()
            machine.connect(boot_timeout=30)
            works = machine.agent.start("true", 10).wait().ok
        except GuestError:
            pass
        finally:
            machine.stop()
    os.makedirs(paths.cache_dir(), exist_ok=True)
    with open(answer + ".new", "w") as f:
        f.write("yes\n" if works else "no\n")
    os.rename(answer + ".new", answer)
    return works
