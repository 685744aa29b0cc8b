"""Wills: what a client leaves behind, and the way in which it goes out exactly once.

A will is published when its connection ends without a DISCONNECT of the normal kind: at once, after its delay, or at
the end of the session, whichever comes first; a client that comes back before then takes it back. [MQTT-3.1.3-9]

The will of a kept session is in its record until it is due; that of a transient one *stands* under a key of its own
from the beginning, since nothing else of it is kept. A will that is due stands, too: the next connect of its client
makes a new record of the session. It is published with an origin that names its connection, and its record goes when
the message is where it has to be. What is found after a crash is published, unless the journal has a message with its
origin: so it goes out once, whenever the node died.

A client often has a retained will ("offline") and replaces it when it is back ("online"). So its CONNACK waits for a
retained will of its own that is on its way: neither now nor after a crash can that come second.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from brookmq.base import faults
from brookmq.base.counters import Counters
from brookmq.base.errors import PeerError
from brookmq.base.message import Message
from brookmq.broker.keeping import Keeper
from brookmq.broker.session import Session
from brookmq.broker.will import Will, will_state
from brookmq.store import session_ops
from brookmq.store.session_state import SessionState, will_key
from brookmq.store.table.interface import part_of

log = logging.getLogger("brookmq.broker")


class Wills:
    """``publish_message(message, origin, settled, now)`` is the broker's; ``settled`` is called when all is stored."""

    def __init__(self, keeper: Keeper, counters: Counters) -> None:
        self.keeper = keeper
        self.counters = counters
        self.publish_message: Callable[[Message, bytes, Callable[[], None], float], None]
        self._standing: dict[int, dict[bytes, SessionState]] = {}  # by part and key
        self._retaining: dict[str, int] = {}  # client ids with so many retained wills on their way
        self._waiting: dict[str, list[Callable[[], None]]] = {}  # those who wait for these

    def stand(self, session: Session) -> None:
        """A transient session has come with a will, or that of a kept one is due."""
        if session.will is not None and self.keeper.table is not None:
            key = will_key(session.client_id, session.connect_number)
            state = will_state(session, session.will)
            self._standing.setdefault(part_of(key), {})[key] = state
            self.keeper.table.change(key, session_ops.state(state))

    def forget(self, session: Session) -> None:
        """A transient session has left without its will."""
        self._drop(will_key(session.client_id, session.connect_number))

    def publish(self, session: Session, now: float) -> None:
        """The will of a session is due: of one that ends, or that goes on without it."""
        will = session.will
        assert will is not None
        if session.kept and self.keeper.table is not None:
            self.stand(session)
            self.keeper.change(session, session_ops.will_dropped())
        session.will = None
        self._publish(session.client_id, session.connect_number, will, now)

    def publish_standing(self, key: bytes, state: SessionState, will: Will, now: float) -> None:
        """One that stood when the node died."""
        self._standing.setdefault(part_of(key), {})[key] = state
        self._publish(state.client_id, state.connect_number, will, now)

    def when_settled(self, client_id: str, callback: Callable[[], None]) -> None:
        """Calls back when no retained will of a client is on its way; at once when none is."""
        if client_id in self._retaining:
            self._waiting.setdefault(client_id, []).append(callback)
        else:
            callback()

    def on_its_way(self, client_id: str) -> bool:
        """Whether a retained will of this client is."""
        return client_id in self._retaining

    def _publish(self, client_id: str, connect_number: int, will: Will, now: float) -> None:
        self.counters.wills_published += 1
        origin = origin_of(client_id, connect_number)
        retain = will.message.retain
        if retain:
            self._retaining[client_id] = self._retaining.get(client_id, 0) + 1
        if self.keeper.table is not None:
            self.keeper.floors[origin] = self.keeper.journaling.heads()

        def over() -> None:
            """The journal may have it long before all is settled: until then a start has to find it there."""
            self.keeper.floors.pop(origin, None)
            self._drop(will_key(client_id, connect_number), (lambda: self._settled(client_id)) if retain else None)

        if faults.armed:
            faults.hit("will.taken")
        try:
            self.publish_message(will.due_message(now), origin, over, now)
        except PeerError as error:  # its topic was checked at CONNECT, a limit may be reached only now
            log.info("will of %s not published: %s", client_id, error)
            over()

    def _settled(self, client_id: str) -> None:
        left = self._retaining.pop(client_id) - 1
        if left:
            self._retaining[client_id] = left
            return
        for callback in self._waiting.pop(client_id, ()):
            callback()

    def stands(self, key: bytes) -> bool:
        return key in self._standing.get(part_of(key), ())

    def standing(self, part: int) -> Iterator[tuple[bytes, SessionState]]:
        """Of one part of the table."""
        yield from [*self._standing.get(part, {}).items()]

    def _drop(self, key: bytes, done: Callable[[], None] | None = None) -> None:
        """It stands no more; ``done`` when the store knows."""
        part = part_of(key)
        standing = self._standing.get(part)
        if standing is not None and standing.pop(key, None) is not None and self.keeper.table is not None:
            self.keeper.table.change(key, session_ops.ended(), done)
            if not standing:
                del self._standing[part]
        elif done is not None:
            done()


def origin_of(client_id: str, connect_number: int) -> bytes:
    """Names the will of one connection in the journal."""
    return b"will\0" + connect_number.to_bytes(8, "big") + client_id.encode()
