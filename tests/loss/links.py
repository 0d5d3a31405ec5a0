# SPDX-License-Identifier: GPL-2.0-or-later
"""The bad links: what each does, and which counters must show that it did.

A link's options (of filter-netem) apply to what goes to the server, to what
goes to the client, or to both.  The HCA's counters are those of both HCAs.
"""

from dataclasses import dataclass, field

LOST = ("retransmits", "lost")


@dataclass
class Link:
    name: str
    to_server: dict
    to_client: dict
    messages: int               # of 64 KiB that a bandwidth program sends
    drops: str = ""             # counters of filter-netem that must rise,
    shown: tuple = ()           # and of the HCAs
    in_short: bool = False


@dataclass
class Totals:
    """What happened while a link was as it is."""
    completed: int = 0
    tried: int = 0
    seconds: float = 0
    link: dict = field(default_factory=dict)
    hca: dict = field(default_factory=dict)


def both(name, options, *rest, **more):
    return Link(name, options, options, *rest, **more)


LINKS = [
    both("none", {}, 500),
    both("loss 0.1 %", {"loss": 0.001}, 500, "drop-loss", LOST),
    both("loss 1 %", {"loss": 0.01}, 300, "drop-loss", LOST, in_short=True),
    both("loss 5 %", {"loss": 0.05}, 100, "drop-loss", LOST),
    both("loss 10 %", {"loss": 0.1}, 60, "drop-loss", LOST, in_short=True),
    Link("loss 10 % to the server", {"loss": 0.1}, {}, 60, "drop-loss", LOST),
    Link("loss 10 % to the client", {}, {"loss": 0.1}, 60, "drop-loss", LOST),
    # Bursts are counted in packets, not in time: one in which nothing passes
    # eats up the retries, which are single packets.
    both("short bursts", {"burst-enter": 0.01, "burst-leave": 0.5,
                          "burst-loss": 0.8}, 100, "drop-burst", LOST),
    both("long bursts", {"burst-enter": 0.002, "burst-leave": 0.2,
                         "burst-loss": 0.6}, 100, "drop-burst", LOST),
    both("every 20th", {"drop-every": 20}, 100, "drop-listed", LOST),
    both("reorder 10 %", {"reorder": 0.1, "reorder-us": 2000}, 300,
         "reorders", ("rx-out-of-order",)),
    both("duplicate 10 %", {"duplicate": 0.1}, 300, "duplicates",
         ("drop-duplicate",)),
    both("corrupt 2 %", {"corrupt": 0.02}, 200, "drop-corrupt", LOST),
    both("jitter that reorders",
         {"delay-us": 1000, "jitter": "uniform", "jitter-us": 2000,
          "jitter-reorders": True}, 200, "delivered", ("rx-out-of-order",)),
    both("a short queue", {"rate": 50000000, "limit": 15000}, 60,
         "drop-queue", LOST),
    both("reorder and duplicate 10 %",
         {"reorder": 0.1, "reorder-us": 1000, "duplicate": 0.1}, 100,
         "duplicates", ("drop-duplicate", "rx-out-of-order"), in_short=True),
    both("everything",
         {"loss": 0.02, "burst-enter": 0.005, "burst-leave": 0.3,
          "burst-loss": 0.6, "corrupt": 0.01, "reorder": 0.05, "reorder-us": 2000,
          "duplicate": 0.05, "delay-us": 500, "jitter": "uniform",
          "jitter-us": 500, "jitter-reorders": True}, 60, "drop-loss",
         LOST + ("drop-duplicate", "rx-out-of-order")),
]
