"""Rows of queries that come over HTTP, published exactly once beside the node's other work.

What was begun is ended, whether or not the sender is still there: it will send again, and is told then. The requests of
one partition are taken one after the other, since a row that is taken makes those before it old.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from brookmq.base.ending import end
from brookmq.base.errors import OperationError
from brookmq.base.message import Message
from brookmq.broker.broker import Broker
from brookmq.broker.rows import decode_rows
from brookmq.broker.sinks import Sinks
from brookmq.store.pipeline_record import Row, sink_key

SLICE: Final = 200  # rows in one turn of the loop, some milliseconds
FULL_PAUSE_S: Final = 0.01
READY_PAUSE_S: Final = 0.02
PARTITIONS_MAX: Final = 1000  # with rows on their way at the same time


class _Turn:
    """The order of the requests of one partition."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0


class Sink:
    """``wait_s``: how long a sender waits for the store before it is told to send again."""

    def __init__(self, broker: Broker, sinks: Sinks, wait_s: float) -> None:
        self._broker = broker
        self._sinks = sinks
        self._wait_s = wait_s
        self._turns: dict[bytes, _Turn] = {}  # of partitions with rows that are being taken
        self._tasks: set[asyncio.Task[Row]] = set()

    async def position(self, query: str, partition: int) -> Row:
        """The last row up to which all are stored."""
        await self._ready()
        return self._sinks.position(sink_key(query, partition))

    async def publish(self, query: str, partition: int, body: bytes) -> Row:
        """Take rows; their last one, or a later one, once all is stored. PeerError for what can't be published."""
        await self._ready()
        first, messages = decode_rows(body, self._broker.settings, time.time())
        key = sink_key(query, partition)
        if not messages:
            return self._sinks.position(key)
        if len(self._turns) >= PARTITIONS_MAX and key not in self._turns:
            raise OperationError(f"rows of {PARTITIONS_MAX} partitions are on their way; send again later")
        task = asyncio.create_task(self._take(key, first, messages))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        try:
            async with asyncio.timeout(self._wait_s):
                return await asyncio.shield(task)
        except TimeoutError:
            raise OperationError("the rows are not stored yet: the store does not answer; send them again") from None

    async def forget(self, query: str) -> None:
        """Rows under this name are new ones from now on."""
        await self._ready()
        self._sinks.forget(query)

    async def close(self) -> None:
        await end(self._tasks)

    async def _ready(self) -> None:
        """Until it is known what was published before: a node that starts needs a moment."""
        try:
            async with asyncio.timeout(self._wait_s):
                while not self._sinks.ready:  # noqa: ASYNC110 - a table knows callers, not tasks
                    await asyncio.sleep(READY_PAUSE_S)
        except TimeoutError:
            raise OperationError("what was published before is not known yet: the store is not open") from None

    def _ended(self, task: asyncio.Task[Row]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # who waits for it is told; who left is not there to be told

    async def _take(self, key: bytes, first: Row, messages: Sequence[Message]) -> Row:
        stored = asyncio.get_running_loop().create_future()

        def done() -> None:
            if not stored.done():
                stored.set_result(None)

        turn = self._turns.setdefault(key, _Turn())
        turn.users += 1
        try:
            async with turn.lock:
                for start in range(0, len(messages), SLICE):
                    await self._room()
                    some, last = messages[start : start + SLICE], start + SLICE >= len(messages)
                    row = Row(first.batch, first.row + start)
                    self._sinks.take(key, row, some, time.time(), done if last else _nothing)
                    await asyncio.sleep(0)
        finally:
            turn.users -= 1
            if not turn.users:
                del self._turns[key]
        await stored
        return self._sinks.position(key)

    async def _room(self) -> None:
        """A publisher that is not read from while the store has too much to do already."""
        while self._broker.turn.tables_full:  # noqa: ASYNC110 - a table knows callers, not tasks
            await asyncio.sleep(FULL_PAUSE_S)
        for shard in self._broker.journaling.shards:
            if shard.full:
                free = asyncio.get_running_loop().create_future()
                shard.wait(lambda free=free: free.done() or free.set_result(None))
                await free


def _nothing() -> None:
    """The last of the rows tells."""
