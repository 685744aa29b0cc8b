"""Positions, their form in checkpoints, and rate limits that are exact."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.spark.positions import advanced, from_checkpoint, parse_offsets, rows_between, to_checkpoint

SPANS = st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(0, 1 << 30)), min_size=1, max_size=12)


@given(offsets=st.lists(st.integers(0, 1 << 48), min_size=1, max_size=12))
def test_a_checkpoint_has_the_position(offsets: list[int]) -> None:
    position = dict(enumerate(offsets))
    kept = json.loads(json.dumps(to_checkpoint("id", position)))
    assert from_checkpoint("id", kept, len(offsets)) == position


def test_a_checkpoint_of_another_journal_is_refused() -> None:
    with pytest.raises(ValueError, match="'old' and the node has 'new'"):
        from_checkpoint("new", to_checkpoint("old", {0: 1}), 1)
    with pytest.raises(ValueError, match=r"partitions \[0\] and the journal has 2"):
        from_checkpoint("id", to_checkpoint("id", {0: 1}), 2)


@given(spans=SPANS, rows_max=st.integers(1, 1 << 35))
def test_a_step_has_exactly_as_many_rows_as_it_may(spans: list[tuple[int, int]], rows_max: int) -> None:
    start = {shard: first for shard, (first, _) in enumerate(spans)}
    end = {shard: first + rows for shard, (first, rows) in enumerate(spans)}
    step = advanced(start, end, rows_max)
    assert rows_between(start, step) == min(rows_max, rows_between(start, end))
    assert all(start[shard] <= step[shard] <= end[shard] for shard in start)


def test_a_step_never_goes_back() -> None:
    assert advanced({0: 10, 1: 5}, {0: 3, 1: 9}, 100) == {0: 10, 1: 9}


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"a": 1}', '{"0": -1}', '{"0": "1"}', '{"0": true}', '{"0": 1.5}'])
def test_offsets_that_are_wrong_are_said(text: str) -> None:
    with pytest.raises(ValueError, match="the option startingPosition takes offsets"):
        parse_offsets(text, "startingPosition")
    assert parse_offsets('{"0": 17, "11": 0}', "startingPosition") == {0: 17, 11: 0}
