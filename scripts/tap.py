# SPDX-License-Identifier: GPL-2.0-or-later
"""TAP, the test protocol that the suites below tests/ speak.

A suite prints "ok N - what" or "not ok N - what" for each point, "# text" to
explain, and "1..N" at the end. Tap writes that, TapReader reads it.
"""

import re
import subprocess
import sys


class Tap:
    """Writes the points of a suite."""

    def __init__(self, out=None):
        self.out = out or sys.stdout
        self.count = 0
        self.failed = 0

    def _print(self, text):
        print(text, file=self.out, flush=True)

    def diag(self, text):
        for line in str(text).rstrip().splitlines():
            self._print('# ' + line)

    def point(self, passed, name, why=''):
        """One point; why (text) is shown if it did not pass."""
        self.count += 1
        if passed:
            self._print(f'ok {self.count} - {name}')
        else:
            self.failed += 1
            self._print(f'not ok {self.count} - {name}')
            if why:
                self.diag(why)
        return passed

    def skip(self, name, reason):
        self.count += 1
        self._print(f'ok {self.count} - {name} # SKIP {reason}')

    def done(self):
        """Print the plan; returns the exit status."""
        self._print(f'1..{self.count}')
        return 1 if self.failed else 0

    def command(self, name, argv, **kwargs):
        """A point that passes if the command does; shows its output if not."""
        result = subprocess.run(argv, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True,
                                errors='replace', check=False, **kwargs)
        tail = '\n'.join(result.stdout.splitlines()[-40:])
        return self.point(result.returncode == 0, name,
                          f'{tail}\nexit status {result.returncode}: '
                          + ' '.join(map(str, argv)))

    def program(self, name, argv, timeout=300, **kwargs):
        """Runs a TAP program; its points become ours, prefixed with name."""
        reader = TapReader()
        try:
            result = subprocess.run(argv, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True,
                                    errors='replace', check=False,
                                    timeout=timeout, **kwargs)
            output = result.stdout
            status = result.returncode
        except subprocess.TimeoutExpired as error:
            output = error.stdout or b''
            if isinstance(output, bytes):
                output = output.decode(errors='replace')
            output += f'\nno end after {timeout} s'
            status = -1
        for line in output.splitlines():
            reader.feed(line)
        reader.end(status)
        for point in reader.points:
            if point.skipped:
                self.skip(f'{name}: {point.name}', point.reason)
            else:
                self.point(point.passed, f'{name}: {point.name}')
        if reader.failed:
            self.diag('\n'.join(output.splitlines()[-60:]))
        return not reader.failed


class Point:
    """One test point as read."""

    def __init__(self, passed, name, reason=None):
        self.passed = passed
        self.name = name
        self.reason = reason

    @property
    def skipped(self):
        return self.reason is not None


class TapReader:
    """Collects points from lines; nested (indented) ones do not count."""

    LINE = re.compile(r'(not ok|ok)\b\s*(\d+)?\s*(?:- ?)?(.*)$')
    DIRECTIVE = re.compile(r'(.*?)\s*#\s*(SKIP|TODO)\b[\s:]*(.*)$', re.I)

    def __init__(self):
        self.points = []
        self.plan = None
        self.bail = None

    def feed(self, line):
        """Takes a line; returns the point in it, or None."""
        line = line.rstrip('\n')
        if line.startswith('Bail out!'):
            self.bail = line
            return None
        plan = re.match(r'1\.\.(\d+)', line)
        if plan:
            self.plan = int(plan.group(1))
            return None
        match = self.LINE.match(line)
        if not match:
            return None
        passed = match.group(1) == 'ok'
        name = match.group(3)
        reason = None
        directive = self.DIRECTIVE.match(name)
        if directive:
            name = directive.group(1)
            if directive.group(2).upper() == 'SKIP' and passed:
                reason = directive.group(3)
            # There is no "expected failure" here: TODO does not excuse.
        point = Point(passed, name or f'point {match.group(2)}', reason)
        self.points.append(point)
        return point

    def end(self, status):
        """No more lines. What should be there and is not becomes a failure."""
        problem = None
        if self.bail:
            problem = self.bail
        elif self.plan is None:
            problem = f'stopped before its plan (exit status {status})'
        elif self.plan != len(self.points):
            problem = f'{self.plan} points planned, {len(self.points)} seen'
        elif status != 0 and not any(not p.passed for p in self.points):
            problem = f'exit status {status} without a failed point'
        if problem:
            self.points.append(Point(False, problem))
        return self.points[-1] if problem else None

    @property
    def passed(self):
        return sum(p.passed and not p.skipped for p in self.points)

    @property
    def failed(self):
        return sum(not p.passed for p in self.points)

    @property
    def skipped(self):
        return sum(p.skipped for p in self.points)
