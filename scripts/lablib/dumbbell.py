# SPDX-License-Identifier: GPL-2.0-or-later
"""A dumbbell of linked guests: senders, a bottleneck, one receiver.

Guest 1 receives, each other guest sends; a sender of N flows is N queue pairs
of one perftest.  The links are filter-netem:

  to guest 1     the bottleneck: rate, queue, losses, marks, INT
  from a sender  its network card, `nic` times as fast as the bottleneck
  to a sender    the way back, without a limit

All numbers on links count whole Ethernet frames; frames of PACKET bytes are
what a full packet of the adapter is here.
"""

import dataclasses
import os
import statistics
import time

from guestlib.errors import GuestError

from .verdict import jain

PACKET = 1000
ETHERNET = 14
MTU = PACKET - ETHERNET             # of the adapter
HEAD = 28 + 20 + 8                  # IP, UDP, and what each packet carries
PAYLOAD = MTU - HEAD
SEND_HEAD, WRITE_HEAD = 8, 20       # in a message's first packet
LINK_ID = 1
FIRST_PORT = 18515
DURATION = 280                      # seconds; nothing runs longer
MESSAGES = 1_000_000                # as good as endless then
# More receives than one of so many flows sends messages: perftest's own flow
# control must never be what limits a flow.  It hears of receives without a
# completion, and sleeps (-e) until there is one.
FEW_FLOWS, RECEIVES_OF_FEW, RECEIVES = 4, 4096, 1024
READY = 60                          # seconds for flows to get going
ATTEMPTS = 3
HASTE = -10                         # nice value
STEP = 0.5                          # seconds between looks at a long run
STILL = 1.0                         # a flow that does nothing for so long


def fill(packets, head=SEND_HEAD):
    """Bytes of a message that fills this many packets"""
    return packets * PAYLOAD - head


@dataclasses.dataclass(frozen=True)
class Path:
    """The way from senders to the receiver and back."""
    rate: int = 0           # of the bottleneck, bit/s; 0: no limit
    rtt: float = 0.02       # of a full packet and its ack, queues empty, s
    queue: int = 0          # limit of the bottleneck's queue, bytes; 0: none
    nic: float = 0          # a sender's link, in bottlenecks; 0: no limit
    jitter: float = 0       # of a sender's link: up to so many seconds
    frame: int = PACKET     # bytes of a full packet
    extra: tuple = ()       # added to rtt, one per sending guest

    @property
    def bdp(self):
        return self.rate * self.rtt / 8

    @property
    def packet_time(self):
        return self.frame * 8 / self.rate if self.rate else 0

    def one_way(self):
        """Propagation in each direction; the rest of rtt is serialisation
        and the mean of the jitter."""
        rest = self.rtt - self.packet_time - self.jitter / 2
        if self.nic:
            rest -= self.packet_time / self.nic
        if rest < 0:
            raise GuestError('a packet\'s time is longer than the round trip')
        return rest / 2


@dataclasses.dataclass
class Sample:
    """Everything that is counted, at one time."""
    time: float
    link: dict              # the bottleneck's counters
    stats: list             # the senders' adapters' counters
    flows: dict             # (guest, QP number) -> its connection


class Interval:
    """What happened between two samples, to these flows (keys of
    Sample.flows)."""

    def __init__(self, first, last, flows):
        self.flows = list(flows)
        self.rtts = []          # smoothed round trips, seconds
        self.steps = []         # parts of it, each an Interval
        self.standstills = []   # texts
        self.seconds = last.time - first.time
        self.link = {k: last.link[k] - first.link[k] for k in last.link}
        self._first, self._last = first, last
        # Bytes a second that came across, of payload and of the full packets
        # that they would make, headers included
        self.payload = [delivered(first, last, key) / self.seconds
                        for key in self.flows]
        self.rates = [x * PACKET / PAYLOAD for x in self.payload]

    @property
    def rate(self):
        return sum(self.rates)

    @property
    def rtt(self):
        """Mean round trip as the adapters measured it, seconds"""
        return sum(self.rtts) / len(self.rtts)

    @property
    def jain(self):
        return jain(self.rates) or 0

    @property
    def utilisation(self):
        return self.link['busy-ns'] / self.link['time-ns']

    @property
    def queue(self):
        """Mean bytes, with the packet that is being sent"""
        return (self.link['queue-integral'] * 1e9 / self.link['time-ns']
                + self.utilisation * PACKET)

    def usual(self, name):
        """The median over its steps of "utilisation" or "queue": what it is
        but for the moments in which the host did something else"""
        return statistics.median(getattr(step, name) for step in self.steps)

    @property
    def lost(self):
        return sum(self.link[k] for k in self.link if k.startswith('drop-'))

    def count(self, name):
        """A counter of the senders' adapters"""
        return sum(b[name] - a[name] for a, b in
                   zip(self._first.stats, self._last.stats))


