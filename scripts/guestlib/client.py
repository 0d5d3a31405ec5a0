# SPDX-License-Identifier: GPL-2.0-or-later
"""What the sub-commands ask of the process that runs the guests."""

import json
import socket

from . import supervisor as sup
from .errors import GuestError


class Client:
    """A connection to the supervisor of this state directory."""

    def __init__(self, state):
        info = sup.read_info(state)
        if not info:
            raise GuestError("no guests are running (./erdma guests start)")
        self.sock = socket.socket(socket.AF_UNIX)
        try:
            self.sock.connect(info["socket"])
        except OSError as e:
            raise GuestError("the supervisor does not answer: %s" % e) from e

    def request(self, op, **more):
        self.sock.sendall(json.dumps({"op": op, **more}).encode() + b"\n")

    def answer(self, output=None):
        try:
            while True:
                kind, data = sup.recv_frame(self.sock)
                if kind == b"X":
                    break
                if output:
                    output(kind, data)
        except (OSError, ConnectionError) as e:
            raise GuestError("the guests are gone") from e
        reply = json.loads(data)
        if "error" in reply:
            raise GuestError(reply["error"])
        return reply

    def ask(self, op, **more):
        self.request(op, **more)
        return self.answer()
