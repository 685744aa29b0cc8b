"""The deliver hooks: plugins that look at each message before a client gets it.

Hooks that answer in place are asked in place. For the others the deliveries of a session wait in a line of their own,
so that each session gets its messages in order however long one answer takes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from brookmq.access.hooks import Hooks
from brookmq.access.points import ClientInfo
from brookmq.base.counters import Counters
from brookmq.base.message import Message
from brookmq.broker.publication import Delivery
from brookmq.broker.session import Session

LINE_MAX = 1000  # deliveries of one session that wait for plugins; further ones are dropped and counted

Run = Callable[[Awaitable[Any], Callable[[Any], None]], None]


class DeliverHooks:
    """``broker.intercept``. ``run`` waits for an awaitable and calls back, as a host does."""

    def __init__(self, hooks: Hooks, run: Run, counters: Counters) -> None:
        self.hooks = hooks
        self.run = run
        self.counters = counters
        self.lines: dict[Session, deque[tuple[Delivery, float]]] = {}

    def __call__(self, session: Session, delivery: Delivery, now: float) -> None:
        if not self.hooks.deliver_waits:
            self._hand_on(session, delivery, self.hooks.deliver_now(_client_of(session), delivery.message), now)
            return
        line = self.lines.get(session)
        if line is None:
            self.lines[session] = deque([(delivery, now)])
            self._next(session)
        elif len(line) < LINE_MAX or delivery.packet_id:  # what is in the window is bounded by that
            line.append((delivery, now))
        else:
            self.counters.dropped_queue_full += 1

    def busy(self, session: Session) -> bool:
        """So much waits for plugins that a reader of history should not add to it."""
        line = self.lines.get(session)
        return line is not None and len(line) * 2 >= LINE_MAX

    def _next(self, session: Session) -> None:
        delivery, now = self.lines[session][0]

        def done(answer: Any) -> None:
            message = answer if isinstance(answer, Message) else None
            self._hand_on(session, delivery, message, now)
            line = self.lines[session]
            line.popleft()
            if line:
                self._next(session)
            else:
                del self.lines[session]
                if session.outlet is not None and session.waits():
                    session.pump(now)  # what plugins held back or threw away has left room

        self.run(self.hooks.run_deliver(_client_of(session), delivery.message), done)

    def _hand_on(self, session: Session, delivery: Delivery, message: Message | None, now: float) -> None:
        if message is None:
            self.counters.dropped_by_hook += 1
            if delivery.packet_id:
                session.finish_taken(delivery.packet_id.to_bytes(2, "big"), delivery.qos)
        elif delivery.packet_id:
            delivery.message = message
            session.send_taken(delivery, now)
        else:
            session.send_judged(message, delivery.qos, delivery.retain, delivery.identifiers, delivery.group, now)


def _client_of(session: Session) -> ClientInfo:
    channel = session.channel
    client = getattr(channel, "client", None)
    if isinstance(client, ClientInfo):
        return client
    return ClientInfo(session.client_id, session.username, "", session.version, "")
