"""Load averages: how fast counters rise, per minute, over about the last 1, 5 and 15 minutes.

Each is a moving average that forgets exponentially, like the load average of a Unix system: one number per window, no
history. Users of ``$SYS`` topics know them under these names. Time comes in as a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp

WINDOWS = {"1min": 60.0, "5min": 300.0, "15min": 900.0}  # name → seconds


class LoadAverages:
    """The averages of a set of counters. They begin at 0: a node that has just started has no load."""

    def __init__(self, started_at: float) -> None:
        self._updated_at = started_at  # unix seconds of the last update
        self._totals: dict[str, int] = {}  # the counters as they were then
        self._averages: dict[str, float] = {}  # "NAME/1min" and so on → events per minute

    def update(self, totals: Mapping[str, int], now: float) -> Mapping[str, float]:
        """The averages after the counters have come to ``totals``. A clock that went backwards changes nothing."""
        elapsed = now - self._updated_at
        if elapsed <= 0:
            return self._averages
        for name, total in totals.items():
            per_minute = (total - self._totals.get(name, 0)) * 60 / elapsed
            for window, seconds in WINDOWS.items():
                key = f"{name}/{window}"
                self._averages[key] = per_minute + exp(-elapsed / seconds) * (self._averages.get(key, 0.0) - per_minute)
        self._totals = dict(totals)
        self._updated_at = now
        return self._averages
