#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: each option of -device erdma, right and wrong
"""Starts QEMU once per case without a guest.

A wrong option must end QEMU with exit status 1 and one line that names the
property, its value and what is allowed; device_add must refuse the same and
leave the machine running. No case may crash QEMU.
"""

import itertools
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / 'scripts'))

from tap import Tap  # noqa: E402

LIMIT = 60
MAC = '52:54:00:00:00:01'
BASE = ['-accel', 'qtest', '-display', 'none', '-nodefaults',
        '-netdev', 'hubport,id=n0,hubid=0', '-netdev', 'hubport,id=n1,hubid=0',
        '-device', f'virtio-net-pci,netdev=n0,mac={MAC},id=nic0,romfile=']

# options of a second device beside "eni=nic0" -> what QEMU has to say
VALUES = {
    'vectors=0': "property 'vectors' is 0, must be 1 to 32",
    'vectors=33': "property 'vectors' is 33, must be 1 to 32",
    'vectors=many': "expects",
    'mtu=255': "property 'mtu' is 255, must be 0 or 256 to 65535",
    'mtu=65536': "property 'mtu' is 65536, must be 0 to 65535",
    'max-qp=1024': "property 'max-qp' is 1024, must be a multiple of 1024 "
                   "less 1, 1023 to 524287",
    'max-qp=0': "property 'max-qp' is 0, must be 1023 to 524287",
    'max-cqe=1000': "property 'max-cqe' is 1000, must be a power of two",
    'max-cqe=2097152': "property 'max-cqe' is 2097152, must be 64 to 1048576",
    'max-recv-wr=100': "property 'max-recv-wr' is 100, must be a power of two",
    'max-recv-wr=65536': "must be 64 to 32768",
    'max-mr-size=3G': "property 'max-mr-size' is 3221225472, must be a power",
    'max-mr-size=128G': "must be 4096 to 68719476736",
    'ext-db-pages=2': "property 'ext-db-pages' is 2, must be 3 to 65414",
    'udp-port=0': "property 'udp-port' is 0, must be 1 to 65535",
    'udp-port=65536': "property 'udp-port' is 65536, must be 1 to 65535",
    'cc=bbr': "property 'cc' is 'bbr', must be one of newreno, cubic, "
              "hpcc-rtt, hpcc-ecn, hpcc-int, none\n",
    'firmware-version=1.2.3': "property 'firmware-version' is '1.2.3', must "
                              "be 0.MINOR.PATCH",
    'firmware-version=0.2.65536': "numbers up to 65535",
    'firmware-version=0.2.34x': "must be 0.MINOR.PATCH",
    'profile=huge': "property 'profile' is 'huge', must be one of small, "
                    "large\n",
    'record=/nonexistent/hca.rec': "property 'record' is "
        "'/nonexistent/hca.rec', must be a file that can be written: No such",
    'retries=0': "property 'retries' is 0, must be 1 to 200",
    'ack-every=0': "property 'ack-every' is 0, must be 1 to 1000",
    'ack-delay-us=1000001': "must be 0 to 1000000",
    'rto-initial-us=1': "property 'rto-initial-us' is 1, must be 1000 to",
    'rto-min-us=99999999999': "property 'rto-min-us' is 99999999999, must be",
    'rto-max-us=1': "property 'rto-max-us' is 1, must be",
    'rto-min-us=20000,rto-max-us=10000':
        "property 'rto-min-us' is 20000, must be at most rto-max-us (10000)",
    'rnr-timeout-ms=0': "property 'rnr-timeout-ms' is 0, must be",
    'initial-window=2G': "property 'initial-window' is 2147483648, must be",
    'rx-buffer=1': "property 'rx-buffer' is 1, must be",
    'pacing-quantum-us=0': "property 'pacing-quantum-us' is 0, must be",
    'eta=1.5': "property 'eta' is 1.5, must be 0.01 to 1\n",
    'eta=0': "property 'eta' is 0, must be 0.01 to 1\n",
    'eta=high': "number",
    'delta=0': "property 'delta' is 0, must be 0.001 to 10\n",
    'delta=11': "property 'delta' is 11, must be 0.001 to 10\n",
    'ecn-beta=1.01': "property 'ecn-beta' is 1.01, must be 0 to 1\n",
    'ecn-beta=nan': "number",
    'line-rate=0': "property 'line-rate' is 0, must be 1000000 to "
                   "1000000000000\n",
    'line-rate=10G': "expects",
    'base-rtt-us=10000001': "property 'base-rtt-us' is 10000001, must be 0 "
                            "to 10000000\n",
    'max-stage=1001': "property 'max-stage' is 1001, must be 0 to 1000\n",
    'max-stage-ecn=1001': "property 'max-stage-ecn' is 1001, must be 0 to",
    'ecn-probe=1': "expects 'on' or 'off'",
    'w-ai=2G': "property 'w-ai' is 2147483648, must be 0 to 1073741824\n",
    'n-flows=0': "property 'n-flows' is 0, must be 1 to 1000000\n",
    'fast-convergence=1': "expects 'on' or 'off'",
    'go-back-n=1': "expects 'on' or 'off'",
    'reordering-threshold=0': "property 'reordering-threshold' is 0, must "
                              "be 1 to 8\n",
    'reordering-threshold=9': "must be 1 to 8\n",
    'int=narrow': "property 'int' is 'narrow', must be one of wide, "
                  "compact, off\n",
    'int-hops=0': "property 'int-hops' is 0, must be 1 to 8\n",
    'int-hops=9': "property 'int-hops' is 9, must be 1 to 8\n",
    'int=compact,int-hops=6': "property 'int-hops' is 6, must be at most 5 "
                              "with int=compact\n",
    'pacing=maybe': "expects 'on' or 'off'",
    'version=4294967296': "property 'version' is 4294967296, must be 0 to",
    'mac=52:54:00:00:00:02': "property 'mac' goes with 'netdev'",
    'romfile=efi-e1000e.rom': "property 'romfile' is 'efi-e1000e.rom', must "
                              "be empty",
    'inspect-from=4294967296': "property 'inspect-from' is 4294967296, must "
                               "be 0 to 4294967295",
    'stats=1': "stats",
    'qps=1': "qps",
    'no-such-option=1': "no-such-option",
}

