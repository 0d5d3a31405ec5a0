#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: erdma-abi.h against the Linux driver's own header
"""Compares hw/erdma/erdma-abi.h with the driver's headers as pairs.ini says.

The headers come from Debian's linux-source package, never from here. Each
side is compiled into a program of its own that prints its values.
"""

import collections
import fnmatch
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / 'scripts'))
from tap import Tap  # noqa: E402

# What is taken from headers that do not compile outside the kernel.
EXCERPTS = [
    ('erdma_verbs.h', r'^#define ERDMA_MAX_(?:ORD|SEND_SGE|RECV_SGE|INLINE|'
                      r'INLINE_MTT_ENTRIES) .*$'),
    ('erdma_verbs.h', r'^#define ERDMA_MR_(?:TYPE|ACC|MTT)_\w+ .*$'),
    ('erdma_verbs.h', r'^enum erdma_qps_iwarp \{.*?^\};$'),
    ('erdma.h', r'^enum erdma_cc_alg \{.*?^\};$'),
]

Pair = collections.namedtuple('Pair', 'name theirs ours')


def read_pairs(text):
    """Returns (pairs, names of theirs that are covered, patterns)."""
    pairs = []
    covered = set()
    struct = None
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith('#'):
            continue
        section = re.fullmatch(r'\[(struct )?(.*)\]', line)
        if section:
            struct = section.group(2) if section.group(1) else None
            continue
        if ' ! ' in line:
            name = line.split(' ! ')[0]
            covered.add(f'{struct}.{name}' if struct else name)
            continue
        name, ours = line.split(' = ', 1)
        if not struct:
            theirs = name
            covered.add(name)
        elif name == 'sizeof':
            theirs = name = f'sizeof(struct {struct})'
        else:
            covered.add(f'{struct}.{name}')
            theirs = name = f'offsetof(struct {struct}, {name})'
        ours = re.sub(r'&(\w+)', r'A_\1', ours)
        ours = re.sub(r'\b([A-Z]\w+)\.(\w+)', r'R_\1_\2_MASK', ours)
        pairs.append(Pair(name, theirs, ours))
    return pairs, covered


def names_in(header):
    """Macros, enumerators, structs' members of the driver's header."""
    text = re.sub(r'/\*.*?\*/', '', header, flags=re.S)
    names = [name for name in re.findall(r'^#define (\w+)', text, re.M)
             if not name.startswith('__')]
    for body in re.findall(r'\benum\s*\w*\s*\{(.*?)\}', text, re.S):
        names += re.findall(r'(\w+)\s*(?:=[^,]*)?(?:,|$)', body.strip())
    for struct, body in re.findall(r'^struct (\w+) \{\n(.*?)^\};', text,
                                   re.S | re.M):
        for member in re.findall(r'(\w+)(?:\[\w*\])?;', body):
            if not re.fullmatch(r'rsvd\d*|padding', member):
                names.append(f'{struct}.{member}')
    return names


def is_covered(name, covered):
    if name in covered or f'struct {name.split(".")[0]}' in covered:
        return True
    return any('*' in pattern and fnmatch.fnmatchcase(name, pattern)
               for pattern in covered)


def values(expressions, preamble, flags, scratch, label):
    """Compiles and runs a program that prints the expressions' values."""
    source = pathlib.Path(scratch, label + '.c')
    lines = '\n'.join(f'    printf("%llu\\n", (unsigned long long)({text}));'
                      for text in expressions)
    source.write_text(f'{preamble}\n#include <stdio.h>\n#include <stddef.h>\n'
                      f'int main(void)\n{{\n{lines}\n    return 0;\n}}\n')
    program = source.with_suffix('')
    compiled = subprocess.run(
        ['gcc', '-std=gnu11', *flags, '-o', str(program), str(source)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False)
    if compiled.returncode:
        return None, compiled.stdout
    output = subprocess.run([str(program)], stdout=subprocess.PIPE, text=True,
                            check=True)
    return [int(word) for word in output.stdout.split()], ''


def script(name, *args):
    output = subprocess.run(['sh', str(ROOT / 'scripts' / name), *args],
                            stdout=subprocess.PIPE, text=True, check=False)
    if output.returncode:
        sys.exit(output.returncode)
    return output.stdout.splitlines()


def their_values(pairs, headers, scratch):
    preamble = ['#include <linux/types.h>', '#include "erdma_hw.h"']
    for name, pattern in EXCERPTS:
        found = re.findall(pattern, (headers / name).read_text(),
                           re.M | re.S if '{' in pattern else re.M)
        preamble += found
    return values([pair.theirs for pair in pairs], '\n'.join(preamble),
                  ['-I', str(HERE / 'shim'), '-I', str(headers)], scratch,
                  'theirs')


def our_values(pairs, qemu, scratch):
    return values([pair.ours for pair in pairs],
                  '#include "qemu/osdep.h"\n#include "erdma-abi.h"',
                  ['-I', str(ROOT / 'tests/shim'), '-I',
                   str(ROOT / 'hw/erdma'), '-isystem', str(qemu / 'include'),
                   *subprocess.run(['pkg-config', '--cflags', 'glib-2.0'],
                                   stdout=subprocess.PIPE, text=True,
                                   check=True).stdout.split()],
                  scratch, 'ours')


def compare(tap, pairs, theirs, ours):
    for pair, their, our in zip(pairs, theirs, ours):
        tap.point(their == our, f'{pair.name} = {pair.ours}',
                  f'theirs {their:#x}, ours {our:#x}')


def main():
    tap = Tap()
    text = (HERE / 'pairs.ini').read_text()
    pairs, covered = read_pairs(text)
    env = dict(line.split('=', 1) for line in script('standalone-env.sh'))
    headers = pathlib.Path(script('kernel-headers.sh')[-1])
    with tempfile.TemporaryDirectory(prefix='erdma-abi.') as scratch:
        theirs, problem = their_values(pairs, headers, scratch)
        if not tap.point(theirs is not None, "the driver's header compiles",
                         problem):
            return tap.done()
        ours, problem = our_values(pairs, pathlib.Path(env['QEMU_TREE']),
                                   scratch)
        if not tap.point(ours is not None, 'erdma-abi.h compiles', problem):
            return tap.done()
    compare(tap, pairs, theirs, ours)

    names = names_in((headers / 'erdma_hw.h').read_text())
    missing = [name for name in names if not is_covered(name, covered)]
    tap.point(len(names) > 300 and not missing,
              f'all {len(names)} names of erdma_hw.h are in pairs.ini',
              '\n'.join(missing))

    # The comparison itself must be able to fail.
    class Null:
        def write(self, _):
            pass

        def flush(self):
            pass
    probe = Tap(Null())
    compare(probe, pairs, theirs, [value + 1 for value in ours])
    tap.point(probe.failed == len(pairs),
              'each line would notice a value that is off by one')
    tap.point(not is_covered('ERDMA_NEW_THING', covered),
              'a new name in erdma_hw.h would be noticed')
    return tap.done()


if __name__ == '__main__':
    os.chdir(ROOT)
    sys.exit(main())
