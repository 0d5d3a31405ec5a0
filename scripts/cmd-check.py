#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: run the tests
"""usage: ./erdma check [-v] [SUITE...] [-- ARGUMENTS]

Runs the suites named, or all, and ends with "N passed, N failed". A suite is
tests/SUITE/run.sh or run.py and prints TAP; its output goes to
build/logs/check-SUITE.log. What a suite needs (QEMU, a guest image) it makes.

  -v            print every point, not only those that fail
  -l, --list    list the suites
  -- ARGUMENTS  passed on to each suite

Suites that wait for nothing, like "fuzz", run beside those with guests.
Suites marked "on demand" in the list run only when named; "compat",
"faults", "hotplug", "matrix", "migration" and "semantics" do more when named.
Exit codes: 0 all passed, 1 something failed, 2 wrong usage, 3 the machine
lacks something.
"""

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

from tap import TapReader

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / 'build' / 'logs'
# Quick ones first, so that a mistake is seen soon.
ORDER = ['style', 'cli', 'unit', 'abi', 'qtest', 'dissector']
# These run guests: the processors have nothing to do half of the time.
LAST = ['guest', 'semantics', 'matrix', 'hotplug', 'loss', 'migration',
        'faults', 'kernel']
# Suites marked "beside others" take what those leave, with this niceness.
PATIENCE = 10
SIGN_OF_LIFE = 60
LIMIT = int(os.environ.get('ERDMA_SUITE_LIMIT', 90 * 60))


class Suite:
    """A directory below tests/ that can be run."""

    def __init__(self, script):
        self.script = script
        self.name = script.parent.name
        head = script.read_text().splitlines()[:12]
        self.on_demand = '# on demand' in head
        self.is_patient = '# beside others' in head
        self.summary = next((line[len('# summary: '):] for line in head
                             if line.startswith('# summary: ')), '')

    def argv(self, args):
        if self.script.suffix == '.py':
            return [sys.executable, str(self.script), *args]
        return ['sh', str(self.script), *args]


def find_suites():
    """All suites by name, in the order in which they run."""
    found = {}
    for name in ('run.sh', 'run.py'):
        for script in (ROOT / 'tests').glob('*/' + name):
            found[script.parent.name] = Suite(script)
    rest = sorted(set(found) - set(ORDER) - set(LAST))
    return {name: found[name] for name in ORDER + rest + LAST
            if name in found}


def say(text):
    print(f'erdma: {text}', flush=True)


class Run:
    """One run of one suite."""

    def __init__(self, suite, args, verbose, is_named=False):
        self.suite = suite
        # A suite may do less when it is one of all.
        self.env = dict(os.environ, ERDMA_CHECK_NAMED='1' if is_named else '')
        self.args = args
        self.verbose = verbose
        self.reader = TapReader()
        self.log = LOGS / f'check-{suite.name}.log'
        self.last = ''
        self.over_limit = False
        self.status = None
        self.process = None
        self.thread = None

    def note(self, point):
        if not point.passed:
            print(f'  not ok: {point.name}', flush=True)
        elif self.verbose:
            mark = f' (skipped: {point.reason})' if point.skipped else ''
            print(f'  ok: {point.name}{mark}', flush=True)

    def watch(self, process, done):
        """Signs of life, and an end to a suite that has none."""
        began = time.monotonic()
        while not done.wait(SIGN_OF_LIFE):
            minutes = (time.monotonic() - began) / 60
            say(f'... {self.suite.name}: {minutes:.0f} min, '
                f'{len(self.reader.points)} points, {self.last[:60]}')
            if time.monotonic() - began > LIMIT:
                self.over_limit = True
                os.killpg(process.pid, signal.SIGTERM)

    def read(self, process, log):
        explaining = False
        for line in process.stdout:
            log.write(line)
            log.flush()
            point = self.reader.feed(line)
            if point:
                self.last = point.name
                self.note(point)
                explaining = not point.passed
            elif explaining and line.startswith('#'):
                print('    ' + line.rstrip(), flush=True)
            elif line.startswith('# progress: '):
                self.last = line[len('# progress: '):].strip()
            elif line.strip():
                explaining = False

    def begin(self):
        """Run it beside others, until end(), unless that was done."""
        if not self.thread:
            self.thread = threading.Thread(target=self.run, daemon=True)
            self.thread.start()

    def end(self):
        self.thread.join()

    def stop(self):
        """At once, from another thread"""
        if self.thread and self.thread.is_alive() and self.process:
            os.killpg(self.process.pid, signal.SIGTERM)

    def give_way(self):
        """To whatever else is running: sessions share by their autogroup."""
        try:
            os.setpriority(os.PRIO_PGRP, self.process.pid, PATIENCE)
            autogroup = pathlib.Path(f'/proc/{self.process.pid}/autogroup')
            autogroup.write_text(str(PATIENCE))
        except OSError:
            pass    # It is only a courtesy, and not every kernel knows it.

    def run(self):
        """The exit status of the suite is in self.status then."""
        say(f'check {self.suite.name} (log: {self.log})')
        began = time.monotonic()
        done = threading.Event()
        with open(self.log, 'w') as log, subprocess.Popen(
                self.suite.argv(self.args), stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                errors='replace', cwd=ROOT, start_new_session=True,
                env=self.env) as process:
            self.process = process
            if self.thread:
                self.give_way()
            watcher = threading.Thread(target=self.watch,
                                       args=(process, done), daemon=True)
            watcher.start()
            try:
                self.read(process, log)
                status = process.wait()
            except BaseException:
                os.killpg(process.pid, signal.SIGTERM)
                raise
            finally:
                done.set()
        problem = self.reader.end(status)
        if self.over_limit:
            print(f'  stopped after {LIMIT} s', flush=True)
        if problem:
            self.note(problem)
            tail = self.log.read_text(errors='replace').splitlines()[-12:]
            print('\n'.join('    | ' + line for line in tail), flush=True)
        reader = self.reader
        skipped = f', {reader.skipped} skipped' if reader.skipped else ''
        say(f'check {self.suite.name}: {reader.passed} passed, '
            f'{reader.failed} failed{skipped} '
            f'({time.monotonic() - began:.0f} s)')
        self.status = status


