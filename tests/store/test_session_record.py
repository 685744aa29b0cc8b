"""The state of a session as bytes: back as it was, and refused when this version can't know what it means."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from brookmq.base.message import Message
from brookmq.store.errors import BadRecord
from brookmq.store.session_record import decode_state, encode_state
from brookmq.store.session_state import (
    InlineDelivery,
    SessionState,
    SubscriptionRecord,
    WillRecord,
    WindowEntry,
    position_of,
)
from brookmq.store.window_record import put_window
from tests.store.states import EVERY_CHARACTER, LONGEST_NAME, sessions

FIXTURE = bytes.fromhex((Path(__file__).with_name("fixtures") / "session-state-1.hex").read_text())


def full_state() -> SessionState:
    """A session that has everything."""
    state = SessionState("sensor-7")
    state.username, state.version, state.expiry = "operator", 5, float("inf")
    state.created_at, state.disconnected_at, state.will_due = 1700000000.0, 1700000100.5, 1700000160.5
    state.connected, state.connect_number, state.live = 0, 12, 3
    state.mount = b"site/1/"
    state.will = WillRecord(Message(b"site/1/gone", b"bye", 1, True, b"", 0.0, 0.0, "sensor-7", "operator"), 60, None)
    state.will_taken = True
    state.subscriptions = {
        "a/+": SubscriptionRecord("a/+", b"a/+", 1),
        "$share/g/b/#": SubscriptionRecord("$share/g/b/#", b"site/1/b/#", 2, True, True, 2, (7,), (4, 5), True),
    }
    state.cursors = [10, 2**48 - 1]
    state.window = {
        3: WindowEntry(3, 1, position_of(1, 8)),
        4: WindowEntry(4, 1, position_of(1, 9)),
        2: WindowEntry(2, 2, position_of(0, 9), True, b"gg\0b/#"),
        9: WindowEntry(9, 2),
    }
    state.inline = {9: InlineDelivery(Message(b"r", b"kept", 2, True), 2, True, b"\x0b\x07")}
    state.open_ids = {5: -1, 6: position_of(1, 3)}
    state.seen = (4, 3)
    state.released = {position_of(0, 4)}
    return state


@given(sessions())
def test_what_was_kept_is_what_is_read(state: SessionState) -> None:
    assert decode_state(encode_state(state)) == state


def test_format_1_is_read_and_written_as_it_was() -> None:
    assert decode_state(FIXTURE) == full_state()
    assert encode_state(full_state()) == FIXTURE


def test_names_of_any_length_and_with_every_character() -> None:
    for name in (LONGEST_NAME, EVERY_CHARACTER[:20000], EVERY_CHARACTER[-16000:]):
        state = SessionState(name)
        state.username = name
        state.mount = EVERY_CHARACTER.encode()
        state.subscriptions = {name: SubscriptionRecord(name, EVERY_CHARACTER.encode(), 1)}
        assert decode_state(encode_state(state)) == state


def test_a_typical_session_is_small() -> None:
    """A million of them are read at start."""
    state = SessionState("device-0000123456")
    state.username, state.expiry, state.cursors = "device", 3600.0, [1, 2, 3, 4]
    for topic_filter in ("fleet/7/device/1/commands", "fleet/7/device/1/settings"):
        state.subscriptions[topic_filter] = SubscriptionRecord(topic_filter, topic_filter.encode(), 1)
    assert len(encode_state(state)) <= 200


def test_messages_that_went_out_together_take_two_bytes_each() -> None:
    parts: list[bytes] = []
    put_window(parts, [WindowEntry(1 + i, 1, position_of(2, 100 + i)) for i in range(1000)])
    assert len(b"".join(parts)) < 2 * 1000 + 20


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "no format number"),
        (b"\x02" + FIXTURE[1:], "format 2, which is not known here"),
        (FIXTURE + b"\0", "its fields take"),
    ],
)
def test_what_is_no_state_is_said(body: bytes, said: str) -> None:
    with pytest.raises(BadRecord, match=said):
        decode_state(body)


def test_a_state_that_was_cut_is_never_taken_for_a_whole_one() -> None:
    for length in range(1, len(FIXTURE)):
        with pytest.raises(BadRecord):
            decode_state(FIXTURE[:length])
