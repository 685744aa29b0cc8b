"""Who is here: the sessions of a node by client id, from CONNECT to their end.

    none ──connect──► connected ──connection ends, kept──► away ──connect──► connected
                          │ not kept                         │ expiry, discard
                          └──────────────► ended ◄───────────┘

A will is published when its connection ends without a DISCONNECT of the normal kind: at once, after its delay, or at
the end of the session, whichever comes first; a client that comes back before then takes it back. [MQTT-3.1.3-9]
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from brookmq.access.hooks import Hooks
from brookmq.access.points import ClientEvent, ClientInfo
from brookmq.base.counters import Counters
from brookmq.base.errors import PeerError
from brookmq.base.message import Message
from brookmq.broker.dispatch import Dispatcher
from brookmq.broker.session import Session, SessionLimits
from brookmq.broker.settings import Settings
from brookmq.broker.subscribing import Subscriptions
from brookmq.broker.timers import Timer, Timers
from brookmq.mqtt import reasons

log = logging.getLogger("brookmq.broker")


class Will:
    """A will as the broker keeps it: ready to publish, but for its expiry, which begins when it is published."""

    __slots__ = ("delay", "expiry", "message")

    def __init__(self, message: Message, delay: int, expiry: int | None) -> None:
        self.message = message
        self.delay = delay  # seconds
        self.expiry = expiry  # seconds, None = never

    def due_message(self, now: float) -> Message:
        message = self.message
        return Message(
            message.topic,
            message.payload,
            message.qos,
            message.retain,
            message.properties,
            0.0 if self.expiry is None else now + self.expiry,
            now,
            message.client_id,
            message.username,
        )


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
    ) -> None:
        self.settings = settings
        self.limits = limits
        self.subscriptions = subscriptions
        self.dispatcher = dispatcher
        self.timers = timers
        self.counters = counters
        self.hooks = hooks
        self.by_client_id: dict[str, Session] = {}
        self.connected_count = 0
        self.publish_will: Callable[[Message, Session | None, float], int] = lambda message, session, now: 0

    def open(self, client: ClientInfo, channel: Holder, clean_start: bool, now: float) -> tuple[Session, bool]:
        """The session of a client that has just connected, and whether it was there before. [MQTT-3.1.2-4, -5]"""
        client_id = client.client_id
        session = self.by_client_id.get(client_id)
        if session is not None and session.channel is not None:
            self.take_over(session, now)
            session = self.by_client_id.get(client_id)
        if session is not None and clean_start:
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
        session.generation += 1  # what was due at its end is void: expiry and delayed will
        session.will = None
        session.username = client.username
        session.channel = channel
        self.connected_count += 1
        return session, present

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
        if not with_will:
            session.will = None
        will = session.will
        if isinstance(will, Will):
            if not session.kept or will.delay == 0:
                self._publish_will(session, now)
            else:
                self.timers.set(now + will.delay, "will", session)
        if session.kept:
            if session.expiry != float("inf"):
                self.timers.set(now + session.expiry, "expiry", session)
        else:
            self.end(session, reason, now)

    def end(self, session: Session, reason: int, now: float) -> None:
        """The session is over: its subscriptions go, its will is due, what shared groups gave it goes to others."""
        if self.by_client_id.get(session.client_id) is session:
            del self.by_client_id[session.client_id]
        session.generation += 1
        self._publish_will(session, now)
        left = session.take_shared()
        self.subscriptions.remove_all(session)
        session.queue = None
        session.queue_bytes = 0
        session.held = None
        session.window = None
        self.counters.sessions_ended += 1
        if left:
            self.dispatcher.hand_over(left, now)
        if self.hooks.session_ended:
            client = ClientInfo(session.client_id, session.username, "", session.version, "")
            self.hooks.tell("session_ended", ClientEvent(client, now, reason))

    def _publish_will(self, session: Session, now: float) -> None:
        will = session.will
        session.will = None
        if isinstance(will, Will):
            self.counters.wills_published += 1
            try:
                self.publish_will(will.due_message(now), None, now)
            except PeerError as error:  # its topic was checked at CONNECT, a limit may be reached only now
                log.info("will of %s not published: %s", session.client_id, error)

    def timer(self, timer: Timer, now: float) -> None:
        if timer.kind == "will":
            self._publish_will(timer.session, now)
        else:
            self.end(timer.session, reasons.NORMAL_DISCONNECTION, now)
