"""The CONNACK of a client that comes in: what the node grants, where it is not what the client asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brookmq.access.points import ClientInfo
from brookmq.mqtt import packets, reasons
from brookmq.mqtt.codec import encode_connack
from brookmq.mqtt.properties import Properties

if TYPE_CHECKING:
    from brookmq.broker.channel import Channel


def accepted(
    channel: Channel,
    packet: packets.Connect,
    client: ClientInfo,
    expiry: int | None,
    keep_alive: int,
    data: bytes | None,
) -> bytes:
    """The CONNACK of success, for now without Session Present."""
    if not channel.version5:
        return encode_connack(False, reasons.SUCCESS, None, packet.version)
    settings = channel.settings
    given = packet.properties
    properties = Properties()
    properties.receive_maximum = settings.receive_max
    properties.maximum_packet_size = settings.packet_size_max
    if settings.topic_alias_max:
        properties.topic_alias_maximum = settings.topic_alias_max
    if settings.qos_max < 2:
        properties.maximum_qos = settings.qos_max
    if not settings.retain_available:
        properties.retain_available = 0
    if not settings.wildcard_available:
        properties.wildcard_subscription_available = 0
    if not settings.subscription_ids_available:
        properties.subscription_identifier_available = 0
    if not settings.shared_available:
        properties.shared_subscription_available = 0
    if not packet.client_id:
        properties.assigned_client_identifier = client.client_id  # [MQTT-3.2.2-16]
    if keep_alive != packet.keep_alive:
        properties.server_keep_alive = keep_alive  # [MQTT-3.1.2-21]
    if expiry is not None:
        properties.session_expiry_interval = expiry
    if given.request_response_information and settings.response_information:
        properties.response_information = settings.response_information
    if given.authentication_method is not None:
        properties.authentication_method = given.authentication_method  # [MQTT-4.12.0-4]
        properties.authentication_data = data
    return encode_connack(False, reasons.SUCCESS, properties, 5)


def with_session_present(connack: bytes) -> bytes:
    """The first byte behind the length is 1 then; the length of ours takes one byte or two. [MQTT-3.2.2-2]"""
    at = 2 if connack[1] < 0x80 else 3
    return connack[:at] + b"\x01" + connack[at + 1 :]
