#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: filter-netem in a QEMU whose clock the test moves
"""Two senders and a receiver on a hub, and filter-netem in front of the
receiver; no machine, no guest, no device.  The ends are datagram sockets of
the test, the virtual clock stands still until the test moves it, so that
every time is exact.

What the link does by itself is tests/unit/test-netem.c's; here is what QEMU
adds: any netdev, properties at run time, counters, several senders.
"""

import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / 'scripts'))

from guestlib.errors import GuestError  # noqa: E402
from guestlib.qmp import QMP, QMPError  # noqa: E402
from tap import Tap  # noqa: E402

LINK = '/objects/link'
MS = 1_000_000
LEN = 1000                      # bytes of a frame
RATE = 8_000_000                # bit/s: a frame takes 1 ms
COUNTERS = ['arrivals', 'arrived-bytes', 'drop-loss', 'drop-burst',
            'drop-listed', 'drop-corrupt', 'drop-queue', 'drop-not-ect',
            'marks', 'stamps', 'reorders', 'duplicates', 'departures',
            'departed-bytes', 'delivered', 'busy-ns', 'queue-max',
            'queue-bytes', 'queue-integral']


class Clock:
    """The qtest protocol, as far as it moves the clock"""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(30)
        self._socket.connect(path)
        self._file = self._socket.makefile('rw')

    def _ask(self, command):
        self._file.write(command + '\n')
        self._file.flush()
        answer = self._file.readline().split()
        if answer[:1] != ['OK']:
            raise GuestError(f'{command}: {answer}')
        return int(answer[1])

    def next(self):
        """To the next timer; returns the time, ns"""
        return self._ask('clock_step')

    def step(self, ns):
        return self._ask(f'clock_step {ns}')

    def close(self):
        self._file.close()
        self._socket.close()


