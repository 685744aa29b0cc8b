"""A session as the store has it, and back: between ``Session`` and ``SessionState``."""

from __future__ import annotations

from typing import Any

from brookmq.broker.inflight import InFlight, OpenIds, Window
from brookmq.broker.journal_replay import JournalReplay
from brookmq.broker.publication import Delivery
from brookmq.broker.session import Session
from brookmq.broker.subscription import Subscription
from brookmq.broker.will import Will
from brookmq.store.session_state import (
    InlineDelivery,
    SessionState,
    SubscriptionRecord,
    WillRecord,
    WindowEntry,
    group_key,
)


def state_of(session: Session, epoch: int, heads: list[int]) -> SessionState:
    """All of it. ``epoch`` is the node's, ``heads`` are the ends of the shards: where a live session is."""
    state = scalars_of(session, epoch)
    state.subscriptions = {filter: subscription_record(filter, each) for filter, each in session.subscriptions.items()}
    state.live = epoch if session.live else 0
    state.cursors = cursors_of(session, heads)
    state.window = {entry.packet_id: entry for entry in window_of(session)}
    state.inline = inline_of(session)
    state.open_ids = dict(session.open_at or ())
    state.seen = tuple(heads)
    state.released = set(session.released or ())
    return state


def scalars_of(session: Session, epoch: int) -> SessionState:
    """Names, times, expiry and will."""
    state = SessionState(session.client_id)
    state.username = session.username
    state.version = session.version
    state.expiry = session.expiry
    state.created_at = session.created_at
    state.connected = epoch if session.channel is not None else 0
    state.connect_number = session.connect_number
    state.disconnected_at = session.disconnected_at
    state.mount = session.mount
    will = session.will
    if will is not None:
        state.will = WillRecord(will.message, will.delay, will.expiry)
        state.will_due = will.due
    return state


def subscription_record(filter: str, subscription: Subscription) -> SubscriptionRecord:
    return SubscriptionRecord(
        filter,
        subscription.filter,
        subscription.qos,
        subscription.no_local,
        subscription.retain_as_published,
        subscription.retain_handling,
        subscription.identifiers,
        None if subscription.since is None else tuple(subscription.since),
        subscription.replaying,
    )


def cursors_of(session: Session, heads: list[int]) -> list[int]:
    return heads if session.cursors is None else session.cursors


def window_of(session: Session) -> list[WindowEntry]:
    if session.window is None:
        return []
    via: dict[int, Any] = session.via or {}
    entries = []
    for packet_id, state, position in session.window.in_flight():
        group = via.get(packet_id)
        key = b"" if group is None else via_key(group)
        entries.append(WindowEntry(packet_id, state, position, False, key))
    return entries


def via_key(via: Any) -> bytes:
    """The name of what a message came by: a shared group, or a replay."""
    return via.key if isinstance(via, JournalReplay) else group_key(via.name, via.filter.encode())


def inline_of(session: Session) -> dict[int, InlineDelivery]:
    return {
        packet_id: InlineDelivery(delivery.message, delivery.qos, delivery.retain, delivery.identifiers)
        for packet_id, delivery in (session.held or {}).items()
    }


def restore(state: SessionState, session: Session) -> None:
    """All but the subscriptions, whose places are in the topic index."""
    session.username = state.username
    session.version = state.version
    session.version5 = state.version == 5
    session.expiry = state.expiry
    session.kept = True
    session.created_at = state.created_at
    session.disconnected_at = state.disconnected_at
    session.connect_number = state.connect_number
    session.mount = state.mount
    session.clean_start = False
    if state.will is not None:
        session.will = Will.of(state.will)
        session.will.due = state.will_due
    session.live = False
    session.cursors = state.cursors
    if state.window:
        session.window = Window(session.window_limit)
        session.window.restore([InFlight(each.packet_id, each.state, each.position) for each in state.window.values()])
    if state.inline:
        session.held = {
            packet_id: Delivery(each.message, each.qos, each.retain, each.identifiers, None, packet_id)
            for packet_id, each in state.inline.items()
        }
    if state.open_ids:
        session.open_at = dict(state.open_ids)
        session.open_ids = OpenIds()
        session.open_ids.open(b"".join([packet_id.to_bytes(2, "big") for packet_id in state.open_ids]))
