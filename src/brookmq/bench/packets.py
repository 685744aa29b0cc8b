"""The few packets that a load generator sends, as bytes made once before the load begins.

The tool has its own small encoder on purpose: it works against any broker, and an error in BrookMQ's codec must not be
hidden by both sides making it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from brookmq.bench.wire import PublishBlock

STAMP_BYTES: Final = 8
PINGREQ: Final = b"\xc0\x00"
DISCONNECT: Final = b"\xe0\x00"
RECEIVE_MAXIMUM_DEFAULT: Final = 65535
FILTERS_PER_SUBSCRIBE: Final = 200
"""Enough to make 100,000 filters quick, few enough for brokers with small packet limits."""


@dataclass(frozen=True, slots=True)
class SerialTopic:
    """A topic with two decimal numbers that count on with every message: ``prefix NUMBER / NUMBER``."""

    prefix: bytes
    first_width: int
    first_modulus: int
    first_stride: int
    second_width: int
    second_modulus: int

    def __bytes__(self) -> bytes:
        return b"%s%s/%s" % (self.prefix, b"0" * self.first_width, b"0" * self.second_width)


@dataclass(frozen=True, slots=True)
class NumberedTopic:
    """A topic with one decimal number that moves on by ``stride`` with every message: ``prefix NUMBER suffix``."""

    prefix: bytes
    width: int
    modulus: int
    stride: int
    suffix: bytes

    def __bytes__(self) -> bytes:
        return self.prefix + b"0" * self.width + self.suffix


Topic = bytes | SerialTopic | NumberedTopic


def variable_length(value: int) -> bytes:
    out = bytearray()
    while True:
        value, low = divmod(value, 128)
        out.append(low | 128 if value else low)
        if not value:
            return bytes(out)


def _string(content: bytes) -> bytes:
    return len(content).to_bytes(2) + content


def _packet(head: int, body: bytes) -> bytes:
    return bytes((head,)) + variable_length(len(body)) + body


def connect(
    client_id: str,
    version: int,
    *,
    keep_alive_s: int = 300,
    clean: bool = True,
    expiry_s: int = 0,
    user: str | None = None,
    password: str | None = None,
) -> bytes:
    flags = 2 * clean | 128 * (user is not None) | 64 * (password is not None)
    name = b"MQIsdp" if version == 3 else b"MQTT"
    body = _string(name) + bytes((version, flags)) + keep_alive_s.to_bytes(2)
    if version == 5:
        properties = b"\x11" + expiry_s.to_bytes(4) if expiry_s else b""
        body += variable_length(len(properties)) + properties
    body += _string(client_id.encode())
    if user is not None:
        body += _string(user.encode())
    if password is not None:
        body += _string(password.encode())
    return _packet(0x10, body)


def subscribe(filters: list[bytes], version: int, qos: int) -> list[bytes]:
    """SUBSCRIBE packets for all filters, as few as reasonable."""
    packets = []
    for start in range(0, len(filters), FILTERS_PER_SUBSCRIBE):
        body = (1 + start // FILTERS_PER_SUBSCRIBE).to_bytes(2) + (b"\0" if version == 5 else b"")
        for topic_filter in filters[start : start + FILTERS_PER_SUBSCRIBE]:
            body += _string(topic_filter) + bytes((qos,))
        packets.append(_packet(0x82, body))
    return packets


def publish(topic: bytes, payload: bytes, version: int, qos: int, *, retain: bool = False) -> tuple[bytes, int, int]:
    """One PUBLISH, and the places of its packet id (-1 at QoS 0) and of its payload."""
    body = _string(topic)
    from_end = len(payload) + (1 if version == 5 else 0)
    if qos:
        body += b"\0\1"
        from_end += 2
    body += (b"\0" if version == 5 else b"") + payload
    packet = _packet(0x30 | qos << 1 | retain, body)
    return packet, len(packet) - from_end if qos else -1, len(packet) - len(payload)


def publish_block(
    topic: Topic, payload_bytes: int, version: int, qos: int, capacity: int, *, retain: bool = False
) -> PublishBlock:
    """A block of PUBLISH packets; the payload begins with the time of sending when it has room for that."""
    stamped = payload_bytes >= STAMP_BYTES
    payload = (bytes(STAMP_BYTES) if stamped else b"").ljust(payload_bytes, b".")
    packet, id_offset, payload_offset = publish(bytes(topic), payload, version, qos, retain=retain)
    stamp_offset = payload_offset if stamped else -1
    if isinstance(topic, bytes):
        return PublishBlock(packet, capacity, id_offset, stamp_offset)
    at = packet.index(bytes(topic)) + len(topic.prefix)
    if isinstance(topic, NumberedTopic):
        return PublishBlock(packet, capacity, id_offset, stamp_offset, (at, topic.width, topic.modulus, topic.stride))
    first = (at, topic.first_width, topic.first_modulus, topic.first_stride)
    second = (at + topic.first_width + 1, topic.second_width, topic.second_modulus, 1)
    return PublishBlock(packet, capacity, id_offset, stamp_offset, first, second)


# CONNACK properties (MQTT 5, 3.2.2.3) by the length of their value; 0: a string, -1: a pair of strings.
_CONNACK_PROPERTIES: Final = {
    0x11: 4, 0x12: 0, 0x13: 2, 0x15: 0, 0x16: 0, 0x1A: 0, 0x1C: 0, 0x1F: 0, 0x21: 2, 0x22: 2, 0x24: 1, 0x25: 1,
    0x26: -1, 0x27: 4, 0x28: 1, 0x29: 1, 0x2A: 1,
}  # fmt: skip
_RECEIVE_MAXIMUM: Final = 0x21


def receive_maximum(connack: bytes, version: int) -> int:
    """How many unacknowledged messages the broker takes [MQTT-3.3.4-7]; ``connack`` comes without its fixed header."""
    if version != 5 or len(connack) < 3:
        return RECEIVE_MAXIMUM_DEFAULT
    at = 2
    while connack[at] & 128:
        at += 1
    at += 1
    while at < len(connack):
        length = _CONNACK_PROPERTIES.get(connack[at])
        if length is None:
            raise ValueError(f"a CONNACK with the property 0x{connack[at]:02X}, which it can't have")
        if connack[at] == _RECEIVE_MAXIMUM:
            return int.from_bytes(connack[at + 1 : at + 3])
        at += 1 + length if length > 0 else 1
        for _ in range({0: 1, -1: 2}.get(length, 0)):
            at += 2 + int.from_bytes(connack[at : at + 2])
    return RECEIVE_MAXIMUM_DEFAULT
