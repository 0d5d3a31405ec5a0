# SPDX-License-Identifier: GPL-2.0-or-later
"""The guests' half of the lab, as far as it needs no guest."""

import json
import pathlib
import tempfile
import types

from guestlib.errors import GuestError
from lablib import answers, guestplan, known, verdict
from lablib.dumbbell import (PACKET, PAYLOAD, SEND_HEAD, Interval, Path,
                             Sample, busiest, fill, standstills)

TAP = """ok 1 - KA-6 slow start, 1000 packets: 7.02952 ms (expected 7 ± 3 %)
not ok 2 - KA-8 recovery, go-back-N, p = 0.05: 1.5 Gbit/s (expected 1.3)
# KA-8 took 1.0 s
ok 3 - KA-12 HPCC_INT, N = 4, W_AI = 400: queue: 0.0128 BDP (expected 1)
ok 4 - KA-17 HPCC_INT under loss, p = 0.001: timeouts: 0 (expected 0)
1..4
"""


def _row(row, *values):
    row.values = list(values)
    return row


def check_verdict(tap):
    near = verdict.near('KA-8 recovery', 'go-back-N, p = 0.05', 'of B', 0.13,
                        0.15, sim_scale=10)
    tap.point(not near.is_met, 'a row without a value is not met')
    tap.point(_row(near, 0.9, 0.14, 0.12).is_met,
              'the median counts, not the worst run')
    tap.point(not _row(near, 0.16, 0.14, 0.2).is_met,
              'a median beyond the tolerance is not met')
    edges = [_row(verdict.within('n', 'w', '', 2, 0.5, 1), v).is_met
             for v in (1.5, 3, 1.4999, 3.0001)]
    tap.point(edges == [True, True, False, False],
              'bounds belong to what is allowed', str(edges))
    bounds = [_row(verdict.at_least('n', 'w', '', 5), 5).is_met,
              _row(verdict.at_least('n', 'w', '', 5), 4).is_met,
              _row(verdict.at_most('n', 'w', '', 5), 5).is_met,
              _row(verdict.at_most('n', 'w', '', 5), 6).is_met,
              _row(verdict.exactly('n', 'w', '', 0), 0).is_met,
              _row(verdict.exactly('n', 'w', '', 0), 1).is_met]
    tap.point(bounds == [True, False] * 3, 'at least, at most, exactly',
              str(bounds))
    zero = _row(verdict.near('n', 'w', '', -2, 0.5), -1.5)
    tap.point(zero.is_met, 'a share of a negative number')


def check_table(tap):
    rows = [_row(verdict.near('KA-6 slow start', '1000 packets', 'RTT', 7,
                              0.1), 7.1, 7.3, 7.2),
            _row(verdict.near('KA-8 recovery', 'go-back-N, p = 0.05', 'of B',
                              0.13, 0.15, sim_scale=10), 0.5),
            verdict.at_most('KA-12 HPCC_INT', 'N = 4, W_AI = 400: queue',
                            'BDP', 0.025),
            _row(verdict.exactly('KA-17 HPCC_INT under loss',
                                 'p = 0.001: timeouts', '', 0), 0)]
    verdict.add_simulator(rows, TAP)
    sims = [row.sim for row in rows]
    tap.point(sims == [7.02952, 0.15, 0.0128, 0],
              'the simulator\'s values, in our units', str(sims))
    lines = verdict.table(rows)
    tap.point(len(lines) == 6 and len({len(line) for line in lines}) == 1,
              'a line per row, all of one width', '\n'.join(lines))
    tap.point('7.2 (7.1 to 7.3) RTT' in lines[2] and 'yes' in lines[2] and
              '7.03 RTT' in lines[2], 'median, range and verdict', lines[2])
    tap.point('**no**' in lines[3] and '**no**' in lines[4],
              'what is missed or missing is shown')
    tap.point(verdict.counts(rows) == (2, 2), 'how many are met',
              str(verdict.counts(rows)))


def check_numbers(tap):
    jains = [verdict.jain([3, 3, 3]), verdict.jain([1, 0, 0, 0]),
             verdict.jain([0, 0])]
    tap.point(jains == [1, 0.25, None], 'Jain\'s index', str(jains))
    tap.point(fill(3) + SEND_HEAD == 3 * PAYLOAD,
              'a message that fills three packets')
    path = Path(rate=50_000_000, rtt=0.02, nic=4, jitter=0.00016)
    both = 2 * path.one_way() + 0.00016 + 0.00004 + 0.00008
    tap.point(abs(both - 0.02) < 1e-9 and path.bdp == 125_000,
              'delays and serialisation add up to the round trip', str(both))
    try:
        Path(rate=1000, rtt=0.01).one_way()
        tap.point(False, 'a round trip shorter than a packet is refused')
    except GuestError:
        tap.point(True, 'a round trip shorter than a packet is refused')


