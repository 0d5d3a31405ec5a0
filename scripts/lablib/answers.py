# SPDX-License-Identifier: GPL-2.0-or-later
"""The known answers that linked guests can give, one function each.

Tolerances are those for virtual machines, formulas and what the rows are
called those of tests/sim; docs/congestion-control/known-answers.md explains
both.  Scale: 25 Mbit/s and 40 ms, which are 125 packets of 1000 bytes as in
the simulator's 25 Gbit/s and 40 us.
"""

import dataclasses
import math

from . import verdict
from .dumbbell import (MTU, PACKET, SEND_HEAD, WRITE_HEAD, Dumbbell, Endless,
                       Path, Writes, fill)

RATE = 25_000_000
RTT = 0.04
BDP = 125                       # packets
# Several flows: a card that the bottleneck is slower than, and the jitter of
# a packet's time that keeps them out of lock-step
SHARED = Path(rate=RATE, rtt=RTT, nic=4, jitter=PACKET * 8 / RATE)
# HPCC's queues are smaller than what a main loop that is late by a millisecond
# sends at once; as the simulated senders' own cards do, this one spreads it.
SMOOTH = dataclasses.replace(SHARED, nic=1.25)
# 25 round trips, as the simulator's 1 ms
RTO_US = 1_000_000
# As fine as a timer is worth it; the simulator's are exact
QUANTUM_US = 100
# Where single round trips are counted: QEMU is late by milliseconds at times
SLOW_RTT = 0.1
# Without a queue a delay is as good as another
LOSSY_RTT = 0.02
FAST_RATE = 500_000_000
# Of the simulator's results: their unit in ours
SIM_SLOW_RTT_MS = 1.0
SIM_RATE_GBIT = 10.0            # KA-8's


@dataclasses.dataclass
class Lab:
    """What an experiment gets."""
    net: Dumbbell
    seed: int
    say: object

    def plug(self, algorithm, **more):
        properties = {'cc': algorithm, 'ack-every': 1, 'ecn': False,
                      'rto-min-us': RTO_US, 'rto-initial-us': RTO_US,
                      'pacing-quantum-us': QUANTUM_US}
        properties.update(more)
        self.net.plug(**properties)

    def steady(self, path, n_flows, warm, seconds, packets=64, depth=8,
               **losses):
        """N endless flows: an Interval of them after `warm` seconds.  Losses
        begin with the flows, the connections are set up without."""
        self.net.connect(path, self.seed)
        with Endless(self.net, n_flows, fill(packets), depth):
            self.net.link.set(**losses)
            self.net.measure(n_flows, warm)
            got = self.net.measure(n_flows, seconds)
        for text in got.standstills:
            self.say(f'warning: {text}')
        self.say(f'round trip {got.rtt * 1000:.1f} ms, without queues '
                 f'{path.rtt * 1000:g} ms; queue {got.queue:.0f} bytes, '
                 f'usually {got.usual("queue"):.0f}')
        return got


def _four_sigma(p, n):
    return 4 * math.sqrt(p * (1 - p) / max(n, 1))


# KA-6: slow start doubles every round trip

def _slow_start(lab, packets, rounds):
    name, iw = 'KA-6 slow start', 10
    lab.plug('newreno', pacing=False, **{'initial-window': iw * MTU,
                                         'rx-buffer': '64M'})
    lab.net.connect(Path(rtt=SLOW_RTT), lab.seed)
    before = lab.net.sample()
    with Writes(lab.net, fill(packets, WRITE_HEAD)) as writes:
        writes.go()
        took, = writes.wait()
    after = lab.net.sample()
    sent, again, rtos = (after.stats[0][key] - before.stats[0][key] for key in
                         ('tx-data-packets', 'retransmits', 'rtos'))
    row = verdict.near(name, f'{packets} packets', 'RTT', rounds, 0.1,
                       sim_scale=SIM_SLOW_RTT_MS)
    row.values = [took / SLOW_RTT]
    count = verdict.exactly(name, f'{packets} packets, sent', '', packets)
    count.values = [sent]
    trouble = verdict.exactly(
        name, f'{packets} packets, retransmissions and timeouts', '', 0)
    trouble.values = [again + rtos]
    return [row, count, trouble]


