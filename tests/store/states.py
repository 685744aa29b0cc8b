"""Hypothesis strategies for what the session log keeps, with every character that MQTT allows in its names."""

from __future__ import annotations

from hypothesis import strategies as st

from brookmq.base.message import Message
from brookmq.store.session_state import (
    GroupState,
    InlineDelivery,
    SessionState,
    SubscriptionRecord,
    WillRecord,
    WindowEntry,
    position_of,
)

SHARDS = 3
LONGEST_NAME = "ü" * 32767 + "x"  # 65,535 bytes, the most that MQTT allows
EVERY_CHARACTER = "".join(chr(c) for c in range(1, 0x110000) if not 0xD800 <= c <= 0xDFFF)  # [MQTT-1.5.4-1, -2]

names = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12), st.just(LONGEST_NAME)
)
few_names = st.sampled_from(["a", "a/+/b", "#", "$share/g/a", "ä/\U0010ffff", LONGEST_NAME])
times = st.one_of(st.just(0.0), st.floats(0, 4e9, allow_nan=False))
offsets = st.integers(0, 2**48 - 1)
positions = st.builds(position_of, st.integers(0, SHARDS - 1), offsets)
packet_ids = st.one_of(st.integers(1, 8), st.sampled_from([256, 65535]))  # few of them: they must meet
epochs = st.integers(0, 2**32 - 1)
groups = st.sampled_from([b"", b"", b"gname\0a/#", b"g" + LONGEST_NAME.encode() + b"\0" + LONGEST_NAME.encode()])

messages = st.builds(
    Message,
    names.map(str.encode),
    st.binary(max_size=40),
    st.integers(0, 2),
    st.booleans(),
    st.binary(max_size=20),
    times,
    times,
    names,
    st.none() | names,
)
wills = st.builds(WillRecord, messages, st.integers(0, 2**32 - 1), st.none() | st.integers(0, 2**32 - 1))
subscriptions = st.builds(
    SubscriptionRecord,
    few_names,
    st.binary(max_size=10) | few_names.map(str.encode),
    st.integers(0, 2),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2),
    st.lists(st.integers(1, 268_435_455), max_size=3).map(tuple),
    st.none() | st.lists(offsets, min_size=SHARDS, max_size=SHARDS).map(tuple),
    st.booleans(),
)
window_entries = st.builds(WindowEntry, packet_ids, st.integers(1, 3), st.just(-1) | positions, st.booleans(), groups)
windows = st.lists(window_entries, max_size=6, unique_by=lambda entry: entry.packet_id)
deliveries = st.builds(InlineDelivery, messages, st.integers(0, 2), st.booleans(), st.binary(max_size=9))
cursors = st.lists(offsets, max_size=SHARDS)
some_positions = st.lists(positions, max_size=4, unique=True).map(tuple)
group_states = st.builds(GroupState, epochs, cursors.map(tuple), some_positions, some_positions)


@st.composite
def sessions(draw: st.DrawFn) -> SessionState:
    """Any state, whether a broker would come to it or not."""
    state = SessionState(draw(names))
    state.username = draw(st.none() | names)
    state.version = draw(st.integers(3, 5))
    state.expiry = draw(st.one_of(st.just(float("inf")), times))
    state.created_at, state.disconnected_at, state.will_due = draw(times), draw(times), draw(times)
    state.connected, state.live = draw(epochs), draw(epochs)
    state.connect_number = draw(st.integers(0, 2**64 - 1))
    state.mount = draw(names).encode()
    state.will = draw(st.none() | wills)
    state.will_taken = draw(st.booleans())
    state.subscriptions = {record.filter: record for record in draw(st.lists(subscriptions, max_size=3))}
    state.cursors = draw(cursors)
    state.window = {entry.packet_id: entry for entry in draw(windows)}
    state.inline = draw(st.dictionaries(packet_ids, deliveries, max_size=2))
    state.open_ids = draw(st.dictionaries(packet_ids, st.just(-1) | positions, max_size=4))
    state.seen = tuple(draw(cursors))
    state.released = draw(st.sets(positions, max_size=3))
    return state
