#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: engine and transport without QEMU, under ASan and UBSan
"""Builds meson.build's tests three ways and runs them.

Arguments, if any, are names of the tests to run (as in meson.build).
"""

import fcntl
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'scripts'))
from tap import Tap  # noqa: E402

BUILDS = [
    # name, compiler, meson options
    ('sanitize', 'gcc', ['-Db_sanitize=address,undefined', '-Db_lundef=false']),
    ('gcc', 'gcc', ['--buildtype=release', '-Db_ndebug=false']),
    ('clang', 'clang', []),
]


def tool_env(compiler):
    """The environment of a build, and the argv prefix that runs meson."""
    output = subprocess.run(['sh', str(ROOT / 'scripts/standalone-env.sh')],
                            stdout=subprocess.PIPE, text=True, check=False)
    if output.returncode:
        sys.exit(output.returncode)
    env = dict(os.environ)
    for line in output.stdout.splitlines():
        if '=' in line and line.split('=')[0].isupper():
            name, value = line.split('=', 1)
            env[name] = value
    env['CC'] = f'ccache {compiler}'
    return env, [env['MESON_PYTHON'], '-m', 'mesonbuild.mesonmain']


def build(tap, name, compiler, options, targets=()):
    """Returns the build directory, or None if it could not be made."""
    env, meson = tool_env(compiler)
    directory = ROOT / 'build' / f'standalone-{name}'
    setup = [*meson, 'setup', str(directory), str(ROOT),
             f'-Dqemu_src={env["QEMU_TREE"]}', *options]
    if (directory / 'build.ninja').exists():
        setup.append('--reconfigure')
    label = f'build with {compiler} {" ".join(options)}'.strip()
    result = subprocess.run(setup, stdout=subprocess.PIPE, env=env,
                            stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode:
        tap.point(False, label, result.stdout[-3000:])
        return None
    if not tap.command(label, ['ninja', '-C', str(directory), *targets],
                       env=env):
        return None
    return directory


def build_all(tap, names, targets=()):
    """Makes these builds, or targets of them; name -> directory or None."""
    (ROOT / 'build').mkdir(exist_ok=True)
    # ninja does not mind a second ninja in the same directory.
    with open(ROOT / 'build' / '.lock-standalone', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return {one[0]: build(tap, *one, targets) for one in BUILDS
                if one[0] in names}


def tests_in(directory):
    """name -> argv of each test that meson.build declares."""
    info = directory / 'meson-info' / 'intro-tests.json'
    return {test['name']: test['cmd']
            for test in json.loads(info.read_text())}


def main():
    tap = Tap()
    wanted = sys.argv[1:]
    directory = build_all(tap, [one[0] for one in BUILDS])['sanitize']
    if directory:
        env = dict(os.environ,
                   ASAN_OPTIONS='detect_leaks=1:abort_on_error=0',
                   UBSAN_OPTIONS='halt_on_error=1:print_stacktrace=1')
        tests = tests_in(directory)
        for name in wanted or tests:
            if name not in tests:
                tap.point(False, name, 'no such test in meson.build')
                continue
            tap.program(name, tests[name], env=env)
    return tap.done()


if __name__ == '__main__':
    sys.exit(main())
