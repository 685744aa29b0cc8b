"""Rows for publishing exactly once, as they come over HTTP: two numbers, then MQTT 5 PUBLISH packets.

| field     | size |                                                       |
|-----------|------|-------------------------------------------------------|
| batch     | 8    | signed, big endian; not below 0                       |
| first row | 8    | of the first packet; the others follow without a gap  |
| packets   |      | whole PUBLISH packets of MQTT 5, one behind the other |

Packet ids mean nothing here, and topics stand in each packet. Limits are those for clients.
"""

from __future__ import annotations

import struct
from typing import Final

from brookmq.base.errors import PeerError
from brookmq.base.events import PREFIX_BYTES as EVENTS_PREFIX
from brookmq.base.message import Message
from brookmq.broker.delayed import PREFIX as DELAYED_PREFIX
from brookmq.broker.publishing import SYS_PREFIX
from brookmq.broker.settings import Settings
from brookmq.mqtt import reasons
from brookmq.mqtt.kernel import frame
from brookmq.mqtt.packet_types import PUBLISH
from brookmq.mqtt.primitives import Reader
from brookmq.mqtt.properties import forwardable
from brookmq.mqtt.topics import check_name
from brookmq.store.pipeline_record import Row

MEDIA_TYPE: Final = "application/vnd.brookmq.rows"
NUMBER_MAX: Final = (1 << 62) - 1
_HEAD: Final = struct.Struct(">qq")


def decode_rows(data: bytes, settings: Settings, now: float) -> tuple[Row, list[Message]]:
    """The first row and all messages. PeerError names the row that can't be published; then none is to be."""
    if len(data) < _HEAD.size:
        raise PeerError(reasons.MALFORMED_PACKET, "rows: no batch and row in front of the packets")
    first = Row(*_HEAD.unpack_from(data))
    if not (0 <= first.batch <= NUMBER_MAX and 0 <= first.row <= NUMBER_MAX):
        raise PeerError(reasons.MALFORMED_PACKET, f"rows: there is no batch {first.batch}, row {first.row}")
    messages: list[Message] = []
    at = _HEAD.size
    while at < len(data):
        try:
            message, at = _decode_packet(data, at, settings, now)
        except PeerError as error:
            raise PeerError(error.reason, f"row {first.row + len(messages)}: {error}") from None
        messages.append(message)
    return first, messages


def _decode_packet(data: bytes, at: int, settings: Settings, now: float) -> tuple[Message, int]:
    head = data[at]
    start, end = frame(data, at)
    if end <= 0 or end > len(data):
        raise PeerError(reasons.MALFORMED_PACKET, "a packet that is not whole")
    if head >> 4 != PUBLISH or head >> 1 & 3 == 3:
        raise PeerError(reasons.MALFORMED_PACKET, f"not a PUBLISH packet: it begins with 0x{head:02X}")
    if end - at > settings.packet_size_max:
        raise PeerError(reasons.PACKET_TOO_LARGE, f"a packet of {end - at} bytes; mqtt.packet_size_max is less")
    qos, retain = head >> 1 & 3, bool(head & 1)
    reader = Reader(data, start, end)
    topic = reader.binary("topic name")
    if qos:
        reader.uint16("packet identifier")
    after = reader.properties_end()
    properties, expiry, alias, _, identified = forwardable(data, reader.position, after)
    if alias is not None or identified:
        raise PeerError(reasons.PROTOCOL_ERROR, "a row has neither a topic alias nor a subscription identifier")
    check_name(topic, settings.topic_levels_max)
    if len(topic) > settings.topic_length_max:
        raise PeerError(reasons.TOPIC_NAME_INVALID, f"a topic longer than {settings.topic_length_max} bytes")
    if topic.startswith((SYS_PREFIX, EVENTS_PREFIX, DELAYED_PREFIX)):
        raise PeerError(reasons.NOT_AUTHORIZED, "$SYS and $events topics are the node's own, $delayed is not for rows")
    if retain and not settings.retain_available:
        raise PeerError(reasons.RETAIN_NOT_SUPPORTED, "retained messages are switched off")
    expires_at = 0.0 if expiry is None else now + expiry
    return Message(topic, data[after:end], min(qos, settings.qos_max), retain, properties, expires_at, now), end
