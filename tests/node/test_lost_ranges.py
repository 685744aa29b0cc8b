"""Offsets that are told to be lost are counted once each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from brookmq.node import lost_ranges
from brookmq.node.lost_ranges import LostRanges

RANGES = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 30), st.integers(0, 10)), max_size=20)


@given(RANGES)
def test_each_offset_is_counted_once(told: list[tuple[int, int, int]]) -> None:
    ranges = LostRanges()
    seen: set[tuple[int, int]] = set()
    for shard, start, length in told:
        offsets = {(shard, offset) for offset in range(start, start + length)}
        assert ranges.uncounted(shard, start, start + length) == len(offsets - seen)
        assert ranges.add(shard, start, start + length) == len(offsets - seen)
        seen |= offsets
        assert ranges.uncounted(shard, 0, 50) == 50 - len({one for one in seen if one[0] == shard})


def test_only_the_newest_are_remembered() -> None:
    ranges = LostRanges()
    for number in range(lost_ranges.RANGES_MAX + 5):
        assert ranges.add(0, 10 * number, 10 * number + 1) == 1
    assert ranges.add(0, 10 * lost_ranges.RANGES_MAX, 10 * lost_ranges.RANGES_MAX + 1) == 0
    assert ranges.add(0, 0, 1) == 1
