"""How reads are divided: every offset in exactly one part, and work for all cores where there is enough of it."""

from __future__ import annotations

import itertools
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.spark.planning import PARTS_MAX, ROWS_WORTH_A_PART, parts, ranges_between

RANGES = st.dictionaries(
    st.integers(0, 11),
    st.tuples(st.integers(0, 1 << 40), st.integers(1, 1 << 30)).map(lambda one: (one[0], one[0] + one[1])),
    max_size=12,
)


@given(ranges=RANGES, wanted=st.none() | st.integers(1, 1000))
def test_every_offset_is_in_one_part(ranges: dict[int, tuple[int, int]], wanted: int | None) -> None:
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
    assert len(parts({0: (0, 100 * ROWS_WORTH_A_PART)}, None)) == 4
    assert len(parts({0: (0, 2 * ROWS_WORTH_A_PART)}, None)) == 2
    assert len(parts({0: (5, 1000)}, None)) == 1
    assert len(parts({0: (5, 1000), 1: (0, 10)}, None)) == 1
    assert parts({}, None) == []


def test_ranges_that_are_empty_are_left_out() -> None:
    assert ranges_between({0: 5, 1: 7, 2: 9}, {0: 6, 1: 7, 2: 3}) == {0: (5, 6)}
