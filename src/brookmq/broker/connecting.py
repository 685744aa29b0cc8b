"""CONNECT: its checks, and who may come in.

    CONNECT ─► check ─► (enhanced authentication: AUTH ⇄ AUTH) ─► ask who may come in ─► admit: session, CONNACK
                                                                        └─ may wait for a plugin

Nothing is changed before the last step: a client that is refused leaves no trace, and takes nothing over.
[MQTT-3.1.4-2]
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from brookmq.access.points import ALLOW, Access, Allow, ClientInfo, Credentials, Decision, Deny
from brookmq.base.errors import PeerError
from brookmq.broker.admitting import admit
from brookmq.broker.authenticating import Proven, begin, take_auth
from brookmq.broker.publishing import SYS_PREFIX
from brookmq.broker.rewrite import expand
from brookmq.mqtt import packets, reasons
from brookmq.mqtt.codec import decode
from brookmq.mqtt.packet_types import AUTH, CONNECT
from brookmq.mqtt.properties import Properties
from brookmq.mqtt.topics import check_name

if TYPE_CHECKING:
    from brookmq.broker.channel import Channel

FOREVER = 0xFFFFFFFF


def take_packet(channel: Channel, head: int, body: bytes, now: float) -> None:
    """A packet before the CONNACK."""
    if channel.authentication is not None:
        if head >> 4 == AUTH:
            _go_on(channel, take_auth(channel, head, body), now)
            return
        if head >> 4 == packets.DISCONNECT:
            decode(head, body, channel.version)
            channel.give_up()
            return
        raise PeerError(reasons.PROTOCOL_ERROR, "only AUTH or DISCONNECT may come during authentication")
    if head >> 4 != CONNECT:
        raise PeerError(reasons.PROTOCOL_ERROR, "the first packet is not CONNECT")  # [MQTT-3.1.0-1]
    try:
        packet = decode(head, body, 0)
    except PeerError:
        channel.version = _version_of(body)  # as far as it can be known, for an answer that the client understands
        channel.version5 = channel.version == 5
        raise
    assert isinstance(packet, packets.Connect)
    channel.version = packet.version
    channel.version5 = packet.version == 5
    _take_connect(channel, packet, now)


def _version_of(body: bytes) -> int:
    """The protocol level in a CONNECT that is wrong elsewhere; 0 when it is not MQTT at all."""
    if body[:6] == b"\0\4MQTT" and len(body) > 6:
        return body[6] if body[6] in (4, 5) else 5 if body[6] > 5 else 4
    if body[:8] == b"\0\6MQIsdp":
        return 3
    return 0


def _take_connect(channel: Channel, packet: packets.Connect, now: float) -> None:
    settings = channel.settings
    broker = channel.broker
    channel.problem_information = packet.properties.request_problem_information != 0
    channel.peer_packet_size_max = packet.properties.maximum_packet_size or FOREVER
    if not broker.accepting:
        properties = Properties()
        if settings.server_reference and channel.version5:
            properties.server_reference = settings.server_reference
            channel.refuse(reasons.USE_ANOTHER_SERVER, "", properties)
        else:
            channel.refuse(reasons.SERVER_UNAVAILABLE)
        return
    client_id = packet.client_id
    if not client_id:
        if packet.version < 5 and not packet.clean_start:
            channel.refuse(reasons.CLIENT_IDENTIFIER_NOT_VALID)  # [MQTT-3.1.3-8] of 3.1.1
            return
        client_id = broker.new_client_id()  # [MQTT-3.1.3-6]
    if len(client_id.encode()) > settings.client_id_length_max:
        channel.refuse(reasons.CLIENT_IDENTIFIER_NOT_VALID)
        return
    if packet.will is not None:
        _check_will(channel, packet.will)
    client = ClientInfo(
        client_id, packet.username, channel.address, packet.version, channel.listener, channel.certificate
    )
    method = packet.properties.authentication_method
    if method is not None:
        _go_on(channel, begin(channel, packet, client, method), now)
        return
    _ask(channel, packet, client, now)


def _check_will(channel: Channel, will: packets.Will) -> None:
    settings = channel.settings
    check_name(will.topic, settings.topic_levels_max)
    if len(will.topic) > settings.topic_length_max:
        raise PeerError(
            reasons.TOPIC_NAME_INVALID, f"the will's topic is longer than {settings.topic_length_max} bytes"
        )
    if will.topic.startswith(SYS_PREFIX):
        raise PeerError(reasons.NOT_AUTHORIZED, "the will's topic is the node's own")
    if will.qos > settings.qos_max:
        raise PeerError(reasons.QOS_NOT_SUPPORTED, "the will's QoS is not supported")  # [MQTT-3.2.2-12]
    if will.retain and not settings.retain_available:
        raise PeerError(reasons.RETAIN_NOT_SUPPORTED, "retained messages are not supported")  # [MQTT-3.2.2-13]
    if will.properties.payload_format_indicator == 1 and settings.payload_format_check:
        try:
            will.payload.decode()
        except UnicodeDecodeError:
            raise PeerError(reasons.PAYLOAD_FORMAT_INVALID, "the will is not the UTF-8 that it says it is") from None


# -- who may come in


def _go_on(channel: Channel, proven: Proven | None, now: float) -> None:
    """One step of an exchange of AUTH packets is done; it may have been the last."""
    if proven is not None:
        _ask(channel, proven.packet, proven.client, now, proven.data)


def _ask(channel: Channel, packet: packets.Connect, client: ClientInfo, now: float, data: bytes | None = None) -> None:
    authentication = channel.broker.authentication
    if packet.properties.authentication_method is not None:
        _decided(channel, packet, client, ALLOW, now, data)  # proven by the exchange
    elif not authentication.asks:
        _decided(channel, packet, client, authentication.unasked(), now, data)
    else:
        _ask_hooks(channel, packet, client, now)


def _ask_hooks(channel: Channel, packet: packets.Connect, client: ClientInfo, now: float) -> None:
    authentication = channel.broker.authentication
    credentials = Credentials(client, packet.password, None, None, packet.clean_start, packet.keep_alive)
    if authentication.needs_wait:
        channel.suspend(
            authentication.decide(credentials), lambda answer: _decided(channel, packet, client, answer, now, None)
        )
    else:
        _decided(channel, packet, client, authentication.decide_now(credentials), now, None)


def _decided(
    channel: Channel,
    packet: packets.Connect,
    client: ClientInfo,
    decision: Allow | Deny,
    now: float,
    data: bytes | None,
) -> None:
    if isinstance(decision, Deny):
        channel.refuse(decision.reason, decision.message)
        return
    if decision.superuser:
        client = replace(client, superuser=True)
    channel.client = client
    mounted = b""
    if channel.mount_template:
        prefix = expand(channel.mount_template, client.client_id, client.username, single_level=True)
        if prefix is None:
            channel.refuse(reasons.CLIENT_IDENTIFIER_NOT_VALID, "no mount point can be made for this client")
            return
        mounted = prefix.encode()
    if packet.will is None or not channel.broker.hooks.authorize or client.superuser:
        admit(channel, packet, client, mounted, now, data)
    else:
        _judge_will(channel, packet, packet.will, client, mounted, now, data)


def _judge_will(
    channel: Channel,
    packet: packets.Connect,
    will: packets.Will,
    client: ClientInfo,
    mounted: bytes,
    now: float,
    data: bytes | None,
) -> None:
    hooks = channel.broker.hooks
    access = Access("publish", will.topic.decode(), will.qos, will.retain)

    def judged(answer: Decision) -> None:
        if isinstance(answer, Deny):
            channel.refuse(answer.reason, "the will may not be published")
        else:
            admit(channel, packet, client, mounted, now, data)

    if hooks.authorize_waits:
        channel.suspend(hooks.run_authorize(client, access), judged)
    else:
        judged(hooks.authorize_now(client, access))
