# SPDX-License-Identifier: GPL-2.0-or-later
"""Linked guests as a backend: the device, perftest, filter-netem, real time.

Endless flows that start together are queue pairs of one perftest per guest;
others are an RDMA write each (verbs-write), which can start when it should.
"""

import csv
import os
import time

from guestlib import paths
from guestlib.errors import GuestError
from guestlib.guests import GuestSet, Options

from . import guestplan
from .dumbbell import Dumbbell, Endless, Interval, Writes, FIRST_PORT
from .errors import LabError
from .series import FLOW_COLUMNS, LINK_COLUMNS


BUSY = 1.25         # times the round trip: the host does not keep up


class Series:
    """The time series of a run, written as they come."""

    def __init__(self, directory, label):
        self._files = []
        self._flows = self._open(directory, 'flows', label, FLOW_COLUMNS)
        self._links = self._open(directory, 'links', label, LINK_COLUMNS)
        self._last = None

    def _open(self, directory, what, label, columns):
        file = open(directory / f'{what}-{label}.csv', 'w', newline='')
        self._files.append(file)
        writer = csv.writer(file, lineterminator='\n')
        writer.writerow(columns)
        return writer

    def add(self, at, sample, numbers):
        """`numbers`: key of a connection -> number of its flow"""
        last, self._last = self._last, sample
        seconds = sample.time - last.time if last else 0
        for key, flow in numbers.items():
            if key in sample.flows:
                before = (last.flows if last else {}).get(key, {})
                self._flows.writerow(guestplan.flow_row(
                    at * 1e6, flow, sample.flows[key],
                    before.get('delivered-bytes', 0), seconds))
        self._links.writerow(guestplan.link_row(
            at * 1e6, sample.link, last.link if last else sample.link))

    def close(self):
        for file in self._files:
            file.close()


class Steady:
    """Flows that all start at once and have no end: perftest."""

    def __init__(self, net, run, losses):
        group = run.flows[0]
        per_guest = guestplan.n_flows(run) // len(net.senders)
        self._flows = Endless(net, per_guest, group['message'],
                              max(2, group['depth']))
        self._net, self._losses = net, losses

        #: key of a connection -> number of its flow
        self.numbers = {}

    def __enter__(self):
        self._flows.__enter__()
        # perftest has one more connection, which brings nothing across.
        self.numbers = {key: number for number, key in enumerate(sorted(
            key for key, c in self._net.sample().flows.items()
            if c['delivered-bytes'] >= self._flows.message))}
        self._net.link.set(**self._losses)
        return self

    def __exit__(self, *exc):
        self._flows.__exit__(*exc)

    def advance(self, at):
        """Nothing more to start or to stop"""

    def is_over(self):
        return False

    def completions(self):
        return {}


class Timed:
    """Flows with a start, or an end, of their own: verbs-write."""

    def __init__(self, net, run, losses):
        self._net, self._losses = net, losses
        self._many = guestplan.sending_guests(run) > 1
        self._plan = guestplan.starts(run)
        self._flows, self.numbers = [], {}
        self._started, self._stopped = set(), set()

    def __enter__(self):
        try:
            for number, (_, sender, group) in enumerate(self._plan):
                known = set(self._net.sample().flows)
                self._flows.append(Writes(
                    self._net, group['message'], group['messages'],
                    group['depth'], sender if self._many else 0,
                    FIRST_PORT + number))
                new = set(self._net.sample().flows) - known
                if len(new) != 1:
                    raise GuestError('another connection came in between')
                self.numbers[new.pop()] = number
        except BaseException:
            self.__exit__()
            raise
        self._net.link.set(**self._losses)
        return self

    def __exit__(self, *exc):
        for flow in self._flows:
            flow.close()

    def advance(self, at):
        """Start and stop what is due `at` seconds from the beginning;
        returns when the next is due, or None."""
        next_at = None
        for number, (start, _, group) in enumerate(self._plan):
            for due, done, act in (
                    (start, self._started, self._flows[number].go),
                    (group['stop'], self._stopped,
                     self._flows[number].stop)):
                if number in done or not (due or act ==
                                          self._flows[number].go):
                    continue
                if due * guestplan.NS <= at:
                    act()
                    done.add(number)
                else:
                    due_s = due * guestplan.NS
                    next_at = min(due_s, next_at or due_s)
        return next_at

    def is_over(self):
        return all(group['messages'] for _, _, group in self._plan) and \
            len(self._started) == len(self._plan) and \
            all(flow.has_ended() for flow in self._flows)

    def completions(self):
        """Of the flows that came to their end: number -> seconds"""
        found = {}
        for number, (_, _, group) in enumerate(self._plan):
            done = self._flows[number].done()
            if group['messages'] and len(done) == group['messages']:
                found[number] = done[-1]
        return found


