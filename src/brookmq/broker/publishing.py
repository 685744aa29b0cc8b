"""PUBLISH packets that take the slow way: with properties, retained, duplicates, to ``$`` topics, or looked at by
plugins.

The way of such a message: decode, resolve its alias, check, rewrite and mount its topic, ask who may, ask the plugins,
publish, acknowledge. It may have to wait for an answer in between; the channel handles nothing else meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from brookmq.access.points import Access, ClientInfo, Deny
from brookmq.base import faults
from brookmq.base.errors import PeerError
from brookmq.base.message import Message
from brookmq.broker.answering import acknowledge, ticket_for
from brookmq.broker.delayed import PREFIX as DELAYED_PREFIX
from brookmq.broker.inflight import OpenIds
from brookmq.broker.rewrite import mount
from brookmq.mqtt import reasons
from brookmq.mqtt.packet_types import PUBACK, PUBLISH, PUBREC
from brookmq.mqtt.primitives import Reader
from brookmq.mqtt.properties import decode_properties, forwardable
from brookmq.mqtt.topics import check_name

if TYPE_CHECKING:
    from brookmq.broker.acknowledging import Acknowledgement
    from brookmq.broker.channel import Channel
    from brookmq.broker.session import Session

SYS_PREFIX = b"$SYS/"  # the node alone publishes there
DECISIONS_MAX = 1000  # access decisions that a channel remembers; then it asks anew


def take_publish(channel: Channel, head: int, body: bytes, now: float) -> None:
    """One PUBLISH packet."""
    settings = channel.settings
    session = channel.session
    assert session is not None
    qos, retain = head >> 1 & 3, bool(head & 1)
    if qos == 3:
        raise PeerError(reasons.MALFORMED_PACKET, "PUBLISH: QoS 3 does not exist")  # [MQTT-3.3.1-4]
    if qos == 0 and head & 8:
        raise PeerError(reasons.MALFORMED_PACKET, "PUBLISH: DUP is set at QoS 0")  # [MQTT-3.3.1-2]
    reader = Reader(body, 0, len(body))
    topic = reader.binary("PUBLISH topic name")
    packet_id = 0
    if qos:
        packet_id = reader.uint16("PUBLISH packet identifier")
        if packet_id == 0:
            raise PeerError(reasons.PROTOCOL_ERROR, "PUBLISH: packet identifier 0")  # [MQTT-2.2.1-2]
    properties, expires_at = b"", 0.0
    if channel.version5:
        end = reader.properties_end()
        start = reader.position
        properties, expiry, alias, payload_format, identified = forwardable(body, start, end)
        reader.position = end
        if identified:  # [MQTT-3.3.4-6]
            raise PeerError(reasons.PROTOCOL_ERROR, "PUBLISH: a client sent a subscription identifier")
        if alias is not None or not topic:
            topic = _resolve_alias(channel, topic, alias)
        if expiry is not None:
            expires_at = now + expiry
        if payload_format and settings.payload_format_check and not _is_text(body[end:]):
            raise PeerError(reasons.PAYLOAD_FORMAT_INVALID, "PUBLISH: the payload is not the UTF-8 that it says it is")
        if properties.count(b"\x26") > settings.user_properties_max:
            _check_user_properties(body, start, end, settings.user_properties_max)
    check_name(topic, settings.topic_levels_max)
    if len(topic) > settings.topic_length_max:
        raise PeerError(reasons.TOPIC_NAME_INVALID, f"PUBLISH: topic longer than {settings.topic_length_max} bytes")
    if qos > settings.qos_max:
        raise PeerError(reasons.QOS_NOT_SUPPORTED, f"PUBLISH: QoS {qos} is not supported")  # [MQTT-3.2.2-11]
    if retain and not settings.retain_available:
        raise PeerError(reasons.RETAIN_NOT_SUPPORTED, "PUBLISH: retained messages are not supported")  # [MQTT-3.2.2-14]
    _count(channel, qos)
    if qos == 2 and not _open(channel, packet_id, bool(head & 8)):
        channel.counters.publishes_duplicate += 1
        _acknowledge_repeat(channel, session, packet_id)
        return
    message = Message(
        topic, body[reader.position :], qos, retain, properties, expires_at, now, session.client_id, session.username
    )
    _judge(channel, message, packet_id, now)


def _resolve_alias(channel: Channel, topic: bytes, alias: int | None) -> bytes:
    """[MQTT-3.3.2-7] to [MQTT-3.3.2-12]"""
    if alias is None:
        raise PeerError(reasons.PROTOCOL_ERROR, "PUBLISH: neither a topic nor an alias")
    if alias > channel.settings.topic_alias_max:
        raise PeerError(reasons.TOPIC_ALIAS_INVALID, f"PUBLISH: topic alias {alias} is over the maximum")
    if channel.aliases is None:
        channel.aliases = {}
    if topic:
        channel.aliases[alias] = topic
        return topic
    known = channel.aliases.get(alias)
    if known is None:
        raise PeerError(reasons.PROTOCOL_ERROR, f"PUBLISH: topic alias {alias} was never set")
    return known


def _is_text(payload: bytes) -> bool:
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True


def _check_user_properties(body: bytes, start: int, end: int, most: int) -> None:
    if len(decode_properties(body, start, end, PUBLISH).user_properties) > most:
        raise PeerError(reasons.QUOTA_EXCEEDED, f"PUBLISH: more than {most} user properties")


def _count(channel: Channel, qos: int) -> None:
    counters = channel.counters
    counters.publishes_received += 1
    if qos == 0:
        counters.publishes_received_qos0 += 1
    elif qos == 1:
        counters.publishes_received_qos1 += 1
    else:
        counters.publishes_received_qos2 += 1
    if channel.session is not None:
        channel.session.received_count += 1


def _open(channel: Channel, packet_id: int, dup: bool) -> bool:
    """Open an inbound QoS 2 packet id; False when it is open: the message is a repeat. [MQTT-4.3.3-10]"""
    session = channel.session
    assert session is not None
    if session.open_ids is None:
        session.open_ids = OpenIds()
    if session.open_ids.is_open(packet_id) and (dup or not channel.broker.keeper.disown(session, packet_id)):
        return faults.armed and faults.broken("dedup_off")
    if session.open_ids.count >= channel.settings.receive_max and channel.version5:  # [MQTT-3.3.4-7]
        raise PeerError(reasons.RECEIVE_MAXIMUM_EXCEEDED, "more unfinished QoS 2 messages than agreed")
    session.open_ids.open(packet_id.to_bytes(2, "big"))
    return True


# -- who may, and what the plugins say


def _judge(channel: Channel, message: Message, packet_id: int, now: float) -> None:
    """Ask the access rules about the topic that the client named, then the publish hooks about the message as it goes
    on; in place where they can answer in place, else by waiting."""
    hooks = channel.broker.hooks
    client = channel.client
    assert client is not None
    qos = message.qos
    if not channel.guarded and not hooks.publish:
        _finish(channel, qos, packet_id, _placed(channel, message), True, now)
        return
    known = True if not channel.guarded else _known(channel, message)
    if (known is None and hooks.authorize_waits) or hooks.publish_waits:

        def then(answer: tuple[bool, Message | None]) -> None:
            allowed, judged = answer
            _remember(channel, message, allowed)
            _finish(channel, qos, packet_id, judged, allowed, now)

        channel.suspend(_judge_waiting(channel, client, message, known), then)
        return
    allowed = known if known is not None else not isinstance(hooks.authorize_now(client, _access(message)), Deny)
    _remember(channel, message, allowed)
    judged: Message | None = None
    if allowed:
        judged = _placed(channel, message)
        if hooks.publish:
            judged = hooks.publish_now(client, judged)
    _finish(channel, qos, packet_id, judged, allowed, now)


async def _judge_waiting(
    channel: Channel, client: ClientInfo, message: Message, known: bool | None
) -> tuple[bool, Message | None]:
    hooks = channel.broker.hooks
    allowed = known if known is not None else not isinstance(await hooks.run_authorize(client, _access(message)), Deny)
    if not allowed:
        return False, None
    placed = _placed(channel, message)
    return True, await hooks.run_publish(client, placed) if hooks.publish else placed


def _placed(channel: Channel, message: Message) -> Message:
    """The message under the topic that the broker knows."""
    session, client = channel.session, channel.client
    if session is None or client is None or not (channel.broker.rewriter.enabled or session.mount):
        return message
    return Message(
        placed(channel, message.topic, client, session.mount),
        message.payload,
        message.qos,
        message.retain,
        message.properties,
        message.expires_at,
        message.published_at,
        message.client_id,
        message.username,
    )


def placed(channel: Channel, topic: bytes, client: ClientInfo, mount_point: bytes) -> bytes:
    """The topic as the broker knows it: rewritten, then mounted. The mount point stands behind a delay:
    ``$delayed/5/t`` of a client mounted at ``m/`` goes to ``m/t``."""
    rewriter = channel.broker.rewriter
    if rewriter.enabled:
        topic = rewriter.rewrite_publish(topic, client.client_id, client.username)
    if mount_point and topic.startswith(DELAYED_PREFIX):
        seconds, _, rest = topic[len(DELAYED_PREFIX) :].partition(b"/")
        return DELAYED_PREFIX + seconds + b"/" + mount(mount_point, rest)
    return mount(mount_point, topic)


def _access(message: Message) -> Access:
    return Access("publish", message.topic.decode(), message.qos, message.retain)


def _known(channel: Channel, message: Message) -> bool | None:
    if channel.decisions is None or message.retain:
        return None
    return channel.decisions.get((message.topic, message.qos))


def _remember(channel: Channel, message: Message, allowed: bool) -> None:
    """Runs of this topic are decided by this: they are never retained, so a decision about a retained one says
    nothing."""
    if message.retain or not channel.guarded:
        return
    if channel.decisions is None or len(channel.decisions) >= DECISIONS_MAX:
        channel.decisions = {}
    channel.decisions[message.topic, message.qos] = allowed


def _finish(channel: Channel, qos: int, packet_id: int, message: Message | None, allowed: bool, now: float) -> None:
    """Publish, then acknowledge: an acknowledgement means that the message is where it has to be. ``qos`` is that of
    the packet; a plugin may have changed the message's own."""
    session = channel.session
    assert session is not None
    ids = packet_id.to_bytes(2, "big")
    ticket: Acknowledgement | None = None
    if qos:
        size = 0 if message is None else message.size()
        ticket = ticket_for(channel, PUBACK << 4 if qos == 1 else PUBREC << 4, ids, size)
        if qos == 2 and session.kept:
            session.store_ids(ids, ticket)
    reason = reasons.SUCCESS
    if not allowed:
        channel.counters.publishes_denied += 1
        reason = reasons.NOT_AUTHORIZED
    elif message is None:
        channel.counters.dropped_by_hook += 1  # to its publisher it is as good as delivered
    else:
        try:
            if channel.broker.publish(message, session, now, ticket) == 0 and channel.version5:
                reason = reasons.NO_MATCHING_SUBSCRIBERS
        except PeerError as error:
            if error.reason not in (reasons.TOPIC_NAME_INVALID, reasons.QUOTA_EXCEEDED, reasons.NOT_AUTHORIZED):
                raise
            reason = error.reason  # this message is refused, the connection goes on
    if ticket is not None:
        _settle(channel, session, ticket, reason, message is not None and message.retain)
    if channel.turn.tables_full and message is not None and _is_value(message):
        _wait_for_values(channel)
    elif channel.turn.pressed and message is not None:
        full = channel.dispatcher.full_receiver(channel.index.audience(message.topic), channel.session)
        if full is not None:
            channel.wait_for(full)


