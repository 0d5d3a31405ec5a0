#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes fuzzers' seeds of what an unmodified driver does.

  seeds.py [PREFIX]     into tests/fuzz/seeds

Boots a guest, runs programs against its own address, and has QEMU trace all
that driver and device say to each other: writes of registers and doorbells,
and what the device then reads of memory. Of it come the seeds of "driver",
"commands" and QEMU's generic fuzzer. What the device's transport takes part in
it records itself; that is the seed of "record".
"""

import itertools
import pathlib
import re
import struct
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'scripts'))
from guestlib import GuestSet, Options  # noqa: E402
from guestlib.programs import run_pair  # noqa: E402

SEEDS = ROOT / 'tests' / 'fuzz' / 'seeds'
# What is run, by the seed's name; one that is cut off still has the set-up
PROGRAMS = {
    'rping': ['rping -{} -C 2 -S 100'],
    'perftest': ['ib_write_bw -R -n 5 -s 3000', 'ib_atomic_bw -R -n 5'],
}
WRITE = re.compile(r'erdma_(?:reg_write|db) \S+ (0x\w+):? (?:size (\d): )?'
                   r'(0x\w+)')
READ = re.compile(r'erdma_dma_read \S+ \w+ length \d+: (\w+)')
AEQ_DEPTH, CMDQ_DB = 0x48, 0x200
DOORBELLS = 0x1000
# Of seeds: mutations of longer ones find little
LENGTH = 24000


class Step:
    """Writes of the driver, and what the device read because of them.

    A device that is busy reads later than it was told to, so reads belong to
    all the writes since the last ones.
    """

    def __init__(self):
        self.writes, self.reads = [], []


def steps(log):
    found = [Step()]
    for line in log.read_text(errors='replace').splitlines():
        if match := WRITE.search(line):
            addr, size, value = match.groups()
            if found[-1].reads:
                found.append(Step())
            found[-1].writes.append(
                (int(addr, 16), int(size or 8), int(value, 16)))
        elif match := READ.search(line):
            found[-1].reads.append(bytes.fromhex(match[1]))
    return found


# ---- QEMU's generic fuzzer: tests/qtest/fuzz/generic_fuzz.c ---------------

SEPARATOR = b'FUZZ'
OP_WRITE, OP_PATTERN, OP_FORGET, OP_CLOCK = 3, 7, 8, 9


def generic_write(addr, size, value):
    region = int(addr >= DOORBELLS)
    # Sizes are 1, 2, 4, 8 bytes by number; with the padding of C
    ops = [bytes([OP_WRITE]) + struct.pack(
        '<BBxxIQ', size.bit_length() - 1, region, addr - region * DOORBELLS,
        value)]
    return ops + [bytes([OP_CLOCK])] if region else ops


def generic(step):
    """Patterns for the device's reads, the writes, and time to answer them"""
    ops = [bytes([OP_FORGET])]
    # Patterns repeat: of zeros alone one is enough
    ops += [bytes([OP_PATTERN, 0, 0]) + (data if any(data) else b'\0')
            for data in step.reads]
    for write in step.writes:
        ops += generic_write(*write)
    return b''.join(op + SEPARATOR for op in ops)


# ---- fuzz-driver.c --------------------------------------------------------

def driver(step):
    """The same for the engine alone, where memory is zeros unless said"""
    out = b''
    for data in step.reads:
        data = data.rstrip(b'\0')
        out += bytes([0, len(data)]) + data
    for addr, _, value in step.writes:
        if addr < DOORBELLS:
            out += bytes([1]) + struct.pack('<HQ', addr, value)
        else:
            out += bytes([2]) + struct.pack('<IQ', addr, value)
    return out


