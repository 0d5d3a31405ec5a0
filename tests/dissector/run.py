#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: the Wireshark dissector against the transport's own packets
"""usage: tests/dissector/run.py [--no-qtest] [CAPTURE...]

Points, as TAP:

  * every packet type, encoded by hw/erdma/xport/wire.c, shows exactly the
    fields that went into it (samples.c says which);
  * some thousand damaged packets: the dissector and wire.c agree on which of
    them are malformed;
  * the UDP port preference and the heuristic;
  * real traffic: every datagram on the port is dissected, none is malformed.
    It is that of two devices in qtests, captured with filter-dump (not with
    --no-qtest), and the CAPTUREs named. tests/guest does the same with guests.
"""

import collections
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'scripts'))

from tap import Tap  # noqa: E402

SCRIPT = ROOT / 'tools' / 'wireshark' / 'erdma.lua'
PORT = 64791
OTHER_PORT = 5000
MUTATIONS = 3000

# Tests with two devices on a hub, whose traffic has every packet type, and
# every operation but SEND_INV: program -> its paths
QTESTS = {
    'erdma-data-test': ('sizes/two-user', 'atomics/two-user'),
    'erdma-error-test': ('refused-in-order/two', 'too-long/two', 'rnr/two',
                         'early-data/two'),
}
TYPES = {'1', '2', '3', '4', '5'}
OPS = {str(op) for op in range(1, 11) if op != 3}

# QEMU as the qtests start it, with a capture of the first device's port.
# Those that put frames of their own on the wire are left alone.
WRAPPER = """#!/bin/sh
case " $* " in
*local.type=fd*) ;;
*"id=port0,"*"id=port1,"*)
    set -- "$@" -object \\
        "filter-dump,id=dissect,netdev=port0,file={dir}/$$.pcap"
    ;;
esac
exec "{qemu}" "$@"
"""

# What the packet list says about some of the samples
INFO = {
    'send-imm': 'DATA 1002 SEND_IMM MSN=3 [0,1) FIRST LAST imm=0x11223344 '
                'len=1',
    'write-first': 'DATA 4294967295 WRITE MSN=5 [0,1000) FIRST '
                   'rkey=0x00012345 raddr=0x8899aabbccddeeff len=2500',
    'write-again': 'DATA 2 WRITE MSN=5 [1000,2000) [retransmission]',
    'read-resp': 'DATA 500 READ_RESP MSN=1 [0,64) FIRST LAST req=7 len=64',
    'ack-ranges-wrap': 'ACK 2 delivered=4+123 largest=2 1-2 '
                       '4294967280-4294967295',
    'term': 'TERM 78 MSN=9 delivered=8+7: right missing',
    'truncated': 'DATA 30 [malformed: length]',
    'version-2': 'version 2',
}

Frame = collections.namedtuple('Frame', 'name verdict fields')
Judged = collections.namedtuple('Judged', 'verdict on_port type op')


class Failure(Exception):
    """A step that everything else needs did not work."""


def run(argv, **kwargs):
    result = subprocess.run(argv, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True,
                            errors='replace', check=False, **kwargs)
    if result.returncode:
        raise Failure(f'{argv[0]}: exit status {result.returncode}\n'
                      f'{result.stderr[-2000:]}')
    return result


def as_nobody(directory, *paths):
    """Wireshark 4.4 runs no script of root's, nor does it tell. Returns the
    command prefix that makes us somebody else, and copies of @paths that he
    may read."""
    if os.geteuid():
        return [], paths
    os.chmod(directory, 0o755)
    copies = []
    for path in paths:
        copies.append(pathlib.Path(directory, path.name))
        shutil.copyfile(path, copies[-1])
        os.chmod(copies[-1], 0o644)
    return ['env', f'HOME={directory}', 'setpriv', '--reuid=65534',
            '--regid=65534', '--clear-groups'], copies


def tshark(capture, *args, prefs=()):
    """Standard output; anything that Lua complains about is a failure."""
    options = [arg for pref in prefs for arg in ('-o', pref)]
    with tempfile.TemporaryDirectory(prefix='erdma.') as directory:
        prefix, (script, copy) = as_nobody(directory, SCRIPT, capture)
        result = run([*prefix, 'tshark', '-n', '-X', f'lua_script:{script}',
                      *options, '-r', str(copy), *args])
    for line in result.stderr.splitlines():
        if 'lua' in line.lower():
            raise Failure(line)
    return result.stdout


