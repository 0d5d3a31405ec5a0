# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU without a guest (qtest), and just enough of a driver to give the HCA
something to carry: an event queue, a completion queue, a region, and queue
pairs in several states, one with a message that nobody acknowledges."""

import json
import os
import signal
import socket
import struct
import subprocess
import time

CONFIG, BAR0, MSIX = 0x80002000, 0xe0000000, 0xe0800000
CMDQ_SQ, CMDQ_CQ, CMDQ_EQ, AEQ = 0x100000, 0x102000, 0x104000, 0x105000
CEQ, CQ, SQ, RQ, DATA = 0x106000, 0x108000, 0x110000, 0x140000, 0x170000
RDMA, COMMON = 0, 1
AEQ_DEPTH = 64
RTS, ERROR = 2, 5
INIT_DONE = 2


class DeviceError(Exception):
    pass


class Qemu:
    def __init__(self, binary, work, options="", incoming=None, machine="pc"):
        self.work, self.log = work, os.path.join(work, "qemu.log")
        bios = os.path.join(work, "bios")
        with open(bios, "wb") as f:
            f.write(bytes(1 << 16))
        paths = [os.path.join(work, x) for x in ("qtest", "qmp")]
        for path in paths:
            if os.path.exists(path):
                os.unlink(path)
        args = [binary, "-machine", machine, "-accel", "qtest", "-m", "4M",
                "-nodefaults", "-display", "none", "-bios", bios,
                "-netdev", "hubport,id=n0,hubid=0", "-device",
                "erdma,id=hca0,addr=4,netdev=n0,mac=52:54:00:12:34:56,seed=1"
                + options,
                "-qtest", "unix:%s,server=on,wait=off" % paths[0],
                "-qmp", "unix:%s,server=on,wait=off" % paths[1]]
        if incoming:
            args += ["-incoming", incoming]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(args, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)
        try:
            self.qtest = self._connect(paths[0])
            self._qmp = self._connect(paths[1])
            self._qmp.readline()
            self.qmp("qmp_capabilities")
        except (OSError, ValueError) as e:
            self.kill()
            raise DeviceError("QEMU: %s: %s" % (e, self.said())) from e

    def _connect(self, path):
        end = time.monotonic() + 60
        while True:
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(60)
            try:
                sock.connect(path)
                return sock.makefile("rwb")
            except OSError:
                sock.close()
                if self.process.poll() is not None or time.monotonic() > end:
                    raise
                time.sleep(0.02)

    def said(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def qmp(self, command, **arguments):
        self._qmp.write(json.dumps({"execute": command,
                                    "arguments": arguments}).encode() + b"\n")
        self._qmp.flush()
        while True:
            answer = json.loads(self._qmp.readline())
            if "error" in answer:
                raise DeviceError(answer["error"]["desc"])
            if "return" in answer:
                return answer["return"]

    def do(self, *words):
        self.qtest.write((" ".join(str(w) for w in words) + "\n").encode())
        self.qtest.flush()
        while True:
            answer = self.qtest.readline().decode().split()
            if not answer:
                raise DeviceError("QEMU is gone: " + self.said())
            if answer[0] == "OK":
                return answer[1] if len(answer) > 1 else None

    def read(self, addr, size=4):
        return int(self.do("read" + {4: "l", 8: "q"}[size], hex(addr)), 16)

    def write(self, addr, value, size=4):
        self.do("write" + {4: "l", 8: "q"}[size], hex(addr), hex(value))

    def poke(self, addr, data):
        self.do("write", hex(addr), hex(len(data)), "0x" + data.hex())

    def config(self, offset, value):
        self.do("outl", "0xcf8", hex(CONFIG | offset))
        self.do("outl", "0xcfc", hex(value))

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def end(self):
        """Ask it to end; its status, of which a crash is a negative one."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


