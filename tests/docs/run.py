#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: the documents against the program
"""Points, as TAP:

  * docs/erdma.md lists exactly the device's own properties, with the
    defaults that -device erdma,help prints and the limits that QEMU names
    when it refuses a value;
  * every trace event pattern of that page matches an event;
  * every sub-command has its section in README.md, and none is invented;
  * every relative link between the documents leads somewhere;
  * every test that docs/security names exists, and so does every one that
    the tables of docs/compatibility name;
  * every reference from the code to a document, or to a section of one,
    leads somewhere, and docs/architecture.md knows each file of the device.

$ERDMA_QEMU names a QEMU to ask instead of the built one.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'scripts'))

from tap import Tap  # noqa: E402

PAGE = ROOT / 'docs' / 'erdma.md'
QUIET = ['-display', 'none', '-nodefaults', '-accel', 'qtest']
NIC = ['-netdev', 'hubport,id=n0,hubid=0',
       '-device', 'virtio-net-pci,netdev=n0,id=nic0,romfile=']


def qemu_path():
    if 'ERDMA_QEMU' in os.environ:
        return os.environ['ERDMA_QEMU']
    script = ['sh', str(ROOT / 'scripts' / 'cmd-build.sh')]
    status = subprocess.call([*script, '--quiet'], stdout=sys.stderr)
    if status:
        sys.exit(status)
    return subprocess.check_output([*script, '--path'], text=True).strip()


def run(argv, **kwargs):
    return subprocess.run(argv, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False,
                          timeout=120, **kwargs)


def table_rows(text, first):
    """The cells of tables whose header row starts with @first."""
    rows, inside = [], False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip('|').split('|')]
        if not line.startswith('|'):
            inside = False
        elif cells[0] == first:
            inside = True
        elif inside and not set(cells[0]) <= set('-: '):
            rows.append(cells)
    return rows


def documented():
    """Property -> (limits or None, default)"""
    found = {}
    for cells in table_rows(PAGE.read_text(), 'Property'):
        name = cells[0].strip('`')
        limits = cells[2] if len(cells) == 4 else None
        found[name] = (limits, cells[-1].strip('`'))
    return found


def generic_properties(qemu):
    """What every PCI device has"""
    script = [{'execute': 'qmp_capabilities'},
              {'execute': 'device-list-properties',
               'arguments': {'typename': 'virtio-net-pci'}},
              {'execute': 'qom-list-properties',
               'arguments': {'typename': 'pci-device'}},
              {'execute': 'quit'}]
    result = run([qemu, '-M', 'none', *QUIET, '-qmp', 'stdio'],
                 input='\n'.join(map(json.dumps, script)) + '\n')
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    lists = [a['return'] for a in answers if a.get('return')]
    return {entry['name'] for entry in lists[-1]}


def helped(qemu):
    """Property -> default or '' as -device erdma,help says"""
    generic = generic_properties(qemu)
    found = {}
    for line in run([qemu, '-device', 'erdma,help']).stdout.splitlines():
        match = re.match(r'  ([\w-]+)=<', line)
        if match and match.group(1) not in generic:
            default = re.search(r'\(default: ([^()]*)\)$', line)
            found[match.group(1)] = default.group(1) if default else ''
    return found


def check_properties(tap, qemu):
    page, device = documented(), helped(qemu)
    tap.point(len(device) > 20 and set(page) == set(device),
              'docs/erdma.md lists the properties of the device',
              f'only in the page: {sorted(set(page) - set(device))}\n'
              f'only in QEMU: {sorted(set(device) - set(page))}')
    for name in sorted(set(page) & set(device)):
        limits, default = page[name]
        tap.point(default == device[name], f'{name}: default',
                  f'page {default!r}, QEMU {device[name]!r}')
        if limits and limits != 'on, off':
            check_limits(tap, qemu, name, limits)


def check_limits(tap, qemu, name, limits):
    """Asks for values beyond; QEMU's answer names the limits."""
    low, high = limits.split(' to ')
    kind = float if '.' in low + high else int
    for value in ([kind(low) - 1] if kind(low) else []) + [kind(high) + 1]:
        result = run([qemu, '-M', 'pc', *QUIET, *NIC, '-S', '-device',
                      f'erdma,eni=nic0,{name}={value}'])
        tap.point(result.returncode == 1 and
                  (f'must be {low} to {high}\n' in result.stderr or
                   high == str(2**64 - 1)),
                  f'{name}: {value} is refused, {limits} named',
                  result.stderr)


def check_traces(tap):
    events = {line.split('(')[0] for line in
              (ROOT / 'hw/erdma/trace-events').read_text().splitlines()
              if line.startswith('erdma_')}
    text = PAGE.read_text()
    patterns = {p for row in table_rows(text, 'Events')
                for p in re.findall(r'`(erdma_[\w*]+)`', row[0])}
    patterns |= set(re.findall(r"-trace '?(erdma_[\w*]+)", text))
    bad = [p for p in sorted(patterns) if not any(
        re.fullmatch(p.replace('*', r'\w*'), event) for event in events)]
    tap.point(patterns and not bad, 'trace events of the page exist', bad)
    left = [event for event in sorted(events) if not any(
        re.fullmatch(p.replace('*', r'\w*'), event) for p in patterns)]
    tap.point(not left, 'no trace event is left out', left)


