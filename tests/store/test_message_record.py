"""Messages as they are kept by value."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from brookmq.base.message import Message
from brookmq.store.errors import BadRecord
from brookmq.store.message_record import decode_message, encode_message
from tests.store.states import EVERY_CHARACTER, LONGEST_NAME, messages

FIXTURE = bytes.fromhex((Path(__file__).with_name("fixtures") / "message-1.hex").read_text())
KEPT = Message(b"a/b", b"payload", 2, True, b"\x01\x01", 1800000000.5, 1700000000.25, "publisher", "user")


def fields(message: Message) -> tuple[object, ...]:
    """What makes two messages the same."""
    return (
        message.topic,
        message.payload,
        message.qos,
        message.retain,
        message.properties,
        message.expires_at,
        message.published_at,
        message.client_id,
        message.username,
    )


@given(messages)
def test_what_was_kept_is_what_is_read(message: Message) -> None:
    assert fields(decode_message(encode_message(message))) == fields(message)


def test_format_1_is_read_and_written_as_it_was() -> None:
    assert fields(decode_message(FIXTURE)) == fields(KEPT)
    assert encode_message(KEPT) == FIXTURE


def test_names_of_any_length_and_with_every_character() -> None:
    longest = Message(LONGEST_NAME.encode() * 2, bytes(70000), 1, False, bytes(66000), 0.0, 0.0, LONGEST_NAME, "")
    everything = Message(EVERY_CHARACTER.encode(), b"", 0, False, b"", 0.0, 0.0, EVERY_CHARACTER, EVERY_CHARACTER)
    for message in (longest, everything):
        assert fields(decode_message(encode_message(message))) == fields(message)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "no format number"),
        (b"\x02" + FIXTURE[1:], "format 2, which is not known here"),
        (FIXTURE[:10], "can't be read"),
        (FIXTURE[:40], "its names alone take"),
    ],
)
def test_what_is_no_message_is_said(body: bytes, said: str) -> None:
    with pytest.raises(BadRecord, match=said):
        decode_message(body)
