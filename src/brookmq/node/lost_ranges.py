"""Which offsets were counted as lost to a reader: each of them once, whoever tells it and how often.

A task that is tried again finds the same offsets gone, and maybe more; so does a batch that is planned again after a
crash. Kept in memory, and only the newest: what is told twice is told within minutes.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

RANGES_MAX: Final = 1000  # of a shard


class LostRanges:
    """Ranges of offsets of each shard that don't touch each other, in order."""

    def __init__(self) -> None:
        self._shards: dict[int, list[tuple[int, int]]] = {}

    def add(self, shard: int, start: int, end: int) -> int:
        """How many offsets of a range were not counted before."""
        found = self.uncounted(shard, start, end)
        ranges = self._shards.setdefault(shard, [])
        first = bisect_left(ranges, start, key=lambda one: one[1])
        last = first
        while last < len(ranges) and ranges[last][0] <= end:
            start, end = min(start, ranges[last][0]), max(end, ranges[last][1])
            last += 1
        ranges[first:last] = [(start, end)]
        del ranges[: len(ranges) - RANGES_MAX]
        return found

    def uncounted(self, shard: int, start: int, end: int) -> int:
        """How many offsets of a range are in none that was added."""
        count = max(0, end - start)
        for first, behind in self._shards.get(shard, []):
            count -= max(0, min(end, behind) - max(start, first))
        return count
