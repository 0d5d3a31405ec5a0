# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs rdma-core's tests in a guest and compares with what is expected.

An expected-outcome file has a line for each test, as pyverbs-outcomes (of the
add-on) writes them: outcome, test, reason, with a tab between them.
"""

import pathlib

from guestlib.errors import GuestError

HERE = pathlib.Path(__file__).resolve().parent
OUTCOMES = ('pass', 'skip', 'fail', 'error', 'crash', 'stuck')
TIMEOUT = 900
# Debian's release for the user space, with each kernel: its rdma-core's tests
SUITE = 'trixie'
COMPAT = '6.12-compat'
HEAD = """# SPDX-License-Identifier: GPL-2.0-or-later
# How rdma-core's tests end: outcome, test, reason.  Made by
# ./erdma check pyverbs -- --write
"""


def kernels():
    """Those that have a file."""
    return [name for name in ('6.12', '6.1', '7')
            if (HERE / 'expected' / name).exists()]


def parse(text):
    """{test: (outcome, reason)} of such lines; others are not for us."""
    found = {}
    for line in text.splitlines():
        words = line.split('\t')
        if len(words) == 3 and words[0] in OUTCOMES:
            found[words[1]] = words[0], words[2]
    return found


class Mode:
    """A kernel, with compat mode or not, and the file of what to expect."""

    def __init__(self, name):
        self.kernel = name.partition('-')[0]
        self.is_compat = name == COMPAT
        self.path = HERE / 'expected' / name

    def run(self, guest, names=()):
        """The outcomes of the tests in a guest that has the add-on."""
        # In iWARP mode there is one GID; compat mode has RoCE v2's at 1.
        command = ' '.join([
            'erdma-compat -q' if self.is_compat else '',
            'pyverbs-outcomes erdma_0 1', '1' if self.is_compat else '0',
            *names])
        result = guest.run(command, TIMEOUT, check=False)
        if not result.ok:
            raise GuestError(f'{guest.name}: `{command}` ended with status '
                             f'{result.status}: {result.err[-500:]}')
        found = parse(result.out)
        if not found:
            raise GuestError(f'{guest.name}: `{command}` ran no test')
        return found

    def write(self, found):
        """Makes the file from what was found."""
        self.path.write_text(HEAD + ''.join(
            f'{outcome}\t{test}\t{reason}\n'
            for test, (outcome, reason) in sorted(found.items())))

    def compare(self, point, found, chosen=lambda test: True):
        """A point for each test: it ends as the file says, and is there."""
        expected = {test: outcome for test, outcome
                    in parse(self.path.read_text()).items() if chosen(test)}
        for test in sorted(found.keys() | expected.keys()):
            want = expected.get(test, ('unknown', 'it is not in the file'))
            got = found.get(test, ('missing', 'it did not run'))
            point(got == want, f'{test}: {want[0]}',
                  f'expected {want[0]}: {want[1]}\n'
                  f'     got {got[0]}: {got[1]}')
