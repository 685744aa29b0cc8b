"""Who is here: the sessions of a node by client id, from CONNECT to their end.

    none ──connect──► connected ──connection ends, kept──► away ──connect──► connected
                          │ not kept                         │ expiry, discard
                          └──────────────► ended ◄───────────┘

What is kept is written down by the keeper (``keeping``) at each of these steps. An away session has no place among the
receivers of its topics: its filters are counted there, and it reads the journal when it is back.
"""

from __future__ import annotations

from typing import Any, Protocol

from brookmq.access.hooks import Hooks
from brookmq.access.points import ClientEvent, ClientInfo
from brookmq.base.counters import Counters
from brookmq.base.errors import PeerError
from brookmq.broker.client_table import ClientTable
from brookmq.broker.dispatch import Dispatcher
from brookmq.broker.keeping import Keeper
from brookmq.broker.session import Session
from brookmq.broker.settings import SessionLimits, Settings
from brookmq.broker.subscribing import Subscriptions
from brookmq.broker.timers import Timer, Timers
from brookmq.broker.wills import Wills
from brookmq.mqtt import reasons


class Holder(Protocol):
    """The channel that holds a session, as far as this module needs it."""

    client: ClientInfo | None

    def disconnect(self, reason: int, message: str = "") -> None:
        """Tell the client why, and close. The session's end is the caller's business."""


class Sessions:
    """Invariant: every session of ``by_client_id`` is connected (its ``channel`` is there) or kept."""

    def __init__(
        self,
        settings: Settings,
        limits: SessionLimits,
        subscriptions: Subscriptions,
        dispatcher: Dispatcher,
        timers: Timers,
        counters: Counters,
        hooks: Hooks,
        keeper: Keeper,
        wills: Wills,
    ) -> None:
        self.settings = settings
        self.limits = limits
        self.subscriptions = subscriptions
        self.dispatcher = dispatcher
        self.timers = timers
        self.counters = counters
        self.hooks = hooks
        self.keeper = keeper
        self.wills = wills
        self.by_client_id = ClientTable()
        self.connected_count = 0
        self.connect_count = 0

    def open(self, client: ClientInfo, channel: Holder, clean_start: bool, now: float) -> tuple[Session, bool, bool]:
        """The session of a client that has just connected, whether it was there before [MQTT-3.1.2-4, -5], and whether
        a kept one had to end for it."""
        client_id = client.client_id
        session = self.by_client_id.get(client_id)
        if session is not None and session.channel is not None:
            self.take_over(session, now)
            session = self.by_client_id.get(client_id)
        discarded = False
        if session is not None and (clean_start or session.expired(now)):
            discarded = session.kept
            self.end(session, reasons.NORMAL_DISCONNECTION, now)
            session = None
        present = session is not None
        if session is None:
            if len(self.by_client_id) >= self.settings.session_count_max:
                raise PeerError(reasons.QUOTA_EXCEEDED, "the node has as many sessions as it may have")
            session = Session(client_id, self.limits, self.counters)
            session.created_at = now
            self.by_client_id[client_id] = session
            self.counters.sessions_created += 1
        else:
            self.counters.sessions_resumed += 1
            if session.will is not None and 0.0 < session.will.due <= now:  # the client comes too late to take it back
                self.wills.publish(session, now)
        session.generation += 1  # what was due at its end is void: expiry and delayed will
        session.will = None
        session.username = client.username
        session.channel = channel
        self.connect_count += 1
        session.connect_number = self.keeper.epoch << 32 | self.connect_count
        self.connected_count += 1
        return session, present, discarded

    def take_over(self, session: Session, now: float) -> None:
        """The same client id connects again: the older connection is told and closed. [MQTT-3.1.4-3]"""
        channel = session.channel
        self.counters.takeovers += 1
        channel.disconnect(reasons.SESSION_TAKEN_OVER)
        self.close(session, channel, True, reasons.SESSION_TAKEN_OVER, now)

    def close(self, session: Session, channel: Holder, with_will: bool, reason: int, now: float) -> None:
        """The connection of a session is gone. Does nothing for a channel that no longer holds it."""
        if session.channel is not channel:
            return
        session.channel = None
        session.outlet = None
        session.disconnected_at = now
        session.aliases = None
        session.to_resend = None
        self.connected_count -= 1
        session.generation += 1
        if self.hooks.client_off and channel.client is not None:
            self.hooks.tell("client_off", ClientEvent(channel.client, now, reason))
        will = session.will
        if will is not None and not with_will:
            will = session.will = None
            if not session.kept:
                self.wills.forget(session)
        if not session.kept or session.expiry <= 0:
            self.end(session, reason, now)
            return
        if will is not None:
            will.due = now + will.delay
        self.subscriptions.rest(session)
        self.keeper.left(session)
        if will is not None:
            if will.delay == 0:
                self.wills.publish(session, now)
            else:
                self.timers.set(will.due, "will", session)
        if session.expiry != float("inf"):
            self.timers.set(now + session.expiry, "expiry", session)

    def resume_timers(self, session: Session, now: float) -> None:
        """A session came out of the store: what is due, is due when it was. [MQTT-3.1.2-23]"""
        if session.will is not None and session.will.due:
            self.timers.set(session.will.due, "will", session)
        if session.expiry != float("inf"):
            self.timers.set(session.disconnected_at + session.expiry, "expiry", session)

    def end(self, session: Session, reason: int, now: float) -> None:
        """The session is over: its subscriptions go, its will is due, what shared groups gave it goes to others."""
        if self.by_client_id.get(session.client_id) is session:
            del self.by_client_id[session.client_id]
        session.generation += 1
        if session.will is not None:
            self.wills.publish(session, now)
        left, positions = session.take_shared()
        if session.subscriptions:
            self.subscriptions.remove_all(session)
        if positions:
            self._give_back(positions)
        if session.kept:
            self.keeper.ended(session)
        session.queue = None
        session.queue_bytes = 0
        session.held = None
        session.via = None
        session.window = None
        self.counters.sessions_ended += 1
        if left:
            self.dispatcher.hand_over(left, now)
        if self.hooks.session_ended:
            client = ClientInfo(session.client_id, session.username, "", session.version, "")
            self.hooks.tell("session_ended", ClientEvent(client, now, reason))

    def _give_back(self, positions: list[tuple[Any, int, bool]]) -> None:
        """To the groups that they came from, which write it down before the session is gone."""
        readers = {group.reader for group, _, _ in positions if group.reader is not None}
        for group, position, unfinished in positions:
            if group.reader is not None and unfinished:
                group.reader.give_back(position)
            elif group.reader is not None:
                group.reader.leave(position)
        for reader in readers:
            reader.write_down()

    def timer(self, timer: Timer, now: float) -> None:
        if timer.kind == "will":
            if timer.session.will is not None:
                self.wills.publish(timer.session, now)
        else:
            self.end(timer.session, reasons.NORMAL_DISCONNECTION, now)