class Driver:
    def __init__(self, qemu):
        self.q, self.pi, self.cookies = qemu, 0, {}
        for offset, value in ((0x10, BAR0), (0x14, 0), (4, 6)):
            qemu.config(offset, value)
        for reg, value in ((0x20, CMDQ_SQ), (0x28, CMDQ_CQ), (0x30, 64),
                           (0x34, 64), (0x38, CMDQ_EQ), (0x40, AEQ),
                           (0x48, AEQ_DEPTH)):
            qemu.write(BAR0 + reg, value)
        qemu.write(BAR0 + 0x10, 2)

    @classmethod
    def attach(cls, qemu, other):
        """To what has arrived there from `other`"""
        self = cls.__new__(cls)
        self.q, self.pi, self.cookies = qemu, other.pi, dict(other.cookies)
        return self

    def status(self):
        return self.q.read(BAR0 + 0x14)

    def post(self, sub, opcode, body):
        """Returns the command's index, for wait()."""
        body = body.ljust(120, b"\0")
        index, self.pi = self.pi, self.pi + 4
        header = self.pi & 0xffff | opcode << 16 | sub << 24 | 3 << 52
        self.q.poke(CMDQ_SQ + index % 64 * 32,
                    struct.pack("<Q", header) + body)
        self.q.write(BAR0 + 0x200, self.pi & 0xffff, 8)
        return index

    def completion(self, index):
        """None, or status and the answer's first word"""
        cqe = CMDQ_CQ + index // 4 % 64 * 32
        raw = bytes.fromhex(self.q.do("read", hex(cqe), "0x20")[2:])
        words = struct.unpack(">6I", raw[:24])
        if words[1] == index and words[0] >> 31 == 1 - index // 4 // 64:
            return words[0] & 0xff, words[2]
        return None

    def wait(self, index):
        for _ in range(1000):
            done = self.completion(index)
            if done:
                return done
            time.sleep(0.005)
        raise DeviceError("a command has no completion")

    def must(self, what, sub, opcode, body):
        status, answer = self.wait(self.post(sub, opcode, body))
        if status:
            raise DeviceError("%s: status %d" % (what, status))
        return answer

    def make_queues(self):
        self.must("CREATE_EQ", COMMON, 0, struct.pack(
            "<QBBBBII", CEQ, 1, 1, 6, 1, 0, 0))
        self.must("CREATE_CQ", RDMA, 4, struct.pack(
            "<IIIIQII", 1 | 6 << 24, CQ, 0, 1 | 1 << 16, 0, 0, 0))
        self.must("REG_MR", RDMA, 8, struct.pack(
            "<IIQIIQ", 1 | 0x5a << 20 | 1 << 31, 0x1f << 1 | 7 << 12, DATA,
            4096, 1 | 12 << 27, DATA).ljust(56, b"\0"))

    def make_qp(self, qpn):
        ring = qpn * 0x1000
        self.cookies[qpn] = self.must("CREATE_QP", RDMA, 1, struct.pack(
            "<IIIIQQIIQQ", qpn | 6 << 20, 7 | 6 << 20, 1, 1, SQ + ring,
            RQ + ring, 1 << 1, 1 << 1, 0, 0).ljust(120, b"\0"))

    def modify(self, qpn, state, peer=0):
        self.must("MODIFY_QP", RDMA, 3, struct.pack(
            "<II", qpn | 1 << 20 | state << 24, peer) + struct.pack(
            ">IIHH", 0x0a000002, 0x0a000001, 1000, 2000) + struct.pack(
            "<II", 5, 6))

    def send(self, qpn, text):
        """An inline write that somebody may acknowledge some day"""
        header = 2 | 0 << 16 | qpn << 32 | 1 << 52
        return header, text

    def ring_receive(self, qpn, pi):
        self.q.write(BAR0 + 0x61000, qpn << 32 | pi, 8)

    def aeqes(self, first=0):
        """(type, object) of the events in the AEQ from its `first` on"""
        raw = bytes.fromhex(self.q.do("read", hex(AEQ),
                                      hex(AEQ_DEPTH * 16))[2:])
        found = []
        for i in range(first, first + AEQ_DEPTH):
            head, ident = struct.unpack_from("<II", raw, i % AEQ_DEPTH * 16)
            if head >> 31 != 1 - i // AEQ_DEPTH % 2:
                break
            found.append((head >> 16 & 0xff, ident))
        return found

    def wait_aeqes(self, first, n):
        """Exactly n of them"""
        end = time.monotonic() + 10
        while len(self.aeqes(first)) < n and time.monotonic() < end:
            time.sleep(0.01)
        found = self.aeqes(first)
        if len(found) != n:
            raise DeviceError("%d events instead of %d" % (len(found), n))
        return found

    def ring_aeq(self, ci):
        self.q.write(BAR0 + 0x50, ci | 1 << 31, 8)

    def populate(self):
        self.make_queues()
        for qpn in (2, 3, 4):
            self.make_qp(qpn)
        self.modify(3, RTS, 0x12300009)
        self.modify(4, RTS, 0x12300008)
        self.ring_receive(4, 5)
        self.modify(4, ERROR)
        self.q.write(BAR0 + 0x79000, 1 << 32 | 1 << 31, 8)   # arm the CQ

    def objects(self):
        return self.q.qmp("qom-get", path="/machine/peripheral/hca0",
                          property="qps")

    def stats(self):
        return self.q.qmp("qom-get", path="/machine/peripheral/hca0",
                          property="stats")
