"""The last batches in memory."""

from __future__ import annotations

import pytest

from brookmq.base.errors import InvariantError
from brookmq.store.journal.batch import Batch
from brookmq.store.journal.recent import RecentBatches
from tests.store.journal.groups import run_group


def filled(count: int, bytes_max: int = 1 << 30) -> RecentBatches:
    """Batches of 1, 2, 3 … messages, from offset 100 on."""
    recent = RecentBatches(bytes_max)
    base = 100
    for number in range(1, count + 1):
        recent.add(Batch(0, base, [run_group(count=number)]))
        base += number
    return recent


@pytest.mark.parametrize("count", range(8))
def test_each_offset_is_found_in_its_batch_and_no_other_is(count: int) -> None:
    recent = filled(count)
    for offset in range(90, 140):
        wanted = [batch for batch in recent.batches if batch.base <= offset < batch.end]
        assert recent.find(offset) is (wanted[0] if wanted else None)
        assert recent.place(offset) == (recent.batches.index(wanted[0]) if wanted else -1)


def test_the_oldest_leave_at_the_bound() -> None:
    size = Batch(0, 0, [run_group()]).size
    recent = RecentBatches(3 * size)
    for base in range(10):
        recent.add(Batch(0, base, [run_group()]))
        recent.check_invariants(base + 1)
    assert [batch.base for batch in recent.batches] == [7, 8, 9]
    assert recent.bytes == 3 * size
    recent.add(Batch(0, 10, [run_group(payload=bytes(5 * size))]))  # larger than all of it
    assert (recent.batches, recent.bytes) == ([], 0)


def test_cleared() -> None:
    recent = filled(3)
    recent.clear()
    assert (recent.find(100), recent.bytes) == (None, 0)


def test_a_gap_is_noticed() -> None:
    recent = filled(2)
    with pytest.raises(InvariantError, match="where the shard does"):
        recent.check_invariants(500)
    recent.add(Batch(0, 500, [run_group()]))
    with pytest.raises(InvariantError, match="no gap"):
        recent.check_invariants(501)
