# SPDX-License-Identifier: GPL-2.0-or-later
"""What an experiment file means to linked guests: the device's properties,
the links' options, the rows of a series, and what has to be refused.

One guest receives.  All senders of the file share one sending guest and its
card, unless their round trips differ (rtt-extra): then each has a guest.
"""

from .dumbbell import ETHERNET, Path

MAX_FLOWS = 32
MAX_SENDING_GUESTS = 3
MAX_BPS = 200_000_000
MIN_RTT = 0.005
MIN_INTERVAL = 0.02
MAX_SECONDS = 250
MAX_MTU = 9000
MIN_QUANTUM_US = 100
MAX_MESSAGE = 256 << 20
NS = 1e-9

HPCC = ('hpcc_rtt', 'hpcc_ecn', 'hpcc_int')

# Settings of the file that are properties of the device: name, its unit in
# the file's (None: a switch, 1.0: a number), algorithms that look at it
PROPERTIES = {
    'initial-window': ('initial-window', 1, None),
    'rto-min': ('rto-min-us', 1000, None),
    'rto-max': ('rto-max-us', 1000, None),
    'rto-initial': ('rto-initial-us', 1000, None),
    'retries': ('retries', 1, None), 'ack-every': ('ack-every', 1, None),
    'ack-delay': ('ack-delay-us', 1000, None),
    'pacing': ('pacing', None, None), 'ecn': ('ecn', None, None),
    'go-back-n': ('go-back-n', None, None),
    'base-rtt': ('base-rtt-us', 1000, HPCC), 'eta': ('eta', 1.0, HPCC),
    'delta': ('delta', 1.0, ('hpcc_rtt',)),
    'max-stage': ('max-stage', 1, ('hpcc_rtt', 'hpcc_int')),
    'max-stage-ecn': ('max-stage-ecn', 1, ('hpcc_ecn',)),
    'ecn-probe': ('ecn-probe', None, ('hpcc_ecn',)),
    'w-ai': ('w-ai', 1, HPCC), 'n-flows': ('n-flows', 1, HPCC),
    'ecn-beta': ('ecn-beta', 1.0, ('newreno', 'cubic')),
    'fast-convergence': ('fast-convergence', None, ('cubic',)),
}

# Settings that are options of the bottleneck
IMPAIRMENTS = {
    'loss': 'loss', 'burst-enter': 'burst-enter',
    'burst-leave': 'burst-leave', 'burst-loss': 'burst-loss',
    'drop-every': 'drop-every', 'corrupt': 'corrupt',
    'duplicate': 'duplicate', 'reorder': 'reorder',
}


def frame_bytes(settings):
    """What a full packet counts on the links, as in the simulator"""
    return settings['mtu'] + settings['overhead']


def device_mtu(settings):
    """The adapter's; Ethernet's header is in the frames, wanted or not."""
    return settings['mtu'] - max(0, ETHERNET - settings['overhead'])


def device_properties(settings):
    """-device erdma's properties for a run: name -> value"""
    algorithm = settings['algorithm']
    found = {'cc': algorithm, 'mtu': device_mtu(settings)}
    if algorithm in HPCC:
        found['line-rate'] = settings['nic-rate'] or settings['rate']
    if algorithm == 'hpcc_int':
        found['int-hops'] = 1
        found['int'] = 'compact' if settings['int-compact'] else 'wide'
    for key, (name, unit, users) in PROPERTIES.items():
        value = settings[key]
        if users and algorithm not in users:
            continue
        if unit is None or isinstance(unit, float):
            found[name] = value
        else:
            found[name] = round(value / unit)
    # Timers are not exact, unlike the simulator's with 0.
    found['pacing-quantum-us'] = max(
        MIN_QUANTUM_US, round(settings['pacing-quantum'] / 1000))
    return found


def bottleneck_options(settings):
    """filter-netem's options beside those of the path: (from the start on,
    with the flows only).  Connections are set up without losses."""
    always = {'overhead': max(0, settings['overhead'] - ETHERNET)}
    if settings['ecn-max']:
        always.update({'ecn-kmin': settings['ecn-min'],
                       'ecn-kmax': settings['ecn-max'],
                       'ecn-pmax': settings['ecn-probability']})
    later = {option: settings[key] for key, option in IMPAIRMENTS.items()
             if settings[key]}
    if settings['burst-share']:
        later['burst-leave'] = 1 / settings['burst-length']
        later['burst-enter'] = (settings['burst-share'] / (
            1 - settings['burst-share'])) / settings['burst-length']
    if settings['reorder']:
        later['reorder-us'] = round(settings['reorder-hold'] / 1000)
    if settings['jitter']:
        later.update({'jitter': 'uniform',
                      'jitter-us': round(settings['jitter'] / 1000)})
    return always, later


def _seconds(ns):
    return f'{ns * NS:g} s' if ns >= 1e9 else f'{ns / 1e6:g} ms'