def delivered(first, last, key):
    """Bytes of payload that a flow brought across between two samples"""
    return (last.flows.get(key, {}).get('delivered-bytes', 0)
            - first.flows.get(key, {}).get('delivered-bytes', 0))


def _waits_for(connection):
    """What a connection that brings nothing across lacks"""
    if connection.get('peer-not-ready'):
        return 'the receiver had no receive posted'
    if connection['tx-msn'] == connection['una-msn']:
        return 'the program had nothing posted'
    return (f'{connection["unsent-messages"]} messages unsent, '
            f'{connection["inflight-bytes"]} bytes in flight, window '
            f'{connection["cwnd-bytes"]}, {connection["rtos"]} timeouts')


def standstills(samples, flows, least=STILL):
    """Which flows brought nothing across for how long, and why: a line
    each.  It is known as exactly as samples are close together."""
    found = []
    for key in flows:
        begin = 0
        for i in range(1, len(samples) + 1):
            if i < len(samples) and not delivered(samples[begin], samples[i],
                                                  key):
                continue
            seconds = samples[i - 1].time - samples[begin].time
            state = samples[i - 1].flows.get(key)
            if seconds >= least and state:
                since = samples[begin].time - samples[0].time
                found.append(f'guest {key[0]}, QP {key[1]} stood still for '
                             f'{seconds:.1f} s after {since:.1f} s: '
                             + _waits_for(state))
            begin = i
    return found


def busiest(first, last, n):
    """The n flows that brought the most across: perftest has a queue pair
    besides them."""
    return sorted(sorted(last.flows, key=lambda key:
                         delivered(first, last, key))[-n:])


class Dumbbell:
    """Links and adapters of a set of guests (guestlib.GuestSet), which has
    none of them yet."""

    def __init__(self, guests):
        self.guests = guests
        self.receiver = guests[1]
        self.senders = [guests[i] for i in range(2, len(guests) + 1)]
        self.link = None
        self._plugged = {}
        for guest in guests:
            _hasten(guest.machine.process.pid)

    def plug(self, **properties):
        """Adapters with these properties; '_' stands for '-'."""
        text = ','.join(f'{k.replace("_", "-")}={_text(v)}' for k, v in
                        {'mtu': MTU, **properties}.items())
        for guest in self.guests:
            if self._plugged.get(guest.index) == text:
                continue
            if self._plugged.pop(guest.index, None):
                guest.qmp.command('device_del', id='hca0')
                guest.qmp.wait_event('DEVICE_DELETED', 30,
                                     lambda d: d.get('device') == 'hca0')
            guest.add_hca(more=text)
            self._plugged[guest.index] = text

    def connect(self, path, seed, **bottleneck):
        """Fresh links.  More options of the bottleneck: see filter-netem."""
        for guest in self.guests:
            guest.no_netem()
        one_way = round(path.one_way() * 1e6)
        options = {'rate': path.rate, 'limit': path.queue}
        if path.rate:
            options['link_id'] = LINK_ID
        self.link = self.receiver.netem('tx', delay_us=one_way, seed=seed,
                                        **options, **bottleneck)
        for i, guest in enumerate(self.senders):
            extra = round(path.extra[i] * 1e6 / 2) if path.extra else 0
            guest.netem('tx', delay_us=one_way + extra, seed=seed + i)
            card = {'delay_us': extra, 'seed': seed + 100 + i}
            if path.nic:
                card['rate'] = round(path.rate * path.nic)
            if path.jitter:
                card.update(jitter='uniform',
                            jitter_us=round(path.jitter * 1e6))
            guest.netem('rx', **card)

    def sample(self):
        flows = {}
        for guest in self.senders:
            for qp in guest.qmp.command('qom-get', property='qps',
                                        path='/machine/peripheral/hca0'):
                if 'connection' in qp:
                    flows[guest.index, qp['qpn']] = qp['connection']
        link = self.link.stats()
        return Sample(time.monotonic(), link,
                      [guest.hca_stats() for guest in self.senders], flows)

    def measure(self, n_flows, seconds):
        samples = [self.sample()]
        end = samples[0].time + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, STEP))
            samples.append(self.sample())
        first, last = samples[0], samples[-1]
        interval = Interval(first, last, busiest(first, last, n_flows))
        interval.steps = [Interval(a, b, interval.flows)
                          for a, b in zip(samples, samples[1:])]
        interval.standstills = standstills(samples, interval.flows)
        interval.rtts = [sample.flows[key]['srtt-ns'] / 1e9
                         for sample in samples for key in interval.flows
                         if key in sample.flows]
        return interval


