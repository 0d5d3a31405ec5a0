#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: the device in QEMU, driven without a guest
"""Builds QEMU and the qtests that meson.build lists, and runs them.

Arguments: --sanitize takes the sanitizer build; others are names of tests, or
of test paths within (erdma-regs-test:/x86_64/pci/...).
"""

import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'scripts'))
import standalone  # noqa: E402
from tap import Tap  # noqa: E402

TIMEOUT = 600
# Its devices are recorded; erdma-sim replays what they did.
RECORDED = 'erdma-loss-test'


def listed():
    """The names in meson.build, the one list of tests."""
    text = (ROOT / 'tests/qtest/meson.build').read_text()
    return [line.strip()[1:-2] for line in text.splitlines()
            if line.strip().startswith("'erdma-")
            and line.strip().endswith("-test',")]


def replay(tap, directory):
    """Outside of QEMU the transport does the same, to the last bit."""
    recordings = sorted(pathlib.Path(directory).glob('*.rec'))
    tap.point(len(recordings) > 0, 'devices are recorded')
    built = standalone.build_point(tap, 'gcc', ['sim/erdma-sim'])
    for path in recordings if built else []:
        result = subprocess.run([str(built / 'sim/erdma-sim'), '--replay',
                                 str(path)],
                                stdout=subprocess.PIPE, text=True,
                                stderr=subprocess.STDOUT, check=False)
        tap.point(result.returncode == 0 and
                  result.stdout.startswith('identical, '),
                  f'replay of {path.stem}', result.stdout)


def main():
    tap = Tap()
    args = sys.argv[1:]
    options = ['--sanitize'] if '--sanitize' in args else []
    wanted = [arg for arg in args if not arg.startswith('-')]
    build = ['sh', str(ROOT / 'scripts/cmd-build.sh')] + options
    # Its lines are no TAP: they end up in the log.
    status = subprocess.call([*build, '--qtests', '--quiet'])
    if status:
        if status != 3:
            tap.point(False, 'QEMU and the qtests build')
            tap.done()
        return status
    qemu = pathlib.Path(subprocess.check_output([*build, '--path'],
                                                text=True).strip())
    env = dict(os.environ, QTEST_QEMU_BINARY=str(qemu),
               QTEST_QEMU_IMG=str(qemu.parent / 'qemu-img'),
               ASAN_OPTIONS='detect_leaks=1',
               UBSAN_OPTIONS='halt_on_error=1:print_stacktrace=1')
    names = listed()
    for item in wanted or names:
        name, _, path = item.partition(':')
        if name not in names:
            tap.point(False, name, 'not in tests/qtest/meson.build')
            continue
        argv = [str(qemu.parent / 'tests/qtest' / name), '--tap', '-k']
        argv += ['-p', path] if path else []
        with tempfile.TemporaryDirectory() as directory:
            if name == RECORDED:
                env['ERDMA_RECORD'] = directory
            tap.program(name, argv, timeout=TIMEOUT, env=env, cwd=qemu.parent)
            if name == RECORDED:
                replay(tap, directory)
    return tap.done()


if __name__ == '__main__':
    sys.exit(main())
