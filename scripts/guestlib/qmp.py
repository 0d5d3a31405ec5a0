# SPDX-License-Identifier: GPL-2.0-or-later
"""A small QMP client: commands and events over a unix socket."""

import json
import socket
import threading
import time

from .errors import GuestError


class QMPError(GuestError):
    """The command was refused; .reply is what QEMU said."""

    def __init__(self, command, error):
        super().__init__("%s: %s" % (command, error.get("desc", error)))
        self.reply = error


class QMP:
    def __init__(self, path, timeout=10):
        self.events = []
        self._lock = threading.Lock()
        self._sock = socket.socket(socket.AF_UNIX)
        self._sock.settimeout(timeout)
        try:
            self._sock.connect(path)
            self._file = self._sock.makefile("rwb")
            self._receive()
            self.command("qmp_capabilities")
        except OSError as e:
            raise GuestError("no answer from QEMU's monitor: %s" % e) from e

    def _receive(self):
        line = self._file.readline()
        if not line:
            raise GuestError("QEMU closed its monitor")
        return json.loads(line)

    def execute(self, request, timeout=30):
        """Send a request (a dict), return the whole reply."""
        with self._lock:
            try:
                self._sock.settimeout(timeout)
                self._file.write(json.dumps(request).encode() + b"\n")
                self._file.flush()
                while True:
                    reply = self._receive()
                    if "event" in reply:
                        self.events.append(reply)
                    else:
                        return reply
            except (OSError, ValueError) as e:
                raise GuestError("QEMU's monitor: %s" % e) from e

    def command(self, name, timeout=30, **arguments):
        request = {"execute": name}
        if arguments:
            request["arguments"] = {k.replace("_", "-") if k != "id" else k: v
                                    for k, v in arguments.items()}
        reply = self.execute(request, timeout)
        if "error" in reply:
            raise QMPError(name, reply["error"])
        return reply["return"]

    def device_add(self, driver, **properties):
        """device_add's arguments are property names: they stay as they are."""
        reply = self.execute({"execute": "device_add",
                              "arguments": {"driver": driver, **properties}})
        if "error" in reply:
            raise QMPError("device_add " + driver, reply["error"])

    def device_add_text(self, text):
        """-device's syntax: QEMU converts each value to its property's type,
        which device_add's JSON would have to be given in.  Returns the
        warnings."""
        said = self.command("human-monitor-command",
                            command_line="device_add " + text).strip()
        errors = [line for line in said.splitlines()
                  if not line.startswith("warning: ")]
        if errors:
            raise GuestError("device_add %s: %s" % (text, "; ".join(errors)))
        return said

    def wait_event(self, name, timeout=10, match=lambda data: True):
        """Wait for an event that came since the last call for it."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            for i, event in enumerate(self.events):
                if event["event"] == name and match(event.get("data", {})):
                    return self.events.pop(i)
            self.command("query-name")      # events come along with replies
            time.sleep(0.02)
        raise GuestError("no %s event within %g s" % (name, timeout))

    def close(self):
        try:
            self._sock.close()
        except OSError:
            pass