# whole option strings -> what QEMU has to say
WIRES = {
    'erdma': "one of the properties 'eni'",
    f'erdma,eni=nic0,netdev=n1,mac={MAC}': "only one of the properties 'eni'",
    'erdma,eni=nic9': "property 'eni': there is no device 'nic9' (the NIC "
                      "must be created before the HCA)",
    'erdma,eni=rp0': "property 'eni': device 'rp0' (pcie-root-port) is not "
                      "a NIC",
    'erdma,eni=hca': "property 'eni': device 'hca' (erdma) is not a NIC",
    'erdma,eni=bare': "property 'eni': NIC 'bare' has no netdev",
    'erdma,eni=group': "property 'eni': NIC 'group' has the address "
                       "01:00:5e:00:00:01, which is not a unicast one",
    'erdma,eni=taken': "property 'eni': NIC 'taken' already has the HCA "
                       "'hca2'",
    'erdma,netdev=n9': "n9",
    'erdma,netdev=n1': "property 'mac' is 00:00:00:00:00:00; with 'netdev' "
                       "it must be",
    'erdma,netdev=n1,mac=01:00:5e:00:00:01': "must be the unicast address",
    'erdma,netdev=n0,mac=52:54:00:00:00:09': "n0",
}

OTHERS = ['-device', 'pcie-root-port,id=rp0,chassis=1,slot=1',
          '-device', 'virtio-net-pci,id=bare,romfile=',
          '-netdev', 'hubport,id=n2,hubid=0',
          '-netdev', 'hubport,id=n3,hubid=0',
          '-netdev', 'hubport,id=n4,hubid=0',
          '-device', 'virtio-net-pci,netdev=n2,id=group,romfile=,'
                     'mac=01:00:5e:00:00:01',
          '-device', f'erdma,netdev=n3,mac={MAC},id=hca',
          '-device', 'virtio-net-pci,netdev=n4,id=taken,romfile=',
          '-device', 'erdma,eni=taken,id=hca2']

