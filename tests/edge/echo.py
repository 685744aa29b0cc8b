"""A stand-in for the MQTT connection: sends back what it gets and remembers what happened to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Self, TypeVar

from brookmq.base.config.listeners import Listener as ListenerConfig
from brookmq.base.counters import Counters
from brookmq.edge.context import ListenerContext
from brookmq.edge.listeners import Listeners
from brookmq.edge.peer import Peer

DEADLINE_SECONDS = 60.0
T = TypeVar("T")


class EchoConnection(asyncio.BufferedProtocol):
    """Echoes; the word ``close`` makes it close its transport, ``abort`` abort it."""

    peer: Peer

    def __init__(self, context: ListenerContext) -> None:
        self.context = context
        self.received = bytearray()
        self.feeds: list[bytes] = []
        self.lost = False
        self.error: Exception | None = None
        self.writing_paused = 0
        self.writing_resumed = 0
        self.echo = True
        self._buffer = bytearray(65_536)
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert self.peer is not None
        assert self.transport is None
        self.transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, size: int) -> None:
        self.feed(bytes(self._buffer[:size]))

    def feed(self, data: bytes) -> None:
        assert not self.lost
        self.received += data
        self.feeds.append(data)
        if data == b"close":
            self.transport.close()
        elif data == b"abort":
            self.transport.abort()
        elif self.echo:
            self.transport.write(data)

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self.writing_paused += 1

    def resume_writing(self) -> None:
        self.writing_resumed += 1

    def connection_lost(self, error: Exception | None) -> None:
        assert not self.lost
        self.lost = True
        self.error = error
        self.context.closed()


class EchoServer:
    """Listeners over echo connections, for the length of a `async with`."""

    def __init__(
        self,
        configs: Mapping[str, ListenerConfig],
        *,
        connections_fit: int = 10_000,
        connect_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        self._configs = configs
        self._connections_fit = connections_fit
        self._connect_seconds = connect_seconds
        self.counters = Counters()
        self.connections: list[EchoConnection] = []

    async def __aenter__(self) -> Self:
        self.listeners = Listeners(
            self._configs,
            self._make,
            self.counters,
            asyncio.get_running_loop(),
            connections_fit=self._connections_fit,
            connect_seconds=self._connect_seconds,
        )
        self.listeners.bind()
        await self.listeners.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.listeners.close()
        for connection in self.connections:
            if not connection.lost:
                connection.transport.abort()
        await until(lambda: all(listener.context.connections == 0 for listener in self.listeners))
        assert self.listeners.capacity.in_use == 0

    def _make(self, context: ListenerContext) -> EchoConnection:
        connection = EchoConnection(context)
        self.connections.append(connection)
        return connection

    def context(self, name: str = "one") -> ListenerContext:
        return next(listener.context for listener in self.listeners if listener.context.name == name)

    def address(self, kind: str = "mqtt") -> tuple[str, int]:
        host, _, port = self.listeners.addresses()[kind][0].rpartition(":")
        return host.strip("[]"), int(port)

    async def only(self) -> EchoConnection:
        """The one connection that there is."""
        await until(lambda: bool(self.connections))
        assert len(self.connections) == 1
        return self.connections[0]


def serving(type_: str = "tcp", /, **settings: Any) -> EchoServer:
    """One listener named `one` with the given settings; `connections_fit` and `connect_seconds` are the server's."""
    options = {key: settings.pop(key) for key in ("connections_fit", "connect_seconds") if key in settings}
    settings.setdefault("bind", "127.0.0.1:0")
    return EchoServer({"one": ListenerConfig(type=type_, **settings)}, **options)  # type: ignore[arg-type]


async def until(condition: Callable[[], bool], seconds: float = DEADLINE_SECONDS) -> None:
    """Wait for a condition; a look every few milliseconds, and a deadline."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 (what is waited for sets no event)
            await asyncio.sleep(0.002)


async def within(awaitable: Awaitable[T], seconds: float = DEADLINE_SECONDS) -> T:
    async with asyncio.timeout(seconds):
        return await awaitable
