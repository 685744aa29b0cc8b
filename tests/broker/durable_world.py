"""Retained and delayed messages over a table in memory, that a test can crash and open again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from brookmq.base.counters import Counters
from brookmq.base.message import Message
from brookmq.broker.broker import Broker
from brookmq.broker.delayed import DelayedMessages
from brookmq.broker.durable_values import DurableValues
from brookmq.broker.outlet import Turn
from brookmq.broker.replay import Replays
from brookmq.broker.retained import RetainedStore
from brookmq.store.memory_table import MemoryTable


class World:
    """One run of a node, as far as its values are concerned."""

    def __init__(
        self,
        table: MemoryTable | None = None,
        soon: deque[Callable[[], None]] | None = None,
        broker: Broker | None = None,
    ) -> None:
        self.soon: deque[Callable[[], None]] = deque() if soon is None else soon
        self.table = table or MemoryTable(self.soon.append)
        if broker is not None:
            self.retained, self.delayed, self.replays = broker.retained, broker.delayed, broker.replays
        else:
            self.retained = RetainedStore()
            self.delayed = DelayedMessages(0)
            self.replays = Replays(self.retained, Turn(self.soon.append, Counters()))
        self.values = DurableValues(self.table, self.retained, self.delayed, self.replays)

    def begin(self) -> World:
        self.values.begin()
        return self

    def settle(self) -> World:
        """Turns of the loop, until nothing is left to do."""
        while self.soon:
            self.soon.popleft()()
        return self

    def crashed(self, unanswered: int = 0, broker: Broker | None = None) -> World:
        """The next run of the node: nothing is loaded yet, and nothing has begun."""
        self.soon.clear()
        return World(self.table.reopened(unanswered), self.soon, broker)

    def set(self, topic: bytes, payload: bytes = b"1", expires_at: float = 0.0, client_id: str = "c") -> Message:
        message = Message(topic, payload, 1, True, b"\x01\x01", expires_at, 5.0, client_id, "u")
        assert self.retained.set(message, 0.0)
        return message

    def kept(self) -> dict[bytes, bytes]:
        """Payloads by topic, expired ones included."""
        return {message.topic: message.payload for message in self.retained.page(b"", 10_000, None, 0.0)[0]}

    def check(self) -> None:
        self.retained.check_invariants()
        self.delayed.check_invariants()
        self.values.check_invariants()
        self.table.check_invariants()
