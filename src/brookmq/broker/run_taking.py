"""Runs of PUBLISH packets and of acknowledgements, each taken as one slice: the fast way, for nearly all traffic.

A run that has to wait has not begun: what it waits for is left in ``obstacle``, and the channel does the waiting.
"""

from __future__ import annotations

from brookmq.base import faults
from brookmq.broker.acknowledging import Acknowledgement
from brookmq.broker.answering import acknowledge, ticket_for
from brookmq.broker.channel_state import ChannelState
from brookmq.broker.inflight import PUBACK_DUE, PUBCOMP_DUE, OpenIds
from brookmq.broker.publication import Publication
from brookmq.broker.session import Session
from brookmq.broker.topics import Audience
from brookmq.mqtt import reasons
from brookmq.mqtt.kernel import Run, acks
from brookmq.mqtt.topics import check_name

TAKEN = 0  # the run is with its receivers
WAIT = 1  # the run has to wait for the channel's ``obstacle``
SINGLY = 2  # the run has to take the slow way, packet by packet


def take_run(channel: ChannelState, now: float) -> int:
    publication = channel.dispatcher.publication
    run = publication.run
    if run.qos and _overwhelms(channel, run):
        return SINGLY
    audience = channel.last_audience
    if (
        audience is None
        or audience.epoch != channel.index.epoch
        or run.qos != channel.last_qos
        or not run.has_topic(channel.last_topic)
    ):
        audience = _find_audience(channel, run)
        if audience is None:
            return SINGLY
    if channel.turn.pressed:
        full = channel.dispatcher.full_receiver(audience, channel.session)
        if full is not None:
            channel.obstacle = full
            return WAIT
    session = channel.session
    assert session is not None
    count = run.count
    qos = run.qos
    counters = channel.counters
    journaled = audience.durable and (qos > 0 or audience.captured)
    if journaled:
        shard = channel.journaling.shard_of(audience)
        if shard.full:
            channel.obstacle = shard
            return WAIT
    if qos == 0:
        counters.publishes_received_qos0 += count
        ids = b""
    else:
        ids = run.ids()
        if qos == 1:
            counters.publishes_received_qos1 += count
        else:
            if session.open_ids is None:
                session.open_ids = OpenIds()
            if session.open_ids.count + count > channel.settings.receive_max or session.open_ids.open(ids) == 0:
                return SINGLY
            counters.publishes_received_qos2 += count
    counters.publishes_received += count
    session.received_count += count
    if journaled or audience.targets or audience.groups:
        publication.topic = audience.topic
        publication.client_id = session.client_id
        publication.username = session.username
        publication.now = now
        publication.messages = None
        channel.dispatcher.send_run(audience, session)
    else:
        counters.publishes_without_receiver += count
    if journaled:
        _journal_run(channel, audience, publication, session, ids)
    elif qos == 2 and session.kept:
        _store_open_ids(channel, session, ids)
    elif qos:
        acknowledge(channel, 0x40 if qos == 1 else 0x50, ids, reasons.SUCCESS)
    return TAKEN


def _overwhelms(channel: ChannelState, run: Run) -> bool:
    """More than half of a session's queue at once: it could be full before anybody can be slowed down for it."""
    session = channel.session
    assert session is not None
    limits = session.limits
    return run.count * 2 > limits.queue_count_max or (run.end - run.start) * 2 > limits.queue_bytes_max


def _find_audience(channel: ChannelState, run: Run) -> Audience | None:
    """Who gets this topic, or None when the messages need a closer look."""
    if run.qos > channel.settings.qos_max or run.topic_size > channel.settings.topic_length_max:
        return None
    topic = run.topic()
    if topic.startswith(b"$"):
        return None
    if channel.guarded and (channel.decisions is None or not channel.decisions.get((topic, run.qos), False)):
        return None
    audience = channel.index.audiences.get(topic)
    if audience is None:
        check_name(topic, channel.settings.topic_levels_max)
    audience = channel.index.audience(topic)
    channel.last_topic = topic
    channel.last_qos = run.qos
    channel.last_audience = audience
    return audience


def _journal_run(
    channel: ChannelState, audience: Audience, publication: Publication, session: Session, ids: bytes
) -> None:
    """Into the journal; the acknowledgements go out when it is stored."""
    run = publication.run
    qos = run.qos
    ticket: Acknowledgement | None = None
    if qos:
        ticket = ticket_for(channel, 0x40 if qos == 1 else 0x50, ids, run.end - run.start)
        if qos == 2 and session.kept:
            session.store_ids(ids, ticket)
    channel.journaling.add_run(audience, publication, channel.version5, session, ticket)
    if faults.armed and ticket is not None and faults.broken("ack_before_append"):
        ticket.waits = 0
        ticket.channel.settled()
        ticket.waits = 1


def _store_open_ids(channel: ChannelState, session: Session, ids: bytes) -> None:
    """Nobody needs these messages kept, but that they were taken has to be known after a crash."""
    ticket = ticket_for(channel, 0x50, ids, 0)
    session.store_ids(ids, ticket)
    channel.broker.keeper.opened(session, ids, ticket.stored)


def take_acks(channel: ChannelState, head: int, ids: bytes, now: float) -> bool:
    """A run of acknowledgements in their shortest form. False: one of them is not expected, so take them singly."""
    session = channel.session
    assert session is not None
    count = len(ids) // 2
    if head == 0x40:
        session.acknowledged(ids, PUBACK_DUE)
    elif head == 0x50:
        if session.received(ids) != count:
            return False
        if session.keeper is not None:
            session.keeper.received(session, ids)
        else:
            channel.outlet.put(acks(0x62, ids))
        return True
    elif head == 0x62:
        if session.open_ids is None or session.open_ids.release(ids) != count:
            return False
        if session.keeper is not None:
            session.keeper.released(session, ids, acks(0x70, ids))
        else:
            channel.outlet.put(acks(0x70, ids))
        return True
    elif head == 0x70:
        session.acknowledged(ids, PUBCOMP_DUE)
    else:
        return False  # wrong flags: the codec says so
    if session.waits():
        session.pump(now)
    return True