def refusal(run):
    """Why guests cannot carry this out, or None"""
    s = run.settings
    flows = n_flows(run)
    checks = [
        (s['topology'] in ('dumbbell', 'incast'),
         f'topology: {s["topology"]} cannot be built, dumbbell and incast '
         f'can'),
        (flows <= MAX_FLOWS,
         f'{flows} flows are more than guests can serve ({MAX_FLOWS})'),
        (len(set(s['rtt-extra'])) <= 1 or s['senders'] <= MAX_SENDING_GUESTS,
         f'rtt-extra: each sender is a guest, {s["senders"]} are more than '
         f'{MAX_SENDING_GUESTS}'),
        (s['rate'] <= MAX_BPS,
         f'rate: {s["rate"] / 1e6:g} Mbit/s are more than QEMU moves in time '
         f'({MAX_BPS / 1e6:g} Mbit/s)'),
        (s['rtt'] * NS >= MIN_RTT,
         f'rtt: QEMU\'s timers need at least {MIN_RTT * 1000:g} ms, not '
         f'{_seconds(s["rtt"])}'),
        (not s['interval'] or s['interval'] * NS >= MIN_INTERVAL,
         f'interval: {_seconds(s["interval"])} is too short, at least '
         f'{MIN_INTERVAL * 1000:g} ms'),
        (s['duration'] * NS <= MAX_SECONDS,
         f'duration: {_seconds(s["duration"])} is real time, at most '
         f'{MAX_SECONDS} s'),
        (s['mtu'] <= MAX_MTU and device_mtu(s) >= 256,
         f'mtu: 270 B to {MAX_MTU} B'),
        (len({flow['algorithm'] for flow in run.flows}) <= 1,
         'flows.algorithm: a device has one algorithm, all flows must have '
         'the same'),
        (all(flow['message'] <= MAX_MESSAGE for flow in run.flows),
         f'flows.message: at most {MAX_MESSAGE >> 20} MiB'),
    ]
    for is_possible, why in checks:
        if not is_possible:
            return f'{why}; a section [guests] of the file can give other ' \
                   f'values for guests'
    return None


def n_flows(run):
    return sum(flow['count'] * flow['per-sender'] for flow in run.flows)


def sending_guests(run):
    """How many guests send"""
    if len(set(run.settings['rtt-extra'])) > 1:
        return run.settings['senders']
    return 1


def is_steady(run):
    """Endless flows of equal messages that all start at once"""
    kinds = {(f['message'], f['depth'], f['start']) for f in run.flows}
    return len(kinds) == 1 and not any(
        f['messages'] or f['stop'] or f['stagger'] for f in run.flows)


def starts(run):
    """(start in ns, sender, group) per flow, in the simulator's order"""
    flows = []
    for group in run.flows:
        i = 0
        for sender in range(group['first'], group['first'] + group['count']):
            for _ in range(group['per-sender']):
                flows.append((group['start'] + i * group['stagger'], sender,
                              group))
                i += 1
    return flows


def path_of(settings):
    return Path(rate=settings['rate'], rtt=settings['rtt'] * NS,
                queue=settings['queue'], frame=frame_bytes(settings),
                nic=(settings['nic-rate'] / settings['rate']
                     if settings['rate'] else 0),
                jitter=settings['send-jitter'] * NS,
                extra=tuple(x * NS for x in settings['rtt-extra'])
                if len(set(settings['rtt-extra'])) > 1 else ())


def flow_row(at_us, flow, c, before, seconds):
    """A line of flows-LABEL.csv from a connection of qom-get qps"""
    return [f'{at_us:.3f}', flow, c['algorithm'], c['cwnd-bytes'],
            c.get('reference-bytes', 0), c.get('ssthresh-bytes', -1),
            c['pacing-bps'],
            round((c['delivered-bytes'] - before) * 8 / seconds)
            if seconds else '',
            c['inflight-bytes'], c['srtt-ns'] / 1000, c['min-rtt-ns'] / 1000,
            f'{c.get("utilisation", 0):.5f}', f'{c.get("alpha", 0):.5f}',
            c['delivered-bytes'], c['retransmits'], c['lost'], c['spurious'],
            c['probes'], c['rtos'], c['marks']]


def link_row(at_us, now, before):
    """A line of links-LABEL.csv from two readings of filter-netem"""
    passed = now['time-ns'] - before['time-ns']
    return [f'{at_us:.3f}', 0, now['queue-bytes'], now['queue-max'],
            now['arrivals'], now['drop-queue'],
            sum(now[k] for k in ('drop-loss', 'drop-burst', 'drop-listed',
                                 'drop-corrupt')),
            now['marks'], now['departed-bytes'],
            f'{(now["busy-ns"] - before["busy-ns"]) / passed:.5f}'
            if passed else '']
