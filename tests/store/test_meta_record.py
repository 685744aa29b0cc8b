"""Epochs and shared groups in the session log."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.store import meta_record as meta
from brookmq.store.errors import BadRecord
from brookmq.store.session_state import (
    EPOCHS_MAX,
    Epoch,
    GroupState,
    MetaState,
    group_key,
    is_will_key,
    session_key,
    will_key,
)
from brookmq.store.table.interface import part_of
from tests.store.states import cursors, group_states, some_positions, times

FIXTURE = Path(__file__).with_name("fixtures") / "meta-1.hex"

histories = st.lists(
    st.one_of(
        st.builds(meta.epoch, st.integers(1, 4), times, cursors),
        st.builds(meta.watermark, st.integers(1, 4), times, cursors),
    ),
    max_size=8,
)


def folded(state: MetaState | None, log: list[bytes]) -> MetaState | None:
    for op in log:
        state = meta.fold_meta(state, op)
    return state


def test_a_watermark_is_kept_under_its_epoch_and_corrected_by_the_next_one() -> None:
    state = folded(
        None,
        [
            meta.epoch(1, 100.0, ()),
            meta.watermark(1, 101.0, [5, 6]),
            meta.watermark(1, 102.0, [7, 8]),
            meta.epoch(2, 200.0, [7, 9]),
            meta.watermark(2, 201.0, [9, 9]),
        ],
    )
    assert state == MetaState({1: Epoch(100.0, 102.0, (7, 9)), 2: Epoch(200.0, 201.0, (9, 9))})
    assert state is not None
    assert state.current() == 2


@given(st.lists(st.tuples(times, st.lists(st.tuples(times, cursors), max_size=3), cursors), max_size=4), st.data())
def test_the_last_changes_made_again_change_nothing(
    starts: list[tuple[float, list[tuple[float, list[int]]], list[int]]], data: st.DataObject
) -> None:
    """In a log epochs follow each other, each with watermarks of its own."""
    log: list[bytes] = []
    for number, (time, watermarks, before) in enumerate(starts, 1):
        log.append(meta.epoch(number, time, before))
        log += [meta.watermark(number, at, stored) for at, stored in watermarks]
    final = folded(None, log)
    assert folded(final, log[data.draw(st.integers(0, len(log))) :]) == final


@given(histories)
def test_epochs_that_were_kept_are_read(log: list[bytes]) -> None:
    state = folded(MetaState({}), log)
    assert state is not None
    assert meta.decode_meta(meta.encode_meta(state)) == state


def test_the_number_of_epochs_is_bounded() -> None:
    state = folded(None, [meta.epoch(number, 1.0, [1]) for number in range(1, EPOCHS_MAX + 3)])
    assert state is not None
    assert len(state.epochs) == EPOCHS_MAX
    assert min(state.epochs) == 3


@given(group_states)
def test_groups_that_were_kept_are_read(state: GroupState) -> None:
    assert meta.decode_group(meta.encode_group(state)) == state
    assert meta.fold_group(None, meta.group(state)) == state
    assert meta.fold_group(state, meta.group_ended()) is None


@given(group_states, some_positions, some_positions)
def test_what_members_leave_is_added_once(state: GroupState, returned: list[int], taken: list[int]) -> None:
    left = meta.group_left(returned, taken)
    after = meta.fold_group(state, left)
    assert after is not None
    assert meta.fold_group(after, left) == after
    assert after[:2] == state[:2]
    assert set(after.returned) == {*state.returned, *returned}
    assert set(after.taken) == {*state.taken, *taken}


def test_keys_are_told_apart() -> None:
    assert session_key("ä") == b"c\xc3\xa4"
    assert will_key("ä", 258) == b"c\xc3\xa4\xff\0\0\0\0\0\0\1\2"
    assert is_will_key(will_key("ä", 1))
    assert not is_will_key(session_key("ä"))
    assert part_of(will_key("ä", 1)) == part_of(session_key("ä"))
    assert group_key("g", b"a/#") == b"gg\0a/#"


def test_format_1_is_written_as_it_was() -> None:
    written = [
        meta.encode_meta(MetaState({1: Epoch(100.0, 102.0, (7, 9)), 2: Epoch(200.0, 200.0, ())})),
        meta.epoch(2, 200.0, [7, 9]),
        meta.watermark(2, 201.0, [9, 9]),
        meta.encode_group(GroupState(3, (1, 2), (9,), (4,))),
        meta.group(GroupState(3, (1, 2), (9,), (4,))),
        meta.group_left([8], [7, 6]),
        meta.group_ended(),
    ]
    assert [body.hex() for body in written] == FIXTURE.read_text().split()


@pytest.mark.parametrize("read", [meta.decode_meta, meta.decode_group, lambda op: meta.fold_meta(None, op)])
@pytest.mark.parametrize("body", [b"", b"\x02\x20", b"\x01\x20", b"\x01\x63", b"\x01\x21\x00\x00\x00\x01"])
def test_what_can_not_be_read_is_refused(read: object, body: bytes) -> None:
    assert callable(read)
    with pytest.raises(BadRecord):
        read(body)
