# SPDX-License-Identifier: GPL-2.0-or-later
"""Streams of a device without a guest: what arrives, what is refused."""

import contextlib
import gzip
import os
import pathlib
import random
import tempfile
import time

from device import (AEQ_DEPTH, BAR0, INIT_DONE, DeviceError, Driver, Qemu)

HERE = pathlib.Path(__file__).resolve().parent
STORED = HERE / "stream-1.bin"    # compressed
# Machine and options that the stored stream was made with: for ever.
STORED_MACHINE = "pc-i440fx-10.0"
MUTATIONS = 40
N_AEQES = AEQ_DEPTH + 36

# Property, another value, and what the error names
OTHER = (("max-qp", 1023), ("vectors", 8), ("max-cqe", 1024),
         ("max-recv-wr", 1024), ("max-mr-size", "1G"), ("ext-db-pages", 99),
         ("version", 2), ("firmware-version", "0.2.1"), ("atomics", "off"),
         ("mtt-va", "off"), ("ext-db", "off"), ("cc", "newreno"),
         ("mtu", 1400), ("udp-port", 99), ("rx-buffer", "1M"),
         ("go-back-n", "on"))


def save(qemu, path):
    qemu.qmp("migrate", uri="file:" + path)
    end = time.monotonic() + 60
    while True:
        info = qemu.qmp("query-migrate")
        if info.get("status") == "completed":
            return
        if info.get("status") == "failed" or time.monotonic() > end:
            raise DeviceError("migrate: %s" % info)
        time.sleep(0.02)


def make(binary, work, path, machine="pc"):
    """A stream of a busy device; returns the driver as it was then."""
    qemu = Qemu(binary, work, machine=machine)
    try:
        driver = Driver(qemu)
        driver.populate()
        driver.seen = states(driver)
        save(qemu, path)
    finally:
        qemu.kill()
    return driver


def states(driver):
    return [(qp["qpn"], qp["state"], qp["rq-pi"], qp["rq-ci"])
            for qp in driver.objects()]


def load(binary, work, path, options="", machine="pc"):
    """(QEMU, NULL), or (NULL, what it said) when it refuses"""
    qemu = Qemu(binary, work, options, incoming="defer", machine=machine)
    try:
        # An announcement would count as a packet.
        qemu.qmp("migrate-set-parameters", **{"announce-rounds": 0})
        qemu.qmp("migrate-incoming", uri="file:" + path)
        end = time.monotonic() + 60
        while qemu.qmp("query-status")["status"] == "inmigrate":
            if time.monotonic() > end:
                raise DeviceError("it takes too long")
            time.sleep(0.01)
        return qemu, None
    except (DeviceError, ValueError, OSError):
        status = qemu.process.wait(60)
        if status < 0:
            raise DeviceError("QEMU ended by signal %d: %s" % (
                -status, qemu.said())) from None
        return None, qemu.said()


def check_arrived(qemu, old):
    driver = Driver.attach(qemu, old)
    if driver.status() & INIT_DONE != INIT_DONE:
        raise DeviceError("the device is not ready there")
    if states(driver) != old.seen:
        raise DeviceError("%s there, %s here" % (states(driver), old.seen))
    # Commands, interrupts and objects work on.
    driver.make_qp(5)
    driver.must("DESTROY_QP", 0, 2, b"\3\0\0\0")
    driver.must("DEREG_MR", 0, 9, b"\1\0\0\0")
    qemu.write(BAR0 + 0x10, 1)


def expect(what, have, want):
    if have != want:
        raise DeviceError("%s: %s, should be %s" % (what, have, want))


def section(path):
    """The device's part of a stream: a name, fields, and a footer with the
    number from in front of the name"""
    data = pathlib.Path(path).read_bytes()
    name = data.index(b"/erdma")
    start = next(i for i in range(name, 0, -1)
                 if data[i] == name + len("/erdma") - i - 1)
    return data[start:data.index(b"\x7e" + data[start - 4:start], start)]