def fault(number):
    """A rule: each action at each point, once, with a delay of 1 ms"""
    return bytes([7, number % 10, number // 10 % 13, 0, 8 | 32, 1]) + \
        struct.pack('<I', 1000000) + b'\4\1\1'


def slow(step, number=itertools.count()):
    """Events are taken now and then only"""
    return driver(step) + (b'' if next(number) % 5 else b'\x09')


def troubled(step, number=itertools.count()):
    """Inspection, a move and faults between what the driver says"""
    return driver(step) + b'\5\6' + fault(next(number)) + fault(next(number))


# ---- Drivers that want something else -------------------------------------

def request(raw, sub_module, opcode):
    return len(raw) == 32 and raw[2:4] == bytes([opcode, sub_module])


def changed(found, change, registers=()):
    """The conversation with other requests and values of registers"""
    result = []
    for step in found:
        new = Step()
        new.writes = [(addr, size, dict(registers).get(addr, value))
                      for addr, size, value in step.writes]
        new.reads = [change(raw) if step.writes[-1][0] == CMDQ_DB else raw
                     for raw in step.reads]
        result.append(new)
    return result


def small_queues(raw):
    """Event queues that are soon full"""
    return raw[:18] + b'\0' + raw[19:] if request(raw, 1, 0) else raw


def algorithm(number):
    """MODIFY_QP with another congestion control"""
    def change(raw):
        if not request(raw, 0, 3):
            return raw
        word = struct.unpack_from('<I', raw, 8)[0] & ~(0xf << 20)
        return raw[:8] + struct.pack('<I', word | number << 20) + raw[12:]
    return change


# ---- fuzz-commands.c ------------------------------------------------------

def command(step):
    """A request as it is: kind, bytes, no changes, a doorbell"""
    if step.writes[-1][0] != CMDQ_DB or len(step.reads) < 4:
        return b''
    raw = b''.join(step.reads[-4:])
    # Of the header the rig fills in the rest
    header = struct.unpack_from('<Q', raw)[0] & 0xffff0000
    return b'\7\5' + struct.pack('<Q', header) + raw[8:128] + b'\0\1'


def write_seed(name, prefix, start, convert, found):
    """From the first step on, as far as it may be long"""
    (SEEDS / name).mkdir(parents=True, exist_ok=True)
    seed = start
    for step in found:
        part = convert(step)
        if len(seed) + len(part) > LENGTH:
            break
        seed += part
    (SEEDS / name / prefix).write_bytes(seed)


def write_variants(found):
    small = changed(found, small_queues, [(AEQ_DEPTH, 1)])
    write_seed('driver', 'small-queues.bin', b'\0', slow, small)
    write_seed('driver', 'troubled.bin', b'\0', troubled, small)
    write_seed('driver', 'no-extended-doorbells.bin', b'\1', driver, found)
    # Packets with INT and marks, for each algorithm
    for number in range(5):
        write_seed('driver', f'algorithm-{number}.bin', b'\x40', driver,
                   changed(found, algorithm(number)))


def record(programs, log, recording):
    """What the programs do goes to these files."""
    options = Options(
        # No more memory than QEMU's generic fuzzer has, and its cookies
        n=1, mem='512M', cold=True, restrict=True,
        device=f'seed=1,record={recording}',
        qemu=[word for event in ('reg_write', 'db', 'dma_read')
              for word in ('-trace', f'erdma_{event}')] + ['-D', str(log)])
    with GuestSet(options, logdir=str(log.parent / 'guest')) as guests:
        for program in programs:
            server, client = program.format('s'), program.format('c')
            address = (' -a ' if 'rping' in program else ' ') + guests[1].ip
            outcome = run_pair(guests[1], guests[1], server, client + address)
            if outcome.problem:
                sys.exit(f'{program}: {outcome.problem}')
        # One that is killed has not written all
        guests[1].qmp.command('quit')
        guests[1].machine.process.wait(20)


def main():
    if len(sys.argv) > 2 or '-h' in sys.argv:
        sys.exit(__doc__)
    for name, programs in PROGRAMS.items():
        seed = (sys.argv[1:] or ['linux-6.12'])[0] + f'-{name}.bin'
        with tempfile.TemporaryDirectory() as directory:
            log = pathlib.Path(directory, 'log')
            recording = pathlib.Path(directory, 'recording')
            record(programs, log, recording)
            found = steps(log)
            write_seed('commands', seed, b'', command, found)
            write_seed('generic-fuzz', seed, b'', generic, found)
            # First byte: options, see new_engine()
            write_seed('driver', seed, b'\0', driver, found)
            if name == 'rping':
                write_variants(found)
            # First byte: a file follows, see fuzz-record.c
            (SEEDS / 'record').mkdir(exist_ok=True)
            (SEEDS / 'record' / seed).write_bytes(
                b'\0' + recording.read_bytes()[:LENGTH])


if __name__ == '__main__':
    main()