def _is_value(message: Message) -> bool:
    """Whether it changes the table of retained and delayed messages."""
    return message.retain or message.topic.startswith(DELAYED_PREFIX)


def _wait_for_values(channel: Channel) -> None:
    """That table has as many changes waiting as it may have: its publishers go on when there is room, or slowly."""
    values = channel.broker.values
    if values is not None and values.table.full:
        channel.counters.publishers_paused += 1
        channel.hold()
        values.table.wait(channel.broker.waits.begin(channel.resume, channel.resume))


def _settle(channel: Channel, session: Session, ticket: Acknowledgement, reason: int, retained: bool) -> None:
    """What was refused is answered as refused; MQTT 3 has no words for that, so it gets the plain answer.
    [MQTT-4.3.2-4], [MQTT-4.3.3-8]"""
    if reason >= 0x80 and not channel.version5:
        ticket.settle(reasons.SUCCESS)
        return
    ticket.reason = reason
    if ticket.head == PUBREC << 4 and reason < 0x80 and session.kept and ticket.group is None:
        ticket.waits += 1  # nobody needs it kept, but that it was taken has to be known after a crash
        if retained:  # first its value: a client that finds its id open does not send it again
            channel.broker.when_values_stored(lambda: _open_id(channel, session, ticket))
        else:
            channel.broker.keeper.opened(session, ticket.ids, ticket.stored)
    elif ticket.head == PUBREC << 4 and reason >= 0x80 and session.open_ids is not None:
        session.open_ids.release(ticket.ids)  # refused: the packet id is free again [MQTT-4.3.3-9]
    ticket.settle(reason)


def _open_id(channel: Channel, session: Session, ticket: Acknowledgement) -> None:
    if ticket.reason >= 0x80 or not session.kept:  # it was given up meanwhile, or its session has ended
        ticket.stored()
    else:
        channel.broker.keeper.opened(session, ticket.ids, ticket.stored)


def _acknowledge_repeat(channel: Channel, session: Session, packet_id: int) -> None:
    """The first may still be on its way to the store: then the answer is the same as to that one."""
    ids = packet_id.to_bytes(2, "big")
    first = None if session.storing is None else session.storing.get(packet_id)
    if first is not None and first.waits == 0:  # given up while it was under way, and its client was told nothing
        if first.group is None or channel.journaling.heads()[first.shard] <= first.group.first:
            channel.end(reasons.QUOTA_EXCEEDED)
            return
        session.stored_ids(ids)
        first = None
    if first is None:
        acknowledge(channel, PUBREC << 4, ids, reasons.SUCCESS)
        return
    ticket = ticket_for(channel, PUBREC << 4, ids, 0)
    if first.followers is None:
        first.followers = []
    first.followers.append(ticket)