class Streams:
    def __init__(self, tap, binary):
        self.tap, self.binary = tap, binary

    def attempt(self, name, function, *args):
        print("# progress: " + name, flush=True)
        try:
            return self.tap.point(True, name, function(*args))
        except (DeviceError, OSError, ValueError) as e:
            return self.tap.point(False, name, str(e))

    def there_and_back(self, work, path):
        old = make(self.binary, work, path)
        with self.loaded(work, path) as qemu:
            check_arrived(qemu, old)

    @contextlib.contextmanager
    def loaded(self, work, path, **how):
        """A QEMU that has taken the stream"""
        qemu, said = load(self.binary, work, path, **how)
        if not qemu:
            raise DeviceError(said)
        try:
            yield qemu
        finally:
            qemu.kill()

    def other(self, work, path, name, value):
        qemu, said = load(self.binary, work, path, ",%s=%s" % (name, value))
        if qemu:
            qemu.kill()
            raise DeviceError("was accepted")
        if "property '%s'" % name not in said:
            raise DeviceError("it does not name the property: " + said)

    def mutated(self, work, path, where):
        """Bytes of the device's section changed, one after the other"""
        data = pathlib.Path(path).read_bytes()
        start = data.index(b"erdma", data.index(b"/erdma") + 1)
        start = data.index(b"/erdma")
        end = min(len(data), start + 6000)
        rand = random.Random(1)
        bad = os.path.join(work, "bad")
        for i in range(MUTATIONS):
            changed = bytearray(data)
            if where == "cut":
                changed = changed[:rand.randrange(start, end)]
            else:
                for _ in range(rand.randrange(1, 4)):
                    changed[rand.randrange(start + 20, end)] ^= \
                        1 << rand.randrange(8)
            pathlib.Path(bad).write_bytes(changed)
            qemu, _ = load(self.binary, work, bad)
            if qemu:
                qemu.qmp("query-status")
                qemu.kill()

    def stored(self, work):
        path = os.path.join(work, "stored")
        pathlib.Path(path).write_bytes(gzip.decompress(STORED.read_bytes()))
        now = os.path.join(work, "now")
        old = make(self.binary, work, now, STORED_MACHINE)
        with self.loaded(work, path, machine=STORED_MACHINE) as qemu:
            check_arrived(qemu, old)

    def full_aeq(self, work, path):
        """Events that found no room come to the guest where it is now."""
        qemu = Qemu(self.binary, work)
        try:
            driver = Driver(qemu)
            driver.populate()
            qemu.qmp("object-add", **{
                "qom-type": "erdma-fault", "id": "f0", "device": "hca0",
                "on": "timer", "action": "aeqe", "event": "other", "qpn": 3,
                "period-us": 1000, "count": N_AEQES})
            for _ in range(2 * N_AEQES):
                qemu.do("clock_step", 1000000)
            expect("fired", qemu.qmp("qom-get", path="/objects/f0",
                                     property="fired"), N_AEQES)
            old = driver.aeqes()
            expect("events in the queue", len(old), AEQ_DEPTH)
            save(qemu, path)
        finally:
            qemu.kill()
        with self.loaded(work, path) as qemu:
            driver = Driver.attach(qemu, driver)
            expect("the queue", driver.aeqes(), old)
            driver.ring_aeq(AEQ_DEPTH)
            new = driver.wait_aeqes(AEQ_DEPTH, N_AEQES - AEQ_DEPTH)
            expect("events later", new, old[:len(new)])

    def stopped(self, work, path):
        """Doorbells that were rung last, with nobody at home"""
        qemu = Qemu(self.binary, work)
        try:
            driver = Driver(qemu)
            driver.populate()
            qemu.qmp("stop")
            index = driver.post(0, 9, b"\1\0\0\0")      # DEREG_MR
            driver.ring_receive(3, 5)
            expect("completion", driver.completion(index), None)
            save(qemu, path)
        finally:
            qemu.kill()
        with self.loaded(work, path) as qemu:
            driver = Driver.attach(qemu, driver)
            expect("completion there", driver.completion(index), None)
            qemu.qmp("cont")
            expect("status", driver.wait(index)[0], 0)
            expect("receives", [qp["rq-pi"] for qp in driver.objects()
                                if qp["qpn"] == 3], [5])

    def all_of_it(self, work, path):
        """A device that did nothing since saves what it has loaded."""
        source = Qemu(self.binary, work)
        try:
            driver = Driver(source)
            driver.populate()
            source.qmp("stop")
            stats = driver.stats()
            save(source, path)
        finally:
            source.kill()
        with self.loaded(work, path) as qemu:
            expect("counters", Driver.attach(qemu, driver).stats(), stats)
            again = os.path.join(work, "again")
            save(qemu, again)
        old, new = section(path), section(again)
        expect("lengths", len(new), len(old))
        expect("bytes that differ", [i for i, x in enumerate(old)
                                     if new[i] != x], [])

    def recorded(self, work):
        qemu = Qemu(self.binary, work, ",record=" + os.path.join(work, "r"))
        try:
            save(qemu, os.path.join(work, "no"))
        except DeviceError as e:
            if "'record'" in str(e):
                return
            raise
        finally:
            qemu.kill()
        raise DeviceError("was accepted")

    def run(self, is_long):
        with tempfile.TemporaryDirectory(prefix="erdma-mig-") as work:
            path = os.path.join(work, "stream")
            if not self.attempt("a stream through a file",
                                self.there_and_back, work, path):
                return
            for name, value in OTHER if is_long else OTHER[:3]:
                self.attempt("%s=%s is refused" % (name, value), self.other,
                             work, path, name, value)
            self.attempt("events that wait for room", self.full_aeq, work,
                         path)
            self.attempt("doorbells of a device that is stopped",
                         self.stopped, work, path)
            self.attempt("all of it is sent", self.all_of_it, work, path)
            self.attempt("record= and migration", self.recorded, work)
            self.attempt("the stored stream of version 1", self.stored, work)
            if is_long:
                self.attempt("streams that end too soon", self.mutated, work,
                             path, "cut")
                self.attempt("streams with wrong bits", self.mutated, work,
                             path, "flip")