RIGHT = [
    'eni=nic0',
    f'netdev=n1,mac={MAC}',
    'eni=nic0,vectors=1',
    'eni=nic0,profile=small',
    'eni=nic0,max-qp=2047,profile=small,vectors=2',
    'eni=nic0,max-qp=1023,max-cqe=64,max-recv-wr=64,max-mr-size=2G',
    'eni=nic0,max-qp=524287,ext-db-pages=65414',
    'eni=nic0,atomics=off,mtt-va=off,ext-db=off,udp-checksum=off',
    'eni=nic0,mtu=256,udp-port=1,cc=newreno,firmware-version=0.65535.0',
    'eni=nic0,mtu=65535,pacing=off,ecn=off,initial-window=655350,version=0',
    'eni=nic0,cc=none,initial-window=100000,go-back-n=on',
    'eni=nic0,record=/dev/null',
    'eni=nic0,cc=hpcc_int,line-rate=25000000000,base-rtt-us=40,eta=0.9,'
    'max-stage=5,w-ai=100,n-flows=4,int-hops=2,int=compact',
    'eni=nic0,cc=hpcc-rtt,delta=0.1,int=off',
    'eni=nic0,cc=hpcc-ecn,max-stage-ecn=3,ecn-probe=off',
    'eni=nic0,ecn-beta=0.85,fast-convergence=off,reordering-threshold=8',
    'eni=nic0,rto-min-us=1000,rto-max-us=1000,rto-initial-us=1000,retries=1,'
    'ack-every=1',
]

# what works but hardly as meant -> the warning, one line
WARNED = {
    'cc=cubic,eta=0.9': "property 'eta' has no effect with cc=cubic, only "
                        "with hpcc-rtt, hpcc-ecn, hpcc-int",
    'cc=hpcc-int,delta=0.2': "property 'delta' has no effect with "
                             "cc=hpcc-int, only with hpcc-rtt",
    'cc=hpcc-rtt,ecn-beta=0.5': "property 'ecn-beta' has no effect with "
                                "cc=hpcc-rtt, only with newreno, cubic",
    'cc=newreno,fast-convergence=off':
        "property 'fast-convergence' has no effect with cc=newreno, only "
        "with cubic",
    'cc=hpcc-ecn,max-stage=3': "property 'max-stage' has no effect",
    'cc=hpcc-rtt,max-stage-ecn=3': "property 'max-stage-ecn' has no effect",
    'cc=hpcc-rtt,ecn-probe=off': "property 'ecn-probe' has no effect",
    'int-hops=3': "property 'int-hops' has no effect with cc=cubic",
    'line-rate=1000000000': "property 'line-rate' has no effect",
    'base-rtt-us=100': "property 'base-rtt-us' has no effect",
    'w-ai=100': "property 'w-ai' has no effect",
    'cc=none,n-flows=2': "property 'n-flows' has no effect with cc=none",
    'rto-min-us=1000,ack-delay-us=2000':
        "property 'rto-min-us' (1000) is below ack-delay-us (2000)",
    'rto-initial-us=20001,rto-max-us=20000':
        "property 'rto-initial-us' (20001) is above rto-max-us (20000)",
    'rnr-timeout-ms=19': "property 'rnr-timeout-ms' (19) is below "
                         "rto-min-us (20000)",
    'initial-window=1000': "property 'initial-window' (1000) is less than "
                           "one packet of 1500 bytes (mtu)",
    'cc=hpcc-rtt,line-rate=1000000,base-rtt-us=100':
        "properties 'line-rate' and 'base-rtt-us' make a window of 12 bytes, "
        "less than one packet of 1500 bytes (mtu)",
    'cc=hpcc-int,base-rtt-us=10000': "property 'rx-buffer' (2097152) is less "
                                     "than line-rate times base-rtt-us",
    'cc=hpcc-ecn,ecn=off': "property 'ecn' is off: cc=hpcc-ecn sees no mark",
    'cc=hpcc-int,int=off': "property 'int' is off: cc=hpcc-int sees no link",
    'cc=hpcc-int,mtu=300': "property 'int-hops' is 5, more than packets of "
                           "300 bytes (mtu) have room for",
    'cc=hpcc-rtt,pacing=off': "property 'pacing' is off: cc=hpcc-rtt needs",
}


def qemu(args, stdin=None, machine='q35'):
    """Exit status, standard output and the messages of one QEMU."""
    result = subprocess.run([QEMU, '-M', machine, *args], input=stdin,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, timeout=LIMIT, check=False)
    return result.returncode, result.stdout, result.stderr


