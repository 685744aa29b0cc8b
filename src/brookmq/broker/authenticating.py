"""Enhanced authentication: AUTH packets go to and fro until a mechanism knows who the client is. [section 4.12]

It begins with a CONNECT that names a method, or on a connection that is up. What the client is granted then is not
decided here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from brookmq.access.points import ClientInfo
from brookmq.base.errors import PeerError
from brookmq.mqtt import packets, reasons
from brookmq.mqtt.codec import decode, encode
from brookmq.mqtt.properties import Properties

if TYPE_CHECKING:
    from brookmq.broker.channel import Channel


class Exchange(Protocol):
    """One client's way through a mechanism of enhanced authentication."""

    def step(self, data: bytes | None) -> tuple[bool, bytes | None, str | None]:
        """Given the client's data: ``(done, data for the client, user name once done)``. Raises PeerError to refuse."""


class Mechanism(Protocol):
    """A way to authenticate by AUTH packets, named in the client's CONNECT."""

    def begin(self, client: ClientInfo) -> Exchange: ...


class PendingConnect:
    """A CONNECT whose exchange of AUTH packets is under way (or, later, a re-authentication)."""

    __slots__ = ("client", "exchange", "method", "packet")

    def __init__(self, packet: packets.Connect | None, client: ClientInfo, method: str, exchange: Exchange) -> None:
        self.packet = packet
        self.client = client
        self.method = method
        self.exchange = exchange


class Proven(NamedTuple):
    """A CONNECT whose exchange is over: who it is, and the mechanism's last words, which the CONNACK carries."""

    packet: packets.Connect
    client: ClientInfo
    data: bytes | None


def begin(channel: Channel, packet: packets.Connect, client: ClientInfo, method: str) -> Proven | None:
    """A CONNECT that names a method. None: AUTH packets have to follow, or the method is not known here."""
    mechanism = channel.broker.mechanisms.get(method)
    if mechanism is None:
        channel.refuse(reasons.BAD_AUTHENTICATION_METHOD)  # [MQTT-4.12.0-1]
        return None
    channel.authentication = PendingConnect(packet, client, method, mechanism.begin(client))
    return _step(channel, packet.properties.authentication_data)


def take_auth(channel: Channel, head: int, body: bytes) -> Proven | None:
    """AUTH before the CONNACK. None: the exchange goes on."""
    pending = channel.authentication
    packet = decode(head, body, channel.version)
    assert pending is not None
    assert isinstance(packet, packets.Auth)
    if packet.properties.authentication_method != pending.method:
        raise PeerError(reasons.PROTOCOL_ERROR, "AUTH: another authentication method")  # [MQTT-4.12.0-5]
    if packet.reason != reasons.CONTINUE_AUTHENTICATION:
        raise PeerError(reasons.PROTOCOL_ERROR, "AUTH: another reason than to continue")  # [MQTT-4.12.0-3]
    return _step(channel, packet.properties.authentication_data)


def _step(channel: Channel, data: bytes | None) -> Proven | None:
    pending = channel.authentication
    assert pending is not None
    done, answer, username = pending.exchange.step(data)
    if not done:
        _send_auth(channel, _auth_packet(reasons.CONTINUE_AUTHENTICATION, pending.method, answer))
        return None
    assert pending.packet is not None
    channel.authentication = None
    client = replace(pending.client, username=username if username is not None else pending.client.username)
    return Proven(pending.packet, client, answer)


def _auth_packet(reason: int, method: str, data: bytes | None) -> packets.Auth:
    properties = Properties()
    properties.authentication_method = method
    properties.authentication_data = data
    return packets.Auth(reason, properties)


def _send_auth(channel: Channel, packet: packets.Auth) -> None:
    data = encode(packet, 5)
    if len(data) > channel.peer_packet_size_max:  # [MQTT-3.1.2-24]: without it the exchange cannot go on
        raise PeerError(reasons.PACKET_TOO_LARGE, "AUTH is over the maximum packet size of the client")
    channel.outlet.put(data)


def re_authenticate(channel: Channel, packet: packets.Auth) -> None:
    """AUTH on a connection that is up: with the method of its CONNECT, or not at all. [MQTT-4.12.1-1]"""
    method, client = channel.method, channel.client
    assert client is not None
    if not method or packet.properties.authentication_method != method:
        raise PeerError(reasons.PROTOCOL_ERROR, "AUTH: not the authentication method of the CONNECT")
    pending = channel.authentication
    if packet.reason == reasons.RE_AUTHENTICATE:
        pending = PendingConnect(None, client, method, channel.broker.mechanisms[method].begin(client))
        channel.authentication = pending
    elif pending is None or packet.reason != reasons.CONTINUE_AUTHENTICATION:
        raise PeerError(reasons.PROTOCOL_ERROR, "AUTH: nothing to continue")
    done, answer, _ = pending.exchange.step(packet.properties.authentication_data)  # may refuse [MQTT-4.12.1-2]
    reason = reasons.SUCCESS if done else reasons.CONTINUE_AUTHENTICATION
    _send_auth(channel, _auth_packet(reason, method, answer))
    if done:
        channel.authentication = None