def check_commands(tap):
    names = {path.stem[len('cmd-'):]
             for path in (ROOT / 'scripts').glob('cmd-*')}
    text = (ROOT / 'README.md').read_text()
    listed = {re.match(r'[\w-]+', row[0].strip('`')).group()
              for row in table_rows(text, 'Sub-command')}
    tap.point(names == listed, 'README.md lists the sub-commands',
              f'missing: {sorted(names - listed)}, '
              f'too many: {sorted(listed - names)}')


def check_links(tap):
    pages = [*ROOT.glob('*.md'), *(ROOT / 'docs').rglob('*.md')]
    for page in sorted(pages):
        bad = []
        for target in re.findall(r'\]\(([^)\s]+)\)', page.read_text()):
            path = target.split('#')[0]
            if ':' not in path and path and \
                    not (page.parent / path).exists():
                bad.append(target)
        tap.point(not bad, f'links of {page.relative_to(ROOT)}', bad)


def check_tests(tap):
    """`/path/of/a/test`, `erdma-NAME-test` and "fuzzer `NAME`" """
    sources = '\n'.join(path.read_text() for path in
                        sorted((ROOT / 'tests').glob('*/*test*.c')))
    for page in sorted((ROOT / 'docs' / 'security').glob('*.md')):
        text = page.read_text()
        names = set(re.findall(r'`(/[a-z0-9/-]+)`', text))
        bad = [name for name in names if f'"{name}"' not in sources and
               f'"{name.split("/", 2)[2]}"' not in sources]
        bad += [name for name in re.findall(r'`(erdma-[a-z]+-test)`', text)
                if not (ROOT / f'tests/qtest/{name}.c').exists()]
        bad += [name for name in re.findall(r'fuzzer `(\w+)`', text)
                if not (ROOT / f'tests/fuzz/fuzz-{name}.c').exists()]
        tap.point(not bad, f'tests that {page.relative_to(ROOT)} names', bad)


def is_case(name, literals):
    """Is `name` what a test is called, or how that begins?  A program may
    put it together from a format and another string."""
    if any(text.startswith(name) for text in literals):
        return True
    for text in literals:
        parts = [re.escape(part) for part in text.split('%s')]
        found = len(parts) > 1 and re.fullmatch('([a-z0-9-]*)'.join(parts),
                                                name)
        if found and len(''.join(parts)) > 2 and all(
                part in literals for part in found.groups() if part):
            return True
    return False


def check_cases(tap):
    """`name` or `group/name` in the columns that name tests"""
    literals = set()
    for path in sorted((ROOT / 'tests').rglob('*.[ch]')) + \
            sorted((ROOT / 'tests').rglob('*.py')):
        literals |= set(re.findall(r'"([\w/%+-]+)"', path.read_text()))
    pages = {'limits.md': ('Limit', 4), 'semantics.md': ('What', 1)}
    for page, (header, first) in pages.items():
        rows = table_rows((ROOT / 'docs/compatibility' / page).read_text(),
                          header)
        names = {name for row in rows for cell in row[first:]
                 for name in re.findall(r'`([^`]+)`', cell)}
        names = {re.sub(r'(/N|\*)$', '', n) for n in names if n.islower() or
                 '/' in n}
        bad = [name for name in names if not is_case(name, literals)]
        tap.point(len(names) > 10 and not bad,
                  f'tests that docs/compatibility/{page} names',
                  '\n'.join(sorted(bad)))


def sections(path):
    """The titles in a .rst file"""
    lines = path.read_text().splitlines()
    return {above for above, line in zip(lines, lines[1:])
            if above and re.fullmatch(r'([-=~^])\1*', line)
            and len(line) >= len(above)}


def check_references(tap):
    # QEMU's own documents
    foreign = ('docs/devel/', 'docs/system/')
    bad, count = [], 0
    for path in sorted([*(ROOT / 'hw').rglob('*'),
                        *(ROOT / 'sim').rglob('*')]):
        if not path.is_file() or path.is_symlink():
            continue
        text = re.sub(r'\n \*\s*', ' ', path.read_text())
        for match in re.finditer(r'(docs/[\w./-]+\.(?:rst|md))'
                                 r'((?:, "[^"\n]+")*)', text):
            target = ROOT / match.group(1)
            if match.group(1).startswith(foreign):
                continue
            count += 1
            name = f'{path.relative_to(ROOT)}: {match.group(0)}'
            if not target.exists():
                bad.append(name)
            elif not set(re.findall(r'"([^"]+)"', match.group(2))) <= \
                    (sections(target) if target.suffix == '.rst' else set()):
                bad.append(name)
    tap.point(count > 20 and not bad, 'references from the code', bad)


def check_rooms(tap):
    """The file names in the architecture page's tables, globs included"""
    text = (ROOT / 'docs' / 'architecture.md').read_text()
    device = ROOT / 'hw' / 'erdma'
    known = {path for row in table_rows(text, 'File')
             for pattern in re.findall(r'`([\w./*-]+)`', row[0])
             for path in device.glob(pattern)}
    files = set(device.rglob('*.[ch]'))
    known &= set(device.rglob('*.*')) - set(device.rglob('meson.build'))
    tap.point(files == known, 'docs/architecture.md knows every file',
              '\n'.join(sorted(str(p.relative_to(device))
                               for p in files ^ known)))


def main():
    tap = Tap()
    check_commands(tap)
    check_links(tap)
    check_tests(tap)
    check_cases(tap)
    check_references(tap)
    check_rooms(tap)
    check_traces(tap)
    check_properties(tap, qemu_path())
    return tap.done()


if __name__ == '__main__':
    sys.exit(main())
