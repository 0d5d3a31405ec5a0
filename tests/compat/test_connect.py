# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections that come up; compat-check opens libibverbs as NCCL does."""

import random

from checks import LOG, cases, test
from guestlib.programs import wait_listening


@test('connect', short=True)
def connect(ctx):
    names = ['basic', 'client-first', 'server-first']
    if not ctx.is_short:
        names += ['loopback', 'threads', 'fork']
    cases(ctx, names)


@test('events', short=True)
def events(ctx):
    """What a program sees, and does not see, when a QP is destroyed."""
    cases(ctx, ['late-event', 'next-qp', 'ends-later'], options='-e 20')


@test('reconnect')
def reconnect(ctx):
    cases(ctx, ['reconnect'])


@test('many')
def many(ctx):
    """256 QPs at each end, in opposite order."""
    cases(ctx, ['many'], timeout=150)


@test('processes')
def processes(ctx):
    """Several at a time share the ports."""
    launcher = f'erdma-compat -v -l {LOG}'
    daemon = ctx[1].start(f'{launcher} compat-check server', 200, merge=True)
    try:
        wait_listening(ctx[1], 'compat-check')
        clients = [ctx[2].start(f'{launcher} compat-check client {ctx[1].ip} '
                                'basic loopback basic', 120, merge=True)
                   for _ in range(5)]
        results = [client.wait() for client in clients]
        for result in results:
            assert result.ok, f'{result.out}\n{ctx.logs()}'
    finally:
        daemon.kill()


@test('loss')
def loss(ctx):
    """Every twentieth frame is lost, in both directions."""
    links = [ctx[1].netem(queue, loss=0.05) for queue in ('tx', 'rx')]
    try:
        cases(ctx, ['basic', 'threads', 'reconnect'], timeout=150,
              options='-t 30')
        drops = sum(link.drops() for link in links)
        ctx.point(drops > 20, 'the link did lose frames', str(drops))
    finally:
        ctx[1].no_netem()


@test('kill')
def kill(ctx):
    """Processes end at any moment; nothing is left, and others go on."""
    chance = random.Random(1)
    launcher = f'erdma-compat -q -l {LOG}'
    for _ in range(8):
        daemon = ctx[1].start(f'{launcher} compat-check server', 60,
                              merge=True)
        wait_listening(ctx[1], 'compat-check')
        client = ctx[2].start(f'{launcher} compat-check client {ctx[1].ip} '
                              'reconnect', 60, merge=True)
        victim = ctx[chance.choice((1, 2))]
        victim.run('sleep %.2f; pkill -9 compat-check || :'
                   % chance.uniform(0.1, 2.5))
        daemon.kill()
        client.kill()
        for guest in ctx.guests:
            guest.run('pkill -9 compat-check || :')
        client.wait()
        daemon.wait()
    ctx.expect_clean()
    cases(ctx, ['basic'])