def qmp(args, commands, machine='q35'):
    """Runs the QMP commands, then quit. Exit status and the answers."""
    script = [{'execute': 'qmp_capabilities'}]
    script += [{'execute': name, 'arguments': arguments}
               for name, arguments in commands]
    script.append({'execute': 'quit'})
    status, out, err = qemu([*args, '-qmp', 'stdio'],
                            '\n'.join(map(json.dumps, script)) + '\n',
                            machine)
    answers = [json.loads(line) for line in out.splitlines()]
    answers = [a for a in answers if 'return' in a or 'error' in a]
    return status, answers[1:len(commands) + 1], err


def refused(tap, option, wanted, args):
    status, out, err = qemu([*args, '-device', option, '-S'])
    lines = err.splitlines()
    tap.point(status == 1 and wanted in err and len(lines) == 1,
              f'refused: {option}',
              f'status {status}, wanted: {wanted}\n{out}{err}')


def dictionary(option):
    """What device_add takes, typed as -device would."""
    driver, *pairs = option.split(',')
    result = {'driver': driver}
    for pair in pairs:
        key, value = pair.split('=', 1)
        result[key] = int(value) if value.isdigit() else value
    return result


def hot_refused(tap, options):
    """device_add refuses too, and the machine goes on."""
    status, answers, err = qmp(
        BASE + OTHERS,
        [('device_add', {**dictionary(o), 'bus': 'rp0'}) for o in options])
    for (option, wanted), answer in zip(options.items(), answers):
        text = answer.get('error', {}).get('desc', '')
        tap.point(wanted in text, f'device_add refused: {option}',
                  f'wanted: {wanted}\nanswer: {answer}')
    tap.point(status == 0 and len(answers) == len(options),
              'QEMU survived the refusals', f'status {status}\n{err}')


def accepted(tap, option, machine):
    stats = ('qom-get', {'path': '/machine/peripheral/hca0',
                         'property': 'stats'})
    objects = ('qom-get', {'path': '/machine/peripheral/hca0',
                           'property': 'objects'})
    change = ('qom-set', {'path': '/machine/peripheral/hca0',
                          'property': 'vectors', 'value': 2})
    status, answers, err = qmp(
        [*BASE, '-device', f'erdma,id=hca0,{option}'],
        [stats, objects, change], machine)
    good = status == 0 and len(answers) == 3 and not err \
        and answers[0].get('return', {}).get('tx-packets') == 0 \
        and answers[1].get('return', {}).get('qps') == 0 \
        and 'cannot be changed' in json.dumps(answers[2])
    tap.point(good, f'accepted on {machine}: {option}',
              f'status {status}\n{answers}\n{err}')


def warned(tap, option, wanted):
    status, answers, err = qmp(
        [*BASE, '-device', f'erdma,id=hca0,eni=nic0,{option}'], [])
    lines = err.splitlines()
    tap.point(status == 0 and not answers and len(lines) == 1 and
              'warning: erdma: ' + wanted in err, f'warned: {option}',
              f'status {status}, wanted: {wanted}\n{err}')


def described(tap):
    status, out, err = qemu(['-device', 'erdma,help'])
    ours = set()
    for option in [*VALUES, *RIGHT, *WARNED]:
        ours |= {pair.split('=')[0] for pair in option.split(',')}
    ours -= {'romfile', 'no-such-option'}
    bad = [name for name in sorted(ours)
           if not any(line.startswith(f'  {name}=<') and ' - ' in line
                      for line in out.splitlines())]
    tap.point(status == 0 and not bad, '-device erdma,help describes all',
              f'status {status}, without a description: {bad}\n{err}')


def multiqueue(tap):
    """A tap device with two queues cannot be had everywhere."""
    name = 'refused: a netdev with two queues'
    nic = ['-netdev', 'tap,id=mq,queues=2,ifname=erdmaopt0,script=no,'
           'downscript=no',
           '-device', 'virtio-net-pci,netdev=mq,mq=on,id=nic2,romfile=']
    status, _, err = qemu([*BASE, *nic, '-device', 'erdma,eni=nic2', '-S'])
    if 'could not' in err or 'tap' in err and 'property' not in err:
        tap.skip(name, err.splitlines()[0])
        return
    tap.point(status == 1 and "netdev 'mq' has 2 queues" in err, name, err)


