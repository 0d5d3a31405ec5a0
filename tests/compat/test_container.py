# SPDX-License-Identifier: GPL-2.0-or-later
"""A program in namespaces and a root of its own, as in a container."""

from checks import LOG, tail, test
from guestlib.errors import GuestError
from guestlib.programs import wait_listening

BOX = '/tmp/box'
# What docs/compat.md tells to hand to a container, and nothing else: two
# device nodes, the library, one variable. Its user is not root and may lock
# little memory.
MAKE = f'''set -e
mkdir -p {BOX}/usr {BOX}/proc {BOX}/sys {BOX}/tmp {BOX}/dev/infiniband {BOX}/etc
chmod 1777 {BOX}/tmp
for d in bin sbin lib lib64; do ln -s usr/$d {BOX}/$d; done
echo user:x:1000:1000::/:/bin/sh > {BOX}/etc/passwd
cp -r /etc/libibverbs.d {BOX}/etc/
mount -o bind /usr {BOX}/usr
mount -o bind,remount,ro /usr {BOX}/usr
mount -t sysfs -o ro sysfs {BOX}/sys
for d in null infiniband/uverbs0 infiniband/rdma_cm; do
    : > {BOX}/dev/$d
    mount -o bind /dev/$d {BOX}/dev/$d
done
'''
UNDO = f'''umount {BOX}/dev/null {BOX}/dev/infiniband/* {BOX}/sys {BOX}/usr
rm -r {BOX}'''


def in_box(command):
    return (f"ulimit -l 1024; LD_PRELOAD=/usr/lib/liberdma-compat.so "
            f"ERDMA_COMPAT_VERBOSE=2 exec unshare -m -p -i -u -f chroot {BOX} "
            f"/usr/bin/busybox su -m -s /bin/sh user -c 'exec {command}'")


@test('container')
def container(ctx):
    ctx[1].run(MAKE)
    command = 'ibv_rc_pingpong -g 0 -n 100 -s 4096 -c'
    daemon = ctx[1].start(in_box(command), 90, merge=True)
    try:
        wait_listening(ctx[1], 'ibv_rc_pingpong')
        result = ctx[2].run(f'erdma-compat -l {LOG} {command} {ctx[1].ip}', 60,
                            check=False, merge=True)
        ctx.point(result.ok, 'the program outside', tail(result.out))
        result = daemon.wait(20)
        ctx.point(result.ok and 'connected to QP' in result.out,
                  'the program inside', tail(result.out))
        inside = ctx[1].run(in_box('/usr/bin/busybox ls /dev /dev/infiniband'), 20,
                            check=False).out.split()
        ctx.point(sorted(inside) == ['/dev/infiniband:', '/dev:', 'infiniband',
                                     'null', 'rdma_cm', 'uverbs0'],
                  'it has two devices', ' '.join(inside))
    except GuestError as e:
        raise AssertionError(f'{e}\n{daemon.output()}') from e
    finally:
        daemon.kill()
        ctx[1].run(UNDO)