def parse(argv, suites):
    """Returns (verbose, suites to run, are they named, their arguments)."""
    verbose = False
    names = []
    args = []
    while argv:
        arg = argv.pop(0)
        if arg in ('-h', '--help'):
            print(__doc__.strip())
            sys.exit(0)
        elif arg in ('-l', '--list'):
            for suite in suites.values():
                extra = ' (on demand)' if suite.on_demand else ''
                print(f'{suite.name:10} {suite.summary}{extra}')
            sys.exit(0)
        elif arg == '-v':
            verbose = True
        elif arg == '--':
            args = argv
            break
        elif arg.startswith('-'):
            usage(f"unknown option '{arg}'")
        elif arg not in suites:
            usage(f"no suite '{arg}' (there are: {' '.join(suites)})")
        else:
            names.append(arg)
    is_named = bool(names)
    if not names:
        names = [s.name for s in suites.values() if not s.on_demand]
    return (verbose, [suites[name] for name in dict.fromkeys(names)],
            is_named, args)


def run_all(runs):
    """One after the other; patient ones beside those that run guests."""
    patient = [run for run in runs if run.suite.is_patient]
    others = [run for run in runs if not run.suite.is_patient]
    if not any(run.suite.name in LAST for run in others):
        others, patient = runs, []
    try:
        for run in others:
            if run.suite.name in LAST:
                for other in patient:
                    other.begin()
            run.run()
        for run in patient:
            run.end()
    except BaseException:
        for run in patient:
            run.stop()
        raise


def usage(text):
    print(f'erdma: check: {text} (see ./erdma check -h)', file=sys.stderr)
    sys.exit(2)


def stop(signum, _frame):
    sys.exit(128 + signum)


def main():
    verbose, chosen, is_named, args = parse(sys.argv[1:], find_suites())
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGHUP, stop)
    status = subprocess.call(['sh', str(ROOT / 'scripts/cmd-deps.sh'),
                              '--quiet'])
    if status:
        return status
    LOGS.mkdir(parents=True, exist_ok=True)
    runs = [Run(suite, args, verbose, is_named) for suite in chosen]
    try:
        run_all(runs)
    except KeyboardInterrupt:
        print('erdma: interrupted', file=sys.stderr)
        return 130
    passed = sum(run.reader.passed for run in runs)
    failed = sum(run.reader.failed for run in runs)
    skipped = sum(run.reader.skipped for run in runs)
    print(f'{passed} passed, {failed} failed'
          + (f', {skipped} skipped' if skipped else ''), flush=True)
    if not failed and passed:
        return 0
    return 3 if any(run.status == 3 for run in runs) else 1


if __name__ == '__main__':
    sys.exit(main())
