# SPDX-License-Identifier: GPL-2.0-or-later
"""The results as a table."""

COLUMNS = (
    ("packets", lambda t: t.link["arrivals"]),
    ("lost by the link", lambda t: sum(
        v for k, v in t.link.items() if k.startswith("drop-"))),
    ("held back", lambda t: t.link["reorders"]),
    ("repeated", lambda t: t.link["duplicates"]),
    ("retransmits", lambda t: t.hca["retransmits"]),
    ("time-outs", lambda t: t.hca["rtos"]),
    ("probes", lambda t: t.hca["probes"]),
    ("spurious", lambda t: t.hca["spurious"]),
)


def markdown(rows):
    """A line per link."""
    head = ["link", "completed", "seconds"] + [name for name, _ in COLUMNS]
    lines = ["| %s |" % " | ".join(head),
             "|---|" + "---:|" * (len(head) - 1)]
    for link, totals in rows:
        cells = [link.name, "%d of %d" % (totals.completed, totals.tried),
                 "%.0f" % totals.seconds]
        cells += [str(value(totals)) for _, value in COLUMNS]
        lines.append("| %s |" % " | ".join(cells))
    return "\n".join(lines) + "\n"