def judge(capture):
    """What the dissector thinks of each frame, in one pass."""
    names = ('udp.dstport', 'icmp.type', 'erdma.type', 'erdma.op',
             'erdma.bad_version', 'erdma.malformed', '_ws.malformed')
    args = [arg for name in names for arg in ('-e', name)]
    frames = []
    for line in tshark(capture, '-T', 'fields', '-E', 'occurrence=f',
                       *args).splitlines():
        port, icmp, kind, op, version, *bad = line.split('\t')
        if any(bad):
            verdict = 'malformed'
        elif version:
            verdict = 'version'
        else:
            verdict = 'ok' if kind else 'foreign'
        frames.append(Judged(verdict, port == str(PORT) and not icmp, kind,
                             op))
    return frames


def build(directory):
    """Compiles samples.c with the transport's encoder."""
    env = run(['sh', str(ROOT / 'scripts' / 'standalone-env.sh')]).stdout
    tree = dict(line.split('=', 1) for line in env.splitlines()
                if '=' in line)['QEMU_TREE']
    glib = run(['pkg-config', '--cflags', '--libs', 'glib-2.0']).stdout.split()
    program = directory / 'samples'
    run(['gcc', '-std=gnu11', '-O1', '-g', '-Wall', '-Werror',
         '-I', str(ROOT / 'tests' / 'shim'), '-I', str(ROOT / 'hw' / 'erdma'),
         '-isystem', f'{tree}/include', '-o', str(program),
         str(ROOT / 'tests' / 'dissector' / 'samples.c'),
         str(ROOT / 'hw' / 'erdma' / 'xport' / 'wire.c'), *glib])
    return program


def read_expected(path):
    frames = []
    for line in path.read_text().splitlines():
        if line.startswith('frame '):
            _, name, verdict = line.split()
            frames.append(Frame(name, verdict, []))
        else:
            field, value = line.split('=')
            frames[-1].fields.append((field, int(value)))
    return frames


def field_value(name, show):
    """A shown value as the number that samples.c gives."""
    if show == '' or show in ('True', 'False'):
        return int(show != 'False')
    if name == 'erdma.payload':
        return len(show.replace(':', '')) // 2
    if name == 'erdma.response_time':
        return round(float(show.split()[0]) * 1000)
    return int(show, 0)


# Only frame something, or repeat what their parts say
GROUPS = {'erdma.flags', 'erdma.int', 'erdma.int.hop', 'erdma.msg',
          'erdma.ack.range'}


def read_details(text):
    """Per frame: None, or the (field, value) pairs of our protocol."""
    frames = []
    for packet in xml.etree.ElementTree.fromstring(text).iter('packet'):
        fields = None
        for proto in packet.iter('proto'):
            if proto.get('name') == 'erdma':
                fields = [(x.get('name'), field_value(x.get('name'),
                                                      x.get('show', '')))
                          for x in proto.iter('field')
                          if x.get('name').startswith('erdma.')
                          and x.get('name') not in GROUPS]
        frames.append(fields)
    return frames


def check_samples(tap, program, directory):
    capture, expected = directory / 'samples.pcap', directory / 'samples.txt'
    run([str(program), str(capture), str(expected)])
    frames = read_expected(expected)
    shown = read_details(tshark(capture, '-2', '-T', 'pdml'))
    info = tshark(capture, '-2', '-T', 'fields', '-e',
                  '_ws.col.Info').splitlines()
    judged = [frame.verdict for frame in judge(capture)]
    for i, frame in enumerate(frames):
        if frame.fields:
            missing = collections.Counter(frame.fields)
            extra = collections.Counter(shown[i] or [])
            tap.point(missing == extra, f'{frame.name}: fields',
                      f'missing: {sorted((missing - extra).elements())}\n'
                      f'extra: {sorted((extra - missing).elements())}')
        tap.point(judged[i] == frame.verdict,
                  f'{frame.name}: {frame.verdict}', f'got {judged[i]}')
        if frame.name in INFO:
            tap.point(info[i] == INFO[frame.name], f'{frame.name}: info',
                      f'got {info[i]!r}')
    left = set(INFO) - {frame.name for frame in frames}
    tap.point(not left, 'every line of the packet list was compared', left)
    return capture, frames


