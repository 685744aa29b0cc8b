"""The packets of a connected client other than PUBLISH and runs of acknowledgements: SUBSCRIBE, UNSUBSCRIBE,
DISCONNECT, AUTH, and acknowledgements that say more than that all is well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brookmq.access.points import Access, Deny, SubscriptionEvent
from brookmq.base.errors import PeerError
from brookmq.broker.authenticating import re_authenticate
from brookmq.broker.inflight import PUBACK_DUE, PUBCOMP_DUE, PUBREC_DUE
from brookmq.broker.session import Session
from brookmq.mqtt import packets, reasons
from brookmq.mqtt.codec import PINGRESP_BYTES, decode, encode_ack, encode_suback, encode_unsuback
from brookmq.mqtt.packet_types import CONNECT, PACKET_NAMES, PUBACK, PUBCOMP, PUBREC, PUBREL
from brookmq.mqtt.properties import Properties

if TYPE_CHECKING:
    from brookmq.broker.channel import Channel


def take_packet(channel: Channel, head: int, body: bytes, now: float) -> None:
    if head >> 4 == CONNECT:  # whatever it says [MQTT-3.1.0-2]
        raise PeerError(reasons.PROTOCOL_ERROR, "a second CONNECT")
    packet = decode(head, body, channel.version)
    if isinstance(packet, packets.Subscribe):
        _take_subscribe(channel, packet, now)
    elif isinstance(packet, packets.Unsubscribe):
        _take_unsubscribe(channel, packet, now)
    elif isinstance(packet, packets.Ack):
        _take_ack(channel, packet, now)
    elif isinstance(packet, packets.Disconnect):
        _take_disconnect(channel, packet)
    elif isinstance(packet, packets.Auth):
        re_authenticate(channel, packet)
    elif isinstance(packet, packets.Pingreq):
        channel.outlet.put(PINGRESP_BYTES)  # [MQTT-3.12.4-1]
    else:
        # a packet that only servers send
        raise PeerError(reasons.PROTOCOL_ERROR, f"a client may not send {PACKET_NAMES[head >> 4]} now")


# -- SUBSCRIBE and UNSUBSCRIBE


def _take_subscribe(channel: Channel, packet: packets.Subscribe, now: float) -> None:
    if packet.properties.subscription_identifiers and not channel.settings.subscription_ids_available:
        raise PeerError(reasons.SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED, "subscription identifiers are not supported")
    _check_answer(channel, len(packet.subscriptions))
    broker = channel.broker
    for request in packet.subscriptions:
        if request.no_local and request.filter.startswith("$share/"):  # [MQTT-3.8.3-4]
            raise PeerError(reasons.PROTOCOL_ERROR, "SUBSCRIBE: No Local on a shared subscription")
    client = channel.client
    assert client is not None
    if not channel.guarded:
        _subscribe(channel, packet, [None] * len(packet.subscriptions), now)
        return
    wanted = [Access("subscribe", request.filter, request.qos) for request in packet.subscriptions]
    if broker.hooks.authorize_waits:

        async def decide() -> list[Deny | None]:
            answers = [await broker.hooks.run_authorize(client, access) for access in wanted]
            return [answer if isinstance(answer, Deny) else None for answer in answers]

        channel.suspend(decide(), lambda denials: _subscribe(channel, packet, denials, now))
        return
    answers = [broker.hooks.authorize_now(client, access) for access in wanted]
    _subscribe(channel, packet, [answer if isinstance(answer, Deny) else None for answer in answers], now)


def _subscribe(channel: Channel, packet: packets.Subscribe, denials: list[Deny | None], now: float) -> None:
    """One reason code for each filter, then the retained messages: SUBACK goes first. [MQTT-3.8.4-1, -5, -6, -7]"""
    identifiers = packet.properties.subscription_identifiers
    codes: list[int] = []
    granted = []
    refusal = ""  # why the first of those that were refused was
    for request, denial in zip(packet.subscriptions, denials, strict=True):
        if denial is not None:
            channel.counters.subscribes_refused += 1
            codes.append(denial.reason)
            continue
        try:
            subscription, new = channel.broker.subscribe(_session(channel), request, identifiers)
        except PeerError as error:
            channel.counters.subscribes_refused += 1
            codes.append(error.reason)
            refusal = refusal or str(error)
            continue
        codes.append(subscription.qos)
        granted.append((subscription, new))
        if channel.broker.hooks.subscribe and channel.client is not None:
            event = SubscriptionEvent(channel.client, request.filter, now, subscription.qos)
            channel.broker.hooks.tell("subscribe", event)
    session = _session(channel)

    def answer() -> None:
        channel.outlet.put(_suback(channel, packet.packet_id, codes, refusal))
        latest = {(type(subscription), subscription.filter): subscription for subscription, _ in granted}
        for subscription, new in granted:  # one that stands twice is served twice, as if it came twice [MQTT-3.8.4-5]
            if subscription.ended:
                subscription = latest[type(subscription), subscription.filter]
            channel.broker.replay_retained(subscription, new, now)
        if session.sharing is not None:
            session.pump(now)  # its groups may have been waiting for a member

    if not session.kept or not granted:
        answer()
        return
    news = {id(subscription): new for subscription, new in granted}
    kept = [(filter, each, news[id(each)]) for filter, each in session.subscriptions.items() if id(each) in news]

    def refuse() -> None:
        for filter, _, _ in kept:
            channel.broker.subscriptions.remove(session, filter)
        channel.broker.keeper.unsubscribed(session, [filter for filter, _, _ in kept], lambda: None)
        refused = [code if code >= 0x80 else reasons.IMPLEMENTATION_SPECIFIC_ERROR for code in codes]
        channel.outlet.put(encode_suback(packet.packet_id, refused, None, channel.version))

    done = channel.broker.waits.begin(answer, refuse)
    channel.broker.keep_subscriptions(session, kept, done)


def _suback(channel: Channel, packet_id: int, codes: list[int], refusal: str) -> bytes:
    """With the reason, where the client wants to know it and it fits. [MQTT-3.9.2-1, MQTT-3.1.2-29]"""
    bare = encode_suback(packet_id, codes, None, channel.version)
    if not refusal or not channel.version5 or not channel.problem_information:
        return bare
    properties = Properties()
    properties.reason_string = refusal
    explained = encode_suback(packet_id, codes, properties, channel.version)
    return explained if len(explained) <= channel.peer_packet_size_max else bare


def _take_unsubscribe(channel: Channel, packet: packets.Unsubscribe, now: float) -> None:
    """[MQTT-3.10.4-1] to [MQTT-3.10.4-6]"""
    _check_answer(channel, len(packet.filters))
    session = _session(channel)
    codes = []
    before = set(session.subscriptions)
    for filter in packet.filters:
        try:
            removed = channel.broker.unsubscribe(session, filter)
        except PeerError as error:
            codes.append(error.reason)
            continue
        codes.append(reasons.SUCCESS if removed else reasons.NO_SUBSCRIPTION_EXISTED)
        if removed:
            channel.counters.unsubscribes += 1
            if channel.broker.hooks.unsubscribe and channel.client is not None:
                channel.broker.hooks.tell("unsubscribe", SubscriptionEvent(channel.client, filter, now))
    gone = sorted(before - set(session.subscriptions))  # as they were granted: rewriting may have changed them
    answer = encode_unsuback(packet.packet_id, codes, None, channel.version)
    if not session.kept:
        channel.outlet.put(answer)
        return
    channel.broker.keeper.unsubscribed(session, gone, lambda: channel.outlet.put(answer))


def _check_answer(channel: Channel, count: int) -> None:
    """Nothing is changed when the client could not be told of it: one code for each filter has to fit its packet size.
    [MQTT-3.1.2-24] And one packet holds the loop no longer than a client with all its subscriptions would."""
    if count > channel.settings.subscriptions_max:
        raise PeerError(reasons.QUOTA_EXCEEDED, f"{count} topic filters in one packet")
    most = channel.peer_packet_size_max
    if count + 8 > most and len(encode_suback(1, [0] * count, None, channel.version)) > most:
        raise PeerError(reasons.PACKET_TOO_LARGE, "the answer is over the maximum packet size of the client")


# -- DISCONNECT


def _take_disconnect(channel: Channel, packet: packets.Disconnect) -> None:
    session = _session(channel)
    expiry = packet.properties.session_expiry_interval
    if expiry is not None:
        if session.expiry == 0 and expiry:  # [MQTT-3.14.2-2]
            raise PeerError(reasons.PROTOCOL_ERROR, "DISCONNECT: the session expiry was 0 and cannot be changed")
        session.expiry = min(float(expiry), channel.settings.expiry_max)
    if packet.properties.server_reference is not None:
        raise PeerError(reasons.PROTOCOL_ERROR, "DISCONNECT: a client sent a server reference")
    with_will = packet.reason != reasons.NORMAL_DISCONNECTION  # [MQTT-3.14.4-3]
    channel.left(with_will, packet.reason)


# -- acknowledgements one by one


def _take_ack(channel: Channel, packet: packets.Ack, now: float) -> None:
    session = _session(channel)
    ids = packet.packet_id.to_bytes(2, "big")
    if packet.type == PUBACK:
        session.acknowledged(ids, PUBACK_DUE)  # an error ends it as well [MQTT-4.8.2-6]
    elif packet.type == PUBREC:
        _take_pubrec(channel, session, packet, ids)
    elif packet.type == PUBREL:
        known = session.open_ids is not None and session.open_ids.release(ids) == 1
        reason = reasons.SUCCESS if known else reasons.PACKET_IDENTIFIER_NOT_FOUND
        answer = encode_ack(PUBCOMP, packet.packet_id, reason, None, channel.version)  # [MQTT-4.3.3-11]
        if known and session.keeper is not None:
            session.keeper.released(session, ids, answer)
        else:
            channel.outlet.put(answer)
        return
    else:
        session.acknowledged(ids, PUBCOMP_DUE)
    if session.waits():
        session.pump(now)


def _take_pubrec(channel: Channel, session: Session, packet: packets.Ack, ids: bytes) -> None:
    if packet.reason >= 0x80:  # the client refuses it: it is over, no PUBREL [MQTT-4.3.3-4]
        session.acknowledged(ids, PUBREC_DUE)
        return
    known = session.received(ids) == 1
    if not known and session.window is not None:
        known = session.window.state(packet.packet_id) == PUBCOMP_DUE  # a repeated PUBREC
    if known and session.keeper is not None:
        session.keeper.received(session, ids)
        return
    reason = reasons.SUCCESS if known else reasons.PACKET_IDENTIFIER_NOT_FOUND
    channel.outlet.put(encode_ack(PUBREL, packet.packet_id, reason, None, channel.version))


def _session(channel: Channel) -> Session:
    session = channel.session
    assert session is not None
    return session
