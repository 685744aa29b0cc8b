"""MQTT packets as bytes, written by hand for tests.

Nothing here comes from `brookmq.mqtt`: a mistake in the node's codec must not hide behind the same mistake in the
tests. The builders let a test write any nonsense, that is what they are for; the decoder in `tests.harness.received`
is strict.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any


class Kind(IntEnum):
    """The type of a control packet (section 2.1.2)."""

    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14
    AUTH = 15


class Property(IntEnum):
    """The identifier of an MQTT 5 property (section 2.2.2.2)."""

    PAYLOAD_FORMAT = 0x01
    MESSAGE_EXPIRY = 0x02
    CONTENT_TYPE = 0x03
    RESPONSE_TOPIC = 0x08
    CORRELATION_DATA = 0x09
    SUBSCRIPTION_ID = 0x0B
    SESSION_EXPIRY = 0x11
    ASSIGNED_CLIENT_ID = 0x12
    SERVER_KEEP_ALIVE = 0x13
    AUTH_METHOD = 0x15
    AUTH_DATA = 0x16
    REQUEST_PROBLEM_INFORMATION = 0x17
    WILL_DELAY = 0x18
    REQUEST_RESPONSE_INFORMATION = 0x19
    RESPONSE_INFORMATION = 0x1A
    SERVER_REFERENCE = 0x1C
    REASON_STRING = 0x1F
    RECEIVE_MAXIMUM = 0x21
    TOPIC_ALIAS_MAXIMUM = 0x22
    TOPIC_ALIAS = 0x23
    MAXIMUM_QOS = 0x24
    RETAIN_AVAILABLE = 0x25
    USER_PROPERTY = 0x26
    MAXIMUM_PACKET_SIZE = 0x27
    WILDCARD_AVAILABLE = 0x28
    SUBSCRIPTION_ID_AVAILABLE = 0x29
    SHARED_AVAILABLE = 0x2A


BYTE = {0x01, 0x17, 0x19, 0x24, 0x25, 0x28, 0x29, 0x2A}
TWO_BYTES = {0x13, 0x21, 0x22, 0x23}
FOUR_BYTES = {0x02, 0x11, 0x18, 0x27}
VARIABLE = {0x0B}
TEXT = {0x03, 0x08, 0x12, 0x15, 0x1A, 0x1C, 0x1F}
BINARY = {0x09, 0x16}
PAIR = {0x26}

Text = str | bytes  # bytes go out as they are: ill-formed UTF-8 is written that way
Value = int | str | bytes | tuple[Text, Text]
Properties = Sequence[tuple[int, Value]]


def variable(number: int) -> bytes:
    """A Variable Byte Integer (section 1.5.5)."""
    out = bytearray()
    while True:
        number, low = divmod(number, 128)
        out.append(low | (0x80 if number else 0))
        if not number:
            return bytes(out)


def binary(data: Text) -> bytes:
    """A field with two bytes of length in front: text or binary data (sections 1.5.4, 1.5.6)."""
    raw = data.encode() if isinstance(data, str) else data
    return len(raw).to_bytes(2, "big") + raw


def one_property(identifier: int, value: Value) -> bytes:
    """One property with its identifier."""
    if isinstance(value, tuple):
        return bytes([identifier]) + binary(value[0]) + binary(value[1])
    if isinstance(value, str | bytes):
        return bytes([identifier]) + binary(value)
    if identifier in VARIABLE:
        return bytes([identifier]) + variable(value)
    size = 1 if identifier in BYTE else 2 if identifier in TWO_BYTES else 4
    return bytes([identifier]) + value.to_bytes(size, "big")


def properties(items: Properties = ()) -> bytes:
    """Property Length and properties (section 2.2.2)."""
    body = b"".join(one_property(identifier, value) for identifier, value in items)
    return variable(len(body)) + body


def packet(kind: int, flags: int, body: bytes = b"") -> bytes:
    """A whole control packet: fixed header and the rest."""
    return bytes([kind << 4 | flags]) + variable(len(body)) + body


@dataclass(frozen=True)
class Will:
    """The will of a CONNECT."""

    topic: Text
    payload: bytes = b"will"
    qos: int = 0
    retain: bool = False
    properties: Properties = ()


def connect(
    client_id: Text,
    *,
    version: int = 5,
    clean: bool = True,
    keep_alive: int = 0,
    will: Will | None = None,
    username: Text | None = None,
    password: Text | None = None,
    props: Properties = (),
    protocol: Text | None = None,
    flags: int | None = None,
    payload: bytes | None = None,
) -> bytes:
    """A CONNECT. `flags` and `payload`, when given, replace what the other arguments would make."""
    if protocol is None:
        protocol = "MQIsdp" if version == 3 else "MQTT"
    made = (0x02 if clean else 0) | (0x80 if username is not None else 0) | (0x40 if password is not None else 0)
    fields = binary(client_id)
    if will is not None:
        made |= 0x04 | will.qos << 3 | (0x20 if will.retain else 0)
        fields += properties(will.properties) if version == 5 else b""
        fields += binary(will.topic) + binary(will.payload)
    fields += b"" if username is None else binary(username)
    fields += b"" if password is None else binary(password)
    header = binary(protocol) + bytes([version, made if flags is None else flags]) + keep_alive.to_bytes(2, "big")
    header += properties(props) if version == 5 else b""
    return packet(Kind.CONNECT, 0, header + (fields if payload is None else payload))


def publish(
    topic: Text,
    payload: bytes = b"",
    *,
    version: int = 5,
    qos: int = 0,
    packet_id: int | None = None,
    retain: bool = False,
    dup: bool = False,
    props: Properties = (),
) -> bytes:
    """A PUBLISH; the packet id is written when given, whatever the QoS."""
    flags = (0x08 if dup else 0) | qos << 1 | (0x01 if retain else 0)
    body = binary(topic)
    body += b"" if packet_id is None else packet_id.to_bytes(2, "big")
    body += properties(props) if version == 5 else b""
    return packet(Kind.PUBLISH, flags, body + payload)


def acknowledge(
    kind: Kind, packet_id: int, reason: int | None = None, props: Properties | None = None, flags: int | None = None
) -> bytes:
    """A PUBACK, PUBREC, PUBREL or PUBCOMP; reason and properties only when given (MQTT 5)."""
    body = packet_id.to_bytes(2, "big")
    body += b"" if reason is None else bytes([reason])
    body += b"" if props is None else properties(props)
    return packet(kind, (2 if kind is Kind.PUBREL else 0) if flags is None else flags, body)


def subscribe(
    packet_id: int, filters: Iterable[tuple[Text, int]], *, version: int = 5, props: Properties = (), flags: int = 2
) -> bytes:
    """A SUBSCRIBE of (filter, options byte) pairs."""
    body = packet_id.to_bytes(2, "big") + (properties(props) if version == 5 else b"")
    body += b"".join(binary(name) + bytes([options]) for name, options in filters)
    return packet(Kind.SUBSCRIBE, flags, body)


def unsubscribe(
    packet_id: int, filters: Iterable[Text], *, version: int = 5, props: Properties = (), flags: int = 2
) -> bytes:
    """An UNSUBSCRIBE."""
    body = packet_id.to_bytes(2, "big") + (properties(props) if version == 5 else b"")
    return packet(Kind.UNSUBSCRIBE, flags, body + b"".join(binary(name) for name in filters))


def disconnect(reason: int | None = None, props: Properties | None = None, flags: int = 0) -> bytes:
    """A DISCONNECT; reason and properties only when given (MQTT 5)."""
    body = b"" if reason is None else bytes([reason])
    return packet(Kind.DISCONNECT, flags, body + (b"" if props is None else properties(props)))


def auth(reason: int | None = None, props: Properties | None = None, flags: int = 0) -> bytes:
    """An AUTH (MQTT 5)."""
    body = b"" if reason is None else bytes([reason])
    return packet(Kind.AUTH, flags, body + (b"" if props is None else properties(props)))


PINGREQ = packet(Kind.PINGREQ, 0)


def options(
    qos: int = 0, *, no_local: bool = False, retain_as_published: bool = False, retain_handling: int = 0
) -> int:
    """The subscription options byte of MQTT 5 (section 3.8.3.1)."""
    return qos | (0x04 if no_local else 0) | (0x08 if retain_as_published else 0) | retain_handling << 4


# the fields of a CONNECT whose session is to be kept, in every version
KEPT: dict[str, Any] = {"clean": False, "props": [(Property.SESSION_EXPIRY, 30)]}