def check_ports(tap, capture, frames):
    """Which datagrams are ours with other preferences"""
    at = next(i for i, frame in enumerate(frames)
              if frame.name == 'other-port')
    off = ['--disable-heuristic', 'erdma_udp']
    found = tshark(capture, *off, '-Y', 'erdma', '-T', 'fields', '-e',
                   'frame.number').split()
    tap.point(found and str(at + 1) not in found,
              'without the heuristic: the port only')
    found = tshark(capture, *off, '-Y', 'erdma', '-T', 'fields', '-e',
                   'frame.number', prefs=[f'erdma.port:{OTHER_PORT}']).split()
    tap.point(found == [str(at + 1)], 'another port by preference', found)


def check_mutations(tap, program, directory):
    capture, expected = directory / 'mutated.pcap', directory / 'mutated.txt'
    run([str(program), str(capture), str(expected), str(MUTATIONS)])
    frames = read_expected(expected)
    judged = [frame.verdict for frame in judge(capture)]
    wrong = [f'frame {i + 1}: {frame.verdict} by wire.c, {judged[i]} here'
             for i, frame in enumerate(frames) if frame.verdict != judged[i]]
    tap.point(not wrong, f'{MUTATIONS} damaged packets: same verdicts',
              '\n'.join(wrong[:20]))
    count = collections.Counter(frame.verdict for frame in frames)
    tap.point(min(count[x] for x in ('ok', 'malformed', 'version')) > 20,
              'damaged packets of each verdict', count)


def qtest_capture(tap, directory):
    """One capture of all that the qtests sent from device to device."""
    build = ['sh', str(ROOT / 'scripts' / 'cmd-build.sh')]
    run([*build, '--qtests', '--quiet'])
    qemu = pathlib.Path(run([*build, '--path']).stdout.strip())
    # The name says which machines there are.
    wrapper = directory / 'qemu-system-x86_64'
    wrapper.write_text(WRAPPER.format(dir=directory, qemu=qemu))
    wrapper.chmod(0o755)
    env = dict(os.environ, QTEST_QEMU_BINARY=str(wrapper))
    for name, paths in QTESTS.items():
        argv = [str(qemu.parent / 'tests' / 'qtest' / name), '--tap', '-k']
        group = name.split('-')[1]
        for path in paths:
            argv += ['-p', f'/x86_64/erdma/{group}/{path}']
        tap.program(f'with a capture: {name}', argv, env=env, cwd=qemu.parent)
    parts = [str(path) for path in directory.glob('*.pcap')]
    whole = directory / 'qtest'
    run(['mergecap', '-a', '-F', 'pcap', '-w', str(whole), *parts])
    return whole


def check_capture(tap, capture, types, ops):
    """Real traffic: whatever is on our port is ours and well formed."""
    name = capture.name
    frames = judge(capture)
    at = [i + 1 for i, frame in enumerate(frames)
          if frame.on_port and frame.verdict == 'foreign']
    total = sum(frame.on_port for frame in frames)
    tap.point(total > 0 and not at,
              f'{name}: all frames on the port dissected',
              f'{len(at)} of {total} not: {at[:20]}')
    at = [i + 1 for i, frame in enumerate(frames)
          if frame.verdict in ('malformed', 'version')]
    tap.point(not at, f'{name}: none malformed', f'frames {at[:20]}')
    seen = {frame.type for frame in frames}
    tap.point(types <= seen, f'{name}: packet types', f'only {seen}')
    seen = {frame.op for frame in frames}
    tap.point(ops <= seen, f'{name}: operations', f'only {seen}')
    tap.diag(f'{name}: {total} datagrams')


def check_traffic(tap, args):
    for arg in args:
        if arg != '--no-qtest':
            check_capture(tap, pathlib.Path(arg), {'1', '2'}, set())
    if '--no-qtest' in args:
        return
    with tempfile.TemporaryDirectory(prefix='erdma.') as name:
        whole = qtest_capture(tap, pathlib.Path(name))
        check_capture(tap, whole, TYPES, OPS)


def main():
    tap = Tap()
    if not shutil.which('tshark'):
        print('erdma: missing tool: tshark (run ./erdma deps)',
              file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory(prefix='erdma.') as name:
        directory = pathlib.Path(name)
        try:
            program = build(directory)
            capture, frames = check_samples(tap, program, directory)
            check_ports(tap, capture, frames)
            check_mutations(tap, program, directory)
            check_traffic(tap, sys.argv[1:])
        except Failure as problem:
            tap.point(False, 'everything runs', problem)
    return tap.done()


if __name__ == '__main__':
    sys.exit(main())
