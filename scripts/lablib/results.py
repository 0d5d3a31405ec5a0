# SPDX-License-Identifier: GPL-2.0-or-later
"""A directory of results, and what keeps it, and what it might cover, safe.

  experiment.conf  the file, byte for byte
  manifest.json    what was run, by what, when, with what hash; which files
                   here are the lab's
  results.json     every run, and the summary
  runs.csv         a row per run
  flows.csv        a row per flow of each run
  summary.csv, summary.md
                   a row per point, with confidence
  flow_summary.csv the same per flow
  series/          time series of each run
  plots/           PNG and SVG, and the gnuplot script that draws both

Nothing is written into a directory that holds anything else.  An earlier
directory of results is replaced only on demand, and then only those files
that its manifest lists are removed.  A script that was edited is kept under
another name.
"""

import datetime
import hashlib
import json
import os
import pathlib
import platform
import subprocess
import sys

from .errors import FAILED, USAGE, LabError

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAKER = 'erdma lab'
FORMAT = 1
PARTS = ['series', 'plots']


def _os_error(error):
    return LabError(f'{error.filename or ""}: {error.strerror}'.lstrip(': '),
                    FAILED)


def read_manifest(directory):
    """The manifest of an earlier run, or None."""
    try:
        manifest = json.loads((directory / 'manifest.json').read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(manifest, dict) or manifest.get('made_by') != MAKER:
        return None
    return manifest


def _hash(content):
    return hashlib.sha256(content).hexdigest()


def _keep_edited(path, known):
    """Moves a script out of the way that is not as the lab wrote it."""
    if path.is_file() and known and _hash(path.read_bytes()) != known:
        number = 1
        while (kept := path.with_name(f'{path.stem}.edited{number}'
                                      f'{path.suffix}')).exists():
            number += 1
        path.rename(kept)


def _remove_listed(directory, manifest):
    scripts = manifest.get('scripts', {})
    for name in filter(lambda n: isinstance(n, str),
                       manifest.get('files') or []):
        path = directory / name
        # A manifest is only a file: nothing outside of this directory.
        if directory.resolve() not in path.resolve().parents:
            continue
        _keep_edited(path, scripts.get(name))
        if path.is_file():
            path.unlink()
    for part in PARTS:
        try:
            (directory / part).rmdir()
        except OSError:
            pass        # not there, or something else lives there


def claim(directory, may_replace):
    """Makes the directory, empty of earlier results; refuses the rest."""
    try:
        if directory.is_dir() and any(directory.iterdir()):
            manifest = read_manifest(directory)
            if manifest is None:
                raise LabError(
                    f'{directory}: is not empty, and not results of '
                    f'"./erdma lab": give another with -o', USAGE)
            if not may_replace:
                raise LabError(
                    f'{directory}: has results already: give another with '
                    f'-o, or replace them with --replace', USAGE)
            _remove_listed(directory, manifest)
        directory.mkdir(parents=True, exist_ok=True)
        for part in PARTS:
            (directory / part).mkdir(exist_ok=True)
    except OSError as error:
        raise _os_error(error) from error


def _git(*args):
    try:
        result = subprocess.run(['git', '-C', str(ROOT), *args],
                                stdout=subprocess.PIPE, text=True,
                                stderr=subprocess.DEVNULL, check=False)
    except OSError:
        return None
    return result.stdout.strip() if result.returncode == 0 else None


def version():
    """What of this repository did the work, as far as it can be told."""
    return {'commit': _git('rev-parse', 'HEAD'),
            'changed': bool(_git('status', '--porcelain', '--', 'hw/erdma',
                                 'sim', 'scripts')),
            'python': platform.python_version(),
            'machine': platform.machine()}


def total_hash(results):
    """One hash of all traces, or None if a run has none."""
    if any(not result.get('hash') for result in results):
        return None
    lines = ''.join(f'{r["label"]} {r["hash"]}\n' for r in results)
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


class Directory:
    """Results being written."""

    def __init__(self, path, plan, backend):
        self.path = path
        self.manifest = {
            'made_by': MAKER, 'format': FORMAT, 'complete': False,
            'hash': None, 'backend': backend,
            'command': ['./erdma', 'lab', *sys.argv[1:]],
            'file': str(plan.path), 'replaced': plan.replacing,
            'seeds': sorted({run.seed for run in plan.runs}),
            'version': version(),
            'began': datetime.datetime.now(datetime.timezone.utc).isoformat(
                timespec='seconds'),
            'scripts': {},      # name -> SHA-256
            'files': ['manifest.json'],
        }

    def own(self, *names):
        """These files are the lab's: says so before they are made."""
        files = self.manifest['files']
        files += [name for name in names if name not in files]
        self._save()

    def _save(self):
        self._put('manifest.json', json.dumps(self.manifest, indent=2) + '\n')

    def _put(self, name, content):
        path = self.path / name
        try:
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                path.write_text(content)
        except OSError as error:
            raise _os_error(error) from error

    def write(self, name, content):
        self.own(name)
        self._put(name, content)

    def write_script(self, name, content):
        """Not over one that somebody edited"""
        scripts = self.manifest.setdefault('scripts', {})
        _keep_edited(self.path / name, scripts.get(name))
        scripts[name] = _hash(content.encode())
        self.write(name, content)

    def keep_experiment(self, content):
        self.manifest['file_sha256'] = _hash(content)
        self.write('experiment.conf', content)

    def finish(self, results):
        self.manifest['hash'] = total_hash(results)
        self.manifest['complete'] = True
        self._save()
        return self.manifest['hash']


class Again(Directory):
    """Results of an earlier run, to draw them once more."""

    def __init__(self, path):
        manifest = read_manifest(path)
        if manifest is None:
            raise LabError(f'{path}: no results of "./erdma lab"', USAGE)
        if not manifest.get('complete'):
            raise LabError(f'{path}: that run did not come to its end',
                           USAGE)
        self.path = path
        self.manifest = manifest
        try:
            self.results = json.loads((path / 'results.json').read_text())
        except (OSError, ValueError) as error:
            raise LabError(f'{path}/results.json: {error}', USAGE) from error
        os.makedirs(path / 'plots', exist_ok=True)
