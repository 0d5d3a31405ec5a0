# SPDX-License-Identifier: GPL-2.0-or-later
"""Injected faults: QEMU's erdma-fault objects for a guest's HCA.

docs/faults.md has the options and counters; in Python '_' may stand for '-'
in their names.

    with guest.fault(on="command", opcode="reg-mr", count=1) as fault:
        ...
        fault.get("fired")
"""

from .netem import dashed


class Fault:
    """One rule; the object is made at once."""

    _number = 0

    def __init__(self, guest, device, options):
        Fault._number += 1
        self.guest, self.id = guest, "fault%d" % Fault._number
        guest.qmp.command("object-add", qom_type="erdma-fault", id=self.id,
                          device=device, **dashed(options))

    def get(self, name):
        """One option or counter."""
        return self.guest.qmp.command("qom-get", path="/objects/" + self.id,
                                      property=name)

    def set(self, **options):
        """Change options of the rule."""
        for name, value in dashed(options).items():
            self.guest.qmp.command("qom-set", path="/objects/" + self.id,
                                   property=name, value=value)

    def fired(self):
        return self.get("fired")

    def remove(self):
        self.guest.qmp.command("object-del", id=self.id)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()
