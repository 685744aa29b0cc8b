"""Rows as they come over HTTP: what is taken, and what is refused with the number of its row."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brookmq.base.errors import PeerError
from brookmq.broker.rows import decode_rows
from brookmq.broker.settings import Settings
from brookmq.store.pipeline_record import Row
from tests.harness import wire
from tests.harness.wire import Property

NOW = 1000.0


def body(*packets: bytes, batch: int = 4, row: int = 7) -> bytes:
    return struct.pack(">qq", batch, row) + b"".join(packets)


def test_messages_with_all_that_belongs_to_them() -> None:
    first, messages = decode_rows(
        body(
            wire.publish("a/b", b"one", qos=1, packet_id=9, retain=True),
            wire.publish(
                "c",
                b"two",
                props=[
                    (Property.MESSAGE_EXPIRY, 60),
                    (Property.USER_PROPERTY, ("k", "v")),
                    (Property.CONTENT_TYPE, "t"),
                ],
            ),
        ),
        Settings(),
        NOW,
    )
    assert first == Row(4, 7)
    one, two = messages
    assert (one.topic, one.payload, one.qos, one.retain, one.expires_at) == (b"a/b", b"one", 1, True, 0.0)
    assert (two.topic, two.payload, two.qos, two.expires_at, two.published_at) == (b"c", b"two", 0, 1060.0, NOW)
    assert b"\x26\x00\x01k\x00\x01v" in two.properties
    assert decode_rows(body(), Settings(), NOW) == (Row(4, 7), [])


@pytest.mark.parametrize(
    ("packet", "complaint"),
    [
        (wire.publish("a", b"x")[:-1], "not whole"),
        (b"\x30", "not whole"),
        (b"\x30\xff\xff\xff\xff\x01", "not whole"),
        (b"\xc0\x00", "not a PUBLISH"),
        (b"\x36\x02\x00\x00", "not a PUBLISH"),
        (wire.publish("a/#", b""), "wildcards"),
        (wire.publish("", b""), "empty"),
        (wire.publish("$SYS/x", b""), r"\$SYS"),
        (wire.publish("$delayed/5/x", b""), r"\$delayed"),
        (wire.publish("", b"", props=[(Property.TOPIC_ALIAS, 1)]), "alias"),
        (wire.publish("a", bytes(2000)), "packet_size_max"),
        (wire.publish("x" * 300, b""), "longer than"),
        (wire.publish("a", b"", retain=True), "switched off"),
    ],
)
def test_a_row_that_cannot_be_published(packet: bytes, complaint: str) -> None:
    settings = Settings()
    settings.packet_size_max = 1000
    settings.topic_length_max = 200
    settings.retain_available = False
    with pytest.raises(PeerError, match=rf"row 8: .*{complaint}"):
        decode_rows(body(wire.publish("fine", b""), packet), settings, NOW)


@pytest.mark.parametrize("data", [b"", bytes(15), body(batch=-1), body(row=-1), body(batch=1 << 62)])
def test_numbers_that_are_none(data: bytes) -> None:
    with pytest.raises(PeerError, match="rows: "):
        decode_rows(data, Settings(), NOW)


@given(st.binary(max_size=60))
def test_any_bytes_are_rows_or_refused(data: bytes) -> None:
    try:
        _, messages = decode_rows(bytes(16) + data, Settings(), NOW)
    except PeerError:
        return
    assert sum(len(message.payload) for message in messages) <= len(data)
