# SPDX-License-Identifier: GPL-2.0-or-later
"""gloo, a library for collective operations that connects QPs itself."""

from checks import LOG, tail, test
from guestlib import addons

REDIS_PORT = 6400
# Those that gloo's ibverbs transport has buffers for. Each one's first round
# is compared with what the sum must be.
ALGORITHMS = ('allreduce_ring', 'allreduce_ring_chunked',
              'allreduce_halving_doubling', 'allreduce_bcube')


def allreduce(ctx, algorithm):
    """The results of both ranks."""
    # Its ranks end one after the other, and the later one takes a flushed
    # receive for a failure: let the first one wait, on a loaded machine, too.
    command = (f'erdma-compat -v -l {LOG} -e 20 gloo-benchmark -s 2 -r %d '
               f'-h {ctx[1].ip} -p {REDIS_PORT} -x {algorithm} -t ibverbs '
               f'--ib-device erdma_0 --ib-index 1 --elements 20000 '
               f'--iteration-count 20 {algorithm}')
    ranks = [ctx[i + 1].start(command % i, 90, merge=True) for i in (0, 1)]
    return [rank.wait() for rank in ranks]


@test('gloo')
def gloo(ctx):
    for guest in ctx.guests:
        addons.install(guest, addons.disks(['apps'], '6.12'))
    redis = ctx[1].start(f'redis-server --bind {ctx[1].ip} --port '
                         f'{REDIS_PORT} --protected-mode no --save ""', 600,
                         merge=True)
    try:
        ctx[1].wait_until(f'ss -ltn | grep -q :{REDIS_PORT}', 60, 'redis')
        for algorithm in ALGORITHMS:
            results = allreduce(ctx, algorithm)
            ctx.point(all(r.ok for r in results) and
                      'verify=true' in results[0].out and
                      '80000' in results[0].out, algorithm,
                      '\n'.join(f'{r.status}: {tail(r.out)}'
                                for r in results) + ctx.logs())
    finally:
        redis.kill()
