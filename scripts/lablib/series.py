# SPDX-License-Identifier: GPL-2.0-or-later
"""Time series of a run: flows-LABEL.csv and links-LABEL.csv.

Windows and queues are bytes, counters count from the start of the run, rates
are those since the row before.  A value that is not known is empty.
"""

import csv

FLOW_COLUMNS = [
    'time_us', 'flow', 'algorithm', 'cwnd', 'reference', 'ssthresh',
    'pacing_bps', 'goodput_bps', 'inflight', 'srtt_us', 'min_rtt_us', 'u',
    'alpha', 'delivered', 'retransmits', 'lost', 'spurious', 'probes', 'rtos',
    'marks']
LINK_COLUMNS = [
    'time_us', 'link', 'queue', 'queue_max', 'arrivals', 'drop_queue',
    'drop_loss', 'marks', 'departed', 'utilisation']


def read(directory, what, label):
    """The rows of a file as dicts of text; [] if there is no such file."""
    try:
        with open(directory / f'{what}-{label}.csv', newline='') as file:
            return list(csv.DictReader(file))
    except FileNotFoundError:
        return []


def column(rows, name, key, value):
    """The (time in us, number) of those rows where row[key] is value."""
    return [(float(row['time_us']), float(row[name])) for row in rows
            if row[key] == value and row.get(name)]


def since_start(rows):
    """Rows of flows without those from before their first packet."""
    begun = set()
    kept = []
    for row in rows:
        if row['flow'] in begun or any(
                float(row[name] or 0) for name in ('delivered', 'inflight')):
            begun.add(row['flow'])
            kept.append(row)
    return kept
