"""A broker with its channels and no socket, loop or clock: clients of the harness talk to it in memory.

Time stands still until a test moves it, so delays, expiries and slices are tested without waiting.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from brookmq.access.authenticate import Authentication
from brookmq.access.hook import HookLimits
from brookmq.access.hooks import Hooks
from brookmq.base.alarms import Alarms
from brookmq.base.counters import Counters
from brookmq.broker.broker import Broker
from brookmq.broker.channel import Channel
from brookmq.broker.delayed import DelayedMessages
from brookmq.broker.outlet import Outlet, Turn
from brookmq.broker.retained import RetainedStore
from brookmq.broker.rewrite import RewriteRule, TopicRewriter
from brookmq.broker.settings import SessionLimits, Settings
from brookmq.store.memory_table import MemoryTable
from tests.broker.memory_journal import MemoryJournal
from tests.harness.raw import Client, Stream

START = 1_800_000_000.0  # unix seconds
PATIENCE = HookLimits(answer_seconds_max=10.0, hold_seconds_max=5.0)


class MemoryNode:
    """What node and edge do around a broker, as simply as it can be done."""

    table_class = MemoryTable

    def __init__(
        self,
        *,
        settings: Settings | None = None,
        rules: list[RewriteRule] | None = None,
        retained: RetainedStore | None = None,
        delayed: DelayedMessages | None = None,
        capture: list[bytes] | None = None,
        after: MemoryNode | None = None,
        unanswered: int | Callable[[int], int] = 0,
    ) -> None:
        """``after``: another node, which has died just now and left its store; of what its store had not answered, the
        first ``unanswered`` of each log and table are there. As a function it is asked for each of them, with the
        number of those that have no answer."""
        self.monotonic: float = 1_000.0 if after is None else after.monotonic
        self.soon: deque[Callable[[], None]] = deque()
        self.counters = Counters()
        self.alarms = Alarms()
        self.hooks = Hooks(self.alarms, PATIENCE, lambda: self.now)
        self.loop: asyncio.AbstractEventLoop = asyncio.new_event_loop() if after is None else after.loop
        self.broker = Broker(
            settings or Settings(),
            SessionLimits(),
            Turn(self.soon.append, self.counters),
            self.counters,
            self.hooks,
            Authentication(self.hooks),
            retained or RetainedStore(),
            delayed or DelayedMessages(1_000),
            TopicRewriter(rules or []),
            Random(1),
        )
        self.broker.index.capture = capture or []
        self.broker.tick(self.now, self.monotonic)
        if after is None:
            self.open_store(
                MemoryJournal(self.soon.append, self.clock),
                self.table_class(self.soon.append, self.clock),
                self.table_class(self.soon.append, self.clock),
            )
        else:
            stored = unanswered if callable(unanswered) else lambda _: unanswered
            self.soon = after.soon
            self.soon.clear()
            self.broker.turn.call_soon = self.soon.append
            self.open_store(
                MemoryJournal(self.soon.append, self.clock, after.journal.crash(stored)),
                after.sessions_table.reopened(stored(after.sessions_table.unanswered)),
                after.values_table.reopened(stored(after.values_table.unanswered)),
            )

    def clock(self) -> float:
        return self.monotonic

    def open_store(self, journal: MemoryJournal, sessions: MemoryTable, values: MemoryTable) -> None:
        """What a node does when its store is ready."""
        self.journal = journal
        self.sessions_table = sessions
        self.values_table = values
        restoring = self.broker.restoring
        for shard, watermark in enumerate(restoring.watermark(sessions.meta_state())):
            for batch in journal.batches[shard]:
                if batch.end > watermark:
                    restoring.look_through(shard, batch.groups)
        journal.on_stored = self.broker.journaling.stored
        self.broker.attach(journal, sessions, values, self.now)
        self.settle()
        self.broker.tick(self.now, self.monotonic)

    @property
    def now(self) -> float:
        return START + self.monotonic

    def client(self, version: int = 5, client_id: str | None = None, *, mount: str = "", **fields: Any) -> Client:
        """A client that is connected."""
        return Client(("", 0), version, MemoryStream(self, mount)).connect(client_id, **fields)

    def settle(self) -> None:
        """Turns of the loop until nothing is left to do."""
        while self.soon:
            self.soon.popleft()()

    def pass_time(self, seconds: float) -> None:
        self.monotonic += seconds
        self.broker.tick(self.now, self.monotonic)
        self.settle()

    def close(self) -> None:
        self.loop.run_until_complete(self.hooks.stop())
        self.loop.close()
        self.broker.retained.check_invariants()
        self.broker.delayed.check_invariants()


class MemoryStream(Stream):
    """A connection of the harness that ends in a channel."""

    def __init__(self, node: MemoryNode, mount: str) -> None:
        self.node = node
        self.host = MemoryHost(node)
        settings = node.broker.settings
        outlet = Outlet(node.broker.turn, self.host, settings.output_bytes_max, settings.patience)
        self.host.channel = Channel(node.broker, self.host, outlet, "memory", "127.0.0.1:1")
        self.host.channel.mount_template = mount

    def send(self, data: bytes) -> None:
        self.host.channel.receive(data, self.node.monotonic)
        self.node.settle()

    def receive(self, timeout: float) -> bytes:
        self.node.settle()
        data = bytes(self.host.written)
        self.host.written.clear()
        if not data and not self.host.closed:
            raise TimeoutError
        return data

    def close(self) -> None:
        """The client closes its socket, or its network fails."""
        if not self.host.closed:
            self.host.closed = True
            self.host.channel.lost()
            self.node.settle()


class MemoryHost:
    """What a channel has for a connection: host and transport at once."""

    channel: Channel

    def __init__(self, node: MemoryNode) -> None:
        self.node = node
        self.written = bytearray()
        self.closed = False

    def write(self, data: bytes) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        self.channel.outlet.finish()
        self.closed = True
        self.node.soon.append(self.channel.lost)

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def watch(self, seconds: float) -> None: ...

    def run(self, awaitable: Awaitable[Any], done: Callable[[Any], None]) -> None:
        self.node.soon.append(lambda: done(self.node.loop.run_until_complete(awaitable)))
