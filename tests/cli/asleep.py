#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""usage: asleep.py VERSION [END.LIST.FIELD=VALUE...] [END.waits=VALUE...]
                 [killed=0] [words=TEXT]

Judges a run of perftest as the suites with guests do, without a guest: a
client that was killed, and both ends' queues as they once were when perftest
4.5 slept, with these changes. Exit code 0: the run may be repeated.
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'scripts'))

from guestlib import asleep                                     # noqa: E402
from guestlib.programs import Outcome, perftest_fault           # noqa: E402

EQ = {'eqn': 1, 'pending': 0}
SEEN = {
    'client': {
        'cqs': [{'cqn': 315, 'armed': 'any', 'ci': 135, 'pi': 200,
                 'announced': 200, 'event-held': False, 'broken': False},
                {'cqn': 313, 'armed': 'none', 'pi': 9, 'announced': 0,
                 'event-held': False, 'broken': False}],
        'qps': [{'qpn': 210, 'sends': 0, 'sq-pi': 400, 'sq-next': 400}],
        'eqs': [EQ],
        'waits': True,
    },
    'server': {
        'cqs': [{'cqn': 315, 'armed': 'none', 'pi': 0, 'announced': 0,
                 'event-held': False, 'broken': False}],
        'qps': [{'qpn': 210, 'sends': 0, 'sq-pi': 0, 'sq-next': 0}],
        'eqs': [dict(EQ)],
        'waits': True,
    },
}


def main():
    version = tuple(int(n) for n in sys.argv[1].split('.'))
    killed = True
    words = 'Failed to exchange data between server and clients'
    for change in sys.argv[2:]:
        what, _, value = change.partition('=')
        if what == 'killed':
            killed = bool(int(value))
        elif what == 'words':
            words = value
        else:
            end, part, *field = what.split('.')
            if field:
                SEEN[end][part][0][field[0]] = json.loads(value)
            else:
                SEEN[end][part] = json.loads(value)
    seen = asleep.overslept(SEEN['client'], SEEN['server'], version)
    outcome = Outcome(None, None, 90.0, words, killed,
                      seen if killed else None)
    why = perftest_fault('ib_send_bw -R -n 200 -e -Q 1', outcome)
    print(why, seen[1], sep='\n')
    return 0 if why else 1


sys.exit(main())
