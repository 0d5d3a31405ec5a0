#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""usage: check-layering.py [--self-test]

Checks who includes whom in hw/erdma: the table in docs/architecture.md. Each
file belongs to the first room below whose pattern fits its path, and may
include what the room allows; quoted and <> includes are alike. Engine and
transport are also kept away from clocks and sockets, which need no include.
"""

import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEVICE = ROOT / 'hw' / 'erdma'

PURE = ['qemu/osdep.h', 'qemu/bswap.h', 'qemu/queue.h', 'glib.h']
# Where the shell meets the engine, and what of the transport is for others:
# its types, and what an element of the network may do to a packet of ours.
DOORS = ['engine/engine.h', 'engine/fault.h', 'engine/inspect.h',
         'engine/port.h', 'engine/snapshot.h', 'xport/xport.h',
         'xport/snapshot.h', 'xport/link.h']

# (pattern, allowed includes, forbidden of these, not forbidden after all); OWN
# is a file of the same directory, named without it.
ROOMS = [
    ('erdma-abi.h', ['hw/registerfields.h'], [], []),
    ('xport/cc-*', ['qemu/osdep.h', 'cc.h', 'xport/cc.h', 'cc-*.h',
                    'xport/cc-*.h'], [], []),
    ('xport/cc.h', ['qemu/osdep.h', 'cc-*.h'], [], []),
    ('xport/*', PURE + ['OWN', 'xport/*.h'], [], []),
    ('engine/*', PURE + ['OWN', 'engine/*.h', 'erdma-abi.h', 'qemu/bitops.h',
                         'hw/registerfields.h', 'xport/xport.h',
                         'xport/snapshot.h'], [], []),
    ('netem/*', PURE + ['OWN', 'netem/*.h', 'math.h'], [], []),
    ('erdma-vmstate.c', ['*'], [], []),
    # A filter for any traffic: it knows packets of ours, not the device.
    ('filter-netem*', ['*'], ['erdma.h', 'erdma-abi.h', 'engine/*',
                              'xport/*'], ['xport/link.h']),
    ('*', ['*'], ['engine/*', 'xport/*'], DOORS),
]

# No clock, no socket, no thread, no file: time is an argument.
OUTSIDE = re.compile(
    r'\b(g_get_(monotonic|real)_time|clock_gettime|gettimeofday|time|'
    r'qemu_clock_get\w*|timer_\w+|socket|sendto|recvfrom|connect|'
    r'pthread_\w+|g_thread_\w+|fopen|open|g_random_\w+|rand|random)\s*\(')
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.M)
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"', re.S)


def fits(name, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def check_file(path, text, own):
    """Problems of one file. path is relative to hw/erdma; own are the names
    of the files in the same directory."""
    pattern, allowed, forbidden, doors = next(
        room for room in ROOMS if fnmatch.fnmatchcase(path, room[0]))
    problems = []
    includes = INCLUDE.findall(text)
    for name in includes:
        if name in own and 'OWN' in allowed:
            continue
        if (not fits(name, allowed) or
                fits(name, forbidden) and name not in doors):
            problems.append(f'{path}: may not include {name} '
                            f'(the rule for {pattern})')
    if path.endswith('.c') and includes[:1] != ['qemu/osdep.h']:
        problems.append(f'{path}: does not include qemu/osdep.h first')
    if path.startswith(('engine/', 'xport/', 'netem/')):
        for match in OUTSIDE.finditer(COMMENT.sub('', text)):
            problems.append(f'{path}: calls {match.group(1)}()')
    return problems


def check_tree():
    problems = []
    for file in sorted(DEVICE.rglob('*.[ch]')):
        own = {other.name for other in file.parent.iterdir()}
        problems += check_file(file.relative_to(DEVICE).as_posix(),
                               file.read_text(), own)
    return problems


def self_test():
    """Each rule must refuse what it is there for, and allow its opposite."""
    osdep = '#include "qemu/osdep.h"\n'
    cases = [
        # path, text behind osdep, number of problems
        ('xport/conn.c', '#include "qemu/queue.h"\n#include "conn.h"', 0),
        ('xport/conn.c', '#include "erdma-abi.h"', 1),
        ('xport/conn.c', '#include "engine/port.h"', 1),
        ('xport/conn.c', '#include "qemu/timer.h"', 1),
        ('xport/conn.c', '#include <sys/socket.h>', 1),
        ('xport/conn.c', '#include "trace.h"', 1),
        ('xport/conn.c', 'x = g_get_monotonic_time();', 1),
        ('xport/conn.c', '/* not time() */ f("time()");', 0),
        ('xport/cc-cubic.c', '#include "cc.h"', 0),
        ('xport/cc-cubic.c', '#include "conn.h"', 1),
        ('engine/qp.c', '#include "xport/xport.h"\n#include "qp.h"', 0),
        ('engine/qp.c', '#include "xport/conn.h"', 1),
        ('engine/qp.c', '#include "hw/pci/pci_device.h"', 1),
        ('engine/qp.c', '#include "qom/object.h"', 1),
        ('engine/qp.c', 'socket(1, 2, 3);', 1),
        ('erdma-pci.c', '#include "engine/engine.h"', 0),
        ('erdma-pci.c', '#include "engine/qp.h"', 1),
        ('erdma-pci.c', '#include "xport/conn.h"', 1),
        ('erdma-vmstate.c', '#include "xport/conn.h"', 0),
        ('filter-netem.c', '#include "erdma.h"', 1),
        ('filter-netem.c', '#include "engine/port.h"', 1),
        ('filter-netem.c', '#include "xport/link.h"', 0),
        ('netem/netem.c', '#include "netem/impair.h"', 0),
        ('netem/netem.c', '#include "net/net.h"', 1),
        ('netem/netem.c', '#include "xport/link.h"', 1),
    ]
    wrong = []
    own = {'conn.h', 'cc.h', 'qp.h', 'erdma.h'}
    for path, text, count in cases:
        found = check_file(path, osdep + text, own)
        if len(found) != count:
            wrong.append(f'{path}: {text!r}: {count} problems expected, '
                         f'found {found}')
    if check_file('erdma-abi.h', '#include "hw/registerfields.h"', own):
        wrong.append('erdma-abi.h: refuses hw/registerfields.h')
    if not check_file('erdma-abi.h', '#include "qemu/osdep.h"', own):
        wrong.append('erdma-abi.h: allows qemu/osdep.h')
    if not check_file('engine/qp.c', '#include "qp.h"', own):
        wrong.append('engine/qp.c: may do without qemu/osdep.h')
    return wrong


def main():
    if sys.argv[1:] not in ([], ['--self-test']):
        sys.exit(__doc__)
    problems = self_test() if sys.argv[1:] else check_tree()
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
