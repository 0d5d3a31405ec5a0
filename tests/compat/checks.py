# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of compat mode share: the guests, and running programs."""

import re
import time
import traceback
from dataclasses import dataclass
from typing import Callable

from guestlib import paths
from guestlib.errors import GuestError
from guestlib.guests import GuestSet, Options
from guestlib.programs import wait_listening

TESTS = []
# Bounds for programs that cannot connect: what compat mode itself allows,
# and as much again for a loaded machine.
FAIL_SECONDS = 60
LOG = '/tmp/compat.log'


@dataclass
class Test:
    name: str
    run: Callable
    is_short: bool


def test(name, short=False):
    """Registers a test; short: also one of the ordinary check."""
    def register(function):
        TESTS.append(Test(name, function, short))
        return function
    return register


class Context:
    """What a test gets: two guests, and the means to report."""

    def __init__(self, tap, guests, is_short):
        self.tap, self.guests, self.is_short = tap, guests, is_short
        self.name = ''

    def __getitem__(self, index):
        return self.guests[index]

    def point(self, passed, name, why=''):
        return self.tap.point(passed, f'{self.name}: {name}', why)

    def log(self, index):
        """What compat mode has said in a guest since the last time."""
        return self.guests[index].run(
            f'cat {LOG} 2>/dev/null; : > {LOG}').out

    def pair(self, server, client, timeout=60, options='', wait_for=None,
             server_ends=True):
        """Runs two programs in compat mode; their results.

        The server must listen on TCP before the client starts.
        """
        launcher = f'erdma-compat -v -l {LOG} {options}'
        daemon = self[1].start(f'{launcher} {server}', timeout + 20,
                               merge=True)
        try:
            wait_listening(self[1], wait_for or server)
            result = self[2].run(f'{launcher} {client}', timeout, check=False,
                                 merge=True)
            if not server_ends:
                daemon.kill()
            return daemon.wait(20), result
        finally:
            if daemon.running():
                daemon.kill()

    def expect_pair(self, server, client, **how):
        """Both must end with status 0; returns what the client wrote."""
        try:
            s, c = self.pair(server, client, **how)
        except GuestError as e:
            raise AssertionError(f'{e}\n{self.logs()}') from e
        assert c.ok and s.ok, (
            f'client: {c.status}: {tail(c.out)}\n'
            f'server: {s.status}: {tail(s.out)}\n{self.logs()}')
        return c.out

    def logs(self):
        return '\n'.join(f'log of guest{i}: {tail(self.log(i))}'
                         for i in (1, 2))

    def expect_clean(self):
        """Nothing is left of ended programs."""
        for guest in self.guests:
            end = time.monotonic() + 30
            while True:
                left = guest.run('rdma resource show').out
                if not re.search(r'(qp|cm_id|cq|mr|ctx) [1-9]', left):
                    break
                assert time.monotonic() < end, f'{guest.name}: {left}'
                time.sleep(0.2)


def tail(text, lines=12):
    return '\n'.join(text.strip().splitlines()[-lines:])


def cases(ctx, names, options='', timeout=100):
    """Cases of compat-check, a point each."""
    launcher = f'erdma-compat -v -l {LOG} {options}'
    daemon = ctx[1].start(f'{launcher} compat-check server', 600, merge=True)
    try:
        wait_listening(ctx[1], 'compat-check')
        for name in names:
            result = ctx[2].run(
                f'{launcher} compat-check client {ctx[1].ip} {name}', timeout,
                check=False, merge=True)
            ctx.point(result.ok, name, '' if result.ok else
                      f'{tail(result.out)}\nserver: '
                      f'{tail(daemon.output(), 4)}\n{ctx.logs()}')
    finally:
        daemon.kill()


def load():
    """Imports the tests, which register themselves."""
    # pylint: disable=import-outside-toplevel,unused-import
    import test_connect         # noqa: F401
    import test_container       # noqa: F401
    import test_errors          # noqa: F401
    import test_gloo            # noqa: F401
    import test_programs        # noqa: F401
    import test_pyverbs         # noqa: F401
    import test_systemd         # noqa: F401


def run_one(ctx, chosen):
    ctx.name = chosen.name
    began = time.monotonic()
    print(f'# progress: {chosen.name}', flush=True)
    try:
        chosen.run(ctx)
        ctx.expect_clean()
    except (GuestError, AssertionError) as e:
        ctx.tap.point(False, chosen.name, str(e) or traceback.format_exc())
    else:
        ctx.tap.point(True, chosen.name)
    print(f'# {chosen.name} took {time.monotonic() - began:.1f} s', flush=True)


def run(tap, names, is_short):
    chosen = [t for t in TESTS
              if (any(t.name.startswith(n) for n in names) if names
                  else t.is_short or not is_short)]
    guests = GuestSet(Options(n=2, restrict=True),
                      say=lambda text: tap.diag(text),
                      logdir=f'{paths.BUILD}/logs/compat')
    try:
        guests.start()
        ctx = Context(tap, guests, is_short)
        for one in chosen:
            run_one(ctx, one)
        bad = [f'{guest.name}: {line}' for guest in guests
               for line in guest.log_problems()]
        tap.point(not bad, 'kernel logs are clean', '\n'.join(bad[:30]))
    except GuestError as e:
        tap.point(False, 'guests', str(e))
    finally:
        guests.stop()


load()