def ka_6(lab):
    return _slow_start(lab, 1000, 7) + _slow_start(lab, 5000, 9)


# KA-7: one packet of a hundred lost

def _hundred(lab, path, drop):
    """Round trips that 100 packets take, and the sender's counters"""
    lab.net.connect(path, lab.seed)
    with Writes(lab.net, fill(100, WRITE_HEAD)) as writes:
        before = lab.net.sample()
        if drop is not None:
            index = before.link['arrivals'] + drop
            lab.net.link.set(drop_list=str(index))
        writes.go()
        took, = writes.wait()
        after = lab.net.sample()
    counters = {key: after.stats[0][key] - before.stats[0][key]
                for key in ('retransmits', 'probes', 'rtos')}
    counters['dropped'] = after.link['drop-listed']
    windows = [c['cwnd-bytes'] for c in after.flows.values()]
    return took / path.rtt, counters, max(windows, default=0)


def ka_7(lab):
    name = 'KA-7 one loss'
    # What waits in front of a link has a longer round trip here, where the
    # simulator's hosts hold it back: SRTT would grow with the 100 packets.
    # So the link is fast, which the formulas allow for.
    path = Path(rate=FAST_RATE, rtt=SLOW_RTT + 2 * PACKET * 8 / FAST_RATE,
                nic=1)
    ser = path.packet_time / path.rtt
    t = 1 - ser                     # of a packet whose queue is empty
    rows = []

    def add(row, value):
        row.values = [value]
        rows.append(row)

    def in_time(what, expected):
        return verdict.within(name, f'{what}, time', 'RTT', expected, 1, 1)

    whole = {'initial-window': 2 * 100 * MTU, 'pacing': False}
    lossless = 100 * ser + t
    lab.plug('none', **whole)
    took, _, _ = _hundred(lab, path, None)
    add(in_time('no loss', lossless), took)

    took, counters, _ = _hundred(lab, path, 49)
    add(in_time('packet 50 lost', 53 * ser + 2 * t), took)
    add(verdict.exactly(name, 'packet 50 lost, dropped', '', 1),
        counters['dropped'])
    add(verdict.exactly(name, 'packet 50 lost, retransmissions', '', 1),
        counters['retransmits'])
    add(verdict.exactly(name, 'packet 50 lost, probes and timeouts', '', 0),
        counters['probes'] + counters['rtos'])

    lab.plug('cubic', **whole)
    took, counters, window = _hundred(lab, path, 99)
    add(in_time('last packet lost', lossless + 2 * t + 1 - 2 * ser), took)
    add(verdict.exactly(name, 'last packet lost, dropped', '', 1),
        counters['dropped'])
    add(verdict.exactly(name, 'last packet lost, probes', '', 1),
        counters['probes'])
    add(verdict.exactly(name, 'last packet lost, timeouts', '', 0),
        counters['rtos'])
    add(verdict.at_least(name, 'last packet lost, window', 'packets', 200,
                         sim_scale=1000), window / MTU)
    return rows


# KA-8: selective repeat against go-back-N

def _recovery(lab, p, is_go_back_n):
    name = 'KA-8 recovery'
    kind = 'go-back-N' if is_go_back_n else 'selective repeat'
    # What the card cannot send at once waits in it, a part of the path here:
    # what is in flight is the window, not the BDP as in the simulator, whose
    # hosts hold it back.  So the window of go-back-N is the formula's w.
    window = BDP if is_go_back_n else 2 * BDP
    lab.plug('none', **{'initial-window': window * MTU,
                        'go-back-n': is_go_back_n, 'rx-buffer': '64M'})
    # A lost packet holds up what is behind it for a round trip or two: the
    # application has to have enough on the way.
    got = lab.steady(Path(rate=RATE, rtt=RTT, nic=1), 1, 1, 6, 256, 16,
                     loss=p)
    expected, share = 1 - p, 0.05
    if is_go_back_n:
        expected, share = 1 / (1 + p * BDP / (1 - p)), 0.15
    row = verdict.near(name, f'{kind}, p = {p:g}', 'of B', expected, share,
                       sim_scale=SIM_RATE_GBIT)
    row.values = [got.rate * 8 / RATE]
    again = got.count('retransmits') / max(got.lost, 1)
    what = f'{kind}, p = {p:g}, retransmissions per loss'
    if is_go_back_n:
        proof = verdict.at_least(name, what, '', 10)
    else:
        proof = verdict.near(name, what, '', 1, 0.1)
    proof.values = [again]
    return [row, proof]


