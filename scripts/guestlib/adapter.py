# SPDX-License-Identifier: GPL-2.0-or-later
"""What QEMU tells of an erdma device, see docs/introspection.md."""

from .errors import GuestError

# What there is, and the property that has it
PARTS = {"device": "device-state", "eqs": "eqs", "cqs": "cqs", "qps": "qps",
         "mrs": "mrs", "stats": "stats"}
NUMBER = {"eqs": "eqn", "cqs": "cqn", "qps": "qpn", "mrs": "index"}
# The most that one answer holds
BOUND = 1024


class Adapter:
    """One device; ask(request) sends a QMP request and returns the reply."""

    def __init__(self, ask, ident):
        self.ask = ask
        self.path = ident if ident.startswith("/") \
            else "/machine/peripheral/" + ident

    def _qmp(self, command, **arguments):
        reply = self.ask({"execute": command,
                          "arguments": {"path": self.path, **arguments}})
        if "error" in reply:
            raise GuestError("%s: %s" % (self.path, reply["error"]["desc"]))
        return reply["return"]

    def get(self, part):
        if part not in NUMBER:
            return self._qmp("qom-get", property=PARTS[part])
        return self._whole_list(part)

    def _whole_list(self, part):
        """Page after page; what others set inspect-from to comes back."""
        before = self._qmp("qom-get", property="inspect-from")
        objects, start = [], 0
        try:
            while True:
                self._qmp("qom-set", property="inspect-from", value=start)
                page = self._qmp("qom-get", property=PARTS[part])
                objects += page
                if len(page) < BOUND:
                    return objects
                start = page[-1][NUMBER[part]] + 1
        finally:
            self._qmp("qom-set", property="inspect-from", value=before)