def _sample(at, delivered, rtos=0, **link):
    return Sample(at, {'time-ns': round(at * 1e9), 'busy-ns': 0,
                       'queue-integral': 0, 'drop-queue': 0, 'drop-loss': 0,
                       **link}, [{'rtos': rtos}],
                  {(2, n): {'delivered-bytes': b}
                   for n, b in zip((1, 2, 3), delivered)})


def check_interval(tap):
    first = _sample(10.0, (100, 0, 0))
    last = _sample(12.0, (150, 930, 1860), 3,
                   **{'busy-ns': 1_000_000_000, 'queue-integral': 5000,
                      'drop-queue': 4, 'drop-loss': 2})
    keys = busiest(first, last, 2)
    tap.point(keys == [(2, 2), (2, 3)], 'the busiest flows', str(keys))
    got = Interval(first, last, keys)
    tap.point(got.rates == [930 * PACKET / PAYLOAD / 2,
                            1860 * PACKET / PAYLOAD / 2],
              'rates count what full packets would', str(got.rates))
    tap.point(got.utilisation == 0.5 and got.queue == 2500 + 500
              and got.lost == 6 and got.count('rtos') == 3
              and abs(got.jain - 0.9) < 1e-9,
              'utilisation, queue, losses, counters')


def check_standstills(tap):
    idle = {'tx-msn': 9, 'una-msn': 9, 'unsent-messages': 0,
            'inflight-bytes': 0, 'cwnd-bytes': 5000, 'rtos': 0}
    states = {1: idle, 2: {**idle, 'una-msn': 4, 'peer-not-ready': True},
              3: {**idle, 'una-msn': 4, 'unsent-messages': 3,
                  'inflight-bytes': 700, 'rtos': 2}}

    def look(*rows):
        samples = []
        for at, row in enumerate(rows):
            sample = _sample(at / 2, row)
            for key, connection in sample.flows.items():
                connection.update(states[key[1]])
            samples.append(sample)
        return standstills(samples, [(2, 1), (2, 2), (2, 3)])

    got = look((1, 1, 1), (2, 2, 2), (3, 3, 3), (4, 4, 4), (5, 5, 5))
    tap.point(not got, 'flows that move do not stand still', str(got))
    got = look((0, 5, 0), (0, 6, 1), (7, 7, 2), (8, 7, 2), (9, 7, 2),
               (10, 8, 2))
    tap.point(len(got) == 2 and
              'guest 2, QP 2 stood still for 1.0 s after 1.0 s: the receiver '
              'had no receive' in got[0] and
              'QP 3 stood still for 1.5 s after 1.0 s: 3 messages unsent, 700 '
              'bytes in flight, window 5000, 2 timeouts' in got[1],
              'who stands still, when and why', str(got))
    got = look((4, 1, 1), (4, 2, 2), (4, 3, 3))
    tap.point(len(got) == 1 and 'QP 1 stood still for 1.0 s after 0.0 s: the '
              'program had nothing posted' in got[0],
              'from the first look to the last', str(got))


def check_record(tap):
    with tempfile.TemporaryDirectory() as directory:
        path = str(pathlib.Path(directory) / 'record.json')
        record = known.Record(path)
        tap.point(record.next([6, 7], 2) == 6, 'the first is first')
        for value in (7.1, 7.5):
            record.add(6, [_row(verdict.at_most('n', 'w', 'RTT', 7.4),
                                value)])
        again = known.Record(path)
        row, = again.rows([6])
        tap.point(row.values == [7.1, 7.5] and row.is_met and
                  row.low == float('-inf'), 'runs are kept in the file',
                  repr(vars(row)))
        tap.point(again.next([6, 7], 2) == 7 and again.next([6], 2) is None,
                  'what has fewer runs is next')
        for text in ('{', '[]', json.dumps({'format': 99, 'runs': {}})):
            pathlib.Path(path).write_text(text)
            try:
                known.Record(path)
                tap.point(False, f'refuses {text}')
            except GuestError as error:
                tap.point(path in str(error), f'refuses {text}', str(error))


def check_formulas(tap):
    tap.point(sorted(answers.ALL) == [6, 7, 8, 9, 11, 12, 17],
              'the known answers for guests')
    tap.point(answers.RATE * answers.RTT / 8 == answers.BDP * PACKET,
              'the BDP is 125 packets, as in the simulator')


