"""A message as the PUBLISH that one client gets: its mount point, version, packet size and topic aliases."""

from __future__ import annotations

from brookmq.broker.client_state import ClientState
from brookmq.broker.publication import Delivery
from brookmq.mqtt.publish import alias_property, encode_publish, expiry_property


def encode_delivery(session: ClientState, delivery: Delivery, now: float) -> bytes | None:
    """The packet for this client; None when the message is expired or too large for it."""
    properties = b""
    message = delivery.message
    qos = delivery.qos
    dup = delivery.dup
    topic = message.topic
    if session.mount and topic.startswith(session.mount):
        topic = topic[len(session.mount) :]
    expires_at = message.expires_at
    if expires_at != 0.0 and now >= expires_at and not (dup and qos == 2):  # begun is begun [MQTT-4.3.3-7]
        session.counters.dropped_expired += 1  # [MQTT-3.3.2-5]
        return None
    name = topic
    if session.version5:
        properties = message.properties
        if delivery.identifiers:
            properties = delivery.identifiers + properties
        if expires_at != 0.0:
            properties = expiry_property(max(1, int(expires_at - now + 0.5))) + properties  # [MQTT-3.3.2-6]
        if session.alias_max:
            alias = _alias(session, topic)
            if alias > 0:
                properties = alias_property(alias) + properties
                name = b""
            elif alias < 0:
                properties = alias_property(-alias) + properties
    head = 0x30 | qos << 1 | (1 if delivery.retain else 0) | (8 if dup else 0)
    packet = encode_publish(head, name, delivery.packet_id, session.version5, properties, message.payload)
    if len(packet) > session.packet_size_max:  # [MQTT-3.1.2-24, -25]
        if session.alias_max and session.aliases is not None and name:
            session.aliases.pop(topic, None)  # the client never saw the alias of this packet
        session.counters.dropped_too_large += 1
        return None
    session.counters.messages_sent += 1
    session.sent_count += 1
    return packet


def _alias(session: ClientState, topic: bytes) -> int:
    """The topic's alias when the client knows it, minus a new one when there is one left, else 0.
    [MQTT-3.1.2-26]"""
    if session.aliases is None:
        session.aliases = {}
    alias = session.aliases.get(topic)
    if alias is not None:
        return alias
    if len(session.aliases) < session.alias_max:
        number = len(session.aliases) + 1
        session.aliases[topic] = number
        return -number
    return 0
