"""Changes of sessions: what they make of a state, and that making them again changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.store import session_ops as ops
from brookmq.store.errors import BadRecord
from brookmq.store.session_record import decode_state, encode_state
from brookmq.store.session_state import SessionState, SubscriptionRecord, WindowEntry, position_of
from tests.store.states import (
    SHARDS,
    cursors,
    deliveries,
    epochs,
    few_names,
    offsets,
    packet_ids,
    positions,
    sessions,
    subscriptions,
    times,
    window_entries,
    windows,
)
from tests.store.test_session_record import full_state

FIXTURES = Path(__file__).with_name("fixtures") / "session-ops-1.hex"


def ids_of(numbers: list[int]) -> bytes:
    return b"".join(number.to_bytes(2, "big") for number in numbers)


dynamics = st.fixed_dictionaries(
    {
        "live": epochs,
        "cursors": cursors,
        "window": windows,
        "inline": st.dictionaries(packet_ids, deliveries, max_size=2),
        "open_ids": st.dictionaries(packet_ids, st.just(-1) | positions, max_size=3),
        "seen": cursors.map(tuple),
        "released": st.sets(positions, max_size=2),
    }
)
id_lists = st.lists(packet_ids, max_size=4)

# Each change as plain data, (name, arguments), so that the model does not read what the code wrote.
changes: st.SearchStrategy[tuple[str, Any]] = st.one_of(
    st.tuples(st.just("state"), sessions()),
    st.tuples(st.just("connected"), sessions()),
    st.tuples(st.just("subscribed"), st.lists(subscriptions, max_size=3)),
    st.tuples(st.just("unsubscribed"), st.lists(few_names, max_size=3)),
    st.tuples(st.just("dynamic"), dynamics),
    st.tuples(
        st.just("sent"),
        st.tuples(
            st.just(ops.NO_SHARD) | st.integers(0, SHARDS - 1),
            offsets,
            st.lists(window_entries, max_size=4, unique_by=lambda entry: entry.packet_id),
            st.dictionaries(packet_ids, deliveries, max_size=2),
        ),
    ),
    st.tuples(st.just("received"), id_lists),
    st.tuples(st.just("opened"), id_lists),
    st.tuples(st.just("released"), st.lists(st.tuples(packet_ids, st.just(-1) | positions), max_size=3)),
    st.tuples(st.just("disconnected"), st.tuples(times, times, times, dynamics)),
    st.tuples(st.just("will_taken"), st.none()),
    st.tuples(st.just("will_dropped"), st.none()),
    st.tuples(st.just("ended"), st.none()),
)
histories = st.lists(changes, max_size=12)


def encoded(change: tuple[str, Any]) -> bytes:
    """The change as it stands in the log."""
    name, given_ = change
    if name in ("received", "opened"):
        given_ = ids_of(given_)
    function = getattr(ops, name)
    if name == "dynamic":
        return bytes(function(**given_))
    if name == "sent":
        return bytes(function(*given_))
    if name == "disconnected":
        at, will_due, expiry, rest = given_
        return bytes(function(at, will_due, expiry, ops.dynamic(**rest)))
    return bytes(function()) if given_ is None else bytes(function(given_))


SCALARS = (
    "client_id",
    "username",
    "version",
    "expiry",
    "created_at",
    "connected",
    "connect_number",
    "disconnected_at",
    "mount",
    "will",
    "will_due",
    "will_taken",
)


def model(session: SessionState | None, change: tuple[str, Any]) -> SessionState | None:
    """The same change, said in the simplest way; makes a new state."""
    name, given_ = change
    if name == "ended":
        return None
    if name == "state":
        return decode_state(encode_state(given_))
    if session is None:
        return None
    new = decode_state(encode_state(session))
    if name == "connected":
        for field in SCALARS:
            setattr(new, field, getattr(given_, field))
    elif name == "subscribed":
        new.subscriptions |= {record.filter: record for record in given_}
    elif name == "unsubscribed":
        new.subscriptions = {key: value for key, value in new.subscriptions.items() if key not in given_}
    elif name == "dynamic":
        assign_dynamic(new, given_)
    elif name == "sent":
        shard, cursor, entries, inline = given_
        if shard != ops.NO_SHARD:
            padded = new.cursors + [0] * SHARDS
            padded[shard] = cursor
            new.cursors = padded[: max(len(new.cursors), shard + 1)]
        again = {entry.packet_id for entry in entries}
        new.window = {k: v for k, v in new.window.items() if k not in again} | {e.packet_id: e for e in entries}
        new.inline = {k: v for k, v in new.inline.items() if k not in again} | inline
    elif name == "received":
        for packet_id in given_:
            if packet_id in new.window and new.window[packet_id].state != 1:
                new.window[packet_id] = new.window[packet_id]._replace(state=3)
                new.inline.pop(packet_id, None)
    elif name == "opened":
        new.open_ids |= dict.fromkeys(given_, -1)
    elif name == "released":
        ids = {packet_id for packet_id, _ in given_}
        new.open_ids = {key: value for key, value in new.open_ids.items() if key not in ids}
        new.released |= {position for _, position in given_ if position >= 0}
    elif name == "disconnected":
        new.connected = 0
        new.disconnected_at, new.will_due, new.expiry, rest = given_
        if new.will_due == 0.0:
            new.will, new.will_taken = None, False
        assign_dynamic(new, rest)
    elif name == "will_taken":
        new.will_taken = True
    else:
        assert name == "will_dropped"
        new.will, new.will_due, new.will_taken = None, 0.0, False
    return new


def assign_dynamic(new: SessionState, fields: dict[str, Any]) -> None:
    for field, value in fields.items():
        setattr(new, field, value)
    new.window = {entry.packet_id: entry for entry in fields["window"]}


def folded(session: SessionState | None, history: list[bytes]) -> SessionState | None:
    for op in history:
        session = ops.fold(session, op)
    return session


def copied(session: SessionState | None) -> SessionState | None:
    return None if session is None else decode_state(encode_state(session))


@given(st.none() | sessions(), histories)
def test_changes_do_what_the_model_says(begin: SessionState | None, history: list[tuple[str, Any]]) -> None:
    expected = begin
    for change in history:
        expected = model(expected, change)
    assert folded(copied(begin), [encoded(change) for change in history]) == expected


@given(st.none() | sessions(), histories, st.data())
def test_the_last_changes_made_again_change_nothing(
    begin: SessionState | None, history: list[tuple[str, Any]], data: st.DataObject
) -> None:
    """A snapshot may be newer than the place in the log that it names."""
    log = [encoded(change) for change in history]
    final = folded(copied(begin), log)
    again = data.draw(st.integers(0, len(log)))
    assert folded(copied(final), log[again:]) == final


@given(packet_ids, st.integers(1, 40), st.integers(1, 2), positions, st.sampled_from([b"", b"gg\0a"]))
def test_a_run_is_sent_like_its_entries(first: int, count: int, state: int, position: int, group: bytes) -> None:
    ids = [(first + i - 1) % 65535 + 1 for i in range(count)]
    run = ops.sent_run(1, 77, state, ids_of(ids), position, group)
    entries = [WindowEntry(packet_id, state, position + i, False, group) for i, packet_id in enumerate(ids)]
    assert ops.fold(SessionState("c"), run) == ops.fold(SessionState("c"), ops.sent(1, 77, entries))


def test_a_packet_id_that_is_used_again_goes_to_the_end_of_the_window() -> None:
    """Nothing is written when the client acknowledges: the next message with that id says so."""
    session = SessionState("c")
    for packet_id, offset in ((1, 10), (2, 11), (1, 12)):
        ops.fold(session, ops.sent(0, offset + 1, [WindowEntry(packet_id, 1, position_of(0, offset))]))
    assert [entry.position for entry in session.window.values()] == [11, 12]


def test_only_a_whole_state_makes_a_session() -> None:
    """Else what came late for a session that had ended would be part of the next one when it is applied again."""
    late = [ops.ended(), ops.subscribed([SubscriptionRecord("a", b"a", 1)]), ops.connected(SessionState("c"))]
    assert folded(full_state(), late) is None
    assert ops.fold(None, ops.state(full_state())) == full_state()


# -- format


def one_of_each() -> list[bytes]:
    """Every kind of change, in the order of their numbers."""
    state = full_state()
    under_way = (
        state.live,
        state.cursors,
        state.window.values(),
        state.inline,
        state.open_ids,
        state.seen,
        state.released,
    )
    return [
        ops.state(state),
        ops.connected(state),
        ops.subscribed(state.subscriptions.values()),
        ops.unsubscribed(["a/+", "ü"]),
        ops.dynamic(*under_way),
        ops.sent(1, 10, state.window.values(), state.inline),
        ops.received(b"\x00\x02\xff\xff"),
        ops.opened(b"\x00\x05"),
        ops.released([(5, -1), (6, position_of(1, 3))]),
        ops.disconnected(1700000100.5, 1700000160.5, 3600.0, ops.dynamic(*under_way)),
        ops.will_taken(),
        ops.will_dropped(),
        ops.ended(),
    ]


def test_format_1_is_written_as_it_was() -> None:
    """What is read is what was written, by the tests above; so these bytes are read as well."""
    assert [op.hex() for op in one_of_each()] == FIXTURES.read_text().split()


@pytest.mark.parametrize("op", one_of_each(), ids=lambda op: f"kind{op[1]}")
def test_a_change_that_was_cut_or_is_newer_is_refused(op: bytes) -> None:
    with pytest.raises(BadRecord, match="format 2"):
        ops.fold(full_state(), b"\x02" + op[1:])
    fixed = {ops.WILL_TAKEN, ops.WILL_DROPPED, ops.ENDED}
    if op[1] not in fixed:
        with pytest.raises(BadRecord):
            ops.fold(full_state(), op[:-1])


@pytest.mark.parametrize("op", [b"", b"\x01", b"\x01\x00", b"\x01\x63"])
def test_a_kind_that_is_not_known_is_refused(op: bytes) -> None:
    with pytest.raises(BadRecord, match="not known here"):
        ops.fold(None, op)
