"""Conditions of a query narrow what is read, and never by too much."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringStartsWith,
)

from brookmq.spark.push_down import TOPICS_MAX, Bounds, bounds_of

TOPIC, PARTITION, OFFSET, TIME = ("topic",), ("partition",), ("offset",), ("published_at",)
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("condition", "bounds"),
    [
        (EqualTo(TOPIC, "a/b"), Bounds(filters=("a/b",))),
        (EqualNullSafe(TOPIC, "a/b"), Bounds(filters=("a/b",))),
        (In(TOPIC, ("a", "b")), Bounds(filters=("a", "b"))),
        (StringStartsWith(TOPIC, "a/b/c"), Bounds(filters=("a/b/#",))),
        (StringStartsWith(TOPIC, "a/b/"), Bounds(filters=("a/b/#",))),
        (EqualTo(PARTITION, 3), Bounds(shards=frozenset({3}))),
        (EqualTo(PARTITION, -1), Bounds(shards=frozenset())),
        (In(PARTITION, (1, 2)), Bounds(shards=frozenset({1, 2}))),
        (EqualTo(OFFSET, 7), Bounds(first=7, last=8)),
        (GreaterThan(OFFSET, 7), Bounds(first=8)),
        (GreaterThanOrEqual(OFFSET, 7), Bounds(first=7)),
        (LessThan(OFFSET, 7), Bounds(last=7)),
        (LessThanOrEqual(OFFSET, 7), Bounds(last=8)),
        # Nothing that the index could use
        (StringStartsWith(TOPIC, "abc"), Bounds()),
        (StringStartsWith(TOPIC, "/abc"), Bounds()),
        (StringContains(TOPIC, "a/b"), Bounds()),
        (EqualTo(TOPIC, "a/+"), Bounds()),
        (EqualTo(TOPIC, ""), Bounds()),
        (In(TOPIC, tuple(f"t{number}" for number in range(TOPICS_MAX + 1))), Bounds()),
        (GreaterThan(PARTITION, 1), Bounds()),
        (EqualTo(("payload",), b"x"), Bounds()),
        (EqualTo(("user_properties", "name"), "x"), Bounds()),
        (IsNotNull(TOPIC), Bounds()),
        (Not(EqualTo(TOPIC, "a")), Bounds()),
        (Not(EqualTo(OFFSET, 7)), Bounds()),
    ],
)
def test_conditions(condition: Filter, bounds: Bounds) -> None:
    assert bounds_of([condition]) == bounds


@pytest.mark.parametrize("moment", [NOON, NOON.replace(tzinfo=None), NOON.astimezone(timezone(timedelta(hours=5)))])
def test_times_are_a_little_wider(moment: datetime) -> None:
    unix = NOON.timestamp()

    def between(condition: Any) -> tuple[float, float]:
        found = bounds_of([condition]).between
        assert found is not None
        return found

    assert between(GreaterThan(TIME, moment))[0] == pytest.approx(unix - 0.001)
    assert between(LessThanOrEqual(TIME, moment))[1] == pytest.approx(unix + 0.001)
    since, until = between(EqualTo(TIME, moment))
    assert since < unix < until
    assert until - since < 0.01


def test_several_conditions_hold_together() -> None:
    bounds = bounds_of([
        GreaterThan(OFFSET, 10), LessThan(OFFSET, 20), GreaterThan(OFFSET, 5), In(PARTITION, (0, 1)),
        EqualTo(PARTITION, 1), In(TOPIC, ("a", "b")), EqualTo(TOPIC, "a"),
    ])  # fmt: skip
    assert bounds == Bounds(("a",), frozenset({1}), 11, 20)
    assert bounds.between is None
    assert bounds.within({0: (0, 100), 1: (15, 100), 2: (0, 100)}) == {1: (15, 20)}
    assert bounds.within({1: (0, 5)}) == {}