def ka_8(lab):
    rows = []
    for is_go_back_n in (False, True):
        for p in (0.001, 0.01, 0.05):
            rows += _recovery(lab, p, is_go_back_n)
    return rows


# KA-9: the window of NewReno under loss is c / sqrt(p)

def _lossy(lab, rtt, p, window, cap, seconds, **losses):
    """`cap`: packets that the application keeps on the way at most."""
    depth = 4
    # About three losses bring a window that grew without any down.
    warm = 2 / p * rtt / window + 1
    return lab.steady(Path(rtt=rtt), 1, warm, seconds, cap // depth, depth,
                      **losses)


def _response(lab, what, p, c, cap, seconds, **losses):
    name = 'KA-9 NewReno'
    window = c / math.sqrt(p)
    got = _lossy(lab, LOSSY_RTT, p, window, cap, seconds, **losses)
    row = verdict.near(name, f'window, {what}', 'packets', window, 0.2)
    # The round trip is what it is, with what a busy host adds to it.
    row.values = [got.rate * got.rtt / PACKET]
    proof = verdict.at_least(name, f'window, {what}, times cut', '', 5)
    proof.values = [got.count('loss-episodes')]
    return [row, proof]


def _two_rtts(lab, p=0.01):
    """One after the other: nothing that the two share limits them, and a
    busy host would slow down both."""
    rates = []
    for seed, rtt, seconds in ((0, 0.025, 14), (10, 0.1, 40)):
        each = dataclasses.replace(lab, seed=lab.seed + seed)
        rates.append(_lossy(each, rtt, p, 1.27 / math.sqrt(p),
                            round(10 / math.sqrt(p)), seconds, loss=p).rate)
    row = verdict.near('KA-9 NewReno', 'two flows, RTT 1 : 4, rates', '', 4,
                       0.2)
    row.values = [rates[0] / rates[1]]
    return [row]


def ka_9(lab):
    lab.plug('newreno')
    rows = []
    # As tests/sim calls them; there the round trips are 20 us to 2 ms.
    for p, seconds, rtt in ((0.01, 8, 20), (0.001, 15, 200),
                            (0.0001, 40, 2000)):
        rows += _response(lab, f'Bernoulli p = {p:g}, {rtt} us', p, 1.27,
                          round(10 / math.sqrt(p)), seconds, loss=p)
    for p, c, seconds in ((0.01, 1.10, 4), (0.001, 1.17, 6),
                          (0.0001, 1.21, 15)):
        rows += _response(lab, f'periodic p = {p:g}, 200 us', p, c,
                          round(6 / math.sqrt(p)), seconds,
                          drop_every=round(1 / p))
    return rows + _two_rtts(lab)


# KA-11: equal flows share a drop-tail queue

def _share(lab, title, n, jain, seconds):
    name = 'KA-11 sharing'
    path = dataclasses.replace(SHARED, queue=BDP * PACKET)
    got = lab.steady(path, n, 4, seconds)
    rows = [
        verdict.at_least(name, f'{title}, N = {n}, Jain\'s index', '', jain),
        verdict.at_least(name, f'{title}, N = {n}, utilisation', '', 0.98),
        verdict.at_least(name, f'{title}, N = {n}, windows cut per flow', '',
                         1),
    ]
    for row, value in zip(rows, (got.jain, got.utilisation,
                                 got.count('loss-episodes') / n)):
        row.values = [value]
    return rows


