#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: run experiments with congestion control
"""Experiments with congestion control: time series, tables, plots.

  ./erdma lab list                     the experiments that are ready
  ./erdma lab run FILE [KEY=VALUE...]  run one, once per value of each list
                                       and per seed
  ./erdma lab plot DIR                 draw the plots of DIR again
  ./erdma lab known-answers [...]      experiments whose results are known

FILE is a path, or the name of a ready experiment.  The keys of a file:
docs/congestion-control/simulator.md; results and plots:
docs/congestion-control/lab.md.
"""

import argparse
import os
import pathlib
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from arguments import Parser                                    # noqa: E402
from lablib import backends                                     # noqa: E402
from lablib.errors import LabError                              # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
READY = ROOT / 'experiments'


def say(text):
    print(f'erdma: lab: {text}', file=sys.stderr, flush=True)


def find_file(name):
    """A path, or a ready experiment by its name."""
    ready = READY / f'{name}.conf'
    if '/' not in name and not os.path.isfile(name) and ready.exists():
        return os.path.relpath(ready)
    return name


def list_ready():
    files = sorted(READY.glob('*.conf'))
    width = max(len(path.stem) for path in files)
    for path in files:
        title = next((line.split('=', 1)[1].strip()
                      for line in path.read_text().splitlines()
                      if line.replace(' ', '').startswith('title=')), '')
        print(f'{path.stem:{width}}  {title}')
    return 0


def run_file(args):
    from lablib import runner
    path = find_file(args.file)
    directory = pathlib.Path(args.o) if args.o else \
        ROOT / 'build' / 'lab' / pathlib.Path(path).stem
    return runner.run(path, args.replace_keys, args.backend, directory,
                      args.replace or not args.o, not args.no_plots,
                      args.jobs, say)


def plot_again(args):
    from lablib import runner
    return runner.plot(pathlib.Path(args.directory), say)


def positive(text):
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not 1 or more")
    return int(text)


def parse():
    parser = Parser(prog='./erdma lab', description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    subs = parser.add_subparsers(dest='command',
                                 metavar='list|run|plot|known-answers')
    subs.add_parser('list', help='the experiments that are ready')
    run = subs.add_parser(
        'run', help='run an experiment',
        description='Runs an experiment. Results go to build/lab/NAME and '
        'replace earlier ones there, or with -o to a directory that is empty '
        'or does not exist yet.')
    run.add_argument('file', metavar='FILE',
                     help='experiment file, or a name from "list"')
    run.add_argument('replace_keys', metavar='KEY=VALUE', nargs='*',
                     help='replaces what the file says; for all groups of '
                     'flows: flows.KEY=VALUE')
    group = run.add_mutually_exclusive_group()
    for name, (_, text) in backends.BACKENDS.items():
        group.add_argument('--' + name, dest='backend', const=name,
                           action='store_const', help=text)
    run.set_defaults(backend=next(iter(backends.BACKENDS)))
    run.add_argument('-o', metavar='DIR', help='directory of the results')
    run.add_argument('--replace', action='store_true',
                     help='replace earlier results in DIR')
    run.add_argument('-j', '--jobs', metavar='N', type=positive,
                     default=os.cpu_count() or 1,
                     help='runs at once (as many as processors)')
    run.add_argument('--no-plots', action='store_true',
                     help='do without gnuplot')
    # It has a parser of its own, see main().
    subs.add_parser('known-answers', add_help=False,
                    help='experiments whose results formulas predict')
    plot = subs.add_parser('plot', help='draw the plots of results again')
    plot.add_argument('directory', metavar='DIR')
    args, rest = parser.parse_known_args()
    keys = [word for word in rest if '=' in word and word[0] != '-']
    if args.command == 'run':
        args.replace_keys += keys       # after an option, too
        rest = [word for word in rest if word not in keys]
    if rest:
        parser.error('unrecognized arguments: ' + ' '.join(rest))
    if not args.command:
        parser.error('list, run, plot or known-answers?')
    return args


def main():
    try:
        if sys.argv[1:2] == ['known-answers']:
            from lablib import known
            return known.main(sys.argv[2:])
        args = parse()
        if args.command == 'list':
            return list_ready()
        return run_file(args) if args.command == 'run' else plot_again(args)
    except LabError as error:
        print(f'erdma: lab: {error}', file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        print('erdma: lab: interrupted', file=sys.stderr)
        return 130


if __name__ == '__main__':
    sys.exit(main())
