"""The pieces that a PUBLISH packet of MQTT 5 is made of, each from one value of a row. [sections 3.3.1 and 3.3.2]

``BadValueError`` and MQTT's own ``PacketError`` say why a value can't be published.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from brookmq.mqtt.errors import PacketError
from brookmq.mqtt.primitives import check_text, varint
from brookmq.mqtt.topics import check_name

FIELD_BYTES_MAX: Final = 0xFFFF  # of text and binary data, whose length has two bytes
EXPIRY_S_MAX: Final = 0xFFFF_FFFF
QOS_MAX: Final = 2
TOPIC_SHOWN_BYTES: Final = 200

PACKET_ID: Final = b"\0\1"  # has to be there with QoS 1 and 2, and means nothing here
TEXT: Final = b"\x01\x01"  # the property of a payload that is text
CONTENT_TYPE: Final = b"\x03"
RESPONSE_TOPIC: Final = b"\x08"
CORRELATION_DATA: Final = b"\x09"

_PUBLISH: Final = 0x30
_PAYLOAD_FORMAT: Final = b"\x01"
_MESSAGE_EXPIRY: Final = b"\x02"
_USER_PROPERTY: Final = b"\x26"


class BadValueError(Exception):
    """A value that can't be published."""


def topic_name(topic: bytes | None) -> bytes:
    if topic is None:
        raise BadValueError("it is null")
    try:
        check_name(topic)
    except PacketError as error:
        raise BadValueError(f"{shown(topic)}: {error}") from None
    return sized(topic)


def shown(topic: bytes) -> str:
    """A topic in an error."""
    return repr(topic[:TOPIC_SHOWN_BYTES].decode(errors="replace"))


def topic_of(packet: bytes) -> bytes:
    """The topic in a packet that was made here."""
    at = 1
    while packet[at] & 0x80:
        at += 1
    size = int.from_bytes(packet[at + 1 : at + 3], "big")
    return packet[at + 3 : at + 3 + size]


def first_byte(qos: int, retain: bool) -> bytes:
    """The byte with which a packet begins."""
    if not 0 <= qos <= QOS_MAX:
        raise BadValueError(f"there is no QoS {qos}")
    return bytes((_PUBLISH | qos << 1 | retain,))


def there(payload: bytes | None) -> bytes:
    """No payload for a null: an empty one would remove a retained message."""
    if payload is None:
        raise BadValueError("it is null; an empty payload is an empty value")
    return payload


def sized(data: bytes) -> bytes:
    """With its length in front."""
    if len(data) > FIELD_BYTES_MAX:
        raise BadValueError(f"it has {len(data)} bytes, and {FIELD_BYTES_MAX} is the most")
    return len(data).to_bytes(2, "big") + data


def joined(pieces: Sequence[bytes | None]) -> bytes | None:
    """Properties with their length in front; None if one of them has no piece."""
    if None in pieces:
        return None
    properties = b"".join(pieces)  # type: ignore[arg-type]
    return varint(len(properties)) + properties


def payload_format(value: int | None) -> bytes:
    if value is None:
        return b""
    if value not in (0, 1):
        raise BadValueError(f"it is 0 (bytes) or 1 (text), not {value}")
    return _PAYLOAD_FORMAT + bytes((value,))


def expiry(seconds: int | None) -> bytes:
    if seconds is None:
        return b""
    if not 1 <= seconds <= EXPIRY_S_MAX:
        raise BadValueError(f"it takes 1 to {EXPIRY_S_MAX} seconds, not {seconds}")
    return _MESSAGE_EXPIRY + seconds.to_bytes(4, "big")


def expiry_at(end_us: int, now: float) -> bytes | None:
    """None for what is over. What has a part of a second left is good for a whole one."""
    seconds = math.ceil(end_us / 1e6 - now)
    return None if seconds <= 0 else _MESSAGE_EXPIRY + min(seconds, EXPIRY_S_MAX).to_bytes(4, "big")


def check_response_topic(topic: bytes, _name: str) -> None:
    check_name(topic)  # [MQTT-3.3.2-14]


def user_properties(value: Any) -> bytes:
    """User properties: a list of structs, or a map. ``value`` is Arrow's, for its text may be no text."""
    try:
        given = value.as_py()
    except UnicodeDecodeError:
        raise BadValueError("it is no UTF-8") from None
    pieces = []
    for pair in given or ():
        name, text = pair if isinstance(pair, tuple) else (None, None) if pair is None else pair.values()
        if name is None or text is None:
            raise BadValueError("a name or a value in it is null")
        for part in (name, text):
            check_text(part.encode(), "user_properties")
        pieces.append(_USER_PROPERTY + sized(name.encode()) + sized(text.encode()))
    return b"".join(pieces)


def is_text(payload: bytes) -> bool:
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True
