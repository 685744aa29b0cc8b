"""What all connections of a node share: the broker, the turn, the watch over silence, the tasks that wait for
plugins."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from brookmq.base.counters import Counters
from brookmq.broker.admission import Admission
from brookmq.broker.broker import Broker
from brookmq.broker.channel_state import CLOSED
from brookmq.edge.connection import Connection
from brookmq.edge.context import ListenerContext
from brookmq.edge.watch import Watch
from brookmq.mqtt import reasons

CLOSE_SECONDS_MAX = 5.0  # how long a peer may take to read the last bytes before it is cut off
ABORT_SECONDS_MAX = 1.0  # how long the loop may take to report connections that were cut off
SLICE = 500  # connections that are told in one turn of the loop
CLOSINGS_IN_A_TURN = 32  # some 20 to 30 µs each, with what the session leaves behind


class Hub:
    def __init__(self, broker: Broker, loop: asyncio.AbstractEventLoop) -> None:
        self.broker = broker
        self.turn = broker.turn
        self.settings = broker.settings
        self.counters: Counters = broker.counters
        self.loop = loop
        self.connections: dict[Connection, None] = {}  # in the order in which they came
        self.watch = Watch()
        self.closings = Admission(broker.turn, CLOSINGS_IN_A_TURN)  # thousands may go at once
        self.tasks: set[asyncio.Future[Any]] = set()
        self.empty = asyncio.Event()
        self.empty.set()

    def make_connection(self, context: ListenerContext) -> Connection:
        return Connection(self, context)

    def opened(self, connection: Connection, began: float) -> None:
        """A connection that was accepted at ``began`` (monotonic seconds) has become one of MQTT."""
        self.connections[connection] = None
        self.empty.clear()
        self.counters.connections_opened += 1
        self.watch.look_again(connection, began + self.settings.connect_timeout)

    def lost(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        self.watch.forget(connection)
        self.counters.connections_closed += 1
        if not self.connections:
            self.empty.set()

    def closing(self, connection: Connection) -> None:
        self.watch.look_again(connection, connection.closing_at + CLOSE_SECONDS_MAX)

    def run(self, awaitable: Awaitable[Any], done: Callable[[Any], None]) -> None:
        """Wait for something in a task of its own, then call ``done`` with the result or the exception."""
        task = asyncio.ensure_future(awaitable)
        self.tasks.add(task)

        def ended(task: asyncio.Future[Any]) -> None:
            self.tasks.discard(task)
            if not task.cancelled():
                error = task.exception()
                done(error if error is not None else task.result())

        task.add_done_callback(ended)

    def tick(self, now: float) -> None:
        """End connections that were silent for too long. [MQTT-3.1.2-22]"""
        for connection in self.watch.due(now):
            self._look_at(connection, now)

    def _look_at(self, connection: Connection, now: float) -> None:
        if connection not in self.connections:
            return
        channel = connection.channel
        if connection.closing:
            if now - connection.closing_at >= CLOSE_SECONDS_MAX:
                connection.abort()
            else:
                self.watch.look_again(connection, connection.closing_at + CLOSE_SECONDS_MAX)
        elif channel is not None and channel.state != CLOSED:
            if channel.overdue(now):
                channel.timed_out()
            elif channel.silence_max > 0:
                # one that is suspended is looked at again after a whole interval
                since = now if channel.suspended else channel.last_seen
                self.watch.look_again(connection, since + channel.silence_max)

    async def close_all(self, drain_seconds: float) -> None:
        """Tell every client that the server goes, in slices, and wait for the connections to end; who does not take
        its last bytes in time is cut off."""
        for number, connection in enumerate([*self.connections]):
            if connection.channel is not None:
                connection.channel.end(reasons.SERVER_SHUTTING_DOWN)
            if number % SLICE == SLICE - 1:
                await asyncio.sleep(0)
        if not await self._emptied(drain_seconds):
            for connection in [*self.connections]:
                connection.abort()
            await self._emptied(ABORT_SECONDS_MAX)
        for task in [*self.tasks]:
            task.cancel()

    async def _emptied(self, seconds: float) -> bool:
        """Whether the last connection ended within so many seconds."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.empty.wait(), seconds)
        return self.empty.is_set()
