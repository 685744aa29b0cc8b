"""A client that may come in gets its session, and is told so when that is where it has to be.

    admit ─► (in line) ─► open the session ─► (wait for the store, or for a will) ─► begin: CONNACK, what was missed
                └─ again, when what the store has of the client is here, or its table has room

Each wait holds the channel; a connection that has ended meanwhile goes no further.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brookmq.access.points import ClientEvent, ClientInfo
from brookmq.base.message import Message
from brookmq.broker.connack import accepted, with_session_present
from brookmq.broker.publishing import placed
from brookmq.broker.will import Will
from brookmq.mqtt import packets, reasons

if TYPE_CHECKING:
    from brookmq.broker.channel import Channel
    from brookmq.broker.session import Session
    from brookmq.store.table.interface import Table

RECEIVE_MAXIMUM_ABSENT = 65535  # [section 3.1.2.11.3]


def admit(
    channel: Channel, packet: packets.Connect, client: ClientInfo, mounted: bytes, now: float, data: bytes | None
) -> None:
    """A few in each turn: a fleet that comes back at once must not stop those who are there."""
    admission = channel.broker.admission
    if admission.free():
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
    connack = accepted(channel, packet, client, told_expiry, keep_alive, data)
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
        connack = with_session_present(connack)
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