class Backend:
    section = 'guests'
    max_jobs = 1

    def __init__(self):
        self._guests = self._net = None

    def prepare(self, plan, say):
        for run in plan.runs:
            why = guestplan.refusal(run)
            if why:
                raise LabError(f'{run.label}: {why}', 2)
        self._say = say
        try:
            # Here, and not with the first run: guests end with the thread
            # that started them.
            self._need(plan.runs[0])
        except GuestError as error:
            raise LabError(str(error)) from error

    def _need(self, run):
        """Guests for the run; a set stays as long as it fits."""
        n = 1 + guestplan.sending_guests(run)
        mtu = max(1500, guestplan.device_mtu(run.settings))
        if self._guests and (self._guests.options.n,
                             self._guests.options.mtu) == (n, mtu):
            return
        self.close()
        if not os.environ.get('ERDMA_QEMU'):
            paths.step('build')
        self._guests = GuestSet(
            Options(n=n, mtu=mtu, rdma='none', restrict=True),
            say=self._say,
            logdir=os.path.join(paths.BUILD, 'logs', 'lab'))
        self._guests.start()
        self._net = Dumbbell(self._guests)

    def run(self, run, directory, say):
        try:
            self._need(run)
            return self._run(run, directory)
        except GuestError as error:
            raise LabError(f'{run.label}: {error}') from error

    def _run(self, run, directory):
        always, losses = guestplan.bottleneck_options(run.settings)
        self._net.plug(**guestplan.device_properties(run.settings))
        self._net.connect(guestplan.path_of(run.settings), run.seed,
                          **always)
        series = Series(directory, run.label) if run.has_series() else None
        kind = Steady if guestplan.is_steady(run) else Timed
        try:
            with kind(self._net, run, losses) as flows:
                if run.settings['ack-loss']:
                    for guest in self._net.senders:
                        guest.netem('tx', loss=run.settings['ack-loss'])
                return self._watch(run, flows, series)
        finally:
            if series:
                series.close()

    def _watch(self, run, flows, series):
        """Samples until the run's end; its result"""
        duration = run.settings['duration'] * guestplan.NS
        warm_up = run.settings['warm-up'] * guestplan.NS
        interval = run.settings['interval'] * guestplan.NS
        began = time.monotonic()
        first, tick = None, 0
        while True:
            at = time.monotonic() - began
            due = flows.advance(at)
            is_last = at >= duration or flows.is_over()
            is_tick = interval and at >= tick * interval
            if is_last or is_tick or (first is None and at >= warm_up):
                sample = self._net.sample()
                at = sample.time - began
                if first is None and at >= warm_up:
                    first = sample
                if series and (is_tick or is_last):
                    series.add(at, sample, flows.numbers)
                    # A late one does not bring the next ones closer.
                    tick = int(at / interval) + 1
            if is_last:
                break
            wake = [duration, at + 0.05]
            wake += [tick * interval] if interval else []
            wake += [due] if due is not None else []
            time.sleep(max(0, min(wake) - (time.monotonic() - began)))
        return self._result(run, flows, first or sample, sample)

    def _warn(self, run, flows, last):
        """Says so if the machine was too busy for the numbers to count."""
        least = [last.flows[key]['min-rtt-ns'] * guestplan.NS
                 for key in flows.numbers if key in last.flows]
        extra = max(run.settings['rtt-extra'], default=0)
        want = (run.settings['rtt'] + extra) * guestplan.NS
        if least and max(least) > BUSY * want:
            self._say(f'warning: {run.label}: the smallest round trip was '
                      f'{max(least) * 1000:.1f} ms instead of '
                      f'{want * 1000:g} ms: this machine is too busy, or the '
                      f'rate too high for it')

    def _result(self, run, flows, first, last):
        self._warn(run, flows, last)
        numbers = flows.numbers
        interval = Interval(first, last, list(numbers))
        completions = flows.completions()
        link = interval.link
        return {
            'label': run.label, 'algorithm': run.algorithm,
            'point': run.point, 'seed': run.seed, 'hash': None,
            'bdp': run.bdp, 'measured_s': interval.seconds,
            'goodput_bps': sum(interval.payload) * 8,
            'jain': interval.jain,
            'links': [{
                'link': 0, 'utilisation': interval.utilisation,
                'queue_mean': interval.queue,
                'queue_max': last.link['queue-max'],
                'arrivals': link['arrivals'],
                'drop_queue': link['drop-queue'],
                'drop_loss': interval.lost - link['drop-queue'],
                'marks': link['marks'],
            }],
            'flows': [self._flow(key, number, first, last, interval,
                                 completions)
                      for key, number in numbers.items()],
        }

    @staticmethod
    def _flow(key, number, first, last, interval, completions):
        now = last.flows.get(key, {})
        before = first.flows.get(key, {})

        def count(name):
            if name not in now:
                return None
            return now[name] - before.get(name, 0)

        delivered = count('delivered-bytes')
        done = completions.get(number)
        return {
            'flow': number, 'algorithm': now.get('algorithm'),
            'goodput_bps': None if delivered is None else
            delivered * 8 / interval.seconds,
            'delivered': delivered, 'messages': None,
            'completion_us': -1 if done is None else done * 1e6,
            'sent': count('tx-packets'),
            **{name: count(name) for name in
               ('retransmits', 'lost', 'spurious', 'probes', 'rtos',
                'marks')},
            'failed': not now,      # its connection is gone
        }

    def close(self):
        if self._guests:
            self._guests.stop()
        self._guests = self._net = None
