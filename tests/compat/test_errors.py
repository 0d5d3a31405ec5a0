# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections that cannot come up, or end; strangers at the ports."""

import re
import time

from checks import FAIL_SECONDS, LOG, cases, tail, test
from guestlib.programs import wait_listening

PORT = 30608


@test('errors', short=True)
def errors(ctx):
    names = ['wrong-qpn', 'peer-dies']
    if not ctx.is_short:
        names += ['bad-path', 'mismatch', 'two-claims', 'vanishes',
                  'peer-destroys', 'reset', 'to-error']
    cases(ctx, names)


@test('never')
def never(ctx):
    """The other program stays in INIT."""
    cases(ctx, ['never'], options='-w 3')
    text = ctx.log(1) + ctx.log(2)
    assert 'did not go to RTR' in text, tail(text)


def one_sided(ctx, command, is_server):
    """One program has compat mode, and the other one has not."""
    launcher = f'erdma-compat -l {LOG} '
    server, client = (launcher, '') if is_server else ('', launcher)
    who = f'{command}, only the {"server" if is_server else "client"}'
    began = time.monotonic()
    daemon = ctx[1].start(f'{server}{command}', FAIL_SECONDS, merge=True)
    wait_listening(ctx[1], command)
    c = ctx[2].run(f'{client}{command} {ctx[1].ip}', FAIL_SECONDS,
                   check=False, merge=True)
    s = daemon.wait(FAIL_SECONDS)
    seconds = time.monotonic() - began
    for result, side in ((s, 'server'), (c, 'client')):
        ctx.point(not result.ok and not result.timed_out and
                  re.search('fail|unable|could|incompat', result.out, re.I),
                  f'{who}: the {side} says so, {seconds:.0f} s',
                  f'{result.status}: {tail(result.out, 40)}')


@test('one-sided', short=True)
def one_side(ctx):
    ctx.log(1)
    one_sided(ctx, 'ibv_rc_pingpong -g 0', True)
    log = ctx.log(1)
    ctx.point('is the peer in compat mode' in log, 'the log tells', log)
    one_sided(ctx, 'ibv_rc_pingpong -g 0', False)
    if not ctx.is_short:
        one_sided(ctx, 'ib_write_bw -x 0', True)
        one_sided(ctx, 'ib_write_bw -x 0', False)


@test('ports-taken')
def ports_taken(ctx):
    """One port, and another program has it."""
    holder = ctx[2].start(f'nc.openbsd -lk {ctx[2].ip} {PORT}', 60)
    try:
        ctx[2].wait_until(f'ss -ltn | grep -q :{PORT}', 10, 'nc listens')
        _, c = ctx.pair('compat-check server', 'compat-check client '
                        f'{ctx[1].ip} basic', options='-n 1',
                        wait_for='compat-check', server_ends=False)
        log = ctx.log(2)
        assert not c.ok and 'Address already in use' in c.out, tail(c.out)
        assert re.search(f'no port of {PORT} to {PORT} is free', log), log
    finally:
        holder.kill()


@test('noise')
def noise(ctx):
    """Strangers at a port, while programs connect."""
    daemon = ctx[1].start(f'erdma-compat -v -l {LOG} compat-check server',
                          120, merge=True)
    # Somebody must listen: a server that waits for its client.
    listener = ctx[1].start(f'erdma-compat -l {LOG} ibv_rc_pingpong -g 0', 120,
                            merge=True)
    try:
        wait_listening(ctx[1], 'compat-check')
        ctx[1].wait_until('rdma resource show cm_id | grep -q LISTEN', 10,
                          'somebody listens')
        strangers = [ctx[2].start(f'compat-check noise {ctx[1].ip} {PORT} '
                                  f'{seed} 60', 100, merge=True)
                     for seed in (1, 2)]
        result = ctx[2].run(f'erdma-compat -l {LOG} compat-check client '
                            f'{ctx[1].ip} basic loopback basic', 90,
                            check=False, merge=True)
        ctx.point(result.ok, 'programs connect', tail(result.out))
        for stranger in strangers:
            outcome = stranger.wait()
            ctx.point(outcome.ok and not outcome.out.startswith('0 '),
                      'strangers get answers', outcome.out)
        ctx.point(listener.running(), 'the listener lives',
                  tail(listener.output()))
        log = ctx.log(1)
        ctx.point('not compat mode' in log, 'the log tells', tail(log))
    finally:
        daemon.kill()
        listener.kill()