def vhost_user_backend(server):
    """The least that QEMU takes for a vhost-user backend: no features."""
    wanted = {1: 0, 15: 0, 17: 1}       # GET_FEATURES ..., GET_QUEUE_NUM
    connection, _ = server.accept()
    with connection:
        while header := connection.recv(12, socket.MSG_WAITALL):
            request, _, size = struct.unpack('<III', header)
            if size:
                connection.recv(size, socket.MSG_WAITALL)
            if request in wanted:
                connection.sendall(struct.pack('<IIIQ', request, 5, 8,
                                               wanted[request]))


def vhost(tap):
    with tempfile.TemporaryDirectory() as directory, \
            socket.socket(socket.AF_UNIX) as server:
        path = f'{directory}/vhost'
        server.bind(path)
        server.listen()
        backend = threading.Thread(target=vhost_user_backend, args=(server,),
                                   daemon=True)
        backend.start()
        status, _, err = qemu([
            *BASE, '-chardev', f'socket,id=vhost,path={path}',
            '-netdev', 'vhost-user,id=vu,chardev=vhost',
            '-device', 'virtio-net-pci,netdev=vu,id=nic2,romfile=',
            '-device', 'erdma,eni=nic2', '-S'])
    tap.point(status == 1 and 'uses vhost' in err,
              'refused: a vhost-user netdev', f'status {status}\n{err}')


def gone(tap):
    """HCA, NIC and netdev may go away in any order, but the NIC not before
    the HCA: that is refused, and then both are as they were.

    Nobody switched the slots on, so that device_del acts at once.
    """
    ports = ['-global', 'ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off']
    for i in range(2):
        ports += ['-device', f'pcie-root-port,id=rp{i},chassis={i},slot={i}']
    adds = [('device_add', {'driver': 'virtio-net-pci', 'id': 'nic1',
                            'netdev': 'n1', 'romfile': '', 'bus': 'rp0'}),
            ('device_add', {'driver': 'erdma', 'id': 'hca1', 'eni': 'nic1',
                            'bus': 'rp1'})]
    dels = {'nic1': ('device_del', {'id': 'nic1'}),
            'n1': ('netdev_del', {'id': 'n1'}),
            'hca1': ('device_del', {'id': 'hca1'})}
    for order in itertools.permutations(dels):
        status, answers, err = qmp(
            [*BASE, *ports], adds + [dels[name] for name in order] +
            [('qom-list', {'path': '/machine/peripheral'})])
        left = [c['name'] for c in answers[-1].get('return', [])
                if c['name'] in dels] if answers else ['?']
        denied = [answer['error']['desc'] for answer in answers
                   if 'error' in answer]
        is_too_soon = order.index('nic1') < order.index('hca1')
        tap.point(status == 0 and not err and
                  left == ['nic1'] * is_too_soon and
                  len(denied) == is_too_soon and
                  all("'hca1', which must be unplugged first" in text
                      for text in denied),
                  'survived the removal of ' + ', '.join(order),
                  f'status {status}, left: {left}\n{answers}\n{err}')


def main():
    tap = Tap()
    described(tap)
    for machine in ('q35', 'pc'):
        for option in RIGHT:
            accepted(tap, option, machine)
    for option, wanted in WARNED.items():
        warned(tap, option, wanted)
    for option, wanted in VALUES.items():
        refused(tap, f'erdma,eni=nic0,{option}', wanted, BASE)
    for option, wanted in WIRES.items():
        refused(tap, option, wanted, BASE + OTHERS)
    hot_refused(tap, {o: w for o, w in WIRES.items() if 'netdev=' not in o})
    multiqueue(tap)
    vhost(tap)
    gone(tap)
    return tap.done()


if 'ERDMA_QEMU' in os.environ:
    QEMU = os.environ['ERDMA_QEMU']
else:
    subprocess.run([ROOT / 'erdma', 'build', '--quiet'], check=True,
                   stdout=sys.stderr)
    QEMU = subprocess.run([ROOT / 'erdma', 'build', '--path'], check=True,
                          stdout=subprocess.PIPE, text=True).stdout.strip()
sys.exit(main())
