# SPDX-License-Identifier: GPL-2.0-or-later
"""The drop-in of docs/compat.md, in a unit that may do little else."""

import pathlib
import re

from checks import LOG, tail, test
from guestlib import addons
from guestlib.programs import wait_listening

DOCS = pathlib.Path(__file__).resolve().parents[2] / 'docs' / 'compat.md'
UNIT = '/etc/systemd/system/bench.service'
PROGRAM = 'ib_write_bw'
SERVICE_LOG = '/var/log/bench/compat.log'
# 32 MiB are more than systemd lets a service lock by default.
SIZE = 1 << 24
SERVICE = f'''[Service]
Type=exec
ExecStart=/usr/bin/{PROGRAM} -s {SIZE} -n 8
User=user
Environment=ERDMA_COMPAT_VERBOSE=2
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
NoNewPrivileges=yes
DevicePolicy=closed
DeviceAllow=/dev/infiniband/uverbs0
DeviceAllow=/dev/infiniband/rdma_cm
StandardOutput=truncate:/var/tmp/bench.out
StandardError=inherit
'''


def drop_in():
    """As the page has it, but for the paths that are different here."""
    text = re.search(r'```ini\n(.*?)```', DOCS.read_text(), re.S).group(1)
    assert 'LD_PRELOAD=/usr/local/lib/' in text and 'NAME' in text, text
    return text.replace('/usr/local/lib/', '/usr/lib/').replace(
        'NAME', 'bench')


def put(guest, path, text):
    guest.run(f'mkdir -p {path.rpartition("/")[0]} && cat > {path}',
              stdin=text.encode())


def bench(ctx):
    """The client's result, and how the service ended."""
    systemctl = 'enter-systemd systemctl'
    ctx[1].run(f'{systemctl} daemon-reload && {systemctl} start bench', 60)
    wait_listening(ctx[1], PROGRAM)
    client = ctx[2].run(f'erdma-compat -l {LOG} {PROGRAM} -s {SIZE} -n 8 '
                        f'{ctx[1].ip}', 60, check=False, merge=True)
    ctx[1].wait_until(f'! {systemctl} -q is-active bench', 30, 'its end')
    shown = ctx[1].run(f'{systemctl} show bench -p Result '
                       '-p ExecMainStatus -p User -p ProtectSystem').out
    return client, shown


def run(ctx, guest):
    put(guest, f'{UNIT}.d/erdma.conf', drop_in())
    client, shown = bench(ctx)
    server = guest.run('cat /var/tmp/bench.out', check=False, merge=True).out
    told = f'{tail(client.out)}\n{shown}{tail(server)}'
    ctx.point(client.ok, 'the client', told)
    ctx.point('Result=success' in shown and 'ExecMainStatus=0' in shown and
              'User=user' in shown and 'ProtectSystem=strict' in shown,
              'the service', told)
    log = guest.run(f'cat {SERVICE_LOG}', check=False).out
    ctx.point('connected to QP' in log, 'the log of the drop-in', log)


@test('systemd')
def systemd(ctx):
    guest = ctx[1]
    addons.install(guest, addons.disks(['systemd'], '6.12'))
    manager = guest.start('enter-systemd start', 300, merge=True)
    try:
        guest.run('grep -q ^user: /etc/passwd 2> /dev/null || '
                  'echo user:x:1000:1000::/:/bin/sh >> /etc/passwd; '
                  'mkdir -p /var/log /var/tmp /home')
        put(guest, UNIT, SERVICE)
        guest.wait_until('enter-systemd systemctl -q is-active basic.target',
                         60, 'the system manager')
        run(ctx, guest)
    except Exception:
        ctx.tap.diag(tail(manager.output(), 30))
        raise
    finally:
        manager.kill()