def _hasten(pid):
    """Lets QEMU's main loop, which is its first thread, go before what else
    the host has to do, its virtual processors included: it is what links and
    adapters run in.  Only root may."""
    try:
        os.setpriority(os.PRIO_PROCESS, pid, HASTE)
    except PermissionError:
        pass


def _text(value):
    if isinstance(value, bool):
        return 'on' if value else 'off'
    return str(value)


def _listens(port):
    """A shell condition"""
    return f'rdma resource show cm_id | grep -q "LISTEN.*:{port} "'


class _NotStarted(GuestError):
    """perftest gave up while it connected, as it does now and then"""


class Endless:
    """N flows from each sender that nobody will see the end of, by
    perftest's ib_send_bw.

    It sleeps for completions (-e): a guest that polls would take a whole
    processor of the host from the adapters.
    """

    def __init__(self, dumbbell, n_flows, message, depth=8):
        self.dumbbell, self.n_flows = dumbbell, n_flows
        self.message = message
        receives = RECEIVES_OF_FEW if n_flows <= FEW_FLOWS else RECEIVES
        self.command = (f'exec ib_send_bw -R -F -e -Q 1 -N -q {n_flows} '
                        f'-s {message} -t {depth} -r {receives} '
                        f'-n {MESSAGES}')
        self._running = []

    def __enter__(self):
        for attempt in range(ATTEMPTS):
            try:
                for i, guest in enumerate(self.dumbbell.senders):
                    self._start(guest, FIRST_PORT + i)
                self._wait()
                return self
            except _NotStarted:
                self.__exit__()
                if attempt == ATTEMPTS - 1:
                    raise
            except BaseException:
                self.__exit__()
                raise

    def _start(self, guest, port):
        receiver = self.dumbbell.receiver
        command = f'{self.command} -p {port}'
        server = receiver.start(command, DURATION + 10, merge=True)
        self._running.append(server)
        receiver.wait_until(_listens(port), 20,
                            f'ib_send_bw does not listen at {port}')
        self._running.append(guest.start(f'{command} {receiver.ip}',
                                         DURATION + 10, merge=True))

    def _wait(self):
        """Until each flow has brought one message across"""
        want = self.n_flows * len(self.dumbbell.senders)
        end = time.monotonic() + READY
        while True:
            flows = self.dumbbell.sample().flows.values()
            if sum(c['delivered-bytes'] >= self.message
                   for c in flows) >= want:
                return
            for program in self._running:
                if not program.running():
                    raise _NotStarted('ib_send_bw ended: '
                                      + program.output()[-500:])
            if time.monotonic() > end:
                raise _NotStarted(f'{len(flows)} of {want} flows started '
                                  f'within {READY} s')
            time.sleep(0.2)

    def __exit__(self, *exc):
        for program in reversed(self._running):
            program.kill()
        for program in self._running:
            program.wait(10)
        self._running = []


class Writes:
    """A flow of `count` RDMA writes (0: endless) of `size` bytes each, by
    verbs-write.  They start on demand, so that a link can be told before
    which of their packets to lose, and several flows start when they should.
    """

    def __init__(self, dumbbell, size, count=1, depth=1, sender=0,
                 port=FIRST_PORT):
        receiver, guest = dumbbell.receiver, dumbbell.senders[sender]
        self._client = None
        self._server = receiver.start(f'exec verbs-write server {port}',
                                      DURATION + 10, merge=True)
        try:
            receiver.wait_until(_listens(port), 20,
                                f'verbs-write does not listen at {port}')
            self._client = guest.start(
                f'exec verbs-write client {receiver.ip} {port} {size} '
                f'{count} {depth}', DURATION + 10, merge=True, stdin=True)
            self._wait('ready', READY)
        except BaseException:
            self.close()
            raise

    def _said(self, word):
        return word in self._client.output().split('\n')

    def _wait(self, word, timeout):
        end = time.monotonic() + timeout
        while not self._said(word):
            if not self._client.running() or time.monotonic() > end:
                raise GuestError(f'verbs-write does not come to {word}: '
                                 + self._client.output()[-300:])
            time.sleep(0.02)

    def go(self):
        self._client.feed(b'go\n')

    def stop(self):
        """No new writes."""
        self._client.signal(15)

    def has_ended(self):
        """All is complete; the connection stays until close()."""
        return self._said('end')

    def done(self):
        """Seconds from go() to each completion until now"""
        return [float(line.split()[2]) / 1e6
                for line in self._client.output().splitlines()
                if line.startswith('done') and len(line.split()) == 3]

    def wait(self, timeout=60):
        """Until the last one is complete; what done() says then"""
        self._wait('end', timeout)
        return self.done()

    def close(self):
        for program in (self._client, self._server):
            if program and program.running():
                program.kill()
                program.wait(10)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
