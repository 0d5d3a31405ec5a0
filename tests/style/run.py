#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: checkpatch, layering, shellcheck, licences
"""Checks of the sources that need no build."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'scripts'))
from guestlib import paths  # noqa: E402
from tap import Tap  # noqa: E402

SKIP_DIRS = {'.git', 'build', '__pycache__'}
C_NAMES = ('.c', '.h')
# Files whose format has no place for a comment, or that are nobody's work.
NO_SPDX = ('.json', '.list', '.txt', '.rst', '.md', '.png', '.svg', '.bin', '.csv')
NO_SPDX_NAMES = {'COPYING', 'LICENSE', 'MAINTAINERS', '.gitignore',
                 '.gitattributes', '.shellcheckrc', 'trace-events', '.mailmap'}
MAX_LINES = 700


def sources():
    """Every file of the repository, by path relative to it."""
    for directory, names, files in os.walk(ROOT):
        names[:] = sorted(set(names) - SKIP_DIRS)
        for name in sorted(files):
            path = pathlib.Path(directory, name)
            if (path.is_file() and not path.is_symlink()
                    and not name.endswith(('~', '.swp'))):
                yield path.relative_to(ROOT)


def first_lines(path, count=3):
    with open(ROOT / path, errors='replace') as file:
        return [file.readline() for _ in range(count)]


def check_licences(tap, files):
    bare = [str(path) for path in files
            if path.suffix not in NO_SPDX and path.name not in NO_SPDX_NAMES
            and not any('SPDX-License-Identifier: GPL-2.0-or-later' in line
                        for line in first_lines(path))]
    tap.point(not bare, 'every source names its licence', '\n'.join(bare))


def is_shell(path):
    return (path.suffix == '.sh' or not path.suffix and
            first_lines(path, 1)[0].startswith('#!/bin/sh'))


def qemu_tree():
    """The QEMU tree with checkpatch, made if need be."""
    output = subprocess.run(['sh', str(ROOT / 'scripts/standalone-env.sh')],
                            stdout=subprocess.PIPE, text=True, check=False)
    if output.returncode:
        sys.exit(output.returncode)
    return pathlib.Path(dict(line.split('=', 1) for line in
                             output.stdout.splitlines())['QEMU_TREE'])


# What checkpatch gets wrong: files, its message, the line it complains about.
OUTSIDE_QEMU = r'images/|guest-driver/|tests/(?!qtest/)|tools/'
MISTAKES = [
    # Ordinary programs: they return errno as it is, print as they like and
    # have no libqemuutil.
    (OUTSIDE_QEMU, 'return of an errno|printf format|qemu_strto', ''),
    # 1e-3
    ('', "spaces required around that '-'", r'\d[eE]-\d'),
    # a loop whose body is empty
    ('', 'suspect code indent', r'^\s*while \(.*\{$'),
]


def is_mistaken(complaint):
    path, number, message = complaint.split(':', 2)
    lines = (ROOT / path).read_text(errors='replace').splitlines()
    line = lines[int(number) - 1] if int(number) <= len(lines) else ''
    return any(re.match(where, path) and re.search(what, message)
               and re.search(text, line) for where, what, text in MISTAKES)


def digest(*parts):
    return hashlib.sha256(b'\0'.join(parts)).hexdigest()


class Seen:
    """Files that checkpatch has already found nothing in, by what they are
    and who looked.  A line that is lost or damaged costs a second look."""

    def __init__(self, checkpatch):
        self.file = pathlib.Path(paths.cache_dir()) / 'checkpatch-clean'
        # What is excused here is part of the judgement.
        self.judge = digest(checkpatch.read_bytes(),
                            pathlib.Path(__file__).read_bytes()).encode()
        try:
            self.known = set(self.file.read_text(errors='replace').split())
        except OSError:
            self.known = set()

    def key(self, path):
        return digest(self.judge, str(path).encode(),
                      (ROOT / path).read_bytes())

    def add(self, paths):
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with open(self.file, 'a') as out:
                out.writelines(self.key(path) + '\n' for path in paths)
        except OSError:
            pass


def check_c(tap, files):
    checkpatch = qemu_tree() / 'scripts' / 'checkpatch.pl'
    seen = Seen(checkpatch)
    new = [path for path in files if seen.key(path) not in seen.known]
    result = subprocess.run(
        ['perl', str(checkpatch), '--no-tree', '--terse', '-f',
         *map(str, new)], cwd=ROOT, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False) if new else None
    complaints = [line for line in (result.stdout if new else '').splitlines()
                  if (': ERROR: ' in line or ': WARNING: ' in line)
                  and not is_mistaken(line)]
    # 1: it complains, perhaps by mistake
    worked = not new or result.returncode in (0, 1)
    passed = tap.point(worked and not complaints,
                       f'checkpatch: {len(files)} C files',
                       '\n'.join(complaints) or
                       (result.stdout[-500:] if new else ''))
    if passed:
        seen.add(new)
    tap.diag(f'{len(files) - len(new)} were judged before')
    for argument, name in (('--self-test', 'the layering check can fail'),
                           (None, 'layering')):
        tap.command(name, [sys.executable,
                           str(ROOT / 'scripts/check-layering.py'),
                           *([argument] if argument else [])])
    long = [f'{path}: {count} lines' for path in files
            if (count := len((ROOT / path).read_text().splitlines())) >
            MAX_LINES]
    tap.point(not long, f'no C file above {MAX_LINES} lines',
              '\n'.join(long))


def check_qapi(tap):
    """QEMU 10.2's QAPI parser refuses what 10.0's lets pass."""
    wide = [f'{path.name}:{number}'
            for path in (ROOT / 'overlay').glob('*.json')
            for number, line in enumerate(path.read_text().splitlines(), 1)
            if line.startswith('#') and len(line) > 70]
    tap.point(not wide, 'QAPI documentation is 70 columns wide at most',
              '\n'.join(wide))


def check_python(tap, files):
    wrong = []
    for path in files:
        try:
            compile((ROOT / path).read_text(), str(path), 'exec')
        except (SyntaxError, ValueError) as error:
            wrong.append(f'{path}: {error}')
    tap.point(not wrong, f'python: {len(files)} files compile',
              '\n'.join(wrong))


def main():
    tap = Tap()
    files = list(sources())
    check_c(tap, [path for path in files if path.suffix in C_NAMES])
    shell = [str(path) for path in files if is_shell(path)]
    if shutil.which('shellcheck'):
        tap.command(f'shellcheck: {len(shell)} scripts',
                    ['shellcheck', '-x', *shell], cwd=ROOT)
    else:
        tap.skip('shellcheck', 'not installed')
    tap.command(f'sh -n: {len(shell)} scripts',
                ['sh', '-c', 'for f; do sh -n "$f" || exit 1; done', 'sh',
                 *shell], cwd=ROOT)
    check_python(tap, [path for path in files if path.suffix == '.py'])
    check_qapi(tap)
    check_licences(tap, files)
    return tap.done()


if __name__ == '__main__':
    sys.exit(main())
