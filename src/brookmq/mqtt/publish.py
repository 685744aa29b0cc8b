"""PUBLISH packets one at a time: the way of every message that is not part of a plain run.

``codec`` decodes a PUBLISH into an object with all its properties; here the properties that a server only forwards stay
the bytes that they are, since decoding and encoding them again would be work without a reader.
"""

from __future__ import annotations

MESSAGE_EXPIRY = b"\x02"
SUBSCRIPTION_IDENTIFIER = 0x0B
TOPIC_ALIAS = b"\x23"


def variable_length(value: int) -> bytes:
    """A variable byte integer. [MQTT-1.5.5-1]"""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def identifier_properties(identifiers: tuple[int, ...]) -> bytes:
    """Subscription identifiers as properties; several when several subscriptions matched. [MQTT-3.3.4-4]"""
    return b"".join([b"\x0b" + variable_length(identifier) for identifier in identifiers])


def expiry_property(seconds: int) -> bytes:
    return MESSAGE_EXPIRY + seconds.to_bytes(4, "big")


def alias_property(alias: int) -> bytes:
    return TOPIC_ALIAS + alias.to_bytes(2, "big")


def encode_publish(head: int, topic: bytes, packet_id: int, version5: bool, properties: bytes, payload: bytes) -> bytes:
    """One packet. ``head`` is its first byte with all flags; ``packet_id`` stands only in packets of QoS 1 and 2."""
    parts = [len(topic).to_bytes(2, "big"), topic]
    size = 2 + len(topic) + len(payload)
    if head & 0x06:
        parts.append(packet_id.to_bytes(2, "big"))
        size += 2
    if version5:
        length = variable_length(len(properties))
        parts.append(length)
        parts.append(properties)
        size += len(length) + len(properties)
    parts.append(payload)
    return bytes((head,)) + variable_length(size) + b"".join(parts)
