"""What keeps the log long, what is written next, what may go."""

from __future__ import annotations

import pytest

from brookmq.base.errors import CallerError, InvariantError
from brookmq.store.table.limits import TableLimits
from brookmq.store.table.tail import Tail

LIMITS = TableLimits(
    record_bytes_max=100, piece_bytes_max=100, tail_bytes=1_000, tail_records=50, tail_bytes_max=2_000, purge_share=0.1
)


@pytest.fixture
def tail() -> Tail:
    return Tail(LIMITS)


def fill(tail: Tail, first: int, count: int, size: int = 100, part: int | None = None) -> None:
    """Records of one change each, of part 1, 2, 3 … unless it is given."""
    for number in range(count):
        tail.appended(first + number, size, [number + 1 if part is None else part])
        tail.check_invariants()


def snapshot(tail: Tail, part: int) -> int:
    covered = tail.begin(part)
    tail.end()
    return covered


def test_nothing_is_written_while_it_is_short(tail: Tail) -> None:
    fill(tail, 1, 10)
    assert tail.bytes == 1_000
    assert not tail.long
    assert tail.next_part() is None
    assert tail.purgeable() == 0


def test_many_small_records_are_long_too(tail: Tail) -> None:
    fill(tail, 1, 50, size=1)
    assert tail.next_part() is None
    tail.appended(51, 1, [1])
    assert tail.next_part() == 1


def test_the_part_that_has_waited_longest_is_written_next(tail: Tail) -> None:
    fill(tail, 1, 10)
    tail.appended(11, 1, [1, 2])
    assert tail.next_part() == 1
    assert snapshot(tail, 1) == 11
    assert tail.next_part() == 2
    tail.appended(12, 1, [1])
    assert tail.next_part() == 2, "part 1 is the newest now"
    for part in range(2, 11):
        assert tail.next_part() == part
        snapshot(tail, part)
    assert tail.next_part() == 1


def test_one_at_a_time_and_changes_meanwhile_keep_it_dirty(tail: Tail) -> None:
    fill(tail, 1, 11, part=1)
    assert tail.begin(1) == 11
    assert tail.next_part() is None
    with pytest.raises(InvariantError):
        tail.begin(2)
    tail.appended(12, 100, [1, 2])
    tail.appended(13, 100, [1])
    tail.end()
    assert tail.dirty == {1: 12, 2: 12}
    assert snapshot(tail, 1) == 13
    assert tail.dirty == {2: 12}, "nothing is left over from the snapshot before"
    with pytest.raises(InvariantError):
        tail.end()


def test_what_all_snapshots_cover_is_purged_when_it_is_worth_it(tail: Tail) -> None:
    fill(tail, 1, 4, size=40)
    snapshot(tail, 1)
    snapshot(tail, 2)
    assert tail.purgeable() == 0, "80 bytes are less than a tenth of 1,000"
    snapshot(tail, 3)
    assert tail.purgeable() == 4
    tail.purged(4)
    assert tail.bytes == 40
    tail.check_invariants()


def test_the_last_record_always_stays(tail: Tail) -> None:
    fill(tail, 1, 3, part=1)
    snapshot(tail, 1)
    assert tail.dirty == {}
    assert tail.purgeable() == 3
    tail.purged(3)
    assert tail.bytes == 100
    assert tail.purgeable() == 0


def test_many_small_records_are_worth_a_purge(tail: Tail) -> None:
    fill(tail, 1, 6, size=1, part=1)
    snapshot(tail, 1)
    assert tail.purgeable() == 6


def test_a_snapshot_that_is_found_covers(tail: Tail) -> None:
    fill(tail, 5, 3, part=1)
    tail.covered(1, 6, changed=True)
    assert tail.dirty == {1: 7}
    tail.covered(1, 3, changed=True)
    assert tail.dirty == {1: 7}, "an older one changes nothing"
    tail.covered(1, 7, changed=False)
    assert tail.dirty == {}


def test_too_long_is_longer_than_long(tail: Tail) -> None:
    fill(tail, 1, 20)
    assert tail.long
    assert not tail.too_long
    fill(tail, 21, 1)
    assert tail.too_long


def test_records_come_in_order(tail: Tail) -> None:
    fill(tail, 5, 1)
    with pytest.raises(InvariantError):
        tail.appended(5, 1, [])


def test_bounds_that_would_stop_everything_are_refused() -> None:
    with pytest.raises(CallerError, match="one record may be as large"):
        TableLimits(tail_bytes=1_000, tail_bytes_max=100_000)
    with pytest.raises(CallerError, match="begin before"):
        TableLimits(tail_bytes=20_000_000)
