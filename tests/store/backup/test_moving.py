"""Sessions that move to another journal: what they have still to get stays what it was."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from brookmq.store.backup.moving import Moves, detached, moved_group, moved_session
from brookmq.store.session_record import decode_state, encode_state
from brookmq.store.session_state import GroupState, SessionState, SubscriptionRecord, WindowEntry, position_of
from tests.store.states import sessions
from tests.store.test_session_record import full_state


@given(
    st.integers(0, 50),
    st.integers(0, 50),
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3), st.integers(0, 3)), max_size=8),
)
def test_every_message_is_found_where_it_went(first: int, head: int, stretches: list[tuple[int, int, int]]) -> None:
    """Stretches of messages, each behind a gap in the old journal and behind others' messages in the new one."""
    moves = Moves([head])
    places: dict[int, int] = {}
    old, new = first, head
    for count, gap, others in stretches:
        old, new = old + gap, new + others
        moves.add(0, old, new, count)
        places |= {old + i: new + i for i in range(count)}
        old, new = old + count, new + count
    for offset in range(old + 3):
        assert moves.position(position_of(0, offset)) == places.get(offset)
        later = [places[place] for place in sorted(places) if place >= offset]
        end = max(places.values()) + 1 if places else head
        assert moves.cursor(0, offset) == (later[0] if later else end)


def test_a_session_keeps_what_it_has_still_to_get() -> None:
    moves = Moves([100, 200])
    moves.add(0, 9, 100, 50)
    moves.add(1, 0, 200, 8)
    state = full_state()
    state.live = 0
    moved, left = moved_session(state, moves)
    assert moved.cursors == [101, 208]
    assert moved.seen == (101, 208)
    assert moved.subscriptions["$share/g/b/#"].since == (100, 205)
    assert {entry.packet_id: entry.position for entry in moved.window.values()} == {2: position_of(0, 100), 9: -1}
    assert left == 2  # offsets 8 and 9 of shard 1 did not come along
    assert 9 in moved.inline


def test_an_id_that_is_to_be_freed_needs_no_message() -> None:
    state = SessionState("c")
    state.window = {1: WindowEntry(1, 3, position_of(0, 5)), 2: WindowEntry(2, 2, position_of(0, 6))}
    moved, left = moved_session(state, Moves([7]))
    assert (moved.window, left) == ({1: WindowEntry(1, 3, -1)}, 1)
    assert moved.cursors == [7]


def test_without_a_journal_sessions_begin_at_its_end() -> None:
    state = SessionState("c")
    state.cursors = [3, 4]
    state.subscriptions = {"a": SubscriptionRecord("a", b"a", 1, since=(1, 2))}
    moved, _ = moved_session(state, Moves([70, 80]))
    assert moved.cursors == [70, 80]
    assert moved.subscriptions["a"].since == (70, 80)


def test_a_group_moves_too() -> None:
    moves = Moves([0])
    moves.add(0, 10, 0, 5)
    group = GroupState(0, (12,), (position_of(0, 11), position_of(0, 3)))
    assert moved_group(group, moves) == (GroupState(0, (2,), (position_of(0, 1),)), 1)


def test_a_live_session_is_as_far_as_its_node() -> None:
    state = full_state()
    state.connected, state.will_due, state.live = 3, 0.0, 3
    state.cursors = [10, 5]
    taken = detached(state, [8, 9, 2], 1234.5)
    assert (taken.cursors, taken.live, taken.connected, taken.disconnected_at) == ([10, 9, 2], 0, 0, 1234.5)
    assert taken.will is None  # it belongs to a connection that goes on elsewhere
    assert taken.open_ids == {5: -1, 6: -1}


@given(sessions())
def test_a_session_that_was_detached_is_detached(state: SessionState) -> None:
    once = detached(state, [5, 6], 1.0)
    again = detached(decode_state(encode_state(once)), [7, 8], 2.0)
    assert encode_state(again) == encode_state(once)


def test_one_that_is_away_keeps_its_will_that_is_due() -> None:
    state = full_state()
    state.connected = 0
    assert detached(state, [], 9.0).will is not None
    assert state.disconnected_at == 1700000100.5
