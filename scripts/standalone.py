# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds what meson.build describes: all that needs no QEMU to run."""

import fcntl
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# name -> compiler, meson options
BUILDS = {
    'sanitize': ('gcc', ['-Db_sanitize=address,undefined',
                         '-Db_lundef=false']),
    'gcc': ('gcc', ['--buildtype=release', '-Db_ndebug=false']),
    'clang': ('clang', []),
}


class BuildError(Exception):
    """str() is the end of the output; status as scripts/lib.sh has it."""

    def __init__(self, text, status=1):
        super().__init__(text)
        self.status = status


def directory(name):
    return ROOT / 'build' / f'standalone-{name}'


def _environment(compiler):
    """The environment of a build, and the argv prefix that runs meson."""
    output = subprocess.run(['sh', str(ROOT / 'scripts/standalone-env.sh')],
                            stdout=subprocess.PIPE, text=True, check=False)
    if output.returncode:
        raise BuildError('could not make what a build needs',
                         output.returncode)
    env = dict(os.environ)
    for line in output.stdout.splitlines():
        if '=' in line and line.split('=')[0].isupper():
            name, value = line.split('=', 1)
            env[name] = value
    env['CC'] = f'ccache {compiler}'
    return env, [env['MESON_PYTHON'], '-m', 'mesonbuild.mesonmain']


def _run(argv, env):
    result = subprocess.run(argv, stdout=subprocess.PIPE, env=env,
                            stderr=subprocess.STDOUT, text=True,
                            errors='replace', check=False)
    if result.returncode:
        raise BuildError('\n'.join(result.stdout.splitlines()[-40:]))


def _is_done(where, targets):
    """Is there nothing to do?  To ask ninja is quicker than meson."""
    script = where / 'build.ninja'
    if (not script.exists() or script.stat().st_mtime <
            pathlib.Path(__file__).stat().st_mtime):
        return False
    try:
        result = subprocess.run(['ninja', '-C', str(where), '-n', *targets],
                                stdout=subprocess.PIPE, text=True,
                                stderr=subprocess.STDOUT, check=False)
    except OSError:
        return False
    return result.returncode == 0 and 'no work to do' in result.stdout


def build(name, targets=(), compiler=None, options=None):
    """Makes a build, one of BUILDS or another; returns its directory."""
    if compiler is None:
        compiler, options = BUILDS[name]
    where = directory(name)
    if _is_done(where, targets):
        return where
    env, meson = _environment(compiler)
    setup = [*meson, 'setup', str(where), str(ROOT),
             f'-Dqemu_src={env["QEMU_TREE"]}', *options]
    if (where / 'build.ninja').exists():
        setup.append('--reconfigure')
    (ROOT / 'build').mkdir(exist_ok=True)
    # ninja does not mind a second ninja in the same directory.
    with open(ROOT / 'build' / '.lock-standalone', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _run(setup, env)
        _run(['ninja', '-C', str(where), *targets], env)
    return where


def build_point(tap, name, targets=(), compiler=None, options=None):
    """build() as a point of a suite; None, or the end, if it fails."""
    if compiler is None:
        compiler, options = BUILDS[name]
    label = f'build with {compiler} {" ".join(options)}'.strip()
    try:
        where = build(name, targets, compiler, options)
    except BuildError as error:
        if error.status != 1:
            sys.exit(error.status)
        tap.point(False, label, str(error))
        return None
    tap.point(True, label)
    return where
