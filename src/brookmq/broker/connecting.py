"""CONNECT and the exchange that may follow it, up to the CONNACK.

    CONNECT ─► check ─► (enhanced authentication: AUTH ⇄ AUTH) ─► ask who may come in ─► session ─► CONNACK
                                                                        └─ may wait for a plugin

Nothing is changed before the last step: a client that is refused leaves no trace, and takes nothing over.
[MQTT-3.1.4-2]
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from brookmq.access.points import ALLOW, Access, Allow, ClientEvent, ClientInfo, Credentials, Decision, Deny
from brookmq.base.errors import PeerError
from brookmq.base.message import Message
from brookmq.broker.publishing import SYS_PREFIX, placed
from brookmq.broker.rewrite import expand
from brookmq.broker.will import Will
from brookmq.mqtt import packets, reasons
from brookmq.mqtt.codec import decode, encode, encode_connack
from brookmq.mqtt.packet_types import AUTH, CONNECT
from brookmq.mqtt.properties import Properties
from brookmq.mqtt.topics import check_name

if TYPE_CHECKING:
    from brookmq.broker.channel import Channel
    from brookmq.broker.session import Session
    from brookmq.store.table.interface import Table

FOREVER = 0xFFFFFFFF
RECEIVE_MAXIMUM_ABSENT = 65535  # [section 3.1.2.11.3]


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


def take_packet(channel: Channel, head: int, body: bytes, now: float) -> None:
    """A packet before the CONNACK."""
    if channel.authentication is not None:
        if head >> 4 == AUTH:
            _take_auth(channel, body, head, now)
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
        mechanism = broker.mechanisms.get(method)
        if mechanism is None:
            channel.refuse(reasons.BAD_AUTHENTICATION_METHOD)  # [MQTT-4.12.0-1]
            return
        channel.authentication = PendingConnect(packet, client, method, mechanism.begin(client))
        _step(channel, packet.properties.authentication_data, now)
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


# -- enhanced authentication


def _take_auth(channel: Channel, body: bytes, head: int, now: float) -> None:
    pending = channel.authentication
    packet = decode(head, body, channel.version)
    assert pending is not None
    assert isinstance(packet, packets.Auth)
    if packet.properties.authentication_method != pending.method:
        raise PeerError(reasons.PROTOCOL_ERROR, "AUTH: another authentication method")  # [MQTT-4.12.0-5]
    if packet.reason != reasons.CONTINUE_AUTHENTICATION:
        raise PeerError(reasons.PROTOCOL_ERROR, "AUTH: another reason than to continue")  # [MQTT-4.12.0-3]
    _step(channel, packet.properties.authentication_data, now)


def _step(channel: Channel, data: bytes | None, now: float) -> None:
    pending = channel.authentication
    assert pending is not None
    done, answer, username = pending.exchange.step(data)
    if not done:
        _send_auth(channel, auth_packet(reasons.CONTINUE_AUTHENTICATION, pending.method, answer))
        return
    assert pending.packet is not None
    channel.authentication = None
    client = replace(pending.client, username=username if username is not None else pending.client.username)
    _ask(channel, pending.packet, client, now, answer)


def auth_packet(reason: int, method: str, data: bytes | None) -> packets.Auth:
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
    _send_auth(channel, auth_packet(reason, method, answer))
    if done:
        channel.authentication = None


# -- who may come in


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
        _admit(channel, packet, client, mounted, now, data)
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
            _admit(channel, packet, client, mounted, now, data)

    if hooks.authorize_waits:
        channel.suspend(hooks.run_authorize(client, access), judged)
    else:
        judged(hooks.authorize_now(client, access))


# -- the session


def _admit(
    channel: Channel, packet: packets.Connect, client: ClientInfo, mounted: bytes, now: float, data: bytes | None
) -> None:
    """A few in each turn: a fleet that comes back at once must not stop those who are there."""
    if channel.broker.admission.free():
        _open_session(channel, packet, client, mounted, now, data)
    else:
        _line_up(channel, packet, client, mounted, data)


def _line_up(channel: Channel, packet: packets.Connect, client: ClientInfo, mounted: bytes, data: bytes | None) -> None:
    broker = channel.broker
    channel.hold()
    broker.admission.line_up(
        lambda: channel.go_on(lambda: _open_session(channel, packet, client, mounted, broker.now, data))
    )


def _open_session(
    channel: Channel, packet: packets.Connect, client: ClientInfo, mounted: bytes, now: float, data: bytes | None
) -> None:
    broker = channel.broker
    settings = channel.settings
    given = packet.properties
    session_expiry, told_expiry = _expiry(packet, settings.expiry_max)
    if not broker.knows(client.client_id, packet.clean_start and session_expiry == 0):
        _look_for_session(channel, packet, client, mounted, data)
        return
    table = broker.keeper.table
    if channel.turn.tables_full and session_expiry > 0 and table is not None and table.full:
        _wait_for_table(table, channel, packet, client, mounted, data)
        return
    keep_alive = packet.keep_alive
    if settings.keep_alive_max and (keep_alive == 0 or keep_alive > settings.keep_alive_max):
        keep_alive = settings.keep_alive_max
    connack = _connack(channel, packet, client, told_expiry, keep_alive, data)
    if len(connack) > channel.peer_packet_size_max:  # [MQTT-3.1.2-24]: it could not even be told our limits
        channel.give_up()
        return
    session, present, discarded = broker.sessions.open(client, channel, packet.clean_start, now)
    channel.session = session
    session.connected_at = now
    session.clean_start = packet.clean_start
    session.last_client = client
    channel.method = given.authentication_method or ""
    session.version = packet.version
    session.version5 = channel.version5
    session.mount = mounted
    session.expiry = session_expiry
    session.kept = session_expiry > 0 or session.kept  # one that is to end with this connection is kept until then
    session.will = None if packet.will is None else _will(channel, packet.will, client, mounted)
    session.packet_size_max = channel.peer_packet_size_max
    session.alias_max = min(given.topic_alias_maximum or 0, settings.topic_alias_out_max)
    session.aliases = None
    session.window_limit = min(given.receive_maximum or RECEIVE_MAXIMUM_ABSENT, session.limits.inflight_max)
    if session.window is not None:
        session.window.limit = session.window_limit
    session.intercept = broker.intercept if broker.hooks.deliver else None
    session.plain = not (mounted or session.alias_max or session.intercept)
    channel.guarded = bool(broker.hooks.authorize) and not client.superuser
    channel.singly = bool(mounted or broker.rewriter.enabled or broker.hooks.publish)
    session.keep_alive = keep_alive
    channel.silence_max = keep_alive * settings.keep_alive_factor  # [MQTT-3.1.2-22]
    channel.heard(max(now, broker.now))
    if keep_alive:
        channel.host.watch(channel.silence_max)
    if present:
        connack = _with_session_present(connack)
    if not session.kept and not discarded:
        if session.will is not None:
            broker.sessions.wills.stand(session)
        if broker.sessions.wills.on_its_way(client.client_id):
            _wait_for_will(channel, session, client, present, connack)
        else:
            _begin(channel, session, client, present, connack, now)
        return

    _store_session(channel, session, client, present, connack)


def _look_for_session(
    channel: Channel, packet: packets.Connect, client: ClientInfo, mounted: bytes, data: bytes | None
) -> None:
    """What the store has of this client is not here yet."""
    broker = channel.broker

    def found() -> None:
        channel.go_on(lambda: _open_session(channel, packet, client, mounted, broker.now, data))

    channel.hold()
    broker.find_session(client.client_id, broker.waits.begin(found, lambda: _store_silent(channel)))


def _wait_for_table(
    table: Table, channel: Channel, packet: packets.Connect, client: ClientInfo, mounted: bytes, data: bytes | None
) -> None:
    """The table of sessions has as many changes waiting as it may have."""
    broker = channel.broker

    def room() -> None:
        channel.go_on(lambda: _open_session(channel, packet, client, mounted, broker.now, data))

    channel.hold()
    table.wait(broker.waits.begin(room, lambda: _store_silent(channel)))


def _wait_for_will(channel: Channel, session: Session, client: ClientInfo, present: bool, connack: bytes) -> None:
    """The client may be about to replace the retained will of its last connection: that has to be there before."""
    broker = channel.broker

    def begin() -> None:
        channel.go_on(lambda: _begin(channel, session, client, present, connack, broker.now))

    channel.hold()
    broker.sessions.wills.when_settled(client.client_id, broker.waits.begin(begin, begin))


def _store_session(channel: Channel, session: Session, client: ClientInfo, present: bool, connack: bytes) -> None:
    """The CONNACK says what the store has to know: this session, or that another one has ended."""
    broker = channel.broker

    def begin() -> None:
        channel.go_on(lambda: _begin(channel, session, client, present, connack, broker.now))

    def stored() -> None:
        broker.admission.run(begin)

    channel.hold()
    wait = broker.waits.begin(stored, lambda: _store_silent(channel))
    if session.kept:
        if not present:
            session.live = False
            session.cursors = broker.journaling.heads()
            session.keeper = broker.keeper
        wills = broker.sessions.wills
        broker.keeper.began(session, present, lambda: wills.when_settled(client.client_id, wait))
    else:
        if session.will is not None:
            broker.sessions.wills.stand(session)
        broker.keeper.ended(session, wait)


def _store_silent(channel: Channel) -> None:
    """The store has not answered in time: the client may try again. [MQTT-3.1.4-6]"""
    channel.refuse(reasons.SERVER_UNAVAILABLE, "the store does not answer")
    session = channel.session
    if session is not None:
        channel.broker.sessions.close(session, channel, False, reasons.SERVER_UNAVAILABLE, channel.broker.now)


def _begin(channel: Channel, session: Session, client: ClientInfo, present: bool, connack: bytes, now: float) -> None:
    """The session is where it has to be: the client is told, and gets what it has missed."""
    broker = channel.broker
    if session.channel is not channel:
        return
    channel.connected()
    session.outlet = channel.outlet
    channel.outlet.when_drained = channel.drained
    if present:
        broker.subscriptions.wake(session)
        broker.replays.returned(session)
    broker.counters.connects_accepted += 1
    channel.outlet.put(connack)
    if broker.hooks.client_online or broker.hooks.session_created or broker.hooks.session_resumed:
        event = ClientEvent(client, now)
        broker.hooks.tell("session_resumed" if present else "session_created", event)
        broker.hooks.tell("client_online", event)
    if session.kept:
        session.resend()
        if session.via is not None and not broker.keeper.complete:
            broker.hold_until_complete(session)
        session.pump(now)
    if broker.auto_subscriptions:
        broker.auto_subscribe(session, now)


def _expiry(packet: packets.Connect, expiry_max: float) -> tuple[float, int | None]:
    """Seconds that the session outlives its connection, and what the client has to be told of it. [MQTT-3.2.2-21]"""
    if packet.version < 5:
        return (0.0 if packet.clean_start else expiry_max), None
    asked = packet.properties.session_expiry_interval or 0
    if asked > expiry_max:
        return expiry_max, int(expiry_max)
    return float(asked), None


def _will(channel: Channel, will: packets.Will, client: ClientInfo, mounted: bytes) -> Will:
    message = Message(
        placed(channel, will.topic, client, mounted),
        will.payload,
        will.qos,
        will.retain,
        will.properties.forwardable(),
        0.0,
        0.0,
        client.client_id,
        client.username,
    )
    return Will(message, will.delay, will.properties.message_expiry_interval)


def _connack(
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


def _with_session_present(connack: bytes) -> bytes:
    """The first byte behind the length is 1 then; the length of ours takes one byte or two. [MQTT-3.2.2-2]"""
    at = 2 if connack[1] < 0x80 else 3
    return connack[:at] + b"\x01" + connack[at + 1 :]
