# SPDX-License-Identifier: GPL-2.0-or-later
"""NFS over RDMA: knfsd in guest 1, mounted in guest 2."""

from storage import Counters, Log, storage_test, verified

SERVER = """set -e
modprobe nfsd
modprobe rpcrdma
mkdir -p /srv /var/lib/nfs/v4recovery /proc/fs/nfsd
mount -t tmpfs -o size=400m tmpfs /srv
mount -t nfsd nfsd /proc/fs/nfsd
: > /var/lib/nfs/etab
: > /var/lib/nfs/rmtab
echo '/srv *(rw,no_root_squash,no_subtree_check,fsid=0)' > /etc/exports
exportfs -r
rpc.mountd -N 3
rpc.nfsd -N 3 -G 10 --rdma=20049 4
echo Y > /proc/fs/nfsd/v4_end_grace
grep -q 'rdma 20049' /proc/fs/nfsd/portlist
"""
SERVER_OFF = """
rpc.nfsd 0
killall rpc.mountd
exportfs -au
umount /proc/fs/nfsd /srv
rmmod nfsd
"""


def mount(ctx):
    ctx[2].run("mkdir -p /mnt/nfs && mount.nfs %s:/ /mnt/nfs -o "
               "vers=4.2,proto=rdma,port=20049" % ctx[1].ip, 60)


def umount(ctx):
    ctx[2].run("umount /mnt/nfs", 30)


def tree(guest, where):
    """Names and checksums of the files below a directory."""
    return guest.run("cd %s && find . -type f | sort | xargs sha256sum"
                     % where, 120).out


@storage_test("nfs")
def nfs(ctx):
    log = Log(ctx)
    ctx[1].run(SERVER, 60)
    counters = Counters(ctx)
    mount(ctx)
    proto = ctx[2].run("grep ' /mnt/nfs ' /proc/mounts").out
    ctx.point("proto=rdma" in proto, "the mount is over RDMA", proto)
    verified(ctx, ctx[2], "--directory=/mnt/nfs --filename=data", "NFS")

    # A tree of files of all sizes, read again without what is cached.
    ctx[2].run("mkdir /mnt/nfs/tree && cd /usr/sbin && "
               "tar cf - . | tar xf - -C /mnt/nfs/tree", 120)
    umount(ctx)
    mount(ctx)
    want = tree(ctx[2], "/usr/sbin")
    ctx.point(len(want.splitlines()) > 5 and
              tree(ctx[2], "/mnt/nfs/tree") == want,
              "a tree reads back as it was written")
    ctx.point(tree(ctx[1], "/srv/tree") == want,
              "the server has the same tree")
    ctx[1].run("echo more >> /srv/tree/agent")
    ctx.point(tree(ctx[2], "/mnt/nfs/tree") != want,
              "a change at the server is seen")
    umount(ctx)
    counters.check({
        1: ["mr-fast-registrations", "mr-read-invalidates"],
        2: ["mr-fast-registrations", "mr-local-invalidates",
            "mr-remote-invalidates"]})
    ctx[1].run(SERVER_OFF, 60)
    log.check()
