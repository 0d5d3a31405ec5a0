# SPDX-License-Identifier: GPL-2.0-or-later
"""Emulated links: QEMU's filter-netem on a guest's link.

Queue "tx" is what goes to the guest, "rx" what comes from it, as for every
net filter.  docs/congestion-control/netem.md has the options and counters;
in Python '_' may stand for '-' in their names.
"""

import re

from .errors import GuestError

QUEUES = ("tx", "rx")
NETDEV = "link0"
# A number is a number except where the property is text.
TEXT = ("drop-list", "jitter", "position", "insert", "status")
COUNTERS = (
    "arrivals", "arrived-bytes", "drop-loss", "drop-burst", "drop-listed",
    "drop-corrupt", "drop-queue", "drop-not-ect", "marks", "stamps",
    "reorders", "duplicates", "departures", "departed-bytes", "delivered",
    "busy-ns", "queue-max", "queue-bytes", "queue-integral")


class Netem:
    """One direction of a guest's link; the object is made at once."""

    def __init__(self, guest, queue, options):
        if queue not in QUEUES:
            raise GuestError("netem: no queue '%s' (tx: to the guest, rx: "
                             "from the guest)" % queue)
        self.guest, self.queue = guest, queue
        self.id = "netem-" + queue
        self.path = "/objects/" + self.id
        self.options = dict(options)    # as they were set
        with self._errors():
            guest.qmp.command("object-add", qom_type="filter-netem",
                              id=self.id, netdev=NETDEV, queue=queue,
                              **dashed(options))

    def _errors(self):
        return _Prefix("%s: netem" % self.guest.name)

    def set(self, **options):
        """Change options of the running link.

        One value may only be allowed once another one is there (ecn-kmin and
        ecn-kmax): those that are refused are tried again after the others.
        """
        self.options.update(options)
        left = dashed(options)
        while left:
            refused = {}
            for name, value in left.items():
                try:
                    self.guest.qmp.command("qom-set", path=self.path,
                                           property=name, value=value)
                except GuestError as e:
                    refused[name], error = value, e
            if len(refused) == len(left):
                with self._errors():
                    raise error
            left = refused
        return self

    def get(self, name):
        """One option or counter."""
        with self._errors():
            return self.guest.qmp.command("qom-get", path=self.path,
                                          property=name.replace("_", "-"))

    def counters(self, *names):
        """These counters, or all, as a dict."""
        return {name: self.get(name) for name in names or COUNTERS}

    def stats(self):
        """All counters of one moment, and "time-ns", that moment."""
        return self.get("stats")

    def drops(self):
        """Packets lost on this link, for whatever reason."""
        return sum(self.counters(*(x for x in COUNTERS
                                   if x.startswith("drop-"))).values())

    def remove(self):
        """Take the link away, and the packets that are on it."""
        with self._errors():
            self.guest.qmp.command("object-del", id=self.id)


class _Prefix:
    """Says in front of a GuestError whom it is about."""

    def __init__(self, prefix):
        self.prefix = prefix

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _trace):
        if kind and issubclass(kind, GuestError):
            raise GuestError("%s: %s" % (self.prefix, error)) from error


def dashed(options):
    return {k.replace("_", "-"): v for k, v in options.items()}


def value_of(name, text):
    """An option's text with the type that QMP wants."""
    if name in TEXT:
        return text
    if text in ("on", "yes", "true", "off", "no", "false"):
        return text in ("on", "yes", "true")
    if text.isdigit():
        return int(text)        # 64 bits of seed do not fit into a float
    try:
        number = float(text)
        return int(number) if number.is_integer() else number
    except (ValueError, OverflowError):
        return text


def parse(text):
    """'[GUEST:][QUEUE:]NAME=VALUE,...' as (guest or None, queue, options)."""
    match = re.fullmatch(r"(?:(\d+):)?(?:(tx|rx):)?([^:=]+(?:=.*)?|)", text,
                         re.S)
    if not match:
        raise GuestError("netem '%s': want [GUEST:][tx:|rx:]NAME=VALUE,..."
                         % text)
    guest, queue, rest = match.groups()
    options = {}
    for item in filter(None, rest.split(",")):
        name, equals, value = item.partition("=")
        if not name or not equals:
            raise GuestError("netem '%s': want NAME=VALUE instead of '%s'"
                             % (text, item))
        options[name.replace("_", "-")] = value_of(name, value)
    return int(guest) if guest else None, queue or "tx", options


def plan(texts, n):
    """What each link of n guests gets: {(guest, queue): options}.

    Later texts add to earlier ones, so that one guest's can differ from
    what all have.
    """
    links = {}
    for text in [texts] if isinstance(texts, str) else texts:
        guest, queue, options = parse(text)
        if guest is not None and not 1 <= guest <= n:
            raise GuestError("netem '%s': no guest %d (there are 1 to %d)"
                             % (text, guest, n))
        for i in range(1, n + 1) if guest is None else [guest]:
            links.setdefault((i, queue), {}).update(options)
    return links