def ka_11(lab):
    rows = []
    # CUBIC's time scale is seconds, not round trips: it takes longer to share.
    for title, seconds in (('NewReno', 12), ('CUBIC', 30)):
        lab.plug(title.lower())
        for n in (2, 4, 8, 16):
            rows += _share(lab, title, n, 0.95, seconds)
    return rows


# KA-12: HPCC_INT holds the utilisation U* = eta + N W_AI / BDP

def _plug_hpcc(lab, w_ai, slower=1):
    # Windows count IP packets, the link whole frames.
    lab.plug('hpcc-int', **{'w-ai': round(w_ai * MTU / PACKET),
                            'line-rate': RATE // slower, 'int-hops': 1,
                            'base-rtt-us': round(RTT * 1e6) * slower,
                            'rto-min-us': RTO_US * slower,
                            'rto-initial-us': RTO_US * slower,
                            'rto-max-us': 4 * RTO_US * slower})


def _hpcc(lab, n, w_ai, slower):
    name = 'KA-12 HPCC_INT'
    u = 0.95 + n * w_ai / (BDP * PACKET)
    head = f'N = {n}, W_AI = {w_ai}'
    path = dataclasses.replace(SMOOTH, rate=RATE // slower, rtt=RTT * slower,
                               jitter=SMOOTH.jitter * slower)
    got = lab.steady(path, n, (2 + n / 16) * slower, 2 + 4 * slower, 16)
    rows = [verdict.near(name, f'{head}: utilisation', '', min(u, 1), 0.05)]
    rows[0].values = [got.usual('utilisation')]
    queue = got.usual('queue') / (BDP * PACKET)
    if u < 0.99:
        rows.append(verdict.at_most(name, f'{head}: queue', 'BDP', 0.025))
    elif u > 1.04:
        rows.append(verdict.near(name, f'{head}: queue', 'BDP', u - 1, 0.3))
    if len(rows) > 1:
        rows[1].values = [queue]
    # One ack may be for several packets, and has the last one's stack.
    proof = verdict.at_least(name, f'{head}: INT samples per packet', '',
                             0.5)
    proof.values = [got.count('int-samples')
                    / max(got.count('tx-data-packets'), 1)]
    return rows + [proof]


def ka_12(lab):
    rows = []
    # Where the answer is a queue of a few packets, the milliseconds that a
    # main loop is late have to be little beside a packet's time: everything
    # is so many times slower.
    for n, w_ai, slower in ((4, 400, 5), (8, 400, 5), (16, 400, 5),
                            (32, 400, 10), (16, 1600, 1), (32, 1600, 1)):
        _plug_hpcc(lab, w_ai, slower)
        rows += _hpcc(lab, n, w_ai, slower)
    return rows


# KA-17: to HPCC_INT loss in front of the bottleneck is no signal

def ka_17(lab):
    name = 'KA-17 HPCC_INT under loss'
    _plug_hpcc(lab, 400)
    base, rows = None, []
    for p in (0, 0.0001, 0.001, 0.01):
        got = lab.steady(SMOOTH, 4, 6, 10, loss=p)
        utilisation = got.usual('utilisation')
        base = utilisation if base is None else base
        n = got.count('tx-data-packets')
        sigma = _four_sigma(p, n)
        new = [
            verdict.within(name, f'p = {p:g}: utilisation', '', base,
                           0.03, 0.03),
            verdict.within(name, f'p = {p:g}: retransmitted', 'of packets',
                           p, sigma, sigma),
            verdict.exactly(name, f'p = {p:g}: timeouts', '', 0),
            verdict.at_least(name, f'p = {p:g}: Jain\'s index', '', 0.99),
        ]
        for row, value in zip(new, (utilisation,
                                    got.count('retransmits') / n,
                                    got.count('rtos'), got.jain)):
            row.values = [value]
        rows += new
    return rows


ALL = {6: ka_6, 7: ka_7, 8: ka_8, 9: ka_9, 11: ka_11, 12: ka_12, 17: ka_17}
