"""What a start makes of a log's records: by part, and of large changes only those that are whole."""

from __future__ import annotations

import pytest

from brookmq.base.errors import InvariantError
from brookmq.store.errors import BadRecord
from brookmq.store.table.format import (
    FIRST_PIECE,
    LAST_PIECE,
    PIECE,
    RECORD_STARTS,
    WHOLE,
    Marker,
    encode_change,
    encode_marker,
    entry_header,
    entry_of,
)
from brookmq.store.table.found import RECORD_OVERHEAD_BYTES, FoundTable
from brookmq.store.table.interface import META_KEY, META_PART, part_of
from brookmq.store.table.loading import Snapshot

LARGE = encode_change(part_of(b"large"), b"large", b"x" * 30)
PIECES = [
    RECORD_STARTS[FIRST_PIECE] + LARGE[:15],
    RECORD_STARTS[PIECE] + LARGE[15:30],
    RECORD_STARTS[LAST_PIECE] + LARGE[30:],
]


def whole(*keys: bytes) -> bytes:
    return RECORD_STARTS[WHOLE] + b"".join(encode_change(part_of(key), key, b"op of " + key) for key in keys)


@pytest.fixture
def found() -> FoundTable:
    return FoundTable("things")


def ops(found: FoundTable, key: bytes) -> list[tuple[int, bytes]]:
    return [(sequence, entry_of(change)[1]) for sequence, change in found.changes.get(part_of(key), [])]


def test_changes_are_found_by_part_with_their_sequences(found: FoundTable) -> None:
    found.take(5, None)
    found.take(6, whole(b"a", b"b"))
    found.take(9, whole(b"a"))
    assert found.sequence == 9
    assert ops(found, b"a") == [(6, b"op of a"), (9, b"op of a")]
    assert found.records[1][:2] == (6, RECORD_OVERHEAD_BYTES + len(whole(b"a", b"b")))
    assert [parts for _, _, parts in found.records] == [set(), {part_of(b"a"), part_of(b"b")}, {part_of(b"a")}]
    with pytest.raises(InvariantError):
        found.take(9, None)


def test_a_large_change_counts_from_its_last_piece_and_holds_its_first(found: FoundTable) -> None:
    for sequence, body in enumerate(PIECES, 1):
        assert ops(found, b"large") == []
        found.take(sequence, body)
    assert ops(found, b"large") == [(3, b"x" * 30)]
    assert [parts for _, _, parts in found.records] == [{part_of(b"large")}] * 3


def test_a_large_change_whose_owner_died_in_between_is_none(found: FoundTable) -> None:
    found.take(1, PIECES[0])
    found.take(2, PIECES[1])
    found.take(3, None)
    found.take(4, whole(b"a"))
    for sequence, body in enumerate(PIECES, 5):
        found.take(sequence, body)
    assert ops(found, b"large") == [(7, b"x" * 30)]


@pytest.mark.parametrize("left", [1, 2])
def test_a_large_change_that_was_purged_in_part_is_none(found: FoundTable, left: int) -> None:
    for sequence, body in enumerate(PIECES[-left:], 8):
        found.take(sequence, body)
    found.take(20, whole(b"a"))
    assert ops(found, b"large") == []
    assert ops(found, b"a") == [(20, b"op of a")]


def test_records_behind_the_last_marker_are_remembered(found: FoundTable) -> None:
    found.take(1, whole(b"a"))
    found.take(2, encode_marker(Marker(0, False, [])))
    found.take(3, None)
    found.take(4, whole(b"b"))
    assert found.marker == 2
    assert found.unmarked == [(3, None), (4, whole(b"b"))]


def test_the_meta_part_has_the_changes_that_its_snapshot_does_not_cover(found: FoundTable) -> None:
    for sequence in (1, 2, 3):
        found.take(sequence, whole(META_KEY))
    assert found.meta_state()[0] is None
    assert [sequence for sequence, _ in found.meta_state()[1]] == [1, 2, 3]
    found.snapshotted = {META_PART}
    found.meta = Snapshot(2, entry_header(0, 1) + b"m")
    snapshot, changes = found.meta_state()
    assert snapshot is not None
    assert snapshot.states("") == [(META_KEY, b"m")]
    assert [sequence for sequence, _ in changes] == [3]


def test_a_record_that_is_not_known_is_named(found: FoundTable) -> None:
    with pytest.raises(BadRecord, match="things, record 7: changes of format 9"):
        found.take(7, b"\x09\x00")
