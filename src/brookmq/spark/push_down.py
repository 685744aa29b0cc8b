"""Conditions of a batch query that the journal's index can use: topic, partition, offset, time of publishing.

They only narrow what is read. Every row that they let through is checked by Spark again, so that what is not understood
here is no mistake, and neither is a bound that is too wide.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

from brookmq.mqtt.topics import has_wildcard

OFFSET_MAX: Final = 1 << 62
TIME_MAX: Final = 1e11  # a node takes no later one
TOPICS_MAX: Final = 100  # in a condition; with more of them the index is no gain


@dataclass(frozen=True, slots=True)
class Bounds:
    """What has to be read at most. ``filters`` empty: all topics; ``shards`` None: all of them."""

    filters: tuple[str, ...] = ()
    shards: frozenset[int] | None = None
    first: int = 0
    last: int = OFFSET_MAX  # excluded
    since: float = 0.0
    until: float = TIME_MAX  # excluded

    @property
    def between(self) -> tuple[float, float] | None:
        return None if (self.since, self.until) == (0.0, TIME_MAX) else (self.since, max(self.since, self.until))

    def within(self, ranges: Mapping[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
        """The parts of some ranges that are inside of the bounds."""
        cut = {
            shard: (max(start, self.first), min(end, self.last))
            for shard, (start, end) in ranges.items()
            if self.shards is None or shard in self.shards
        }
        return {shard: (start, end) for shard, (start, end) in cut.items() if start < end}


def bounds_of(filters: Iterable[Filter]) -> Bounds:
    """The bounds that all of some conditions have together."""
    topics: tuple[str, ...] = ()
    shards: frozenset[int] | None = None
    first, last = 0, OFFSET_MAX
    since, until = 0.0, TIME_MAX
    for one in filters:
        column = getattr(one, "attribute", ())
        if column == ("topic",):
            found = _topics(one)
            # One condition is enough to narrow by; the shortest list does it best.
            topics = found if found and (not topics or len(found) < len(topics)) else topics
        elif column == ("partition",):
            low, high = _interval(one, 0, OFFSET_MAX)
            if isinstance(one, In):
                found_shards = frozenset(value for value in one.value if isinstance(value, int))
            elif high - low <= 1:
                found_shards = frozenset(range(low, high))
            else:
                continue
            shards = found_shards if shards is None else shards & found_shards
        elif column == ("offset",):
            low, high = _interval(one, 0, OFFSET_MAX)
            first, last = max(first, low), min(last, high)
        elif column == ("published_at",):
            early, late = _moments(one)
            since, until = max(since, early), min(until, late)
    return Bounds(topics, shards, first, last, since, until)


def _topics(one: Filter) -> tuple[str, ...]:
    """Topic filters that match all topics which a condition lets through; none when there is no such."""
    values: tuple[Any, ...]
    if isinstance(one, EqualTo | EqualNullSafe):
        values = (one.value,)
    elif isinstance(one, In):
        values = tuple(one.value)
    elif isinstance(one, StringStartsWith):
        level, slash, _ = one.value.rpartition("/")
        return (f"{level}/#",) if slash and level and not has_wildcard(level) else ()
    else:
        return ()
    if not 0 < len(values) <= TOPICS_MAX:
        return ()
    return values if all(isinstance(v, str) and v and not has_wildcard(v) and "\0" not in v for v in values) else ()


def _interval(one: Filter, low: int, high: int) -> tuple[int, int]:
    """Whole numbers from … to before …"""
    value: Any = getattr(one, "value", None)
    if type(value) is not int:
        return low, high
    if isinstance(one, EqualTo | EqualNullSafe):
        return max(low, value), max(low, value + 1)
    if isinstance(one, GreaterThan):
        return max(low, value + 1), high
    if isinstance(one, GreaterThanOrEqual):
        return max(low, value), high
    if isinstance(one, LessThan):
        return low, max(low, value)
    if isinstance(one, LessThanOrEqual):
        return low, max(low, value + 1)
    return low, high


def _moments(one: Filter) -> tuple[float, float]:
    """Unix seconds from … to before …, a little wider than asked for: a double has no exact microseconds."""
    value: Any = getattr(one, "value", None)
    if not isinstance(value, datetime):
        return 0.0, TIME_MAX
    moment = (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).timestamp()
    early, late = max(0.0, moment - 0.001), max(0.0, math.nextafter(moment + 0.001, math.inf))
    if isinstance(one, EqualTo | EqualNullSafe):
        return early, late
    if isinstance(one, GreaterThan | GreaterThanOrEqual):
        return early, TIME_MAX
    if isinstance(one, LessThan | LessThanOrEqual):
        return 0.0, late
    return 0.0, TIME_MAX
