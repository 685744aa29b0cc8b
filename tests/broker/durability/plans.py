"""Who takes part in a simulation."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

GROUP = "$share/team/g/#"
LONG, SHORT = 100_000, 25  # seconds of session expiry

TOPICS = tuple(f"t/{number}" for number in range(6))
RETAINED = tuple(f"r/{number}" for number in range(5))  # not too few: what is replaced later is not missed
FILTERS = ("t/#", "t/+", "t/0", "t/1", "t/2", "u/0", "r/#", "w/#")


@dataclass
class Plan:
    """What kind of client it is."""

    name: str
    version: int = 5
    expiry: int = 0  # seconds; 0: its sessions are transient
    receive_maximum: int = 0
    publishes: tuple[str, ...] = ()  # topics
    filters: tuple[str, ...] = ()
    qos: tuple[int, ...] = (1, 2)
    no_local: bool = False
    identified: bool = False
    shares: str = ""  # a shared subscription that it makes first of all, and keeps
    may_end: bool = True
    will_topics: tuple[str, ...] = ()


def roster(random: Random) -> list[Plan]:
    """Who takes part: always the same kinds, so that every seed has a bit of everything."""
    everywhere = (*TOPICS, "u/0", "g/0", "g/1", "g/2", *RETAINED)
    wills = ("w/0", "w/1", "t/0", *RETAINED[:2])
    plans = [
        Plan("kept-writer", expiry=LONG, publishes=everywhere, may_end=False, will_topics=wills),
        Plan("old-writer", 4, LONG, publishes=everywhere, may_end=False, will_topics=wills),
        Plan("writer", random.choice((4, 5)), publishes=everywhere, will_topics=wills),
        Plan("lazy", random.choice((4, 5)), LONG, filters=FILTERS, qos=(1,), may_end=False),
        Plan("strict", 5, LONG, random.choice((0, 1, 3)), filters=FILTERS, qos=(2, 2, 1), may_end=False),
        Plan("named", 5, LONG, random.choice((0, 2, 20)), filters=FILTERS, identified=True, may_end=False),
        Plan("fickle", 5, random.choice((SHORT, LONG)), filters=FILTERS, will_topics=wills),
        Plan("guest", random.choice((4, 5)), 0, random.choice((0, 2)), filters=FILTERS, will_topics=wills),
        Plan("both", 5, LONG, publishes=TOPICS, filters=FILTERS[:5], no_local=True, may_end=False),
        Plan("member-lazy", 5, LONG, random.choice((0, 2)), qos=(1,), shares=GROUP, may_end=False),
        Plan("member-strict", 5, LONG, random.choice((0, 2)), qos=(2,), shares=GROUP, may_end=False),
        Plan("member-fickle", 5, random.choice((SHORT, LONG)), qos=(1,), shares=GROUP),
        Plan("member-guest", 5, 0, random.choice((0, 2)), qos=(1,), shares=GROUP),
    ]
    return [plan for plan in plans if random.random() < 0.7 or plan.name in ("kept-writer", "lazy", "strict")]