SETTINGS = {
    'topology': 'dumbbell', 'senders': 2, 'rate': 50_000_000,
    'nic-rate': 200_000_000, 'rtt': 20_000_000, 'rtt-extra': [],
    'mtu': 1000, 'overhead': 0, 'queue': 125_000, 'ecn-min': 0, 'ecn-max': 0,
    'ecn-probability': 1, 'loss': 0, 'burst-enter': 0, 'burst-leave': 0,
    'burst-loss': 0, 'burst-share': 0, 'burst-length': 0, 'drop-every': 0,
    'corrupt': 0, 'duplicate': 0, 'reorder': 0, 'reorder-hold': 0,
    'jitter': 0, 'ack-loss': 0, 'send-jitter': 160_000,
    'algorithm': 'hpcc_int', 'duration': 10 ** 10, 'warm-up': 0,
    'interval': 10 ** 8, 'initial-window': 0, 'rto-min': 500_000_000,
    'rto-max': 4 * 10 ** 9, 'rto-initial': 500_000_000, 'retries': 7,
    'ack-every': 1, 'ack-delay': 0, 'pacing': True, 'pacing-quantum': 0,
    'ecn': True, 'go-back-n': False, 'int-compact': False,
    'base-rtt': 20_080_000, 'eta': 0.95, 'delta': 0.05, 'max-stage': 0,
    'max-stage-ecn': 5, 'ecn-probe': True, 'w-ai': 400, 'n-flows': 16,
    'ecn-beta': 0, 'fast-convergence': True,
}
GROUP = {'first': 0, 'count': 2, 'per-sender': 1, 'algorithm': 'hpcc_int',
         'message': 1_000_000, 'messages': 0, 'depth': 2, 'start': 0,
         'stagger': 0, 'stop': 0}


def _run(flows=None, **changes):
    settings = {**SETTINGS, **{k.replace('_', '-'): v
                               for k, v in changes.items()}}
    return types.SimpleNamespace(label='x-1', settings=settings,
                                 flows=flows or [dict(GROUP)])


def check_refusals(tap):
    tap.point(guestplan.refusal(_run()) is None, 'a plain file is fine',
              str(guestplan.refusal(_run())))
    cases = [
        ({'topology': 'parking-lot'}, 'parking-lot'),
        ({'rate': 25 * 10 ** 9}, '25000 Mbit/s'),
        ({'rtt': 40_000}, '0.04 ms'),
        ({'interval': 1_000_000}, 'interval: 1 ms'),
        ({'duration': 10 ** 12}, 'duration: 1000 s'),
        ({'senders': 4, 'rtt_extra': [0, 1, 2, 3]}, 'rtt-extra'),
        ({'mtu': 65000}, 'mtu'),
        ({'flows': [dict(GROUP, count=64)]}, '64 flows'),
        ({'flows': [GROUP, dict(GROUP, algorithm='cubic')]}, 'algorithm'),
        ({'flows': [dict(GROUP, message=1 << 30)]}, 'message'),
    ]
    for changes, word in cases:
        why = guestplan.refusal(_run(**changes)) or ''
        tap.point(word in why and '[guests]' in why, f'refuses {word}', why)


def check_mapping(tap):
    got = guestplan.device_properties(_run().settings)
    tap.point(got['cc'] == 'hpcc_int' and got['mtu'] == 986 and
              got['rto-min-us'] == 500_000 and got['base-rtt-us'] == 20_080
              and got['line-rate'] == 200_000_000 and got['w-ai'] == 400
              and got['pacing-quantum-us'] == 100 and 'delta' not in got,
              'the device\'s properties', str(got))
    got = guestplan.device_properties(_run(algorithm='cubic').settings)
    tap.point('fast-convergence' in got and 'eta' not in got,
              'those only that the algorithm looks at', str(got))
    got = guestplan.device_properties(_run(overhead=24).settings)
    tap.point(got['mtu'] == 1000, 'framing that is wanted is not taken off',
              str(got['mtu']))
    always, later = guestplan.bottleneck_options(_run(
        loss=0.01, ecn_min=1000, ecn_max=2000, burst_share=0.01,
        burst_length=4, reorder=0.1, reorder_hold=5_000_000).settings)
    tap.point(always == {'overhead': 0, 'ecn-kmin': 1000, 'ecn-kmax': 2000,
                         'ecn-pmax': 1}, 'marks are there from the start',
              str(always))
    enter = later['burst-enter']
    tap.point(later['loss'] == 0.01 and later['burst-leave'] == 0.25 and
              abs(enter / (enter + 0.25) - 0.01) < 1e-9 and
              later['reorder-us'] == 5000, 'losses come later', str(later))


def check_starts(tap):
    groups = [dict(GROUP, start=10 ** 9, stagger=10 ** 8),
              dict(GROUP, first=1, count=1, per_sender=1)]
    groups[1]['per-sender'] = 2
    times = [(start, sender) for start, sender, _ in
             guestplan.starts(_run(flows=groups))]
    tap.point(times == [(10 ** 9, 0), (11 * 10 ** 8, 1), (0, 1), (0, 1)],
              'who starts when', str(times))
    steady = [guestplan.is_steady(_run(flows=[dict(GROUP, **change)]))
              for change in ({}, {'stagger': 1}, {'messages': 3},
                             {'stop': 5})]
    tap.point(steady == [True, False, False, False],
              'which flows perftest can do', str(steady))


CHECKS = [check_verdict, check_table, check_numbers, check_interval, check_standstills,
          check_record, check_formulas, check_refusals, check_mapping,
          check_starts]
