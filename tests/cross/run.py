#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: engine and transport on big-endian and 32-bit processors
# on demand
"""Cross-compiles meson.build's tests and runs them under QEMU's user emulators.

usage: ./erdma check cross [-- ARCH...]     s390x, i386; both by default

Compilers and libraries are Debian's, in a tree of their own that is entered
with chroot.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'scripts'))
from tap import Tap  # noqa: E402

ARCHES = ('s390x', 'i386')
MAKER = ROOT / 'scripts' / 'make-cross-root.sh'
# Emulation is that much slower.
TIMEOUT_S = 1800


def cross_root():
    """The tree with the compilers, made if it is not in the cache."""
    key = hashlib.sha256(MAKER.read_bytes()).hexdigest()[:12]
    cache = ['sh', str(ROOT / 'scripts' / 'cache.sh')]
    made = subprocess.run(
        [*cache, 'make', f'cross-root-{key}',
         'making a tree with cross compilers (a few minutes)', 'sh',
         str(MAKER)], stdout=sys.stderr, check=False)
    if made.returncode:
        sys.exit(made.returncode)
    path = subprocess.run([*cache, 'path', f'cross-root-{key}'], check=True,
                          stdout=subprocess.PIPE, text=True).stdout.strip()
    return pathlib.Path(path) / 'root'


def qemu_tree():
    output = subprocess.run(
        ['sh', str(ROOT / 'scripts' / 'standalone-env.sh')], check=False,
        stdout=subprocess.PIPE, text=True)
    if output.returncode:
        sys.exit(output.returncode)
    return dict(line.split('=', 1)
                for line in output.stdout.splitlines())['QEMU_TREE']


class Chroot:
    """Runs commands in the tree, where the repository is /src and QEMU's tree
    /qemu; nobody else sees these mounts."""

    def __init__(self, tree, qemu):
        self.script = f"""tree={shlex.quote(str(tree))}
mount --bind {shlex.quote(str(ROOT))} "$tree/src"
mount --bind {shlex.quote(qemu)} "$tree/qemu"
mount --bind /dev "$tree/dev"
mount -t proc proc "$tree/proc"
exec chroot "$tree" env -i PATH=/usr/bin:/bin LC_ALL=C.UTF-8 "$@"
"""

    def argv(self, *command):
        return ['unshare', '--mount', 'sh', '-ec', self.script, 'sh',
                *command]


def check(tap, arch, chroot):
    name = f'build/standalone-cross-{arch}'
    where = ROOT / name
    where.mkdir(parents=True, exist_ok=True)
    setup = ['--reconfigure'] if (where / 'build.ninja').exists() else []
    if not (tap.command(f'{arch}: configure', chroot.argv(
            'meson', 'setup', f'/src/{name}', '/src', '-Dqemu_src=/qemu',
            '--cross-file', f'/src/tests/cross/{arch}.ini', *setup)) and
            tap.command(f'{arch}: build', chroot.argv(
                'ninja', '-C', f'/src/{name}'))):
        return
    tests = json.loads((where / 'meson-info/intro-tests.json').read_text())
    for test in tests:
        tap.program(f'{arch}: {test["name"]}',
                    chroot.argv(f'qemu-{arch}-static', *test['cmd']),
                    timeout=TIMEOUT_S)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('arches', nargs='*', metavar='ARCH')
    arches = parser.parse_args().arches or ARCHES
    for arch in arches:
        if arch not in ARCHES:
            parser.error(f'no such processor: {arch} ({", ".join(ARCHES)})')
    if os.geteuid():
        sys.exit('this needs root, for chroot')
    tap = Tap()
    chroot = Chroot(cross_root(), qemu_tree())
    for arch in arches:
        check(tap, arch, chroot)
    return tap.done()


if __name__ == '__main__':
    sys.exit(main())