class Net:
    """QEMU with the three ends; `link` are the options of filter-netem."""

    def __init__(self, qemu, **link):
        self._dir = tempfile.TemporaryDirectory(prefix='erdma-netem-')
        self._ends = {}
        args = []
        for name in 'abr':
            near, far = self._path(name), self._path(name + '-qemu')
            self._ends[name] = socket.socket(socket.AF_UNIX,
                                             socket.SOCK_DGRAM)
            self._ends[name].bind(near)
            args += ['-netdev', f'dgram,id={name},local.type=unix,local.path='
                     f'{far},remote.type=unix,remote.path={near}',
                     '-netdev', f'hubport,id=port-{name},hubid=0,'
                     f'netdev={name}']
        self._ends['r'].setblocking(False)
        self._qemu = subprocess.Popen(
            [qemu, '-M', 'none', '-accel', 'qtest', '-display', 'none',
             '-nodefaults', *args,
             '-qmp', f'unix:{self._path("qmp")},server=on,wait=off',
             '-qtest', f'unix:{self._path("qtest")},server=on,wait=off',
             '-qtest-log', os.devnull],
            stdin=subprocess.DEVNULL)
        try:
            self._wait(lambda: os.path.exists(self._path('qtest')))
            self.qmp = QMP(self._path('qmp'))
            self._clock = Clock(self._path('qtest'))
            self.add(**link)
        except BaseException:
            self.close()
            raise

    def _path(self, name):
        return os.path.join(self._dir.name, name)

    def _wait(self, test):
        end = time.monotonic() + 30
        while not test():
            if self._qemu.poll() is not None or time.monotonic() > end:
                raise GuestError('QEMU does not do what it should')
            time.sleep(0.002)

    def add(self, **options):
        """The receiver's end of the hub sends to it: queue=tx."""
        self.n_sent = 0
        self.qmp.execute({'execute': 'object-del',
                          'arguments': {'id': 'link'}})
        # Names with '-' are option names, so not through command().
        reply = self.qmp.execute({'execute': 'object-add', 'arguments': {
            'qom-type': 'filter-netem', 'id': 'link', 'netdev': 'port-r',
            'queue': 'tx',
            **{k.replace('_', '-'): v for k, v in options.items()}}})
        if 'error' in reply:
            raise QMPError('object-add', reply['error'])

    def get(self, name):
        return self.qmp.command('qom-get', path=LINK, property=name)

    def set(self, name, value):
        self.qmp.command('qom-set', path=LINK, property=name, value=value)

    def send(self, end, *numbers):
        """A frame per number, in this order; they are at the link then."""
        for number in numbers:
            self._ends[end].sendto(number.to_bytes(4, 'big')
                                   + b'\x88\xb5' * ((LEN - 4) // 2),
                                   self._path(end + '-qemu'))
            self.n_sent += 1
            # In time: a full socket would make QEMU drop it.
            self._wait(lambda: self.get('arrivals') == self.n_sent)

    def take(self):
        """The numbers that have come to the receiver"""
        numbers = []
        while True:
            try:
                frame = self._ends['r'].recv(2 * LEN)
            except BlockingIOError:
                return numbers
            assert len(frame) == LEN
            numbers.append(int.from_bytes(frame[:4], 'big'))

    def step(self, ns):
        """In small steps: a socket holds ten datagrams by default."""
        numbers = []
        while ns > 0:
            self._clock.step(min(ns, MS))
            numbers += self.take()
            ns -= MS
        return numbers

    def trace(self):
        """(time, number) of all that comes until the link is empty"""
        found = []
        while True:
            s = self.get('stats')
            dropped = sum(s[name] for name in s if name.startswith('drop-'))
            if s['delivered'] == s['arrivals'] + s['duplicates'] - dropped:
                return found
            now = self._clock.next()
            found += [(now, number) for number in self.take()]

    def close(self):
        self._qemu.kill()
        self._qemu.wait()
        for end in self._ends.values():
            end.close()
        for name in ('qmp', '_clock'):
            if hasattr(self, name):
                getattr(self, name).close()
        self._dir.cleanup()


def command_line(text, commands='quit\n'):
    return subprocess.run(
        [QEMU, '-M', 'none', '-accel', 'qtest', '-display', 'none',
         '-nodefaults', '-monitor', 'stdio',
         '-netdev', 'hubport,id=n0,hubid=0', '-object',
         f'filter-netem,id=wire,netdev=n0,queue=tx,{text}'],
        input=commands, capture_output=True, text=True, check=False,
        timeout=60)


def check_command_line(tap, _net):
    done = command_line(
        'rate=1000000000,delay-us=500,limit=125000,loss=0.001,seed=1',
        ''.join(f'qom-get /objects/wire {name}\n'
                for name in ('loss', 'delay-us')) + 'quit\n')
    tap.point(done.returncode == 0 and '\n0.001' in done.stdout and
              '\n500' in done.stdout and not done.stderr,
              'the example of docs/congestion-control/netem.md', done)
    for text, words in (('loss=2', 'loss: must be'),
                        ('loss=much', 'loss'),
                        ('burst-enter=0.1', 'burst-leave: must be'),
                        ('jitter=poisson', "jitter 'poisson': want none")):
        done = command_line(text)
        tap.point(done.returncode == 1 and words in done.stderr,
                  f'refused: -object filter-netem,...,{text}', done)


def check_senders(tap, net):
    """What two senders send goes through one queue and one serialiser."""
    net.add(rate=RATE, delay_us=500, limit=7 * LEN)
    net.send('a', 1, 2, 3)
    net.send('b', 11, 12, 13)
    net.send('a', 4, 5)
    tap.point(net.get('queue-bytes') == 7 * LEN and not net.take(),
              'one frame is being sent, those of both senders wait',
              net.get('queue-bytes'))
    net.send('b', 14, 15)
    tap.point(net.get('drop-queue') == 2 and net.get('queue-max') == 7 * LEN,
              'what does not fit is dropped, whoever sent it',
              net.get('stats'))
    times = net.trace()
    first = times[0][0] if times else 0
    tap.point([number for _, number in times] == [1, 2, 3, 11, 12, 13, 4, 5],
              'they arrive in the order of sending', times)
    tap.point([at - first for at, _ in times] == [i * MS for i in range(8)],
              'a frame per millisecond, together', times)


def check_other_way(tap, net):
    """The other direction of the same netdev is not this object's."""
    net.add(loss=1)
    net._ends['r'].sendto(bytes(LEN), net._path('r-qemu'))
    net._ends['a'].settimeout(20)
    try:
        got = len(net._ends['a'].recv(2 * LEN))
    except TimeoutError:
        got = 0
    tap.point(got == LEN and net.get('arrivals') == 0,
              'what the receiver sends does not pass the link', got)


def check_run_time(tap, net):
    net.add(delay_us=100)
    for i, (loss, wanted) in enumerate(((0, [0]), (1, []), (0, [2]))):
        net.set('loss', loss)
        net.send('a', i)
        got = net.step(MS)
        tap.point(got == wanted, f'loss={loss} from now on', got)
    net.set('rate', RATE)
    net.send('a', 3, 4)
    got = [net.step(MS), net.step(MS)]
    tap.point(got == [[], [3]], 'rate= is heeded at once', got)
    net.step(MS)
    net.set('delay-us', 5000)
    net.send('b', 5)
    got = [net.step(5 * MS), net.step(MS)]
    tap.point(got == [[], [5]], 'and delay-us', got)
    net.set('drop-list', '7:8')
    net.send('b', 6, 7, 8, 9)
    got = net.step(20 * MS)
    tap.point(got == [6, 9] and net.get('drop-list') == '7:8',
              'and drop-list', got)


WRONG = [
    ('loss', 1.5, 'loss: must be'),
    ('loss', -0.1, 'loss: must be'),
    ('burst-leave', 2, 'burst-leave: must be'),
    ('ecn-pmax', 7, 'ecn-pmax: must be'),
    ('jitter', 'weibull', "jitter 'weibull': want none, uniform, normal or "
                          'pareto'),
    ('drop-list', '3:x', "drop-list '3:x': want packet indices"),
    ('rate', 'fast', 'rate'),
    ('arrivals', 0, 'arrivals'),
]


def check_wrong(tap, net):
    net.add(loss=0.25, ecn_kmin=1000, ecn_kmax=2000)
    for name, value, words in WRONG:
        before = net.get(name)
        try:
            net.set(name, value)
            said = 'nothing'
        except QMPError as error:
            said = str(error)
        tap.point(words in said and net.get(name) == before,
                  f'refused, and left as it was: {name}={value}', said)
    try:
        net.set('ecn-kmin', 3000)
        said = 'nothing'
    except QMPError as error:
        said = str(error)
    tap.point('ecn-k' in said and net.get('ecn-kmin') == 1000,
              'refused: ecn-kmin above ecn-kmax', said)


def check_counters(tap, net):
    net.add(rate=RATE, limit=10 * LEN, loss=0.1, duplicate=0.3, reorder=0.2,
            reorder_us=3000, corrupt=0.1, drop_every=10, seed=4)
    for i in range(40):
        net.send('ab'[i % 2], i)
        net.step(MS // 2)
    net.send('a', *range(40, 60))
    net.step(100 * MS)
    stats = net.get('stats')
    each = {name: net.get(name) for name in COUNTERS}
    tap.point(all(each[name] == stats[name] for name in COUNTERS),
              'each counter by itself is what stats says', (each, stats))
    rose = [name for name in COUNTERS if each[name]]
    tap.point(set(COUNTERS) - set(rose) ==
              {'drop-burst', 'drop-not-ect', 'marks', 'stamps',
               'queue-bytes'}, 'those rose that should', rose)
    dropped = sum(each[name] for name in each if name.startswith('drop-'))
    tap.point(each['arrivals'] == 60 and
              each['departures'] == 60 - dropped and
              each['delivered'] == each['departures'] + each['duplicates'] and
              each['busy-ns'] == each['departures'] * MS,
              'and agree with each other', each)


LOSSY = dict(rate=RATE, delay_us=300, limit=12 * LEN, loss=0.05,
             burst_enter=0.02, burst_leave=0.3, corrupt=0.02, duplicate=0.1,
             reorder=0.1, reorder_us=2500, jitter='uniform', jitter_us=1500,
             jitter_reorders=True)


def run_traffic(net, seed, **more):
    """What happens to a hundred frames, each at its time"""
    net.add(seed=seed, **{**LOSSY, **more})
    began = net._clock.step(1)
    found = []
    for i in range(100):
        net.send('ab'[i % 3 == 0], i)
        if i % 5 == 4:
            found += [('early', n) for n in net.step(4 * MS)]
    found += net.trace()
    return [(at if at == 'early' else at - began, n) for at, n in found]


def check_seeds(tap, net):
    one, two, other = (run_traffic(net, seed) for seed in (7, 7, 8))
    tap.point(one == two and len(one) > 60,
              'the same seed and traffic: the same trace', (one, two))
    tap.point(one != other, 'another seed: another one', other)
    calm = dict(jitter='none', jitter_reorders=False, reorder=0)
    lost = set(range(100)) - {n for _, n in one}
    still = set(range(100)) - {n for _, n in run_traffic(net, 7, **calm)}
    tap.point(lost == still and lost,
              'the same frames are lost without jitter', (lost, still))


def main():
    tap = Tap()
    net = Net(QEMU)
    try:
        for check in (check_command_line, check_senders, check_other_way,
                      check_run_time, check_wrong, check_counters,
                      check_seeds):
            try:
                check(tap, net)
            except GuestError as error:
                tap.point(False, check.__name__, error)
    finally:
        net.close()
    return tap.done()


if 'ERDMA_QEMU' in os.environ:
    QEMU = os.environ['ERDMA_QEMU']
else:
    subprocess.run([ROOT / 'erdma', 'build', '--quiet'], check=True,
                   stdout=sys.stderr)
    QEMU = subprocess.run([ROOT / 'erdma', 'build', '--path'], check=True,
                          stdout=subprocess.PIPE, text=True).stdout.strip()
sys.exit(main())
