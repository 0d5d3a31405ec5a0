# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's programs, which know nothing of compat mode."""

from checks import LOG, tail, test
from guestlib.errors import GuestError
from guestlib.programs import (perftest_bandwidth, perftest_latency, run_pair)

SHORT_PERFTESTS = [
    ('ib_write_bw', '-q 4 -n 200'), ('ib_send_lat', '-e -n 100'),
    ('ib_atomic_lat', '-n 100'),
]
PERFTESTS = SHORT_PERFTESTS + [
    ('ib_write_bw', '-n 500'), ('ib_write_bw', '-b -n 300'),
    ('ib_write_bw', '-q 16 -n 100'), ('ib_write_lat', '-n 100'),
    ('ib_read_bw', '-n 500'), ('ib_read_bw', '-b -n 300'),
    ('ib_read_bw', '-q 16 -n 100'), ('ib_read_lat', '-n 100'),
    ('ib_send_bw', '-n 500'), ('ib_send_bw', '-b -n 300'),
    ('ib_send_bw', '-q 16 -n 100'), ('ib_send_bw', '-e -n 300'),
    ('ib_send_bw', '-b -e -q 16 -n 100'), ('ib_send_lat', '-n 100'),
    ('ib_read_lat', '-e -n 100'), ('ib_read_bw', '-e -n 300'),
    ('ib_atomic_bw', '-n 300'), ('ib_atomic_bw', '-A CMP_AND_SWAP -n 300'),
    ('ib_atomic_bw', '-q 16 -n 100'),
]


@test('pingpong', short=True)
def pingpong(ctx):
    out = ctx.expect_pair('ibv_rc_pingpong -g 0 -n 200',
                          f'ibv_rc_pingpong -g 0 -n 200 {ctx[1].ip}',
                          wait_for='ibv_rc_pingpong')
    assert '200 iters' in out, tail(out)
    if not ctx.is_short:
        for options in ('-e -n 200 -g 1', '-s 65536 -n 50 -g 1'):
            ctx.expect_pair(f'ibv_rc_pingpong {options}',
                            f'ibv_rc_pingpong {options} {ctx[1].ip}',
                            wait_for='ibv_rc_pingpong')


@test('perftest', short=True)
def perftest(ctx):
    """Without -R: perftest connects its QPs itself."""
    for tool, options in SHORT_PERFTESTS if ctx.is_short else PERFTESTS:
        command = f'{tool} {options}'
        try:
            out = ctx.expect_pair(command, f'{command} {ctx[1].ip}',
                                  timeout=90, wait_for=tool)
            figure = (perftest_latency if '_lat' in tool else
                      perftest_bandwidth)(out)
            ctx.point(figure > 0, command, out)
        except (AssertionError, GuestError) as e:
            ctx.point(False, command, str(e))


@test('rdma-cm')
def rdma_cm(ctx):
    """Programs that use RDMA_CM go on to do so."""
    launcher = f'erdma-compat -l {LOG}'
    for server, client in (
            ('rping -s -C 20', 'rping -c -a {ip} -C 20'),
            ('ib_send_bw -R -n 200', 'ib_send_bw -R -n 200 {ip}'),
            ('rdma_server', 'rdma_client -s {ip}'),
            ('ucmatose', 'ucmatose -s {ip}')):
        outcome = run_pair(ctx[1], ctx[2],
                           f'LD_PRELOAD=/usr/lib/liberdma-compat.so {server}',
                           f'{launcher} {client}'.format(ip=ctx[1].ip), 60)
        ctx.point(not outcome.problem, server, outcome.problem)


@test('invisible')
def invisible(ctx):
    """Other devices, and programs without any, see no difference."""
    guest = ctx[1]
    guest.add_soft_rdma('siw')
    try:
        plain = guest.run('ibv_devinfo -v -d siw0').out
        compat = guest.run('erdma-compat ibv_devinfo -v -d siw0').out
        ctx.point(plain == compat and 'siw0' in plain, 'siw', compat)
    finally:
        guest.del_soft_rdma('siw')
    plain = guest.run('ibv_devinfo -v -d erdma_0').out
    compat = guest.run('erdma-compat ibv_devinfo -v -d erdma_0').out
    ctx.point('::ffff:10.9.0.1' in compat and '::ffff' not in plain,
              'a GID that is the address', compat)
    ctx.point(guest.run('erdma-compat sh -c "echo a | cat; exit 7"',
                        check=False).status == 7, 'exit status')
    for options in ('', '-p 0 ls', '-n 65 ls', '-t x ls', '--bad ls', '-p',
                    '-p 65535 -n 16 ls', '-l /no/dir ls',
                    '--library /no/file ls'):
        result = guest.run(f'erdma-compat {options}', check=False)
        ctx.point(result.status == 2 and result.err.strip(),
                  f'launcher refuses "{options}"', repr(result))
