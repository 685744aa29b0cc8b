"""How reads are divided: every offset in exactly one part, and work for all cores where there is enough of it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.spark.node_client import JournalFacts, Plan, Run, Shard, StoreAccess
from brookmq.spark.planning import PARTS_MAX, ROWS_WORTH_A_PART, parts, parts_worth, plan_tasks, ranges_between

RANGES = st.dictionaries(
    st.integers(0, 11),
    st.tuples(st.integers(0, 1 << 40), st.integers(1, 1 << 30)).map(lambda one: (one[0], one[0] + one[1])),
    max_size=12,
)


@given(ranges=RANGES, wanted=st.integers(0, 1000))
def test_every_offset_is_in_one_part(ranges: dict[int, tuple[int, int]], wanted: int) -> None:
    pieces = parts(ranges, wanted)
    assert all(pieces)
    for shard, (start, end) in ranges.items():
        found = [piece[shard] for piece in pieces if shard in piece]
        assert found[0][0] == start
        assert found[-1][1] == end
        assert all(first < last for first, last in found)
        assert all(one[1] == following[0] for one, following in itertools.pairwise(found))


@given(rows=st.integers(1, 1 << 30), shards=st.integers(1, 12), wanted=st.integers(1, PARTS_MAX))
def test_as_many_parts_as_are_wanted_or_a_few_more(rows: int, shards: int, wanted: int) -> None:
    pieces = parts(dict.fromkeys(range(shards), (0, rows)), wanted)
    count = sum(len(piece) for piece in pieces)
    assert min(wanted, shards * rows) <= count <= max(wanted, shards) + shards


def test_by_default_a_part_for_each_core_if_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert parts_worth({0: (0, 100 * ROWS_WORTH_A_PART)}, None) == 4
    assert parts_worth({0: (0, 2 * ROWS_WORTH_A_PART)}, None) == 2
    assert parts_worth({0: (5, 1000)}, None) == 1
    assert parts_worth({0: (5, 1000), 1: (0, 10)}, None) == 2
    assert parts_worth({0: (5, 1000)}, 7) == 7
    assert parts_worth({0: (5, 1000)}, 10_000) == PARTS_MAX
    assert parts({}, 3) == []


def test_ranges_that_are_empty_are_left_out() -> None:
    assert ranges_between({0: 5, 1: 7, 2: 9}, {0: 6, 1: 7, 2: 3}) == {0: (5, 6)}


class Index:
    """A node whose index knows that these shards have nothing, or does not know."""

    def __init__(self, *empty: int) -> None:
        self.empty = empty

    def plan(self, ranges: Mapping[int, tuple[int, int]], filters: Sequence[str], between: object = None) -> Plan:
        runs = {shard: [] if shard in self.empty else [Run(1, 9, *one)] for shard, one in ranges.items()}
        return Plan(runs, {})


def planned(index: Any, ranges: dict[int, tuple[int, int]], wanted: int = 0, *, in_place: bool) -> list[int | None]:
    """For each partition its shard, or None when there is nothing to read."""
    facts = JournalFacts("id", "n@h", tuple(Shard(number, f"J{number}", 0, 99) for number in range(4)), None)
    store = StoreAccess((), None, None, 1.0)
    tasks = plan_tasks(index, facts, store, ranges, ["a/#"], wanted=wanted, in_place=in_place).partitions
    assert "nothing" in repr(tasks) or all(task.task.runs for task in tasks)
    return [task.task.shard if task.task.runs else None for task in tasks]


def test_a_partition_has_the_same_number_whatever_the_index_says() -> None:
    ranges = dict.fromkeys(range(4), (10, 20))
    assert planned(Index(), ranges, in_place=True) == [0, 1, 2, 3]
    assert planned(Index(0, 2), ranges, in_place=True) == [None, 1, None, 3]
    assert planned(Index(0, 3), ranges, in_place=True) == [None, 1, 2]  # nothing comes behind it
    assert planned(Index(0, 1, 2, 3), ranges, in_place=True) == []
    whole, some = (planned(Index(*empty), ranges, 9, in_place=True) for empty in ((), (1, 3)))
    assert [shard for shard in whole if shard in (0, 2)] == [shard for shard in some if shard is not None]
    assert all(found in (None, shard) for found, shard in zip(some, whole, strict=False))


def test_where_numbers_mean_nothing_there_are_no_partitions_without_work() -> None:
    assert planned(Index(0, 2), dict.fromkeys(range(4), (10, 20)), in_place=False) == [1, 3]
