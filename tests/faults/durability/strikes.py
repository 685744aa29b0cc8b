"""Which process is killed when: at random moments and at fault points, chosen by a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from brookmq.base.faults import Victim

AFTER_MAX = 4  # hits of a point from the order to the kill
MOMENT_SECONDS_MAX = 0.5
AT_START = {"journal.ownership"}  # points that a node reaches only while it starts


class Strike(NamedTuple):
    """Kill this victim at the so-manyth hit of a point, or after a moment if there is no point."""

    victim: Victim
    point: str = ""
    after: int = 1
    seconds: float = 0.0


def plan(chance: random.Random, count: int, points: Sequence[str], victims: Sequence[Victim]) -> list[Strike]:
    """So many strikes, half of them at points, each point equally often (as far as that goes), in any order."""
    each = max(1, count // 2 // len(points)) if points else 0
    at_points = [
        Strike(chance.choice(victims), point, chance.randint(1, AFTER_MAX)) for point in points for _ in range(each)
    ]
    strikes = at_points[:count]
    while len(strikes) < count:
        strikes.append(Strike(chance.choice(victims), seconds=chance.uniform(0, MOMENT_SECONDS_MAX)))
    chance.shuffle(strikes)
    return strikes
